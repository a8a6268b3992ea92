//! What can be known before anything is made: types, zones, images, limits. Refusing here costs
//! nothing; refusing later leaves things behind.

use hpc_crds::{ConditionType, Intent, IntentState, Reason};

use crate::cloud::{InstanceType, SubnetId};
use crate::intents::Payload;

use super::desired::Queue;
use super::notes;
use super::part::{Verdict, View};

/// A part and what is wrong with it.
pub(super) type Fault = (ConditionType, Verdict);

/// All faults of the spec against the cloud; empty when the cluster can be built.
pub(super) fn faults(view: &View<'_>) -> Vec<Fault> {
    let mut faults = subnets(view);
    if faults.is_empty() {
        faults.extend(head(view).or_else(|| notes::fault(view)));
        faults.extend(view.desired.cluster.queues.iter().filter_map(|queue| of_queue(view, queue)));
    }
    if faults.is_empty() {
        faults.extend(limits(view));
    }
    faults
}

/// What a user can do about a field that cannot be changed.
const ANEW: &str = "Delete the cluster and apply it again with";

fn fault(part: ConditionType, reason: Reason, message: String) -> Fault {
    (part, Verdict::refused(reason, message))
}

fn subnets(view: &View<'_>) -> Vec<Fault> {
    let cluster = &view.desired.cluster;
    let named = std::iter::once((&cluster.head_subnet, "headSubnetId"))
        .chain(cluster.compute_subnets.iter().map(|id| (id, "computeSubnetIds")));
    let missing = named.filter(|(id, _)| view.subnet(id).is_none());
    let faults = missing.map(|(id, field)| {
        let message = format!(
            "spec.aws.network.{field}: subnet '{id}' does not exist in {}. {ANEW} a subnet of this \
             account and region",
            cluster.region
        );
        fault(ConditionType::NetworkReady, Reason::DependencyMissing, message)
    });
    faults.take(1).collect()
}

fn head(view: &View<'_>) -> Option<Fault> {
    let name = &view.desired.cluster.head_type;
    let part = ConditionType::HeadReady;
    let Some(kind) = view.observed.types.get(name) else {
        return Some(fault(
            part,
            Reason::NotOffered,
            unknown_type("spec.aws.head.instanceType", name),
        ));
    };
    let Some(image) = &view.observed.image else {
        let message = format!(
            "spec.aws.image: no image was found for {}. {ANEW} spec.aws.image.id, an image of that family",
            view.desired.cluster.image_family
        );
        return Some(fault(part, Reason::DependencyMissing, message));
    };
    if image.architecture != kind.architecture {
        let message = format!(
            "spec.aws.head.instanceType: '{name}' is {}, but image {} is {}. {ANEW} a type of the \
             image's architecture",
            kind.architecture, image.id, image.architecture
        );
        return Some(fault(part, Reason::UnsupportedConfiguration, message));
    }
    if let Some(message) = mixed(view, kind) {
        return Some(fault(part, Reason::UnsupportedConfiguration, message));
    }
    let subnet = view.subnet(&view.desired.cluster.head_subnet)?;
    (!offered(view, name, &subnet.zone)).then(|| {
        let message = not_offered("spec.aws.head.instanceType", name, &subnet.zone);
        fault(part, Reason::NotOffered, message)
    })
}

/// The image is found for the head, and all nodes boot it: where the head is of another
/// architecture than a queue, neither is to blame alone.
fn mixed(view: &View<'_>, head: &InstanceType) -> Option<String> {
    let cluster = &view.desired.cluster;
    let mut queues = cluster.queues.iter().filter(|_| cluster.image_id.is_none());
    queues.find_map(|queue| {
        let mut kinds = queue.types.iter().filter_map(|name| view.observed.types.get(name));
        let other = kinds.find(|kind| kind.architecture != head.architecture)?;
        Some(format!(
            "spec.aws.head.instanceType: '{}' is {}, but '{}' of queue '{}' is {}, and all nodes boot \
             one image. {ANEW} types of one architecture",
            head.name, head.architecture, other.name, queue.name, other.architecture
        ))
    })
}

