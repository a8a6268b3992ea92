//! The command line of a benchmark: a table from what is asked to mpirun's arguments, and nothing read as code.

use std::collections::BTreeMap;

use crate::expect::{Bounds, Expectation, ExpectedTable, Layout, SizeRange};

/// The script that runs one attempt on the first compute node of its allocation. It takes its values from
/// [`Launch::environment`] and nothing else.
pub const RUN: &str = include_str!("run.sh");

/// The largest message a program uses unless told otherwise: 4 MiB.
const DEFAULT_LAST: u64 = 4 << 20;
/// Up to this many ranks, libfabric may log each address it inserts: ranks squared lines.
const MAX_LOGGED_RANKS: u32 = 16;

/// The programs that can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Benchmark {
    /// `osu_latency`: half a round trip between two ranks.
    Latency,
    /// `osu_bw`: one direction between two ranks.
    Bw,
}

/// What carries the messages between hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fabric {
    /// libfabric's `efa` provider.
    Efa,
    /// Open MPI's own TCP transport.
    Tcp,
}

/// One attempt at one benchmark with Open MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Where the MPI is installed, e.g. `/opt/amazon/openmpi`.
    pub mpi_prefix: String,
    /// Folder of the programs.
    pub program_path: String,
    /// The program.
    pub benchmark: Benchmark,
    /// The program's own arguments.
    pub arguments: Vec<String>,
    /// Hosts, 1 or 2: these programs take exactly two ranks.
    pub hosts: u32,
    /// What is to carry the messages.
    pub fabric: Fabric,
    /// The libfabric provider that stands in for EFA in a lab that has none, e.g. `tcp`; `None` everywhere else.
    pub stand_in: Option<String>,
    /// Whether the hosts share the processors of one machine, as in a lab: ranks are not bound, and give way while they wait.
    pub shared_processors: bool,
}

/// Why an attempt cannot be started as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// These programs measure between two ranks.
    #[error("{benchmark} takes two ranks, on 1 or 2 nodes, not on {hosts}")]
    Hosts {
        /// Program name.
        benchmark: &'static str,
        /// Hosts asked.
        hosts: u32,
    },
    /// `-m` is not `MAX` or `MIN:MAX` in bytes.
    #[error("argument {argument:?} is not a message size: use -m MAX or -m MIN:MAX in bytes")]
    Sizes {
        /// The argument.
        argument: String,
    },
}

impl Benchmark {
    /// The name in the API and for `run.sh`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bw => "bw",
        }
    }

    /// The name of the program, and of its table.
    pub fn program(self) -> &'static str {
        match self {
            Self::Latency => "osu_latency",
            Self::Bw => "osu_bw",
        }
    }
}

impl Launch {
    /// Ranks on each host, so that there are two in all.
    pub fn ranks_per_host(&self) -> Result<u32, LaunchError> {
        match self.hosts {
            1 => Ok(2),
            2 => Ok(1),
            hosts => Err(LaunchError::Hosts { benchmark: self.benchmark.program(), hosts }),
        }
    }

    /// Everything [`RUN`] needs, to be exported as it is.
    pub fn environment(&self) -> Result<BTreeMap<String, String>, LaunchError> {
        let mut environment = self.fabric_environment();
        for (name, value) in [
            ("HPCOPS_MPI_PREFIX", self.mpi_prefix.clone()),
            ("HPCOPS_MPIRUN_JSON", json(&self.command_line()?)),
            ("HPCOPS_PROGRAM_PATH", self.program_path.clone()),
            ("HPCOPS_BENCHMARK", self.benchmark.name().to_owned()),
            ("HPCOPS_ARGUMENTS_JSON", json(&self.arguments)),
        ] {
            environment.insert(name.to_owned(), value);
        }
        Ok(environment)
    }

    /// mpirun's arguments, without the program.
    pub fn command_line(&self) -> Result<Vec<String>, LaunchError> {
        let ranks = self.hosts * self.ranks_per_host()?;
        let mut line = vec!["-np".to_owned(), ranks.to_string()];
        line.extend(["--map-by", "node"].map(str::to_owned));
        if self.shared_processors {
            // Bound ranks of several hosts would share one core, and one that spins would starve the one it waits for.
            line.extend(["--bind-to", "none"].map(str::to_owned));
            line.extend(mca("mpi_yield_when_idle", "1"));
        }
        if self.hosts > 1 {
            line.extend(self.fabric_arguments());
        }
        line.extend(self.fabric_environment().into_keys().flat_map(|name| ["-x".to_owned(), name]));
        line.extend(EVIDENCE.iter().flat_map(|(name, level)| mca(name, level)));
        Ok(line)
    }

