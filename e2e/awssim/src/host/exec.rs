//! Run Command in a body: root, `sh`, no login, a process group of its own,
//! SIGKILL at the timeout, output to files as the SSM agent does it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command as Process};

use super::body::{Body, CAPABILITIES};
use super::failure::{failed, io_failed};
use crate::machine::{Command, ExecEnd, ExecOutput, MachineError};

/// What is kept of each stream, in bytes.
const KEPT: u64 = 1 << 20;

/// The environment of the agent's service.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Runs one script and returns what it left.
pub async fn run(dir: &Path, body: &Body, command: Command) -> Result<ExecOutput, MachineError> {
    let id = body.id();
    let stdout = Stream::new(dir).map_err(io_failed(id, "open an output file"))?;
    let stderr = Stream::new(dir).map_err(io_failed(id, "open an output file"))?;
    let mut process = prepare(body, &command);
    stdout.give(&mut process, Process::stdout).map_err(io_failed(id, "open an output file"))?;
    stderr.give(&mut process, Process::stderr).map_err(io_failed(id, "open an output file"))?;
    let child = process.spawn().map_err(io_failed(id, "run a command"))?;
    let mut group =
        Group::of(child).ok_or_else(|| failed(id, "run a command", "it ended at once"))?;
    let waited = tokio::time::timeout(command.timeout, group.feed_and_wait(&command.script)).await;
    let end = match waited {
        Ok(status) => end_of(status.map_err(io_failed(id, "wait for a command"))?),
        Err(_) => ExecEnd::TimedOut,
    };
    drop(group);
    let read = |stream: &Stream| stream.read().map_err(io_failed(id, "read the output"));
    Ok(ExecOutput { end, stdout: read(&stdout)?, stderr: read(&stderr)? })
}

fn prepare(body: &Body, command: &Command) -> Process {
    let mut process = Process::new("nsenter");
    process
        .args(["--target", &body.pid().to_string(), "--mount", "--uts", "--ipc", "--net", "--pid"])
        .args(["setpriv", "--bounding-set", CAPABILITIES, "--inh-caps", "-all"])
        .args(["sh", "/usr/lib/awssim/run-command.sh", &command.command_id])
        .args(&command.working_directory)
        .env_clear()
        .env("PATH", PATH)
        .env("SSM_COMMAND_ID", &command.command_id)
        .envs(command.environment.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::piped())
        .process_group(0);
    process
}

fn end_of(status: ExitStatus) -> ExecEnd {
    // `nsenter` passes a signal of its child on as 128 + number or by raising it.
    match (status.code(), status.signal()) {
        (Some(code), _) => ExecEnd::Exited(code),
        (None, signal) => ExecEnd::Signalled(signal.unwrap_or_default()),
    }
}

/// The process group of a command. Dropped before its end, it is killed.
struct Group {
    leader: Pid,
    child: Child,
    is_done: bool,
}

impl Group {
    fn of(child: Child) -> Option<Self> {
        let leader = Pid::from_raw(i32::try_from(child.id()?).ok()?);
        Some(Self { leader, child, is_done: false })
    }

    async fn feed_and_wait(&mut self, script: &str) -> io::Result<ExitStatus> {
        if let Some(mut input) = self.child.stdin.take() {
            // Who does not read its script to the end tells why by its exit code.
            let _ = input.write_all(script.as_bytes()).await;
        }
        let status = self.child.wait().await?;
        self.is_done = true;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_done {
            // A group that has just ended is no error.
            let _ = killpg(self.leader, Signal::SIGKILL);
        }
    }
}

/// One stream as a file: a child that outlives the script does not hold it up.
struct Stream(PathBuf);

impl Stream {
    fn new(dir: &Path) -> io::Result<Self> {
        let dir = dir.join("commands");
        fs::create_dir_all(&dir)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{}-{number}", std::process::id()));
        File::create(&path)?;
        Ok(Self(path))
    }

    fn give(
        &self,
        process: &mut Process,
        place: impl FnOnce(&mut Process, Stdio) -> &mut Process,
    ) -> io::Result<()> {
        place(process, File::options().append(true).open(&self.0)?.into());
        Ok(())
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(&self.0)?.take(KEPT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
