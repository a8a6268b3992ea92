//! The script that runs an attempt: what it is given arrives whole, nothing of it is read as code, and what it prints is
//! what the parser and the judge ask for. A stand-in takes mpirun's place; the stories run the real one.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use hpc_bench::osu::{Benchmark, Fabric, Launch, RUN};
use hpc_bench::{Application, Bounds, Complete, Verdict, judge, parse};
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
    launch: Launch,
}

impl Bench {
    /// A folder with a stand-in for mpirun and for the program.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run_script");
        fs::create_dir_all(folder.path().join("mpi/bin")).unwrap();
        fs::create_dir_all(folder.path().join("osu")).unwrap();
        symlink(ours.join("mpirun.sh"), folder.path().join("mpi/bin/mpirun")).unwrap();
        symlink(ours.join("program.sh"), folder.path().join("osu/osu_latency")).unwrap();
        let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let launch = Launch {
            mpi_prefix: text("mpi"),
            program_path: text("osu"),
            benchmark: Benchmark::Latency,
            arguments: vec!["-m".to_owned(), "1:2".to_owned()],
            hosts: 1,
            fabric: Fabric::Efa,
            stand_in: None,
            shared_processors: false,
        };
        Self { folder, launch }
    }

    fn run(&self, more: &[(&str, &str)]) -> Output {
        let mut environment = self.launch.environment().unwrap();
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        environment.extend(more.collect::<BTreeMap<_, _>>());
        let script = self.folder.path().join("run.sh");
        fs::write(&script, RUN).unwrap();
        Command::new("bash")
            .arg(script)
            .envs(environment)
            .current_dir(&self.folder)
            .output()
            .unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_attempt_prints_what_the_judge_asks_for() {
    let bench = Bench::new();
    let output = bench.run(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let log = [output.stderr, output.stdout].concat();
    let expected = bench.launch.expectation(Bounds::default()).unwrap();
    let parsed = parse(&Application::Osu, &log, &expected).unwrap();
    assert_eq!(parsed.complete, Complete::Yes, "{:?}", parsed.warnings);
    assert_eq!(judge(&parsed, &expected), Verdict::NotApplicable);
    assert_eq!(parsed.evidence.mpi.as_deref(), Some("Open MPI 4.1.4"));
    let ended = parsed.evidence.ended.unwrap();
    assert!(parsed.evidence.started_ms.unwrap() <= ended.at_ms);
    assert!(ended.at_ms > 1_700_000_000_000, "milliseconds since the epoch: {}", ended.at_ms);
}

#[test]
fn arguments_arrive_as_they_are_and_are_never_code() {
    let mut bench = Bench::new();
    let strange = ["$(touch ran)", "`touch ran`", "; touch ran", "a b\nc", "*", "", "'\"\\", "ü"];
    bench.launch.arguments = strange.iter().map(|argument| (*argument).to_owned()).collect();
    let output = bench.run(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let quoted = |argument: &str| {
        let printed = Command::new("bash")
            .args(["-c", "LC_ALL=C; printf 'program argument: %q\n' \"$1\"", "bash", argument])
            .output();
        text(&printed.unwrap().stdout)
    };
    for argument in strange {
        assert!(said.contains(&quoted(argument)), "{argument:?} in {said}");
    }
    assert!(!bench.folder.path().join("ran").exists());
}

#[test]
fn the_exit_code_of_mpirun_is_that_of_the_script_and_stands_in_its_last_line() {
    let output = Bench::new().run(&[("MPIRUN_EXIT_CODE", "139")]);
    assert_eq!(output.status.code(), Some(139));
    assert!(text(&output.stdout).trim_end().ends_with("code=139"));
}

#[test]
fn what_cannot_be_run_is_refused_with_a_sentence() {
    let bench = Bench::new();
    let refused = |more: &[(&str, &str)], sentence: &str| {
        let output = bench.run(more);
        assert_eq!(output.status.code(), Some(64), "{more:?}");
        assert!(text(&output.stderr).contains(sentence), "{more:?}: {}", text(&output.stderr));
    };
    refused(&[("HPCOPS_BENCHMARK", "../../bin/sh")], "is not latency or bw");
    refused(&[("HPCOPS_MPI_PREFIX", "/nowhere")], "no mpirun at /nowhere/bin/mpirun");
    refused(&[("HPCOPS_PROGRAM_PATH", "/nowhere")], "programPath must hold one of them");
    refused(
        &[("HPCOPS_ARGUMENTS_JSON", "[1]")],
        "HPCOPS_ARGUMENTS_JSON is not a JSON array of strings",
    );
    refused(&[("HPCOPS_MPIRUN_JSON", "{")], "HPCOPS_MPIRUN_JSON is not a JSON array of strings");
    fs::write(bench.folder.path().join("osu/osu_bw.py"), "").unwrap();
    refused(&[("HPCOPS_BENCHMARK", "bw")], "takes no arguments");
}

#[test]
fn a_program_that_is_not_executable_is_not_run() {
    let bench = Bench::new();
    let program = bench.folder.path().join("osu/osu_bw");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
    let output = bench.run(&[("HPCOPS_BENCHMARK", "bw")]);
    assert_eq!(output.status.code(), Some(64));
}
