//! Which application wrote a log: told by the first line that only one of them prints.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use crate::app::Application;
use crate::line::{Line, pattern};

/// Text kept from before the first telling line, so that what belongs to it is not lost.
const MAX_KEPT: usize = 64 * 1024;

/// For each application the lines that tell it, most telling first.
static SIGNS: LazyLock<[(Regex, Application); 7]> = LazyLock::new(|| {
    [
        (pattern(r#""fio version"\s*:"#), Application::Fio),
        (
            pattern(
                r#"^IOR-\S+: MPI Coordinated Test|^access(?:,|\s+)bw\(MiB/s\)|"Command line"\s*:\s*"\S*\bior\b"#,
            ),
            Application::Ior,
        ),
        (
            pattern(
                r"#\s*OSU \S.* v\d+\.\d|# MPI \S.* Test\s*$|^This test requires (?:exactly|at least) two processes",
            ),
            Application::Osu,
        ),
        (pattern(r"#\s+Intel ?\(R\) MPI Benchmarks?|# Benchmarking \S+\s*$"), Application::Imb),
        (
            pattern(
                r"Performance Timer for \d+ iterations on|^\s*Solver (?:wall time per iteration|speed|rating)\s*=|Million Cell Iteration Per Wall Second|(?i:ansys fluent)|^\s*iter\s+continuity\b|^\s*Read case time\s*=",
            ),
            Application::Fluent,
        ),
        (
            pattern(
                r"\bSeisSol\b|calculated (?:HW|NZ)-G?FLOP|Elapsed time \(via clock_gettime\)|GFLOPS on rank \d",
            ),
            Application::SeisSol,
        ),
        (
            pattern(
                r"(?i:\bnastran\b)|N A S T R A N|E I G E N V A L U E|\* \* \* END OF JOB \* \* \*|(?:USER|SYSTEM) FATAL MESSAGE|SUB_DMAP/DMAP_MODULE",
            ),
            Application::Nastran,
        ),
    ]
});

/// Looks for a telling line.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seeker {
    kept: VecDeque<Kept>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Kept {
    number: u64,
    text: String,
    ended: bool,
    whole: bool,
}

impl Seeker {
    /// Takes the next line; the application, if the line tells it.
    pub(crate) fn line(&mut self, line: Line<'_>) -> Option<Application> {
        let found = of(line.text).or_else(|| of(crate::prefix::unmarked(line.text)));
        self.keep(line);
        found
    }

    fn keep(&mut self, line: Line<'_>) {
        let Line { number, text, ended, whole } = line;
        self.bytes += text.len() + size_of::<Kept>();
        self.kept.push_back(Kept { number, text: text.to_owned(), ended, whole });
        while self.bytes > MAX_KEPT && self.kept.len() > 1 {
            let gone = self.kept.pop_front().map_or(0, |gone| gone.text.len());
            self.bytes = self.bytes.saturating_sub(gone + size_of::<Kept>());
        }
    }

    /// Gives the lines that were kept, the telling one last.
    pub(crate) fn replay(self, mut give: impl FnMut(Line<'_>)) {
        for Kept { number, text, ended, whole } in self.kept {
            give(Line { number, text: &text, ended, whole });
        }
    }
}

fn of(text: &str) -> Option<Application> {
    SIGNS.iter().find(|(sign, _)| sign.is_match(text)).map(|(_, application)| application.clone())
}

/// The application a file's name speaks of, for a log that holds no telling line: `fluent_2024.out`, `job.f06`.
pub fn by_name(name: &str) -> Option<Application> {
    let name = name.to_ascii_lowercase();
    let words = [
        ("osu", Application::Osu),
        ("imb", Application::Imb),
        ("fluent", Application::Fluent),
        ("seissol", Application::SeisSol),
        ("nastran", Application::Nastran),
        ("fio", Application::Fio),
        ("ior", Application::Ior),
    ];
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let ending = match parts.last().copied() {
        Some("trn") => Some(Application::Fluent),
        Some("f06" | "f04") => Some(Application::Nastran),
        _ => None,
    };
    let word = words.into_iter().find(|(word, _)| parts.iter().any(|part| part == word));
    word.map(|(_, application)| application).or(ending)
}
