//! `docs/bug-classes.md` names a test for each known way to fail: here it is checked that each of
//! them exists and is run, and that no class is missing.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

use std::collections::BTreeSet;
use std::path::Path;

/// The classes that the page must speak of.
const CLASSES: [std::ops::RangeInclusive<u32>; 2] = [1..=21, 38..=40];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/bug-classes.md")).unwrap()
}

/// Every `file::test` of a text.
fn named(text: &str) -> Vec<(String, String)> {
    let spans = text.split('`').skip(1).step_by(2);
    let pairs = spans.filter_map(|span| span.split_once("::"));
    pairs.map(|(file, test)| (file.to_owned(), test.to_owned())).collect()
}

/// Why a test of this name in this text would not be run, if it would not.
fn fault(text: &str, name: &str) -> Option<&'static str> {
    let lines: Vec<_> = text.lines().map(str::trim_start).collect();
    let is_it = |line: &&str| {
        ["fn ", "async fn ", "def "].iter().any(|word| {
            line.strip_prefix(word).is_some_and(|rest| rest.starts_with(&format!("{name}(")))
        })
    };
    let Some((at, it)) = lines.iter().enumerate().find(|(_, line)| is_it(line)) else {
        return Some("does not exist");
    };
    let marks: Vec<_> =
        lines.iter().take(at).rev().take_while(|line| line.starts_with("#[")).collect();
    let is_story = text.contains("stories![")
        && lines.iter().any(|line| line.contains(name) && !line.contains("fn "));
    let is_python = it.starts_with("def test_");
    let is_test = marks.iter().any(|mark| mark.contains("test"));
    if marks.iter().any(|mark| mark.contains("ignore")) {
        return Some("is ignored");
    }
    (!(is_story || is_python || is_test)).then_some("is no test")
}

#[test]
fn every_test_that_is_named_exists_and_is_run() {
    let mut faults = Vec::new();
    for (file, test) in named(&page()) {
        match std::fs::read_to_string(root().join(&file)) {
            Ok(text) => {
                faults.extend(fault(&text, &test).map(|why| format!("{file}::{test} {why}")));
            }
            Err(error) => faults.push(format!("{file}: {error}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_class_is_there_with_a_test_or_with_the_reason_why_not() {
    let page = page();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse::<u32>().ok()?, named(line).len(), line.contains("missing:")))
    });
    let rows: Vec<_> = rows.collect();
    let empty: Vec<_> = rows.iter().filter(|(_, tests, told)| *tests == 0 && !told).collect();
    assert!(empty.is_empty(), "{empty:?}");
    let found: BTreeSet<u32> = rows.iter().map(|(number, ..)| *number).collect();
    assert_eq!(found, CLASSES.into_iter().flatten().collect());
}

#[test]
fn a_test_that_is_not_run_is_seen() {
    let text = "#[test]\n#[ignore]\nfn a() {}\nfn b() {}\n#[tokio::test]\nasync fn c() {}\n";
    assert_eq!(fault(text, "a"), Some("is ignored"));
    assert_eq!(fault(text, "b"), Some("is no test"));
    assert_eq!(fault(text, "c"), None);
    assert_eq!(fault(text, "d"), Some("does not exist"));
    assert_eq!(fault("stories![\n  e,\n];\nasync fn e(story: X) {}", "e"), None);
    assert_eq!(fault("class T:\n    def test_f(self):\n", "test_f"), None);
}
