//! `hpc-lab demo`: what the README's first command shows. It does nothing that a user could not do
//! with kubectl, except that the lab copies the benchmark programs onto simulated file systems.

mod table;

use std::path::Path;
use std::time::Duration;

use hpc_crds::{BenchmarkRun, Condition, ConditionStatus, HpcCluster};
use hpc_e2e::control_plane::client_of;
use hpc_e2e::process::run as run_program;
use hpc_e2e::{LabError, Result, osu, places};
use kube::{Api, Client};
use tokio::process::Command;

use crate::programs;
use crate::progress::{Clock, Seen, say};
use crate::site::{Site, State};
use crate::up;

/// Names in `examples/quickstart.yaml`.
const CLUSTER: &str = "quickstart";
const RUN: &str = "quickstart-osu";
/// How long the cluster may take; about two minutes of it are real boots.
const CLUSTER_READY: Duration = Duration::from_mins(10);
/// How long the run may take.
const RUN_FINISHED: Duration = Duration::from_mins(10);

/// Takes the quickstart through the lab and leaves the lab up.
pub async fn run(site: &Site, wishes: &up::Wishes) -> Result<()> {
    let clock = Clock::start();
    let state = up::run(site, wishes).await?;
    let demo = Demo { clock, client: client_of(&site.kubeconfig()).await?, site };
    programs::promise(site).await?;
    demo.apply().await?;
    demo.await_cluster().await?;
    demo.await_run().await?;
    demo.show(&state).await
}

struct Demo<'a> {
    clock: Clock,
    client: Client,
    site: &'a Site,
}

impl Demo<'_> {
    async fn apply(&self) -> Result<()> {
        let example = osu::example();
        self.clock.tell(&format!("kubectl apply -f {}", shown(&example)));
        let said = self.kubectl(&["apply", "-f", &example.display().to_string()]).await?;
        said.lines().for_each(|line| self.clock.tell(line));
        Ok(())
    }

    async fn await_cluster(&self) -> Result<()> {
        let clusters: Api<HpcCluster> = Api::default_namespaced(self.client.clone());
        self.clock
            .wait("HPCCluster quickstart to be Ready", CLUSTER_READY, async || {
                if let Some(gone) = self.gone()? {
                    return Ok(gone);
                }
                let cluster = clusters.get(CLUSTER).await;
                let cluster = cluster.map_err(LabError::kube("read the cluster"))?;
                let conditions = cluster.status.map(|status| status.conditions);
                Ok(judge(&conditions.unwrap_or_default(), "Ready"))
            })
            .await?;
        self.clock.tell("HPCCluster quickstart is Ready");
        Ok(())
    }

    async fn await_run(&self) -> Result<()> {
        let runs: Api<BenchmarkRun> = Api::default_namespaced(self.client.clone());
        self.clock
            .wait("BenchmarkRun quickstart-osu to be Finished", RUN_FINISHED, async || {
                if let Some(gone) = self.gone()? {
                    return Ok(gone);
                }
                let run = runs.get(RUN).await.map_err(LabError::kube("read the run"))?;
                let status = run.status.unwrap_or_default();
                let progress = status.progress.unwrap_or_default();
                Ok(match judge(&status.conditions, "Finished") {
                    Seen::Waiting(state) if progress.summary.is_empty() => Seen::Waiting(state),
                    Seen::Waiting(_) => {
                        let message = &progress.message;
                        Seen::Waiting(format!("{} attempts; {message}", progress.summary))
                    }
                    seen @ (Seen::Done(()) | Seen::Hopeless(_)) => seen,
                })
            })
            .await?;
        self.clock.tell("BenchmarkRun quickstart-osu is Finished");
        Ok(())
    }

    /// No wait outlives the lab.
    fn gone(&self) -> Result<Option<Seen<()>>> {
        let up = self.site.state()?.is_up();
        Ok((!up).then(|| Seen::Hopeless("the lab was stopped meanwhile".to_owned())))
    }

    async fn show(&self, state: &State) -> Result<()> {
        say("");
        say(self.kubectl(&["get", "hpcclusters"]).await?.trim_end());
        say("");
        say(self.kubectl(&["get", "benchmarkruns"]).await?.trim_end());
        let runs: Api<BenchmarkRun> = Api::default_namespaced(self.client.clone());
        let run = runs.get(RUN).await.map_err(LabError::kube("read the run"))?;
        let status = run.status.unwrap_or_default();
        say("");
        table::cells(&status);
        table::rows(&self.client, &status).await?;
        say(
            "Measured between processes of this machine on simulated AWS: take no number for that of hardware.",
        );
        say(&format!("The lab stays up: . .lab/env   Ledger: {}/_sim/ledger", state.sim_url));
        say(
            "Give everything back: kubectl delete -f examples/quickstart.yaml   Stop the lab: make lab-down",
        );
        table::verdict(&status)
    }

    async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let program = places::kubectl().await?.join("kubectl");
        let mut command = Command::new(program);
        run_program(command.args(args).env("KUBECONFIG", self.site.kubeconfig())).await
    }
}

/// Done when a condition is True, hopeless when the object is stalled, else what is not ready.
fn judge(conditions: &[Condition], wanted: &str) -> Seen<()> {
    let named = |name: &str| conditions.iter().find(|condition| condition.type_ == name);
    if named(wanted).is_some_and(|condition| condition.status == ConditionStatus::True) {
        return Seen::Done(());
    }
    if let Some(stalled) = named("Stalled") {
        return Seen::Hopeless(format!("{}: {}", stalled.reason, stalled.message));
    }
    let open = conditions.iter().filter(|condition| {
        let name = &condition.type_;
        condition.status != ConditionStatus::True && name.ends_with("Ready") && name != "Ready"
    });
    let words: Vec<String> =
        open.map(|condition| format!("{} {}", condition.type_, condition.reason)).collect();
    if words.is_empty() {
        let state = named(wanted).map(|condition| condition.reason.clone());
        return Seen::Waiting(state.unwrap_or_else(|| "not seen by the operator yet".to_owned()));
    }
    Seen::Waiting(words.join(", "))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(places::root()).unwrap_or(path).display().to_string()
}
