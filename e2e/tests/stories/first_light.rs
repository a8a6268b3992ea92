//! First light: the quickstart as a user applies it, with instances that are alive. Real user data
//! boots real Slurm, real Open MPI measures between two bodies, the numbers come back in status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hpc_crds::{AttemptState, BenchmarkRun, ConditionType, HpcCluster, condition};
use hpc_e2e::sim::{Fault, Strike, When};
use hpc_e2e::{LabError, Operator, Restart, Result, Story, await_condition, eventually, osu};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};

use crate::kill;
use crate::runner::Outcome;
use crate::site::{end_of_bodies, quick};
use crate::stories;

stories![
    the_quickstart_ends_with_real_numbers_and_leaves_nothing,
    an_operator_killed_while_attempts_run_repeats_none,
    a_head_that_dies_in_the_middle_of_an_attempt_is_replaced_and_nothing_is_lost,
    killed_when_its_nodes_are_launched_it_makes_no_second_body,
];

/// Boots and jobs are real here.
const PATIENCE: Duration = Duration::from_mins(6);
const RUN: &str = "quickstart-osu";

async fn the_quickstart_ends_with_real_numbers_and_leaves_nothing(story: Arc<Story>) -> Outcome {
    let served = story.operator(&quick(), Restart::Never).await?;
    let example = std::fs::read_to_string(osu::example())?;
    story.apply(&example).await?;
    place_programs(&story, |text| text).await?;
    await_ready(&story).await?;
    let run = await_finished(&story).await?;
    let status = run.status.unwrap_or_default();
    assert!(condition::is_true(&status.conditions, ConditionType::Succeeded), "{status:#?}");
    assert!(condition::is_true(&status.conditions, ConditionType::Simulated));
    let names: Vec<_> = status.cells.iter().map(|cell| (cell.name.as_str(), cell.n)).collect();
    assert_eq!(names, [("latency-2n", 3), ("bw-2n", 3)]);
    check_proofs(&story, &status.results_refs.iter().map(|it| it.name.clone()).collect::<Vec<_>>())
        .await?;
    let again = story.apply(&example).await?;
    assert_eq!(again.matches("unchanged").count(), 2, "{again}");
    let table = story.kubectl(&["get", "benchmarkruns"], "").await?;
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");

    end(&story, served).await?;
    assert_eq!(bodies(&story).await?, Vec::<String>::new());
    Ok(())
}

/// Deletes both objects, sees that nothing is left, and stops the operator.
async fn end(story: &Story, served: Operator) -> Outcome {
    story.kubectl(&["delete", "benchmarkrun", RUN, "--timeout=60s"], "").await?;
    end_of_bodies("quickstart", story, served).await
}

/// Every result names two hosts, the provider that stood in, and the whole table.
async fn check_proofs(story: &Story, names: &[String]) -> Result<()> {
    assert_eq!(names.len(), 6);
    let maps: Api<ConfigMap> = Api::namespaced(story.client(), story.namespace());
    for name in names {
        let map = maps.get(name).await.map_err(LabError::kube("read a result"))?;
        assert_eq!(map.immutable, Some(true));
        let text = &map.data.unwrap_or_default()["attempt.json"];
        let proof: Value = serde_json::from_str(text).unwrap();
        let hosts = proof["provenance"]["hosts"].as_array().unwrap();
        assert_eq!(hosts.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(), 2, "{text}");
        assert!(proof["table"]["rows"].as_array().unwrap().len() > 15, "{text}");
        assert_eq!(proof["provenance"]["simulated"], json!(true));
    }
    Ok(())
}

async fn an_operator_killed_while_attempts_run_repeats_none(story: Arc<Story>) -> Outcome {
    let served = story.operator(&quick(), Restart::Always).await?;
    let example = std::fs::read_to_string(osu::example())?;
    story.apply(&example).await?;
    let tally = place_programs(&story, |text| counted(&text)).await?;
    await_ready(&story).await?;
    for wanted in [AttemptState::Submitted, AttemptState::Running, AttemptState::Succeeded] {
        await_attempt(&story, wanted).await?;
        served.kill().await?;
        served.await_ready(Duration::from_mins(1)).await?;
    }
    let run = await_finished(&story).await?;
    let status = run.status.unwrap_or_default();
    assert!(condition::is_true(&status.conditions, ConditionType::Succeeded), "{status:#?}");
    let begun = std::fs::read_to_string(tally.join("tally"))?.lines().count();
    assert_eq!(begun, status.attempts.len(), "each attempt ran once");
    end(&story, served).await
}

/// The program that leaves a line outside its attempt's folder each time rank 0 begins.
fn counted(text: &str) -> String {
    let line = "open('/fsx/tally', 'a').write('begun\\n')";
    format!("import os\nif os.environ.get('OMPI_COMM_WORLD_RANK') == '0': {line}\n{text}")
}

