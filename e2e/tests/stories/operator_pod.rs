//! The chart's pod, run as a node would run it: its rights suffice, it comes back after a kill under
//! the same name, and while there is nothing to do it writes nothing.

use std::sync::Arc;
use std::time::Duration;

use hpc_e2e::{Restart, Story, eventually};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::json;

use crate::runner::Outcome;
use crate::stories;

stories![
    it_is_admitted_under_the_restricted_standard_and_gets_ready,
    after_a_kill_it_comes_back_as_the_same_pod_and_keeps_its_lease,
    with_nothing_to_do_it_writes_nothing,
    a_wrong_flag_ends_it_with_a_sentence,
];

const SOON: Duration = Duration::from_secs(30);

async fn it_is_admitted_under_the_restricted_standard_and_gets_ready(story: Arc<Story>) -> Outcome {
    let operator = story.operator(&json!({}), Restart::Never).await?;
    let pods: Api<Pod> = Api::namespaced(story.client(), story.namespace());
    let pod = pods.get(operator.pod_name()).await?;
    let account = pod.spec.and_then(|spec| spec.service_account_name);
    assert_eq!(account.as_deref(), Some(story.namespace()));
    eventually("the Deployment is available", SOON, async || {
        let table = story.kubectl(&["get", "deployments", "--no-headers"], "").await;
        Ok(table?.contains("1/1").then_some(()))
    })
    .await?;
    let pods = story.kubectl(&["get", "pods", "--no-headers"], "").await?;
    let words: Vec<_> = pods.split_whitespace().skip(1).take(3).collect();
    assert_eq!(words, ["1/1", "Running", "0"], "{pods}");
    operator.stop().await?;
    let left = story.kubectl(&["get", "pods", "-o", "name"], "").await?;
    assert_eq!(left, "");
    Ok(())
}

async fn after_a_kill_it_comes_back_as_the_same_pod_and_keeps_its_lease(
    story: Arc<Story>,
) -> Outcome {
    let operator = story.operator(&json!({}), Restart::Always).await?;
    let before = operator.pid();
    operator.kill().await?;
    eventually("a new process runs", SOON, async || {
        Ok((operator.pid().is_some() && operator.pid() != before).then_some(()))
    })
    .await?;
    operator.await_ready(SOON).await?;
    assert_eq!(operator.state().restarts, 1);
    let leases: Api<Lease> = Api::namespaced(story.client(), story.namespace());
    let spec = leases.get(story.namespace()).await?.spec.unwrap_or_default();
    assert_eq!(spec.holder_identity.as_deref(), Some(operator.pod_name()));
    assert!(spec.lease_transitions.unwrap_or_default() <= 1);
    operator.stop().await?;
    Ok(())
}

async fn with_nothing_to_do_it_writes_nothing(story: Arc<Story>) -> Outcome {
    let operator = story.operator(&json!({}), Restart::Never).await?;
    let renewed = async |after: Option<String>| -> Result<Option<String>, hpc_e2e::LabError> {
        let jsonpath = "jsonpath={.spec.renewTime}";
        let lease = ["get", "lease", story.namespace(), "-o", jsonpath];
        let time = story.kubectl(&lease, "").await?;
        Ok(Some(time).filter(|time| !time.is_empty() && Some(time) != after.as_ref()))
    };
    // It lives and works meanwhile: the lease is renewed twice.
    let deadline = Duration::from_mins(1);
    let first = eventually("the lease is held", deadline, async || renewed(None).await).await?;
    let second = eventually("it is renewed", deadline, async || renewed(Some(first.clone())).await);
    let second = second.await?;
    eventually("and again", deadline, async || renewed(Some(second.clone())).await).await?;
    let writes = story.writes_of(&operator)?;
    assert!(writes.is_empty(), "{writes:#?}");
    assert_eq!(story.sim().await?.mutating_calls().await?, []);
    operator.stop().await?;
    Ok(())
}

async fn a_wrong_flag_ends_it_with_a_sentence(story: Arc<Story>) -> Outcome {
    let wrong = json!({"extraArgs": ["--job-poll-seconds=soon"]});
    let refused = story.operator(&wrong, Restart::Never).await;
    let message = refused.err().map(|error| error.chain()).unwrap_or_default();
    assert!(message.contains("--job-poll-seconds"), "{message}");
    Ok(())
}
