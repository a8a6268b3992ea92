//! Tables over whole logs; the samples of the repository are read in `tests/samples.rs`.

use super::*;
use crate::Application;
use crate::parsed::Complete;

fn read(text: &str) -> Result<Parsed, ParseError> {
    crate::parse(&Application::Osu, text.as_bytes(), &Expectation::default())
}

const HEAD: &str = "# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n";

/// Rows that are believed, and sizes reported as damaged (0 where the size is not known).
fn check(body: &str, rows: &[(u64, f64)], damaged: &[u64]) {
    let parsed = read(&format!("{HEAD}{body}")).unwrap();
    let table = &parsed.tables[0];
    let got: Vec<_> =
        table.rows.iter().map(|row| (row.size.unwrap(), row.cells[0].number().unwrap())).collect();
    let lost: Vec<_> = table.damaged.iter().map(|damage| damage.size.unwrap_or(0)).collect();
    assert_eq!((got.as_slice(), lost.as_slice()), (rows, damaged), "{body}");
}

#[test]
fn only_lines_that_double_the_size_are_rows() {
    check("1  1.00\n2  2.00\n4  4.00\n", &[(1, 1.0), (2, 2.0), (4, 4.0)], &[]);
    check("0  1.00\n1  1.00\n2  2.00\n", &[(0, 1.0), (1, 1.0), (2, 2.0)], &[]);
    check("3  1.00\n6  2.00\n", &[(3, 1.0), (6, 2.0)], &[]);
    check("1  1.00\n4  4.00\n", &[(1, 1.0), (4, 4.0)], &[2]);
    check("1  1.00\n2  2.00\n2  9.00\n4  4.00\n", &[(1, 1.0), (4, 4.0)], &[2]);
    check(
        "1  1.00\n2  2.00\n64  9.00\n4  4.00\n8  8.00\n",
        &[(1, 1.0), (2, 2.0), (8, 8.0)],
        &[4, 64],
    );
}

#[test]
fn a_row_that_was_cut_is_damaged_and_not_read() {
    check("1  1.00\n2  2.0", &[(1, 1.0)], &[2]);
    check("1  1.00\n2", &[(1, 1.0)], &[0]);
    check(
        "1  1.00\n2  2.0\n[n1:7] warning\n0\n4  4.00\n8  8.00\n",
        &[(1, 1.0), (4, 4.0), (8, 8.0)],
        &[0, 2],
    );
    check("1  1.00\n2     n1: late\n      2.00\n4  4.00\n", &[(1, 1.0), (4, 4.0)], &[0, 2]);
}

#[test]
fn noise_between_rows_changes_nothing() {
    for noise in [
        "2 more ranks printed the same notice",
        "2 more processes have sent help message help-mpi-btl-openib.txt / no device params found",
        "WARNING: a number in it: 2   17.50",
        "[n1:4242] 4 more processes have sent help message",
        "libfabric:4242:1718000000:efa:ep_ctrl:example_alloc():479<warn> send entries used up.",
        "[1,1]<stderr>:2   9.99",
        "",
        "real\t0m3.194s",
        "....",
        "--------------------------------------------------------------------------",
    ] {
        check(
            &format!("1  1.00\n{noise}\n2  2.00\n{noise}\n4  4.00\n{noise}\n"),
            &[(1, 1.0), (2, 2.0), (4, 4.0)],
            &[],
        );
    }
}

#[test]
fn decimal_commas_are_read_as_decimals_only_where_all_are() {
    check("1  1,50\n2  2,50\n", &[(1, 1.5), (2, 2.5)], &[]);
    let mixed = read(&format!("{HEAD}1  1.50\n2  2,50\n")).unwrap_err();
    assert_eq!((mixed.line, mixed.reason), (4, Reason::Malformed));
}

#[test]
fn a_log_without_a_table_is_refused_with_its_line() {
    for (text, line, reason) in [
        ("", 0, Reason::NotFound),
        ("This test requires exactly two processes\n", 1, Reason::NotFound),
        (HEAD, 1, Reason::NoData),
        ("# OSU MPI Latency Test v5.8\nabort\n", 1, Reason::NoData),
        ("# OSU MPI Latency Test v9\n", 1, Reason::NotFound),
        (
            "# OSU MPI Latency Test v9.1\n# Size   Latency (us)  Jitter(us)\n1 1.0 2.0\n",
            2,
            Reason::UnknownColumn,
        ),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.line, error.reason), (line, reason), "{text}");
    }
}

