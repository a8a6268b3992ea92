//! Where a checkout's lab keeps its files, and what it remembers from one command to the next.

use std::fs::File;
use std::path::PathBuf;

use hpc_e2e::kubeconfig::write_private;
use hpc_e2e::process::Identity;
use hpc_e2e::{LabError, Result, places};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

/// The lab of this checkout.
#[derive(Debug, Clone)]
pub struct Site {
    dir: PathBuf,
}

/// One process that stays after `up`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Staying {
    /// What it is, in a word.
    pub name: String,
    /// Which process.
    pub identity: Identity,
}

/// What `up` has started, in the order of starting.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The processes.
    pub processes: Vec<Staying>,
    /// Where AWS is.
    pub sim_url: String,
    /// Marks the processes of bodies.
    pub body_prefix: String,
}

impl State {
    /// Whether all it names runs.
    pub fn is_up(&self) -> bool {
        let all = self.processes.iter().all(|process| process.identity.is_alive());
        all && !self.processes.is_empty() && self.processes.iter().any(|p| p.name == "kubelet")
    }
}

impl Site {
    /// The site of the checkout this program was built from, or another one beside it.
    pub fn here() -> Self {
        let told = std::env::var_os("HPCOPS_LAB_DIR").map(PathBuf::from);
        Self { dir: told.unwrap_or_else(|| places::root().join(".lab")) }
    }

    /// Its folder, as a person would name it.
    pub fn name(&self) -> String {
        let relative = self.dir.strip_prefix(places::root()).unwrap_or(&self.dir);
        relative.display().to_string()
    }

    /// A file of the site.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Files of what runs; made anew by each start.
    pub fn run_dir(&self) -> PathBuf {
        self.at("run")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.run_dir().join("control-plane/kubeconfig")
    }

    /// Where the operator's process id is while it runs.
    pub fn pid_file(&self) -> PathBuf {
        self.at("operator.pid")
    }

    /// Holds off other lab commands on this checkout until it is dropped.
    pub fn lock(&self) -> Result<Flock<File>> {
        std::fs::create_dir_all(&self.dir).map_err(LabError::io("create", &self.dir))?;
        let path = self.at("lock");
        let file = File::create(&path).map_err(LabError::io("create", &path))?;
        Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_file, errno)| LabError::io("lock", path)(errno.into()))
    }

    /// What the last `up` has written down.
    pub fn state(&self) -> Result<State> {
        let path = self.at("state.json");
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(LabError::malformed(path.display().to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(State::default()),
            Err(error) => Err(LabError::io("read", path)(error)),
        }
    }

    /// Writes it down; done after each start, so that `down` finds what a failed `up` left.
    pub fn remember(&self, state: &State) -> Result<()> {
        let text = serde_json::to_string_pretty(state);
        let text = text.map_err(LabError::malformed("the state of the lab"))?;
        write_private(&self.at("state.json"), &text)
    }

    /// Forgets what was started.
    pub fn forget(&self) -> Result<()> {
        for name in ["state.json", "env", "operator.pid", "programs"] {
            let path = self.at(name);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(LabError::io("remove", path)(error));
                }
                Ok(()) | Err(_) => (),
            }
        }
        Ok(())
    }
}
