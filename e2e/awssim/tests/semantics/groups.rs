//! Security groups and what pins them.

use crate::lab::{Answer, Lab, SUBNET};

async fn rule(lab: &Lab, action: &str, group: &str, more: &[(&str, &str)]) -> Answer {
    let mut all = vec![("GroupId", group)];
    all.extend_from_slice(more);
    lab.ec2(action, &all).await
}

async fn delete(lab: &Lab, group: &str) -> String {
    lab.ec2("DeleteSecurityGroup", &[("GroupId", group)]).await.code()
}

#[tokio::test]
async fn a_group_goes_when_no_interface_and_no_other_group_needs_it() {
    let lab = Lab::start().await;
    let (one, two) = (lab.open_group("one").await, lab.group("two").await);
    let peer = [
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "2049"),
        ("IpPermissions.1.ToPort", "2049"),
        ("IpPermissions.1.Groups.1.GroupId", one.as_str()),
    ];
    assert_eq!(rule(&lab, "AuthorizeSecurityGroupIngress", &two, &peer).await.code(), "OK");
    let interface = [("SubnetId", SUBNET), ("SecurityGroupId.1", one.as_str())];
    let nic = lab.ec2("CreateNetworkInterface", &interface).await.first("networkInterfaceId");
    assert_eq!(delete(&lab, &one).await, "DependencyViolation");
    lab.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &nic)]).await;
    assert_eq!(delete(&lab, &one).await, "DependencyViolation");
    assert_eq!(rule(&lab, "RevokeSecurityGroupIngress", &two, &peer).await.code(), "OK");
    assert_eq!(delete(&lab, &one).await, "OK");
    assert_eq!(delete(&lab, &one).await, "InvalidGroup.NotFound");
    assert_eq!(delete(&lab, &two).await, "OK");
}

#[tokio::test]
async fn rules_are_added_once_and_removed_once() {
    let lab = Lab::start().await;
    let group = lab.group("g").await;
    let ssh = [
        ("IpPermissions.1.IpProtocol", "tcp"),
        ("IpPermissions.1.FromPort", "22"),
        ("IpPermissions.1.ToPort", "22"),
        ("IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/8"),
    ];
    for (action, expected) in [
        ("AuthorizeSecurityGroupIngress", "OK"),
        ("AuthorizeSecurityGroupIngress", "InvalidPermission.Duplicate"),
        ("AuthorizeSecurityGroupEgress", "OK"),
        ("RevokeSecurityGroupIngress", "OK"),
        ("RevokeSecurityGroupIngress", "InvalidPermission.NotFound"),
    ] {
        assert_eq!(rule(&lab, action, &group, &ssh).await.code(), expected, "{action}");
    }
    let mut bad = ssh.to_vec();
    bad[3].1 = "10.0.0.0/33";
    let refused = rule(&lab, "AuthorizeSecurityGroupIngress", &group, &bad).await;
    assert_eq!(refused.code(), "InvalidParameterValue");
    let filter = [("Filter.1.Name", "group-id"), ("Filter.1.Value.1", group.as_str())];
    let rules = lab.ec2("DescribeSecurityGroupRules", &filter).await;
    assert_eq!(rules.all("isEgress"), ["true", "true"]);
}

#[tokio::test]
async fn names_are_unique_and_need_a_description() {
    let lab = Lab::start().await;
    lab.group("g").await;
    let create =
        async |parameters: &[(&str, &str)]| lab.ec2("CreateSecurityGroup", parameters).await.code();
    let twice = [("GroupName", "g"), ("GroupDescription", "g")];
    assert_eq!(create(&twice).await, "InvalidGroup.Duplicate");
    assert_eq!(create(&[("GroupName", "h")]).await, "MissingParameter");
    let prefix = [("GroupName", "sg-h"), ("GroupDescription", "g")];
    assert_eq!(create(&prefix).await, "InvalidParameterValue");
    let reserved = [
        ("GroupName", "h"),
        ("GroupDescription", "g"),
        ("TagSpecification.1.ResourceType", "security-group"),
        ("TagSpecification.1.Tag.1.Key", "aws:x"),
    ];
    assert_eq!(create(&reserved).await, "InvalidParameterValue");
}
