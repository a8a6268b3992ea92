//! What the host needs to know of an instance to start its body.

use super::instance::Instance;
use super::interface::Interface;
use crate::call::Call;
use crate::ledger::Kind;
use crate::machine::{BodyInterface, BodySpec};

/// What the host needs to start a body.
pub fn body_spec(call: &Call<'_>, instance: &Instance) -> Option<BodySpec> {
    let ec2 = &call.region.ec2;
    let t = call.engine.types.get(&instance.instance_type)?;
    let image = crate::catalog::images().into_iter().find(|image| image.id == instance.image_id)?;
    let account = &call.account.id;
    let profile_arn = |name: &String| format!("arn:aws:iam::{account}:instance-profile/{name}");
    Some(BodySpec {
        instance_id: instance.id.clone(),
        account: account.clone(),
        image_id: instance.image_id.clone(),
        image_name: image.name,
        instance_type: instance.instance_type.clone(),
        vcpus: instance.cpu.0 * instance.cpu.1,
        cores: instance.cpu.0,
        memory_mib: t.memory_mib,
        architecture: image.architecture.to_owned(),
        region: call.region.name.clone(),
        availability_zone: instance.zone.clone(),
        private_ip: instance.private_ip,
        subnet_cidr: ec2.network.subnet(&instance.subnet_id).ok()?.cidr.clone(),
        hostname: instance.hostname(&call.region.name),
        launch_index: instance.launch_index,
        reservation_id: instance.reservation_id.clone(),
        user_data: instance.user_data.clone(),
        tags: call.tags(Kind::Instance, &instance.id).clone().into_iter().collect(),
        metadata_tags: instance.metadata.tags == "enabled",
        profile_arn: instance.profile.as_ref().map(profile_arn),
        credentials: instance.credentials.clone(),
        network_interfaces: instance
            .interfaces
            .iter()
            .filter_map(|id| ec2.interfaces.get(id))
            .map(body_interface)
            .collect(),
        endpoint_url: format!("http://{}", call.engine.listen),
    })
}

fn body_interface(nic: &Interface) -> BodyInterface {
    let (card, device) = nic.attachment.as_ref().map_or((0, 0), |at| (at.card, at.device));
    BodyInterface {
        id: nic.id.clone(),
        mac: nic.mac.clone(),
        private_ip: nic.private_ip,
        subnet_id: nic.subnet_id.clone(),
        groups: nic.groups.clone(),
        interface_type: nic.interface_type.name().to_owned(),
        card,
        device,
    }
}
