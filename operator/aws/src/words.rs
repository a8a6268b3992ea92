//! SDK types into our words and back. Nothing here calls AWS.

use aws_sdk_ec2::types as ec2;
use aws_sdk_fsx::types as fsx;
use aws_sdk_ssm::types as ssm;
use hpc_plan::cloud::{
    Card, Direction, FileSystemId, GroupId, InstanceId, InstanceType, InterfaceId, Peer, Rule,
    SubnetId, Tags, Traffic, VolumeId,
};
use hpc_plan::cluster::{
    FileSystem, Group, Image, Instance, InstanceState, Interface, Lifecycle, PlacementGroup,
    Subnet, Volume, VolumeState,
};

/// Every protocol, in the words of a security group rule.
const ALL: &str = "-1";

fn text(value: Option<&str>) -> String {
    value.unwrap_or_default().to_owned()
}

pub(crate) fn tags(tags: &[ec2::Tag]) -> Tags {
    tags.iter().map(|tag| (text(tag.key()), text(tag.value()))).collect()
}

pub(crate) fn ec2_tags(tags: &Tags) -> Vec<ec2::Tag> {
    tags.iter().map(|(key, value)| ec2::Tag::builder().key(key).value(value).build()).collect()
}

pub(crate) fn tagged(resource: ec2::ResourceType, tags: &Tags) -> ec2::TagSpecification {
    let tags = Some(ec2_tags(tags));
    ec2::TagSpecification::builder().resource_type(resource).set_tags(tags).build()
}

pub(crate) fn filter(
    name: &str,
    values: impl IntoIterator<Item = impl Into<String>>,
) -> ec2::Filter {
    let values = values.into_iter().map(Into::into).collect();
    ec2::Filter::builder().name(name).set_values(Some(values)).build()
}

pub(crate) fn fsx_tags(tags: &Tags) -> Vec<fsx::Tag> {
    tags.iter().map(|(key, value)| fsx::Tag::builder().key(key).value(value).build()).collect()
}

pub(crate) fn ssm_tags(tags: &Tags) -> Vec<ssm::Tag> {
    let tag = |(key, value)| ssm::Tag::builder().key(key).value(value).build().ok();
    tags.iter().filter_map(tag).collect()
}

pub(crate) fn subnet(subnet: &ec2::Subnet) -> Subnet {
    Subnet {
        id: SubnetId(text(subnet.subnet_id())),
        vpc: text(subnet.vpc_id()),
        zone: text(subnet.availability_zone()),
    }
}

pub(crate) fn image(image: &ec2::Image) -> Image {
    Image {
        id: text(image.image_id()),
        name: text(image.name()),
        architecture: text(image.architecture().map(ec2::ArchitectureValues::as_str)),
    }
}

pub(crate) fn instance_type(info: &ec2::InstanceTypeInfo) -> InstanceType {
    let cpu = info.v_cpu_info();
    let network = info.network_info();
    let strategies = info.placement_group_info().map(ec2::PlacementGroupInfo::supported_strategies);
    let mut cards: Vec<_> =
        network.map(ec2::NetworkInfo::network_cards).unwrap_or_default().iter().map(card).collect();
    cards.sort_by_key(|card| card.index);
    // EFA types alone list interface types per card; an only card carries what the type carries.
    let max_efa = network
        .and_then(ec2::NetworkInfo::efa_info)
        .and_then(ec2::EfaInfo::maximum_efa_interfaces)
        .unwrap_or_default();
    if let [only] = cards.as_mut_slice() {
        only.efa |= max_efa > 0;
    }
    InstanceType {
        name: text(info.instance_type().map(ec2::InstanceType::as_str)),
        architecture: architecture(info),
        vcpus: cpu.and_then(ec2::VCpuInfo::default_v_cpus).unwrap_or_default(),
        cores: cpu.and_then(ec2::VCpuInfo::default_cores).unwrap_or_default(),
        threads_settable: cpu.is_some_and(|cpu| cpu.valid_threads_per_core().contains(&1)),
        memory_mib: info.memory_info().and_then(ec2::MemoryInfo::size_in_mib).unwrap_or_default(),
        max_efa,
        cards,
        cluster_placement: strategies
            .unwrap_or_default()
            .contains(&ec2::PlacementGroupStrategy::Cluster),
    }
}

