//! What the host may ask of the simulator on behalf of a body.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::bodies::embodied;
use crate::lab::{Lab, SUBNET};

async fn launch(lab: &Lab, group: &str, more: &[(&str, &str)]) -> (String, IpAddr) {
    let mut parameters = vec![
        ("SecurityGroupId.1", group),
        ("IamInstanceProfile.Name", "hpcops-node"),
        ("MetadataOptions.InstanceMetadataTags", "enabled"),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "hpcops.dev:role"),
        ("TagSpecification.1.Tag.1.Value", "head"),
    ];
    parameters.extend_from_slice(more);
    let answer = lab.launch(&parameters).await;
    let id = answer.first("instanceId");
    lab.until("it runs", async || lab.state(&id).await == "running").await;
    (id, answer.first("privateIpAddress").parse().unwrap())
}

async fn file_system(lab: &Lab, group: &str) -> Value {
    let request = json!({
        "FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [SUBNET],
        "SecurityGroupIds": [group], "FileSystemTypeVersion": "2.15",
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    });
    lab.fsx("CreateFileSystem", request).await.value()["FileSystem"].clone()
}

async fn allow(lab: &Lab, action: &str, group: &str, peer: &str) {
    let rule = [
        ("GroupId", group),
        ("IpPermissions.1.IpProtocol", "-1"),
        ("IpPermissions.1.Groups.1.GroupId", peer),
    ];
    assert_eq!(lab.ec2(action, &rule).await.code(), "OK");
}

#[tokio::test]
async fn lustre_mounts_when_it_is_available_and_its_ports_are_open_both_ways() {
    let (lab, view) = embodied().await;
    let (servers, clients) = (lab.open_group("servers").await, lab.open_group("clients").await);
    let fs = file_system(&lab, &servers).await;
    let (id, dns) = (fs["FileSystemId"].as_str().unwrap(), fs["DNSName"].as_str().unwrap());
    let name = fs["LustreConfiguration"]["MountName"].as_str().unwrap();
    let (instance, _) = launch(&lab, &clients, &[]).await;
    let refusal = |dns: &str, name: &str| match view.may_mount_lustre(&instance, dns, name) {
        Ok(found) => format!("mounted {}", found.file_system_id),
        Err(why) => why,
    };
    assert!(refusal(dns, name).contains("CREATING"), "{}", refusal(dns, name));
    let available = async || {
        let request = json!({"FileSystemIds": [id]});
        let shown = lab.fsx("DescribeFileSystems", request).await.value();
        shown["FileSystems"][0]["Lifecycle"] == "AVAILABLE"
    };
    lab.until("it is available", available).await;
    assert!(refusal(dns, name).contains("TCP 988"), "{}", refusal(dns, name));
    allow(&lab, "AuthorizeSecurityGroupIngress", &servers, &clients).await;
    assert!(refusal(dns, name).contains("closed"), "the way back is closed");
    allow(&lab, "AuthorizeSecurityGroupIngress", &clients, &servers).await;
    assert_eq!(refusal(dns, name), format!("mounted {id}"));
    assert!(refusal(dns, "other").contains("no file system called other"));
    assert!(refusal("fs-0.fsx.us-east-1.amazonaws.com", name).contains("does not resolve"));
    let folder = view.may_mount_lustre(&instance, dns, name).unwrap().path;
    assert!(folder.is_dir());
    lab.fsx("DeleteFileSystem", json!({"FileSystemId": id})).await;
    lab.until("its data is gone", async || !folder.exists()).await;
}

#[tokio::test]
async fn nfs_mounts_from_a_running_server_whose_group_lets_the_client_in() {
    let (lab, view) = embodied().await;
    let (heads, nodes) = (lab.group("heads").await, lab.group("nodes").await);
    let (head, address) = launch(&lab, &heads, &[]).await;
    let (node, _) = launch(&lab, &nodes, &[]).await;
    let closed = view.may_mount_nfs(&node, address).unwrap_err();
    assert!(closed.contains("2049"), "{closed}");
    allow(&lab, "AuthorizeSecurityGroupIngress", &heads, &nodes).await;
    assert_eq!(view.may_mount_nfs(&node, address).unwrap(), head);
    let nobody = view.may_mount_nfs(&node, "10.0.0.250".parse().unwrap()).unwrap_err();
    assert!(nobody.contains("No route"), "{nobody}");
}

