//! A thousand nodes and ten thousand, without bodies: what they take in time, calls and memory.
//!
//! The thousand come through AWS' true buckets. The other nine would take an hour and a quarter by
//! those, so for them the simulator does not throttle and the operator, which keeps the pace by
//! itself, is a new process for each: what is measured then is the size, not the way there.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use hpc_crds::{ConditionType, HpcCluster, HpcClusterStatus, condition};
use hpc_e2e::sim::{Fault, Sim, Strike, When};
use hpc_e2e::{
    LabError, Operator, Phantom, Restart, Result, Story, await_condition, eventually, places,
};
use serde_json::json;

use super::{Row, STEADY, memory, tell};

/// Nodes of one queue.
const NODES: usize = 1000;
/// Queues in all, half of them in each of two clusters.
const QUEUES: usize = 10;
/// What a node takes from its launch until the scheduler can use it.
const BOOT: Duration = Duration::from_mins(1);
/// How long a step may take here.
const PATIENCE: Duration = Duration::from_mins(5);
/// Tokens per second of the bucket that each `Describe*` action of EC2 has.
const DESCRIBE_REFILL: f64 = 20.0;
/// How passes over clusters are counted.
const PASSES: &str = r#"hpc_operator_reconcile_total{controller="HPCCluster"}"#;
/// How AWS says that it was asked too fast.
const THROTTLED: [&str; 3] = ["RequestLimitExceeded", "ThrottlingException", "Throttling"];
/// The clusters.
const NAMES: [&str; 2] = ["scale-1", "scale-2"];

/// The cluster of a queue, by its number from 1.
fn home(queue: usize) -> &'static str {
    if queue * NAMES.len() <= QUEUES { NAMES[0] } else { NAMES[1] }
}

/// How often each action was called, by code.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

/// Measures all rows and hands each over as it comes.
pub async fn measure(story: &Story, keep: &mut impl FnMut(Vec<Row>)) -> Result<()> {
    tell("two clusters of five queues, without bodies");
    let site = Site::new(story).await?;
    keep(vec![site.orphans().await?]);
    tell("a thousand nodes");
    keep(site.launch().await?.into());
    tell("two minutes of nothing at 1,000 nodes");
    keep(site.steady("steady Describe calls at 1,000 nodes, % of the budget <= 2").await?.into());
    keep(vec![memory(&site.operator, "RSS at 1,000 nodes, MB <= 40", 40.0)?]);
    tell("ten thousand nodes");
    site.grow().await?;
    tell("two minutes of nothing at 10,000 nodes");
    keep(site.steady("steady Describe calls at 10,000 nodes, % of the budget <= 2").await?.into());
    keep(vec![memory(&site.operator, "RSS at 10,000 nodes, MB <= 100", 100.0)?]);
    keep(vec![site.status_size().await?, site.restart().await?]);
    site.operator.stop().await
}

struct Site<'a> {
    story: &'a Story,
    sim: Sim,
    operator: Operator,
    heads: Phantom,
}

impl<'a> Site<'a> {
    async fn new(story: &'a Story) -> Result<Self> {
        let sim = story.sim().await?;
        sim.configure(&json!({"bodies": false})).await?;
        let limits = json!({"limits": {"maxInstances": 20_000, "maxHourlyCost": "1000000"}});
        let operator = story.operator(&limits, Restart::Never).await?;
        let heads = Phantom::play(sim.clone());
        let site = Self { story, sim, operator, heads };
        for (name, queues) in NAMES.into_iter().zip([1..=QUEUES / 2, QUEUES / 2 + 1..=QUEUES]) {
            story.apply(&manifest(name, queues)?).await?;
        }
        for name in NAMES {
            site.until(name, "is Ready", |status| {
                condition::is_true(&status.conditions, ConditionType::Ready)
            })
            .await?;
        }
        Ok(site)
    }

