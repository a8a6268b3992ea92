//! What AWS can refuse, and how the cluster says so: condition, reason, and the words that help.

use std::sync::Arc;

use hpc_crds::ConditionType;
use hpc_e2e::sim::{Fault, Strike};
use hpc_e2e::{Phantom, Restart, Story};
use serde_json::json;

use crate::runner::Outcome;
use crate::site::{await_cluster, await_told, cluster, end, nodes, operator, quick, the, told};
use crate::stories;

stories![
    a_head_whose_agent_never_comes_is_replaced_and_then_a_human_is_asked,
    an_agent_that_comes_late_is_waited_for,
    without_capacity_for_the_first_type_the_second_is_taken,
    without_capacity_for_any_type_nothing_is_left_running,
    a_throttled_launch_is_repeated_at_the_pace_of_the_bucket,
    a_file_system_that_fails_before_it_was_available_is_tried_three_times,
    an_available_file_system_that_fails_is_kept,
    a_type_without_efa_is_refused_before_any_launch,
    a_type_that_is_not_offered_in_the_zone_is_refused,
    a_quota_is_told_with_its_code,
    a_subnet_that_is_gone_is_told,
    a_denied_call_is_told_by_its_name,
    credentials_of_another_account_stop_everything,
    resources_of_a_predecessor_stop_the_launch,
    limits_of_the_installation_are_kept,
];

async fn a_head_whose_agent_never_comes_is_replaced_and_then_a_human_is_asked(
    story: Arc<Story>,
) -> Outcome {
    let served = impatient(&story).await?;
    let sim = story.sim().await?;
    sim.configure(&json!({"agents": false})).await?;
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::HeadReady, "False/BootTimeout").await?;
    let stalled = await_told(&story, ConditionType::Stalled, "True/BootTimeout").await?;
    assert!(stalled.message.contains("given up after 3 attempts"), "{}", stalled.message);
    let launches = sim.calls().await?["RunInstances"]["OK"];
    assert_eq!(launches, 3);
    end(&story, served).await
}

/// An operator that gives an agent three seconds.
async fn impatient(story: &Story) -> Result<hpc_e2e::Operator, hpc_e2e::LabError> {
    let values = json!({"agentTimeoutSeconds": 3, "extraArgs": quick()["extraArgs"]});
    story.sim().await?.configure(&json!({"bodies": false})).await?;
    story.operator(&values, Restart::Never).await
}

async fn an_agent_that_comes_late_is_waited_for(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    sim.configure(&json!({"agents": false})).await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let waits = await_told(&story, ConditionType::HeadReady, "Unknown/WaitingForAgent").await?;
    assert!(waits.message.contains("SSM agent"), "{}", waits.message);
    let cluster = story.clusters().get("wing").await?;
    let head = cluster.status.and_then(|status| status.head).unwrap().instance_id;
    sim.agent(&head, "online").await?;
    await_told(&story, ConditionType::HeadReady, "True/Ready").await?;
    served.stop().await?;
    Ok(())
}

async fn without_capacity_for_the_first_type_the_second_is_taken(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    sim.capacity("c5n.18xlarge", "us-east-1a", Some(1)).await?;
    let _heads = Phantom::play(sim.clone());
    let types = json!(["c5n.18xlarge", "c5n.metal"]);
    story.apply(&cluster(|aws| aws["queues"][0]["instanceTypes"] = types)).await?;
    await_told(&story, ConditionType::FleetsReady, "True/Ready").await?;
    let found =
        await_cluster(&story, "ready", |found| told(found, ConditionType::Ready) == "True/Ready")
            .await?;
    let queue = found.status.unwrap().queues.remove(0);
    let error = queue.last_capacity_error.expect("the refusal is remembered");
    assert_eq!((error.type_.as_str(), error.zone.as_str()), ("c5n.18xlarge", "us-east-1a"));
    assert_eq!(error.code, "InsufficientInstanceCapacity");
    let nodes = nodes(&sim).await?;
    let types: Vec<_> = nodes.iter().map(|thing| &thing.detail["instanceType"]).collect();
    assert_eq!(types, ["c5n.metal", "c5n.metal"]);
    served.stop().await?;
    Ok(())
}

