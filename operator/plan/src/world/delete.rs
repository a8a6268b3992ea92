//! What a step takes away, and what AWS does not let go of while it is used.

use crate::cloud::{FileSystemId, GroupId, InstanceId, InterfaceId, Peer, VolumeId};
use crate::cluster::{InstanceState, Lifecycle, Resource, VolumeState};

use super::World;
use super::apply::{Answer, gone, in_use};

impl World {
    /// One unknown id and none is terminated.
    pub(super) fn terminate(&mut self, ids: &[InstanceId]) -> Answer {
        let visible =
            |id: &&InstanceId| self.instances.get(id).is_some_and(|found| found.hidden == 0);
        if let Some(unknown) = ids.iter().find(|id| !visible(id)) {
            return Err(gone("TerminateInstances", "InvalidInstanceID.NotFound", unknown.as_str()));
        }
        for id in ids {
            let foreign = self.instances.get(id).is_none_or(|found| !self.is_ours(&found.tags));
            if foreign {
                self.ledger.sin(format!("{id} is not ours and was terminated"));
            }
            let ending = self.catalog.pace.ending;
            if let Some(machine) = self.instances.get_mut(id).filter(|machine| machine.is_live()) {
                machine.enter(InstanceState::ShuttingDown, ending);
                machine.state_reason = Some("Client.UserInitiatedShutdown".to_owned());
            }
        }
        Ok(vec![])
    }

    /// A terminated instance lets its volume and its interface go.
    pub(super) fn release(&mut self, id: &InstanceId) {
        for port in self.interfaces.values_mut().filter(|port| port.user.as_ref() == Some(id)) {
            port.user = None;
        }
        for vault in self.volumes.values_mut().filter(|vault| vault.user.as_ref() == Some(id)) {
            vault.user = None;
            vault.state = VolumeState::Available;
        }
    }

    pub(super) fn delete(&mut self, resource: &Resource) -> Answer {
        match resource {
            Resource::Group(id) => self.delete_group(id),
            Resource::PlacementGroup(name) => self.delete_pool(name),
            Resource::Interface(id) => self.delete_interface(id),
            Resource::Volume(id) => self.delete_volume(id),
            Resource::FileSystem(id, _) => self.delete_file_system(id),
            Resource::Parameter(name) => {
                let was_there = if *name == self.owner.parameter() {
                    self.parameter.take().is_some()
                } else {
                    self.notes.remove(name).is_some()
                };
                if was_there {
                    Ok(vec![])
                } else {
                    Err(gone("DeleteParameter", "ParameterNotFound", name))
                }
            }
        }
    }

    fn delete_group(&mut self, id: &GroupId) -> Answer {
        let action = "DeleteSecurityGroup";
        if !self.groups.contains_key(id) {
            return Err(gone(action, "InvalidGroup.NotFound", id.as_str()));
        }
        let machines = self.instances.values().filter(|found| !found.is_gone());
        let mut users = machines.map(|found| &found.groups);
        let used = users.any(|groups| groups.contains(id))
            || self.interfaces.values().any(|found| found.groups.contains(id))
            || self.file_systems.values().any(|found| found.groups.contains(id));
        let named = self.groups.iter().any(|(other, group)| {
            other != id && group.rules.iter().any(|rule| rule.peer == Peer::Group(id.clone()))
        });
        if used || named {
            return Err(in_use(action, "DependencyViolation", id.as_str()));
        }
        self.groups.remove(id);
        Ok(vec![])
    }

    fn delete_pool(&mut self, name: &str) -> Answer {
        let action = "DeletePlacementGroup";
        let mut members =
            self.instances.values().filter(|found| found.pool.as_deref() == Some(name));
        if members.any(|found| !found.is_gone()) {
            return Err(in_use(action, "InvalidPlacementGroup.InUse", name));
        }
        let Some(pool) = self.placement_groups.get_mut(name) else {
            return Err(gone(action, "InvalidPlacementGroup.Unknown", name));
        };
        pool.going.get_or_insert(self.catalog.pace.deletion);
        Ok(vec![])
    }

    fn delete_interface(&mut self, id: &InterfaceId) -> Answer {
        let action = "DeleteNetworkInterface";
        match self.interfaces.get(id) {
            None => Err(gone(action, "InvalidNetworkInterfaceID.NotFound", id.as_str())),
            Some(port) if port.user.is_some() => {
                Err(in_use(action, "InvalidParameterValue", id.as_str()))
            }
            Some(_) => {
                self.interfaces.remove(id);
                Ok(vec![])
            }
        }
    }

    fn delete_volume(&mut self, id: &VolumeId) -> Answer {
        let action = "DeleteVolume";
        let Some(vault) = self.volumes.get_mut(id) else {
            return Err(gone(action, "InvalidVolume.NotFound", id.as_str()));
        };
        match vault.state {
            VolumeState::InUse | VolumeState::Creating => {
                Err(in_use(action, "VolumeInUse", id.as_str()))
            }
            VolumeState::Available | VolumeState::Error => {
                vault.state = VolumeState::Deleting;
                vault.left = self.catalog.pace.deletion;
                Ok(vec![])
            }
            VolumeState::Deleting => Ok(vec![]),
        }
    }

    fn delete_file_system(&mut self, id: &FileSystemId) -> Answer {
        let action = "DeleteFileSystem";
        let Some(found) = self.file_systems.get_mut(id) else {
            return Err(gone(action, "FileSystemNotFound", id.as_str()));
        };
        match found.lifecycle {
            Lifecycle::Creating | Lifecycle::Updating => {
                Err(in_use(action, "BadRequest", id.as_str()))
            }
            Lifecycle::Available | Lifecycle::Failed | Lifecycle::Misconfigured => {
                found.lifecycle = Lifecycle::Deleting;
                found.left = self.catalog.pace.deletion;
                Ok(vec![])
            }
            Lifecycle::Deleting => Ok(vec![]),
        }
    }
}

/// The AWS action behind a deletion.
pub(super) const fn action(resource: &Resource) -> &'static str {
    match resource {
        Resource::Group(_) => "DeleteSecurityGroup",
        Resource::PlacementGroup(_) => "DeletePlacementGroup",
        Resource::Interface(_) => "DeleteNetworkInterface",
        Resource::Volume(_) => "DeleteVolume",
        Resource::FileSystem(..) => "DeleteFileSystem",
        Resource::Parameter(_) => "DeleteParameter",
    }
}
