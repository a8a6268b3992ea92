//! Volumes and their attachment.

use serde_json::json;

use crate::lab::{Lab, OTHER_SUBNET};

#[tokio::test]
async fn a_volume_attaches_to_a_running_instance_of_its_zone() {
    let lab = Lab::start().await;
    let parameters = [("AvailabilityZone", "us-east-1a"), ("Size", "5"), ("VolumeType", "gp3")];
    let volume = lab.ec2("CreateVolume", &parameters).await.first("volumeId");
    lab.delays(json!({"Running": 3600.0})).await;
    let pending = lab.launch(&[]).await.first("instanceId");
    lab.delays(json!({})).await;
    let elsewhere = lab.launch(&[("SubnetId", OTHER_SUBNET)]).await.first("instanceId");
    let here = lab.launch(&[]).await.first("instanceId");
    let attach = async |instance: &str, device: &str| {
        let asked = [("VolumeId", volume.as_str()), ("InstanceId", instance), ("Device", device)];
        lab.ec2("AttachVolume", &asked).await.code()
    };
    lab.until("it runs", async || lab.state(&here).await == "running").await;
    assert_eq!(attach(&pending, "/dev/sdf").await, "IncorrectState");
    assert_eq!(attach(&elsewhere, "/dev/sdf").await, "InvalidVolume.ZoneMismatch");
    assert_eq!(attach(&here, "/dev/xvda").await, "InvalidParameterValue");
    assert_eq!(attach(&here, "/dev/sdf").await, "OK");
    assert_eq!(attach(&here, "/dev/sdg").await, "VolumeInUse");
    let delete = async || lab.ec2("DeleteVolume", &[("VolumeId", &volume)]).await.code();
    assert_eq!(delete().await, "VolumeInUse");
    lab.ec2("TerminateInstances", &[("InstanceId.1", &here)]).await;
    lab.until("it is gone", async || lab.state(&here).await == "terminated").await;
    assert!(lab.living("volume").await.contains(&volume));
    assert_eq!(delete().await, "OK");
    assert_eq!(delete().await, "InvalidVolume.NotFound");
}

#[tokio::test]
async fn volumes_are_checked_when_made() {
    let lab = Lab::start().await;
    let zone = ("AvailabilityZone", "us-east-1a");
    for (parameters, expected) in [
        (vec![zone], "MissingParameter"),
        (vec![zone, ("Size", "0")], "InvalidParameterValue"),
        (vec![zone, ("Size", "5"), ("VolumeType", "gp9")], "UnknownVolumeType"),
        (vec![zone, ("Size", "5"), ("Throughput", "125")], "InvalidParameterCombination"),
        (vec![("AvailabilityZone", "us-east-1z"), ("Size", "5")], "InvalidZone.NotFound"),
    ] {
        assert_eq!(lab.ec2("CreateVolume", &parameters).await.code(), expected, "{parameters:?}");
    }
}
