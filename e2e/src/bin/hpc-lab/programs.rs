//! The benchmark programs of the demo on every simulated file system, as long as the lab is up: a
//! quickstart that was deleted and applied again has a new, empty one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hpc_e2e::{LabError, Result, osu};
use tokio::time::{MissedTickBehavior, interval};

use crate::site::Site;

/// Between two looks for new file systems.
const LOOK: Duration = Duration::from_secs(1);
/// File of the site that names the folder of the programs, once a demo has asked for them.
const PROMISE: &str = "programs";

/// Fetches the programs and lets the lab put them on every file system from now on.
pub async fn promise(site: &Site) -> Result<()> {
    let programs = osu::programs().await?;
    let path = site.at(PROMISE);
    let text = programs.display().to_string();
    std::fs::write(&path, text).map_err(LabError::io("write", &path))
}

/// Keeps the promise until it is dropped.
pub async fn keep(site: Site) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Ok(programs) = std::fs::read_to_string(site.at(PROMISE)) else { continue };
        let Ok(path) = osu::program_path() else { continue };
        // What cannot be placed now is placed at the next look; a missing program is told by its run.
        let _later = supply(Path::new(&programs), &site.run_dir().join("awssim/fsx"), &path.below);
    }
}

/// Copies the programs to where they belong on each file system that lacks them. The data of a file
/// system lies in a folder of its account, and exists once somebody has mounted it.
fn supply(programs: &Path, file_systems: &Path, below: &Path) -> Result<()> {
    for account in folders(file_systems) {
        for data in folders(&account) {
            let target = data.join(below);
            if !target.is_dir() {
                osu::place(programs, &target)?;
            }
        }
    }
    Ok(())
}

fn folders(within: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_new_file_system_gets_the_programs_and_no_other_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let (programs, fsx) = (dir.path().join("programs"), dir.path().join("fsx"));
        std::fs::create_dir_all(&programs).unwrap();
        std::fs::write(programs.join("osu_bw.py"), "v1").unwrap();
        let file = |id: &str| fsx.join("123456789012").join(id).join("osu/osu_bw.py");
        for id in ["fs-1", "fs-2"] {
            std::fs::create_dir_all(fsx.join("123456789012").join(id)).unwrap();
            supply(&programs, &fsx, Path::new("osu")).unwrap();
            assert_eq!(std::fs::read_to_string(file(id)).unwrap(), "v1");
            std::fs::write(file(id), "mine").unwrap();
        }
        supply(&programs, &fsx, Path::new("osu")).unwrap();
        assert_eq!(std::fs::read_to_string(file("fs-1")).unwrap(), "mine");
        supply(&programs, &dir.path().join("none"), Path::new("osu")).unwrap();
    }
}