async fn a_head_that_dies_in_the_middle_of_an_attempt_is_replaced_and_nothing_is_lost(
    story: Arc<Story>,
) -> Outcome {
    let served = story.operator(&quick(), Restart::Never).await?;
    story.apply(&std::fs::read_to_string(osu::example())?).await?;
    let tally = place_programs(&story, |text| counted(&text)).await?;
    let ready = await_ready(&story).await?;
    let head = ready.status.and_then(|status| status.head).expect("a cluster that is ready");
    // Not the scheduler's first seconds: it has written nothing down then, not even which numbers
    // it gave, and its successor gives them again.
    await_attempt(&story, AttemptState::Succeeded).await?;
    await_attempt(&story, AttemptState::Running).await?;
    let sim = story.sim().await?;
    sim.end_instance(&head.instance_id, "terminate", "Server.InternalError").await?;
    let status = await_finished(&story).await?.status.unwrap_or_default();
    assert!(condition::is_true(&status.conditions, ConditionType::Succeeded), "{status:#?}");
    let begun = std::fs::read_to_string(tally.join("tally"))?.lines().count();
    assert_eq!(begun, status.attempts.len(), "each attempt ran once");
    let other = await_ready(&story).await?.status.and_then(|status| status.head).unwrap();
    assert_eq!(other.private_ip, head.private_ip);
    let ever = sim.ledger().await?;
    let launched = ever.iter().filter(|thing| thing.kind == "instance").count();
    assert_eq!(launched, 4, "two heads and two nodes");
    end(&story, served).await
}

async fn killed_when_its_nodes_are_launched_it_makes_no_second_body(story: Arc<Story>) -> Outcome {
    let sim = story.sim().await?;
    let strike = Strike::Hold { when: When::After };
    let launch =
        Fault { role: Some("queue-compute".into()), ..Fault::next("RunInstances", strike) };
    sim.fault(&launch).await?;
    let served = story.operator(&quick(), Restart::Never).await?;
    story.apply(&std::fs::read_to_string(osu::example())?).await?;
    place_programs(&story, |text| text).await?;
    let held = sim.await_held(PATIENCE).await?;
    kill::die(&story, "quickstart", &served, &held).await?;
    await_ready(&story).await?;
    let status = await_finished(&story).await?.status.unwrap_or_default();
    assert!(condition::is_true(&status.conditions, ConditionType::Succeeded), "{status:#?}");
    let launched = sim.ledger().await?.iter().filter(|thing| thing.kind == "instance").count();
    assert_eq!((launched, bodies(&story).await?.len()), (3, 3));
    end(&story, served).await
}

/// Instances of this story whose body lives; other stories may have some of their own.
async fn bodies(story: &Story) -> Result<Vec<String>> {
    let sim = story.sim().await?;
    let (living, ours) = (sim.bodies().await?, sim.ledger().await?);
    let is_ours = |id: &String| ours.iter().any(|thing| thing.id == *id);
    Ok(living.into_iter().filter(is_ours).collect())
}

/// Copies the programs onto the file system once it exists, changed by `edit`; its root.
async fn place_programs(
    story: &Story,
    edit: impl Fn(String) -> String,
) -> Result<std::path::PathBuf> {
    let programs = osu::programs().await?;
    let sim = story.sim().await?;
    let root = eventually("the file system exists", PATIENCE, async || {
        let living = sim.living().await?;
        let found = living.iter().find(|thing| thing.kind == "file-system");
        let below = found.map(|found| story.file_system(found));
        Ok(below.filter(|folder| folder.is_dir()))
    })
    .await?;
    let folder = root.join(osu::program_path()?.below);
    osu::place(&programs, &folder)?;
    for name in ["osu_latency.py", "osu_bw.py"] {
        let file = folder.join(name);
        let text = std::fs::read_to_string(&file).map_err(LabError::io("read", &file))?;
        std::fs::write(&file, edit(text)).map_err(LabError::io("write", &file))?;
    }
    Ok(root)
}

async fn await_ready(story: &Story) -> Result<HpcCluster> {
    let ready = |found: Option<&HpcCluster>| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| condition::is_true(&status.conditions, ConditionType::Ready))
    };
    let found = await_condition(&story.clusters(), "quickstart", "Ready", PATIENCE, ready).await?;
    Ok(found.expect("a watched object"))
}

async fn await_finished(story: &Story) -> Result<BenchmarkRun> {
    let finished = |found: Option<&BenchmarkRun>| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| condition::is_true(&status.conditions, ConditionType::Finished))
    };
    let found = await_condition(&story.runs(), RUN, "Finished", PATIENCE, finished).await?;
    Ok(found.expect("a watched object"))
}

async fn await_attempt(story: &Story, wanted: AttemptState) -> Result<()> {
    let reached = |found: Option<&BenchmarkRun>| {
        let status = found.and_then(|found| found.status.as_ref());
        status.is_some_and(|status| status.attempts.iter().any(|it| it.state == wanted))
    };
    let what = format!("an attempt is {wanted}");
    await_condition(&story.runs(), RUN, &what, PATIENCE, reached).await.map(drop)
}
