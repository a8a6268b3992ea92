//! The control API itself.

use serde_json::json;

use crate::lab::Lab;

#[tokio::test]
async fn a_reset_forgets_one_account_only() {
    let lab = Lab::start().await;
    let other = lab.other("AKIAOTHER");
    lab.group("mine").await;
    other.group("theirs").await;
    lab.control("POST", "reset", json!({})).await;
    assert_eq!(lab.ever("security-group").await, 0);
    assert_eq!(other.ever("security-group").await, 1);
    let all = lab.ec2("DescribeSecurityGroups", &[]).await;
    assert_eq!(all.all("groupName"), ["default"]);
}

#[tokio::test]
async fn what_the_control_api_does_not_know_is_refused() {
    let lab = Lab::start().await;
    for (method, path, body, expected) in [
        ("GET", "nothing", json!(null), 404),
        ("POST", "config", json!({"colour": "red"}), 400),
        ("POST", "config", json!({"delays": {"Colour": [0, 0]}}), 400),
        ("POST", "quota", json!({"name": "colour", "value": 1}), 400),
        ("POST", "faults", json!({"action": "X"}), 400),
        ("POST", "fsx", json!({"id": "fs-1", "message": "x"}), 404),
        ("POST", "release", json!({"id": 1, "then": "drop"}), 404),
        ("POST", "instances/i-1/fail", json!({}), 404),
        ("POST", "account", json!({"accessKey": "a", "accountId": "1"}), 400),
    ] {
        let (status, _) = lab.try_control(method, path, body).await;
        assert_eq!(status, expected, "{method} {path}");
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_ids() {
    let (one, two) = (Lab::start().await, Lab::start().await);
    assert_eq!(one.group("a").await, two.group("a").await);
    assert_ne!(one.group("b").await, two.other("AKIAOTHER").group("b").await);
}
