//! What a failed story leaves behind for a person: who wrote what, what AWS held, what was said.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{LabError, Result};
use crate::places;
use crate::story::Story;

/// Saves everything about a story and gives the folder. What cannot be had is named in its place.
pub async fn save(story: &Story) -> Result<PathBuf> {
    let seed = story.lab().options().seed;
    let dir = places::root().join(".lab/failed").join(format!(
        "{}.{seed}.{}",
        story.name().replace("::", "."),
        story.namespace()
    ));
    drop(std::fs::remove_dir_all(&dir));
    std::fs::create_dir_all(&dir).map_err(LabError::io("create", &dir))?;
    write(&dir, "seed", Ok(format!("{seed}\n")))?;
    let audit = story.lab().control_plane().audit().lines_about(story.namespace());
    write(&dir, "audit.jsonl", audit)?;
    save_objects(story, &dir).await?;
    save_account(story, &dir).await?;
    copy_tree(&story.lab().dir().join("pods"), &dir.join("pods"), story.namespace())?;
    copy_tree(&story.lab().dir().join("awssim"), &dir.join("awssim"), "")?;
    Ok(dir)
}

async fn save_objects(story: &Story, dir: &Path) -> Result<()> {
    let kinds = "hpcclusters,benchmarkruns,configmaps,leases,deployments,pods,events";
    let objects = story.kubectl(&["get", kinds, "-o", "yaml"], "").await;
    write(dir, "objects.yaml", objects)
}

async fn save_account(story: &Story, dir: &Path) -> Result<()> {
    let Some(sim) = story.lab().started_awssim() else {
        return Ok(());
    };
    let sim = sim.account(story.access_key());
    for path in ["ledger", "calls", "calls/log", "held", "warnings", "config"] {
        let answer = sim.get(path).await.map(|value: Value| format!("{value:#}\n"));
        write(dir, &format!("sim-{}.json", path.replace('/', "-")), answer)?;
    }
    Ok(())
}

fn write(dir: &Path, name: &str, content: Result<String>) -> Result<()> {
    let path = dir.join(name);
    let text = content.unwrap_or_else(|error| format!("not to be had: {}\n", error.chain()));
    std::fs::write(&path, text).map_err(LabError::io("write", path))
}

/// Copies the logs below `from` whose path holds `word`: pods are named by namespace; bodies write
/// console and scheduler logs.
fn copy_tree(from: &Path, to: &Path, word: &str) -> Result<()> {
    let Ok(entries) = std::fs::read_dir(from) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            copy_tree(&path, &target, word)?;
        } else if kind.is_file() && is_log(&path) && path.to_string_lossy().contains(word) {
            std::fs::create_dir_all(to).map_err(LabError::io("create", to))?;
            std::fs::copy(&path, &target).map_err(LabError::io("copy", path))?;
        }
    }
    Ok(())
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}
