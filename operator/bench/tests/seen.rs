//! Logs of real programs, as they were printed: Open MPI between two hosts, Intel MPI Benchmarks, fio. The generated logs
//! are what we believe of a format; these are what it is.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::fs;
use std::path::Path;

use hpc_bench::{
    Application, Complete, Expectation, ExpectedTable, InvalidReason, Layout, Parsed, SizeRange,
    Verdict, judge, parse,
};

fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seen").join(name)).unwrap()
}

fn asked(hosts: u32, providers: &[&str]) -> Expectation {
    let sizes = Some(SizeRange { first: 1, last: 4 << 20 });
    Expectation {
        layout: Some(Layout { hosts, ranks_per_host: 2 / hosts }),
        providers: providers.iter().map(|provider| (*provider).to_owned()).collect(),
        tables: vec![ExpectedTable { benchmark: "osu_latency".to_owned(), sizes }],
        ..Expectation::default()
    }
}

fn verdict(name: &str, expected: &Expectation) -> Verdict {
    let parsed = parse(&Application::Osu, &bytes(name), expected).unwrap();
    assert_eq!(parsed.table("osu_latency").unwrap().rows.len(), 24, "{name}");
    judge(&parsed, expected)
}

#[test]
fn open_mpi_proves_which_fabric_it_used_between_which_hosts() {
    let stand_in = asked(2, &["tcp", "ofi_rxm"]);
    assert_eq!(verdict("openmpi_4.1.4_ofi_tcp_two_hosts.txt", &stand_in), Verdict::Valid);
    let tcp = asked(2, &["tcp"]);
    assert_eq!(verdict("openmpi_4.1.4_btl_tcp_two_hosts.txt", &tcp), Verdict::Valid);
    let efa = asked(2, &["efa"]);
    let fell_back = verdict("openmpi_4.1.4_efa_asked_and_absent.txt", &efa);
    assert!(
        matches!(fell_back, Verdict::Invalid { reason: InvalidReason::FabricMismatch, .. }),
        "{fell_back:?}"
    );
    let one = asked(1, &["efa"]);
    assert_eq!(verdict("openmpi_4.1.4_one_host.txt", &one), Verdict::NotApplicable);
    let wrong = verdict("openmpi_4.1.4_one_host.txt", &tcp);
    assert!(
        matches!(wrong, Verdict::Invalid { reason: InvalidReason::LayoutMismatch, .. }),
        "{wrong:?}"
    );
}

fn read(application: &Application, name: &str) -> Parsed {
    parse(application, &bytes(name), &Expectation::default()).unwrap()
}

#[test]
fn all_of_imb_mpi1_is_read() {
    let parsed = read(&Application::Imb, "intelmpi_2021.17_imb_mpi1_all.txt");
    assert_eq!((parsed.complete, parsed.warnings.as_slice()), (Complete::Yes, &[][..]));
    assert_eq!(parsed.tables.len(), 36);
    assert_eq!(parsed.table("PingPong").unwrap().at(Some(64), "t"), Some(174.89));
    let barrier = parsed.tables.last().unwrap();
    assert_eq!((barrier.title.as_str(), barrier.at(None, "t_avg")), ("Barrier", Some(4.21)));
    let providers: Vec<_> = parsed.evidence.between_hosts().map(|(name, _)| name).collect();
    assert_eq!(providers, ["tcp"]);
    assert_eq!(parsed.evidence.hosts().into_iter().collect::<Vec<_>>(), [("n1", 4)]);
}

#[test]
fn fio_is_read_beside_its_own_text_and_from_its_clients() {
    let beside = read(&Application::Fio, "fio_3.33_normal_json_two_jobs.txt");
    let jobs: Vec<_> =
        beside.metrics.iter().filter(|metric| metric.name == "read_bw_kib").collect();
    assert_eq!((beside.complete, jobs.len()), (Complete::Yes, 3));
    let total = beside.metric("read_bw_kib").unwrap().value;
    let sum: f64 =
        jobs.iter().filter(|metric| !metric.labels.is_empty()).map(|metric| metric.value).sum();
    assert!((total - sum).abs() < 1e-6, "{total} is not {sum}");
    let clients = read(&Application::Fio, "fio_3.33_clients.txt");
    let names = clients.metrics.iter().filter(|metric| metric.name == "write_iops");
    let names: Vec<_> = names
        .flat_map(|metric| &metric.labels)
        .filter(|(name, _)| *name == "job")
        .map(|(_, job)| job.as_str())
        .collect();
    assert_eq!((clients.complete, names), (Complete::Yes, vec!["t", "t", "All clients"]));
}
