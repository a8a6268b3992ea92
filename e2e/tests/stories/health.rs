//! Nodes and heads that fail, and queues that change while jobs run: what is broken is replaced at a
//! bounded pace, and nothing that works is taken from a job.

use std::sync::Arc;

use hpc_crds::{ConditionType, HpcCluster};
use hpc_e2e::sim::{Resource, Sim};
use hpc_e2e::{Phantom, Result, Story, eventually};

use crate::elastic::{PATIENCE, Site, sized};
use crate::runner::Outcome;
use crate::site::{
    LONG, await_cluster, await_told, cluster, end, is_node, nodes, operator, the, told,
};
use crate::stories;

stories![
    a_boot_step_that_fails_is_told_and_nodes_are_tried_alone_until_they_come_up,
    a_sick_node_and_one_that_aws_takes_are_replaced_once,
    a_queue_is_made_larger_and_smaller_while_it_stands,
    a_head_that_dies_or_is_of_another_type_is_replaced_and_keeps_its_address_and_volume,
    max_nodes_lowered_under_a_running_job_takes_nothing_from_it,
    a_sick_node_gives_its_job_back_and_the_job_runs_again,
];

/// What is steady is looked at often, so that nobody waits for the next sweep.
const SWEEP: &str = "--fleet-sweep-seconds=1";

async fn a_boot_step_that_fails_is_told_and_nodes_are_tried_alone_until_they_come_up(
    story: Arc<Story>,
) -> Outcome {
    let served = operator(&story, &[SWEEP]).await?;
    let sim = story.sim().await?;
    let heads = Phantom::play(sim.clone());
    heads.break_nodes(&["compute-1"]);
    story.apply(&cluster(|_| ())).await?;
    let failed = await_told(&story, ConditionType::FleetsReady, "False/BootFailed").await?;
    let words = "boot step 'storage' of compute-1 failed with exit code 32: mount.lustre";
    assert!(failed.message.contains(words), "{}", failed.message);
    await_cluster(&story, "one node alone is tried", |found| {
        let fleets = the(found, ConditionType::FleetsReady);
        fleets.is_some_and(|found| found.message.contains("one node alone is tried"))
    })
    .await?;
    eventually("one node is tried", LONG, async || {
        Ok((launches(&sim).await?.last() == Some(&1)).then_some(()))
    })
    .await?;
    heads.break_nodes(&[]);
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    let launches = launches(&sim).await?;
    let (whole, rest) = launches.split_at(3);
    assert_eq!(whole, [2, 2, 2], "three tries, then {rest:?}");
    assert!(rest.iter().all(|size| *size == 1) && rest.len() < 8, "{rest:?}");
    end(&story, served).await
}

async fn a_sick_node_and_one_that_aws_takes_are_replaced_once(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[SWEEP]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    let mut ever = vec![2];
    for (impaired, event, reason) in
        [(true, None, "True/Impaired"), (false, Some("instance-retirement"), "True/ScheduledEvent")]
    {
        let sick = nodes(&sim).await?.swap_remove(0);
        sim.health(&sick.id, impaired, event).await?;
        await_told(&story, ConditionType::NodesLeaving, reason).await?;
        ever.push(1);
        eventually("it is replaced", LONG, async || {
            let there = nodes(&sim).await?;
            let replaced = there.len() == 2 && there.iter().all(|node| node.id != sick.id);
            Ok(replaced.then_some(()))
        })
        .await?;
        await_told(&story, ConditionType::Ready, "True/Ready").await?;
        assert_eq!(launches(&sim).await?, ever);
    }
    end(&story, served).await
}

async fn a_queue_is_made_larger_and_smaller_while_it_stands(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[SWEEP]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    let sized = |nodes: u32| {
        cluster(|aws| {
            aws["queues"][0]["minNodes"] = nodes.into();
            aws["queues"][0]["maxNodes"] = nodes.into();
        })
    };
    for size in [2, 3, 1] {
        story.apply(&sized(size)).await?;
        let summary = format!("{size}/{size}");
        await_cluster(&story, &format!("{summary} nodes"), |found| {
            let status = found.status.as_ref().and_then(|status| status.nodes.as_ref());
            status.is_some_and(|nodes| nodes.summary == summary)
        })
        .await?;
    }
    eventually(
        "one node is left",
        LONG,
        async || Ok((nodes(&sim).await?.len() == 1).then_some(())),
    )
    .await?;
    assert_eq!(launches(&sim).await?, [2, 1], "nothing is launched to make a queue smaller");
    end(&story, served).await
}