fn of_queue(view: &View<'_>, queue: &Queue) -> Option<Fault> {
    let part = ConditionType::FleetsReady;
    let field = format!("spec.aws.queues[{}].instanceTypes", queue.name);
    let mut kinds = vec![];
    for name in &queue.types {
        match view.observed.types.get(name) {
            None => return Some(fault(part, Reason::NotOffered, unknown_type(&field, name))),
            Some(kind) => kinds.push(kind),
        }
    }
    let unsupported = kinds.iter().find_map(|kind| unfit(view, queue, kind, &field));
    if let Some(message) = unsupported.or_else(|| unequal(&kinds, &field)) {
        return Some(fault(part, Reason::UnsupportedConfiguration, message));
    }
    let nowhere = queue.types.iter().all(|name| places(view, name).is_empty());
    (nowhere && queue.most > 0).then(|| {
        let zones: Vec<_> = zones(view).collect();
        let message = not_offered(&field, &queue.types.join("' or '"), &zones.join(", "));
        fault(part, Reason::NotOffered, message)
    })
}

fn unfit(view: &View<'_>, queue: &Queue, kind: &InstanceType, field: &str) -> Option<String> {
    let name = &kind.name;
    if queue.efa && kind.max_efa == 0 {
        return Some(format!(
            "{field}: '{name}' has no EFA. {ANEW} networkInterface ENA or a type that has EFA, such as \
             c5n.18xlarge"
        ));
    }
    if queue.grouped && !kind.cluster_placement {
        return Some(format!(
            "{field}: '{name}' cannot be in a cluster placement group. {ANEW} placement None or \
             another type"
        ));
    }
    let image = view.observed.image.as_ref().filter(|_| view.desired.cluster.image_id.is_some())?;
    (image.architecture != kind.architecture).then(|| {
        format!(
            "{field}: '{name}' is {}, but image {} is {}. {ANEW} a type of the image's architecture",
            kind.architecture, image.id, image.architecture
        )
    })
}

/// The scheduler knows one kind of node per queue, so fall-backs must be equal in what it counts.
fn unequal(kinds: &[&InstanceType], field: &str) -> Option<String> {
    let (first, second) = (kinds.first()?, kinds.get(1)?);
    let numbers = |kind: &InstanceType| (kind.cores, kind.vcpus, kind.memory_mib, kind.max_efa);
    (numbers(first) != numbers(second)).then(|| {
        let words = |kind: &InstanceType| {
            format!(
                "'{}' has {} cores, {} vCPUs, {} MiB and {} EFA",
                kind.name, kind.cores, kind.vcpus, kind.memory_mib, kind.max_efa
            )
        };
        format!(
            "{field}: {}, but {}. Types of one queue must be equal in these. {ANEW} the second in a \
             queue of its own",
            words(first),
            words(second)
        )
    })
}

fn unknown_type(field: &str, name: &str) -> String {
    format!(
        "{field}: AWS knows no instance type '{name}' in this region. {ANEW} one that exists, such as \
         c5n.18xlarge"
    )
}

fn not_offered(field: &str, name: &str, zone: &str) -> String {
    format!(
        "{field}: '{name}' is not offered in {zone}. {ANEW} another type, or with a subnet in a zone \
         that offers it"
    )
}

fn zones<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> {
    let subnets = view.desired.cluster.compute_subnets.iter();
    let view = *view;
    subnets.filter_map(move |id| view.subnet(id)).map(|subnet| subnet.zone.as_str())
}

fn offered(view: &View<'_>, name: &str, zone: &str) -> bool {
    view.observed.offered.iter().any(|(kind, place)| kind == name && place == zone)
}

/// Subnets of the queues whose zone offers the type, in the order of the spec.
pub(super) fn places<'a>(view: &View<'a>, name: &str) -> Vec<(&'a SubnetId, &'a str)> {
    let subnets = view.desired.cluster.compute_subnets.iter();
    let found =
        subnets.filter_map(|id| view.subnet(id)).map(|subnet| (&subnet.id, subnet.zone.as_str()));
    found.filter(|(_, zone)| offered(view, name, zone)).collect()
}

/// Before anything is made: whether the head and the nodes that always run keep the limits of the
/// installation. Later each launch asks for itself.
fn limits(view: &View<'_>) -> Option<Fault> {
    if !(view.observed.groups.is_empty() && view.observed.object.status.intents.is_empty()) {
        return None;
    }
    let cluster = &view.desired.cluster;
    let head = (std::slice::from_ref(&cluster.head_type), 1);
    let fleets = cluster.queues.iter().map(|queue| {
        (queue.types.as_slice(), i64::try_from(queue.nodes.len()).unwrap_or(i64::MAX))
    });
    let asked: Vec<_> = std::iter::once(head).chain(fleets).filter(|(_, n)| *n > 0).collect();
    let count = asked.iter().fold(0_i64, |sum, (_, count)| sum.saturating_add(*count));
    let cost = asked.iter().try_fold(0_i64, |sum, (types, count)| {
        Some(sum.saturating_add(dearest(view, types)?.saturating_mul(*count)))
    });
    let total = view.observed.installation_instances.saturating_add(count);
    let cost = cost.map(|cost| view.observed.installation_hourly_cost.saturating_add(cost));
    let verdict = if total > view.desired.settings.max_instances {
        Some(too_many(view, count, total))
    } else {
        cost.filter(|cost| *cost > view.desired.settings.max_hourly_cost)
            .map(|cost| too_dear(view, count, cost))
    };
    verdict.map(|verdict| (ConditionType::FleetsReady, verdict))
}

