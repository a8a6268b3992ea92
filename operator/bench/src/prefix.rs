//! Marks that launchers put before each line of a rank: Open MPI's `--tag-output`, Hydra's `-l`, srun's `-l`.

use std::sync::LazyLock;

use regex::Regex;

use crate::line::pattern;

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:[^\[\]]{0,40})?\[[^\[\]]{0,60}?(\d+)\]<(stdout|stderr|stddiag)>: ?")
});
static HYDRA: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[(\d+)\] "));
static SRUN: LazyLock<Regex> = LazyLock::new(|| pattern(r"^ *(\d+): "));
/// `kubectl logs --timestamps`, and Open MPI's `--timestamp-output`.
static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}<stdout>:)() ?",
    )
});

/// The longest text that may stand before a line of a rank.
const MAX_LITERAL: usize = 80;

/// Whose line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark<'a> {
    kind: Kind,
    rank: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tag,
    TagOfErrors,
    Hydra,
    Srun,
    Stamp,
    /// The same text before every line, whatever it is: `n1: ` of pdsh, `rank0> `.
    Literal,
}

/// A mark that outlives its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    kind: Kind,
    rank: String,
}

/// Splits a line into its mark and what the rank wrote.
pub(crate) fn split(line: &str) -> (Option<Mark<'_>>, &str) {
    let kinds = [
        (Kind::Tag, &TAG, line.contains("]<std")),
        (Kind::Hydra, &HYDRA, line.starts_with('[')),
        (Kind::Srun, &SRUN, line.contains(": ")),
        (Kind::Stamp, &STAMP, line.contains(':')),
    ];
    for (kind, pattern, may_be) in kinds {
        let found = if may_be { pattern.captures(line) } else { None };
        let Some(found) = found else { continue };
        let (Some(all), Some(rank)) = (found.get(0), found.get(1)) else { continue };
        let errors = found.get(2).is_some_and(|stream| stream.as_str() != "stdout");
        let kind = if errors { Kind::TagOfErrors } else { kind };
        return (Some(Mark { kind, rank: rank.as_str() }), line.get(all.end()..).unwrap_or(""));
    }
    (None, line)
}

/// A line without the mark of a rank's output or a time stamp, for programs of which one rank prints.
pub(crate) fn unmarked(line: &str) -> &str {
    if !line.starts_with(|first: char| {
        first == '[' || first.is_ascii_digit() || first.is_ascii_uppercase()
    }) {
        return line;
    }
    match split(line) {
        (Some(Mark { kind: Kind::Tag | Kind::Stamp, .. }), rest) => rest,
        (Some(_) | None, _) => line,
    }
}

/// Splits a line before the first of these words, if little stands there.
pub(crate) fn split_before<'a>(line: &'a str, words: &[&str]) -> Option<(Mark<'a>, &'a str)> {
    let at = words.iter().filter_map(|word| line.find(word)).min()?;
    let (rank, rest) = line.split_at_checked(at).filter(|_| (1..=MAX_LITERAL).contains(&at))?;
    Some((Mark { kind: Kind::Literal, rank }, rest))
}

impl Mark<'_> {
    pub(crate) fn owner(self) -> Owner {
        Owner { kind: self.kind, rank: self.rank.to_owned() }
    }
}

/// What the owner wrote in this line: the rest after its own mark, the whole line where there are no marks,
/// `None` if the line is another's.
pub(crate) fn of<'a>(owner: Option<&Owner>, line: &'a str) -> Option<&'a str> {
    let Some(owner) = owner else { return Some(line) };
    if owner.kind == Kind::Literal {
        return line.strip_prefix(&owner.rank);
    }
    let (mark, rest) = split(line);
    mark.is_some_and(|mark| mark.kind == owner.kind && mark.rank == owner.rank).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_the_rank_in_its_mark() {
        for (line, rank, rest) in [
            ("[1,0]<stdout>:# OSU", Some("0"), "# OSU"),
            ("[1,0]<stdout>: # OSU", Some("0"), "# OSU"),
            ("[prterun-n1-33@1,12]<stdout>: x", Some("12"), "x"),
            ("Mon Jun 10 07:00:00 2024[1,3]<stdout>:x", Some("3"), "x"),
            ("[0] x", Some("0"), "x"),
            ("0: x", Some("0"), "x"),
            (" 7: x", Some("7"), "x"),
            ("2024-06-10T07:00:00.123456789Z 8  1.0", Some(""), "8  1.0"),
            ("Mon Jun 10 07:00:00 2024<stdout>:8  1.0", Some(""), "8  1.0"),
            ("[n1:123] x", None, "[n1:123] x"),
            ("8  1.0", None, "8  1.0"),
        ] {
            let (mark, got) = split(line);
            assert_eq!((mark.map(|m| m.rank), got), (rank, rest), "{line}");
        }
        let (mark, rest) = split_before("n1: # OSU x", &["# OSU "]).unwrap();
        let host = mark.owner();
        assert_eq!(
            (rest, of(Some(&host), "n1: 4 5"), of(Some(&host), "n2: 4 5")),
            ("# OSU x", Some("4 5"), None)
        );
        let owner = split("[1,0]<stdout>:x").0.unwrap().owner();
        assert_eq!(of(Some(&owner), "[1,0]<stdout>:4 5"), Some("4 5"));
        for other in ["[1,1]<stdout>:4 5", "[1,0]<stderr>:4 5", "4 5"] {
            assert_eq!(of(Some(&owner), other), None, "{other}");
        }
    }
}
