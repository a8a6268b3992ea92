//! EBS volumes as loop devices over the simulator's sparse files.
//!
//! A device exists while a body has the volume attached or mounts its file
//! system over NFS. The simulator holds it open and has already asked the kernel
//! to let it go at the last close, so a killed simulator leaves none either.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use tokio::process::Command;

use super::body::Body;
use super::locked;
use crate::machine::AttachedVolume;

/// Link names of volumes, as udev makes them on an instance.
const BY_ID: &str = "dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_";

/// The volumes in use.
#[derive(Default)]
pub struct Disks {
    open: Mutex<BTreeMap<String, Disk>>,
    /// One change at a time: two loop devices over one file would tear it apart.
    change: tokio::sync::Mutex<()>,
}

struct Disk {
    /// For example `/dev/loop3`.
    device: String,
    minor: u64,
    _held: File,
    users: BTreeSet<String>,
}

/// Where a path of a body really is.
pub struct Mounted {
    /// For example `/dev/loop3`.
    pub device: String,
    /// File system type.
    pub kind: String,
    /// The path below the mount.
    pub rest: PathBuf,
}

impl Disks {
    /// Makes a body's devices equal to its attached volumes.
    pub async fn reconcile(&self, body: &Body, volumes: &[AttachedVolume]) {
        let wanted: Vec<&AttachedVolume> =
            volumes.iter().filter(|volume| !volume.is_root).collect();
        let present = present(&body.root());
        for volume in &wanted {
            if !present.contains(&serial(&volume.volume_id)) {
                self.try_attach(body, volume).await;
            }
        }
        for gone in present
            .iter()
            .filter(|name| !wanted.iter().any(|volume| serial(&volume.volume_id) == **name))
        {
            remove_nodes(&body.root(), gone);
        }
    }

    async fn try_attach(&self, body: &Body, volume: &AttachedVolume) {
        let _guard = self.change.lock().await;
        if let Err(error) = self.attach(body, volume).await {
            tracing::warn!(volume = volume.volume_id, %error, "could not attach a volume");
        }
    }

    async fn attach(&self, body: &Body, volume: &AttachedVolume) -> io::Result<()> {
        if !locked(&self.open).contains_key(&volume.volume_id) {
            let disk = open_disk(volume).await?;
            locked(&self.open).insert(volume.volume_id.clone(), disk);
        }
        let minor = locked(&self.open).get_mut(&volume.volume_id).map(|disk| {
            disk.users.insert(body.id().to_owned());
            disk.minor
        });
        add_nodes(&body.root(), &serial(&volume.volume_id), minor.unwrap_or_default())
    }

    /// Notes that another body uses a device, through NFS.
    pub fn share(&self, device: &str, instance_id: &str) -> Result<(), String> {
        let mut open = locked(&self.open);
        let disk = open.values_mut().find(|disk| disk.device == device);
        disk.ok_or("the exported volume is detached")?.users.insert(instance_id.to_owned());
        Ok(())
    }

    /// Forgets a body; devices that nobody else uses go with their last mount.
    pub fn release(&self, instance_id: &str) {
        let mut open = locked(&self.open);
        for disk in open.values_mut() {
            disk.users.remove(instance_id);
        }
        open.retain(|_, disk| !disk.users.is_empty());
    }
}

/// A volume's serial number as NVM Express shows it: its id without the dash.
fn serial(volume_id: &str) -> String {
    volume_id.replacen('-', "", 1)
}

fn present(root: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(root.join("dev/disk/by-id")) else {
        return BTreeSet::new();
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let prefix = BY_ID.rsplit('/').next().unwrap_or_default();
    names.filter_map(|name| name.strip_prefix(prefix).map(str::to_owned)).collect()
}

fn add_nodes(root: &Path, serial: &str, minor: u64) -> io::Result<()> {
    let free = (1..=26)
        .map(|number| format!("nvme{number}n1"))
        .find(|name| !root.join("dev").join(name).exists());
    let name = free.ok_or_else(|| io::Error::other("26 volumes are attached"))?;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    mknod(&root.join("dev").join(&name), SFlag::S_IFBLK, mode, makedev(7, minor))?;
    symlink(format!("../../{name}"), root.join(format!("{BY_ID}{serial}")))
}

fn remove_nodes(root: &Path, serial: &str) {
    let link = root.join(format!("{BY_ID}{serial}"));
    if let Ok(target) = fs::read_link(&link) {
        let name = target.file_name().map(PathBuf::from).unwrap_or_default();
        // Whatever is gone already is as it should be.
        let _ = fs::remove_file(root.join("dev").join(name));
        let _ = fs::remove_file(link);
    }
}

/// The loop device over a volume's file: the one that is still there, or a new one.
async fn open_disk(volume: &AttachedVolume) -> io::Result<Disk> {
    let file = volume.backing_file.as_os_str();
    let mut device = losetup(&[
        "--noheadings".as_ref(),
        "--output".as_ref(),
        "NAME".as_ref(),
        "--associated".as_ref(),
        file,
    ])
    .await?;
    if device.is_empty() {
        device = losetup(&["--find".as_ref(), "--show".as_ref(), file]).await?;
    }
    let held = File::open(&device)?;
    let metadata = held.metadata()?;
    if !metadata.file_type().is_block_device() {
        return Err(io::Error::other(format!("{device} is no block device")));
    }
    // While it is held open this only marks it to go at the last close.
    losetup(&["--detach".as_ref(), device.as_ref()]).await?;
    Ok(Disk { minor: metadata.rdev() & 0xff, device, _held: held, users: BTreeSet::new() })
}

async fn losetup(args: &[&std::ffi::OsStr]) -> io::Result<String> {
    let output = Command::new("losetup").args(args).output().await?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        return Ok(text.lines().next().unwrap_or_default().trim().to_owned());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// The loop-mounted file system of a body that holds `path`.
pub fn mount_below(body: &Body, path: &Path) -> Option<Mounted> {
    let table = fs::read_to_string(format!("/proc/{}/mountinfo", body.pid())).ok()?;
    let lines = table.lines().filter_map(|line| mount_of(line, path));
    lines.min_by_key(|mounted| mounted.rest.components().count())
}

/// Reads one line of mountinfo: `36 35 7:3 / /point rw - ext4 /dev/x rw`.
fn mount_of(line: &str, path: &Path) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let mut fields = left.split(' ').skip(2);
    let (number, root, point) = (fields.next()?, fields.next()?, fields.next()?);
    let minor = number.strip_prefix("7:")?;
    let rest = path.strip_prefix(point).ok()?;
    let rest = Path::new(root.trim_start_matches('/')).join(rest);
    Some(Mounted {
        device: format!("/dev/loop{minor}"),
        kind: right.split(' ').next()?.to_owned(),
        rest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_path_is_found_on_its_volume_and_nowhere_else() {
        let line = "36 35 7:3 / /hpcops/state rw,noatime shared:1 - ext4 /dev/nvme1n1 rw";
        let found = mount_of(line, Path::new("/hpcops/state/home")).unwrap();
        assert_eq!((found.device.as_str(), found.kind.as_str()), ("/dev/loop3", "ext4"));
        assert_eq!(found.rest, Path::new("home"));
        assert!(mount_of(line, Path::new("/hpcops/other")).is_none());
        let overlay = "36 35 0:99 / / rw - overlay overlay rw";
        assert!(mount_of(overlay, Path::new("/hpcops/state")).is_none());
    }
}
