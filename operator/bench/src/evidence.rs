//! What a log proves about how a program ran: MPI, fabric provider, hosts and ranks.
//!
//! A fast fabric that is not there is replaced by a slow one without an error, and a launcher that finds one host puts
//! every rank on it. So no number counts unless the log itself shows the provider and the hosts. Formats: Intel MPI with
//! `I_MPI_DEBUG=5`, Open MPI's verbose frameworks, `--report-bindings` and `--display-map`, libfabric's own log, and the
//! lines of our `run.sh`. A provider is *seen* where it was opened for traffic, not where it was only offered.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex, RegexSet};

use crate::line::pattern;

/// What a log proves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Name and version of the MPI library, as printed.
    pub mpi: Option<String>,
    /// Version of libfabric, as printed.
    pub libfabric: Option<String>,
    /// Fabric providers (libfabric) or transports (Open MPI's btl, mtl and pml) opened for traffic, each with the line that
    /// shows it first. Those that never leave a host (self, shm, vader, sm) are among them.
    pub providers: BTreeMap<String, u64>,
    /// Host of each rank; at most [`MAX_RANKS`].
    pub ranks: BTreeMap<u32, String>,
    /// Epoch milliseconds at which `run.sh` started mpirun.
    pub started_ms: Option<u64>,
    /// What `run.sh` says of the end of mpirun.
    pub ended: Option<Ended>,
}

/// The end of mpirun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Epoch milliseconds.
    pub at_ms: u64,
    /// Exit code.
    pub code: i32,
    /// 1-based line.
    pub line: u64,
}

/// The most ranks remembered.
pub const MAX_RANKS: usize = 65_536;
const MAX_PROVIDERS: usize = 64;
const INSIDE_A_HOST: [&str; 5] = ["self", "shm", "vader", "sm", "smcuda"];

impl Evidence {
    /// Providers that can leave a host, with the line that shows each first.
    pub fn between_hosts(&self) -> impl Iterator<Item = (&str, u64)> {
        let leaves = |provider: &&String| !INSIDE_A_HOST.contains(&provider.as_str());
        let seen = self.providers.iter().filter(move |(provider, _)| leaves(provider));
        seen.map(|(provider, line)| (provider.as_str(), *line))
    }

    /// Distinct hosts with their number of ranks.
    pub fn hosts(&self) -> BTreeMap<&str, u32> {
        let mut hosts = BTreeMap::new();
        for host in self.ranks.values() {
            *hosts.entry(host.as_str()).or_insert(0) += 1;
        }
        hosts
    }

    fn provider(&mut self, name: &str, line: u64) {
        let known = self.providers.contains_key(name);
        if !known && self.providers.len() < MAX_PROVIDERS {
            self.providers.insert(name.to_owned(), line);
        }
    }

    fn rank(&mut self, rank: &str, host: &str) {
        let Ok(rank) = rank.parse() else { return };
        if self.ranks.len() < MAX_RANKS || self.ranks.contains_key(&rank) {
            self.ranks.insert(rank, host.to_owned());
        }
    }
}

/// Collects evidence line by line.
#[derive(Debug, Default, Clone)]
pub(crate) struct Scanner {
    pub evidence: Evidence,
    map_host: Option<String>,
    placed_by_us: bool,
    is_pin_table: bool,
}

