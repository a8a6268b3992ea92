//! Counts, capacity, quotas, placement groups, listings.

use std::collections::BTreeSet;

use serde_json::json;

use crate::lab::{Lab, OTHER_SUBNET};

#[tokio::test]
async fn a_launch_gets_between_min_and_max_or_nothing() {
    for (free, min, max, expected) in [
        (3, "4", "4", Err("InsufficientInstanceCapacity")),
        (3, "1", "4", Ok(3)),
        (3, "3", "3", Ok(3)),
        (0, "1", "1", Err("InsufficientInstanceCapacity")),
    ] {
        let lab = Lab::start().await;
        lab.control("POST", "capacity", json!({"type": "c5n.18xlarge", "free": free})).await;
        let answer = lab.launch(&[("MinCount", min), ("MaxCount", max)]).await;
        let found = if answer.status == 200 {
            Ok(answer.all("instanceId").len())
        } else {
            Err(answer.code())
        };
        assert_eq!(found, expected.map_err(str::to_owned), "{free} {min} {max}");
        let ever = lab.ever("instance").await;
        assert_eq!(ever, expected.unwrap_or(0));
        assert_eq!(lab.ever("network-interface").await, ever);
    }
}

#[tokio::test]
async fn capacity_comes_back_when_an_instance_is_gone() {
    let lab = Lab::start().await;
    lab.control("POST", "capacity", json!({"type": "c5n.18xlarge", "free": 1})).await;
    let id = lab.launch(&[]).await.first("instanceId");
    assert_eq!(lab.launch(&[]).await.code(), "InsufficientInstanceCapacity");
    lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    lab.until("it is gone", async || lab.state(&id).await == "terminated").await;
    assert_eq!(lab.launch(&[]).await.code(), "OK");
}

#[tokio::test]
async fn launch_indexes_count_within_a_reservation() {
    let lab = Lab::start().await;
    let answer = lab.launch(&[("MinCount", "4"), ("MaxCount", "4")]).await;
    assert_eq!(answer.all("amiLaunchIndex"), ["0", "1", "2", "3"]);
    let addresses: BTreeSet<String> = answer.all("privateIpAddress").into_iter().collect();
    assert_eq!(addresses.len(), 4);
}

#[tokio::test]
async fn the_vcpu_quota_counts_what_lives_and_what_is_asked() {
    let lab = Lab::start().await;
    lab.control("POST", "quota", json!({"name": "vcpu:standard", "value": 100})).await;
    assert_eq!(
        lab.launch(&[("MinCount", "2"), ("MaxCount", "2")]).await.code(),
        "VcpuLimitExceeded"
    );
    assert_eq!(lab.launch(&[]).await.code(), "OK");
    assert_eq!(lab.launch(&[]).await.code(), "VcpuLimitExceeded");
    assert_eq!(lab.launch(&[("InstanceType", "t3.micro")]).await.code(), "OK");
}

#[tokio::test]
async fn a_cluster_placement_group_stays_in_the_zone_of_its_instances() {
    let lab = Lab::start().await;
    let group = [("GroupName", "pg"), ("Strategy", "cluster")];
    assert_eq!(lab.ec2("CreatePlacementGroup", &group).await.code(), "OK");
    let duplicate = lab.ec2("CreatePlacementGroup", &group).await;
    assert_eq!(duplicate.code(), "InvalidPlacementGroup.Duplicate");
    let here = [("Placement.GroupName", "pg")];
    let id = lab.launch(&here).await.first("instanceId");
    let there = lab.launch(&[here[0], ("SubnetId", OTHER_SUBNET)]).await;
    assert_eq!(there.code(), "InvalidPlacementGroup.InUse");
    assert!(there.body.contains("us-east-1a"), "{}", there.body);
    let busy = lab.ec2("DeletePlacementGroup", &group[..1]).await;
    assert_eq!(busy.code(), "InvalidPlacementGroup.InUse");
    lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    lab.until("it is gone", async || lab.state(&id).await == "terminated").await;
    assert_eq!(lab.ec2("DeletePlacementGroup", &group[..1]).await.code(), "OK");
    let again = lab.ec2("DeletePlacementGroup", &group[..1]).await;
    assert_eq!(again.code(), "InvalidPlacementGroup.Unknown");
    assert_eq!(lab.launch(&here).await.code(), "InvalidPlacementGroup.Unknown");
}

#[tokio::test]
async fn listings_are_paged_in_an_order_of_their_own_and_lose_nothing() {
    let lab = Lab::start().await;
    lab.launch(&[("MinCount", "23"), ("MaxCount", "23"), ("ClientToken", "t")]).await;
    let walk = async || {
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let mut parameters = vec![("MaxResults", "5")];
            if !token.is_empty() {
                parameters.push(("NextToken", &token));
            }
            let page = lab.ec2("DescribeInstances", &parameters).await;
            seen.extend(page.all("instanceId"));
            match page.all("nextToken").pop() {
                Some(next) => token = next,
                None => return seen,
            }
        }
    };
    let (first, second) = (walk().await, walk().await);
    assert_ne!(first, second);
    let distinct: BTreeSet<String> = first.iter().cloned().collect();
    assert_eq!((first.len(), distinct.len()), (23, 23));
    assert_eq!(distinct, second.into_iter().collect());
}

#[tokio::test]
async fn describe_finds_instances_by_token_tag_and_state() {
    let lab = Lab::start().await;
    let tagged = [
        ("ClientToken", "mine"),
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "hpcops.dev:cluster-uid"),
        ("TagSpecification.1.Tag.1.Value", "u1"),
    ];
    let id = lab.launch(&tagged).await.first("instanceId");
    lab.launch(&[]).await;
    for (name, value, expected) in [
        ("client-token", "mine", 1),
        ("client-token", "other", 0),
        ("tag:hpcops.dev:cluster-uid", "u1", 1),
        ("tag:hpcops.dev:cluster-uid", "u*", 1),
        ("tag-key", "hpcops.dev:cluster-uid", 1),
        ("instance-type", "c5n.*", 2),
        ("instance-id", &id, 1),
        ("instance-id", "i-00000000000000000", 0),
    ] {
        let parameters = [("Filter.1.Name", name), ("Filter.1.Value.1", value)];
        let found = lab.ec2("DescribeInstances", &parameters).await.all("instanceId").len();
        assert_eq!(found, expected, "{name} {value}");
    }
    let invalid = [("Filter.1.Name", "colour"), ("Filter.1.Value.1", "red")];
    assert_eq!(lab.ec2("DescribeInstances", &invalid).await.code(), "InvalidParameterValue");
    let both = [("InstanceId.1", id.as_str()), ("MaxResults", "5")];
    assert_eq!(lab.ec2("DescribeInstances", &both).await.code(), "InvalidParameterCombination");
}
