//! Faults: errors, broken connections, parked calls.

use serde_json::{Value, json};

use crate::lab::{Lab, ROLE};

fn group(name: &str) -> Vec<(String, String)> {
    [
        ("GroupName", name),
        ("GroupDescription", name),
        ("TagSpecification.1.ResourceType", "security-group"),
        ("TagSpecification.1.Tag.1.Key", ROLE),
        ("TagSpecification.1.Tag.1.Value", "nodes"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .to_vec()
}

/// Creates a group; `None` when the connection broke.
async fn create(lab: &Lab, name: &str) -> Option<String> {
    let parameters = group(name);
    let pairs: Vec<(&str, &str)> =
        parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let answer = lab.client("ec2").try_query("CreateSecurityGroup", &pairs).await;
    answer.map(|answer| answer.code())
}

async fn arm(lab: &Lab, kind: Value) {
    let fault = json!({"action": "CreateSecurityGroup", "kind": kind});
    lab.control("POST", "faults", fault).await;
}

#[tokio::test]
async fn an_error_fault_answers_once_and_has_no_effect() {
    let lab = Lab::start().await;
    arm(&lab, json!({"error": {"status": 500, "code": "InternalError", "message": "x"}})).await;
    assert_eq!(create(&lab, "a").await.as_deref(), Some("InternalError"));
    assert_eq!(lab.ever("security-group").await, 0);
    assert_eq!(create(&lab, "a").await.as_deref(), Some("OK"));
}

#[tokio::test]
async fn a_dropped_call_has_its_effect_or_not_as_asked() {
    for (when, expected) in [("before", 0), ("after", 1)] {
        let lab = Lab::start().await;
        arm(&lab, json!({"drop": {"when": when}})).await;
        assert_eq!(create(&lab, "a").await, None);
        assert_eq!(lab.ever("security-group").await, expected, "{when}");
    }
}

#[tokio::test]
async fn a_held_call_waits_on_the_asked_side_of_its_effect_until_it_is_released() {
    for (when, effect_while_held, then, answer, effect_at_end) in [
        ("before", 0, "continue", Some("OK"), 1),
        ("before", 0, "drop", None, 0),
        ("after", 1, "continue", Some("OK"), 1),
        ("after", 1, "drop", None, 1),
    ] {
        let lab = Lab::start().await;
        arm(&lab, json!({"hold": {"when": when}})).await;
        let caller = tokio::spawn({
            let lab = lab.clone();
            async move { create(&lab, "a").await }
        });
        let held = async || lab.control("GET", "held", json!(null)).await;
        lab.until("it is held", async || held().await.as_array().unwrap().len() == 1).await;
        let call = held().await[0].clone();
        assert_eq!(
            (&call["action"], &call["role"], &call["occurrence"], &call["when"]),
            (&json!("CreateSecurityGroup"), &json!("nodes"), &json!(1), &json!(when))
        );
        assert_eq!(lab.ever("security-group").await, effect_while_held, "{when}");
        let release = json!({"id": call["id"], "then": then});
        lab.control("POST", "release", release).await;
        assert_eq!(caller.await.unwrap().as_deref(), answer, "{when} {then}");
        assert_eq!(lab.ever("security-group").await, effect_at_end, "{when} {then}");
    }
}

#[tokio::test]
async fn a_held_call_survives_its_caller() {
    let lab = Lab::start().await;
    arm(&lab, json!({"hold": {"when": "before"}})).await;
    let caller = tokio::spawn({
        let lab = lab.clone();
        async move { create(&lab, "a").await }
    });
    let held = async || lab.control("GET", "held", json!(null)).await;
    lab.until("it is held", async || held().await.as_array().unwrap().len() == 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    let id = held().await[0]["id"].clone();
    lab.control("POST", "release", json!({"id": id, "then": "continue"})).await;
    lab.until("it has its effect", async || lab.ever("security-group").await == 1).await;
}

#[tokio::test]
async fn the_log_names_calls_by_action_role_and_number_of_successes_before() {
    let lab = Lab::start().await;
    arm(&lab, json!({"error": {"status": 500, "code": "InternalError"}})).await;
    for name in ["a", "a", "b"] {
        create(&lab, name).await;
    }
    let groups = lab.living("security-group").await;
    for group in &groups {
        lab.ec2("DeleteSecurityGroup", &[("GroupId", group)]).await;
    }
    let log = lab.control("GET", "calls/log", json!(null)).await;
    let rows: Vec<String> = log
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["mutating"] == true)
        .map(|row| {
            format!("{} {} {} {}", row["action"], row["role"], row["occurrence"], row["code"])
                .replace('"', "")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "CreateSecurityGroup nodes 1 InternalError",
            "CreateSecurityGroup nodes 1 OK",
            "CreateSecurityGroup nodes 2 OK",
            "DeleteSecurityGroup nodes 1 OK",
            "DeleteSecurityGroup nodes 2 OK",
        ]
    );
}

#[tokio::test]
async fn a_fault_can_name_role_and_occurrence() {
    let lab = Lab::start().await;
    let fault = json!({
        "action": "CreateSecurityGroup", "role": "nodes", "occurrence": 2,
        "kind": {"error": {"status": 400, "code": "Struck"}},
    });
    lab.control("POST", "faults", fault).await;
    assert_eq!(lab.group("untagged").await.len(), 20);
    assert_eq!(create(&lab, "a").await.as_deref(), Some("OK"));
    assert_eq!(create(&lab, "b").await.as_deref(), Some("Struck"));
    assert_eq!(create(&lab, "b").await.as_deref(), Some("OK"));
}
