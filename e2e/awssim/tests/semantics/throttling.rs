//! Token buckets and permissions.

use serde_json::json;

use crate::lab::Lab;

async fn throttled() -> Lab {
    let lab = Lab::start().await;
    lab.control("POST", "config", json!({"throttling": true})).await;
    lab
}

#[tokio::test]
async fn the_sixth_launch_at_once_is_throttled_and_has_no_effect() {
    let lab = throttled().await;
    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(lab.launch(&[]).await.code());
    }
    assert_eq!(codes.iter().filter(|code| *code == "OK").count(), 5, "{codes:?}");
    assert_eq!(codes.last().unwrap(), "RequestLimitExceeded");
    assert_eq!(lab.ever("instance").await, 5);
    let counts = lab.control("GET", "calls", json!(null)).await;
    assert_eq!(counts["RunInstances"], json!({"OK": 5, "RequestLimitExceeded": 1}));
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
