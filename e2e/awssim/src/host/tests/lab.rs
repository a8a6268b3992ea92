//! A simulator in small, for tests of the bodies alone.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::host::{Bodies, HostConfig, locked};
use crate::machine::{
    AttachedVolume, BodyInterface, BodySpec, Command, ExecEnd, ExecOutput, FileSystemDir, HostView,
    Machines as _, RoleCredentials,
};

const IMAGE: &str = "aws-parallelcluster-3.14.0-amzn2023-hvm-x86_64-202509";
pub const DNS_NAME: &str = "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com";
const LIMIT: Duration = Duration::from_mins(5);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Bodies of the calls that came in.
type Calls = Arc<Mutex<Vec<Value>>>;

/// A simulator in small: what it knows of instances, and what they told it.
pub struct View {
    dir: PathBuf,
    endpoint: SocketAddr,
    specs: Mutex<BTreeMap<String, BodySpec>>,
    pub volumes: Mutex<BTreeMap<String, AttachedVolume>>,
    pub online: Mutex<Vec<String>>,
    pub stopped: Mutex<Vec<String>>,
}

impl HostView for View {
    fn imds(&self, instance_id: &str, path: &str) -> Option<String> {
        let specs = locked(&self.specs);
        let spec = specs.get(instance_id)?;
        let role = spec.credentials.as_ref();
        Some(match path.strip_prefix("latest/meta-data/")? {
            "instance-id" => instance_id.to_owned(),
            "local-ipv4" => spec.private_ip.to_string(),
            "ami-launch-index" => spec.launch_index.to_string(),
            "iam/security-credentials/" => role?.role.clone(),
            "iam/security-credentials/hpc" => json!({
                "AccessKeyId": role?.access_key_id, "SecretAccessKey": role?.secret_access_key,
                "Token": role?.token, "Code": "Success",
            })
            .to_string(),
            _ => return None,
        })
    }

    fn may_mount_lustre(
        &self,
        _: &str,
        dns_name: &str,
        mount_name: &str,
    ) -> Result<FileSystemDir, String> {
        if (dns_name, mount_name) != (DNS_NAME, "abcd1234") {
            return Err(format!("mount.lustre: {dns_name}@tcp:/{mount_name} is not there"));
        }
        Ok(FileSystemDir {
            file_system_id: "fs-0123456789abcdef0".to_owned(),
            path: self.dir.join("fsx"),
            capacity_gib: 1200,
        })
    }

    fn may_mount_nfs(&self, _: &str, server: IpAddr) -> Result<String, String> {
        let specs = locked(&self.specs);
        let found = specs.values().rfind(|spec| IpAddr::V4(spec.private_ip) == server);
        found.map(|spec| spec.instance_id.clone()).ok_or_else(|| "mount.nfs4: timed out".to_owned())
    }

    fn volumes(&self, instance_id: &str) -> Vec<AttachedVolume> {
        locked(&self.volumes).get(instance_id).cloned().into_iter().collect()
    }

    fn shutdown(&self, instance_id: &str) {
        locked(&self.stopped).push(instance_id.to_owned());
    }

    fn agent_online(&self, instance_id: &str) {
        locked(&self.online).push(instance_id.to_owned());
    }

    fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }
}

/// One simulator's bodies in a folder of their own.
pub struct Lab {
    pub view: Arc<View>,
    pub bodies: Bodies,
    pub dir: PathBuf,
    number: u32,
    /// Bodies of the `PutParameter` calls that came in.
    calls: Calls,
}

impl Lab {
    /// `None` without root.
    pub async fn new() -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: bodies need root");
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("awssim-test-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(&name);
        fs::create_dir_all(dir.join("fsx")).unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = listener.local_addr().unwrap();
        tokio::spawn(answer_calls(listener, Arc::clone(&calls)));
        Some(Self::over(dir, number, endpoint, calls))
    }

    fn over(dir: PathBuf, number: u32, endpoint: SocketAddr, calls: Calls) -> Self {
        let view = Arc::new(View {
            dir: dir.clone(),
            endpoint,
            specs: Mutex::default(),
            volumes: Mutex::default(),
            online: Mutex::default(),
            stopped: Mutex::default(),
        });
        let prefix = format!("awssim-test-{}-{number}", std::process::id());
        let config = HostConfig { prefix, state_dir: dir.join("state") };
        let bodies = Bodies::new(config, Arc::clone(&view) as Arc<dyn HostView>);
        Self { view, bodies, dir, number, calls }
    }

    /// A second simulator over the same folder, under the same prefix.
    pub fn again(&self) -> Self {
        let calls = Arc::clone(&self.calls);
        Self::over(self.dir.clone(), self.number, self.view.endpoint, calls)
    }

    pub async fn start(&self, spec: BodySpec) -> String {
        let id = spec.instance_id.clone();
        locked(&self.view.specs).insert(id.clone(), spec.clone());
        self.bodies.start(spec).await.unwrap();
        id
    }

    /// A volume that outlives its instances.
    pub fn attach(&self, id: &str) {
        let backing_file = self.dir.join("vol-0aaaaaaaaaaaaaaaa");
        if !backing_file.exists() {
            fs::File::create(&backing_file).unwrap().set_len(1 << 30).unwrap();
        }
        let volume = AttachedVolume {
            volume_id: "vol-0aaaaaaaaaaaaaaaa".to_owned(),
            device: "/dev/sdf".to_owned(),
            size_gib: 1,
            backing_file,
            is_root: false,
        };
        locked(&self.view.volumes).insert(id.to_owned(), volume);
    }

    pub async fn exec(&self, id: &str, script: &str) -> ExecOutput {
        self.bodies.exec(id, command(script)).await.unwrap()
    }

