//! The benchmark programs of demo and stories: mpi4py's own OSU-format programs, from its source
//! distribution on `PyPI`, run with Debian's python3-mpi4py.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::error::{LabError, Result};
use crate::places;
use crate::process::run;

/// The folder with `osu_latency.py` and `osu_bw.py`, fetched once per machine.
pub async fn programs() -> Result<PathBuf> {
    let script = places::root().join("e2e/make/osu.sh");
    let printed = run(&mut Command::new(script)).await?;
    Ok(PathBuf::from(printed.trim()))
}

/// Copies the programs into a folder of shared storage, as a user would.
pub fn place(programs: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(LabError::io("create", folder))?;
    open_to_all(folder)?;
    let entries = std::fs::read_dir(programs).map_err(LabError::io("read", programs))?;
    for entry in entries.flatten() {
        let target = folder.join(entry.file_name());
        std::fs::copy(entry.path(), &target).map_err(LabError::io("copy to", &target))?;
        open_to_all(&target)?;
    }
    Ok(())
}

fn open_to_all(path: &Path) -> Result<()> {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).map_err(LabError::io("open to all", path))
}

/// Where the quickstart expects its programs.
pub struct ProgramPath {
    /// As written in the example.
    pub whole: String,
    /// Relative to the file system's root.
    pub below: PathBuf,
}

/// Reads it from the example.
pub fn program_path() -> Result<ProgramPath> {
    let text = std::fs::read_to_string(example()).map_err(LabError::io("read", example()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(LabError::malformed("examples/quickstart.yaml"))?;
    let find = |pointer: &str| {
        objects.iter().find_map(|object| object.pointer(pointer)?.as_str()).unwrap_or_default()
    };
    let (whole, mount) =
        (find("/spec/application/osu/programPath"), find("/spec/aws/storage/0/mountPath"));
    let below = Path::new(whole).strip_prefix(mount).map_err(LabError::malformed(format!(
        "programPath {whole} of the quickstart, which must lie below {mount}"
    )))?;
    Ok(ProgramPath { whole: whole.to_owned(), below: below.to_owned() })
}

/// The quickstart's manifest.
pub fn example() -> PathBuf {
    places::root().join("examples/quickstart.yaml")
}
