//! Where things are: the checkout, the cache shared by checkouts, the programs that were built.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::error::{LabError, Result};
use crate::process::run;

/// The checkout this lab was built from.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// `${XDG_CACHE_HOME:-~/.cache}/hpcops`.
pub fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let base = base.ok_or_else(|| LabError::missing("HOME", "set it, or XDG_CACHE_HOME"))?;
    Ok(base.join("hpcops"))
}

/// The folder with kube-apiserver, kube-controller-manager, etcd and helm; builds them if need be.
pub async fn control_plane_programs() -> Result<PathBuf> {
    printed_by("e2e/controlplane/build.sh").await
}

/// A folder with a kubectl that fits the apiserver.
pub async fn kubectl() -> Result<PathBuf> {
    printed_by("e2e/controlplane/kubectl.sh").await
}

async fn printed_by(script: &str) -> Result<PathBuf> {
    let printed = run(&mut Command::new(root().join(script))).await?;
    Ok(PathBuf::from(printed.trim()))
}

/// Path of one of our own programs, built beforehand (`make build`).
pub fn built(name: &str) -> Result<PathBuf> {
    let found = built_dirs().into_iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| LabError::missing(name, "build it first: make build"))
}

/// Beside this program (for `hpc-lab`), else where cargo puts the checkout's programs (for the
/// stories, which cargo keeps in the build directory).
fn built_dirs() -> Vec<PathBuf> {
    let told = std::env::var_os("HPCOPS_BIN_DIR").map(PathBuf::from);
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_owned()));
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root().join("target"));
    told.into_iter().chain(beside).chain([target.join("debug")]).collect()
}
