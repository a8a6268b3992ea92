//! The loop that owns one container's process: starts it, restarts it, kills it, tells its state.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::pod::Pod;
use super::probe::{self, Purpose};
use super::{Restart, State};
use crate::error::Result;
use crate::process::Process;

/// A projected token lives an hour and is renewed long before.
const RENEW: Duration = Duration::from_mins(40);
/// Between the ends of a container that keeps failing and its next starts.
const BACK_OFF: Duration = Duration::from_secs(1);

/// Told when a command has been carried out.
type Answer = oneshot::Sender<Result<()>>;

/// What the supervisor is asked and told.
#[derive(Debug)]
pub enum Command {
    /// Start the process unless it runs.
    Start(Answer),
    /// SIGKILL.
    Kill(Answer),
    /// End gracefully, delete the pod, and be done.
    Stop(Answer),
    /// A probe has an opinion.
    Probed {
        /// Which probe.
        purpose: Purpose,
        /// What it says.
        healthy: bool,
    },
}

/// Owner of the process.
pub struct Supervisor {
    pod: Pod,
    restart: Restart,
    process: Option<Process>,
    state: State,
    shown: watch::Sender<State>,
    probes: Vec<AbortHandle>,
    commands: mpsc::Sender<Command>,
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.silence_probes();
    }
}

impl Supervisor {
    /// One that has not started anything yet.
    pub fn new(
        pod: Pod,
        restart: Restart,
        shown: watch::Sender<State>,
        commands: mpsc::Sender<Command>,
    ) -> Self {
        let state = State::default();
        Self { pod, restart, process: None, state, shown, probes: Vec::new(), commands }
    }

    /// Serves until it is told to stop.
    pub async fn run(mut self, mut requests: mpsc::Receiver<Command>) {
        let mut renewal = interval(RENEW);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        renewal.tick().await;
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(command) => if self.obey(command).await.is_break() { return },
                    None => return,
                },
                status = ended(&mut self.process) => self.ended(&status).await,
                _ = renewal.tick() => self.report("renew the token", self.pod.renew_token().await),
            }
        }
    }

    async fn obey(&mut self, command: Command) -> ControlFlow<()> {
        match command {
            Command::Start(answer) => {
                let started = if self.process.is_some() { Ok(()) } else { self.start() };
                let _gone = answer.send(started);
            }
            Command::Kill(answer) => {
                let killed = self.kill().await;
                let _gone = answer.send(killed);
            }
            Command::Stop(answer) => {
                self.stop(answer).await;
                return ControlFlow::Break(());
            }
            Command::Probed { purpose: Purpose::Readiness, healthy } => {
                self.show_ready(healthy).await;
            }
            Command::Probed { purpose: Purpose::Liveness, healthy: false } => {
                let killed = self.kill().await;
                self.report("kill what fails its liveness probe", killed);
            }
            Command::Probed { purpose: Purpose::Liveness, healthy: true } => (),
        }
        ControlFlow::Continue(())
    }

    fn start(&mut self) -> Result<()> {
        let process = self.pod.start()?;
        self.state.restarts += u32::from(self.state.last_exit.is_some());
        self.state.process = Some(process.identity());
        self.process = Some(process);
        self.show();
        self.watch_probes();
        Ok(())
    }

    async fn kill(&mut self) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let status = process.kill().await?;
        self.ended(&status.to_string()).await;
        Ok(())
    }

    /// What a kubelet does when a container is over.
    async fn ended(&mut self, status: &str) {
        self.silence_probes();
        self.process = None;
        self.state.process = None;
        let failed_before = self.state.last_exit.replace(status.to_owned()).is_some();
        self.show_ready(false).await;
        if self.restart == Restart::Always {
            if failed_before {
                tokio::time::sleep(BACK_OFF).await;
            }
            let started = self.start();
            self.report("start it again", started);
        }
    }

    async fn stop(&mut self, answer: Answer) {
        self.silence_probes();
        let mut done = Ok(());
        if let Some(mut process) = self.process.take() {
            done = process.stop(self.pod.grace()).await.map(|status| {
                self.state.last_exit = Some(status.to_string());
            });
        }
        self.state.process = None;
        self.show();
        let deleted = self.pod.delete().await;
        let _gone = answer.send(done.and(deleted));
    }

    async fn show_ready(&mut self, ready: bool) {
        if self.state.ready != ready {
            self.state.ready = ready;
            let published = self.pod.publish(&self.state).await;
            self.report("publish its readiness", published);
        }
        self.show();
    }

    fn show(&self) {
        self.shown.send_replace(self.state.clone());
    }

    fn watch_probes(&mut self) {
        let plan = self.pod.plan();
        let liveness = plan.liveness.clone().map(|probe| (probe, Purpose::Liveness));
        let readiness = plan.readiness.clone().map(|probe| (probe, Purpose::Readiness));
        let probes = liveness.into_iter().chain(readiness).map(|(probe, purpose)| {
            tokio::spawn(probe::watch(probe, purpose, self.commands.clone())).abort_handle()
        });
        self.probes = probes.collect();
    }

    fn silence_probes(&mut self) {
        for probe in self.probes.drain(..) {
            probe.abort();
        }
    }

    /// The supervisor outlives its errors; they are told in the operator's log.
    fn report(&self, what: &str, result: Result<()>) {
        if let Err(error) = result {
            self.pod.note(&format!("kubelet: cannot {what}: {}", error.chain()));
        }
    }
}

/// How the process ended, once it has.
async fn ended(process: &mut Option<Process>) -> String {
    match process {
        Some(process) => match process.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.chain(),
        },
        None => std::future::pending().await,
    }
}
