//! Creates with a token: a repeat is answered as the first was, another body is refused, and what
//! a token made and lost is never made again under it.

use crate::cloud::{
    Failure, FileSystemId, GroupId, InstanceId, InterfaceId, Kind, Tags, Token, VolumeId,
};
use crate::cluster::{
    Body, FileSystemBody, InstanceState, InterfaceBody, LaunchBody, Lifecycle, VolumeBody,
    VolumeState,
};
use crate::intents;
use crate::names::{HEAD, ROLE, slots_of};
use crate::node::{USER_DATA_LIMIT, user_data_len};
use crate::slots::Slots;

use super::apply::{Answer, in_use, missing, short};
use super::{Answered, FOREVER, FileServer, Machine, Port, Vault, World, failure};

impl World {
    pub(super) fn create(&mut self, token: &Token, body: &Body) -> Answer {
        let answer = self.answer(token, body);
        if std::mem::take(&mut self.fate.lose_answer) {
            return Err(failure(Kind::Unknown, action(body), "Timeout", "no answer came"));
        }
        answer
    }

    fn answer(&mut self, token: &Token, body: &Body) -> Answer {
        let key = (token.0.clone(), self.zone_of(body));
        let digest = intents::hash(body);
        if let Some(known) = self.tokens.get(&key) {
            return self.replay(known, &digest, body);
        }
        let ids = match body {
            Body::Interface(body) => self.create_interface(token, body)?,
            Body::Volume(body) => self.create_volume(token, body),
            Body::FileSystem(body) => self.create_file_system(token, body)?,
            Body::Launch(body) => self.launch(token, body)?,
        };
        self.tokens.insert(key, Answered { digest, ids: ids.clone() });
        Ok(ids)
    }

    /// Launches are idempotent per zone, the rest per region.
    fn zone_of(&self, body: &Body) -> String {
        match body {
            Body::Launch(body) => {
                self.catalog.zone(body.subnet.as_str()).unwrap_or_default().to_owned()
            }
            Body::Interface(_) | Body::Volume(_) | Body::FileSystem(_) => String::new(),
        }
    }

    fn replay(&self, known: &Answered, digest: &str, body: &Body) -> Answer {
        if known.digest != digest {
            let code = "IdempotentParameterMismatch";
            return Err(failure(Kind::TokenMismatch, action(body), code, "another body"));
        }
        let ended = known.ids.iter().any(|id| {
            let found = self.instances.get(&InstanceId(id.clone()));
            matches!(body, Body::Launch(_)) && !found.is_some_and(Machine::is_live)
        });
        if ended {
            let code = "IdempotentInstanceTerminated";
            return Err(failure(Kind::TokenSpent, action(body), code, "its instances ended"));
        }
        Ok(known.ids.clone())
    }

    fn create_interface(&mut self, token: &Token, body: &InterfaceBody) -> Answer {
        self.need_groups("CreateNetworkInterface", &body.groups)?;
        self.judge_single(
            &body.tags,
            self.interfaces.values().any(|found| same(&found.tags, &body.tags)),
        );
        let id = InterfaceId(format!("eni-{}", short(&[&token.0])));
        let port = Port {
            groups: body.groups.clone(),
            tags: body.tags.clone(),
            user: None,
            hidden: self.catalog.pace.hidden,
        };
        self.interfaces.insert(id.clone(), port);
        Ok(vec![id.0])
    }

    fn create_volume(&mut self, token: &Token, body: &VolumeBody) -> Vec<String> {
        let doubled = self
            .volumes
            .values()
            .any(|found| same(&found.tags, &body.tags) && found.state != VolumeState::Deleting);
        self.judge_single(&body.tags, doubled);
        let id = VolumeId(format!("vol-{}", short(&[&token.0])));
        let vault = Vault {
            state: VolumeState::Creating,
            left: self.catalog.pace.small,
            user: None,
            tags: body.tags.clone(),
            hidden: self.catalog.pace.hidden,
        };
        self.volumes.insert(id.clone(), vault);
        vec![id.0]
    }

