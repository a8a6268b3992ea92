//! The shell around the planner, from the API server's and from AWS' side.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected fails"
)]

mod support;

use hpc_plan::names::FINALIZER;
use hpc_plan::world::Job;
use support::Stage;

#[tokio::test]
async fn a_cluster_becomes_ready_and_every_create_was_stored_before_it_was_sent() {
    let stage = Stage::new();
    let spec = stage.server.spec();
    stage.until(Stage::is_ready).await;
    let cluster = stage.server.object().unwrap();
    assert_eq!(cluster.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));
    assert_eq!(stage.server.spec(), spec, "the spec is never written");
    assert_eq!(cluster.status.unwrap().nodes.unwrap().summary, "2/2");
    assert_eq!(stage.model.world().ledger.sins, [].into());
}

#[tokio::test]
async fn a_ready_cluster_causes_no_write_and_no_call() {
    let stage = Stage::new();
    stage.until(Stage::is_ready).await;
    for _ in 0..5 {
        stage.pass().await.unwrap();
        stage.model.tick();
    }
    let (writes, calls) = (stage.server.writes().len(), stage.model.calls());
    for _ in 0..20 {
        stage.pass().await.unwrap();
        stage.model.tick();
    }
    assert_eq!((stage.server.writes().len(), stage.model.calls()), (writes, calls));
}

#[tokio::test]
async fn a_cluster_at_rest_is_not_looked_at_until_its_head_has_news_it_changes_or_a_sweep_is_due() {
    let stage = Stage::growing();
    stage.until(Stage::is_ready).await;
    stage.model.world().scheduler.numbers = stage.numbers();
    settle(&stage).await;
    assert_eq!(looks(&stage).await, 0, "nothing is new");
    stage.server.touch();
    assert_eq!(looks(&stage).await, 1, "the object was written by somebody else");
    let job = Job { queue: "compute".to_owned(), slots: "3".parse().unwrap() };
    stage.model.world().scheduler.jobs.push(job);
    let grown = |stage: &Stage| stage.model.world().ledger.launched.values().sum::<u32>() == 4;
    stage.until(grown).await;
    settle(&stage).await;
    assert_eq!(looks(&stage).await, 0, "nothing is new again");
    stage.model.world().now += jiff::SignedDuration::from_secs(80);
    assert_eq!(looks(&stage).await, 1, "the sweep is due");
}

/// Whole observations in three passes of one moment.
async fn looks(stage: &Stage) -> u32 {
    let before = stage.model.looks();
    for _ in 0..3 {
        stage.pass().await.unwrap();
    }
    stage.model.looks() - before
}

async fn settle(stage: &Stage) {
    for _ in 0..30 {
        stage.pass().await.unwrap();
        stage.model.tick();
    }
    looks(stage).await;
}

#[tokio::test]
async fn a_status_made_from_an_older_object_is_refused_and_nothing_was_launched_by_it() {
    let stage = Stage::new();
    for _ in 0..3 {
        stage.pass().await.unwrap();
    }
    let cached = stage.server.object().unwrap();
    stage.server.touch();
    let calls = stage.model.calls();
    let stored = stage.server.object().unwrap().status;
    for _ in 0..3 {
        if let Err(error) = stage.pass_from(cached.clone()).await {
            assert!(error.is_conflict(), "{error}");
        }
    }
    assert_eq!(stage.server.object().unwrap().status, stored);
    assert_eq!(stage.model.world().ledger.launched, [].into());
    assert!(stage.model.calls() >= calls);
    stage.until(Stage::is_ready).await;
    assert_eq!(stage.model.world().ledger.sins, [].into());
}

#[tokio::test]
async fn turns_are_told_as_events_once() {
    let stage = Stage::new();
    stage.until(Stage::is_ready).await;
    let events = stage.server.writes();
    let ready = events.iter().filter(|write| *write == "POST Ready").count();
    // One for each condition that turned to Ready: network, storage, head, fleets, the whole.
    assert_eq!(ready, 5, "{events:?}");
}

#[tokio::test]
async fn a_deleted_cluster_goes_when_everything_is_given_back() {
    let stage = Stage::new();
    stage.until(Stage::is_ready).await;
    stage.server.delete();
    stage.until(|stage| stage.server.object().is_none()).await;
    assert_eq!(stage.model.world().leftovers(), Vec::<String>::new());
    assert_eq!(stage.model.world().ledger.sins, [].into());
}
