//! The life of a cluster from apply to delete, without bodies: ready, quiet, gone without a trace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hpc_crds::ConditionType;
use hpc_e2e::{LabError, Phantom, Story, eventually};

use crate::runner::Outcome;
use crate::site::{LONG, await_cluster, await_told, cluster, delete, end, left_over, operator};
use crate::stories;

/// How often each action was called, by code.
type Calls = BTreeMap<String, BTreeMap<String, u64>>;

stories![
    a_cluster_gets_ready_keeps_quiet_and_leaves_nothing,
    a_queue_that_waits_for_jobs_costs_one_read_at_each_poll,
    what_is_retained_outlives_the_cluster_and_nothing_else,
];

/// The default renewal of the lease, so that "two minutes" is seen on a clock that is not ours.
const RENEWALS_IN_TWO_MINUTES: usize = 7;

async fn a_cluster_gets_ready_keeps_quiet_and_leaves_nothing(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    let manifest = cluster(|_| ());
    story.apply(&manifest).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    let again = story.apply(&manifest).await?;
    assert!(again.contains("unchanged"), "{again}");

    let (writes, calls) = (story.writes_of(&served)?.len(), sim.mutating_calls().await?.len());
    two_minutes(&story).await?;
    let more: Vec<_> = story.writes_of(&served)?.split_off(writes);
    assert!(more.is_empty(), "a steady object was written: {more:#?}");
    let ours = sim.mutating_calls().await?;
    let more: Vec<_> =
        ours.iter().skip(calls).filter(|call| call.action != "PutParameter").collect();
    assert!(more.is_empty(), "a steady object changed AWS: {more:#?}");
    assert_eq!(sim.warnings().await?, Vec::<serde_json::Value>::new());

    end(&story, served).await
}

/// Two minutes on the apiserver's clock: the lease is renewed that often.
async fn two_minutes(story: &Story) -> Result<(), LabError> {
    let mut last = String::new();
    for _ in 0..RENEWALS_IN_TWO_MINUTES {
        last = eventually("the lease is renewed", Duration::from_mins(1), async || {
            let jsonpath = "jsonpath={.spec.renewTime}";
            let time =
                story.kubectl(&["get", "lease", story.namespace(), "-o", jsonpath], "").await?;
            Ok(Some(time).filter(|time| !time.is_empty() && *time != last))
        })
        .await?;
    }
    Ok(())
}

/// While nothing is new, only the heads' parameters are read; the sweep may fall into the time.
async fn a_queue_that_waits_for_jobs_costs_one_read_at_each_poll(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let heads = Phantom::play(sim.clone());
    let manifest = cluster(|aws| {
        aws["queues"][0]["minNodes"] = 0.into();
        aws["queues"][0]["maxNodes"] = 18.into();
    });
    story.apply(&manifest).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    let polls = async |more: u64| {
        let made =
            |calls: &Calls| calls.get("GetParametersByPath").and_then(|it| it.get("OK")).copied();
        let before = made(&sim.calls().await?);
        eventually("the heads are heard", LONG, async || {
            let calls = sim.calls().await?;
            Ok((made(&calls) >= before.map(|before| before + more)).then_some(calls))
        })
        .await
    };
    // The last steps on the way to Ready are still followed up.
    let before = polls(4).await?;
    let after = polls(8).await?;
    for action in after.keys().filter(|action| action.starts_with("Describe")) {
        let of = |calls: &Calls| calls.get(action).map_or(0, |codes| codes.values().sum::<u64>());
        assert!(of(&after) - of(&before) <= 1, "{action}: {before:?} {after:?}");
    }
    // More than the ids of one intent that a status holds.
    heads.demand("7-1", "compute", "1-18");
    await_cluster(&story, "eighteen nodes", |found| {
        let nodes = found.status.as_ref().and_then(|status| status.nodes.as_ref());
        nodes.is_some_and(|nodes| nodes.summary == "18/18")
    })
    .await?;
    delete(&story).await?;
    served.stop().await?;
    Ok(())
}

async fn what_is_retained_outlives_the_cluster_and_nothing_else(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    let manifest = cluster(|aws| {
        aws["head"]["stateVolume"]["deletionPolicy"] = "Retain".into();
        aws["storage"][0]["deletionPolicy"] = "Retain".into();
    });
    story.apply(&manifest).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    delete(&story).await?;
    let mut kinds: Vec<_> = sim.living().await?.into_iter().collect();
    kinds.retain(|thing| thing.kind != "document" && thing.kind != "network-interface");
    assert!(kinds.iter().all(|thing| thing.tags.contains_key("hpcops.dev:retained")), "{kinds:#?}");
    let mut kinds: Vec<_> = kinds.into_iter().map(|thing| thing.kind).collect();
    kinds.sort();
    assert_eq!(kinds, ["file-system", "security-group", "volume"]);

    // The same name again is a new cluster: what was retained is no predecessor.
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    delete(&story).await?;
    eventually("only what was retained is left", LONG, async || {
        Ok((left_over(&story).await?.iter().filter(|left| left.starts_with("instance")).count()
            == 0)
            .then_some(()))
    })
    .await?;
    served.stop().await?;
    Ok(())
}