async fn a_head_that_dies_or_is_of_another_type_is_replaced_and_keeps_its_address_and_volume(
    story: Arc<Story>,
) -> Outcome {
    let served = operator(&story, &[SWEEP]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    let (first, volume) = (head(&story).await?, state_volume(&sim).await?);
    sim.end_instance(&first.0, "terminate", "Server.InternalError").await?;
    let second = await_another_head(&story, &first).await?;
    sim.health(&second.0, true, None).await?;
    let third = await_another_head(&story, &second).await?;
    story.apply(&cluster(|aws| aws["head"]["instanceType"] = "c5n.4xlarge".into())).await?;
    let fourth = await_another_head(&story, &third).await?;
    assert_eq!(fourth.1, first.1, "the address");
    assert_eq!(state_volume(&sim).await?, volume);
    assert_eq!(launches(&sim).await?, [2], "the nodes went on");
    end(&story, served).await
}

async fn max_nodes_lowered_under_a_running_job_takes_nothing_from_it(story: Arc<Story>) -> Outcome {
    let site = Site::new(story).await?;
    let long = site.sbatch("--nodes=3 hold.sh").await?;
    await_begun(&site, &long).await?;
    site.story.apply(&sized(0, 1)).await?;
    await_told(&site.story, ConditionType::NodesLeaving, "True/QueueShrinks").await?;
    await_states(&site, "compute-2 compute-3 draining", |states| {
        states.matches("drng").count() == 2
    })
    .await?;
    let large = site.sbatch("--nodes=2 hold.sh").await?;
    let short = site.sbatch("--nodes=1 hold.sh").await?;
    std::fs::write(site.fsx.join(format!("go-{short}")), "")?;
    assert_eq!(site.output(&short).await?, "held on compute-1\n", "what is left takes jobs");
    assert_eq!(site.nodes().await?.len(), 3, "the long job has its nodes");
    std::fs::write(site.fsx.join(format!("go-{long}")), "")?;
    assert_eq!(site.output(&long).await?, "held on compute-[1-3]\n");
    site.await_empty().await?;
    let waiting = site.types(&format!("squeue -h -j {large} -o '%T %r'")).await?;
    assert!(waiting.starts_with("PENDING "), "two nodes are more than there are: {waiting}");
    site.types(&format!("scancel {large}")).await?;
    assert_eq!(site.launches().await?, [3], "{}", tally(&site));
    assert_eq!(tally(&site).lines().count(), 2);
    site.end().await
}

async fn a_sick_node_gives_its_job_back_and_the_job_runs_again(story: Arc<Story>) -> Outcome {
    let site = Site::new(story).await?;
    let job = site.sbatch("--nodes=1 hold.sh").await?;
    await_begun(&site, &job).await?;
    let sick = site.nodes().await?.swap_remove(0);
    site.sim.health(&sick.id, true, None).await?;
    eventually("the job has begun again", PATIENCE, async || {
        Ok(tally(&site).contains("restart 1").then_some(()))
    })
    .await?;
    std::fs::write(site.fsx.join(format!("go-{job}")), "")?;
    assert!(site.output(&job).await?.starts_with("held on compute-"));
    assert!(site.nodes().await?.iter().all(|node| node.id != sick.id), "the sick node is gone");
    site.await_empty().await?;
    assert_eq!(site.launches().await?, [1, 1], "replaced once");
    site.end().await
}

/// Sizes of all launches of nodes so far, in their order.
async fn launches(sim: &Sim) -> Result<Vec<usize>> {
    let ever = sim.ledger().await?;
    let mut sizes: Vec<(Option<String>, usize)> = vec![];
    for node in ever.into_iter().filter(is_node) {
        match sizes.iter_mut().find(|(token, _)| *token == node.client_token) {
            Some((_, size)) => *size += 1,
            None => sizes.push((node.client_token, 1)),
        }
    }
    Ok(sizes.into_iter().map(|(_, size)| size).collect())
}

/// Instance and address of the head in the status.
async fn head(story: &Story) -> Result<(String, String)> {
    let found = await_cluster(story, "a head", |found| id_of_head(found).is_some()).await?;
    let head = found.status.and_then(|status| status.head).unwrap();
    Ok((head.instance_id, head.private_ip))
}

fn id_of_head(found: &HpcCluster) -> Option<&str> {
    let head = found.status.as_ref()?.head.as_ref()?;
    Some(head.instance_id.as_str()).filter(|id| !id.is_empty())
}

async fn await_another_head(story: &Story, before: &(String, String)) -> Result<(String, String)> {
    let other = |found: &HpcCluster| {
        told(found, ConditionType::Ready) == "True/Ready"
            && id_of_head(found).is_some_and(|id| id != before.0)
    };
    await_cluster(story, "another head", other).await?;
    head(story).await
}

async fn state_volume(sim: &Sim) -> Result<Vec<String>> {
    let living = sim.living().await?;
    let of_state =
        |thing: &&Resource| thing.tags.get("hpcops.dev:role").is_some_and(|role| role == "state");
    Ok(living.iter().filter(of_state).map(|thing| thing.id.clone()).collect())
}

/// What the jobs wrote when they began; nothing before the first.
fn tally(site: &Site) -> String {
    std::fs::read_to_string(site.fsx.join("tally")).unwrap_or_default()
}

async fn await_begun(site: &Site, job: &str) -> Result<()> {
    eventually("the job has begun", PATIENCE, async || {
        Ok(tally(site).contains(&format!("{job} begun")).then_some(()))
    })
    .await
}

/// Waits until Slurm's states of the nodes are so.
async fn await_states(site: &Site, what: &str, holds: impl Fn(&str) -> bool) -> Result<()> {
    eventually(what, PATIENCE, async || {
        let states = site.types("sinfo -h -N -o '%N %t'").await?;
        Ok(holds(&states).then_some(()))
    })
    .await
}
