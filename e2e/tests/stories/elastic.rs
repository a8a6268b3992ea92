//! Fleets that follow the jobs, with instances that are alive: what a user types at the head makes
//! nodes come, and an idle queue lets them go.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hpc_crds::{ConditionType, HpcCluster, condition};
use hpc_e2e::sim::{Resource, Sim};
use hpc_e2e::{LabError, Login, Operator, Restart, Result, Story, await_condition, eventually};
use serde_json::{Value, json};

use crate::runner::Outcome;
use crate::site::{NAME, await_ready_for, end_of_bodies, nodes, quick};
use crate::stories;

stories![
    a_job_typed_by_hand_grows_an_empty_queue_which_then_empties,
    without_capacity_a_job_is_put_off_and_runs_when_there_is_some,
    two_jobs_at_once_are_two_gangs,
];

/// Boots and jobs are real here.
pub const PATIENCE: Duration = Duration::from_mins(6);

/// A cluster with an empty queue, and its user at the head.
pub struct Site {
    pub story: Arc<Story>,
    pub sim: Sim,
    operator: Operator,
    user: Login,
    /// The shared file system, seen from outside.
    pub fsx: PathBuf,
}

impl Site {
    pub async fn new(story: Arc<Story>) -> Result<Self> {
        let operator = story.operator(&quick(), Restart::Never).await?;
        story.apply(&manifest()).await?;
        let status = await_ready_for(PATIENCE, &story).await?.status.unwrap();
        let sim = story.sim().await?;
        let user = Login::new(&sim, &status.head.unwrap().instance_id, "hpc").await?;
        let fsx = file_system(&story, &sim).await?;
        for (name, text) in [
            ("hold.sh", include_str!("health/hold.sh")),
            ("ring.sh", include_str!("elastic/ring.sh")),
            ("ring.py", include_str!("elastic/ring.py")),
        ] {
            let path = fsx.join(name);
            std::fs::write(&path, text).map_err(LabError::io("write", &path))?;
        }
        Ok(Self { story, sim, operator, user, fsx })
    }

    /// What a command prints that the user types.
    pub async fn types(&self, line: &str) -> Result<String> {
        self.user.run(line).await
    }

    /// Types `sbatch` and gives the job's number.
    pub async fn sbatch(&self, arguments: &str) -> Result<String> {
        let printed = self.user.run(&format!("cd /fsx && sbatch --parsable {arguments}")).await?;
        Ok(printed.trim().to_owned())
    }

    /// What a job printed, once it has printed anything.
    pub async fn output(&self, job: &str) -> Result<String> {
        let path = self.fsx.join(format!("ring-{job}.out"));
        eventually("the job's output", PATIENCE, async || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            Ok(Some(text).filter(|text| text.ends_with('\n')))
        })
        .await
    }

    /// Live nodes of the queue.
    pub async fn nodes(&self) -> Result<Vec<Resource>> {
        nodes(&self.sim).await
    }

    pub async fn await_empty(&self) -> Result<()> {
        eventually("the queue is empty", PATIENCE, async || {
            Ok(self.nodes().await?.is_empty().then_some(()))
        })
        .await
    }

    /// Successful launches of nodes so far, by size.
    pub async fn launches(&self) -> Result<Vec<usize>> {
        let ever = self.sim.ledger().await?;
        let mut sizes = std::collections::BTreeMap::new();
        for thing in ever.iter().filter(|thing| thing.kind == "instance") {
            if let Some(gang) = thing.tags.get("hpcops.dev:gang") {
                *sizes.entry(gang.clone()).or_insert(0) += 1;
            }
        }
        Ok(sizes.into_values().collect())
    }

    pub async fn end(self) -> Outcome {
        end_of_bodies(NAME, &self.story, self.operator).await
    }
}

fn manifest() -> String {
    sized(0, 4)
}

/// The cluster with these numbers of nodes in its queue.
pub fn sized(min: u32, max: u32) -> String {
    let mut cluster: Value = serde_saphyr::from_str(include_str!("cluster.yaml")).unwrap();
    let queue = &mut cluster["spec"]["aws"]["queues"][0];
    queue["minNodes"] = json!(min);
    queue["maxNodes"] = json!(max);
    queue["idleTimeoutSeconds"] = json!(10);
    cluster.to_string()
}

async fn file_system(story: &Story, sim: &Sim) -> Result<PathBuf> {
    let living = sim.living().await?;
    let found = living.iter().find(|thing| thing.kind == "file-system");
    let found = found.ok_or_else(|| LabError::Sim {
        what: "find the file system".to_owned(),
        source: "the ledger has none".into(),
    })?;
    Ok(story.file_system(found))
}

async fn a_job_typed_by_hand_grows_an_empty_queue_which_then_empties(story: Arc<Story>) -> Outcome {
    let site = Site::new(story).await?;
    assert_eq!(site.nodes().await?.len(), 0);
    let job = site.sbatch("--nodes=3 ring.sh").await?;
    assert_eq!(site.output(&job).await?, "sum 3 hosts compute-1 compute-2 compute-3\n");
    site.await_empty().await?;
    assert_eq!(site.launches().await?, [3], "one gang of three");
    assert_eq!(std::fs::read_to_string(site.fsx.join("tally"))?.lines().count(), 1);
    site.end().await
}

async fn without_capacity_a_job_is_put_off_and_runs_when_there_is_some(
    story: Arc<Story>,
) -> Outcome {
    let site = Site::new(story).await?;
    // Two can be had where three are wanted: nothing may be left of the try.
    for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
        site.sim.capacity("c5n.18xlarge", zone, Some(2)).await?;
    }
    let job = site.sbatch("--nodes=3 ring.sh").await?;
    let blocked = |found: Option<&HpcCluster>| {
        let status = found.and_then(|found| found.status.as_ref());
        let found = status
            .and_then(|it| condition::find(&it.conditions, ConditionType::GrowthBlocked).cloned());
        found.is_some_and(|it| it.reason == "InsufficientCapacity")
    };
    let clusters = site.story.clusters();
    await_condition(&clusters, NAME, "GrowthBlocked", PATIENCE, blocked).await?;
    assert_eq!(site.nodes().await?.len(), 0);
    for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
        site.sim.capacity("c5n.18xlarge", zone, None).await?;
    }
    assert_eq!(site.output(&job).await?, "sum 3 hosts compute-1 compute-2 compute-3\n");
    site.await_empty().await?;
    assert_eq!(site.launches().await?, [3], "no partial gang was ever made");
    site.end().await
}

async fn two_jobs_at_once_are_two_gangs(story: Arc<Story>) -> Outcome {
    let site = Site::new(story).await?;
    let first = site.sbatch("--nodes=2 ring.sh").await?;
    let second = site.sbatch("--nodes=1 ring.sh").await?;
    let (first, second) = (site.output(&first).await?, site.output(&second).await?);
    assert!(
        first.starts_with("sum 1 hosts ") && second.starts_with("sum 0 hosts "),
        "{first}{second}"
    );
    let mut launches = site.launches().await?;
    launches.sort_unstable();
    assert_eq!(launches, [1, 2]);
    site.await_empty().await?;
    site.end().await
}