struct Clue {
    pattern: &'static str,
    read: fn(&mut Scanner, &Captures<'_>, u64),
}

/// Every form of evidence; the first capture groups are what its reader takes.
const CLUES: &[Clue] = &[
    Clue { pattern: r"^hpcops: rank (\d+) host (\S+)$", read: Scanner::placed },
    Clue { pattern: r"^hpcops: mpirun-start epoch-ms=(\d+)$", read: Scanner::started },
    Clue { pattern: r"^hpcops: mpirun-end epoch-ms=(\d+) code=(\d+)$", read: Scanner::ended },
    Clue {
        pattern: r"^hpcops: libfabric (\S+)$",
        read: |s, c, _| s.evidence.libfabric = Some(c[1].to_owned()),
    },
    Clue {
        pattern: r"MPI startup\(\): libfabric version: (\S+)",
        read: |s, c, _| s.evidence.libfabric = Some(c[1].to_owned()),
    },
    Clue {
        pattern: r"MPI startup\(\): (?:libfabric|OFI) provider: ([\w;-]+)",
        read: |s, c, n| s.evidence.provider(&c[1], n),
    },
    Clue {
        pattern: r"MPI startup\(\): (Intel\(R\) MPI Library,? Version .*?)(?: {2}Build.*)?$",
        read: Scanner::mpi,
    },
    Clue {
        pattern: r"MPI startup\(\): Rank +(Pid +Node name|\w)",
        read: |s, c, _| s.is_pin_table = c[1].starts_with("Pid"),
    },
    Clue {
        pattern: r"MPI startup\(\): (\d+)\s+\d+\s+([A-Za-z0-9][\w.-]*)(?:\s+\{.*|\s+\d[\d,-]*)?\s*$",
        read: Scanner::pinned,
    },
    Clue {
        pattern: r"^(?:mpirun|mpiexec|prterun) \((Open MPI|PRRTE)\) (\S+)",
        read: |s, c, _| s.evidence.mpi = Some(format!("{} {}", &c[1], &c[2])),
    },
    Clue { pattern: r"mtl:ofi:prov: ([\w;-]+)", read: |s, c, n| s.evidence.provider(&c[1], n) },
    Clue {
        pattern: r"mtl:ofi:provider: (?:rdmap\w+|efa_\d+)-(?:rdm|dgrm)\b",
        read: |s, _, n| s.evidence.provider("efa", n),
    },
    Clue {
        pattern: r"bml: Using (\w+) btl for send to \[\[\d+,\d+\],\d+\] on node \S",
        read: |s, c, n| s.evidence.provider(&c[1], n),
    },
    Clue {
        pattern: r"\] select: component (ucx|psm2|psm|portals4) selected",
        read: |s, c, n| s.evidence.provider(&c[1], n),
    },
    Clue {
        pattern: r"libfabric:\d+:(?:\d+:)?(?:[\w;-]*:)?([\w;-]+):(?:av|ep_ctrl|ep_data|cq|eq|cntr):\w+\(\):\d+<\w+>",
        read: Scanner::libfabric,
    },
    Clue {
        pattern: r"NET/OFI Selected [Pp]rovider is ([\w;-]+)",
        read: |s, c, n| s.evidence.provider(&c[1], n),
    },
    Clue {
        pattern: r"^\[([A-Za-z0-9][\w.-]*):\d+\] (?:MCW r|R)ank (\d+) (?:is not )?bound",
        read: |s, c, _| s.rank(&c[2], &c[1]),
    },
    Clue {
        pattern: r"^ *Data for node: (\S+)",
        read: |s, c, _| s.map_host = Some(c[1].to_owned()),
    },
    Clue { pattern: r"^\s*Process OMPI jobid: .*Process rank: (\d+)", read: Scanner::mapped },
];

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| CLUES.iter().map(|clue| pattern(clue.pattern)).collect());

/// The same patterns, looked for together.
#[expect(
    clippy::expect_used,
    reason = "patterns are constants of this crate; every test compiles them"
)]
static SET: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSet::new(CLUES.iter().map(|clue| clue.pattern)).expect("constant patterns compile")
});

/// Words of which every clue holds one; looked for first, because most lines hold none.
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"hpcops: |MPI startup\(\)|mtl:ofi:prov|bml: Using|libfabric:\d|\] select: component|NET/OFI|\(Open MPI\)|\(PRRTE\)|ank \d+ (?:is not )?bound|Data for node: |Process rank: ",
    )
});

impl Scanner {
    /// Takes the evidence of one line, if it holds any.
    pub(crate) fn line(&mut self, number: u64, text: &str) {
        if !WORDS.is_match(text) {
            return;
        }
        let (_, unmarked) = crate::prefix::split(text);
        // One pass says which clue it is; a second one takes it apart.
        let found = [text, unmarked].into_iter().find_map(|text| {
            let index = SET.matches(text).iter().next()?;
            Some((CLUES.get(index)?.read, PATTERNS.get(index)?.captures(text)?))
        });
        if let Some((read, captures)) = found {
            read(self, &captures, number);
        }
    }

    fn started(&mut self, captures: &Captures<'_>, _line: u64) {
        self.evidence.started_ms = captures[1].parse().ok();
        self.evidence.ended = None;
    }

    fn ended(&mut self, captures: &Captures<'_>, line: u64) {
        if let (Ok(at_ms), Ok(code)) = (captures[1].parse(), captures[2].parse()) {
            self.evidence.ended = Some(Ended { at_ms, code, line });
        }
    }

    fn mpi(&mut self, captures: &Captures<'_>, _line: u64) {
        self.evidence.mpi = Some(captures[1].trim().to_owned());
    }

    /// `core` and the layering utilities log before a provider is chosen; they carry no traffic of their own.
    fn libfabric(&mut self, captures: &Captures<'_>, line: u64) {
        if !matches!(&captures[1], "core" | "ofi_mrail" | "ofi_hook_noop") {
            self.evidence.provider(&captures[1], line);
        }
    }

    fn mapped(&mut self, captures: &Captures<'_>, _line: u64) {
        if let Some(host) = self.map_host.clone() {
            self.rank(&captures[1], &host);
        }
    }

    /// The table of network cards has rows of the same shape, so only the one of processors counts.
    fn pinned(&mut self, captures: &Captures<'_>, _line: u64) {
        if self.is_pin_table {
            self.rank(&captures[1], &captures[2]);
        }
    }

