//! Which program a title belongs to.

use std::sync::LazyLock;

use regex::Regex;

use crate::line::pattern;

/// A title line taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Title {
    /// As printed, without `#` and version.
    pub text: String,
    /// The program, if the title is known.
    pub benchmark: Option<String>,
    /// Without the `v`; the port in mpi4py prints none.
    pub version: Option<String>,
    /// What stands after MPI: `CUDA`, `ROCM`, `CUDA MANAGED`, `NCCL`, ...
    pub model: Option<String>,
    /// Whether it is the port in mpi4py, whose columns are labelled as latency everywhere.
    pub port: bool,
}

static OSU: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^#\s*OSU\s+(\S.*?\S)\s+v(\d+\.\d+(?:\.\d+)?[\w.+-]*)\s*$"));
static PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# (MPI \S.*? Test)\s*$"));
static MODEL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:MPI(?:-([A-Z]+(?: MANAGED)?))?|([NRX]CCL(?:-[A-Z]+)?|OpenSHMEM|UPC\+?\+?|UPCXX))[ _]",
    )
});
/// One-sided programs put the model behind the operation: `MPI_Put-CUDA`.
static BEHIND: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([A-Za-z_]+)-([A-Z]+(?: MANAGED)?) "));

/// Reads a title line; `None` if it is none.
pub(super) fn read(line: &str) -> Option<Title> {
    let osu = OSU.captures(line).map(|c| (c[1].to_owned(), Some(c[2].to_owned())));
    let port = osu.is_none();
    let (text, version) = osu.or_else(|| PORT.captures(line).map(|c| (c[1].to_owned(), None)))?;
    let (model, subject) = subject(&text);
    let benchmark = benchmark(&subject, model.as_deref());
    Some(Title { text, benchmark, version, model, port })
}

/// Splits `MPI-CUDA Bandwidth Test` into the model and `bandwidth`.
fn subject(text: &str) -> (Option<String>, String) {
    let found = MODEL.captures(text);
    let models = found.as_ref().and_then(|c| c.get(1).or_else(|| c.get(2)));
    let mut model = models.map(|model| model.as_str().to_owned());
    let rest = found.as_ref().and_then(|c| text.get(c.get(0)?.end()..)).unwrap_or(text);
    let mut rest = rest.strip_suffix(" Test").unwrap_or(rest).to_owned();
    if let Some(behind) = BEHIND.captures(&rest) {
        model = Some(behind[2].to_owned());
        rest = BEHIND.replace(&rest, "$1 ").into_owned();
    }
    (model, rest.to_ascii_lowercase())
}

/// The program of a subject. Collectives follow one rule, the others are listed.
fn benchmark(subject: &str, model: Option<&str>) -> Option<String> {
    let (subject, suffix) = match subject.split_once("persistent") {
        Some((before, after)) => (format!("{} {}", before.trim(), after.trim()), "_persistent"),
        None => (subject.to_owned(), ""),
    };
    let subject = subject.trim();
    let exact = EXACT.iter().find(|(title, _)| *title == subject).map(|(_, name)| *name);
    let name =
        exact.map(str::to_owned).or_else(|| collective(subject.strip_suffix(" latency")?))?;
    let group = if model.is_some_and(|model| model.contains("CCL")) { "osu_xccl_" } else { "osu_" };
    Some(format!("{group}{name}{suffix}"))
}

/// `non-blocking neighborhood allgather` is `ineighbor_allgather`.
fn collective(subject: &str) -> Option<String> {
    let (subject, i) = match subject.strip_prefix("non-blocking ") {
        Some(rest) => (rest, "i"),
        None => (subject, ""),
    };
    let (subject, neighbor) = match subject.strip_prefix("neighborhood ") {
        Some(rest) => (rest, "neighbor_"),
        None => (subject, ""),
    };
    let subject = subject.strip_suffix(" personalized exchange").unwrap_or(subject);
    let operation = subject.replace("all-to-all", "alltoall").replace("broadcast", "bcast");
    COLLECTIVES.contains(&&*operation).then(|| format!("{i}{neighbor}{operation}"))
}

