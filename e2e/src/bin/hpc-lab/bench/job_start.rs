//! How long a job takes from its acceptance to mpirun, nodes warm: from the command that submitted it,
//! as the simulator's call log dates it, to the line that the job's own script printed.

use std::path::{Path, PathBuf};

use hpc_e2e::{LabError, Result, Story};
use serde::Deserialize;

use super::Row;

/// A call with its date.
#[derive(Deserialize)]
struct Dated {
    time: jiff::Timestamp,
    action: String,
    caller: String,
}

/// The longest of the run's attempts, each counted from the last command before it.
pub async fn measure(story: &Story) -> Result<Row> {
    let calls: Vec<Dated> = story.sim().await?.get("calls/log").await?;
    let commands: Vec<i64> = calls
        .iter()
        .filter(|call| call.action == "SendCommand" && call.caller == "account")
        .map(|call| call.time.as_millisecond())
        .collect();
    let starts = starts(&story.lab().dir().join("awssim/fsx"))?;
    let waits = starts.iter().filter_map(|start| {
        let before = commands.iter().filter(|command| *command <= start).max()?;
        Some(std::time::Duration::from_millis((start - before).unsigned_abs()).as_secs_f64())
    });
    let value = waits.fold(f64::NAN, f64::max);
    Ok(Row { goal: "job accepted to mpirun started, s <= 5", value, most: 5.0 })
}

/// When mpirun started, in milliseconds since 1970, for every output below a folder.
fn starts(below: &Path) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(LabError::io("read", &folder))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.ends_with("output.log") {
                found.extend(start(&path));
            }
        }
    }
    Ok(found)
}

fn start(output: &PathBuf) -> Option<i64> {
    let text = std::fs::read(output).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find_map(|line| line.strip_prefix("hpcops: mpirun-start epoch-ms="))?;
    line.trim().parse().ok()
}