/// Old types list `i386` beside `x86_64`: the 64 bit one is what images are made for.
fn architecture(info: &ec2::InstanceTypeInfo) -> String {
    let all = info.processor_info().map(ec2::ProcessorInfo::supported_architectures);
    let wide =
        |kind: &&ec2::ArchitectureType| kind.as_str() == "x86_64" || kind.as_str() == "arm64";
    text(all.unwrap_or_default().iter().find(wide).map(ec2::ArchitectureType::as_str))
}

fn card(card: &ec2::NetworkCardInfo) -> Card {
    Card {
        index: card.network_card_index().unwrap_or_default(),
        max_interfaces: card.maximum_network_interfaces().unwrap_or_default(),
        efa: card.interface_types().iter().any(|kind| kind.as_str().starts_with("efa")),
    }
}

/// A group with its rules; rules of other protocols than all or TCP, or to a prefix list, are not
/// ours to judge and left out.
pub(crate) fn group(group: &ec2::SecurityGroup) -> Group {
    let inbound = group.ip_permissions().iter().flat_map(|rule| rules(Direction::Ingress, rule));
    let outbound =
        group.ip_permissions_egress().iter().flat_map(|rule| rules(Direction::Egress, rule));
    let mut rules: Vec<_> = inbound.chain(outbound).collect();
    rules.sort();
    Group {
        id: GroupId(text(group.group_id())),
        name: text(group.group_name()),
        rules,
        tags: tags(group.tags()),
    }
}

fn rules(direction: Direction, permission: &ec2::IpPermission) -> Vec<Rule> {
    let Some(traffic) = traffic(permission) else {
        return Vec::new();
    };
    let groups = permission.user_id_group_pairs().iter().map(ec2::UserIdGroupPair::group_id);
    let groups = groups.map(|id| Peer::Group(GroupId(text(id))));
    let narrow = permission.ip_ranges().iter().map(|range| Peer::Cidr(text(range.cidr_ip())));
    let wide = permission.ipv6_ranges().iter().map(|range| Peer::Cidr(text(range.cidr_ipv6())));
    groups.chain(narrow).chain(wide).map(|peer| Rule { direction, traffic, peer }).collect()
}

fn traffic(permission: &ec2::IpPermission) -> Option<Traffic> {
    let port = |port: Option<i32>| port.and_then(|port| u16::try_from(port).ok());
    match permission.ip_protocol()? {
        ALL => Some(Traffic::All),
        "tcp" | "6" => {
            Some(Traffic::Tcp(port(permission.from_port())?, port(permission.to_port())?))
        }
        _ => None,
    }
}

pub(crate) fn permission(rule: &Rule) -> ec2::IpPermission {
    let permission = match rule.traffic {
        Traffic::All => ec2::IpPermission::builder().ip_protocol(ALL),
        Traffic::Tcp(from, to) => ec2::IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(i32::from(from))
            .to_port(i32::from(to)),
    };
    match &rule.peer {
        Peer::Group(id) => permission
            .user_id_group_pairs(ec2::UserIdGroupPair::builder().group_id(id.as_str()).build()),
        Peer::Cidr(range) if range.contains(':') => {
            permission.ipv6_ranges(ec2::Ipv6Range::builder().cidr_ipv6(range).build())
        }
        Peer::Cidr(range) => permission.ip_ranges(ec2::IpRange::builder().cidr_ip(range).build()),
    }
    .build()
}

pub(crate) fn placement_group(group: &ec2::PlacementGroup) -> PlacementGroup {
    let state = group.state();
    PlacementGroup {
        name: text(group.group_name()),
        available: state == Some(&ec2::PlacementGroupState::Available),
        deleting: matches!(
            state,
            Some(ec2::PlacementGroupState::Deleting | ec2::PlacementGroupState::Deleted)
        ),
    }
}