async fn without_capacity_for_any_type_nothing_is_left_running(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    sim.capacity("c5n.18xlarge", "us-east-1a", Some(1)).await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let refused =
        await_told(&story, ConditionType::FleetsReady, "False/InsufficientCapacity").await?;
    assert!(refused.message.contains("InsufficientInstanceCapacity"), "{}", refused.message);
    await_cluster(&story, "a next try is told", |found| {
        let message = the(found, ConditionType::FleetsReady).map(|told| told.message);
        message.is_some_and(|message| message.contains("next try"))
    })
    .await?;
    let nodes = sim.living().await?;
    let nodes = nodes.iter().filter(|thing| thing.kind == "instance").count();
    assert_eq!(nodes, 1, "the head alone");
    sim.capacity("c5n.18xlarge", "us-east-1a", None).await?;
    await_told(&story, ConditionType::FleetsReady, "True/Ready").await?;
    served.stop().await?;
    Ok(())
}

async fn a_throttled_launch_is_repeated_at_the_pace_of_the_bucket(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let refusal = Strike::Error {
        status: 503,
        code: "RequestLimitExceeded".into(),
        message: "Request limit exceeded.".into(),
    };
    let fault = Fault {
        role: Some("queue-compute".into()),
        count: 4,
        ..Fault::next("RunInstances", refusal)
    };
    sim.fault(&fault).await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::FleetsReady, "Unknown/Throttled").await?;
    await_told(&story, ConditionType::FleetsReady, "True/Ready").await?;
    let calls = sim.calls().await?;
    assert_eq!(calls["RunInstances"]["RequestLimitExceeded"], 4);
    assert_eq!(calls["RunInstances"]["OK"], 2, "head and gang");
    served.stop().await?;
    Ok(())
}

async fn a_file_system_that_fails_before_it_was_available_is_tried_three_times(
    story: Arc<Story>,
) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let message = "There is not enough capacity in us-east-1a.";
    sim.fail_file_system(None, message).await?;
    story.apply(&cluster(|_| ())).await?;
    let told_once =
        await_told(&story, ConditionType::StorageReady, "False/FileSystemFailed").await?;
    assert!(told_once.message.contains(message), "{}", told_once.message);
    for _ in 0..2 {
        await_creating(&story).await?;
        sim.fail_file_system(None, message).await?;
        await_told(&story, ConditionType::StorageReady, "False/FileSystemFailed").await?;
    }
    await_told(&story, ConditionType::Stalled, "True/FileSystemFailed").await?;
    assert_eq!(sim.calls().await?["CreateFileSystem"]["OK"], 3);
    let left = sim.living().await?;
    assert!(left.iter().all(|thing| thing.kind != "file-system" && thing.kind != "instance"));
    served.stop().await?;
    Ok(())
}

async fn await_creating(story: &Story) -> Result<(), hpc_e2e::LabError> {
    await_told(story, ConditionType::StorageReady, "Unknown/Creating").await.map(drop)
}

async fn an_available_file_system_that_fails_is_kept(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let ready =
        await_cluster(&story, "ready", |found| told(found, ConditionType::Ready) == "True/Ready")
            .await?;
    let storage = ready.status.unwrap().storage.remove(0);
    sim.fail_file_system(Some(&storage.file_system_id), "A disk was lost.").await?;
    let failed = await_told(&story, ConditionType::StorageReady, "False/FileSystemFailed").await?;
    assert!(failed.message.contains("A disk was lost."), "{}", failed.message);
    await_told(&story, ConditionType::Stalled, "True/FileSystemFailed").await?;
    assert!(!sim.calls().await?.contains_key("DeleteFileSystem"));
    served.stop().await?;
    Ok(())
}

async fn a_type_without_efa_is_refused_before_any_launch(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    story.apply(&cluster(|aws| aws["queues"][0]["instanceTypes"] = json!(["c5.18xlarge"]))).await?;
    let refused =
        await_told(&story, ConditionType::FleetsReady, "False/UnsupportedConfiguration").await?;
    assert_eq!(
        refused.message,
        "spec.aws.queues[compute].instanceTypes: 'c5.18xlarge' has no EFA. Delete the cluster and \
         apply it again with networkInterface ENA or a type that has EFA, such as c5n.18xlarge"
    );
    assert_eq!(story.sim().await?.mutating_calls().await?, []);
    served.stop().await?;
    Ok(())
}

async fn a_type_that_is_not_offered_in_the_zone_is_refused(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    story
        .apply(&cluster(|aws| aws["queues"][0]["instanceTypes"] = json!(["hpc7a.96xlarge"])))
        .await?;
    let refused = await_told(&story, ConditionType::FleetsReady, "False/NotOffered").await?;
    assert!(refused.message.contains("'hpc7a.96xlarge'"), "{}", refused.message);
    served.stop().await?;
    Ok(())
}

