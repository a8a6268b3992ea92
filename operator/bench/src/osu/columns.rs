//! Columns found by their labels; a label that is not known is an error, never a guess.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::line::pattern;
use crate::parsed::{Better, Column};

/// What kind of token stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Message size: digits.
    Size,
    /// Digits.
    Count,
    /// A number with a fixed number of decimals.
    Number,
    /// `Pass` or `Fail`.
    Validation,
}

struct Label {
    pattern: &'static str,
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    better: Option<Better>,
}

const fn number(
    pattern: &'static str,
    name: &'static str,
    unit: &'static str,
    better: Better,
) -> Label {
    Label {
        pattern,
        name,
        kind: Kind::Number,
        unit,
        better: Some(better),
    }
}

use Better::{Higher, Lower};

const LABELS: &[Label] = &[
    Label {
        pattern: r"^Size(?: \[B\])?",
        name: "size",
        kind: Kind::Size,
        unit: "B",
        better: None,
    },
    number(r"^(?:Avg )?Latency ?[(\[]us[)\]]", "avg", "us", Lower),
    number(r"^Min Latency ?\(us\)", "min", "us", Lower),
    number(r"^Max Latency ?\(us\)", "max", "us", Lower),
    number(
        r"^P(\d{1,2}(?:\.\d+)?) Tail Lat(?:ency)? ?\(us\)",
        "p",
        "us",
        Lower,
    ),
    number(
        r"^P(\d{1,2}(?:\.\d+)?) Tail B(?:W|andwidth) ?\(MB/s\)",
        "p",
        "MB/s",
        Higher,
    ),
    number(
        r"^(?:Avg )?Bandwidth ?[(\[]MB/s[)\]]",
        "bandwidth",
        "MB/s",
        Higher,
    ),
    number(r"^MB/s", "MB/s", "MB/s", Higher),
    number(r"^Messages/s", "Messages/s", "Messages/s", Higher),
    number(r"^Overall ?\(us\)", "overall", "us", Lower),
    number(r"^Compute ?\(us\)", "compute", "us", Lower),
    number(r"^Coll\. Init ?\(us\)", "coll_init", "us", Lower),
    number(r"^MPI_Test ?\(us\)", "mpi_test", "us", Lower),
    number(r"^MPI_Wait ?\(us\)", "mpi_wait", "us", Lower),
    number(r"^Pure Comm\. ?\(us\)", "pure_comm", "us", Lower),
    number(r"^Min Comm\. ?\(us\)", "min_comm", "us", Lower),
    number(r"^Max Comm\. ?\(us\)", "max_comm", "us", Lower),
    number(r"^Overlap ?\(%\)", "overlap_pct", "%", Higher),
    Label {
        pattern: r"^Iterations",
        name: "iterations",
        kind: Kind::Count,
        unit: "",
        better: None,
    },
    Label {
        pattern: r"^Transmit Size",
        name: "transmit_size",
        kind: Kind::Count,
        unit: "B",
        better: None,
    },
    Label {
        pattern: r"^Validation",
        name: "validation",
        kind: Kind::Validation,
        unit: "",
        better: None,
    },
];

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| LABELS.iter().map(|label| pattern(label.pattern)).collect());

/// A column header.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    /// Whether the first column is the size; it is not among `columns`.
    pub sized: bool,
    /// The columns after the size, with what their tokens look like.
    pub columns: Vec<(Column, Kind)>,
}

/// What a line is, seen as a header.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// A header, all of it known.
    Header(Header),
    /// It begins like one and goes on with this.
    Unknown(String),
    /// Something else.
    Other,
}

/// Reads a line as a header. Without a leading `#` (old `osu_ibarrier`) it is one only if all of it is known.
pub(super) fn read(line: &str) -> Found {
    let marked = line.trim_start().starts_with('#');
    let mut rest = line.trim_start().trim_start_matches('#').trim();
    let mut columns = Vec::new();
    while !rest.is_empty() {
        let Some((column, kind, after)) = label(rest) else {
            let known = !columns.is_empty() && marked;
            return if known {
                Found::Unknown(rest.to_owned())
            } else {
                Found::Other
            };
        };
        columns.push((column, kind));
        rest = after.trim_start();
    }
    let sized = columns.first().is_some_and(|(_, kind)| *kind == Kind::Size);
    if sized {
        columns.remove(0);
    }
    if columns.is_empty() {
        Found::Other
    } else {
        Found::Header(Header { sized, columns })
    }
}

/// The longest label a text begins with, and what follows it.
fn label(text: &str) -> Option<(Column, Kind, &str)> {
    let candidates = LABELS.iter().zip(PATTERNS.iter());
    let found = candidates.filter_map(|(label, pattern)| Some((label, pattern.captures(text)?)));
    let (label, captures) = found.max_by_key(|(_, captures)| captures[0].len())?;
    let percentile = captures.get(1).map_or("", |digits| digits.as_str());
    let name = format!("{}{percentile}", label.name);
    let column = Column {
        name,
        unit: Cow::Borrowed(label.unit),
        better: label.better,
    };
    Some((column, label.kind, text.get(captures[0].len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Option<String> {
        let Found::Header(header) = read(line) else {
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
            (
                "# Size                  MB/s        Messages/s",
                "size MB/s Messages/s",
            ),
            ("# Size [B]        Latency [us]", "size avg"),
            ("# Avg Latency(us)", "avg"),
            (
                "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations",
                "size avg min max iterations",
            ),
            (
                "# Size       Avg Latency(us)        Validation",
                "size avg validation",
            ),
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
            read("# Size  Latency (us)  Jitter(us)"),
            Found::Unknown("Jitter(us)".to_owned())
        );
        for line in [
            "# Datatype: MPI_CHAR.",
            "Latency (us) is high",
            "# Size",
            "",
            "# Window creation: MPI_Win_allocate",
        ] {
            assert_eq!(read(line), Found::Other, "{line}");
        }
    }
}
