//! `kubectl hpc parse` as a user meets it: exit codes, one JSON object, text of 80 columns, pipes of any length.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/tests").join(name)
}

fn plugin(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-hpc"));
    command.arg("parse").args(arguments).current_dir(folder("logs"));
    command
}

fn run(arguments: &[&str]) -> Output {
    plugin(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Runs with this on standard input, cut as a pipe cuts it.
fn piped(mut command: Command, pieces: impl Iterator<Item = Vec<u8>> + Send + 'static) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        for piece in pieces {
            // A reader that has ended says so by its exit code.
            if input.write_all(&piece).is_err() {
                break;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_exit_code_says_how_the_reading_ended() {
    for (arguments, code) in [
        (&["osu/ok_latency_v5.8.txt"][..], 0),
        (&["osu/truncated_latency_v5.8.txt"][..], 2),
        (&["osu/failed_abort_v5.8.txt"][..], 3),
        (&["osu/failed_validation_v7.5.2.txt"][..], 3),
        (&["--application", "osu", "fio/ok_3.36.json"][..], 3),
        (&["--provider", "efa", "osu/ok_own_script_latency_v5.8.txt"][..], 3),
        (&["--hosts", "2", "--ranks-per-host", "1", "osu/ok_own_script_latency_v5.8.txt"][..], 0),
        (&["--table", "osu_latency=0:65536", "osu/ok_latency_v5.8.txt"][..], 0),
        (&["--table", "osu_latency=0:4194304", "osu/ok_latency_v5.8.txt"][..], 2),
        (&["--table", "osu_bw", "osu/ok_latency_v5.8.txt"][..], 2),
        (&["--declaration", "command/text.declaration.json", "command/ok_text.log"][..], 0),
        (&["no-such-file"][..], 1),
        (&["--application", "word", "osu/ok_latency_v5.8.txt"][..], 1),
        (&["--declaration", "osu/ok_latency_v5.8.txt", "command/ok_text.log"][..], 1),
        (&["--bogus"][..], 64),
        (&["--help"][..], 0),
    ] {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {said}");
        assert_eq!(said.is_empty(), !matches!(code, 1 | 64), "{arguments:?} {said}");
    }
}

#[test]
fn json_is_one_object_with_status_completeness_numbers_and_reasons() {
    let object = |name: &str| -> Value {
        serde_json::from_slice(&run(&["-o", "json", name]).stdout).unwrap()
    };
    let ok = object("fio/ok_3.36.json");
    assert_eq!(
        (&ok["application"], &ok["status"], &ok["complete"]),
        (&"fio".into(), &"ok".into(), &"Yes".into())
    );
    let bandwidth = ok["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "read_bw_kib")
        .unwrap();
    assert_eq!(
        (&bandwidth["value"], &bandwidth["unit"], &bandwidth["better"]),
        (&512_000.0.into(), &"KiB/s".into(), &"higher".into())
    );
    let partial = object("osu/truncated_latency_v5.8.txt");
    assert_eq!(
        (&partial["status"], &partial["tables"][0]["damaged"][0]["size"]),
        (&"partial".into(), &65_536.into())
    );
    let failed = object("fluent/failed_diverged.trn");
    assert_eq!((&failed["status"], &failed["reasons"][0]["line"]), (&"failed".into(), &5.into()));
    assert_eq!((&failed["iterations"], &failed["requested_iterations"]), (&3.into(), &25.into()));
    let invalid = object("osu/failed_validation_v7.5.2.txt");
    assert_eq!(
        (&invalid["status"], &invalid["tables"][0]["validation"]),
        (&"invalid".into(), &"fail".into())
    );
}

#[test]
fn text_names_the_line_of_every_number_within_80_columns() {
    let said = text(&run(&["osu/ok_own_script_latency_v5.8.txt"]).stdout);
    assert!(said.starts_with("osu: ok, complete: Yes\n"), "{said}");
    let lines: Vec<Vec<&str>> =
        said.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(lines.contains(&vec!["6", "0", "1.67"]), "{said}");
    for name in [
        "osu/ok_own_script_latency_v5.8.txt",
        "fio/ok_3.36.json",
        "ior/ok_3.3.0.txt",
        "imb/ok_nbc_2021.10.txt",
        "nastran/ok_timer.log",
    ] {
        let said = text(&run(&[name]).stdout);
        let long: Vec<_> = said
            .lines()
            .filter(|line| line.chars().count() > 80 && !line.starts_with("warning"))
            .collect();
        assert!(long.is_empty(), "{name}: {long:#?}");
    }
}

#[test]
fn a_log_without_a_telling_line_is_known_by_its_name() {
    let named = text(&run(&["../samples/fluent_no_metrics_license_wait.out"]).stdout);
    assert!(named.starts_with("fluent: failed\nline 1: licence:"), "{named}");
    let unknown = text(&piped(plugin(&["-"]), std::iter::once(b"waiting\n".to_vec())).stdout);
    assert!(unknown.starts_with("unknown application: failed"), "{unknown}");
    assert!(unknown.contains("--application NAME"), "{unknown}");
}

#[test]
fn a_pipe_of_any_length_is_read_in_little_memory() {
    let document = std::fs::read(folder("samples/fio_3.36_clean.json")).unwrap();
    // Address space, not only memory: a reader that kept 30 MB of input would not get it.
    let mut limited = Command::new("bash");
    let line = "ulimit -v 65536; exec \"$@\"";
    limited.args(["-c", line, "bash", env!("CARGO_BIN_EXE_kubectl-hpc"), "parse", "-o", "json"]);
    let pieces = std::iter::repeat_n(document, 12_000);
    let output = piped(limited, pieces);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(object["status"], "ok", "{}", text(&output.stderr));
    assert!(
        object["warnings"][0]["message"].as_str().unwrap().contains("12000 states"),
        "{object:#}"
    );
}

#[test]
fn a_reader_that_has_seen_enough_may_close_the_pipe() {
    let program = env!("CARGO_BIN_EXE_kubectl-hpc");
    let line = "\"$1\" parse ior/ok_3.3.0.txt | head -n 1; echo ${PIPESTATUS[0]}";
    let output = Command::new("bash")
        .args(["-c", line, "bash", program])
        .current_dir(folder("logs"))
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "ior: ok, complete: Yes\n0\n");
}
