//! The rack: one process that holds everything of one simulator on this machine.
//!
//! Its PID, mount and network namespaces contain those of all bodies. It ends
//! when the pipe to the simulator closes, even if the simulator was killed, and
//! the kernel then takes the bodies, their mounts, links and addresses with it:
//! nothing has a name outside that could be left behind.

use std::fs;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::failure::{failed, io_failed};
use crate::machine::MachineError;

/// Scripts that run in the rack's namespaces, kept in its folder.
const SCRIPTS: [(&str, &str); 5] = [
    ("vpc.sh", include_str!("../../images/vpc.sh")),
    ("setup.sh", include_str!("../../images/setup.sh")),
    ("attach.sh", include_str!("../../images/attach.sh")),
    ("detach.sh", include_str!("../../images/detach.sh")),
    ("grant.sh", include_str!("../../images/grant.sh")),
];

/// The name under which failures of the rack itself are reported.
const WHO: &str = "the rack";

/// One of the rack's scripts at work.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// For whom; named in the error.
    pub who: &'a str,
    /// The script's name.
    pub script: &'a str,
    /// Its arguments.
    pub args: &'a [&'a str],
    /// Process whose network it runs in.
    pub network: Option<i32>,
}

/// A running rack.
pub struct Rack {
    /// Host's process id of the rack's PID 1.
    pid: i32,
    prefix: String,
    log_file: PathBuf,
    // Closing it ends the rack; it is held, never written.
    _line: ChildStdin,
    _process: Child,
}

impl Rack {
    /// Starts a rack whose processes carry `prefix` in their command line,
    /// after ending one of the same prefix that an earlier simulator left.
    pub async fn start(prefix: &str, state_dir: &Path) -> Result<Self, MachineError> {
        let folder = state_dir.join("rack");
        fs::create_dir_all(&folder).map_err(io_failed(WHO, "make the folder"))?;
        let script = state_dir.join("rack.sh");
        fs::write(&script, include_str!("../../images/rack.sh"))
            .map_err(io_failed(WHO, "write the script"))?;
        let log_file = state_dir.join("rack.log");
        let log = fs::File::create(&log_file).map_err(io_failed(WHO, "open its log"))?;
        end_predecessors(prefix);
        let mut process = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .args(["--propagation", "private", "sh"])
            .args([script.as_os_str(), folder.as_os_str()])
            .arg(marker("rack", prefix))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(io_failed(WHO, "start"))?;
        let pid = ready_pid(&mut process, WHO).await?;
        let line = process.stdin.take().ok_or_else(|| failed(WHO, "start", "no input"))?;
        let rack =
            Self { pid, prefix: prefix.to_owned(), log_file, _line: line, _process: process };
        rack.write_scripts()?;
        Ok(rack)
    }

    fn write_scripts(&self) -> Result<(), MachineError> {
        for (name, text) in SCRIPTS {
            fs::write(self.folder().join(name), text).map_err(io_failed(WHO, "write a script"))?;
        }
        Ok(())
    }

    /// The rack's folder, seen from the host: short, so that sockets fit.
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/cwd", self.pid))
    }

    /// What the command lines of a kind of process hold, and nobody else's.
    pub fn marker(&self, kind: &str) -> String {
        marker(kind, &self.prefix)
    }

    /// Where the rack and its networks say what went wrong.
    pub fn log(&self) -> io::Result<fs::File> {
        fs::File::options().append(true).open(&self.log_file)
    }

    /// `nsenter` into the rack's mounts and its folder, and more as asked.
    pub fn enter(&self, namespaces: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid.to_string(), "--mount", "--wd"]);
        command.args(namespaces);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs one of the rack's scripts in its mounts and, if asked, a network.
    pub async fn run(&self, act: Act<'_>) -> Result<(), MachineError> {
        let Act { who, script, args, network } = act;
        let network = network.map(|pid| format!("--net=/proc/{pid}/ns/net"));
        let output = self
            .enter(&network.as_deref().into_iter().collect::<Vec<_>>())
            .args(["sh", script])
            .args(args)
            .output()
            .await
            .map_err(io_failed(who, "run a script in the rack"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(who, script, String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        // The closing pipe does the same a moment later; a dead rack is no error.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
    }
}

fn marker(kind: &str, prefix: &str) -> String {
    format!("awssim-{kind}={prefix}")
}

/// Kills racks of this prefix; their bodies go with them.
fn end_predecessors(prefix: &str) {
    let wanted = marker("rack", prefix);
    for pid in process_ids() {
        if command_line(pid).contains(&wanted) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn process_ids() -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn command_line(pid: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Reads the line `ready PID` that a rack or a body says once it stands.
pub async fn ready_pid(process: &mut Child, who: &str) -> Result<i32, MachineError> {
    let stdout = process.stdout.take().ok_or_else(|| failed(who, "start", "no output"))?;
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .await
        .map_err(io_failed(who, "wait for the first word"))?;
    let pid = line.trim().strip_prefix("ready ").and_then(|pid| pid.parse().ok());
    pid.ok_or_else(|| failed(who, "start", "it ended before it was ready"))
}

/// Makes a socket inside the network namespace of a process. A thread of its
/// own enters there and ends, so no thread of the runtime changes its network.
pub fn in_network<T: Send + 'static>(
    pid: i32,
    make: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::spawn(move || {
        let namespace = fs::File::open(format!("/proc/{pid}/ns/net"))?;
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        make()
    });
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
}

/// Listens inside the network namespace of a process.
pub fn listen(pid: i32, address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    let bind = move || {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    in_network(pid, bind).and_then(tokio::net::TcpListener::from_std)
}

/// Writes a file below a folder with its parents, readable by all.
pub fn place(root: &Path, path: &str, content: &[u8], mode: u32) -> io::Result<()> {
    let file = root.join(path.trim_start_matches('/'));
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&file, content)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(mode))
}

/// The last bytes of a text file, for messages.
pub fn tail(path: &Path, limit: usize) -> String {
    let mut text = String::new();
    if let Ok(mut file) = fs::File::open(path) {
        let _ = file.read_to_string(&mut text);
    }
    let start = text.len().saturating_sub(limit);
    text.get(start..).unwrap_or_default().trim().to_owned()
}
