//! Life cycles and eventual consistency.

use serde_json::{Value, json};

use crate::lab::{Lab, SUBNET};

const NEVER: f64 = 3600.0;

#[tokio::test]
async fn an_instance_goes_from_pending_to_terminated_and_takes_its_own_along() {
    let lab = Lab::start().await;
    lab.delays(json!({"Running": 0.05, "Terminated": 0.05})).await;
    let launched = lab.launch(&[]).await;
    let id = launched.first("instanceId");
    assert_eq!(launched.first("name"), "pending");
    lab.until("it runs", async || lab.state(&id).await == "running").await;
    let ended = lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    assert_eq!(ended.all("name"), ["shutting-down", "running"]);
    lab.until("it is gone", async || lab.state(&id).await == "terminated").await;
    for kind in ["instance", "network-interface", "volume"] {
        assert_eq!(lab.living(kind).await, Vec::<String>::new(), "{kind}");
        assert_eq!(lab.ever(kind).await, 1, "{kind}");
    }
    let again = lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    assert_eq!(again.code(), "OK");
}

#[tokio::test]
async fn one_bad_id_terminates_none() {
    let lab = Lab::start().await;
    let id = lab.launch(&[]).await.first("instanceId");
    for (bad, code) in [
        ("i-00000000000000000", "InvalidInstanceID.NotFound"),
        ("i-nonsense", "InvalidInstanceID.Malformed"),
    ] {
        let parameters = [("InstanceId.1", id.as_str()), ("InstanceId.2", bad)];
        assert_eq!(lab.ec2("TerminateInstances", &parameters).await.code(), code);
    }
    lab.until("it runs", async || lab.state(&id).await == "running").await;
}

#[tokio::test]
async fn a_new_instance_can_be_invisible_and_unnameable_and_without_address() {
    let lab = Lab::start().await;
    let by_token = [("Filter.1.Name", "client-token"), ("Filter.1.Value.1", "t")];
    lab.delays(json!({"Visible": NEVER, "Usable": NEVER})).await;
    let hidden = lab.launch(&[("ClientToken", "t")]).await.first("instanceId");
    let by_id = [("InstanceId.1", hidden.as_str())];
    assert_eq!(lab.ec2("DescribeInstances", &by_id).await.code(), "InvalidInstanceID.NotFound");
    assert_eq!(lab.ec2("TerminateInstances", &by_id).await.code(), "InvalidInstanceID.NotFound");
    let listed = lab.ec2("DescribeInstances", &by_token).await;
    assert_eq!(listed.all("instanceId"), Vec::<String>::new());
    assert_eq!(lab.living("instance").await, [hidden]);
    lab.delays(json!({"Address": NEVER})).await;
    let shown = lab.launch(&[]).await.first("instanceId");
    let row = lab.ec2("DescribeInstances", &[("InstanceId.1", &shown)]).await;
    let instance = row.body.split("<networkInterfaceSet>").next().unwrap();
    assert!(!instance.contains("<privateIpAddress>"), "{instance}");
}

#[tokio::test]
async fn new_groups_placement_groups_and_rules_count_late() {
    let lab = Lab::start().await;
    lab.delays(json!({"Usable": NEVER})).await;
    let group = lab.group("late").await;
    let answer = lab
        .ec2(
            "AuthorizeSecurityGroupIngress",
            &[
                ("GroupId", group.as_str()),
                ("IpPermissions.1.IpProtocol", "-1"),
                ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/8"),
            ],
        )
        .await;
    assert_eq!(answer.code(), "InvalidGroup.NotFound");
    lab.ec2("CreatePlacementGroup", &[("GroupName", "pg")]).await;
    let unknown = "InvalidPlacementGroup.Unknown";
    assert_eq!(lab.launch(&[("Placement.GroupName", "pg")]).await.code(), unknown);
    let named = lab.ec2("DescribePlacementGroups", &[("GroupName.1", "pg")]).await;
    assert_eq!(named.code(), unknown);
    let filter = [("Filter.1.Name", "group-name"), ("Filter.1.Value.1", "pg")];
    let filtered = lab.ec2("DescribePlacementGroups", &filter).await;
    assert_eq!((filtered.code().as_str(), filtered.all("groupName").len()), ("OK", 0));
    lab.delays(json!({"RuleVisible": NEVER})).await;
    let group = lab.open_group("closed-yet").await;
    let refused = lab.fsx("CreateFileSystem", scratch(&group)).await;
    assert_eq!(refused.code(), "InvalidNetworkSettings");
}