    fn create_file_system(&mut self, token: &Token, body: &FileSystemBody) -> Answer {
        self.need_groups("CreateFileSystem", &body.groups)?;
        let doubled = self
            .file_systems
            .values()
            .any(|found| same(&found.tags, &body.tags) && found.lifecycle != Lifecycle::Deleting);
        self.judge_single(&body.tags, doubled);
        let id = FileSystemId(format!("fs-{}", short(&[&token.0])));
        let file_system = FileServer {
            lifecycle: Lifecycle::Creating,
            left: self.catalog.pace.file_system,
            failure: None,
            ever_available: false,
            used: false,
            groups: body.groups.clone(),
            tags: body.tags.clone(),
            hidden: self.catalog.pace.hidden,
        };
        self.file_systems.insert(id.clone(), file_system);
        Ok(vec![id.0])
    }

    /// Two of a kind are never wanted: data or an address would be split.
    fn judge_single(&mut self, tags: &Tags, doubled: bool) {
        let role = tags.get(ROLE).cloned().unwrap_or_default();
        if doubled {
            self.ledger.sin(format!("a second {role} was made beside the first"));
        }
        self.ledger.count(&role);
    }

    fn launch(&mut self, token: &Token, body: &LaunchBody) -> Answer {
        self.admit(body)?;
        self.judge_launch(body);
        for found in self.file_systems.values_mut() {
            found.used |= found.lifecycle == Lifecycle::Available;
        }
        let role = body.tags.get(ROLE).cloned().unwrap_or_default();
        let count = u32::try_from(body.count).unwrap_or_default();
        *self.ledger.launched.entry(role.clone()).or_default() += count;
        let doomed = role != HEAD && take(&mut self.fate.dying_gangs);
        let mute = role == HEAD && take(&mut self.fate.mute_heads);
        let broken = role == HEAD && take(&mut self.fate.broken_heads);
        let sick = role != HEAD && take(&mut self.fate.broken_gangs);
        let mut ids = vec![];
        for index in 0..body.count {
            let id =
                InstanceId(format!("i-{}", short(&[&token.0, &body.subnet.0, &index.to_string()])));
            if let Some(port) =
                body.interface.as_ref().and_then(|port| self.interfaces.get_mut(port))
            {
                port.user = Some(id.clone());
            }
            let machine = Machine {
                doomed: doomed && index == 0,
                mute,
                broken: broken || (sick && index == 0),
                ..self.machine(token, body, index)
            };
            self.instances.insert(id.clone(), machine);
            ids.push(id.0);
        }
        Ok(ids)
    }

    fn machine(&self, token: &Token, body: &LaunchBody, index: i32) -> Machine {
        Machine {
            instance_type: body.instance_type.clone(),
            zone: self.catalog.zone(body.subnet.as_str()).unwrap_or_default().to_owned(),
            state: InstanceState::Pending,
            left: self.catalog.pace.pending,
            state_reason: None,
            index,
            token: token.0.clone(),
            groups: body.groups.clone(),
            pool: body.placement_group.clone(),
            port: body.interface.clone(),
            up: 0,
            booted: 0,
            doomed: false,
            mute: false,
            broken: false,
            away: false,
            tags: body.tags.clone(),
            hidden: self.catalog.pace.hidden,
        }
    }

