//! `RunInstances`: token, checks, capacity, and then the instances.

use serde_json::{Value, json};

use super::instance::{Agent, Health, Instance, InstanceState};
use super::instance_render::render_reservation;
use super::interface::{self, Attachment, InterfaceType, NewInterface};
use super::launch_check::{self, Checked};
use super::launch_request::{self, LaunchRequest, NicRequest};
use super::reserve::{default_subnet, reserve};
use super::tokens::{Scope, check_token, digest};
use super::volume::{self, NewVolume, VolumeAttachment};
use crate::agenda::Event;
use crate::call::{Call, Newborn};
use crate::catalog::Zone;
use crate::clock::Delay;
use crate::ledger::Kind;
use crate::machine::RoleCredentials;
use crate::wire::{ApiError, Params};
use crate::world::Principal;

/// `RunInstances`.
pub fn run(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (request, token) = launch_request::read(params)?;
    let zone = zone_of(call, &request)?;
    let digest = digest(&request);
    let scope = scope_of(token.as_deref(), &zone)?;
    if let Some(scope) = &scope
        && let Some(answer) = replay(call, scope, digest)?
    {
        return Ok(answer);
    }
    let checked = launch_check::check(call, &request, zone)?;
    call.commit()?;
    let count = reserve(call, &request, &checked)?;
    let launch = Launch { request: &request, checked: &checked, token: token.as_deref() };
    let (answer, ids) = launch.all(call, count)?;
    if let Some(scope) = scope {
        call.region.ec2.tokens.spend(scope, digest, answer.clone(), ids);
    }
    Ok(answer)
}

/// The zone the request names through subnet, interface or placement; the
/// first default subnet's otherwise.
fn zone_of(call: &Call<'_>, request: &LaunchRequest) -> Result<Zone, ApiError> {
    let network = &call.region.ec2.network;
    let mut zones = Vec::new();
    let subnets = request.nics.iter().filter_map(|nic| nic.subnet_id.as_ref());
    for subnet in request.subnet_id.iter().chain(subnets) {
        zones.push(network.subnet(subnet)?.zone.clone());
    }
    for id in request.nics.iter().filter_map(|nic| nic.existing.as_ref()) {
        let name = &call.region.ec2.interface(id, call.now)?.zone;
        zones.extend(network.zones.iter().find(|zone| zone.name == *name).cloned());
    }
    if let Some(name) = &request.placement.zone {
        let found = network.zones.iter().find(|zone| zone.name == *name).cloned();
        zones.push(found.ok_or_else(|| {
            ApiError::invalid_value("AvailabilityZone", name, "Invalid availability zone.")
        })?);
    }
    let default = network.subnets.first().map(|subnet| subnet.zone.clone());
    let first = zones.first().cloned().or(default).ok_or_else(|| ApiError::missing("SubnetId"))?;
    if zones.iter().any(|zone| *zone != first) {
        return Err(ApiError::combination(
            "All network interfaces of an instance must be in one Availability Zone.",
        ));
    }
    Ok(first)
}

fn scope_of(token: Option<&str>, zone: &Zone) -> Result<Option<Scope>, ApiError> {
    let Some(token) = token else { return Ok(None) };
    check_token(token)?;
    Ok(Some(Scope {
        action: "RunInstances",
        zone: Some(zone.name.clone()),
        token: token.to_owned(),
    }))
}

/// The answer of the launch this token already made.
fn replay(call: &Call<'_>, scope: &Scope, digest: [u8; 32]) -> Result<Option<Value>, ApiError> {
    let Some(replay) = call.region.ec2.tokens.replay(scope, digest)? else {
        return Ok(None);
    };
    let instances = &call.region.ec2.instances;
    let alive = |id: &String| {
        instances.get(id).is_some_and(|i| {
            !matches!(i.state, InstanceState::ShuttingDown | InstanceState::Terminated)
        })
    };
    if replay.resources.iter().any(alive) {
        return Ok(Some(replay.answer));
    }
    Err(ApiError::client(
        "IdempotentInstanceTerminated",
        format!(
            "The instance that was launched with the client token '{}' has been terminated.",
            scope.token
        ),
    ))
}

struct Launch<'a> {
    request: &'a LaunchRequest,
    checked: &'a Checked,
    token: Option<&'a str>,
}

