//! What a step does to the world: a name taken, a rule added, a mark set; the rest is in
//! [`super::create`] and [`super::delete`].

use std::collections::BTreeSet;

use crate::cloud::{
    Direction, Failure, GroupId, InstanceId, Kind, Peer, Rule, Tags, Traffic, VolumeId,
};
use crate::cluster::{InstanceState, Resource, Step, VolumeState};
use crate::names::{CLUSTER_UID, INSTALLATION, digest};

use super::{Net, Pool, World, failure};

/// Ids of what a step made, or why it did not.
pub(super) type Answer = Result<Vec<String>, Failure>;

impl World {
    /// Carries out one step, as AWS and the apiserver would.
    ///
    /// # Errors
    /// What AWS would answer: a name taken, something in use, no capacity, a token spent.
    pub fn apply(&mut self, step: &Step) -> Answer {
        match step {
            Step::AddFinalizer => {
                self.object.finalizer = true;
                Ok(vec![])
            }
            Step::RemoveFinalizer => {
                self.take_finalizer();
                Ok(vec![])
            }
            Step::CreateGroup { .. }
            | Step::Authorize { .. }
            | Step::Revoke { .. }
            | Step::CreatePlacementGroup { .. }
            | Step::CreateDocument { .. }
            | Step::Create { .. }
            | Step::AttachVolume { .. }
            | Step::TagRetained { .. }
            | Step::Answer { .. }
            | Step::Terminate { .. }
            | Step::Delete { .. } => {
                self.ledger.calls.0 += 1;
                match self.refusal(action(step)) {
                    Some(refused) => Err(refused),
                    None => self.call(step),
                }
            }
        }
    }

    fn call(&mut self, step: &Step) -> Answer {
        match step {
            Step::AddFinalizer | Step::RemoveFinalizer => Ok(vec![]),
            Step::CreateGroup { name, tags, .. } => self.create_group(name, tags),
            Step::Authorize { group, rules } => self.authorize(group, rules),
            Step::Revoke { group, rules } => self.revoke(group, rules),
            Step::CreatePlacementGroup { name, tags } => self.create_pool(name, tags),
            Step::CreateDocument { .. } => self.create_document(),
            Step::Create { token, body, .. } => self.create(token, body),
            Step::AttachVolume { volume, instance, .. } => self.attach(volume, instance),
            Step::TagRetained { resource, tags } => self.mark(resource, tags),
            Step::Answer { parameter, text } => {
                self.notes.insert(parameter.clone(), text.clone());
                Ok(vec![])
            }
            Step::Terminate { instances, .. } => self.terminate(instances),
            Step::Delete { resource, .. } => self.delete(resource),
        }
    }

    fn take_finalizer(&mut self) {
        let left = self.leftovers();
        if !left.is_empty() {
            self.ledger.sin(format!("the finalizer went while {} was there", left.join(" ")));
        }
        self.object.finalizer = false;
        self.released = true;
    }

    fn create_group(&mut self, name: &str, tags: &Tags) -> Answer {
        if self.groups.values().any(|group| group.name == name) {
            return Err(duplicate("CreateSecurityGroup", "InvalidGroup.Duplicate", name));
        }
        let nth = self.ledger.count(name);
        let id = GroupId(format!("sg-{}", short(&[name, &nth.to_string()])));
        let everywhere = Rule {
            direction: Direction::Egress,
            traffic: Traffic::All,
            peer: Peer::Cidr("0.0.0.0/0".to_owned()),
        };
        let group = Net {
            name: name.to_owned(),
            rules: [everywhere].into(),
            tags: tags.clone(),
            hidden: self.catalog.pace.hidden,
        };
        self.groups.insert(id.clone(), group);
        Ok(vec![id.0])
    }

    fn authorize(&mut self, id: &GroupId, rules: &[Rule]) -> Answer {
        let stranger = rules.iter().find_map(|rule| match &rule.peer {
            Peer::Group(peer) if !self.groups.contains_key(peer) => Some(peer.0.clone()),
            Peer::Group(_) | Peer::Cidr(_) => None,
        });
        if let Some(peer) = stranger {
            return Err(missing("AuthorizeSecurityGroup", "InvalidGroup.NotFound", &peer));
        }
        let Some(group) = self.groups.get_mut(id) else {
            return Err(gone("AuthorizeSecurityGroup", "InvalidGroup.NotFound", id.as_str()));
        };
        group.rules.extend(rules.iter().cloned());
        Ok(vec![])
    }