    /// All or nothing: what is refused leaves nothing behind.
    fn admit(&self, body: &LaunchBody) -> Result<(), Failure> {
        let action = "RunInstances";
        let invalid =
            |message: &str| Err(failure(Kind::Invalid, action, "InvalidParameterValue", message));
        let Some(zone) = self.catalog.zone(body.subnet.as_str()) else {
            return Err(missing(action, "InvalidSubnetID.NotFound", body.subnet.as_str()));
        };
        if body.count < 1 {
            return invalid("MinCount must be positive");
        }
        if user_data_len(&body.user_data) > USER_DATA_LIMIT {
            return invalid("User data is limited to 16384 bytes");
        }
        if body.interface.is_none() == body.nics.is_empty() {
            return invalid("either an interface or a layout of interfaces");
        }
        self.need_groups(action, &body.groups)?;
        self.need_pool(body, zone)?;
        self.need_port(body)?;
        let place = (body.instance_type.clone(), zone.to_owned());
        if !self.catalog.offered.contains(&place) {
            return Err(failure(
                Kind::NotOffered,
                action,
                "Unsupported",
                "not offered in this zone",
            ));
        }
        if self.fate.without_capacity.contains_key(&body.instance_type) {
            let code = "InsufficientInstanceCapacity";
            return Err(failure(Kind::Capacity, action, code, "no capacity now"));
        }
        Ok(())
    }

    fn need_groups(&self, action: &str, groups: &[GroupId]) -> Result<(), Failure> {
        match groups.iter().find(|id| !self.groups.contains_key(id)) {
            Some(id) => Err(missing(action, "InvalidGroup.NotFound", id.as_str())),
            None => Ok(()),
        }
    }

    fn need_pool(&self, body: &LaunchBody, zone: &str) -> Result<(), Failure> {
        let Some(name) = &body.placement_group else {
            return Ok(());
        };
        let usable = self.placement_groups.get(name);
        if !usable.is_some_and(|pool| pool.coming == 0 && pool.going.is_none()) {
            return Err(missing("RunInstances", "InvalidPlacementGroup.Unknown", name));
        }
        let mut members = self.instances.values().filter(|found| found.pool.as_ref() == Some(name));
        match members.find(|found| !found.is_gone() && found.zone != zone) {
            Some(_) => Err(in_use("RunInstances", "InvalidPlacementGroup.InUse", name)),
            None => Ok(()),
        }
    }

    fn need_port(&self, body: &LaunchBody) -> Result<(), Failure> {
        let Some(id) = &body.interface else {
            return Ok(());
        };
        match self.interfaces.get(id) {
            None => Err(missing("RunInstances", "InvalidNetworkInterfaceID.NotFound", id.as_str())),
            Some(port) if port.user.is_some() => {
                Err(in_use("RunInstances", "InvalidNetworkInterface.InUse", id.as_str()))
            }
            Some(_) => Ok(()),
        }
    }

    /// Notes a launch into a slot that a live instance holds already, shown or not.
    fn judge_launch(&mut self, body: &LaunchBody) {
        let role = body.tags.get(ROLE).cloned().unwrap_or_default();
        let slots = slots_of(&body.tags);
        let live = self.instances.values().filter(|found| found.is_live() && found.role() == role);
        let holds = |found: &Machine| found.slot().is_some_and(|slot| slots.contains(slot));
        let held: Vec<_> = live.filter(|found| role == HEAD || holds(found)).collect();
        if !held.is_empty() {
            let held: Slots = held.into_iter().filter_map(Machine::slot).collect();
            self.ledger.sin(format!("{role} {held} was launched twice"));
        }
    }
}

fn same(one: &Tags, other: &Tags) -> bool {
    one.get(ROLE) == other.get(ROLE)
}

/// One of the next so many: counts down and tells whether this is one.
pub(super) fn take(left: &mut u8) -> bool {
    let is_one = *left > 0;
    if *left != FOREVER {
        *left = left.saturating_sub(1);
    }
    is_one
}

/// The AWS action behind a body.
pub(super) const fn action(body: &Body) -> &'static str {
    match body {
        Body::Interface(_) => "CreateNetworkInterface",
        Body::Volume(_) => "CreateVolume",
        Body::FileSystem(_) => "CreateFileSystem",
        Body::Launch(_) => "RunInstances",
    }
}
