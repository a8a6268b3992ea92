//! Rules of style that no compiler knows, over every file of the repository.

#![allow(clippy::unwrap_used, reason = "all of it is tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Production lines a Rust file may have.
const LONGEST_FILE: usize = 400;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every file that is or will be committed, with its text; binary ones are left out.
fn files() -> Vec<(PathBuf, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    let names = String::from_utf8(listed.stdout).unwrap();
    let names = names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    names
        .filter_map(|name| Some((name.clone(), std::fs::read_to_string(root().join(name)).ok()?)))
        .collect()
}

fn rust_files() -> Vec<(PathBuf, String)> {
    files().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "rs")).collect()
}

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default();
    name == "tests" || path.components().any(|part| part.as_os_str() == "tests")
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn the_charts_definitions_are_the_generated_ones() {
    let folder = |name: &str| {
        let mut all: Vec<_> = std::fs::read_dir(root().join(name))
            .unwrap()
            .flatten()
            .map(|entry| (entry.file_name(), std::fs::read_to_string(entry.path()).unwrap()))
            .collect();
        all.sort();
        all
    };
    assert!(
        folder("crds/yaml") == folder("charts/hpc-operator/files/crds"),
        "the chart's copies of crds/yaml are out of date: run make generate"
    );
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    let words = [concat!("/wo", "rk/"), concat!("/ro", "ot/.c"), concat!("/ro", "ot/.r")];
    let mut found = Vec::new();
    for (path, text) in files() {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| starts_a_path(line, word)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    none("paths of a machine", &found);
}

/// What follows a name is a part of another path.
fn starts_a_path(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-}/*$\"".contains(c))
    })
}

#[test]
fn every_module_says_why_it_exists() {
    let silent = rust_files().into_iter().filter(|(_, text)| {
        let first = text.lines().find(|line| !line.trim().is_empty());
        !first.is_some_and(|line| line.starts_with("//!"))
    });
    let silent: Vec<String> = silent.map(|(path, _)| path.display().to_string()).collect();
    none("modules without a first line //!", &silent);
}

#[test]
fn no_module_has_a_name_that_attracts_everything() {
    let names = ["util", "utils", "helper", "helpers", "common", "misc", "manager"];
    let found = rust_files().into_iter().filter(|(path, _)| {
        let parts = path.iter().map(|part| part.to_string_lossy().replace(".rs", ""));
        parts.into_iter().any(|part| names.contains(&part.as_str()))
    });
    let found: Vec<String> = found.map(|(path, _)| path.display().to_string()).collect();
    none("modules with a name without meaning", &found);
}

#[test]
fn no_file_is_longer_than_its_reader() {
    let long =
        rust_files().into_iter().filter(|(path, _)| !is_test(path)).filter_map(|(path, text)| {
            let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
            (lines > LONGEST_FILE).then(|| format!("{}: {lines} lines", path.display()))
        });
    none("files over 400 lines", &long.collect::<Vec<_>>());
}

#[test]
fn no_script_or_document_hides_in_a_rust_file() {
    let mut found = Vec::new();
    for (path, text) in rust_files() {
        for (line, literal) in long_literals(&text) {
            if let Some(mark) = other_language(&literal) {
                found.push(format!("{}:{line}: {mark}", path.display()));
            }
        }
    }
    none("another language in a string of three lines and more", &found);
}

/// String literals with at least two line breaks, and the line each begins on.
fn long_literals(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, end_mark)) = next_literal(rest) {
        let body = &rest[at..];
        let Some(end) = body.find(&end_mark) else { break };
        let line = text[..text.len() - body.len()].lines().count();
        if body[..end].matches('\n').count() >= 2 {
            found.push((line, body[..end].to_owned()));
        }
        rest = &body[end + end_mark.len()..];
    }
    found
}

/// The next raw string, which is how text of several lines is written.
fn next_literal(text: &str) -> Option<(usize, String)> {
    let at = text.find("r#")?;
    let hashes = text[at + 1..].chars().take_while(|c| *c == '#').count();
    let open = at + 1 + hashes;
    if text[open..].starts_with('"') {
        return Some((open + 1, format!("\"{}", "#".repeat(hashes))));
    }
    let (skipped, mark) = next_literal(&text[open..])?;
    Some((open + skipped, mark))
}

fn other_language(literal: &str) -> Option<&'static str> {
    let marks = [
        ("#!/", "a script"),
        ("set -e", "shell"),
        ("done;", "shell"),
        ("apiVersion:", "YAML"),
        ("<html", "HTML"),
        ("<svg", "SVG"),
        ("def ", "Python"),
        ("import ", "Python"),
    ];
    let begins = |mark: &str| literal.lines().any(|line| line.trim_start().starts_with(mark));
    marks.iter().find(|(mark, _)| begins(mark)).map(|(_, language)| *language)
}

#[test]
fn the_rules_see_what_they_look_for() {
    let hidden = format!("let s = r#{}\"#!/bin/sh\nset -e\nls\n\"{}#;", "", "");
    assert_eq!(long_literals(&hidden).len(), 1);
    assert_eq!(other_language("\nset -eu\nls\n"), Some("shell"));
    assert_eq!(other_language("size latency\n1 2\n2 3\n"), None);
    assert!(starts_a_path("cd /srv/x", "/srv/"));
    assert!(!starts_a_path("disk/srv/x", "/srv/"));
}