    async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&HpcClusterStatus) -> bool + Send + Sync,
    ) -> Result<()> {
        let holds = |found: Option<&HpcCluster>| {
            found.and_then(|found| found.status.as_ref()).is_some_and(&holds)
        };
        await_condition(&self.story.clusters(), name, what, PATIENCE, holds).await.map(drop)
    }

    async fn until_ready(&self, name: &str, nodes: usize) -> Result<()> {
        let ready = |status: &HpcClusterStatus| {
            let ready = status.nodes.as_ref().and_then(|found| usize::try_from(found.ready).ok());
            ready == Some(nodes)
        };
        self.until(name, &format!("has {nodes} nodes"), ready).await
    }

    /// The answer to a launch is lost, AWS cannot be read, and the job goes: from the end of the
    /// faults until nothing of the launch is left.
    async fn orphans(&self) -> Result<Row> {
        let lost = Fault::next("RunInstances", Strike::Drop { when: When::After });
        self.sim.fault(&lost).await?;
        self.heads.demand("9-1", "q2", "1-4");
        self.until_left(|left| left == 4).await?;
        let (status, code) = (503, "Unavailable".to_owned());
        let blind = Strike::Error { status, code: code.clone(), message: String::new() };
        self.sim.fault(&Fault { count: 0, ..Fault::next("DescribeInstances", blind) }).await?;
        self.heads.demand_nothing();
        eventually("AWS cannot be read", PATIENCE, async || {
            let calls = self.sim.calls().await?;
            Ok((count(&calls, "DescribeInstances", |found| found == code) >= 3.0).then_some(()))
        })
        .await?;
        self.sim.clear_faults().await?;
        let begun = Instant::now();
        self.until_left(|left| left == 0).await?;
        let value = begun.elapsed().as_secs_f64();
        Ok(Row { goal: "orphan age after faults stop, s <= 60", value, most: 60.0 })
    }

    async fn until_left(&self, holds: impl Fn(usize) -> bool) -> Result<()> {
        eventually("the nodes of the queue", PATIENCE, async || {
            let living = self.sim.living_of("instance").await?;
            let of_queue = living.iter().filter(|node| {
                node.tags.get("hpcops.dev:role").is_some_and(|role| role == "queue-q2")
            });
            Ok(holds(of_queue.count()).then_some(()))
        })
        .await
    }

    /// From the stored decision to the last node in use. The bucket holds a thousand, so the floor
    /// is the boot alone.
    async fn launch(&self) -> Result<[Row; 3]> {
        self.heads.boots_in(BOOT);
        let before = self.sim.calls().await?;
        self.heads.demand("1-1", "q1", &format!("1-{NODES}"));
        self.until(home(1), "is about to launch", |status| {
            status.intents.iter().any(|intent| intent.thing.contains("q1"))
        })
        .await?;
        let begun = Instant::now();
        self.until_ready(home(1), NODES).await?;
        let took = begun.elapsed();
        let after = self.sim.calls().await?;
        let made =
            |action: &str| count(&after, action, |_| true) - count(&before, action, |_| true);
        Ok([
            Row {
                goal: "launch of 1,000 nodes, time / (bucket floor + boot) <= 1.05",
                value: took.as_secs_f64() / BOOT.as_secs_f64(),
                most: 1.05,
            },
            Row {
                goal: "RunInstances calls per 1,000 nodes <= 2",
                value: made("RunInstances"),
                most: 2.0,
            },
            Row {
                goal: "throttle errors per 1,000 launched <= 1",
                value: throttled(&after) - throttled(&before),
                most: 1.0,
            },
        ])
    }

    /// The busiest `Describe*` action of EC2 as a part of its own bucket's refill.
    async fn steady(&self, goal: &'static str) -> Result<[Row; 2]> {
        let before = self.sim.calls().await?;
        tokio::time::sleep(STEADY).await;
        let after = self.sim.calls().await?;
        let share = |action: &String| {
            let made = count(&after, action, |_| true) - count(&before, action, |_| true);
            100.0 * made / STEADY.as_secs_f64() / DESCRIBE_REFILL
        };
        let value = after.keys().filter(|action| is_of_ec2(action)).map(share).fold(0.0, f64::max);
        let throttles = throttled(&after) - throttled(&before);
        Ok([
            Row { goal, value, most: 2.0 },
            Row { goal: "throttle errors when steady = 0", value: throttles, most: 0.0 },
        ])
    }

    async fn grow(&self) -> Result<()> {
        self.heads.boots_in(Duration::ZERO);
        self.sim.configure(&json!({"throttling": false})).await?;
        for queue in 2..=QUEUES {
            self.operator.kill().await?;
            self.operator.start().await?;
            self.heads.demand_more(
                &format!("{queue}-1"),
                &format!("q{queue}"),
                &format!("1-{NODES}"),
            );
            let before = (1..queue).filter(|other| home(*other) == home(queue)).count();
            self.until_ready(home(queue), (before + 1) * NODES).await?;
        }
        self.sim.configure(&json!({"throttling": true})).await
    }

    /// What etcd must hold of it; it refuses 1.5 MiB.
    async fn status_size(&self) -> Result<Row> {
        let cluster = self.story.clusters().get(NAMES[0]).await;
        let cluster = cluster.map_err(LabError::kube("read the cluster"))?;
        let text = serde_json::to_vec(&cluster).map_err(LabError::malformed("the cluster"))?;
        let value = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX)) / 1024.0;
        Ok(Row { goal: "object with 5,000 nodes, KiB <= 256", value, most: 256.0 })
    }

    /// The first passes of a new process read everything and find nothing to do.
    async fn restart(&self) -> Result<Row> {
        self.operator.kill().await?;
        let begun = Instant::now();
        self.operator.start().await?;
        let value = eventually("both clusters were passed over", PATIENCE, async || {
            let metrics = self.operator.metrics().await?;
            let lines = metrics.lines().filter(|line| line.starts_with(PASSES));
            let passes = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            let enough = passes.sum::<f64>() >= 2.0;
            Ok(enough.then(|| begun.elapsed().as_secs_f64()))
        })
        .await?;
        for name in NAMES {
            self.until_ready(name, QUEUES / 2 * NODES).await?;
        }
        let goal = "restart to convergence at 10,000 nodes, s <= 10";
        Ok(Row { goal, value, most: 10.0 })
    }
}

