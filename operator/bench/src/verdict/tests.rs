//! Each way in which numbers do not count.

use std::collections::BTreeMap;

use super::*;
use crate::{Application, Expectation, parse};

const TABLE: &str =
    "# OSU MPI Bandwidth Test v5.8\n# Size      Bandwidth (MB/s)\n1   1.00\n2   900.00\n";
const END: &str = "hpcops: mpirun-end epoch-ms=2 code=0\n";
const TWO: &str = "hpcops: rank 0 host n1\nhpcops: rank 1 host n2\n";
const ONE: &str = "hpcops: rank 0 host n1\nhpcops: rank 1 host n1\n";
const EFA: &str = "[n1:1] mtl_ofi.c:1: mtl:ofi:prov: efa\n";
const TCP: &str = "[n1:1] mca: bml: Using tcp btl for send to [[1,1],1] on node n2\n";
const SHM: &str = "[n1:1] mca: bml: Using vader btl for send to [[1,1],1] on node n1\n";

fn check(hosts: u32, text: &[&str], expected: &str) {
    let asked = Expectation {
        layout: Some(Layout { hosts, ranks_per_host: 2 / hosts }),
        providers: vec!["efa".to_owned()],
        bounds: Bounds { max_mb_per_s: Some(1e4), min_latency_us: None },
        ..Expectation::default()
    };
    let parsed = parse(&Application::Osu, text.concat().as_bytes(), &asked).unwrap();
    let got = match judge(&parsed, &asked) {
        Verdict::Invalid { reason, message } => format!("{reason}: {message}"),
        other @ (Verdict::Valid | Verdict::NotApplicable) => format!("{other:?}"),
    };
    assert_eq!(got, expected, "{text:?}");
}

#[test]
fn numbers_count_only_where_hosts_and_fabric_are_those_asked() {
    check(2, &[TWO, EFA, TABLE, END], "Valid");
    check(1, &[ONE, SHM, TABLE, END], "NotApplicable");
    let message = "FabricMismatch: asked efa; line 3 shows tcp";
    check(2, &[TWO, TCP, TABLE, END], message);
    let message = "FabricMismatch: asked efa; line 4 shows tcp";
    check(2, &[TWO, EFA, TCP, TABLE, END], message);
    let message = "FabricUnproven: asked efa; the output shows no provider";
    check(2, &[TWO, SHM, TABLE, END], message);
    let message = "LayoutMismatch: asked 2 hosts with 1 ranks each; ranks seen: n1: 2";
    check(2, &[ONE, EFA, TABLE, END], message);
    let message = "LayoutMismatch: asked 2 hosts with 1 ranks each; ranks seen: none shown";
    check(2, &[EFA, TABLE, END], message);
}

#[test]
fn numbers_count_only_from_a_whole_plausible_log() {
    let message = "Incomplete: the log does not show where it should end";
    check(2, &[TWO, EFA, TABLE], message);
    let message = "Incomplete: the log is damaged or cut; see its warnings";
    check(2, &[TWO, EFA, TABLE, "4   2.0", END], message);
    let wrong = "DATA VALIDATION ERROR: x exited with status 1 on message size 2.\n";
    let message = "ValidationFailed: the program's own validation failed; see line 4";
    check(2, &[TWO, EFA, TABLE, wrong, END], message);
    let message = "Implausible: line 8: 10001 MB/s is above the bound of 10000 MB/s";
    check(2, &[TWO, EFA, TABLE, "4   10001.00\n", END], message);
}

#[test]
fn latency_below_the_bound_is_implausible_only_between_hosts() {
    let text = "# OSU MPI Latency Test v5.8\n# Size  Latency (us)\n1   0.30\n";
    let bounds = Bounds { max_mb_per_s: None, min_latency_us: Some(1.0) };
    let asked = Expectation { bounds, ..Expectation::default() };
    for (ranks, plausible) in [(TWO, false), (ONE, true)] {
        let parsed =
            parse(&Application::Osu, [ranks, text, END].concat().as_bytes(), &asked).unwrap();
        let implausible = matches!(
            judge(&parsed, &asked),
            Verdict::Invalid { reason: InvalidReason::Implausible, .. }
        );
        assert_eq!(implausible, !plausible);
    }
}

#[test]
fn ranks_are_counted_per_host() {
    let parsed =
        parse(&Application::Osu, [TWO, TABLE].concat().as_bytes(), &Expectation::default())
            .unwrap();
    assert_eq!(parsed.evidence.hosts(), BTreeMap::from([("n1", 1), ("n2", 1)]));
}
