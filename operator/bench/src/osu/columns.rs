//! The columns of OSU micro-benchmarks, from 3.1 to 7.5.

use std::sync::LazyLock;

use regex::Regex;

use crate::labels::{Header, Kind, Label, Labels, compile, fact, number};
use crate::line::pattern;
use crate::parsed::Better::{Higher, Lower};
use crate::parsed::Column;

const LABELS: &[Label] = &[
    fact(r"Size(?: \[B\])?", "size", "B", Kind::Size),
    number(r"(?:Avg )?Latency ?[(\[]us[)\]]", "avg", "us", Lower),
    number(r"Min Latency ?\(us\)", "min", "us", Lower),
    number(r"Max Latency ?\(us\)", "max", "us", Lower),
    number(r"P(\d{1,2}(?:\.\d+)?) Tail Lat(?:ency)? ?\(us\)", "p", "us", Lower),
    number(r"P(\d{1,2}(?:\.\d+)?) Tail B(?:W|andwidth) ?\(MB/s\)", "p", "MB/s", Higher),
    number(r"(?:Avg )?Bandwidth ?[(\[]MB/s[)\]]", "bandwidth", "MB/s", Higher),
    number(r"MB/s", "MB/s", "MB/s", Higher),
    number(r"Messages/s", "Messages/s", "Messages/s", Higher),
    number(r"Overall ?\(us\)", "overall", "us", Lower),
    number(r"Compute ?\(us\)", "compute", "us", Lower),
    number(r"Coll\. Init ?\(us\)", "coll_init", "us", Lower),
    number(r"MPI_Test ?\(us\)", "mpi_test", "us", Lower),
    number(r"MPI_Wait ?\(us\)", "mpi_wait", "us", Lower),
    number(r"Pure Comm\. ?\(us\)", "pure_comm", "us", Lower),
    number(r"Min Comm\. ?\(us\)", "min_comm", "us", Lower),
    number(r"Max Comm\. ?\(us\)", "max_comm", "us", Lower),
    number(r"Overlap ?\(%\)", "overlap_pct", "%", Higher),
    fact(r"Iterations", "iterations", "", Kind::Count),
    fact(r"Transmit Size", "transmit_size", "B", Kind::Count),
    fact(r"Validation", "validation", "", Kind::Validation),
];

/// Every column a version of these programs prints.
pub(super) static COLUMNS: Labels = Labels::new(LABELS, || compile(LABELS));

static WINDOWS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#\s+\d+(?:\s+\d+)+\s*$"));

/// The header of `osu_mbw_mr -V`: one column for each window size, whose unit stands in a line above.
pub(super) fn windows(line: &str, profile: &str) -> Option<Header> {
    if !WINDOWS.is_match(line) {
        return None;
    }
    let unit = if profile.contains("Bandwidth") { "MB/s" } else { "Messages/s" };
    let column = |window| {
        let name = format!("window_{window}");
        let column = Column { name, unit: unit.into(), better: Some(Higher) };
        (column, Kind::Number)
    };
    let columns = line.split_whitespace().skip(1).map(column).collect();
    Some(Header { sized: true, columns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Found;

    fn names(line: &str) -> Option<String> {
        let Found::Header(header) = COLUMNS.read(line) else {
            return None;
        };
        let size = header.sized.then(|| "size".to_owned());
        let others = header.columns.into_iter().map(|(column, _)| column.name);
        Some(size.into_iter().chain(others).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn columns_are_found_by_label_in_every_version() {
        for (line, expected) in [
            ("# Size          Latency (us)", "size avg"),
            ("# Size       Avg Latency(us)", "size avg"),
            ("# Size      Bandwidth (MB/s)", "size bandwidth"),
            ("# Size                  MB/s        Messages/s", "size MB/s Messages/s"),
            ("# Size [B]        Latency [us]", "size avg"),
            ("# Avg Latency(us)", "avg"),
            (
                "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
                "size avg min max iterations",
            ),
            ("# Size       Avg Latency(us)        Validation", "size avg validation"),
            (
                "# Size          Latency (us)  P50 Tail Lat(us)  P99.9 Tail Lat(us)P99.99 Tail Lat(us)",
                "size avg p50 p99.9 p99.99",
            ),
            (
                "# Size   Overall(us)   Compute(us)  Pure Comm.(us)  Overlap(%)",
                "size overall compute pure_comm overlap_pct",
            ),
            (
                "       Overall(us)       Compute(us)    Coll. Init(us)      MPI_Test(us)      MPI_Wait(us)    Pure Comm.(us)     Min Comm.(us)     Max Comm.(us)        Overlap(%)",
                "overall compute coll_init mpi_test mpi_wait pure_comm min_comm max_comm overlap_pct",
            ),
        ] {
            assert_eq!(names(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn an_unknown_column_is_an_error_and_prose_is_no_header() {
        assert_eq!(
            COLUMNS.read("# Size  Latency (us)  Jitter(us)"),
            Found::Unknown("Jitter(us)".to_owned())
        );
        for line in [
            "# Datatype: MPI_CHAR.",
            "Latency (us) is high",
            "# Size",
            "",
            "# Window creation: MPI_Win_allocate",
        ] {
            assert_eq!(COLUMNS.read(line), Found::Other, "{line}");
        }
    }
}