    /// Our own lines are told by the ranks themselves; what a launcher planned counts only where there are none.
    fn placed(&mut self, captures: &Captures<'_>, _line: u64) {
        if !self.placed_by_us {
            self.evidence.ranks.clear();
            self.placed_by_us = true;
        }
        self.evidence.rank(&captures[1], &captures[2]);
    }

    fn rank(&mut self, rank: &str, host: &str) {
        if !self.placed_by_us {
            self.evidence.rank(rank, host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> Evidence {
        let mut scanner = Scanner::default();
        text.lines().zip(1..).for_each(|(line, number)| scanner.line(number, line));
        scanner.evidence
    }

    #[test]
    fn a_provider_is_seen_where_it_is_opened_and_not_where_it_is_offered() {
        for (line, expected) in [
            ("[0] MPI startup(): libfabric provider: efa", Some("efa")),
            ("[0] MPI startup(): libfabric provider: tcp;ofi_rxm", Some("tcp;ofi_rxm")),
            ("[n1:9] ../ompi/mca/mtl/ofi/mtl_ofi_component.c:365: mtl:ofi:prov: efa", Some("efa")),
            ("[n1:9] mtl_ofi_component.c:365: mtl:ofi:provider: rdmap0s6-rdm", Some("efa")),
            ("[n1:9] mtl_ofi_component.c:365: mtl:ofi:provider: eth0", None),
            ("[n1:9] mca: bml: Using tcp btl for send to [[4427,1],1] on node n2", Some("tcp")),
            ("[n1:9] select: component ucx selected", Some("ucx")),
            ("[n1:9] select: component cm selected", None),
            ("[n1:9] select: init of component tcp returned success", None),
            ("libfabric:42:1718000000:efa:ep_ctrl:example_alloc():479<warn> full", Some("efa")),
            (
                "libfabric:42:1718000000::ofi_rxm:av:util_av_init():487<info> AV size 2",
                Some("ofi_rxm"),
            ),
            ("libfabric:42:efa:cq:efa_cq_open():1<info> x", Some("efa")),
            (
                "libfabric:42:1718000000::core:core:ofi_register_provider():461<info> registering provider: efa (117.0)",
                None,
            ),
            ("libfabric:42:1718000000::efa:core:efa_prov_init():1<info> x", None),
            ("n1:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa (found 1 nics)", Some("efa")),
            ("FI_PROVIDER=efa", None),
        ] {
            let evidence = scan(line);
            assert_eq!(evidence.providers.keys().next().map(String::as_str), expected, "{line}");
        }
    }

    #[test]
    fn ranks_are_placed_by_every_launcher_we_know() {
        let expected = BTreeMap::from([(0, "n1".to_owned()), (1, "n2".to_owned())]);
        for text in [
            "hpcops: rank 1 host n2\nhpcops: rank 0 host n1",
            "[1,0]<stderr>:hpcops: rank 0 host n1\n[1,1]<stderr>:hpcops: rank 1 host n2",
            "[0] MPI startup(): Rank    Thread id  Pin nic\n[0] MPI startup(): 0       0          eth0\n[0] MPI startup(): Rank    Pid      Node name  Pin cpu\n[0] MPI startup(): 0       4101     n1       {0,1,\n 8}\n[0] MPI startup(): 1       4102     n2       {0,1}",
            "[n1:4101] MCW rank 0 bound to socket 0[core 0[hwt 0]]: [B/.]\n[n2:4102] MCW rank 1 is not bound (or bound to all available processors)",
            "[n1:4101] Rank 0 bound to package[0][core:0]\n[n2:4102] Rank 1 bound to package[0][core:0]",
            " Data for node: n1\tNum slots: 1\n \tProcess OMPI jobid: [1,1] App: 0 Process rank: 0 Bound: N/A\n Data for node: n2\tNum slots: 1\n \tProcess OMPI jobid: [1,1] App: 0 Process rank: 1 Bound: N/A",
        ] {
            assert_eq!(scan(text).ranks, expected, "{text}");
        }
        let pin = "[0] MPI startup(): Rank    Pid      Node name       Pin cpu\n[0] MPI startup(): I_MPI_PIN_MAPPING=4:0 0,2 1";
        assert_eq!(scan(pin).ranks, BTreeMap::new());
    }

    #[test]
    fn the_start_and_end_of_mpirun_are_those_of_the_last_attempt() {
        let evidence = scan(
            "hpcops: mpirun-start epoch-ms=100\nhpcops: mpirun-end epoch-ms=200 code=1\nhpcops: mpirun-start epoch-ms=300",
        );
        assert_eq!((evidence.started_ms, evidence.ended), (Some(300), None));
        let whole =
            scan("hpcops: mpirun-start epoch-ms=100\nhpcops: mpirun-end epoch-ms=200 code=0");
        assert_eq!(whole.ended, Some(Ended { at_ms: 200, code: 0, line: 2 }));
    }
}