    /// What the output must show.
    pub fn expectation(&self, bounds: Bounds) -> Result<Expectation, LaunchError> {
        let layout = Layout { hosts: self.hosts, ranks_per_host: self.ranks_per_host()? };
        let sizes = Some(sizes(&self.arguments)?);
        let table = ExpectedTable { benchmark: self.benchmark.program().to_owned(), sizes };
        Ok(Expectation {
            layout: Some(layout),
            providers: self.providers(),
            tables: vec![table],
            bounds,
            ..Expectation::default()
        })
    }

    /// Names under which the fabric may appear in the output.
    fn providers(&self) -> Vec<String> {
        match (self.fabric, &self.stand_in) {
            (Fabric::Efa, None) => vec!["efa".to_owned()],
            (Fabric::Tcp, _) => vec!["tcp".to_owned()],
            // libfabric layers its messages over some providers; the layer is what it logs.
            (Fabric::Efa, Some(name)) => {
                vec![name.clone(), "ofi_rxm".to_owned(), format!("{name};ofi_rxm")]
            }
        }
    }

    fn fabric_arguments(&self) -> Vec<String> {
        let settings = match self.provider() {
            Some(provider) => [("mtl", "ofi"), ("mtl_ofi_provider_include", provider)],
            None => [("pml", "ob1"), ("btl", "self,vader,tcp")],
        };
        settings.into_iter().flat_map(|(name, value)| mca(name, value)).collect()
    }

    fn fabric_environment(&self) -> BTreeMap<String, String> {
        let Some(provider) = self.provider().filter(|_| self.hosts > 1) else {
            return BTreeMap::new();
        };
        let mut environment = BTreeMap::from([("FI_PROVIDER".to_owned(), provider.to_owned())]);
        if self.hosts * self.ranks_per_host().unwrap_or(MAX_LOGGED_RANKS) <= MAX_LOGGED_RANKS {
            environment.insert("FI_LOG_LEVEL".to_owned(), "info".to_owned());
            environment.insert("FI_LOG_SUBSYS".to_owned(), "av".to_owned());
        }
        environment
    }

    fn provider(&self) -> Option<&str> {
        match self.fabric {
            Fabric::Efa => Some(self.stand_in.as_deref().unwrap_or("efa")),
            Fabric::Tcp => None,
        }
    }
}

/// Verbosity that makes Open MPI name what carries the messages: the mtl its libfabric domain, the btl each peer's transport.
const EVIDENCE: &[(&str, &str)] =
    &[("pml_base_verbose", "10"), ("mtl_base_verbose", "1"), ("btl_base_verbose", "1")];

fn mca(name: &str, value: &str) -> Vec<String> {
    vec!["--mca".to_owned(), name.to_owned(), value.to_owned()]
}

fn json(values: &[String]) -> String {
    serde_json::Value::from(values.to_vec()).to_string()
}

/// The sizes a program goes through: from `-m` or `--message-size`, else the default.
fn sizes(arguments: &[String]) -> Result<SizeRange, LaunchError> {
    let mut range = range_of("").unwrap_or(SizeRange { first: 1, last: DEFAULT_LAST });
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        let value = match argument {
            "-m" | "--message-size" => rest.next(),
            long if long.starts_with("--") => long.strip_prefix("--message-size="),
            short => short.strip_prefix("-m"),
        };
        let Some(value) = value else { continue };
        let refused = || LaunchError::Sizes { argument: value.to_owned() };
        range = range_of(value).ok_or_else(refused)?;
    }
    Ok(range)
}

/// `MAX` or `MIN:MAX`; the last row is the largest doubling of the first that is not above it.
fn range_of(value: &str) -> Option<SizeRange> {
    let (from, to) = value.split_once(':').unwrap_or(("", value));
    let first = size_or(from, 1)?;
    let limit = size_or(to, DEFAULT_LAST)?;
    let double = |size: u64| {
        if size == 0 { Some(1) } else { size.checked_mul(2) }
    };
    let within = |size: u64| double(size).filter(|next| *next <= limit);
    let last = std::iter::successors(Some(first), |size| within(*size)).last()?;
    (first <= limit).then_some(SizeRange { first, last })
}