    pub async fn output(&self, id: &str, script: &str) -> String {
        let left = self.exec(id, script).await;
        let text = String::from_utf8(left.stdout).unwrap();
        assert_eq!(left.end, ExecEnd::Exited(0), "{text}{}", String::from_utf8_lossy(&left.stderr));
        text.trim().to_owned()
    }

    /// What a failed story has to show.
    pub async fn evidence(&self) -> String {
        let mut text = format!("{:?}\n", locked(&self.calls).last());
        for id in self.bodies.running() {
            let left = self
                .exec(
                    &id,
                    "tail -n 20 /var/log/hpcops/* /var/log/units/* /var/log/cloud-init-output.log",
                )
                .await;
            text.extend(["== ", &id, "\n", &String::from_utf8_lossy(&left.stdout)]);
        }
        text
    }

    /// The last report of the head.
    pub fn report(&self) -> Value {
        let calls = locked(&self.calls);
        let value = calls.last().and_then(|call| call["Value"].as_str()).unwrap_or("null");
        serde_json::from_str(value).unwrap()
    }

    /// Every trace of this lab on the machine.
    pub fn traces(&self) -> Vec<String> {
        traces_of(&self.dir)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Processes, loop devices and mounts that know of a lab's folder.
pub fn traces_of(dir: &Path) -> Vec<String> {
    let name = dir.file_name().unwrap().to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        if environment.contains(name) {
            found.push(environment.replace('\0', " "));
        }
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        found.extend(file.contains(name).then_some(file));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains(name)).map(str::to_owned));
    found
}

/// One namespace of a process.
pub fn namespace(pid: i32, kind: &str) -> fs::File {
    fs::File::open(format!("/proc/{pid}/ns/{kind}")).unwrap()
}

/// Command lines of the processes that live in a namespace.
pub fn members(namespace: &fs::File) -> Vec<String> {
    let number = namespace.metadata().unwrap().ino();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let inside = |entry: &fs::DirEntry| {
        ["mnt", "net", "pid", "uts", "ipc"].iter().any(|kind| {
            let found = fs::metadata(entry.path().join("ns").join(kind));
            found.is_ok_and(|found| found.ino() == number)
        })
    };
    let line = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).ok();
    entries.filter(inside).filter_map(line).collect()
}

async fn answer_calls(listener: tokio::net::TcpListener, calls: Calls) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        let text = loop {
            stream.read_buf(&mut request).await.unwrap();
            let text = String::from_utf8_lossy(&request).into_owned();
            if text.ends_with('}') {
                break text;
            }
        };
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("AWS4-HMAC-SHA256 Credential=ASIA"), "{head}");
        let text = if head.contains("AmazonSSM.GetParameter") {
            serde_json::json!({"Parameter": {"Value": include_str!("data/users.json")}}).to_string()
        } else {
            assert!(head.contains("AmazonSSM.PutParameter"), "{head}");
            locked(&calls).push(serde_json::from_str(body).unwrap());
            "{}".to_owned()
        };
        let length = text.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{text}"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

pub fn command(script: &str) -> Command {
    Command {
        command_id: format!("c-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        script: script.to_owned(),
        environment: Vec::new(),
        working_directory: None,
        timeout: LIMIT,
    }
}

/// A new instance at 10.0.0.`last`.
pub fn spec(last: u8) -> BodySpec {
    let private_ip = [10, 0, 0, last].into();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    BodySpec {
        instance_id: format!("i-{:09x}{number:08x}", std::process::id()),
        account: "111122223333".to_owned(),
        image_id: "ami-0123456789abcdef0".to_owned(),
        image_name: IMAGE.to_owned(),
        instance_type: "c5n.18xlarge".to_owned(),
        vcpus: 72,
        cores: 36,
        memory_mib: 196_608,
        architecture: "x86_64".to_owned(),
        region: "us-east-1".to_owned(),
        availability_zone: "us-east-1a".to_owned(),
        private_ip,
        subnet_cidr: "10.0.0.0/20".to_owned(),
        hostname: format!("ip-10-0-0-{last}.ec2.internal"),
        launch_index: 0,
        reservation_id: "r-0123456789abcdef0".to_owned(),
        user_data: None,
        tags: Vec::new(),
        metadata_tags: true,
        profile_arn: None,
        credentials: Some(RoleCredentials {
            role: "hpc".to_owned(),
            access_key_id: "ASIAEXAMPLE".to_owned(),
            secret_access_key: "secret".to_owned(),
            token: "token".to_owned(),
        }),
        network_interfaces: vec![BodyInterface {
            id: format!("eni-{last}"),
            mac: format!("02:00:0a:00:00:{last:02x}"),
            private_ip: Some(private_ip),
            subnet_id: "subnet-1".to_owned(),
            groups: Vec::new(),
            interface_type: "interface".to_owned(),
            card: 0,
            device: 0,
        }],
        endpoint_url: String::new(),
    }
}

/// Waits for a condition; the deadline tells what was last seen.
pub async fn until<T>(
    what: &str,
    mut seen: impl AsyncFnMut() -> Result<T, String>,
) -> Result<T, String> {
    let begin = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        match seen().await {
            Ok(value) => return Ok(value),
            Err(last) if begin.elapsed() > LIMIT => return Err(format!("{what}: {last}")),
            Err(_) => {}
        }
    }
}

/// Waits until the kernel has let go of every volume of a lab.
pub async fn no_loop_is_left(lab: &Lab) {
    until("loop devices", async || {
        let left: Vec<String> =
            lab.traces().into_iter().filter(|trace| trace.contains("vol-")).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
    .unwrap();
}