pub(crate) fn interface(interface: &ec2::NetworkInterface) -> Interface {
    Interface {
        id: InterfaceId(text(interface.network_interface_id())),
        private_ip: text(interface.private_ip_address()),
        in_use: interface.status() != Some(&ec2::NetworkInterfaceStatus::Available),
        tags: tags(interface.tag_set()),
    }
}

pub(crate) fn volume(volume: &ec2::Volume) -> Volume {
    let attached = volume.attachments().iter().find_map(ec2::VolumeAttachment::instance_id);
    Volume {
        id: VolumeId(text(volume.volume_id())),
        state: match volume.state().map(ec2::VolumeState::as_str) {
            Some("available") => VolumeState::Available,
            Some("in-use") => VolumeState::InUse,
            Some("deleting" | "deleted") => VolumeState::Deleting,
            Some("error") => VolumeState::Error,
            _ => VolumeState::Creating,
        },
        attached_to: attached.map(InstanceId::from),
        tags: tags(volume.tags()),
    }
}

pub(crate) fn instance(instance: &ec2::Instance) -> Instance {
    let state = instance.state().and_then(ec2::InstanceState::name);
    let reason = instance.state_reason().and_then(ec2::StateReason::code);
    let zone = instance.placement().and_then(ec2::Placement::availability_zone);
    let filled = |value: Option<&str>| value.filter(|value| !value.is_empty()).map(str::to_owned);
    Instance {
        id: InstanceId(text(instance.instance_id())),
        instance_type: text(instance.instance_type().map(ec2::InstanceType::as_str)),
        zone: text(zone),
        state: match state.map(ec2::InstanceStateName::as_str) {
            Some("running") => InstanceState::Running,
            Some("shutting-down") => InstanceState::ShuttingDown,
            Some("terminated") => InstanceState::Terminated,
            Some("stopping" | "stopped") => InstanceState::Stopped,
            _ => InstanceState::Pending,
        },
        state_reason: filled(reason),
        private_ip: filled(instance.private_ip_address()),
        launch_index: instance.ami_launch_index().unwrap_or_default(),
        token: filled(instance.client_token()),
        tags: tags(instance.tags()),
    }
}

pub(crate) fn file_system(system: &fsx::FileSystem) -> FileSystem {
    let lustre = system.lustre_configuration();
    let failure = system.failure_details().and_then(fsx::FileSystemFailureDetails::message);
    FileSystem {
        id: FileSystemId(text(system.file_system_id())),
        lifecycle: match system.lifecycle().map(fsx::FileSystemLifecycle::as_str) {
            Some("AVAILABLE") => Lifecycle::Available,
            Some("FAILED") => Lifecycle::Failed,
            Some("UPDATING") => Lifecycle::Updating,
            Some("DELETING") => Lifecycle::Deleting,
            Some("MISCONFIGURED" | "MISCONFIGURED_UNAVAILABLE") => Lifecycle::Misconfigured,
            _ => Lifecycle::Creating,
        },
        failure: failure.map(str::to_owned),
        dns_name: text(system.dns_name()),
        mount_name: text(lustre.and_then(fsx::LustreFileSystemConfiguration::mount_name)),
        tags: system.tags().iter().map(|tag| (text(tag.key()), text(tag.value()))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_survives_the_way_to_aws_and_back() {
        for (traffic, peer) in [
            (Traffic::All, Peer::Group("sg-1".into())),
            (Traffic::Tcp(988, 988), Peer::Group("sg-1".into())),
            (Traffic::Tcp(1018, 1023), Peer::Cidr("10.0.0.0/8".to_owned())),
            (Traffic::All, Peer::Cidr("::/0".to_owned())),
        ] {
            let rule = Rule { direction: Direction::Egress, traffic, peer };
            assert_eq!(rules(Direction::Egress, &permission(&rule)), [rule]);
        }
    }

    #[test]
    fn a_permission_with_several_peers_is_several_rules() {
        let permission = ec2::IpPermission::builder()
            .ip_protocol("-1")
            .user_id_group_pairs(ec2::UserIdGroupPair::builder().group_id("sg-1").build())
            .ip_ranges(ec2::IpRange::builder().cidr_ip("0.0.0.0/0").build())
            .build();
        assert_eq!(rules(Direction::Ingress, &permission).len(), 2);
    }
}
