//! Whether packets get from one interface to another by the rules that count
//! now.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::Ec2;
use super::rule::{Peer, Rule, parse_cidr};

/// TCP ports asked for.
#[derive(Debug, Clone, Copy)]
pub struct Traffic {
    /// First port.
    pub from: i32,
    /// Last port.
    pub to: i32,
}

impl Traffic {
    /// LNET itself.
    pub const LNET: Self = Self { from: 988, to: 988 };
    /// LNET's source ports.
    pub const LNET_SOURCES: Self = Self { from: 1018, to: 1023 };
    /// NFS version 4.
    pub const NFS: Self = Self { from: 2049, to: 2049 };
}

/// One side of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    /// Its security groups.
    pub groups: &'a [String],
    /// Its address, if one is known.
    pub address: Option<Ipv4Addr>,
}

/// Rules of one direction of some groups.
#[derive(Clone, Copy)]
struct Side<'a> {
    groups: &'a [String],
    egress: bool,
}

impl Ec2 {
    /// Out of `source` and into `target`.
    pub fn is_open(
        &self,
        now: Timestamp,
        source: Reach<'_>,
        target: Reach<'_>,
        traffic: Traffic,
    ) -> bool {
        let out = Side { groups: source.groups, egress: true };
        let into = Side { groups: target.groups, egress: false };
        self.lets(now, out, target, traffic) && self.lets(now, into, source, traffic)
    }

    /// Whether groups allow everything from and to one of themselves, as EFA
    /// needs it. Rules still on their way count: this is about what was asked.
    pub fn allows_itself_everything(&self, groups: &[String]) -> bool {
        let side = |egress: bool| {
            self.rules_of(groups).any(|rule| {
                let itself = rule.peer.group().is_some_and(|id| groups.iter().any(|g| g == id));
                rule.egress == egress && rule.protocol == "-1" && itself
            })
        };
        side(false) && side(true)
    }

    fn lets(&self, now: Timestamp, side: Side<'_>, peer: Reach<'_>, traffic: Traffic) -> bool {
        (traffic.from..=traffic.to).all(|port| {
            self.rules_of(side.groups)
                .filter(|rule| rule.egress == side.egress && rule.visible_at <= now)
                .any(|rule| covers_port(rule, port) && covers_peer(rule, peer))
        })
    }

    fn rules_of(&self, groups: &[String]) -> impl Iterator<Item = &Rule> {
        groups.iter().filter_map(|id| self.groups.get(id)).flat_map(|group| &group.rules)
    }
}

fn covers_port(rule: &Rule, port: i32) -> bool {
    match (rule.protocol.as_str(), rule.ports) {
        ("-1", _) => true,
        ("tcp", Some((from, to))) => (from..=to).contains(&port),
        (_, _) => false,
    }
}

fn covers_peer(rule: &Rule, peer: Reach<'_>) -> bool {
    match &rule.peer {
        Peer::Group(id) => peer.groups.iter().any(|group| group == id),
        Peer::Cidr(cidr) => parse_cidr(cidr).is_some_and(|(network, mask)| {
            mask == 0 || peer.address.is_some_and(|ip| u32::from(ip) & mask == network)
        }),
        Peer::Cidr6(_) => false,
    }
}
