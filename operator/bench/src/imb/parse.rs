//! Reads the output of Intel MPI Benchmarks: one table for each benchmark and number of processes.

use std::sync::LazyLock;

use regex::Regex;

use super::columns::COLUMNS;
use crate::attempts;
use crate::evidence::Evidence;
use crate::expect::{Expectation, ExpectedTable};
use crate::failure::{ParseError, Reason};
use crate::labels::{Found, Header};
use crate::line::{Line, pattern};
use crate::parsed::{Noise, Parsed, Table};
use crate::prefix::{self, Owner};
use crate::rows::{Open, Steps, Taken};

/// Tables one log may hold.
const MAX_TABLES: usize = 2000;
/// Groups that run at the same time and print a row each.
const MAX_GROUPS: usize = 1024;

static BANNER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^#\s+Intel ?\(R\) MPI Benchmarks?(?: Suite)? V?(\d[\w.]*)(?: Update \d+)?, (\S+(?: part)?)",
    )
});
static TITLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# Benchmarking\s+(\S+)\s*$"));
static PROCESSES: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# #processes = (\d+)"));
static GROUPS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# \( (\d+) groups of (\d+) processes each running simultaneous"));
/// The ranks of a group.
static MEMBERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# Group\s+\d+:"));
static MODE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#\s+MODE: (\S+)"));
static LISTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# ([A-Z][A-Za-z0-9_]+)\s*$"));
static SKIPPED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:(\d+)\s+)?(\d+)\s+(out-of-mem\.|int-overflow|time-out\.)"));

/// Reads one log.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    expected: Vec<ExpectedTable>,
    parsed: Parsed,
    version: Option<String>,
    listed: Vec<String>,
    is_listing: bool,
    user_sizes: bool,
    owner: Option<Owner>,
    title: Option<Table>,
    open: Vec<(Option<u64>, Open)>,
    is_grouped: bool,
    done: Vec<Table>,
    end: Option<u64>,
    error: Option<ParseError>,
    noise: Noise,
}