fn size_or(text: &str, default: u64) -> Option<u64> {
    if text.is_empty() {
        return Some(default);
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(hosts: u32, fabric: Fabric) -> Launch {
        Launch {
            mpi_prefix: "/opt/amazon/openmpi".to_owned(),
            program_path: "/fsx/osu".to_owned(),
            benchmark: Benchmark::Latency,
            arguments: Vec::new(),
            hosts,
            fabric,
            stand_in: None,
            shared_processors: false,
        }
    }

    fn lab(hosts: u32, fabric: Fabric) -> Launch {
        Launch {
            stand_in: Some("tcp".to_owned()),
            shared_processors: true,
            ..launch(hosts, fabric)
        }
    }

    const EVIDENCE: &str =
        "--mca pml_base_verbose 10 --mca mtl_base_verbose 1 --mca btl_base_verbose 1";
    const LAB: &str = "--bind-to none --mca mpi_yield_when_idle 1";
    const LIBFABRIC: &str = "-x FI_LOG_LEVEL -x FI_LOG_SUBSYS -x FI_PROVIDER";

    fn check(launch: &Launch, middle: &str) {
        let line = launch.command_line().unwrap().join(" ");
        let expected = format!("-np 2 --map-by node {middle} {EVIDENCE}");
        assert_eq!(line, expected.replace("  ", " "), "{launch:?}");
    }

    #[test]
    fn every_fabric_has_one_exact_command_line() {
        let ofi = "--mca mtl ofi --mca mtl_ofi_provider_include";
        let tcp = "--mca pml ob1 --mca btl self,vader,tcp";
        check(&launch(2, Fabric::Efa), &format!("{ofi} efa {LIBFABRIC}"));
        check(&launch(2, Fabric::Tcp), tcp);
        check(&launch(1, Fabric::Efa), "");
        check(&lab(2, Fabric::Efa), &format!("{LAB} {ofi} tcp {LIBFABRIC}"));
        check(&lab(2, Fabric::Tcp), &format!("{LAB} {tcp}"));
        check(&lab(1, Fabric::Efa), LAB);
        let without = Launch { stand_in: None, ..lab(2, Fabric::Efa) };
        check(&without, &format!("{LAB} {ofi} efa {LIBFABRIC}"));
    }

    #[test]
    fn more_hosts_than_ranks_are_refused() {
        let refused = launch(3, Fabric::Efa).command_line().unwrap_err();
        let message = "osu_latency takes two ranks, on 1 or 2 nodes, not on 3";
        assert_eq!(refused.to_string(), message);
    }

    #[test]
    fn the_environment_carries_every_value_as_data() {
        let arguments = vec!["-m".to_owned(), "8:64".to_owned(), "$(reboot) \"'\n".to_owned()];
        let launch = Launch { arguments: arguments.clone(), ..launch(2, Fabric::Efa) };
        let environment = launch.environment().unwrap();
        assert_eq!(environment["FI_PROVIDER"], "efa");
        assert_eq!(environment["HPCOPS_BENCHMARK"], "latency");
        let back: Vec<String> =
            serde_json::from_str(&environment["HPCOPS_ARGUMENTS_JSON"]).unwrap();
        assert_eq!(back, arguments);
    }

    #[test]
    fn the_expected_sizes_follow_the_arguments() {
        for (arguments, expected) in [
            ("", Some((1, 4_194_304))),
            ("-m 8", Some((1, 8))),
            ("-m 8:100", Some((8, 64))),
            ("-m8:100", Some((8, 64))),
            ("-m 0:4", Some((0, 4))),
            ("--message-size 3:100", Some((3, 96))),
            ("--message-size=1024", Some((1, 1024))),
            ("-m 64:", Some((64, 4_194_304))),
            ("-i 10 -x 5", Some((1, 4_194_304))),
            ("-m x", None),
            ("-m 8:4", None),
        ] {
            let arguments: Vec<_> = arguments.split_whitespace().map(str::to_owned).collect();
            let range = sizes(&arguments).ok().map(|range| (range.first, range.last));
            assert_eq!(range, expected, "{arguments:?}");
        }
    }
}
