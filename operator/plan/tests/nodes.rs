//! What a node is made of: its interfaces for every type with EFA there is, and its user data.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod support;

use std::collections::BTreeSet;

use hpc_plan::cloud::NicKind::{Efa, EfaOnly, Interface};
use hpc_plan::cloud::{Card, InstanceType, Nic};
use hpc_plan::cluster::{Body, Desired, Step, Storage, nic_layout};
use hpc_plan::names::digest;
use hpc_plan::node::{USER_DATA_LIMIT, user_data_len};
use hpc_plan::slots::Slots;
use hpc_plan::world::World;
use serde::Deserialize;
use support::{cluster, lawful, owner, pass, queue, scratch};

/// All types with EFA, as `DescribeInstanceTypes` told of them.
const TYPES: &str = include_str!("data/efa-instance-types.json");

/// One type: name, vCPUs, cores, architecture, most EFAs, cards, placement strategies.
#[derive(Deserialize)]
struct Told {
    t: String,
    v: i32,
    c: i32,
    arch: String,
    efa: i32,
    /// Index, most interfaces, Gbit/s, interface types of each card.
    cardstr: Vec<(i32, i32, f64, Vec<String>)>,
    pg: Vec<String>,
    /// Card of the primary interface.
    defcard: i32,
}

impl Told {
    fn kind(&self) -> InstanceType {
        let cards = self.cardstr.iter().map(|(index, max, _, types)| Card {
            index: *index,
            max_interfaces: *max,
            efa: types.iter().any(|kind| kind == "efa"),
        });
        InstanceType {
            name: self.t.clone(),
            architecture: self.arch.clone(),
            vcpus: self.v,
            cores: self.c,
            threads_settable: false,
            memory_mib: 1024,
            max_efa: self.efa,
            cards: cards.collect(),
            cluster_placement: self.pg.iter().any(|strategy| strategy == "cluster"),
        }
    }

    /// Everything AWS would refuse, or that would waste hardware, about a layout.
    fn faults(&self, nics: &[Nic]) -> Vec<String> {
        let mut faults = vec![];
        let (mut places, mut efa_cards) = (BTreeSet::new(), BTreeSet::new());
        for nic in nics {
            let Some((_, _, _, types)) = self.cardstr.iter().find(|card| card.0 == nic.card) else {
                faults.push(format!("no card {}", nic.card));
                continue;
            };
            let word = match nic.kind {
                Interface => "interface",
                Efa => "efa",
                EfaOnly => "efa-only",
            };
            if !types.iter().any(|kind| kind == word) {
                faults.push(format!("card {} takes no {word}", nic.card));
            }
            if !places.insert((nic.card, nic.device)) {
                faults.push(format!("device {} of card {} twice", nic.device, nic.card));
            }
            if nic.kind != Interface && !efa_cards.insert(nic.card) {
                faults.push(format!("two EFAs on card {}", nic.card));
            }
        }
        for (card, max, ..) in &self.cardstr {
            let here = nics.iter().filter(|nic| nic.card == *card);
            let most = here.clone().map(|nic| nic.device).max().unwrap_or_default();
            if here.count() > usize::try_from(*max).unwrap() || most >= *max {
                faults.push(format!("card {card} takes {max}"));
            }
        }
        faults.extend(self.primary(nics));
        let able = self.cardstr.iter().filter(|card| card.3.iter().any(|kind| kind == "efa"));
        let best = able.count().min(usize::try_from(self.efa).unwrap());
        if efa_cards.len() != best {
            faults.push(format!("{} of {best} EFAs are used", efa_cards.len()));
        }
        faults
    }

    /// The primary comes first, on the default card, as device 0, with an address.
    fn primary(&self, nics: &[Nic]) -> Option<String> {
        let sound = nics
            .first()
            .is_some_and(|nic| nic.card == self.defcard && nic.device == 0 && nic.kind != EfaOnly);
        let alone =
            nics.iter().filter(|nic| nic.card == self.defcard && nic.device == 0).count() == 1;
        (!sound || !alone)
            .then(|| "the primary is not card 0, device 0, with an address".to_owned())
    }
}

fn types() -> Vec<Told> {
    serde_json::from_str(TYPES).expect("types")
}