#[test]
fn the_port_in_mpi4py_prints_bandwidth_under_a_label_of_latency() {
    let parsed = read("# MPI Bandwidth Test\n# Size [B]        Latency [us]\n         1                1.25\n         2                2.50\n").unwrap();
    let table = parsed.table("osu_bw").unwrap();
    assert_eq!((&*table.columns[0].unit, table.columns[0].better), ("MB/s", Some(Better::Higher)));
    assert_eq!(table.at(Some(2), "bandwidth"), Some(2.5));
    assert_eq!(Some(super::super::primary(table).unwrap().value), table.at(Some(2), "bandwidth"));
}

#[test]
fn complete_needs_the_sizes_or_the_end_of_mpirun() {
    let sizes = Some(crate::SizeRange { first: 1, last: 4 });
    let tables = vec![ExpectedTable { benchmark: "osu_latency".to_owned(), sizes }];
    let expected = Expectation { tables, ..Expectation::default() };
    let rows = format!("{HEAD}1  1.00\n2  2.00\n");
    for (text, asked, complete) in [
        (format!("{rows}4  4.00\n"), &expected, Complete::Yes),
        (format!("{rows}4  4.00"), &expected, Complete::No),
        (rows.clone(), &expected, Complete::No),
        (rows.clone(), &Expectation::default(), Complete::Unknown),
        (
            format!("{rows}hpcops: mpirun-end epoch-ms=1 code=0\n"),
            &Expectation::default(),
            Complete::Yes,
        ),
        (
            format!("{rows}hpcops: mpirun-end epoch-ms=1 code=1\n"),
            &Expectation::default(),
            Complete::No,
        ),
        (format!("{rows}4  4.00\nhpcops: mpirun-end epoch-ms=1 code=1\n"), &expected, Complete::No),
    ] {
        let parsed = crate::parse(&Application::Osu, text.as_bytes(), asked).unwrap();
        assert_eq!(parsed.complete, complete, "{text}");
    }
}

#[test]
fn programs_that_print_a_sentence_give_a_table_of_one_row() {
    let init = read("# OSU MPI Init Test v7.4\nnprocs: 4, min: 210 ms, max: 214 ms, avg: 212 ms\n")
        .unwrap();
    let table = init.table("osu_init").unwrap();
    assert_eq!((table.at(None, "avg"), &*table.columns[3].unit), (Some(212.0), "ms"));
    let hello = read("# OSU MPI Hello World Test v5.8\nThis is a test with 4 processes\n").unwrap();
    assert_eq!(hello.table("osu_hello").unwrap().at(None, "processes"), Some(4.0));
}

#[test]
fn several_windows_are_columns_of_two_tables() {
    let text = "# OSU MPI Multiple Bandwidth / Message Rate Test v7.4\n# [ pairs: 2 ] [ window size: varied ]\n\n\
        # Uni-directional Bandwidth (MB/sec)\n#                 8          16\n1            1.00        2.00\n2            2.00        4.00\n\n\
        # Message Rate Profile\n#                 8          16\n1      1000000.00  2000000.00\n2      1000000.00  2000000.00\n";
    let parsed = read(text).unwrap();
    let seen: Vec<_> =
        parsed.tables.iter().map(|t| (&*t.columns[0].unit, t.at(Some(2), "window_16"))).collect();
    assert_eq!(seen, [("MB/s", Some(4.0)), ("Messages/s", Some(2_000_000.0))]);
}

#[test]
fn what_is_printed_around_the_title_belongs_to_the_table() {
    let text = "# Number of Sender threads: 2 \n# Number of Receiver threads: 2\n# OSU MPI Multi-threaded Latency Test v7.4\n\
        # Datatype: MPI_INT.\n# Size       Avg Latency(us)\n4   1.00\n8   1.00\n# Datatype: MPI_FLOAT.\n# Size       Avg Latency(us)\n4   2.00\n8   2.00\n";
    let parsed = read(text).unwrap();
    let seen: Vec<_> = parsed
        .tables
        .iter()
        .map(|t| {
            (t.attributes["datatype"].as_str(), t.attributes["number_of_sender_threads"].as_str())
        })
        .collect();
    assert_eq!(seen, [("MPI_INT", "2"), ("MPI_FLOAT", "2")]);
}