impl Launch<'_> {
    fn all(&self, call: &mut Call<'_>, count: u32) -> Result<(Value, Vec<String>), ApiError> {
        let reservation = call.new_id("r");
        let mut ids = Vec::new();
        for index in 0..count {
            ids.push(self.one(call, &reservation, index)?);
        }
        let ec2 = &call.region.ec2;
        let launched: Vec<&Instance> = ids.iter().filter_map(|id| ec2.instances.get(id)).collect();
        Ok((render_reservation(call, &reservation, &launched), ids))
    }

    fn one(&self, call: &mut Call<'_>, reservation: &str, index: u32) -> Result<String, ApiError> {
        let id = call.new_id("i");
        let (request, checked) = (self.request, self.checked);
        let subnet_id = default_subnet(call, request, checked)?;
        let nics = self.attach_interfaces(call, &id, &subnet_id)?;
        let primary = nics.first().and_then(|nic| call.region.ec2.interfaces.get(nic)).cloned();
        let primary = primary.ok_or_else(|| ApiError::missing("NetworkInterface"))?;
        let running_at = call.after(Delay::Running, &id);
        let instance = Instance {
            launch_index: index,
            image_id: checked.image.id.clone(),
            instance_type: checked.instance_type.name.clone(),
            zone: checked.zone.name.clone(),
            private_ip: primary.private_ip.ok_or_else(|| ApiError::missing("PrivateIpAddress"))?,
            subnet_id: primary.subnet_id,
            key_name: request.key_name.clone(),
            profile: checked.profile.clone(),
            placement_group: checked.placement_group.clone(),
            client_token: self.token.map(str::to_owned),
            user_data: checked.user_data.clone(),
            metadata: checked.metadata.clone(),
            terminates_on_shutdown: request.shutdown.as_deref() == Some("terminate"),
            protected: request.protected,
            market: checked.market,
            cpu: checked.cpu,
            interfaces: nics,
            volumes: vec![self.root_volume(call, &id)],
            architecture: checked.image.architecture,
            root_device: checked.image.root_device.to_owned(),
            launched_at: call.now,
            visible_at: call.after(Delay::Visible, &id),
            usable_at: call.after(Delay::Usable, &id),
            address_at: call.after(Delay::Address, &id),
            status_ok_at: call.after(Delay::StatusOk, &id),
            health: Health::default(),
            state: InstanceState::Pending,
            reason: None,
            transition: String::new(),
            fate: take_fate(call, &checked.instance_type.name),
            agent: if call.account.settings.agents { Agent::Unregistered } else { Agent::Barred },
            has_body: call.account.settings.bodies,
            credentials: self.credentials(call, &id),
            reservation_id: reservation.to_owned(),
            id: id.clone(),
        };
        self.note(call, &instance);
        call.schedule(running_at, Event::InstanceRunning(id.clone()));
        call.region.ec2.instances.insert(id.clone(), instance);
        Ok(id)
    }

    fn note(&self, call: &mut Call<'_>, instance: &Instance) {
        let detail = json!({
            "instanceType": instance.instance_type, "zone": instance.zone,
            "reservationId": instance.reservation_id, "privateIp": instance.private_ip,
            "placementGroup": instance.placement_group, "hasBody": instance.has_body,
            "launchIndex": instance.launch_index,
        });
        let tags = self.request.tags.of(Kind::Instance);
        call.born(Newborn {
            kind: Kind::Instance,
            id: &instance.id,
            tags,
            token: self.token,
            detail,
        });
    }

    /// Role credentials: a key the simulator knows as the instance's.
    fn credentials(&self, call: &mut Call<'_>, id: &str) -> Option<RoleCredentials> {
        let role = self.checked.profile.clone()?;
        let hex = id.trim_start_matches("i-0").to_uppercase();
        let access_key_id = format!("ASIA{hex}");
        let principal =
            Principal { account: call.account.id.clone(), instance_id: Some(id.to_owned()) };
        call.keys.push((access_key_id.clone(), principal));
        let secret = format!("{hex}{hex}{}", "0".repeat(8));
        Some(RoleCredentials { role, access_key_id, secret_access_key: secret, token: hex })
    }

    fn root_volume(&self, call: &mut Call<'_>, instance_id: &str) -> String {
        let image = &self.checked.image;
        let disk = self.request.disks.iter().find(|disk| disk.device == image.root_device);
        let new = NewVolume {
            zone: self.checked.zone.name.clone(),
            size_gib: disk.and_then(|disk| disk.size).unwrap_or(image.root_gib),
            volume_type: disk
                .and_then(|disk| disk.volume_type.clone())
                .unwrap_or_else(|| "gp3".to_owned()),
            encrypted: disk.and_then(|disk| disk.encrypted).unwrap_or(false),
            tags: self.request.tags.of(Kind::Volume),
            token: None,
        };
        let volume = volume::make(call, new);
        let attachment = VolumeAttachment {
            instance_id: instance_id.to_owned(),
            device: image.root_device.to_owned(),
            delete_on_termination: disk.and_then(|d| d.delete_on_termination).unwrap_or(true),
            at: call.now,
            attached_at: call.now,
        };
        if let Some(known) = call.region.ec2.volumes.get_mut(&volume.id) {
            known.attachment = Some(attachment);
        }
        volume.id
    }

    fn attach_interfaces(
        &self,
        call: &mut Call<'_>,
        instance_id: &str,
        subnet_id: &str,
    ) -> Result<Vec<String>, ApiError> {
        let plain = NicRequest {
            device: Some(0),
            groups: self.request.groups.clone(),
            private_ip: self.request.private_ip,
            ..NicRequest::default()
        };
        let mut asked: Vec<&NicRequest> = self.request.nics.iter().collect();
        if asked.is_empty() {
            asked.push(&plain);
        }
        asked.sort_by_key(|nic| (nic.card, nic.device));
        asked
            .into_iter()
            .map(|nic| self.attach_interface(call, nic, instance_id, subnet_id))
            .collect()
    }

    fn attach_interface(
        &self,
        call: &mut Call<'_>,
        asked: &NicRequest,
        instance_id: &str,
        subnet_id: &str,
    ) -> Result<String, ApiError> {
        let id = match &asked.existing {
            Some(id) => id.clone(),
            None => self.new_interface(call, asked, subnet_id)?,
        };
        let attachment = Attachment {
            id: call.new_id("eni-attach"),
            instance_id: instance_id.to_owned(),
            device: asked.device.unwrap_or(0),
            card: asked.card,
            delete_on_termination: asked.delete_on_termination.unwrap_or(asked.existing.is_none()),
            at: call.now,
        };
        if let Some(interface) = call.region.ec2.interfaces.get_mut(&id) {
            interface.attachment = Some(attachment);
        }
        warn_about_efa(call, &id, instance_id);
        Ok(id)
    }

    fn new_interface(
        &self,
        call: &mut Call<'_>,
        asked: &NicRequest,
        subnet_id: &str,
    ) -> Result<String, ApiError> {
        let kind = asked.interface_type.as_deref().unwrap_or("interface");
        let new = NewInterface {
            subnet_id: asked.subnet_id.clone().unwrap_or_else(|| subnet_id.to_owned()),
            groups: asked.groups.clone(),
            private_ip: asked.private_ip,
            interface_type: InterfaceType::parse(kind)?,
            description: asked.description.clone().unwrap_or_default(),
            requester: None,
            tags: self.request.tags.of(Kind::NetworkInterface),
            token: None,
        };
        interface::create(call, new).map(|interface| interface.id)
    }
}

/// Real AWS launches an EFA whose groups do not allow all traffic among
/// themselves; libfabric then hangs. Tests assert that nobody was warned.
fn warn_about_efa(call: &mut Call<'_>, id: &str, instance_id: &str) {
    let Some(nic) = call.region.ec2.interfaces.get(id) else {
        return;
    };
    if nic.interface_type.is_efa() && !call.region.ec2.allows_itself_everything(&nic.groups) {
        let text = format!(
            "EFA interface {id}: groups {} do not allow all traffic from and to themselves",
            nic.groups.join(", ")
        );
        let now = call.now;
        call.account.warn(now, "EfaGroupNotSelfReferencing", instance_id, &text);
    }
}

fn take_fate(call: &mut Call<'_>, instance_type: &str) -> Option<super::Fate> {
    let fates = &mut call.region.ec2.fates;
    let planned = fates.iter_mut().find(|planned| {
        planned.count > 0 && planned.instance_type.as_deref().is_none_or(|t| t == instance_type)
    })?;
    planned.count -= 1;
    Some(planned.fate.clone())
}
