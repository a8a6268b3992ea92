//! What is not a call, and what the simulator does not have.

use serde_json::json;

use crate::lab::{Lab, http};

#[tokio::test]
async fn unknown_actions_and_parameters_are_refused_and_never_a_server_error() {
    let lab = Lab::start().await;
    let client = |service| lab.client(service);
    let query = async |service, action: &str, parameters: &[(&str, &str)]| {
        let answer = client(service).query(action, parameters).await;
        assert!(answer.status < 500, "{}", answer.body);
        answer.code()
    };
    assert_eq!(query("ec2", "CreateFleet", &[]).await, "InvalidAction");
    assert_eq!(query("sts", "AssumeRole", &[]).await, "InvalidAction");
    for (action, parameter) in [
        ("DescribeInstances", "InstanceIds.1"),
        ("DescribeVpcs", "Filter.1.Nmae"),
        ("RunInstances", "NetworkInterface.1.InterfaceTypo"),
        ("CreateSecurityGroup", "Colour"),
    ] {
        let mut parameters = vec![(parameter, "x")];
        if action == "CreateSecurityGroup" {
            parameters.extend([("GroupName", "a"), ("GroupDescription", "a")]);
        }
        if action == "DescribeVpcs" {
            parameters.extend([("Filter.1.Name", "vpc-id"), ("Filter.1.Value.1", "x")]);
        }
        if action == "RunInstances" {
            parameters.extend([("ImageId", "a"), ("InstanceType", "b")]);
            parameters.extend([("MinCount", "1"), ("MaxCount", "1")]);
        }
        assert_eq!(query("ec2", action, &parameters).await, "UnknownParameter", "{action}");
    }
    assert_eq!(lab.living("security-group").await.len(), 0);
    assert_eq!(lab.fsx("CreateBackup", json!({})).await.code(), "UnknownOperationException");
    assert_eq!(lab.ssm("StartSession", json!({})).await.code(), "UnknownOperationException");
    let unknown = lab.ssm("GetParameter", json!({"Name": "/a", "Nmae": 1})).await;
    assert_eq!(unknown.code(), "UnknownParameter");
    let wrong = lab.ssm("GetParameter", json!({"Name": 1})).await;
    assert_eq!(wrong.code(), "SerializationException");
}

#[tokio::test]
async fn a_request_without_signature_or_of_another_service_is_refused() {
    let lab = Lab::start().await;
    let bare = http(&lab.running.url, "POST", "/", &[], "Action=DescribeVpcs").await.unwrap();
    assert_eq!((bare.status, bare.code().as_str()), (403, "MissingAuthenticationToken"));
    let other = lab.client("s3").query("DescribeVpcs", &[]).await;
    assert_eq!(other.code(), "InvalidAction");
    let mut nowhere = lab.client("ec2");
    nowhere.region = "mars-north-1";
    assert_eq!(nowhere.query("DescribeVpcs", &[]).await.code(), "AuthFailure");
}

#[tokio::test]
async fn an_access_key_is_an_account_and_can_become_another() {
    let lab = Lab::start().await;
    let who = async |key: &str| {
        let mut client = lab.client("sts");
        client.key = key.to_owned();
        client.query("GetCallerIdentity", &[]).await.first("Account")
    };
    let (mine, other) = (who("AKIATEST").await, who("AKIAOTHER").await);
    assert_ne!(mine, other);
    assert_eq!(mine, who("AKIATEST").await);
    lab.group("seen").await;
    let moved = json!({"accessKey": "AKIATEST", "accountId": "999988887777"});
    lab.control("POST", "account", moved).await;
    assert_eq!(who("AKIATEST").await, "999988887777");
    let shown = lab.ec2("DescribeSecurityGroups", &[]).await;
    assert_eq!(shown.all("groupName"), ["default"]);
}

#[tokio::test]
async fn regions_have_networks_of_their_own() {
    let lab = Lab::start().await;
    lab.group("here").await;
    let mut there = lab.client("ec2");
    there.region = "eu-north-1";
    let zones = there.query("DescribeAvailabilityZones", &[]).await;
    assert_eq!(zones.all("zoneName"), ["eu-north-1a", "eu-north-1b", "eu-north-1c"]);
    let groups = there.query("DescribeSecurityGroups", &[]).await;
    assert_eq!(groups.all("groupName"), ["default"]);
}
