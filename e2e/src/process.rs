//! Processes of the lab: started with a log file, stopped by process id, and never left behind.
//!
//! A process that belongs to a test dies with it, even when the test is killed: the kernel sends
//! the signal (`setpriv --pdeathsig`). One that `hpc-lab up` leaves running is detached instead.

use std::ffi::OsString;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use crate::error::{LabError, Result};
use crate::eventually::eventually;

/// How long a process outlives the one that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Gets this signal when its starter dies.
    WithParent(Signal),
    /// Stays until it is stopped by its process id.
    Detached,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// The program's path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its environment on top of the lab's own, or the whole of it with `clean`.
    pub env: Vec<(String, String)>,
    /// Whether the lab's own environment is hidden from it.
    pub clean: bool,
    /// Where both its outputs go; appended to.
    pub log: PathBuf,
    /// How long it lives.
    pub lifetime: Lifetime,
}

impl Spawn {
    /// A program with arguments that dies with the lab.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
        log: impl Into<PathBuf>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            clean: false,
            log: log.into(),
            lifetime: Lifetime::WithParent(Signal::SIGKILL),
        }
    }

    /// The same with another lifetime.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// Starts it with its standard output in the log.
    pub fn start(self) -> Result<Process> {
        let log = self.open_log()?;
        self.start_with(Stdio::from(log))
    }

    /// Starts it with its standard output in a pipe, for a program that announces itself there.
    pub fn start_piped(self) -> Result<Process> {
        self.start_with(Stdio::piped())
    }

    fn open_log(&self) -> Result<File> {
        let open = File::options().create(true).append(true).open(&self.log);
        open.map_err(LabError::io("open", &self.log))
    }

    fn start_with(self, stdout: Stdio) -> Result<Process> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(stdout).stderr(self.open_log()?);
        let child = command.spawn().map_err(LabError::io("start", &self.program))?;
        let Some(pid) = child.id() else {
            return Err(LabError::missing(self.program.display().to_string(), "it ended at once"));
        };
        let identity = Identity::of(pid);
        Ok(Process {
            child,
            identity,
            lifetime: self.lifetime,
            program: self.program,
            log: self.log,
        })
    }

    fn command(&self) -> Command {
        let mut command = match self.lifetime {
            Lifetime::WithParent(signal) => {
                let mut wrapper = Command::new("setpriv");
                wrapper.arg("--pdeathsig").arg(signal.as_str().trim_start_matches("SIG"));
                wrapper.arg("--").arg(&self.program);
                wrapper
            }
            Lifetime::Detached => {
                let mut command = Command::new(&self.program);
                command.process_group(0);
                command
            }
        };
        if self.clean {
            command.env_clear();
        }
        command.args(&self.args).envs(self.env.iter().cloned());
        command
    }
}

/// A process this lab started.
#[derive(Debug)]
pub struct Process {
    child: Child,
    identity: Identity,
    lifetime: Lifetime,
    program: PathBuf,
    log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Lifetime::WithParent(signal) = self.lifetime {
            self.signal(signal);
        }
    }
}

impl Process {
    /// Its process id, and what tells it from a later process of the same id.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The pipe of [`Spawn::start_piped`], once.
    pub fn take_stdout(&mut self) -> Option<tokio::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until it ends.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().await.map_err(LabError::io("wait for", &self.program))
    }

    /// An error that carries the last lines of its log.
    pub fn failure(&self, status: &str) -> LabError {
        LabError::Command {
            program: self.program.display().to_string(),
            status: status.to_owned(),
            message: tail(&self.log, 15),
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        self.identity.signal(signal);
    }

    /// SIGTERM, then SIGKILL once `grace` is over; returns when it is gone.
    pub async fn stop(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM);
        if let Ok(ended) = tokio::time::timeout(grace, self.wait()).await {
            return ended;
        }
        self.kill().await
    }

    /// SIGKILL; returns when it is gone.
    pub async fn kill(&mut self) -> Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.wait().await
    }
}

