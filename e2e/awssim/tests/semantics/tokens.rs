//! Client tokens: replay, mismatch, zones, and the end.

use serde_json::json;

use crate::lab::{Lab, OTHER_SUBNET, SUBNET};

#[tokio::test]
async fn the_same_launch_twice_is_one_launch() {
    let lab = Lab::start().await;
    let token = [("ClientToken", "t-1"), ("MaxCount", "3")];
    let first = lab.launch(&token).await;
    let again = lab.launch(&token).await;
    assert_eq!(first.all("instanceId"), again.all("instanceId"));
    assert_eq!(first.first("reservationId"), again.first("reservationId"));
    assert_eq!(lab.ever("instance").await, 3);
}

#[tokio::test]
async fn a_token_with_other_parameters_is_a_mismatch_and_in_another_zone_a_launch() {
    let lab = Lab::start().await;
    assert_eq!(lab.launch(&[("ClientToken", "t")]).await.code(), "OK");
    for other in [("MaxCount", "2"), ("InstanceType", "c5n.9xlarge"), ("UserData", "YQ==")] {
        let answer = lab.launch(&[("ClientToken", "t"), other]).await;
        assert_eq!(answer.code(), "IdempotentParameterMismatch", "{other:?}");
    }
    assert_eq!(lab.ever("instance").await, 1);
    let elsewhere = lab.launch(&[("ClientToken", "t"), ("SubnetId", OTHER_SUBNET)]).await;
    assert_eq!(elsewhere.code(), "OK");
    assert_eq!(lab.ever("instance").await, 2);
}

#[tokio::test]
async fn a_token_is_spent_when_its_instance_is_terminated() {
    let lab = Lab::start().await;
    let id = lab.launch(&[("ClientToken", "t")]).await.first("instanceId");
    lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    let again = lab.launch(&[("ClientToken", "t")]).await;
    assert_eq!(again.code(), "IdempotentInstanceTerminated");
    assert_eq!(lab.ever("instance").await, 1);
}

#[tokio::test]
async fn a_token_is_not_spent_by_a_failed_launch() {
    let lab = Lab::start().await;
    lab.control("POST", "capacity", json!({"type": "c5n.18xlarge", "free": 0})).await;
    let refused = lab.launch(&[("ClientToken", "t")]).await;
    assert_eq!((refused.status, refused.code().as_str()), (500, "InsufficientInstanceCapacity"));
    lab.control("POST", "capacity", json!({"type": "c5n.18xlarge", "free": null})).await;
    assert_eq!(lab.launch(&[("ClientToken", "t")]).await.code(), "OK");
}

#[tokio::test]
async fn tokens_of_interfaces_and_volumes_replay_and_mismatch() {
    let lab = Lab::start().await;
    for (action, kind, id, base, other) in [
        (
            "CreateNetworkInterface",
            "network-interface",
            "networkInterfaceId",
            vec![("SubnetId", SUBNET)],
            ("Description", "other"),
        ),
        (
            "CreateVolume",
            "volume",
            "volumeId",
            vec![("AvailabilityZone", "us-east-1a"), ("Size", "5")],
            ("VolumeType", "gp3"),
        ),
    ] {
        let mut parameters = base;
        parameters.push(("ClientToken", "t"));
        let first = lab.ec2(action, &parameters).await;
        let again = lab.ec2(action, &parameters).await;
        assert_eq!(first.first(id), again.first(id));
        parameters.push(other);
        let mismatch = lab.ec2(action, &parameters).await;
        assert_eq!(mismatch.code(), "IdempotentParameterMismatch", "{action}");
        assert_eq!(lab.ever(kind).await, 1);
    }
}

#[tokio::test]
async fn a_token_too_long_is_refused() {
    let lab = Lab::start().await;
    let answer = lab.launch(&[("ClientToken", &"x".repeat(65))]).await;
    assert_eq!(answer.code(), "InvalidClientToken");
}
