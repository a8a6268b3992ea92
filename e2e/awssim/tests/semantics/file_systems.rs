//! FSx for Lustre.

use serde_json::{Value, json};

use crate::lab::{Lab, SUBNET};

fn scratch(group: &str) -> Value {
    json!({
        "FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [SUBNET],
        "SecurityGroupIds": [group], "FileSystemTypeVersion": "2.15",
        "ClientRequestToken": "t", "Tags": [{"Key": "a", "Value": "b"}],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    })
}

async fn lifecycle(lab: &Lab, id: &str) -> String {
    let answer = lab.fsx("DescribeFileSystems", json!({"FileSystemIds": [id]})).await;
    match answer.code().as_str() {
        "OK" => answer.value()["FileSystems"][0]["Lifecycle"].as_str().unwrap().to_owned(),
        code => code.to_owned(),
    }
}

async fn create(lab: &Lab, group: &str) -> String {
    let made = lab.fsx("CreateFileSystem", scratch(group)).await.value();
    made["FileSystem"]["FileSystemId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_system_becomes_available_pins_its_group_and_goes() {
    let lab = Lab::start().await;
    let group = lab.open_group("lustre").await;
    lab.delays(json!({"FileSystem": 0.05, "FileSystemGone": 0.05})).await;
    let id = create(&lab, &group).await;
    assert_eq!(lifecycle(&lab, &id).await, "CREATING");
    let delete_group = async || lab.ec2("DeleteSecurityGroup", &[("GroupId", &group)]).await.code();
    assert_eq!(delete_group().await, "DependencyViolation");
    // 1200 GiB take 2.6 s longer than the base delay at scale 1.
    lab.until("it is there", async || lifecycle(&lab, &id).await == "AVAILABLE").await;
    let gone = lab.fsx("DeleteFileSystem", json!({"FileSystemId": id})).await;
    assert_eq!(gone.value()["Lifecycle"], "DELETING");
    assert_eq!(delete_group().await, "DependencyViolation");
    lab.until("it is gone", async || lab.living("file-system").await.is_empty()).await;
    assert_eq!(lifecycle(&lab, &id).await, "FileSystemNotFound");
    assert_eq!(lab.living("network-interface").await, Vec::<String>::new());
    assert_eq!(delete_group().await, "OK");
}

#[tokio::test]
async fn a_token_replays_or_is_incompatible() {
    let lab = Lab::start().await;
    let group = lab.open_group("lustre").await;
    let (first, again) = (create(&lab, &group).await, create(&lab, &group).await);
    assert_eq!(first, again);
    let mut other = scratch(&group);
    other["StorageCapacity"] = json!(2400);
    let answer = lab.fsx("CreateFileSystem", other).await;
    assert_eq!(answer.code(), "IncompatibleParameterError");
    assert_eq!(lab.ever("file-system").await, 1);
    let mut bad = scratch(&group);
    bad["ClientRequestToken"] = json!("a/b");
    assert_eq!(lab.fsx("CreateFileSystem", bad).await.code(), "BadRequest");
}

#[tokio::test]
async fn creation_is_refused_for_capacity_subnet_group_and_closed_ports() {
    let lab = Lab::start().await;
    let (open, closed) = (lab.open_group("open").await, lab.group("closed").await);
    let refused = async |change: &[(&str, Value)]| {
        let mut request = scratch(&open);
        for (pointer, value) in change {
            *request.pointer_mut(pointer).unwrap() = value.clone();
        }
        lab.fsx("CreateFileSystem", request).await.code()
    };
    let groups = |ids: &[&str]| ("/SecurityGroupIds", json!(ids));
    assert_eq!(refused(&[("/StorageCapacity", json!(3600))]).await, "BadRequest");
    assert_eq!(refused(&[("/SubnetIds", json!([SUBNET, SUBNET]))]).await, "BadRequest");
    assert_eq!(refused(&[("/SubnetIds", json!(["subnet-1"]))]).await, "InvalidNetworkSettings");
    assert_eq!(refused(&[groups(&["sg-1"])]).await, "InvalidNetworkSettings");
    assert_eq!(refused(&[groups(&[&closed])]).await, "InvalidNetworkSettings");
    assert_eq!(refused(&[("/FileSystemTypeVersion", json!("2.99"))]).await, "BadRequest");
    lab.control("POST", "quota", json!({"name": "file-systems", "value": 0})).await;
    assert_eq!(refused(&[]).await, "ServiceLimitExceeded");
    assert_eq!(lab.ever("network-interface").await, 0);
}

#[tokio::test]
async fn a_planned_failure_ends_as_failed_with_its_message() {
    let lab = Lab::start().await;
    let group = lab.open_group("lustre").await;
    lab.control("POST", "fsx", json!({"message": "no capacity in this zone"})).await;
    let id = create(&lab, &group).await;
    lab.until("it fails", async || lifecycle(&lab, &id).await == "FAILED").await;
    let shown = lab.fsx("DescribeFileSystems", json!({})).await.value();
    let message = &shown["FileSystems"][0]["FailureDetails"]["Message"];
    assert_eq!(message, "no capacity in this zone");
}

#[tokio::test]
async fn an_available_file_system_can_be_made_to_fail() {
    let lab = Lab::start().await;
    let group = lab.open_group("lustre").await;
    let id = create(&lab, &group).await;
    lab.until("it is there", async || lifecycle(&lab, &id).await == "AVAILABLE").await;
    lab.control("POST", "fsx", json!({"id": id, "message": "lost"})).await;
    assert_eq!(lifecycle(&lab, &id).await, "FAILED");
    assert_eq!(lab.living("file-system").await, [id]);
}
