//! Security groups, placement groups and the SSM document: what has a name instead of a token.

use crate::cloud::{Direction, GroupId, Peer, Rule, Traffic};
use crate::names::{HEAD, NODES, queue_role, storage_role};
use crate::node;

use super::part::{Part, Verdict, View};
use super::step::Step;
use super::wait::Wait;

/// Ports of Lustre.
const LUSTRE: [Traffic; 2] = [Traffic::Tcp(988, 988), Traffic::Tcp(1018, 1023)];

/// What EFA, Slurm, NFS, ssh and Lustre need to reach one another.
pub(super) fn network(view: &View<'_>) -> Part {
    let groups = roles(view).into_iter().map(|role| group(view, &role));
    let placements = view.desired.cluster.queues.iter().filter(|queue| queue.grouped);
    let placements = placements.map(|queue| placement(view, &queue.name));
    let parts: Vec<Part> = groups.chain(placements).chain([document(view)]).collect();
    Part::all(parts, "Security groups, placement groups and the SSM document exist")
}

/// Every security group of the cluster: the head's, the nodes', one per file system (which keeps
/// its own when it is retained).
fn roles(view: &View<'_>) -> Vec<String> {
    let storages = view.desired.cluster.storages.iter();
    let mut roles = vec![HEAD.to_owned(), NODES.to_owned()];
    roles.extend(storages.map(|storage| storage_role(&storage.name)));
    roles
}

/// A group, then its rules: they name other groups, so all groups are seen before any is set, and
/// each call carries every rule of its direction.
fn group(view: &View<'_>, role: &str) -> Part {
    match view.group(role) {
        None => create(view, role),
        Some(_) if roles(view).iter().any(|role| view.group(role).is_none()) => Part::ready(""),
        Some(found) => {
            let missing = |direction| {
                let wanted = rules(view, role, &found.id).into_iter();
                let wanted = wanted.filter(|rule| rule.direction == direction);
                wanted.filter(|rule| !found.rules.contains(rule)).collect::<Vec<_>>()
            };
            let steps = [missing(Direction::Ingress), missing(Direction::Egress)]
                .into_iter()
                .filter(|rules| !rules.is_empty())
                .map(|rules| Step::Authorize { group: found.id.clone(), rules });
            Part::all(
                steps.map(|step| {
                    Part::step(format!("The rules of {} are being set", found.name), step)
                }),
                "",
            )
        }
    }
}

fn create(view: &View<'_>, role: &str) -> Part {
    let owner = &view.desired.owner;
    let Some(subnet) = view.subnet(&view.desired.cluster.head_subnet) else {
        return Part::pending();
    };
    let name = owner.resource(role);
    let step = Step::CreateGroup {
        name: name.clone(),
        vpc: subnet.vpc.clone(),
        description: format!("hpcops {} {role}", owner.full_name()),
        tags: owner.tags(role, &view.desired.cluster.tags),
    };
    Part::step(format!("Security group {name} is being created"), step)
}

/// The rules a group must have; those that name a group not seen yet come later.
fn rules(view: &View<'_>, role: &str, own: &GroupId) -> Vec<Rule> {
    let head = view.group(HEAD).map(|group| group.id.clone());
    let nodes = view.group(NODES).map(|group| group.id.clone());
    match role {
        HEAD => {
            let ssh = view.desired.cluster.ssh_cidrs.iter().map(|range| Rule {
                direction: Direction::Ingress,
                traffic: Traffic::Tcp(22, 22),
                peer: Peer::Cidr(range.clone()),
            });
            let from_nodes = nodes.map(|id| all(Direction::Ingress, id));
            ssh.chain(from_nodes).chain(from_servers(view)).collect()
        }
        // EFA wants all traffic to and from the group itself, in both directions and by reference.
        NODES => [Direction::Ingress, Direction::Egress]
            .map(|direction| all(direction, own.clone()))
            .into_iter()
            .chain(head.map(|id| all(Direction::Ingress, id)))
            .chain(from_servers(view))
            .collect(),
        _ => [head, nodes, Some(own.clone())].into_iter().flatten().flat_map(lustre).collect(),
    }
}

/// Lustre servers open connections to their clients as well.
fn from_servers(view: &View<'_>) -> Vec<Rule> {
    let storages = view.desired.cluster.storages.iter();
    let groups = storages.filter_map(|storage| view.group(&storage_role(&storage.name)));
    let rules = groups.flat_map(|group| lustre(group.id.clone()));
    rules.filter(|rule| rule.direction == Direction::Ingress).collect()
}

const fn all(direction: Direction, peer: GroupId) -> Rule {
    Rule { direction, traffic: Traffic::All, peer: Peer::Group(peer) }
}

fn lustre(peer: GroupId) -> impl Iterator<Item = Rule> {
    [Direction::Ingress, Direction::Egress].into_iter().flat_map(move |direction| {
        let peer = Peer::Group(peer.clone());
        LUSTRE.map(|traffic| Rule { direction, traffic, peer: peer.clone() })
    })
}

fn placement(view: &View<'_>, queue: &str) -> Part {
    let role = queue_role(queue);
    let name = view.desired.owner.resource(&role);
    match view.observed.placement_groups.iter().find(|group| group.name == name) {
        Some(found) if found.available => Part::ready(""),
        Some(_) => Part::waiting(
            format!("Placement group {name} is being created"),
            Wait::PlacementGroup { queue: queue.to_owned() },
        ),
        None => Part::step(
            format!("Placement group {name} is being created"),
            Step::CreatePlacementGroup {
                name: name.clone(),
                tags: view.desired.owner.tags(&role, &view.desired.cluster.tags),
            },
        ),
    }
}

fn document(view: &View<'_>) -> Part {
    if view.observed.document_ready {
        return Part::ready("");
    }
    let installation = &view.desired.owner.installation;
    let document = node::document(installation);
    let message = format!("SSM document {} is being created", document.name);
    let tags = [(crate::names::INSTALLATION.to_owned(), installation.clone())].into();
    let step = Step::CreateDocument { name: document.name, content: document.content, tags };
    Part { steps: vec![step], ..Part::new(Verdict::creating(message)) }
}
