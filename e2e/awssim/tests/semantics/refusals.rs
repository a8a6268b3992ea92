//! What `RunInstances` is refused for, and with which code.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::lab::{Lab, OTHER_SUBNET, SUBNET};

#[tokio::test]
async fn a_launch_is_refused_with_the_code_of_the_first_thing_wrong() {
    let lab = Lab::start().await;
    let large = STANDARD.encode(vec![b'x'; 16_385]);
    let exact = STANDARD.encode(vec![b'x'; 16_384]);
    let slash = [
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "a/b"),
        ("TagSpecification.1.Tag.1.Value", "c"),
        ("MetadataOptions.InstanceMetadataTags", "enabled"),
    ];
    let table: Vec<(&str, Vec<(&str, &str)>)> = vec![
        ("OK", vec![("UserData", &exact)]),
        ("InvalidParameterValue", vec![("UserData", &large)]),
        ("InvalidUserData.Malformed", vec![("UserData", "!!!")]),
        ("InvalidParameterValue", vec![("MinCount", "2")]),
        ("InvalidParameterValue", vec![("MinCount", "0"), ("MaxCount", "0")]),
        ("InvalidParameterValue", vec![("InstanceType", "x9.huge")]),
        ("InvalidParameterValue", vec![("InstanceType", "c7g.16xlarge")]),
        ("InvalidAMIID.NotFound", vec![("ImageId", "ami-1")]),
        ("InvalidSubnetID.NotFound", vec![("SubnetId", "subnet-1")]),
        ("InvalidGroup.NotFound", vec![("SecurityGroupId.1", "sg-1")]),
        ("InvalidKeyPair.NotFound", vec![("KeyName", "nobody")]),
        ("OK", vec![("KeyName", "cfd-key")]),
        ("InvalidParameterValue", vec![("IamInstanceProfile.Name", "nobody")]),
        (
            "InvalidParameterValue",
            vec![("IamInstanceProfile.Arn", "arn:aws:iam::1:instance-profile/x")],
        ),
        ("OK", vec![("IamInstanceProfile.Name", "hpcops-node")]),
        ("InvalidPlacementGroup.Unknown", vec![("Placement.GroupName", "nobody")]),
        ("Unsupported", vec![("InstanceType", "hpc7a.96xlarge")]),
        (
            "InvalidParameterCombination",
            vec![
                ("InstanceType", "c5n.metal"),
                ("CpuOptions.CoreCount", "36"),
                ("CpuOptions.ThreadsPerCore", "1"),
            ],
        ),
        ("OK", vec![("CpuOptions.CoreCount", "36"), ("CpuOptions.ThreadsPerCore", "1")]),
        (
            "InvalidParameterValue",
            vec![("CpuOptions.CoreCount", "37"), ("CpuOptions.ThreadsPerCore", "1")],
        ),
        ("InvalidParameterCombination", vec![("CpuOptions.CoreCount", "36")]),
        ("InvalidParameterValue", vec![("MetadataOptions.HttpPutResponseHopLimit", "65")]),
        ("InvalidParameterValue", vec![("InstanceInitiatedShutdownBehavior", "explode")]),
        ("InvalidParameterValue", slash.to_vec()),
        ("OK", slash[..3].to_vec()),
        ("DryRunOperation", vec![("DryRun", "true")]),
        ("OK", vec![("InstanceMarketOptions.MarketType", "spot")]),
    ];
    // One account per row: the launch bucket holds five tokens.
    for (number, (expected, parameters)) in table.into_iter().enumerate() {
        let account = lab.other(&format!("AKIAROW{number}"));
        account.delays(json!({})).await;
        assert_eq!(account.launch(&parameters).await.code(), expected, "{parameters:?}");
    }
}

/// A launch with one interface of that kind, with more or other parameters.
fn with(
    kind: &'static str,
    more: &[(&'static str, &'static str)],
) -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("SubnetId", "-"),
        ("NetworkInterface.1.DeviceIndex", "0"),
        ("NetworkInterface.1.SubnetId", SUBNET),
        ("NetworkInterface.1.InterfaceType", kind),
    ];
    all.extend_from_slice(more);
    all
}

