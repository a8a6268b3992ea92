//! What no plan may ever do, whatever was observed. Every test asserts it on every plan.
//!
//! Written from the invariants, not from the planner: a rule recomputes what it needs and trusts
//! nothing the planner says of itself.

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::{DeletionPolicy, Intent, IntentState};
use jiff::Timestamp;

use crate::Requeue;
use crate::cloud::{FileSystemId, InstanceId, Tags, Token};
use crate::cluster::{
    Body, ClusterPlan, Desired, Goal, Instance, LaunchBody, Lifecycle, Observed, Resource, Step,
};
use crate::intents::{self, Payload};
use crate::names::{
    ATTEMPT, CLUSTER, CLUSTER_UID, INSTALLATION, MOUNTED, RETAINED, ROLE, storage_role,
};
use crate::node::USER_DATA_LIMIT;

/// A plan beside what it was made from.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What was asked.
    pub desired: &'a Desired,
    /// What was seen.
    pub observed: &'a Observed,
    /// What is to be done.
    pub plan: &'a ClusterPlan,
    /// When.
    pub now: Timestamp,
}

/// Every rule a plan breaks, in words; empty when it breaks none.
pub fn violations(case: Case<'_>) -> Vec<String> {
    let rules: [fn(Case<'_>) -> Vec<String>; 12] = [
        creates_are_stored_intents,
        tokens_are_derived,
        creates_are_tagged,
        one_step_per_resource,
        the_finalizer_goes_last,
        only_ours_is_touched,
        data_is_kept,
        no_partial_gang_is_kept,
        stopped_means_stopped,
        limits_hold,
        user_data_fits,
        strange_intents_are_carried,
    ];
    rules.iter().flat_map(|rule| rule(case)).collect()
}

/// What a steady plan does besides nothing; empty when it does nothing at all.
pub fn unrest(case: Case<'_>) -> Vec<String> {
    let steps = case.plan.steps.iter().map(|step| format!("steady, yet: {step}"));
    let mut found: Vec<_> = steps.collect();
    if case.plan.status.status != case.observed.object.status {
        found.push("steady, yet the status differs".to_owned());
    }
    if case.plan.requeue != Requeue::OnChange {
        found.push(format!("steady, yet it looks again after {}", case.plan.requeue));
    }
    found
}

impl<'a> Case<'a> {
    fn creates(self) -> impl Iterator<Item = (&'a Token, &'a str, &'a Body)> {
        self.plan.steps.iter().filter_map(|step| match step {
            Step::Create { token, thing, body } => Some((token, thing.as_str(), body)),
            Step::AddFinalizer
            | Step::RemoveFinalizer
            | Step::CreateGroup { .. }
            | Step::Authorize { .. }
            | Step::Revoke { .. }
            | Step::CreatePlacementGroup { .. }
            | Step::CreateDocument { .. }
            | Step::AttachVolume { .. }
            | Step::TagRetained { .. }
            | Step::Terminate { .. }
            | Step::Delete { .. } => None,
        })
    }

    fn launches(self) -> impl Iterator<Item = &'a LaunchBody> {
        self.creates().filter_map(|(_, _, body)| match body {
            Body::Launch(body) => Some(body),
            Body::Interface(_) | Body::Volume(_) | Body::FileSystem(_) => None,
        })
    }

    fn terminated(self) -> BTreeSet<&'a InstanceId> {
        let ends = self.plan.steps.iter().filter_map(|step| match step {
            Step::Terminate { instances, .. } => Some(instances),
            Step::AddFinalizer
            | Step::RemoveFinalizer
            | Step::CreateGroup { .. }
            | Step::Authorize { .. }
            | Step::Revoke { .. }
            | Step::CreatePlacementGroup { .. }
            | Step::CreateDocument { .. }
            | Step::Create { .. }
            | Step::AttachVolume { .. }
            | Step::TagRetained { .. }
            | Step::Delete { .. } => None,
        });
        ends.flatten().collect()
    }

    fn intent(self, thing: &str) -> Option<&'a Intent> {
        self.observed.object.status.intents.iter().find(|intent| intent.thing == thing)
    }

    fn is_ours(self, tags: &Tags) -> bool {
        let owner = &self.desired.owner;
        tags.get(CLUSTER_UID) == Some(&owner.uid)
            && tags.get(INSTALLATION) == Some(&owner.installation)
    }

    /// Whether anything may be done in AWS at all.
    fn is_stopped(self) -> bool {
        let known = self.observed.object.status.aws.as_ref().map(|aws| &aws.account_id);
        let held = self.observed.account.as_ref().map(|account| &account.id);
        let wrong = held.is_none() || known.is_some_and(|known| Some(known) != held);
        wrong
            || !self.observed.failures.is_empty()
            || self.desired.settings.dry_run
            || self.desired.goal == Goal::Paused
    }
}