/// Titles, lower case and without `MPI` and `Test`, that do not follow the rule of the collectives.
const EXACT: &[(&str, &str)] = &[
    ("latency", "latency"),
    ("bandwidth", "bw"),
    ("bi-directional bandwidth", "bibw"),
    ("multiple bandwidth / message rate", "mbw_mr"),
    ("multi latency", "multi_lat"),
    ("multi-process latency", "latency_mp"),
    ("multi-threaded latency", "latency_mt"),
    ("init", "init"),
    ("hello world", "hello"),
    ("put latency", "put_latency"),
    ("put bandwidth", "put_bw"),
    ("put bi-directional bandwidth", "put_bibw"),
    ("get latency", "get_latency"),
    ("get bandwidth", "get_bw"),
    ("get multi latency", "get_multi_lat"),
    ("get multiple bandwidth bandwidth", "get_mbw"),
    ("accumulate latency", "acc_latency"),
    ("get_accumulate latency", "get_acc_latency"),
    ("compare_and_swap latency", "cas_latency"),
    ("fetch_and_op latency", "fop_latency"),
];

const COLLECTIVES: &[&str] = &[
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scatter",
    "scatterv",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Title, program, version, model.
    const TITLES: &str = "
        # OSU MPI Latency Test v5.8                             | osu_latency        | 5.8          | -
        # OSU MPI-CUDA Bandwidth Test v7.0-lrbison2             | osu_bw             | 7.0-lrbison2 | CUDA
        # OSU MPI-CUDA MANAGED Latency Test v7.1                | osu_latency        | 7.1          | CUDA MANAGED
        # OSU MPI Bi-Directional Bandwidth Test v6.2            | osu_bibw           | 6.2          | -
        # OSU MPI Multiple Bandwidth / Message Rate Test v7.5.2 | osu_mbw_mr         | 7.5.2        | -
        # OSU MPI Non-blocking Barrier Latency Test v5.7.1      | osu_ibarrier       | 5.7.1        | -
        # OSU MPI Non-Blocking Allgather Latency Test v5.7.1    | osu_iallgather     | 5.7.1        | -
        # OSU MPI Broadcast Latency Test v5.7                   | osu_bcast          | 5.7          | -
        # OSU MPI Reduce_scatter Latency Test v5.7              | osu_reduce_scatter | 5.7          | -
        # OSU MPI_Accumulate latency Test v5.7.1                | osu_acc_latency    | 5.7.1        | -
        # OSU MPI_Put Bi-directional Bandwidth Test v5.7.1      | osu_put_bibw       | 5.7.1        | -
        # OSU NCCL Allreduce Latency Test v7.2                  | osu_xccl_allreduce | 7.2          | NCCL
        # OSU MPI_Put-CUDA Latency Test v7.4                    | osu_put_latency    | 7.4          | CUDA
        # OSU MPI All-to-All Personalized Exchange Latency Test v7.4 | osu_alltoall  | 7.4          | -
        # OSU MPI-ROCM All-to-Allv Personalized Exchange Persistent Latency Test v7.4 | osu_alltoallv_persistent | 7.4 | ROCM
        # OSU MPI Non-blocking Neighborhood Allgatherv Latency Test v7.4 | osu_ineighbor_allgatherv | 7.4 | -
        # OSU MPI Bi-Directional Bandwidth Persistent Test v7.4 | osu_bibw_persistent | 7.4         | -
        # OSU MPI Multi-threaded Latency Test v7.4              | osu_latency_mt     | 7.4          | -
        # OSU MPI Non-Blocking Broadcast Latency Test v7.4      | osu_ibcast         | 7.4          | -
        # OSU MPI_Get Multi Latency Test v7.4                   | osu_get_multi_lat  | 7.4          | -
        # OSU MPI Scatter Latency Test v5.7                     | osu_scatter        | 5.7          | -
        # MPI Latency Test                                      | osu_latency        | -            | -
        # MPI Bandwidth Test                                    | osu_bw             | -            | -
        # OSU MPI Frobnicate Test v9.0                          | -                  | 9.0          | -";

    #[test]
    fn a_title_names_its_program() {
        for case in TITLES.lines().skip(1) {
            let cells: Vec<_> = case.split('|').map(str::trim).collect();
            let title = read(cells[0]).unwrap();
            let parts = [title.benchmark, title.version, title.model];
            assert_eq!(parts.map(|part| part.unwrap_or("-".to_owned())), cells[1..], "{case}");
        }
    }

    #[test]
    fn what_only_looks_like_a_title_is_none() {
        for line in [
            "# Size  Latency (us)",
            "OSU MPI Latency Test v5.8",
            "# OSU MPI Latency Test",
            "# MPI tests follow",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