#[tokio::test]
async fn the_metadata_of_an_instance_is_its_own() {
    let (lab, view) = embodied().await;
    let group = lab.group("g").await;
    let (id, address) = launch(&lab, &group, &[("UserData", "aGVsbG8=")]).await;
    let get = |path: &str| view.imds(&id, path).unwrap_or_else(|| "404".to_owned());
    let meta = |path: &str| get(&format!("latest/meta-data/{path}"));
    for (path, expected) in [
        ("instance-id", id.as_str()),
        ("ami-launch-index", "0"),
        ("local-ipv4", &address.to_string()),
        ("placement/region", "us-east-1"),
        ("placement/availability-zone-id", "use1-az6"),
        ("iam/security-credentials/", "hpcops-node"),
        ("tags/instance/hpcops.dev:role", "head"),
        ("spot/instance-action", "404"),
    ] {
        assert_eq!(meta(path), expected, "{path}");
    }
    assert_eq!(get("latest/user-data"), "hello");
    assert!(meta("").contains("placement/"), "{}", meta(""));
    let role: Value = serde_json::from_str(&meta("iam/security-credentials/hpcops-node")).unwrap();
    let mut node = lab.client("ssm");
    node.key = role["AccessKeyId"].as_str().unwrap().to_owned();
    let put = json!({"Name": "/hpcops/u/demand", "Value": "{}", "Type": "String"});
    assert_eq!(node.json("PutParameter", put).await.code(), "OK");
    assert_eq!(lab.living("parameter").await, ["/hpcops/u/demand"]);
    let by_nodes = lab.control("GET", "calls?caller=instance", json!(null)).await;
    assert_eq!(by_nodes, json!({"PutParameter": {"OK": 1}}));
}

#[tokio::test]
async fn a_volume_keeps_its_blocks_from_instance_to_instance() {
    let (lab, view) = embodied().await;
    let group = lab.group("g").await;
    let asked = [("AvailabilityZone", "us-east-1a"), ("Size", "3")];
    let volume = lab.ec2("CreateVolume", &asked).await.first("volumeId");
    let attached = async |instance: &str| {
        let asked =
            [("VolumeId", volume.as_str()), ("InstanceId", instance), ("Device", "/dev/sdf")];
        assert_eq!(lab.ec2("AttachVolume", &asked).await.code(), "OK");
        view.volumes(instance).into_iter().find(|v| !v.is_root).unwrap()
    };
    let (first, _) = launch(&lab, &group, &[]).await;
    let before = attached(&first).await;
    assert_eq!((before.device.as_str(), before.size_gib), ("/dev/sdf", 3));
    assert_eq!(before.backing_file.metadata().unwrap().len(), 3 << 30);
    lab.ec2("DetachVolume", &[("VolumeId", &volume)]).await;
    assert!(view.volumes(&first).iter().all(|v| v.is_root));
    let (second, _) = launch(&lab, &group, &[]).await;
    assert_eq!(attached(&second).await.backing_file, before.backing_file);
    lab.ec2("DetachVolume", &[("VolumeId", &volume)]).await;
    lab.ec2("DeleteVolume", &[("VolumeId", &volume)]).await;
    lab.until("its blocks are gone", async || !before.backing_file.exists()).await;
}

#[tokio::test]
async fn a_shutdown_terminates_or_stops_as_the_launch_said() {
    let (lab, view) = embodied().await;
    let group = lab.group("g").await;
    for (behaviour, expected) in [("terminate", "terminated"), ("stop", "stopped")] {
        let asked = [("InstanceInitiatedShutdownBehavior", behaviour)];
        let (id, _) = launch(&lab, &group, &asked).await;
        view.shutdown(&id);
        lab.until(expected, async || lab.state(&id).await == expected).await;
        let row = lab.ec2("DescribeInstances", &[("InstanceId.1", &id)]).await;
        assert!(row.body.contains("Client.InstanceInitiatedShutdown"), "{}", row.body);
    }
}