fn scratch(group: &str) -> Value {
    json!({
        "FileSystemType": "LUSTRE", "StorageCapacity": 1200, "SubnetIds": [SUBNET],
        "SecurityGroupIds": [group], "FileSystemTypeVersion": "2.15",
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    })
}

#[tokio::test]
async fn a_launch_can_fail_after_its_answer_and_says_why() {
    let lab = Lab::start().await;
    let failure = json!({
        "type": "c5n.18xlarge",
        "failAfterLaunch": {"count": 1, "code": "Server.InsufficientInstanceCapacity", "message": "none left"},
    });
    lab.control("POST", "capacity", failure).await;
    let id = lab.launch(&[]).await.first("instanceId");
    lab.until("it fails", async || lab.state(&id).await == "terminated").await;
    let row = lab.ec2("DescribeInstances", &[("InstanceId.1", &id)]).await;
    assert!(row.body.contains("Server.InsufficientInstanceCapacity"), "{}", row.body);
    let next = lab.launch(&[]).await.first("instanceId");
    lab.until("the next one runs", async || lab.state(&next).await == "running").await;
}

#[tokio::test]
async fn status_checks_and_events_are_told_of_running_instances_and_can_be_filtered() {
    let lab = Lab::start().await;
    let id = lab.launch(&[]).await.first("instanceId");
    lab.until("it runs", async || lab.state(&id).await == "running").await;
    let event =
        json!({"code": "instance-retirement", "description": "old hardware", "inSeconds": 60});
    let health = |impaired: bool, event: Value| json!({"impaired": impaired, "event": event});
    for (change, expected) in [
        (health(false, Value::Null), [0, 0]),
        (health(true, Value::Null), [1, 0]),
        (health(true, event.clone()), [1, 1]),
        (health(false, event), [0, 1]),
    ] {
        lab.control("POST", &format!("instances/{id}/health"), change).await;
        let filters =
            [("instance-status.status", "impaired"), ("event.code", "instance-retirement")];
        for ((name, value), count) in filters.into_iter().zip(expected) {
            let filter = [("Filter.1.Name", name), ("Filter.1.Value.1", value)];
            let answer = lab.ec2("DescribeInstanceStatus", &filter).await;
            assert_eq!(answer.all("instanceId").len(), count, "{name}: {}", answer.body);
            assert_eq!(answer.all("notBefore").len(), count * expected[1], "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn an_agent_registers_only_with_a_profile_and_when_nothing_forbids_it() {
    let lab = Lab::start().await;
    let profile = ("IamInstanceProfile.Name", "hpcops-node");
    let with = lab.launch(&[profile]).await.first("instanceId");
    let without = lab.launch(&[]).await.first("instanceId");
    lab.control("POST", "config", json!({"agents": false})).await;
    let barred = lab.launch(&[profile]).await.first("instanceId");
    let online = async || {
        let answer = lab.ssm("DescribeInstanceInformation", json!({})).await.value();
        let rows = answer["InstanceInformationList"].as_array().unwrap().clone();
        let ping = |row: &Value| (row["InstanceId"].clone(), row["PingStatus"].clone());
        rows.iter().map(ping).collect::<Vec<_>>()
    };
    let running = async || {
        let mut all = true;
        for id in [&with, &without, &barred] {
            all &= lab.state(id).await == "running";
        }
        all
    };
    lab.until("all run", running).await;
    lab.until("one agent is online", async || online().await == [(json!(with), json!("Online"))])
        .await;
    lab.control("POST", &format!("instances/{with}/agent"), json!({"agent": "lost"})).await;
    assert_eq!(online().await, [(json!(with), json!("ConnectionLost"))]);
    lab.control("POST", &format!("instances/{with}/fail"), json!({})).await;
    assert_eq!(online().await, []);
}
