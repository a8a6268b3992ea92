//! The lives that a cluster without bodies can lead, told from the user's side alone: the operator
//! may die at any moment of them.

use std::sync::Arc;

use hpc_crds::{ConditionType, HpcCluster};
use hpc_e2e::{Phantom, Story, eventually};

use crate::runner::{Outcome, Running};
use crate::site::{LONG, await_cluster, await_told, cluster, leave_nothing};

/// A life, and what is known of it beforehand.
pub struct Life {
    /// Names its stories and its list.
    pub name: &'static str,
    /// The calls of a clean run that change AWS.
    pub points: &'static str,
    /// Instances it ever makes.
    pub launches: usize,
    /// Leads it to its end, and sees that nothing is left.
    pub lead: fn(Arc<Story>, Arc<Phantom>) -> Running,
}

/// All of them.
pub const LIVES: &[Life] = &[
    Life {
        name: "create_and_delete",
        points: include_str!("create_and_delete.txt"),
        launches: 3,
        lead: |story, _heads| Box::pin(create_and_delete(story)),
    },
    Life {
        name: "grow_and_shrink",
        points: include_str!("grow_and_shrink.txt"),
        launches: 4,
        lead: |story, heads| Box::pin(grow_and_shrink(story, heads)),
    },
];

async fn create_and_delete(story: Arc<Story>) -> Outcome {
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    leave_nothing(&story).await?;
    Ok(())
}

/// A queue without nodes: one job makes three come, then there is none.
async fn grow_and_shrink(story: Arc<Story>, heads: Arc<Phantom>) -> Outcome {
    let empty = cluster(|aws| {
        aws["queues"][0]["minNodes"] = 0.into();
        aws["queues"][0]["maxNodes"] = 4.into();
        aws["storage"] = serde_json::json!([]);
    });
    story.apply(&empty).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    heads.demand("17-1", "compute", "2-4");
    await_cluster(&story, "three nodes are ready", |it| summary(it) == "3/3").await?;
    heads.demand_nothing();
    await_cluster(&story, "no node is left", |it| summary(it) == "0/0").await?;
    eventually("the nodes are gone", LONG, async || {
        let living = story.sim().await?.living().await?;
        let nodes = living.iter().filter(|thing| thing.kind == "instance").count();
        Ok((nodes == 1).then_some(()))
    })
    .await?;
    leave_nothing(&story).await?;
    Ok(())
}

fn summary(cluster: &HpcCluster) -> String {
    let status = cluster.status.as_ref().and_then(|status| status.nodes.as_ref());
    status.map_or_else(String::new, |nodes| nodes.summary.clone())
}