#[tokio::test]
async fn interfaces_of_a_launch_are_checked_against_its_type() {
    let lab = Lab::start().await;
    let second = [
        ("NetworkInterface.2.DeviceIndex", "1"),
        ("NetworkInterface.2.SubnetId", SUBNET),
        ("NetworkInterface.2.InterfaceType", "efa-only"),
    ];
    let table = vec![
        ("OK", with("efa", &[])),
        ("OK", with("interface", &second)),
        ("InvalidParameterCombination", with("efa", &[("InstanceType", "t3.micro")])),
        ("InvalidParameterCombination", with("efa-only", &[])),
        ("InvalidParameterValue", with("efa", &[("NetworkInterface.1.NetworkCardIndex", "1")])),
        ("InvalidParameterCombination", with("efa", &[("SubnetId", SUBNET)])),
        ("InvalidParameterCombination", with("efa", &[("SecurityGroupId.1", "GROUP")])),
        (
            "InvalidParameterCombination",
            with(
                "interface",
                &[
                    second[0],
                    second[1],
                    second[2],
                    ("NetworkInterface.1.AssociatePublicIpAddress", "true"),
                ],
            ),
        ),
        ("OK", with("interface", &[("NetworkInterface.1.PrivateIpAddress", "10.0.0.77")])),
        (
            "InvalidParameterCombination",
            with(
                "interface",
                &[("NetworkInterface.1.PrivateIpAddress", "10.0.0.77"), ("MaxCount", "2")],
            ),
        ),
        (
            "InvalidParameterCombination",
            with("interface", &[second[0], ("NetworkInterface.2.SubnetId", OTHER_SUBNET)]),
        ),
        ("InvalidParameterValue", with("wifi", &[])),
    ];
    for (number, (expected, mut parameters)) in table.into_iter().enumerate() {
        let account = lab.other(&format!("AKIANIC{number}"));
        account.delays(json!({})).await;
        let group = account.open_group("nodes").await;
        for (_, value) in parameters.iter_mut().filter(|(_, value)| *value == "GROUP") {
            *value = &group;
        }
        assert_eq!(account.launch(&parameters).await.code(), expected, "{parameters:?}");
    }
}

#[tokio::test]
async fn an_existing_interface_serves_one_launch_of_one() {
    let lab = Lab::start().await;
    let made = lab.ec2("CreateNetworkInterface", &[("SubnetId", SUBNET)]).await;
    let nic = made.first("networkInterfaceId");
    let mut parameters = vec![
        ("SubnetId", "-"),
        ("NetworkInterface.1.DeviceIndex", "0"),
        ("NetworkInterface.1.NetworkInterfaceId", nic.as_str()),
    ];
    parameters.push(("MaxCount", "2"));
    assert_eq!(lab.launch(&parameters).await.code(), "InvalidParameterCombination");
    parameters.pop();
    let launched = lab.launch(&parameters).await;
    assert_eq!(launched.code(), "OK");
    assert_eq!(launched.first("privateIpAddress"), made.first("privateIpAddress"));
    assert_eq!(lab.launch(&parameters).await.code(), "InvalidNetworkInterface.InUse");
    let in_use = lab.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &nic)]).await;
    assert_eq!(in_use.code(), "InvalidParameterValue");
    let id = launched.first("instanceId");
    lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    lab.until("the instance is gone", async || lab.state(&id).await == "terminated").await;
    assert_eq!(lab.living("network-interface").await, std::slice::from_ref(&nic));
    let deleted = lab.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &nic)]).await;
    assert_eq!(deleted.code(), "OK");
}

#[tokio::test]
async fn an_efa_whose_groups_do_not_allow_themselves_everything_is_warned_about() {
    let lab = Lab::start().await;
    let closed = lab.group("closed").await;
    let open = lab.open_group("open").await;
    let efa = async |group: &str| {
        let launched = lab
            .launch(&[
                ("SubnetId", "-"),
                ("NetworkInterface.1.DeviceIndex", "0"),
                ("NetworkInterface.1.SubnetId", SUBNET),
                ("NetworkInterface.1.InterfaceType", "efa"),
                ("NetworkInterface.1.SecurityGroupId.1", group),
            ])
            .await;
        assert_eq!(launched.code(), "OK");
        lab.control("GET", "warnings", json!(null)).await.as_array().unwrap().len()
    };
    assert_eq!(efa(&open).await, 0);
    assert_eq!(efa(&closed).await, 1);
}