async fn a_quota_is_told_with_its_code(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let refusal = Strike::Error {
        status: 400,
        code: "VcpuLimitExceeded".into(),
        message: "You have requested more vCPU capacity than your current vCPU limit of 5 allows."
            .into(),
    };
    let fault = Fault {
        role: Some("queue-compute".into()),
        count: 0,
        ..Fault::next("RunInstances", refusal)
    };
    sim.fault(&fault).await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let refused = await_told(&story, ConditionType::FleetsReady, "False/QuotaExceeded").await?;
    assert!(refused.message.contains("VcpuLimitExceeded"), "{}", refused.message);
    sim.clear_faults().await?;
    await_told(&story, ConditionType::FleetsReady, "True/Ready").await?;
    served.stop().await?;
    Ok(())
}

async fn a_subnet_that_is_gone_is_told(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let gone = cluster(|aws| aws["network"]["headSubnetId"] = "subnet-0123456789abcdef0".into());
    story.apply(&gone).await?;
    let refused =
        await_told(&story, ConditionType::NetworkReady, "False/DependencyMissing").await?;
    assert_eq!(
        refused.message,
        "spec.aws.network.headSubnetId: subnet 'subnet-0123456789abcdef0' does not exist in \
         us-east-1. Delete the cluster and apply it again with a subnet of this account and region"
    );
    served.stop().await?;
    Ok(())
}

async fn a_denied_call_is_told_by_its_name(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    sim.deny(&["fsx:CreateFileSystem"]).await?;
    story.apply(&cluster(|_| ())).await?;
    let refused = await_told(&story, ConditionType::StorageReady, "False/PermissionDenied").await?;
    assert!(refused.message.contains("fsx:CreateFileSystem"), "{}", refused.message);
    sim.deny(&[]).await?;
    await_told(&story, ConditionType::StorageReady, "True/Ready").await?;
    served.stop().await?;
    Ok(())
}

async fn credentials_of_another_account_stop_everything(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    await_told(&story, ConditionType::Ready, "True/Ready").await?;
    drop(heads);
    served.stop().await?;
    sim.move_to_account("999999999999").await?;
    let before = sim.mutating_calls().await?.len();
    let served = operator(&story, &[]).await?;
    let stalled = await_told(&story, ConditionType::Stalled, "True/AccountChanged").await?;
    assert!(stalled.message.contains("999999999999"), "{}", stalled.message);
    await_told(&story, ConditionType::Ready, "False/AccountChanged").await?;
    assert_eq!(sim.mutating_calls().await?.len(), before);
    served.stop().await?;
    Ok(())
}

async fn resources_of_a_predecessor_stop_the_launch(story: Arc<Story>) -> Outcome {
    let served = operator(&story, &[]).await?;
    let sim = story.sim().await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let first =
        await_cluster(&story, "ready", |found| told(found, ConditionType::Ready) == "True/Ready")
            .await?;
    served.stop().await?;
    // As after a restore of the API server: the object goes without its finalizer's work.
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    story.kubectl(&["delete", "hpccluster", "wing", "--wait=false"], "").await?;
    story.kubectl(&["patch", "hpccluster", "wing", "--type=merge", "-p", patch], "").await?;
    let launches = sim.calls().await?["RunInstances"]["OK"];
    let served = operator(&story, &[]).await?;
    story.apply(&cluster(|_| ())).await?;
    let found = await_told(&story, ConditionType::Ready, "False/PredecessorFound").await?;
    assert!(found.message.contains(&first.metadata.uid.unwrap()), "{}", found.message);
    assert_eq!(sim.calls().await?["RunInstances"]["OK"], launches);
    served.stop().await?;
    Ok(())
}

async fn limits_of_the_installation_are_kept(story: Arc<Story>) -> Outcome {
    let values = json!({"limits": {"maxInstances": 2}, "extraArgs": quick()["extraArgs"]});
    let sim = story.sim().await?;
    sim.configure(&json!({"bodies": false})).await?;
    let served = story.operator(&values, Restart::Never).await?;
    let _heads = Phantom::play(sim.clone());
    story.apply(&cluster(|_| ())).await?;
    let refused = await_told(&story, ConditionType::FleetsReady, "False/LimitExceeded").await?;
    assert!(refused.message.contains("--max-instances 2"), "{}", refused.message);
    assert_eq!(sim.mutating_calls().await?, [], "it is told before anything is made");
    served.stop().await?;
    Ok(())
}
