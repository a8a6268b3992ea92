//! Image profiles: what a machine image holds that this machine does not, and
//! the other way round. A profile becomes one overlay layer over the host's `/`.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, SFlag, mknod};
use serde::Deserialize;

use super::failure::{failed, io_failed};
use super::rack::place;
use crate::machine::MachineError;

/// What of the host's `/` an image shares; all the rest is hidden.
const SHARED: [&str; 9] = ["bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr", "var"];

/// Address at which the rack serves the simulated services, see `rack.sh`.
pub const ENDPOINT: &str = "http://169.254.170.1";

const PROFILES: [&str; 1] = [include_str!("../../images/AmazonLinux2023/profile.json")];

const FILES: [(&str, &str); 14] = [
    ("systemctl", include_str!("../../images/standins/systemctl")),
    ("mount.lustre", include_str!("../../images/standins/mount.lustre")),
    ("mount.nfs4", include_str!("../../images/standins/mount.nfs4")),
    ("exportfs", include_str!("../../images/standins/exportfs")),
    ("rpc.nfsd", include_str!("../../images/standins/rpc.nfsd")),
    ("amazon-ssm-agent", include_str!("../../images/standins/amazon-ssm-agent")),
    ("shutdown", include_str!("../../images/standins/shutdown")),
    ("host.py", include_str!("../../images/standins/host.py")),
    ("init.py", include_str!("../../images/init.py")),
    ("run-command.sh", include_str!("../../images/run-command.sh")),
    (
        "amazon-ssm-agent.service",
        include_str!("../../images/AmazonLinux2023/amazon-ssm-agent.service"),
    ),
    ("sshd.service", include_str!("../../images/AmazonLinux2023/sshd.service")),
    ("cgroup.conf", include_str!("../../images/AmazonLinux2023/cgroup.conf")),
    ("nfs-server.service", include_str!("../../images/AmazonLinux2023/nfs-server.service")),
];

/// One image family as data.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Profile {
    /// Name of the family.
    pub name: String,
    /// Parts of image names that mean this family.
    image_names: Vec<String>,
    /// Programs that the image has in another place than the host.
    moved: Vec<Moved>,
    /// Paths of the host that the image does not have.
    hidden: Vec<String>,
    links: Vec<Link>,
    users: Vec<User>,
    stand_ins: Vec<StandIn>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Moved {
    from: String,
    to: String,
    names: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    at: PathBuf,
    to: PathBuf,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    name: String,
    uid: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct StandIn {
    file: String,
    at: String,
}

impl Profile {
    /// The profile for an image's name.
    pub fn of_image(image_name: &str) -> Result<Self, MachineError> {
        for text in PROFILES {
            let profile: Self = serde_json::from_str(text)
                .map_err(|error| failed(image_name, "read the image profile", error.to_string()))?;
            if profile.image_names.iter().any(|part| image_name.contains(part)) {
                return Ok(profile);
            }
        }
        Err(failed(image_name, "choose an image profile", "no profile knows an image of this name"))
    }

    /// Builds the layer in an empty folder that takes device nodes.
    pub fn build(&self, layer: &Path) -> Result<(), MachineError> {
        for moved in &self.moved {
            self.build_moved(layer, moved)?;
        }
        for stand_in in &self.stand_ins {
            let (_, text) = FILES
                .iter()
                .find(|(name, _)| *name == stand_in.file)
                .ok_or_else(|| failed(&self.name, "find a stand-in", &*stand_in.file))?;
            place(layer, &stand_in.at, text.as_bytes(), 0o755)
                .map_err(io_failed(&self.name, "write a stand-in"))?;
        }
        self.build_etc(layer).map_err(io_failed(&self.name, "write /etc"))?;
        self.hide_host(layer).map_err(io_failed(&self.name, "hide the host's files"))
    }

    fn hide_host(&self, layer: &Path) -> io::Result<()> {
        for entry in fs::read_dir("/")? {
            let name = entry?.file_name();
            if !SHARED.iter().any(|shared| name == *shared) {
                hide(layer, Path::new(&name))?;
            }
        }
        self.hidden.iter().try_for_each(|path| hide(layer, Path::new(path.trim_start_matches('/'))))
    }

    /// Puts the host's programs where the image has them, and only there.
    fn build_moved(&self, layer: &Path, moved: &Moved) -> Result<(), MachineError> {
        for name in &moved.names {
            let from = Path::new(&moved.from).join(name);
            let program = fs::read(&from).map_err(|error| {
                let message = format!("this machine lacks {}: {error}", from.display());
                failed(&self.name, "build the image", message)
            })?;
            place(layer, &format!("{}/{name}", moved.to), &program, 0o755)
                .and_then(|()| {
                    whiteout(&layer.join(format!("{}/{name}", moved.from).trim_start_matches('/')))
                })
                .map_err(io_failed(&self.name, "move a program"))?;
        }
        Ok(())
    }

    fn build_etc(&self, layer: &Path) -> io::Result<()> {
        let mut passwd = system_lines("/etc/passwd")?;
        let mut group = system_lines("/etc/group")?;
        for User { name, uid } in &self.users {
            passwd.push(format!("{name}:x:{uid}:{uid}::/home/{name}:/bin/bash"));
            group.push(format!("{name}:x:{uid}:"));
        }
        place(layer, "etc/passwd", text_of(&passwd).as_bytes(), 0o644)?;
        place(layer, "etc/group", text_of(&group).as_bytes(), 0o644)?;
        place(layer, "etc/shadow", b"root:*:19000:0:99999:7:::\n", 0o600)?;
        place(layer, "etc/gshadow", b"", 0o600)?;
        let environment = format!("AWS_ENDPOINT_URL={ENDPOINT}\n");
        place(layer, "etc/environment", environment.as_bytes(), 0o644)?;
        self.links.iter().try_for_each(|link| {
            let at = link.at.strip_prefix("/").unwrap_or(&link.at);
            symlink(&link.to, layer.join(at))
        })
    }
}

/// The accounts that packages made: people of the host are not in the image.
fn system_lines(path: &str) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let is_system = |line: &&str| {
        let id = line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
        id.is_some_and(|id| id < 1000 || id == 65_534 || line.starts_with("slurm:"))
    };
    Ok(text.lines().filter(is_system).map(str::to_owned).collect())
}

fn text_of(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// Hides a path of the host, but not what the layer itself has there.
fn hide(layer: &Path, path: &Path) -> io::Result<()> {
    let host = Path::new("/").join(path);
    match layer.join(path).symlink_metadata() {
        Ok(own) if own.is_dir() && host.is_dir() => {
            for entry in fs::read_dir(host)? {
                hide(layer, &path.join(entry?.file_name()))?;
            }
            Ok(())
        }
        Err(_) if host.symlink_metadata().is_ok() => whiteout(&layer.join(path)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Overlay's mark for "not there".
fn whiteout(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(mknod(path, SFlag::S_IFCHR, Mode::empty(), 0)?)
}
