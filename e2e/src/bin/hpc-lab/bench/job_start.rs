//! How long a job takes from its acceptance to mpirun, nodes warm: from the command that submitted it,
//! as the simulator's call log dates it, to the line that the job's own script printed.

use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// The run's first job: the later ones are accepted together with it, and wait for their turn.
pub async fn measure(story: &Story) -> Result<Row> {
    let calls: Vec<Dated> = story.sim().await?.get("calls/log").await?;
    let first = starts(&story.lab().dir().join("awssim/fsx"))?.into_iter().min();
    let first = first.ok_or_else(|| LabError::missing("a start", "no output names one"))?;
    let commands = calls
        .iter()
        .filter(|call| call.action == "SendCommand" && call.caller == "account")
        .map(|call| call.time.as_millisecond());
    let accepted = commands.filter(|command| *command <= first).max().unwrap_or(0);
    let value = Duration::from_millis((first - accepted).unsigned_abs()).as_secs_f64();
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