/// A process id with the moment its process began, so that a recycled id is not taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// Clock ticks between the machine's start and the process's; 0 when it had ended already.
    pub began: u64,
}

impl Identity {
    /// The process that has this id now.
    pub fn of(pid: u32) -> Self {
        Self { pid, began: began(pid).unwrap_or(0) }
    }

    /// Whether this very process still runs.
    pub fn is_alive(self) -> bool {
        self.began != 0 && began(self.pid) == Some(self.began)
    }

    /// Sends a signal, unless the process is gone.
    pub fn signal(self, signal: Signal) {
        if let (true, Ok(pid)) = (self.is_alive(), i32::try_from(self.pid)) {
            // It may end between the check and the signal; then there is nothing left to do.
            let _gone = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Stops a process that another lab command started.
    pub async fn stop(self, grace: Duration) -> Result<()> {
        self.signal(Signal::SIGTERM);
        let ended = |deadline| async move {
            eventually("the process ends", deadline, async || Ok((!self.is_alive()).then_some(())))
                .await
        };
        if ended(grace).await.is_err() {
            self.signal(Signal::SIGKILL);
            ended(Duration::from_secs(10)).await?;
        }
        Ok(())
    }
}

/// Field 22 of `/proc/<pid>/stat`; nothing for a zombie, which runs no more.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold spaces; what follows the last one does not.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The last lines of a file, or a word on why there are none.
pub fn tail(path: &Path, lines: usize) -> String {
    let Ok(bytes) = std::fs::read(path) else {
        return format!("no log at {}", path.display());
    };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
}

/// A port on loopback that was free a moment ago.
pub fn free_port() -> Result<u16> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(bound.map_err(LabError::io("bind a port on", "127.0.0.1"))?.port())
}

/// Runs a program to its end and gives its standard output.
pub async fn run(command: &mut Command) -> Result<String> {
    let program = command.as_std().get_program().to_os_string();
    let first = command.as_std().get_args().take(3).map(|arg| arg.to_string_lossy().into_owned());
    let name =
        std::iter::once(program.to_string_lossy().into_owned()).chain(first).collect::<Vec<_>>();
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(LabError::io("start", program))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(LabError::Command {
        program: name.join(" "),
        status: output.status.to_string(),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(dir: &Path) -> Process {
        Spawn::new("sleep", ["600"], dir.join("log")).start().unwrap()
    }

    #[tokio::test]
    async fn a_killed_process_is_gone_and_known_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let mut process = sleeper(dir.path());
        assert!(process.identity().is_alive());
        process.kill().await.unwrap();
        assert!(!process.identity().is_alive());
    }

    #[tokio::test]
    async fn a_recycled_process_id_is_not_taken_for_the_process() {
        let me = Identity::of(std::process::id());
        assert!(me.is_alive());
        assert!(!Identity { began: me.began + 1, ..me }.is_alive());
    }

    #[tokio::test]
    async fn a_process_of_a_test_dies_with_the_test() {
        let dir = tempfile::tempdir().unwrap();
        let mut parent = Spawn::new(
            "sh",
            ["-c", "setpriv --pdeathsig KILL -- sleep 601 & echo $!; wait"],
            dir.path().join("log"),
        )
        .start()
        .unwrap();
        let pid = eventually("the child starts", Duration::from_secs(5), async || {
            Ok(tail(&dir.path().join("log"), 1).trim().parse().ok())
        })
        .await
        .unwrap();
        let child = Identity::of(pid);
        assert!(child.is_alive());
        eventually("setpriv has taken over", Duration::from_secs(5), async || {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Ok((name.trim() == "sleep").then_some(()))
        })
        .await
        .unwrap();
        parent.kill().await.unwrap();
        eventually("the child dies too", Duration::from_secs(5), async || {
            Ok((!child.is_alive()).then_some(()))
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn a_failing_program_is_reported_with_its_last_words() {
        let error = run(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"])).await;
        assert_eq!(
            error.unwrap_err().to_string(),
            "sh -c echo no such thing >&2; exit 3 failed (exit status: 3): no such thing"
        );
    }
}