impl Reader {
    pub(crate) fn new(expected: &Expectation) -> Self {
        Self {
            expected: expected.tables.clone(),
            parsed: Parsed::default(),
            version: None,
            listed: Vec::new(),
            is_listing: false,
            user_sizes: false,
            owner: None,
            title: None,
            open: Vec::new(),
            is_grouped: false,
            done: Vec::new(),
            end: None,
            error: None,
            noise: Noise::default(),
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if self.error.is_some() {
            return;
        }
        self.own(line.text);
        let Some(text) = prefix::of(self.owner.as_ref(), line.text) else { return };
        let line = Line { text, ..line };
        if text.trim_start().starts_with('#') {
            self.marked(line);
        } else if !text.trim().is_empty() {
            self.row(line);
        }
    }

    /// The rank that prints the banner or a title is the one that prints all of it.
    fn own(&mut self, text: &str) {
        if !text.contains("# ") {
            return;
        }
        let begins = |text: &str| BANNER.is_match(text) || TITLE.is_match(text);
        if begins(text) {
            self.owner = None;
            return;
        }
        let (mark, rest) = prefix::split(text);
        let known = mark.filter(|_| begins(rest));
        let literal = || prefix::split_before(text, &["#    Intel", "# Benchmarking "]);
        let literal = || literal().filter(|(_, rest)| begins(rest)).map(|(mark, _)| mark);
        if let Some(mark) = known.or_else(literal) {
            self.owner = Some(mark.owner());
        }
    }

    fn marked(&mut self, line: Line<'_>) {
        let text = line.text;
        if let Some(found) = BANNER.captures(text) {
            self.begin(&found[1]);
        } else if let Some(found) = TITLE.captures(text) {
            self.title(&found[1], line.number);
        } else if text.contains("Message lengths were user defined") {
            self.user_sizes = true;
        } else if text.contains("List of Benchmarks to run") {
            self.is_listing = true;
        } else if text.contains("All processes entering MPI_Finalize") {
            self.close();
            self.end = Some(line.number);
        } else if self.is_listing {
            self.list(text);
        } else {
            self.header(line);
        }
    }

    /// A banner begins a program; what came before was another attempt.
    fn begin(&mut self, version: &str) {
        self.close();
        self.version = Some(version.to_owned());
        self.listed.clear();
        self.end = None;
        self.user_sizes = false;
    }

    fn list(&mut self, text: &str) {
        match LISTED.captures(text) {
            Some(found) => self.listed.push(found[1].to_owned()),
            None => self.is_listing = text.trim() == "#",
        }
    }

    fn title(&mut self, name: &str, line: u64) {
        self.close();
        self.is_listing = false;
        if self.done.len() > MAX_TABLES {
            let detail = format!("more than {MAX_TABLES} tables");
            self.error = Some(ParseError::new(line, Reason::TooLarge, detail));
        }
        self.title = Some(Table {
            benchmark: Some(name.to_owned()),
            title: name.to_owned(),
            version: self.version.clone(),
            line,
            attempts: 1,
            ..Table::default()
        });
    }

    /// What stands between title and rows.
    fn header(&mut self, line: Line<'_>) {
        let Some(table) = &mut self.title else { return };
        let mut note =
            |name: &str, value: &str| table.attributes.insert(name.to_owned(), value.to_owned());
        if let Some(found) = PROCESSES.captures(line.text) {
            note("processes", &found[1]);
        } else if let Some(found) = GROUPS.captures(line.text) {
            note("groups", &found[1]);
            note("processes", &found[2]);
        } else if let Some(found) = MODE.captures(line.text) {
            note("mode", &found[1]);
        } else if !MEMBERS.is_match(line.text) {
            self.columns(line);
        }
    }

    fn columns(&mut self, line: Line<'_>) {
        match COLUMNS.read(line.text) {
            Found::Header(header) => self.open(header),
            Found::Unknown(label) => {
                let detail = format!("column '{label}' is not known");
                self.error = Some(ParseError::new(line.number, Reason::UnknownColumn, detail));
            }
            Found::Other => {}
        }
    }

    /// Begins the rows of a table. Groups that run at the same time print a row each, so each has a table.
    fn open(&mut self, header: Header) {
        let Some(table) = self.title.take() else { return };
        let mut header = self.in_megabytes(header);
        let grouped = header.columns.first().is_some_and(|(column, _)| column.name == "group");
        self.is_grouped = grouped;
        if grouped {
            header.columns.remove(0);
            let sized = header.columns.first().is_some_and(|(column, _)| column.name == "size");
            if sized {
                header.columns.remove(0);
            }
            header.sized = sized;
        }
        let steps = if self.user_sizes { Steps::Increasing } else { Steps::DoublingFromAny };
        self.open = vec![(None, Open::new(table, header, steps))];
    }

    /// Before version 2018 a megabyte was 2^20 bytes.
    fn in_megabytes(&self, mut header: Header) -> Header {
        let year =
            self.version.as_ref().and_then(|version| version.split('.').next()?.parse().ok());
        if year.is_some_and(|year: u32| year < 2018) {
            let bandwidth = header.columns.iter_mut().filter(|(column, _)| column.unit == "MB/s");
            bandwidth.for_each(|(column, _)| column.unit = "MiB/s".into());
        }
        header
    }

    fn row(&mut self, line: Line<'_>) {
        if self.title.is_some() {
            // The header of `Barrier` and of groups begins with a word, not with a mark.
            return self.columns(line);
        }
        if self.open.is_empty() {
            return;
        }
        if let Some(found) = SKIPPED.captures(line.text).filter(|_| line.ended) {
            let group = found.get(1).and_then(|group| group.as_str().parse().ok());
            let size = found[2].parse().ok();
            self.parsed.warn(line.number, line.text.trim());
            return self.group(group).into_iter().for_each(|open| open.lost(line.number, size));
        }
        if self.take(line) == Taken::Noise {
            self.noise.line(line.number, line.text, &mut self.parsed);
        }
    }

    fn take(&mut self, line: Line<'_>) -> Taken {
        let (group, text) =
            if self.is_grouped { split_group(line.text) } else { (None, line.text) };
        let line = Line { text, ..line };
        if let Some(open) = self.group(group) {
            return open.line(line);
        }
        // The first row of a group makes its table, in the likeness of the first group's. Groups come in order.
        let next = u64::try_from(self.open.len()).ok().and_then(|tables| tables.checked_sub(1));
        let Some(mut open) = self.open.first().map(|(_, first)| first.empty()) else {
            return Taken::Noise;
        };
        let is_next = group.is_some() && group == next && self.open.len() <= MAX_GROUPS;
        if !is_next || open.line(line) == Taken::Noise || open.table.rows.is_empty() {
            return Taken::Noise;
        }
        let name = group.map_or(String::new(), |group| group.to_string());
        open.table.attributes.insert("group".to_owned(), name);
        self.open.push((group, open));
        Taken::Row
    }

    /// The table of a group, if it has one.
    fn group(&mut self, group: Option<u64>) -> Option<&mut Open> {
        let is_grouped = self.is_grouped;
        let found = self.open.iter_mut().find(|(of, _)| *of == group);
        found.filter(|_| group.is_some() == is_grouped).map(|(_, open)| open)
    }

    fn close(&mut self) {
        self.done.extend(self.title.take());
        let is_grouped = self.open.len() > 1;
        for (group, open) in std::mem::take(&mut self.open) {
            if is_grouped && group.is_none() {
                continue;
            }
            match open.finish() {
                Ok(table) => self.done.push(table),
                Err(mixed) => self.error = Some(mixed.into()),
            }
        }
    }

    /// Ends the log.
    pub(crate) fn finish(mut self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        self.close();
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.done.is_empty() {
            return Err(ParseError::new(lines, Reason::NotFound, "no table of IMB"));
        }
        if let Some(error) = attempts::nothing(&self.done) {
            return Err(error);
        }
        let mut parsed = self.parsed;
        self.noise.count(&mut parsed);
        parsed.tables = attempts::choose(self.done, &mut parsed.warnings);
        let mut problems = missing(&self.listed, &parsed.tables);
        if self.end.is_none() && self.version.is_some() && self.expected.is_empty() {
            problems.push("the output ends before all processes entered MPI_Finalize".to_owned());
        }
        let is_ended = self.end.is_some();
        parsed.complete =
            attempts::complete(&mut parsed, &self.expected, evidence, is_ended, problems);
        Ok(parsed)
    }
}

/// Benchmarks that were announced and have no table.
fn missing(listed: &[String], tables: &[Table]) -> Vec<String> {
    let has = |name: &str| {
        let names = tables.iter().filter_map(|table| table.benchmark.as_deref());
        names.into_iter().any(|has| has.strip_prefix("Multi-").unwrap_or(has) == name)
    };
    let absent = listed.iter().filter(|name| !has(name));
    absent.map(|name| format!("no table of {name}, which was to run")).collect()
}

fn split_group(text: &str) -> (Option<u64>, &str) {
    let text = text.trim_start();
    let Some((first, rest)) = text.split_once(char::is_whitespace) else { return (None, text) };
    (first.parse().ok(), rest)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::parsed::Complete;
    use crate::{Application, parse};

    const HEAD: &str = "#    Intel(R) MPI Benchmarks 2021.10, MPI-1 part\n# List of Benchmarks to run:\n\n# PingPong\n# Barrier\n\n";
    const END: &str = "\n# All processes entering MPI_Finalize\n";

    fn read(text: &str) -> Result<Parsed, ParseError> {
        parse(&Application::Imb, text.as_bytes(), &Expectation::default())
    }

    fn table(name: &str, header: &str, rows: &str) -> String {
        format!("#-----\n# Benchmarking {name} \n# #processes = 2 \n#-----\n{header}\n{rows}\n")
    }

    fn ping_pong(rows: &str) -> String {
        table("PingPong", "       #bytes #repetitions      t[usec]   Mbytes/sec", rows)
    }

    fn barrier() -> String {
        table(
            "Barrier",
            " #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]",
            "           20         3.79         3.91         3.85",
        )
    }

    #[test]
    fn a_log_is_complete_when_every_announced_table_is_there_and_mpi_was_left() {
        let rows = "            0           20         8.64         0.00\n            4           20         8.79         0.45\n";
        let whole = format!("{HEAD}{}{}{END}", ping_pong(rows), barrier());
        let parsed = read(&whole).unwrap();
        assert_eq!(parsed.complete, Complete::Yes, "{:?}", parsed.warnings);
        assert_eq!(parsed.table("PingPong").unwrap().at(Some(4), "t"), Some(8.79));
        assert_eq!(parsed.table("Barrier").unwrap().at(None, "t_avg"), Some(3.85));
        for cut in [
            format!("{HEAD}{}{END}", ping_pong(rows)),
            format!("{HEAD}{}{}", ping_pong(rows), barrier()),
        ] {
            assert_eq!(read(&cut).unwrap().complete, Complete::No);
        }
    }

    #[test]
    fn a_size_that_the_program_skipped_is_damaged_and_says_why() {
        let rows = "            0           20         8.64         0.00\n            4 out-of-mem.; needed X=   2.000 GB; use flag \"-mem X\"\n";
        let parsed = read(&format!("{HEAD}{}{}{END}", ping_pong(rows), barrier())).unwrap();
        assert_eq!(parsed.table("PingPong").unwrap().damaged[0].size, Some(4));
        assert!(parsed.warnings.iter().any(|warning| warning.message.contains("out-of-mem")));
    }

    #[test]
    fn groups_have_a_table_each() {
        let mut rows = String::new();
        for (size, group, time) in [(0, 0, 1.0), (0, 1, 2.0), (4, 0, 3.0), (4, 1, 4.0)] {
            writeln!(rows, "\n{group:13}{size:13}{:13}{time:13.2}{:13.2}", 5, 0.0).unwrap();
        }
        let header = "        Group       #bytes #repetitions      t[usec]   Mbytes/sec";
        let parsed = read(&format!(
            "#    Intel(R) MPI Benchmarks 2021.10, MPI-1 part\n{}{END}",
            table("Multi-PingPong", header, &rows)
        ))
        .unwrap();
        let seen: Vec<_> = parsed
            .tables
            .iter()
            .map(|table| (table.attributes["group"].as_str(), table.at(Some(4), "t")))
            .collect();
        assert_eq!(seen, [("0", Some(3.0)), ("1", Some(4.0))]);
    }

    #[test]
    fn old_versions_print_binary_megabytes() {
        for (version, unit) in [("2018.1", "MB/s"), ("4.1", "MiB/s")] {
            let text = format!(
                "#    Intel(R) MPI Benchmarks {version}, MPI-1 part\n{}",
                ping_pong("            1           20         8.64         0.11")
            );
            assert_eq!(read(&text).unwrap().tables[0].columns[2].unit, unit, "{version}");
        }
    }

    #[test]
    fn a_log_without_rows_is_refused() {
        assert_eq!(read("nothing\n").unwrap_err().reason, Reason::NotFound);
        assert_eq!(read(&format!("{HEAD}{}", ping_pong(""))).unwrap_err().reason, Reason::NoData);
        let unknown = table("PingPong", "       #bytes #repetitions   t_med[usec]", "1 2 3.00");
        assert_eq!(read(&unknown).unwrap_err().reason, Reason::UnknownColumn);
    }
}