#[test]
fn every_type_with_efa_gets_as_many_as_it_takes_on_cards_that_take_them() {
    let types = types();
    assert_eq!(types.len(), 303);
    let faulty = types.iter().filter_map(|told| {
        let faults = told.faults(&nic_layout(&told.kind(), true));
        (!faults.is_empty()).then(|| format!("{}: {faults:?}", told.t))
    });
    assert_eq!(faulty.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn without_efa_every_type_gets_one_plain_interface() {
    for told in types() {
        let plain = Nic { card: 0, device: 0, kind: Interface };
        assert_eq!(nic_layout(&told.kind(), false), [plain], "{}", told.t);
    }
}

/// More than one interface means no public address, so a type with one card takes one.
#[test]
fn a_type_with_one_card_takes_one_combined_interface() {
    for told in types().iter().filter(|told| told.cardstr.len() == 1) {
        let one = Nic { card: 0, device: 0, kind: Efa };
        assert_eq!(nic_layout(&told.kind(), true), [one], "{}", told.t);
    }
}

/// The rules bite: each fault is seen in a layout that has it.
#[test]
fn the_rules_for_layouts_refuse_what_aws_refuses() {
    let types = types();
    let of = |name: &str| types.iter().find(|told| told.t == name).expect("a type");
    let nic = |card, device, kind| Nic { card, device, kind };
    let table = [
        ("c5n.18xlarge", vec![nic(0, 0, EfaOnly)], "the primary is not"),
        ("c5n.18xlarge", vec![nic(0, 0, Interface)], "0 of 1 EFAs"),
        ("c5n.18xlarge", vec![nic(0, 0, Efa), nic(0, 1, EfaOnly)], "two EFAs on card 0"),
        ("c5n.18xlarge", vec![nic(0, 0, Efa), nic(1, 1, EfaOnly)], "no card 1"),
        ("hpc7a.96xlarge", vec![nic(0, 0, Efa), nic(1, 2, EfaOnly)], "card 1 takes 2"),
        (
            "hpc7a.96xlarge",
            vec![nic(0, 0, Interface), nic(0, 0, EfaOnly)],
            "device 0 of card 0 twice",
        ),
        ("p6-b300.48xlarge", vec![nic(0, 0, Efa)], "card 0 takes no efa"),
    ];
    for (name, nics, fault) in table {
        let faults = of(name).faults(&nics);
        assert!(faults.iter().any(|told| told.contains(fault)), "{name}: {faults:?}");
    }
}

/// The largest spec that admission lets through: 8 queues of 16 nodes, 4 file systems, names as
/// long as they may be and as hard to compress as names can be.
fn largest() -> Desired {
    let lower = "abcdefghijklmnopqrstuvwxyz0123456789";
    let any = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    let word = |seed: &str, len: usize| name_of(seed, len, lower);
    let mut desired = cluster(&[], false);
    desired.owner.namespace = word("namespace", 63);
    desired.owner.name = word("name", 40);
    desired.cluster.region = "ap-northeast-1".into();
    desired.cluster.queues = (0..8)
        .map(|nth: i32| {
            let name = word(&nth.to_string(), 12);
            let mut queue = queue(&name, 16);
            queue.nodes = Slots::span(1, 16);
            queue.most = 1000;
            queue
        })
        .collect();
    desired.cluster.storages = (0..4)
        .map(|nth: i32| {
            let (name, path) =
                (word(&format!("s{nth}"), 25), name_of(&format!("m{nth}"), 127, any));
            Storage { name, mount_path: format!("/{path}"), ..scratch() }
        })
        .collect();
    desired.settings.max_instances = 1000;
    desired.settings.max_hourly_cost = i64::MAX;
    desired
}

/// A name of `len` characters that follow no pattern.
fn name_of(seed: &str, len: usize, alphabet: &str) -> String {
    let alphabet: Vec<_> = alphabet.chars().collect();
    let rest = (1..len).map(|nth| {
        let hash = digest(&[seed, &nth.to_string()]);
        alphabet[usize::from_str_radix(&hash[..4], 16).unwrap() % alphabet.len()]
    });
    std::iter::once('q').chain(rest).collect()
}

#[test]
fn user_data_of_the_largest_cluster_fits() {
    let (desired, mut world) = (largest(), World::new(owner()));
    let mut sizes = BTreeSet::new();
    world.owner = desired.owner.clone();
    for _ in 0..60 {
        let plan = lawful(&world, &desired);
        sizes.extend(plan.steps.iter().filter_map(|step| {
            let Step::Create { thing, body: Body::Launch(body), .. } = step else { return None };
            Some((user_data_len(&body.user_data), thing.clone()))
        }));
        pass(&mut world, &desired);
        world.tick();
    }
    println!("{sizes:?}");
    assert_eq!(sizes.len(), 9, "a head and eight queues: {sizes:?}");
    assert!(sizes.iter().all(|(size, _)| *size <= USER_DATA_LIMIT), "{sizes:?}");
}
