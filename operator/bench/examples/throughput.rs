//! How fast and in how much memory long logs are read: 100 MB of fio and of Fluent, fed as from a pipe.
//!
//! Prints one JSON object per line, {goal, value, pass}, and exits with 1 if one fails. To be run with `--release`.

use std::io::Write;
use std::process::ExitCode;

use hpc_bench::{Application, Expectation, Stream};

const MEGABYTE: usize = 1_000_000;
const TOTAL: usize = 100 * MEGABYTE;
/// What a pipe gives at once.
const PIECE: usize = 64 * 1024;
const GOAL_SPEED: f64 = 200.0;
const GOAL_MEMORY: f64 = 50.0;

const FIO: &[u8] = include_bytes!("../tests/samples/fio_3.36_clean.json");
const TIMER: &[u8] = include_bytes!("../tests/samples/fluent_parallel_timer.trn");

fn main() -> ExitCode {
    let residuals = "1.0000e+00  2.1000e-03  9.9000e-05";
    let line = |iteration| format!("{iteration:6}  {residuals}  0:00:10 {:6}\n", 2000 - iteration);
    let transcript: Vec<String> = (1..=2000).map(line).collect();
    let transcript = transcript.concat();
    let transcript = [transcript.as_bytes(), TIMER].concat();
    let cases =
        [("fio", Application::Fio, FIO), ("fluent", Application::Fluent, transcript.as_slice())];
    let mut pass = true;
    for (name, application, text) in cases {
        let seconds = read(&application, text);
        let speed = f64::from(u32::try_from(TOTAL).unwrap_or(u32::MAX)) / 1e6 / seconds;
        pass &=
            row(&format!("parse 100 MB of {name} at MB/s"), GOAL_SPEED, speed, speed >= GOAL_SPEED);
    }
    let peak = peak_megabytes().unwrap_or(f64::INFINITY);
    pass &= row("parse 100 MB in MB of memory", GOAL_MEMORY, peak, peak < GOAL_MEMORY);
    ExitCode::from(u8::from(!pass))
}

/// Reads the text over and over, cut where a pipe would cut it; the seconds it took.
fn read(application: &Application, text: &[u8]) -> f64 {
    let mut buffer = Vec::with_capacity(PIECE + text.len());
    while buffer.len() < PIECE {
        buffer.extend_from_slice(text);
    }
    let started = processor_seconds();
    let mut stream = Stream::new(application, &Expectation::default());
    let mut fed = 0;
    while fed < TOTAL {
        buffer.chunks(PIECE).for_each(|piece| stream.feed(piece));
        fed += buffer.len();
    }
    // Refused or not, all of it was read.
    let _ = stream.finish();
    (processor_seconds() - started) * f64::from(u32::try_from(TOTAL).unwrap_or(u32::MAX))
        / f64::from(u32::try_from(fed).unwrap_or(u32::MAX))
}

/// Time on a processor: what others do on the machine is no property of the reader.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map_or(f64::NAN, |nanos| nanos / 1e9)
}

/// The most memory this process ever held.
fn peak_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

fn row(name: &str, goal: f64, value: f64, pass: bool) -> bool {
    let row = serde_json::json!({"what": name, "goal": goal, "value": value.round(), "pass": pass});
    // Nothing can be said where the terminal is gone.
    let _ = writeln!(std::io::stdout(), "{row}");
    pass
}