fn creates_are_stored_intents(case: Case<'_>) -> Vec<String> {
    let loose = case.creates().filter(|(token, thing, body)| {
        !case.intent(thing).is_some_and(|intent| {
            intent.token == token.0
                && intent.state == IntentState::Open
                && intent.version == intents::VERSION
                && intent.body_hash == intents::hash(body)
        })
    });
    loose
        .map(|(_, thing, _)| format!("{thing} is created though no stored intent says so"))
        .collect()
}

fn tokens_are_derived(case: Case<'_>) -> Vec<String> {
    let stored = case.plan.status.status.intents.iter();
    let ours = stored.filter(|intent| intent.version == intents::VERSION);
    let odd = ours.filter(|intent| {
        let zone = Payload::of(intent).zone;
        case.desired.owner.token(&intent.thing, &zone, intent.attempt).0 != intent.token
    });
    odd.map(|intent| format!("the token of {} is not derived from its names", intent.thing))
        .collect()
}

fn creates_are_tagged(case: Case<'_>) -> Vec<String> {
    let tags = case.plan.steps.iter().filter_map(|step| match step {
        Step::CreateGroup { tags, .. } | Step::CreatePlacementGroup { tags, .. } => {
            Some((step, tags, false))
        }
        Step::Create { body, .. } => Some((step, body.tags(), true)),
        Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::Authorize { .. }
        | Step::Revoke { .. }
        | Step::CreateDocument { .. }
        | Step::AttachVolume { .. }
        | Step::TagRetained { .. }
        | Step::Terminate { .. }
        | Step::Delete { .. } => None,
    });
    let untagged = tags.filter(|(_, tags, counted)| {
        !case.is_ours(tags)
            || tags.get(CLUSTER) != Some(&case.desired.owner.full_name())
            || !tags.contains_key(ROLE)
            || (*counted && !tags.contains_key(ATTEMPT))
    });
    untagged.map(|(step, ..)| format!("untagged: {step}")).collect()
}

fn one_step_per_resource(case: Case<'_>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    for key in case.plan.steps.iter().flat_map(touched) {
        *seen.entry(key).or_insert(0) += 1;
    }
    let twice = seen.into_iter().filter(|(_, count)| *count > 1);
    twice.map(|(key, count)| format!("{count} steps on {key}")).collect()
}

/// What a step touches; rules into and out of a group are separate.
fn touched(step: &Step) -> Vec<String> {
    let sided = |group: &crate::cloud::GroupId, rules: &[crate::cloud::Rule]| {
        let sides: BTreeSet<_> = rules.iter().map(|rule| rule.direction).collect();
        sides.iter().map(|side| format!("{group} {side}")).collect()
    };
    match step {
        Step::AddFinalizer | Step::RemoveFinalizer => vec!["the finalizer".to_owned()],
        Step::CreateGroup { name, .. }
        | Step::CreatePlacementGroup { name, .. }
        | Step::CreateDocument { name, .. } => vec![name.clone()],
        Step::Authorize { group, rules } | Step::Revoke { group, rules } => sided(group, rules),
        Step::Create { thing, .. } => vec![thing.clone()],
        Step::AttachVolume { volume, instance, .. } => {
            vec![volume.to_string(), instance.to_string()]
        }
        Step::TagRetained { resource, .. } | Step::Delete { resource, .. } => {
            vec![resource.to_string()]
        }
        Step::Terminate { instances, .. } => instances.iter().map(ToString::to_string).collect(),
    }
}

fn the_finalizer_goes_last(case: Case<'_>) -> Vec<String> {
    if !case.plan.steps.contains(&Step::RemoveFinalizer) {
        return vec![];
    }
    let mut broken: Vec<_> = left(case.observed)
        .into_iter()
        .map(|id| format!("the finalizer goes, {id} is there"))
        .collect();
    if case.plan.steps.len() > 1 {
        broken.push("the finalizer goes beside other steps".to_owned());
    }
    if case.desired.goal != Goal::Absent {
        broken.push("the finalizer goes from an object that stays".to_owned());
    }
    let gap = case.desired.settings.finalizer_gap;
    let looked = case
        .intent("finalizer")
        .is_some_and(|look| look.state == IntentState::Open && intents::age(look, case.now) >= gap);
    if !looked {
        broken.push("the finalizer goes without an earlier look".to_owned());
    }
    let window = case.desired.settings.visibility_window;
    let waited =
        case.intent("deletion").is_some_and(|began| intents::age(began, case.now) >= window);
    if !waited {
        broken.push("the finalizer goes before all that was made would show".to_owned());
    }
    broken
}

