//! What one pass can read of a world: nothing that is hidden yet, nothing of anybody else.

use std::collections::{BTreeMap, BTreeSet};

use crate::cloud::{Failure, InstanceId, Tags};
use crate::cluster::{
    Account, Ailing, FileSystem, Group, Instance, InstanceState, Interface, Lifecycle, Observed,
    PlacementGroup, Report, ReportedFleet, Volume,
};
use crate::names::HEAD;

use super::{FileServer, Machine, Told, Unseen, World, failure};

impl World {
    /// Everything one pass reads.
    pub fn observe(&self) -> Observed {
        match self.fate.unseen {
            _ if !self.fate.reads.is_empty() => self.blind(),
            Some(Unseen::Everything) => self.surroundings(),
            Some(Unseen::Instances) => {
                Observed { instances: vec![], agents_online: vec![], ..self.whole() }
            }
            None => self.whole(),
        }
    }

    fn whole(&self) -> Observed {
        let running = self.instances.values().filter(|found| found.is_live());
        let live = i64::try_from(running.clone().count()).unwrap_or(i64::MAX);
        let price = |found: &Machine| self.catalog.prices.get(&found.instance_type).copied();
        Observed {
            groups: self.groups(),
            placement_groups: self.pools(),
            interfaces: self.ports(),
            volumes: self.vaults(),
            instances: self.machines(),
            file_systems: self.file_servers(),
            document_ready: self.document == Some(0),
            parameter_exists: self.parameter.is_some(),
            agents_online: self.agents(),
            ailing: self.ailing(),
            report: self
                .parameter
                .as_ref()
                .map(|told| fitted(said(told), self.fate.room_in_report)),
            notes: self.notes.clone(),
            installation_instances: self.catalog.other_instances + live,
            installation_hourly_cost: running.filter_map(price).sum(),
            ..self.surroundings()
        }
    }

    fn ailing(&self) -> Vec<Ailing> {
        let live = |id: &&InstanceId| self.instances.get(id).is_some_and(Machine::is_live);
        let ids = self.ailing.keys().filter(live);
        ids.filter_map(|id| Some(Ailing { id: id.clone(), ill: self.ailing.get(id)?.clone() }))
            .collect()
    }

    fn surroundings(&self) -> Observed {
        let catalog = &self.catalog;
        Observed {
            object: self.object.clone(),
            account: Some(Account { id: self.account.clone(), partition: "aws".to_owned() }),
            subnets: catalog.subnets.clone(),
            types: catalog.types.clone(),
            offered: catalog.offered.clone(),
            image: catalog.image.clone(),
            prices: catalog.prices.clone(),
            strangers: self.strangers.clone(),
            ..Observed::default()
        }
    }

    fn blind(&self) -> Observed {
        let failures = self.fate.reads.iter();
        let failures = failures.map(|kind| -> Failure {
            failure(*kind, "DescribeInstances", &kind.to_string(), "as the test wants it")
        });
        Observed { failures: failures.collect(), ..self.surroundings() }
    }

    fn shows(&self, tags: &Tags, hidden: u8) -> bool {
        hidden == 0 && self.is_ours(tags)
    }

    fn groups(&self) -> Vec<Group> {
        let shown = self.groups.iter().filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(id, found)| Group {
                id: id.clone(),
                name: found.name.clone(),
                rules: found.rules.iter().cloned().collect(),
                tags: found.tags.clone(),
            })
            .collect()
    }

    fn pools(&self) -> Vec<PlacementGroup> {
        let shown = self.placement_groups.iter();
        let shown = shown.filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(name, found)| PlacementGroup {
                name: name.clone(),
                available: found.coming == 0 && found.going.is_none(),
                deleting: found.going.is_some(),
            })
            .collect()
    }

    fn ports(&self) -> Vec<Interface> {
        let shown =
            self.interfaces.iter().filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(id, found)| Interface {
                id: id.clone(),
                private_ip: "10.0.0.10".to_owned(),
                in_use: found.user.is_some(),
                tags: found.tags.clone(),
            })
            .collect()
    }

    fn vaults(&self) -> Vec<Volume> {
        let shown = self.volumes.iter().filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(id, found)| Volume {
                id: id.clone(),
                state: found.state,
                attached_to: found.user.clone(),
                tags: found.tags.clone(),
            })
            .collect()
    }

    fn machines(&self) -> Vec<Instance> {
        let shown =
            self.instances.iter().filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(id, found)| Instance {
                id: id.clone(),
                instance_type: found.instance_type.clone(),
                zone: found.zone.clone(),
                state: found.state,
                state_reason: found.state_reason.clone(),
                private_ip: (found.state == InstanceState::Running).then(|| "10.0.0.20".to_owned()),
                launch_index: found.index,
                token: Some(found.token.clone()),
                tags: found.tags.clone(),
            })
            .collect()
    }

    fn file_servers(&self) -> Vec<FileSystem> {
        let shown =
            self.file_systems.iter().filter(|(_, found)| self.shows(&found.tags, found.hidden));
        shown
            .map(|(id, found)| FileSystem {
                id: id.clone(),
                lifecycle: found.lifecycle,
                failure: found.failure.clone(),
                dns_name: format!("{id}.fsx.us-east-1.amazonaws.com"),
                mount_name: mount_name(found),
                tags: found.tags.clone(),
            })
            .collect()
    }

    fn agents(&self) -> Vec<InstanceId> {
        let heads = self.instances.iter().filter(|(_, found)| {
            found.role() == HEAD
                && !found.mute
                && found.hidden == 0
                && found.state == InstanceState::Running
                && found.up >= self.agent_ticks()
        });
        heads.map(|(id, _)| id.clone()).collect()
    }
}

/// Shown from AVAILABLE on.
fn mount_name(found: &FileServer) -> String {
    let shown = found.lifecycle == Lifecycle::Available;
    if shown { "abcdefgh".to_owned() } else { String::new() }
}

fn said(told: &Told) -> Report {
    let failed = told.state == "Failed";
    Report {
        instance_id: told.head.0.clone(),
        state: told.state.clone(),
        step: if failed { "slurm".to_owned() } else { "head-loop".to_owned() },
        message: if failed { "slurmctld: fatal".to_owned() } else { String::new() },
        fleets: by_launch(&told.ready),
        left: by_launch(&told.left),
        demand: told.demand.clone(),
        queues: told.queues.clone(),
        worst: told.failed.clone(),
        ..Report::default()
    }
}

fn by_launch(nodes: &BTreeMap<(String, String, i32), BTreeSet<i32>>) -> Vec<ReportedFleet> {
    let fleets = nodes.iter().map(|((queue, gang, attempt), slots)| ReportedFleet {
        queue: queue.clone(),
        gang: gang.clone(),
        attempt: *attempt,
        ready: slots.iter().copied().collect(),
    });
    fleets.collect()
}

/// What a parameter has room for.
fn fitted(mut report: Report, room: Option<usize>) -> Report {
    let room = room.unwrap_or(usize::MAX);
    report.cut = report.demand.len().max(report.fleets.len()) > room;
    report.demand.truncate(room);
    report.fleets.truncate(room);
    report
}
