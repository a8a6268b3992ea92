//! Launching a head or a gang: all or nothing, with everything in the one call.

use aws_sdk_ec2::operation::run_instances::builders::RunInstancesFluentBuilder;
use aws_sdk_ec2::types::{
    CpuOptionsRequest, HttpTokensState, IamInstanceProfileSpecification,
    InstanceMetadataEndpointState, InstanceMetadataOptionsRequest, InstanceMetadataTagsState,
    InstanceNetworkInterfaceSpecification as Interface, InstanceType, Placement, ResourceType,
    ShutdownBehavior, TagSpecification,
};
use hpc_plan::cloud::{Nic, NicKind, Token};
use hpc_plan::cluster::LaunchBody;

use super::Made;
use crate::Scope;
use crate::action::RUN_INSTANCES;
use crate::region::{Aws, Region};
use crate::words;

/// Hops an answer of the metadata service may take: one more than the host, for containers.
const METADATA_HOPS: i32 = 2;

/// Books the launch against the installation's limits, then asks for it.
pub(super) async fn launch(aws: &Aws, scope: &Scope, token: &Token, body: &LaunchBody) -> Made {
    let region = aws.region(&scope.region);
    let seen = region.instances(&scope.owner.installation, None).await?;
    aws.launches.book(scope, &seen, token.as_str(), body)?;
    let made = run_instances(&region, token, body).await;
    if made.as_ref().is_err_and(|failure| failure.kind.is_refusal()) {
        aws.launches.refused(token.as_str());
    }
    made
}

async fn run_instances(region: &Region, token: &Token, body: &LaunchBody) -> Made {
    let request = request(region, token, body);
    let count = u32::try_from(body.count).unwrap_or_default();
    let answer = region.call_for(&RUN_INSTANCES, count, || request.clone().send()).await?;
    Ok(answer.instances.unwrap_or_default().into_iter().filter_map(|one| one.instance_id).collect())
}

fn request(region: &Region, token: &Token, body: &LaunchBody) -> RunInstancesFluentBuilder {
    let profile = IamInstanceProfileSpecification::builder().name(&body.profile).build();
    let group = body.placement_group.as_ref();
    let is_node = body.interface.is_none();
    region
        .ec2
        .run_instances()
        .client_token(token.as_str())
        .min_count(body.count)
        .max_count(body.count)
        .image_id(&body.image)
        .instance_type(InstanceType::from(body.instance_type.as_str()))
        .iam_instance_profile(profile)
        .metadata_options(metadata_options())
        .set_network_interfaces(Some(interfaces(body)))
        .set_placement(group.map(|name| Placement::builder().group_name(name).build()))
        .set_cpu_options(body.single_threaded.map(single_threaded))
        .set_key_name(body.key_name.clone())
        // A node that shuts itself down has failed; a head's disk may be wanted.
        .set_instance_initiated_shutdown_behavior(is_node.then_some(ShutdownBehavior::Terminate))
        // The SDK sends it as it is; it is base64 already, as AWS wants it.
        .user_data(&body.user_data)
        .set_tag_specifications(Some(tags(body)))
}

fn single_threaded(cores: i32) -> CpuOptionsRequest {
    CpuOptionsRequest::builder().core_count(cores).threads_per_core(1).build()
}

fn metadata_options() -> InstanceMetadataOptionsRequest {
    InstanceMetadataOptionsRequest::builder()
        .http_endpoint(InstanceMetadataEndpointState::Enabled)
        .http_tokens(HttpTokensState::Required)
        .http_put_response_hop_limit(METADATA_HOPS)
        .instance_metadata_tags(InstanceMetadataTagsState::Enabled)
        .build()
}

fn interfaces(body: &LaunchBody) -> Vec<Interface> {
    let existing = body.interface.iter().map(|id| {
        Interface::builder()
            .network_interface_id(id.as_str())
            .device_index(0)
            .delete_on_termination(false)
            .build()
    });
    existing.chain(body.nics.iter().map(|nic| interface(body, nic))).collect()
}

fn interface(body: &LaunchBody, nic: &Nic) -> Interface {
    Interface::builder()
        .network_card_index(nic.card)
        .device_index(nic.device)
        .interface_type(match nic.kind {
            NicKind::Interface => "interface",
            NicKind::Efa => "efa",
            NicKind::EfaOnly => "efa-only",
        })
        .subnet_id(body.subnet.as_str())
        .set_groups(Some(body.groups.iter().map(|id| id.0.clone()).collect()))
        .delete_on_termination(true)
        .build()
}

/// AWS refuses tags for a kind of resource that the launch does not make.
fn tags(body: &LaunchBody) -> Vec<TagSpecification> {
    let mut made = vec![ResourceType::Instance, ResourceType::Volume];
    if !body.nics.is_empty() {
        made.push(ResourceType::NetworkInterface);
    }
    made.into_iter().map(|kind| words::tagged(kind, &body.tags)).collect()
}
