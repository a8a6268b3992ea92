//! One body: from `setup.sh` to the end of its PID 1.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use super::failure::{failed, io_failed};
use super::imds::Tokens;
use super::profile::Profile;
use super::rack::{Act, Rack, ready_pid, tail};
use super::sysfs::Processors;
use super::vpc::Vpc;
use super::{Host, door, locked};
use crate::machine::{BodySpec, MachineError};

/// What root in a body may not do: make device nodes, reach ports and disks of
/// the machine, its clock, its modules, its power.
pub const CAPABILITIES: &str = "-mknod,-sys_rawio,-sys_module,-sys_boot,-sys_time,-syslog";

/// SIGKILL to PID 1 ends a PID namespace at once; longer means a stuck kernel.
const END_LIMIT: Duration = Duration::from_secs(20);

/// A running body.
pub struct Body {
    spec: BodySpec,
    /// Host's process id of its PID 1.
    pid: i32,
    /// Its share, seen from the host.
    share: PathBuf,
    /// Name of its network cable in the VPC.
    link: String,
    vpc: Arc<Vpc>,
    tokens: Tokens,
    ended: watch::Receiver<bool>,
    up: Notify,
    tasks: Mutex<Vec<AbortHandle>>,
    /// What it exports; `None` before its NFS server runs.
    exports: Mutex<Exports>,
    grants: AtomicU32,
}

/// The NFS server of a body.
#[derive(Debug, Default)]
pub struct Exports {
    /// Whether the server runs.
    pub is_serving: bool,
    /// Exported paths.
    pub paths: BTreeSet<String>,
}

/// The processors of a body's instance type.
pub fn processors(spec: &BodySpec) -> Processors {
    Processors { threads: spec.vcpus, cores: spec.cores }
}

impl Body {
    /// Starts a body and returns once its init runs.
    pub async fn start(
        host: &Arc<Host>,
        rack: &Rack,
        spec: BodySpec,
    ) -> Result<Arc<Self>, MachineError> {
        let id = spec.instance_id.clone();
        let console = host.console(&id);
        let share = rack.folder().join(&id).join("share");
        fs::create_dir_all(&share).map_err(io_failed(&id, "make its folder"))?;
        let mut process = spawn(rack, &spec, &console)?;
        let why = |message: &str| format!("{message}: {}", tail(&console, 400));
        let pid = ready_pid(&mut process, &id)
            .await
            .map_err(|error| failed(&id, "set up", why(&error.to_string())))?;
        let cable = process.stdin.take().ok_or_else(|| failed(&id, "set up", "no input"))?;
        let body = Arc::new(Self {
            link: link_name(&id),
            vpc: host.vpc(rack, &spec).await?,
            ended: reaped(process),
            spec,
            pid,
            share,
            tokens: Tokens::default(),
            up: Notify::new(),
            tasks: Mutex::default(),
            exports: Mutex::default(),
            grants: AtomicU32::new(0),
        });
        locked(&body.tasks).push(door::serve(host, &body)?);
        let risen = body.rise(rack, cable).await;
        if let Err(error) = risen {
            body.kill().await?;
            body.clear(rack).await?;
            return Err(failed(&id, "start its init", why(&error.to_string())));
        }
        Ok(body)
    }

    /// Connects it, after which it turns into the image's init.
    async fn rise(
        self: &Arc<Self>,
        rack: &Rack,
        mut cable: ChildStdin,
    ) -> Result<(), MachineError> {
        self.plug_in(rack).await?;
        cable.write_all(b"connected\n").await.map_err(io_failed(self.id(), "connect"))?;
        tokio::select! {
            () = self.up.notified() => Ok(()),
            () = self.ended() => Err(failed(self.id(), "rise", "it ended")),
        }
    }

    /// Its init says that it runs.
    pub fn is_up(&self) {
        self.up.notify_one();
    }

