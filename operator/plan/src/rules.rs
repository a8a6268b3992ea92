//! What no plan may ever do, whatever was observed. Every test asserts it on every plan.
//!
//! Written from the invariants, not from the planner: a rule recomputes what it needs and trusts
//! nothing the planner says of itself.

mod endings;

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::{Intent, IntentState};
use jiff::Timestamp;

use crate::Requeue;
use crate::cloud::{GroupId, InstanceId, Rule, Tags, Token};
use crate::cluster::{Body, ClusterPlan, Desired, Goal, LaunchBody, Observed, Step, Wait};
use crate::intents::{self, Payload};
use crate::names::{ATTEMPT, CLUSTER, CLUSTER_UID, INSTALLATION, ROLE};
use crate::node::{USER_DATA_LIMIT, user_data_len};
use endings::{
    data_is_kept, no_partial_gang_is_kept, nothing_in_use_is_taken, only_ours_is_touched,
    the_finalizer_goes_last,
};

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
    let rules: [fn(Case<'_>) -> Vec<String>; 13] = [
        creates_are_stored_intents,
        tokens_are_derived,
        creates_are_tagged,
        one_step_per_resource,
        the_finalizer_goes_last,
        only_ours_is_touched,
        data_is_kept,
        no_partial_gang_is_kept,
        nothing_in_use_is_taken,
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
    let poll = case.desired.settings.demand_poll;
    let leaves = case.plan.waits.iter().any(|wait| matches!(wait, Wait::Leaving { .. }));
    let listens = case.desired.can_grow() || leaves;
    let rests = match case.plan.requeue {
        Requeue::OnReport { poll: asked, most } => {
            listens && asked == poll && most.is_some() == leaves
        }
        Requeue::OnChange => !listens,
        Requeue::After(_) => false,
    };
    if !rests {
        found.push(format!("steady, yet it looks again after {}", case.plan.requeue));
    }
    found
}

impl<'a> Case<'a> {
    fn creates(self) -> impl Iterator<Item = (&'a Token, &'a str, &'a Body)> {
        self.plan.steps.iter().filter_map(|step| {
            let Step::Create { token, thing, body } = step else { return None };
            Some((token, thing.as_str(), body))
        })
    }

    fn launches(self) -> impl Iterator<Item = &'a LaunchBody> {
        self.creates().filter_map(|(_, _, body)| {
            let Body::Launch(body) = body else { return None };
            Some(body)
        })
    }

    fn terminated(self) -> BTreeSet<&'a InstanceId> {
        let ends = self.plan.steps.iter().filter_map(|step| {
            let Step::Terminate { instances, .. } = step else { return None };
            Some(instances)
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
            || self.lacks_reads()
            || self.desired.settings.dry_run
            || self.desired.goal == Goal::Paused
    }
}

impl Case<'_> {
    /// Whether a read failed that tells what exists; one who leaves needs no other.
    fn lacks_reads(self) -> bool {
        const OFFER: [&str; 6] = [
            "DescribeDocument",
            "DescribeImages",
            "DescribeInstanceInformation",
            "DescribeInstanceTypeOfferings",
            "DescribeInstanceTypes",
            "DescribeSubnets",
        ];
        let is_leaving = self.desired.goal == Goal::Absent;
        let mut failures = self.observed.failures.iter();
        failures.any(|failure| !(is_leaving && OFFER.contains(&failure.operation.as_str())))
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
        | Step::Answer { .. }
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
    let sided = |group: &GroupId, rules: &[Rule]| {
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
        Step::Answer { parameter, .. } => vec![parameter.clone()],
        Step::AttachVolume { volume, instance, .. } => {
            vec![volume.to_string(), instance.to_string()]
        }
        Step::TagRetained { resource, .. } | Step::Delete { resource, .. } => {
            vec![resource.to_string()]
        }
        Step::Terminate { instances, .. } => instances.iter().map(ToString::to_string).collect(),
    }
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
    let sizes = case.launches().map(|body| user_data_len(&body.user_data));
    let long = sizes.filter(|size| *size > USER_DATA_LIMIT);
    long.map(|size| format!("{size} bytes of user data")).collect()
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