fn manifest(name: &str, queues: RangeInclusive<usize>) -> Result<String> {
    let path = places::root().join("e2e/tests/stories/cluster.yaml");
    let text = std::fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
    let mut cluster: serde_json::Value =
        serde_saphyr::from_str(&text).map_err(LabError::malformed("cluster.yaml"))?;
    let queue = |number: usize| {
        json!({
            "name": format!("q{number}"), "instanceTypes": ["c5n.18xlarge"], "minNodes": 0,
            "maxNodes": NODES, "networkInterface": "EFA", "placement": "Cluster",
        })
    };
    let subnets =
        ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719", "subnet-0a1b2c3d4e5f6071a"];
    for (place, value) in [
        ("/metadata/name", json!(name)),
        ("/spec/aws/network", json!({"headSubnetId": subnets[0], "computeSubnetIds": subnets})),
        ("/spec/aws/queues", queues.map(queue).collect()),
    ] {
        if let Some(field) = cluster.pointer_mut(place) {
            *field = value;
        }
    }
    Ok(cluster.to_string())
}

/// `DescribeSubnets` and its like; FSx and SSM describe as well, from buckets nobody publishes.
fn is_of_ec2(action: &str) -> bool {
    let others = ["DescribeFileSystems", "DescribeDocument", "DescribeInstanceInformation"];
    action.starts_with("Describe") && !others.contains(&action)
}

fn throttled(calls: &Calls) -> f64 {
    calls.keys().map(|action| count(calls, action, |code| THROTTLED.contains(&code))).sum()
}

fn count(calls: &Calls, action: &str, which: impl Fn(&str) -> bool) -> f64 {
    let codes = calls.get(action).into_iter().flatten().filter(|(code, _)| which(code));
    codes.map(|(_, count)| f64::from(u32::try_from(*count).unwrap_or(u32::MAX))).sum()
}
