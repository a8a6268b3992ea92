//! The proof: from every state, with every fault, a cluster comes to what was asked.

mod support;

use std::time::Instant;

use hpc_plan::cluster::Desired;
use hpc_plan::world::World;
use support::explore::{Scene, Tally, explore};
use support::{absent, cluster, owner};

fn prove(name: &str, asks: Vec<Desired>, faults: u8) -> Tally {
    let start = Instant::now();
    let scene = Scene {
        name: name.into(),
        asks,
        world: World::new(owner()),
        faults,
        kinds: |_| true,
        may_stall: |_| false,
    };
    let tally = explore(&scene);
    println!("{name}: {:?} {tally}", start.elapsed());
    tally
}

#[test]
fn one() {
    let desired = cluster(&[1], false);
    prove("one", vec![desired.clone(), absent(&desired)], 2);
}