/// Everything seen that is not to outlive the object.
fn left(observed: &Observed) -> Vec<String> {
    let stays = |tags: &Tags| tags.contains_key(RETAINED);
    let groups = observed.groups.iter().filter(|found| !stays(&found.tags));
    let volumes = observed.volumes.iter().filter(|found| !stays(&found.tags));
    let files = observed.file_systems.iter().filter(|found| !stays(&found.tags));
    let machines = observed
        .instances
        .iter()
        .filter(|found| found.state != crate::cluster::InstanceState::Terminated);
    groups
        .map(|found| found.id.to_string())
        .chain(volumes.map(|found| found.id.to_string()))
        .chain(files.map(|found| found.id.to_string()))
        .chain(machines.map(|found| found.id.to_string()))
        .chain(observed.interfaces.iter().map(|found| found.id.to_string()))
        .chain(observed.placement_groups.iter().map(|found| found.name.clone()))
        .chain(observed.parameter_exists.then(|| "the parameter".to_owned()))
        .collect()
}

fn only_ours_is_touched(case: Case<'_>) -> Vec<String> {
    let observed = case.observed;
    let known = |step: &Step| match step {
        Step::Terminate { instances, .. } => instances.iter().all(|id| {
            let found = observed.instances.iter().find(|found| found.id == *id);
            found.is_some_and(|found| case.is_ours(&found.tags))
        }),
        Step::Delete { resource, .. } | Step::TagRetained { resource, .. } => owned(case, resource),
        Step::Authorize { group, .. } | Step::Revoke { group, .. } => {
            owned(case, &Resource::Group(group.clone()))
        }
        Step::AttachVolume { volume, .. } => owned(case, &Resource::Volume(volume.clone())),
        Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::CreateGroup { .. }
        | Step::CreatePlacementGroup { .. }
        | Step::CreateDocument { .. }
        | Step::Create { .. } => true,
    };
    let foreign = case.plan.steps.iter().filter(|step| !known(step));
    foreign.map(|step| format!("not seen as ours: {step}")).collect()
}

fn owned(case: Case<'_>, resource: &Resource) -> bool {
    let observed = case.observed;
    let tags = match resource {
        Resource::Group(id) => {
            observed.groups.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::Interface(id) => {
            observed.interfaces.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::Volume(id) => {
            observed.volumes.iter().find(|found| found.id == *id).map(|found| &found.tags)
        }
        Resource::FileSystem(id, _) => file_system(observed, id).map(|found| &found.tags),
        Resource::PlacementGroup(name) => {
            return observed.placement_groups.iter().any(|found| found.name == *name);
        }
        Resource::Parameter(name) => return *name == case.desired.owner.parameter(),
    };
    tags.is_some_and(|tags| case.is_ours(tags))
}

fn file_system<'a>(
    observed: &'a Observed,
    id: &FileSystemId,
) -> Option<&'a crate::cluster::FileSystem> {
    observed.file_systems.iter().find(|found| found.id == *id)
}

fn data_is_kept(case: Case<'_>) -> Vec<String> {
    let deleted = case.plan.steps.iter().filter_map(|step| match step {
        Step::Delete { resource, .. } => match resource {
            Resource::FileSystem(id, _) => Some(id.to_string()).filter(|_| !may_go(case, id)),
            Resource::Volume(id) => Some(id.to_string()).filter(|_| {
                case.desired.goal != Goal::Absent
                    || case.desired.cluster.state_policy != DeletionPolicy::Delete
            }),
            Resource::Group(_)
            | Resource::PlacementGroup(_)
            | Resource::Interface(_)
            | Resource::Parameter(_) => None,
        },
        Step::AddFinalizer
        | Step::RemoveFinalizer
        | Step::CreateGroup { .. }
        | Step::Authorize { .. }
        | Step::Revoke { .. }
        | Step::CreatePlacementGroup { .. }
        | Step::CreateDocument { .. }
        | Step::Create { .. }
        | Step::AttachVolume { .. }
        | Step::TagRetained { .. }
        | Step::Terminate { .. } => None,
    });
    deleted.map(|id| format!("{id} may hold data and is deleted")).collect()
}