fn too_many(view: &View<'_>, count: i64, total: i64) -> Verdict {
    let message = format!(
        "{count} more instances would make {total}, over --max-instances {}. Ask for fewer nodes or \
         have the administrator raise the flag",
        view.desired.settings.max_instances
    );
    Verdict::refused(Reason::LimitExceeded, message)
}

fn too_dear(view: &View<'_>, count: i64, cost: i64) -> Verdict {
    let message = format!(
        "{count} more instances would cost {} USD per hour in all, over --max-hourly-cost {}. Ask for \
         fewer nodes or have the administrator raise the flag",
        dollars(cost),
        dollars(view.desired.settings.max_hourly_cost)
    );
    Verdict::refused(Reason::LimitExceeded, message)
}

/// What one launch asks of the limits of the installation.
pub(super) struct Ask<'a> {
    /// Its name among the intents.
    pub thing: &'a str,
    /// Types it may be made of; the dearest counts.
    pub types: &'a [String],
    /// Instances.
    pub count: i64,
}

/// The verdict when a launch passes a limit of the operator. Every launch asks again before it is
/// sent, and what other launches are about to take counts as taken.
pub(super) fn over_limit(view: &View<'_>, ask: &Ask<'_>) -> Option<Verdict> {
    let (settings, observed) = (&view.desired.settings, view.observed);
    let count = ask.count;
    let taken = pending(view, ask);
    let counts = taken.iter().map(|(_, count)| *count).chain([count]);
    let total = counts.fold(observed.installation_instances, i64::saturating_add);
    if total > settings.max_instances {
        return Some(too_many(view, count, total));
    }
    let Some(price) = dearest(view, ask.types) else {
        return Some(Verdict::refused(
            Reason::LimitExceeded,
            format!(
                "the price of '{}' is not known, so --max-hourly-cost cannot be kept. Choose a type \
                 of the price list",
                ask.types.join("' or '")
            ),
        ));
    };
    let pending = taken.iter().map(|(kind, count)| {
        dearest(view, std::slice::from_ref(kind)).unwrap_or(i64::MAX).saturating_mul(*count)
    });
    let cost = pending.fold(observed.installation_hourly_cost, i64::saturating_add);
    let cost = cost.saturating_add(price.saturating_mul(count));
    (cost > settings.max_hourly_cost).then(|| too_dear(view, count, cost))
}

fn dearest(view: &View<'_>, types: &[String]) -> Option<i64> {
    let prices = types.iter().map(|name| view.observed.prices.get(name).copied());
    prices.collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// Launches stored or sent whose instances are not shown yet: (type, count) each. Of two that are
/// both about to be sent the first by name goes before the second.
fn pending(view: &View<'_>, ask: &Ask<'_>) -> Vec<(String, i64)> {
    let own_is_open = view.intent(ask.thing).is_some_and(|own| own.state == IntentState::Open);
    let others = view.observed.object.status.intents.iter().filter(|other| {
        let counts = match other.state {
            IntentState::Open => !own_is_open || other.thing.as_str() < ask.thing,
            IntentState::Acted => true,
            IntentState::Settled | IntentState::Abandoned => false,
        };
        counts && other.thing != ask.thing && !is_shown(view, other)
    });
    let launch = |other: &Intent| {
        let payload = Payload::of(other);
        let slots = i64::try_from(payload.slots.len()).unwrap_or(i64::MAX);
        (!payload.instance_type.is_empty()).then(|| (payload.instance_type, slots.max(1)))
    };
    others.filter_map(launch).collect()
}

fn is_shown(view: &View<'_>, intent: &Intent) -> bool {
    let token = Some(intent.token.as_str());
    view.observed.instances.iter().any(|found| found.token.as_deref() == token)
}

fn dollars(micro: i64) -> String {
    format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000)
}