    async fn plug_in(self: &Arc<Self>, rack: &Rack) -> Result<(), MachineError> {
        self.vpc.admit(self);
        let (router, prefix) = router(&self.spec)?;
        let mac = self.spec.network_interfaces.first().map_or("02:00:00:00:00:02", |nic| &nic.mac);
        let (pid, router) = (self.pid.to_string(), format!("{router}/{prefix}"));
        let args = [self.link.as_str(), &pid, mac, &router];
        let network = Some(self.vpc.pid());
        rack.run(Act { who: self.id(), script: "attach.sh", args: &args, network }).await
    }

    /// Takes away what it left in the rack.
    pub async fn clear(&self, rack: &Rack) -> Result<(), MachineError> {
        self.vpc.dismiss(self);
        for task in locked(&self.tasks).drain(..) {
            task.abort();
        }
        let args = [self.id(), self.link.as_str()];
        let network = Some(self.vpc.pid());
        rack.run(Act { who: self.id(), script: "detach.sh", args: &args, network }).await
    }

    /// `i-…`.
    pub fn id(&self) -> &str {
        &self.spec.instance_id
    }

    /// What it was started with.
    pub fn spec(&self) -> &BodySpec {
        &self.spec
    }

    /// Host's process id of its PID 1.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Its session tokens for metadata.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Its share, seen from the host; in the body it is `/run/awssim`.
    pub fn share(&self) -> &Path {
        &self.share
    }

    /// Its files, seen from the host.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// Its NFS server.
    pub fn exports(&self) -> &Mutex<Exports> {
        &self.exports
    }

    /// A name for the next thing mounted into its share.
    pub fn next_grant(&self) -> String {
        format!("m{}", self.grants.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns once its PID 1 is gone.
    pub async fn ended(&self) {
        // A closed channel means that its process was reaped as well.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Ends it as a terminated instance ends: at once.
    pub async fn kill(&self) -> Result<(), MachineError> {
        if !*self.ended.borrow() {
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
        tokio::time::timeout(END_LIMIT, self.ended())
            .await
            .map_err(|late| failed(self.id(), "end", format!("its PID 1 does not go: {late}")))
    }
}

/// Tells when a process has ended.
fn reaped(mut process: Child) -> watch::Receiver<bool> {
    let (is_ended, ended) = watch::channel(false);
    tokio::spawn(async move {
        if let Err(error) = process.wait().await {
            tracing::warn!(%error, "could not wait for a body");
        }
        is_ended.send_replace(true);
    });
    ended
}

fn spawn(rack: &Rack, spec: &BodySpec, console: &Path) -> Result<Child, MachineError> {
    let id = &spec.instance_id;
    let (router, prefix) = router(spec)?;
    let profile = Profile::of_image(&spec.image_name)?;
    let log = console
        .parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| File::create(console))
        .map_err(io_failed(id, "open its console"))?;
    let mut command: Command = rack.enter(&["--pid"]);
    command
        .args(["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork"])
        // Its clock of uptime starts now: slurmctld waits for a boot after its power-up.
        .args(["--time", "--boottime", &format!("-{}", uptime())])
        .args(["--kill-child", "--propagation", "slave", "sh", "setup.sh", id, &spec.hostname])
        .args([format!("{}/{prefix}", spec.private_ip), router.to_string()])
        .args([processors(spec).key(), profile.name, rack.marker("body")])
        .env("CAPABILITIES", CAPABILITIES)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(io_failed(id, "start"))
}

/// Whole seconds since this machine booted.
fn uptime() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split('.').next().unwrap_or_default();
    seconds.parse().unwrap_or_default()
}

/// The subnet's router, its first address, and the length of the prefix.
fn router(spec: &BodySpec) -> Result<(Ipv4Addr, u8), MachineError> {
    let parsed = spec.subnet_cidr.split_once('/').and_then(|(base, prefix)| {
        let base: Ipv4Addr = base.parse().ok()?;
        Some((Ipv4Addr::from(u32::from(base).checked_add(1)?), prefix.parse().ok()?))
    });
    parsed.ok_or_else(|| failed(&spec.instance_id, "read its subnet", &*spec.subnet_cidr))
}

/// Link names have 15 characters at most: the end of the id is the random part.
fn link_name(id: &str) -> String {
    let tail: String = id.chars().rev().take(12).collect();
    format!("b-{}", tail.chars().rev().collect::<String>())
}
