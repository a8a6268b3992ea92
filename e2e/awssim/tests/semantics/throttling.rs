//! Token buckets and permissions.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::Lab;

async fn throttled() -> Lab {
    let lab = Lab::start().await;
    lab.control("POST", "config", json!({"throttling": true})).await;
    lab
}

#[tokio::test]
async fn launches_come_five_at_once_and_then_two_a_second() {
    let lab = throttled().await;
    let begin = Instant::now();
    let mut launched = 0;
    while launched < 8 {
        match lab.launch(&[]).await.code().as_str() {
            "OK" => launched += 1,
            code => assert_eq!(code, "RequestLimitExceeded"),
        }
    }
    // Three more than the bucket holds take a second and a half.
    assert!(begin.elapsed() >= Duration::from_millis(1500), "{:?}", begin.elapsed());
    assert_eq!(lab.ever("instance").await, 8);
    let counts = lab.control("GET", "calls", json!(null)).await;
    assert_eq!(counts["RunInstances"]["OK"], 8);
}

#[tokio::test]
async fn a_launch_takes_as_many_resource_tokens_as_it_may_launch() {
    let lab = throttled().await;
    let launch = async |count: &str| {
        lab.launch(&[("MinCount", count), ("MaxCount", count), ("InstanceType", "t3.micro")]).await
    };
    assert_eq!(launch("900").await.code(), "OK");
    let refused = launch("900").await;
    assert_eq!((refused.status, refused.code().as_str()), (503, "RequestLimitExceeded"));
    assert_eq!(launch("50").await.code(), "OK");
}

#[tokio::test]
async fn buckets_belong_to_an_account() {
    let lab = throttled().await;
    for _ in 0..6 {
        lab.launch(&[]).await;
    }
    let other = lab.other("AKIAOTHER");
    assert_eq!(other.launch(&[]).await.code(), "OK");
}

#[tokio::test]
async fn a_denied_permission_is_named_and_dependants_count() {
    let lab = Lab::start().await;
    let profile = ("IamInstanceProfile.Name", "hpcops-node");
    let tag =
        [("TagSpecification.1.ResourceType", "instance"), ("TagSpecification.1.Tag.1.Key", "a")];
    let deny = async |action: &str| lab.control("POST", "deny", json!({"actions": [action]})).await;
    deny("iam:PassRole").await;
    let refused = lab.launch(&[profile]).await;
    assert_eq!((refused.status, refused.code().as_str()), (403, "UnauthorizedOperation"));
    assert!(refused.body.contains("iam:PassRole"), "{}", refused.body);
    assert_eq!(lab.launch(&[]).await.code(), "OK");
    deny("ec2:CreateTags").await;
    assert_eq!(lab.launch(&tag).await.code(), "UnauthorizedOperation");
    deny("ssm:PutParameter").await;
    let put = lab.ssm("PutParameter", json!({"Name": "/a", "Value": "b", "Type": "String"})).await;
    assert_eq!(put.code(), "AccessDeniedException");
    lab.control("POST", "deny", json!({"actions": []})).await;
    assert_eq!(lab.launch(&tag).await.code(), "OK");
}
