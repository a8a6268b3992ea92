//! What is printed between title and columns: data type, window, pairs. It changes what the numbers mean.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::line::pattern;

static DATATYPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^# Datatype: (\S+?)\.?\s*$"));
static PAIRS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[ *([a-z][a-z ]*?): *(\w+) *\]"));
static BUFFERS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# Send Buffer on (\w+) .*Receive Buffer on (\w+)"));
static PLAIN: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# ([A-Z][A-Za-z0-9 ]{2,40}): *(\S.{0,80}?)\.?\s*$"));
static MEMORY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# Rank 0 Memory on (\w+).* and Rank 1 Memory on (\w+)"));
static PROFILE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# (Uni-directional Bandwidth|Message Rate Profile)"));
static BEFORE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^# Number of (?:Sender|Receiver|forked) .*: *\d+\s*$"));

/// Whether a line inside a table is about the table that follows.
pub(super) fn is_one(line: &str) -> bool {
    DATATYPE.is_match(line) || PROFILE.is_match(line)
}

/// Whether a line stands before the title it belongs to.
pub(super) fn is_before_title(line: &str) -> bool {
    BEFORE.is_match(line)
}

/// Takes what a line says, if it says something.
pub(super) fn read(line: &str, into: &mut BTreeMap<String, String>) {
    if !line.starts_with('#') {
        return;
    }
    if let Some(found) = DATATYPE.captures(line) {
        into.insert("datatype".to_owned(), found[1].to_owned());
    } else if let Some(found) = BUFFERS.captures(line) {
        into.insert("send_buffer".to_owned(), found[1].to_owned());
        into.insert("receive_buffer".to_owned(), found[2].to_owned());
    } else if let Some(found) = MEMORY.captures(line) {
        into.insert("rank_0_memory".to_owned(), found[1].to_owned());
        into.insert("rank_1_memory".to_owned(), found[2].to_owned());
    } else if let Some(found) = PROFILE.captures(line) {
        into.insert("profile".to_owned(), found[1].to_owned());
    } else if line.contains('[') {
        for found in PAIRS.captures_iter(line) {
            into.insert(found[1].trim().replace(' ', "_"), found[2].to_owned());
        }
    } else if let Some(found) = PLAIN.captures(line) {
        into.insert(found[1].trim().to_ascii_lowercase().replace(' ', "_"), found[2].to_owned());
    }
}
