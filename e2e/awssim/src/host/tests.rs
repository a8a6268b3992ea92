//! Bodies as a simulator uses them. All need root; without it they say so and pass.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Bodies, HostConfig, locked};
use crate::machine::{
    AttachedVolume, BodyInterface, BodySpec, Command, ExecEnd, ExecOutput, FileSystemDir, HostView,
    Machines as _, RoleCredentials,
};

const IMAGE: &str = "aws-parallelcluster-3.14.0-amzn2023-hvm-x86_64-202509";
const DNS_NAME: &str = "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com";
const LIMIT: Duration = Duration::from_secs(90);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A simulator in small: what it knows of instances, and what they told it.
struct View {
    dir: PathBuf,
    endpoint: SocketAddr,
    specs: Mutex<BTreeMap<String, BodySpec>>,
    volumes: Mutex<BTreeMap<String, AttachedVolume>>,
    online: Mutex<Vec<String>>,
    stopped: Mutex<Vec<String>>,
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
            return Err(format!(
                "mount.lustre: {dns_name}@tcp:/{mount_name} is not there"
            ));
        }
        Ok(FileSystemDir {
            file_system_id: "fs-0123456789abcdef0".to_owned(),
            path: self.dir.join("fsx"),
            capacity_gib: 1200,
        })
    }

    fn may_mount_nfs(&self, _: &str, server: IpAddr) -> Result<String, String> {
        let specs = locked(&self.specs);
        let found = specs
            .values()
            .rfind(|spec| IpAddr::V4(spec.private_ip) == server);
        found
            .map(|spec| spec.instance_id.clone())
            .ok_or_else(|| "mount.nfs4: timed out".to_owned())
    }

    fn volumes(&self, instance_id: &str) -> Vec<AttachedVolume> {
        locked(&self.volumes)
            .get(instance_id)
            .cloned()
            .into_iter()
            .collect()
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
struct Lab {
    view: Arc<View>,
    bodies: Bodies,
    dir: PathBuf,
    /// Bodies of the `PutParameter` calls that came in.
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Lab {
    async fn new() -> Option<Self> {
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
        let view = Arc::new(View {
            dir: dir.clone(),
            endpoint,
            specs: Mutex::default(),
            volumes: Mutex::default(),
            online: Mutex::default(),
            stopped: Mutex::default(),
        });
        let config = HostConfig {
            prefix: name,
            state_dir: dir.join("state"),
        };
        let bodies = Bodies::new(config, Arc::clone(&view) as Arc<dyn HostView>);
        Some(Self {
            view,
            bodies,
            dir,
            calls,
        })
    }

    async fn start(&self, spec: BodySpec) -> String {
        let id = spec.instance_id.clone();
        locked(&self.view.specs).insert(id.clone(), spec.clone());
        self.bodies.start(spec).await.unwrap();
        id
    }

    /// A volume that outlives its instances.
    fn attach(&self, id: &str) {
        let backing_file = self.dir.join("vol-0aaaaaaaaaaaaaaaa");
        if !backing_file.exists() {
            fs::File::create(&backing_file)
                .unwrap()
                .set_len(1 << 30)
                .unwrap();
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

    async fn exec(&self, id: &str, script: &str) -> ExecOutput {
        self.bodies.exec(id, command(script)).await.unwrap()
    }

    async fn output(&self, id: &str, script: &str) -> String {
        let left = self.exec(id, script).await;
        let text = String::from_utf8(left.stdout).unwrap();
        assert_eq!(
            left.end,
            ExecEnd::Exited(0),
            "{text}{}",
            String::from_utf8_lossy(&left.stderr)
        );
        text.trim().to_owned()
    }

    /// What a failed story has to show.
    async fn evidence(&self) -> String {
        let mut text = format!("{:?}\n", locked(&self.calls).last());
        for id in self.bodies.running() {
            let left = self
                .exec(
                    &id,
                    "tail -n 20 /var/log/hpcops/* /var/log/units/* /var/log/cloud-init-output.log",
                )
                .await;
            text += &format!("== {id}\n{}", String::from_utf8_lossy(&left.stdout));
        }
        text
    }

    /// The last report of the head.
    fn report(&self) -> Value {
        let calls = locked(&self.calls);
        let value = calls
            .last()
            .and_then(|call| call["Value"].as_str())
            .unwrap_or("null");
        serde_json::from_str(value).unwrap()
    }

    /// Every trace of this lab on the machine.
    fn traces(&self) -> Vec<String> {
        traces_of(&self.dir)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Processes, loop devices and mounts that know of a lab's folder.
fn traces_of(dir: &Path) -> Vec<String> {
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
    found.extend(
        mounts
            .lines()
            .filter(|line| line.contains(name))
            .map(str::to_owned),
    );
    found
}

/// Processes that live in a namespace, by its inode.
fn members(kind: &str, inode: u64) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let inside = |entry: &fs::DirEntry| {
        fs::metadata(entry.path().join("ns").join(kind)).is_ok_and(|found| found.ino() == inode)
    };
    entries.filter(inside).count()
}

async fn answer_calls(listener: tokio::net::TcpListener, calls: Arc<Mutex<Vec<Value>>>) {
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
        assert!(
            head.contains("AmazonSSM.PutParameter")
                && head.contains("AWS4-HMAC-SHA256 Credential=ASIA"),
            "{head}"
        );
        locked(&calls).push(serde_json::from_str(body).unwrap());
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn command(script: &str) -> Command {
    Command {
        command_id: format!("c-{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        script: script.to_owned(),
        environment: Vec::new(),
        working_directory: None,
        timeout: LIMIT,
    }
}

fn spec(last: u8) -> BodySpec {
    let private_ip = [10, 0, 0, last].into();
    BodySpec {
        instance_id: format!("i-{:016x}{last:x}", std::process::id()),
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
async fn until<T>(
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

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operator/plan/node")
}

fn render(arguments: &[&str]) -> Vec<u8> {
    let output = Process::new("python3")
        .arg(scripts().join("tests/render.py"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// The real user data of a role.
fn user_data(lab: &Lab, role: &str) -> Vec<u8> {
    let names = json!(["compute-1", "compute-2"]);
    let config = json!({
        "version": 1, "role": role, "clusterUid": "11111111-2222-3333-4444-555555555555",
        "clusterName": "test.quickstart", "region": "us-east-1", "headIp": "10.0.0.10",
        "user": {"name": "hpc", "uid": 4001}, "stateVolumeId": "vol-0aaaaaaaaaaaaaaaa",
        "storage": [{"name": "fsx", "dnsName": DNS_NAME, "mountName": "abcd1234", "mountPath": "/fsx"}],
        "queues": [{"name": "compute", "nodes": names, "cpus": 36, "memoryMiB": 180_000, "efa": false}],
        "queue": "compute", "nodeNames": names,
        "image": {"slurmPrefix": "/opt/slurm", "mpi": {"OpenMPI": "/opt/amazon/openmpi"}, "defaultUser": "ec2-user"},
    });
    let path = lab.dir.join(format!("{role}.json"));
    fs::write(&path, config.to_string()).unwrap();
    render(&["userdata", path.to_str().unwrap()])
}

/// Asks a head through the real document, as Run Command would.
async fn ask(lab: &Lab, head: &str, question: Value) -> Value {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packed, question.to_string().as_bytes()).unwrap();
    let payload = BASE64.encode(packed.finish().unwrap());
    let document = String::from_utf8(render(&["document"]))
        .unwrap()
        .replace("{{ payload }}", &payload);
    serde_json::from_str(&lab.output(head, &document).await).unwrap()
}

async fn boot_cluster(lab: &Lab) -> Vec<String> {
    let begin = Instant::now();
    let mut head = spec(10);
    head.user_data = Some(user_data(lab, "head"));
    lab.attach(&head.instance_id);
    let head = lab.start(head).await;
    let is_ready = async || {
        let report = lab.report();
        if report["state"] == "Ready" {
            Ok(())
        } else {
            Err(report.to_string())
        }
    };
    if let Err(why) = until("the head", is_ready).await {
        panic!("{why}\n{}", lab.evidence().await);
    }
    println!("head ready after {:.1} s", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    let mut ids = vec![head];
    for index in 0..2 {
        let mut node = spec(11 + index);
        node.launch_index = u32::from(index);
        node.user_data = Some(user_data(lab, "compute"));
        ids.push(lab.start(node).await);
    }
    let are_ready = async || {
        let report = lab.report();
        if report["queues"][0]["ready"] == 2 {
            Ok(())
        } else {
            Err(report.to_string())
        }
    };
    if let Err(why) = until("the nodes", are_ready).await {
        panic!("{why}\n{}", lab.evidence().await);
    }
    println!("2 nodes ready after {:.1} s", begin.elapsed().as_secs_f64());
    println!(
        "{}",
        lab.output(&ids[0], include_str!("testdata/steps.sh")).await
    );
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_job_runs_between_two_bodies_and_nothing_is_left_of_them() {
    let Some(lab) = Lab::new().await else { return };
    let ids = boot_cluster(&lab).await;
    let head = &ids[0];
    let attempt = json!({
        "id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1", "user": "hpc", "queue": "compute",
        "nodes": 2, "ranksPerNode": 1, "timeLimitMinutes": 5, "environment": {"GREETING": "it's $(id) \"here\""},
        "script": fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/host/testdata/run.sh")).unwrap(),
    });
    let submit = json!({"op": "submit", "attempts": [attempt]});
    let first = ask(&lab, head, submit.clone()).await;
    assert_eq!(first["attempts"][0]["state"], "Submitted", "{first}");
    let second = ask(&lab, head, submit).await;
    assert_eq!(second["attempts"][0]["state"], "Exists", "{second}");
    assert_eq!(
        second["attempts"][0]["jobId"],
        first["attempts"][0]["jobId"]
    );

    let mut heads = serde_json::Map::new();
    heads.insert(
        head.clone(),
        json!([{"id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1"}]),
    );
    let poll = json!({"op": "poll", "heads": heads});
    let finished = async || {
        let answer = ask(&lab, head, poll.clone()).await;
        let one = answer["attempts"][0].clone();
        if one["phase"] == "Finished" {
            Ok(one)
        } else {
            Err(answer.to_string())
        }
    };
    let one = match until("the job", finished).await {
        Ok(one) => one,
        Err(why) => panic!("{why}\n{}", lab.evidence().await),
    };
    let page = ask(
        &lab,
        head,
        json!({"op": "fetch", "id": "run-1-a1", "folder": "/fsx/.hpcops/run-1/a1", "offset": 0}),
    )
    .await;
    let packed = BASE64.decode(page["data"].as_str().unwrap()).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*packed), &mut text).unwrap();
    println!("{one}\n{text}");
    assert_eq!(
        (&one["exit"]["code"], &page["next"]),
        (&json!(0), &Value::Null),
        "{text}"
    );
    assert_eq!(one["exit"]["hosts"], json!(["compute-1", "compute-2"]));
    assert!(one["exit"]["mpirunStartedAt"].as_f64() >= one["exit"]["startedAt"].as_f64());
    for line in [
        "rank 0 of 2 on ip-10-0-0-11.ec2.internal as 4001",
        "rank 1 of 2 on ip-10-0-0-12.ec2.internal as 4001",
        "it's $(id) \"here\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }

    let pids: Vec<i32> = ids
        .iter()
        .map(|id| lab.bodies.host.body(id).unwrap().pid())
        .collect();
    let spaces: Vec<(&str, u64)> = pids
        .iter()
        .flat_map(|pid| ["mnt", "net", "pid", "uts", "ipc"].map(|kind| (kind, inode(*pid, kind))))
        .collect();
    for id in &ids {
        lab.bodies.kill(id).await.unwrap();
        lab.bodies.kill(id).await.unwrap();
    }
    assert_eq!(lab.bodies.running(), Vec::<String>::new());
    for (kind, inode) in spaces {
        assert_eq!(members(kind, inode), 0, "{kind}");
    }
    let folder = lab.bodies.host.rack().unwrap().folder();
    let left: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("i-")),
        "{left:?}"
    );
    no_loop_is_left(&lab).await;
}

fn inode(pid: i32, kind: &str) -> u64 {
    fs::metadata(format!("/proc/{pid}/ns/{kind}"))
        .unwrap()
        .ino()
}

async fn no_loop_is_left(lab: &Lab) {
    until("loop devices", async || {
        let left: Vec<String> = lab
            .traces()
            .into_iter()
            .filter(|trace| trace.contains("vol-"))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{left:?}"))
        }
    })
    .await
    .unwrap();
}