/// Asked for, or FAILED and, as the status says, never AVAILABLE.
fn may_go(case: Case<'_>, id: &FileSystemId) -> bool {
    let Some(found) = file_system(case.observed, id) else {
        return false;
    };
    let mut storages = case.desired.cluster.storages.iter();
    let role = found.tags.get(ROLE);
    let wanted = storages.find(|storage| Some(&storage_role(&storage.name)) == role);
    let asked = case.desired.goal == Goal::Absent
        && wanted.is_some_and(|storage| storage.policy == DeletionPolicy::Delete);
    let name = wanted.map_or("", |storage| storage.name.as_str());
    let mut told = case.observed.object.status.storage.iter();
    let reached = told.any(|told| told.name == name && told.reached_available);
    let unfit = matches!(found.lifecycle, Lifecycle::Failed | Lifecycle::Misconfigured);
    let stored = case.intent(&format!("storage/{name}"));
    let unsettled = stored.is_some_and(|intent| intent.state != IntentState::Settled);
    let mounted = found.tags.contains_key(MOUNTED);
    asked || (unfit && !reached && !mounted && unsettled)
}

/// A gang that was given up goes; one that lost a member before it was whole is given up.
fn no_partial_gang_is_kept(case: Case<'_>) -> Vec<String> {
    if case.is_stopped() || !case.observed.object.finalizer {
        return vec![];
    }
    let ended = case.terminated();
    let mut kept = vec![];
    for intent in case.observed.object.status.intents.iter().filter(|intent| is_gang(intent)) {
        let gang: Vec<_> =
            case.observed.instances.iter().filter(|node| is_of(node, intent)).collect();
        let live =
            gang.iter().filter(|node| node.state.is_live() && !ended.contains(&node.id)).count();
        let partial =
            intent.state == IntentState::Acted && gang.iter().any(|node| !node.state.is_live());
        let mut after = case.plan.status.status.intents.iter();
        let given_up =
            after.any(|now| now.thing == intent.thing && now.state == IntentState::Abandoned);
        let was_given_up = intent.state == IntentState::Abandoned;
        if live > 0 && ((was_given_up && given_up) || (partial && !given_up)) {
            kept.push(format!("{live} nodes of the partial gang of {} are kept", intent.thing));
        }
    }
    kept
}

fn is_gang(intent: &Intent) -> bool {
    intent.version == intents::VERSION && intent.thing.starts_with("queue/")
}

fn is_of(node: &Instance, intent: &Intent) -> bool {
    let role = intent.thing.replace("queue/", "queue-");
    node.tags.get(ROLE) == Some(&role)
        && node.tags.get(ATTEMPT).is_some_and(|attempt| *attempt == intent.attempt.to_string())
}

fn stopped_means_stopped(case: Case<'_>) -> Vec<String> {
    if !case.is_stopped() {
        return vec![];
    }
    let moves = case.plan.steps.iter().filter(|step| **step != Step::AddFinalizer);
    moves.map(|step| format!("stopped, yet: {step}")).collect()
}

fn limits_hold(case: Case<'_>) -> Vec<String> {
    let settings = &case.desired.settings;
    let count: i64 = case.launches().map(|body| i64::from(body.count)).sum();
    let price = |body: &LaunchBody| {
        let each = case.observed.prices.get(&body.instance_type).copied().unwrap_or(i64::MAX);
        each.saturating_mul(i64::from(body.count))
    };
    let cost = case.launches().map(price).fold(0, i64::saturating_add);
    let mut broken = vec![];
    if count > 0
        && case.observed.installation_instances.saturating_add(count) > settings.max_instances
    {
        broken.push(format!("{count} launches pass --max-instances {}", settings.max_instances));
    }
    let total = case.observed.installation_hourly_cost.saturating_add(cost);
    if count > 0 && total > settings.max_hourly_cost {
        broken
            .push(format!("{count} launches pass --max-hourly-cost {}", settings.max_hourly_cost));
    }
    broken
}

fn user_data_fits(case: Case<'_>) -> Vec<String> {
    let long = case.launches().filter(|body| body.user_data.len() > USER_DATA_LIMIT);
    long.map(|body| format!("{} bytes of user data", body.user_data.len())).collect()
}

fn strange_intents_are_carried(case: Case<'_>) -> Vec<String> {
    let strange = case.observed.object.status.intents.iter();
    let strange = strange.filter(|intent| intent.version != intents::VERSION);
    let lost = strange.filter(|intent| !case.plan.status.status.intents.contains(intent));
    lost.map(|intent| {
        format!("the intent of {} of version {} is not carried", intent.thing, intent.version)
    })
    .collect()
}
