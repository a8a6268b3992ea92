//! What the types write and read.

use std::fs;
use std::path::Path;

use hpc_crds::{
    BenchmarkRun, BenchmarkRunStatus, DeletionPolicy, DeploymentType, HpcCluster, HpcClusterStatus,
    Intent, IntentState, LustreVersion, MpiImplementation, NetworkInterface, NodesStatus,
    OperatingSystem, OsuBenchmark, Placement, SchedulerType, Time,
};
use serde_json::{Value, json};

#[test]
fn defaults_are_filled_in_when_left_out() {
    let cluster: HpcCluster = serde_json::from_value(json!({
        "apiVersion": "hpcops.dev/v1alpha1", "kind": "HPCCluster", "metadata": {"name": "a"},
        "spec": {"aws": {
            "region": "us-east-1", "network": {"headSubnetId": "subnet-0a1b2c3d"},
            "iam": {"headInstanceProfileName": "head", "nodeInstanceProfileName": "node"},
            "head": {"instanceType": "c5.large"},
            "queues": [{"name": "q", "instanceTypes": ["c5.large"], "minNodes": 1, "maxNodes": 1}],
            "storage": [{"name": "s", "mountPath": "/fsx",
                "lustre": {"deploymentType": "Scratch2", "capacityGiB": 1200}}]}}
    }))
    .unwrap();
    let aws = &cluster.spec.aws;
    assert_eq!(aws.head.state_volume.size_gib, 50);
    assert_eq!(aws.head.state_volume.deletion_policy, DeletionPolicy::Retain);
    assert_eq!(aws.image.os, OperatingSystem::AmazonLinux2023);
    assert_eq!(aws.queues[0].network_interface, NetworkInterface::Ena);
    assert_eq!(aws.queues[0].placement, None);
    assert_eq!(aws.storage[0].deletion_policy, DeletionPolicy::Retain);
    assert_eq!(aws.storage[0].lustre.as_ref().unwrap().version, LustreVersion::V2_15);
    assert_eq!(cluster.spec.scheduler.type_, SchedulerType::Slurm);
}

#[test]
fn the_schema_defaults_what_the_types_default() {
    let cluster = crate::schema("HPCCluster");
    let aws = &cluster["properties"]["spec"]["properties"]["aws"]["properties"];
    assert_eq!(aws["image"]["default"], json!({"os": "AmazonLinux2023"}));
    let volume = json!({"sizeGiB": 50, "deletionPolicy": "Retain"});
    assert_eq!(aws["head"]["properties"]["stateVolume"]["default"], volume);
    let run = crate::schema("BenchmarkRun");
    let spec = &run["properties"]["spec"]["properties"];
    assert_eq!(spec["repeats"]["default"], json!({"count": 3}));
    assert_eq!(spec["mpi"]["default"], json!({"implementation": "OpenMPI"}));
}

#[test]
fn a_status_nobody_wrote_speaks_of_no_generation() {
    let cluster: HpcClusterStatus = serde_json::from_value(json!({})).unwrap();
    assert_eq!(cluster, HpcClusterStatus::default());
    assert_eq!(cluster.observed_generation, -1);
    let run: BenchmarkRunStatus = serde_json::from_value(json!({})).unwrap();
    assert_eq!(run, BenchmarkRunStatus::default());
    assert_eq!(serde_json::to_value(run).unwrap(), json!({"observedGeneration": -1}));
}

#[test]
fn an_intent_of_another_version_is_carried_byte_for_byte() {
    let stored = json!({
        "version": 7, "token": "0123456789abcdef0123456789abcdef01234567", "thing": "queue-compute",
        "attempt": 3, "bodyHash": "ab12", "state": "Abandoned", "reason": "body changed",
        "payload": "{\"new\": [1,  2.50], \"z\":null}", "resourceIds": ["i-0a1b2c3d"],
        "changedAt": "2026-11-30T10:04:11Z"
    });
    let intent: Intent = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(intent.state, IntentState::Abandoned);
    assert_eq!(serde_json::to_value(intent).unwrap(), stored);
}

#[test]
fn no_null_is_ever_written() {
    let written = [
        serde_json::to_value(HpcCluster::new("a", hpc_crds::HpcClusterSpec::default())).unwrap(),
        serde_json::to_value(BenchmarkRun::new("a", hpc_crds::BenchmarkRunSpec::default()))
            .unwrap(),
        serde_json::to_value(HpcClusterStatus::default()).unwrap(),
    ];
    for value in written {
        assert!(!value.to_string().contains("null"), "{value}");
    }
}

#[test]
fn every_optional_field_is_left_out_when_absent() {
    for path in sources(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))) {
        let text = fs::read_to_string(&path).unwrap();
        let mut attributes = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with("pub ") && line.contains(": Option<") && text.contains("Serialize,")
            {
                assert!(
                    attributes.contains("skip_serializing_if = \"Option::is_none\""),
                    "{}: {line}",
                    path.display()
                );
            }
            if line.starts_with("pub ") || line.is_empty() || line == "}" {
                attributes.clear();
            } else {
                attributes.push_str(line);
            }
        }
    }
}

fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn enums_print_as_they_are_written() {
    fn check<T: serde::Serialize + std::fmt::Display>(values: &[T]) {
        for value in values {
            assert_eq!(serde_json::to_value(value).unwrap(), Value::String(value.to_string()));
        }
    }
    check(&[DeletionPolicy::Retain, DeletionPolicy::Delete]);
    check(&[DeploymentType::Scratch2, DeploymentType::Persistent2]);
    check(&[NetworkInterface::Efa, NetworkInterface::Ena]);
    check(&[Placement::Cluster, Placement::None]);
    check(&[OperatingSystem::AmazonLinux2023]);
    check(&[LustreVersion::V2_15]);
    check(&[SchedulerType::Slurm]);
    check(&[MpiImplementation::OpenMpi]);
    check(&[OsuBenchmark::Latency, OsuBenchmark::Bandwidth]);
    check(&[IntentState::Open, IntentState::Acted, IntentState::Settled, IntentState::Abandoned]);
}

#[test]
fn a_time_is_whole_seconds_from_the_start() {
    let time = Time::new("2026-11-30T10:04:11.987654321Z".parse().unwrap());
    assert_eq!(time.to_string(), "2026-11-30T10:04:11Z");
    let text = serde_json::to_value(time).unwrap();
    assert_eq!(serde_json::from_value::<Time>(text).unwrap(), time);
    assert!(serde_json::from_value::<Time>(json!("yesterday")).is_err());
}

#[test]
fn nodes_are_summed_up_for_the_table() {
    assert_eq!(NodesStatus::new(1, 2).summary, "1/2");
}