    fn revoke(&mut self, id: &GroupId, rules: &[Rule]) -> Answer {
        let Some(group) = self.groups.get_mut(id) else {
            return Err(gone("RevokeSecurityGroup", "InvalidGroup.NotFound", id.as_str()));
        };
        let rules: BTreeSet<_> = rules.iter().collect();
        group.rules.retain(|rule| !rules.contains(rule));
        Ok(vec![])
    }

    fn create_pool(&mut self, name: &str, tags: &Tags) -> Answer {
        if self.placement_groups.contains_key(name) {
            return Err(duplicate("CreatePlacementGroup", "InvalidPlacementGroup.Duplicate", name));
        }
        let pace = self.catalog.pace;
        let pool =
            Pool { tags: tags.clone(), coming: pace.small, going: None, hidden: pace.hidden };
        self.placement_groups.insert(name.to_owned(), pool);
        Ok(vec![name.to_owned()])
    }

    fn create_document(&mut self) -> Answer {
        if self.document.is_some() {
            return Err(duplicate("CreateDocument", "DocumentAlreadyExists", "the document"));
        }
        self.document = Some(self.catalog.pace.small);
        Ok(vec![])
    }

    fn attach(&mut self, volume: &VolumeId, instance: &InstanceId) -> Answer {
        let running =
            self.instances.get(instance).is_some_and(|found| found.state == InstanceState::Running);
        let Some(vault) = self.volumes.get_mut(volume) else {
            return Err(gone("AttachVolume", "InvalidVolume.NotFound", volume.as_str()));
        };
        if !running || vault.state != VolumeState::Available {
            return Err(in_use("AttachVolume", "IncorrectState", volume.as_str()));
        }
        vault.state = VolumeState::InUse;
        vault.user = Some(instance.clone());
        Ok(vec![])
    }

    fn mark(&mut self, resource: &Resource, more: &Tags) -> Answer {
        let tags = match resource {
            Resource::Group(id) => self.groups.get_mut(id).map(|found| &mut found.tags),
            Resource::PlacementGroup(name) => {
                self.placement_groups.get_mut(name).map(|found| &mut found.tags)
            }
            Resource::Interface(id) => self.interfaces.get_mut(id).map(|found| &mut found.tags),
            Resource::Volume(id) => self.volumes.get_mut(id).map(|found| &mut found.tags),
            Resource::FileSystem(id, _) => {
                self.file_systems.get_mut(id).map(|found| &mut found.tags)
            }
            Resource::Parameter(_) => None,
        };
        let Some(tags) = tags else {
            return Err(gone("CreateTags", "InvalidID", &resource.to_string()));
        };
        tags.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
        Ok(vec![])
    }

    /// Whether tags say that a thing is this cluster's.
    pub(super) fn is_ours(&self, tags: &Tags) -> bool {
        tags.get(CLUSTER_UID) == Some(&self.owner.uid)
            && tags.get(INSTALLATION) == Some(&self.owner.installation)
    }
}

/// The AWS action behind a step.
fn action(step: &Step) -> &'static str {
    match step {
        Step::AddFinalizer | Step::RemoveFinalizer => "",
        Step::CreateGroup { .. } => "CreateSecurityGroup",
        Step::Authorize { .. } => "AuthorizeSecurityGroup",
        Step::Revoke { .. } => "RevokeSecurityGroup",
        Step::CreatePlacementGroup { .. } => "CreatePlacementGroup",
        Step::CreateDocument { .. } => "CreateDocument",
        Step::Create { body, .. } => super::create::action(body),
        Step::AttachVolume { .. } => "AttachVolume",
        Step::TagRetained { .. } => "CreateTags",
        Step::Answer { .. } => "PutParameter",
        Step::Terminate { .. } => "TerminateInstances",
        Step::Delete { resource, .. } => super::delete::action(resource),
    }
}

/// Seventeen hex characters that depend on nothing but the parts.
pub(super) fn short(parts: &[&str]) -> String {
    let mut text = digest(parts);
    text.truncate(17);
    text
}

pub(super) fn duplicate(action: &str, code: &str, what: &str) -> Failure {
    failure(Kind::Exists, action, code, &format!("{what} already exists"))
}

pub(super) fn gone(action: &str, code: &str, what: &str) -> Failure {
    failure(Kind::NotFound, action, code, &format!("{what} does not exist"))
}

pub(super) fn missing(action: &str, code: &str, what: &str) -> Failure {
    failure(Kind::Dependency, action, code, &format!("{what} does not exist"))
}

pub(super) fn in_use(action: &str, code: &str, what: &str) -> Failure {
    failure(Kind::InUse, action, code, &format!("{what} is in use"))
}
