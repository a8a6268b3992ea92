//! Simulated AWS: the process, and a client of its control API. What a story arranges or looks at
//! here is bound to one access key, which is one account, so stories do not see each other.

mod control;

use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::error::{LabError, Result};
use crate::places;
use crate::process::{Identity, Lifetime, Process, Spawn};

pub use control::{Call, Fault, Held, Resource, Sim, Strike, Then, When};

/// How long the simulator may take until it listens.
const READY: Duration = Duration::from_secs(20);
/// How long it may take to end its bodies.
const GRACE: Duration = Duration::from_secs(30);

/// How a simulator behaves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Seed of every delay, order and id.
    pub seed: u64,
    /// Factor on every simulated delay; 1.0 is as slow as AWS.
    pub time_scale: f64,
    /// Whether instances are real processes on this machine.
    pub bodies: bool,
    /// Marks the bodies' processes; a simulator ends what an earlier one of its prefix left.
    pub prefix: String,
    /// Its files, the bodies' consoles among them.
    pub dir: PathBuf,
    /// How long it lives.
    pub lifetime: Lifetime,
}

impl Settings {
    /// A simulator that dies with this process and ends its bodies first.
    pub fn new(dir: impl Into<PathBuf>, seed: u64, time_scale: f64, bodies: bool) -> Self {
        let prefix = format!("awssim-{}", std::process::id());
        let lifetime = Lifetime::WithParent(Signal::SIGTERM);
        Self { seed, time_scale, bodies, prefix, dir: dir.into(), lifetime }
    }
}

/// A running simulator.
pub struct Awssim {
    process: Process,
    url: String,
}

/// The one line it prints once it listens.
#[derive(Deserialize)]
struct Announcement {
    url: String,
}

impl Awssim {
    /// Starts one on a free port.
    pub async fn start(settings: &Settings) -> Result<Self> {
        std::fs::create_dir_all(&settings.dir).map_err(LabError::io("create", &settings.dir))?;
        let log = settings.dir.join("awssim.log");
        let spawn = Spawn::new(places::built("awssim")?, arguments(settings), log);
        let mut process = spawn.lifetime(settings.lifetime).start_piped()?;
        let url = match tokio::time::timeout(READY, announced(&mut process)).await {
            Ok(Ok(url)) => url,
            Ok(Err(error)) => return Err(error),
            Err(_elapsed) => return Err(process.failure("does not say where it listens")),
        };
        Ok(Self { process, url })
    }

    /// Where AWS is: `AWS_ENDPOINT_URL`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The control API as the holder of an access key sees it.
    pub fn account(&self, access_key: &str) -> Sim {
        Sim::at(&self.url, access_key)
    }

    /// Its process.
    pub fn identity(&self) -> Identity {
        self.process.identity()
    }

    /// Its log.
    pub fn log(&self) -> &Path {
        self.process.log()
    }

    /// Ends it and its bodies.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(GRACE).await.map(drop)
    }
}

fn arguments(settings: &Settings) -> Vec<String> {
    let bodies = if settings.bodies { "all" } else { "none" };
    let mut arguments = vec![
        "--listen=127.0.0.1:0".to_owned(),
        format!("--seed={}", settings.seed),
        format!("--time-scale={}", settings.time_scale),
        format!("--state-dir={}", settings.dir.display()),
        format!("--bodies={bodies}"),
        format!("--body-prefix={}", settings.prefix),
    ];
    if settings.lifetime == Lifetime::Detached {
        arguments.push("--detached".to_owned());
    }
    arguments
}

async fn announced(process: &mut Process) -> Result<String> {
    let Some(stdout) = process.take_stdout() else {
        return Err(process.failure("has no standard output"));
    };
    let line = BufReader::new(stdout).lines().next_line().await;
    match line.map_err(LabError::io("read the first line of", "awssim"))? {
        Some(line) => {
            let said: Announcement = serde_json::from_str(&line)
                .map_err(LabError::malformed(format!("awssim's first line {line:?}")))?;
            Ok(said.url)
        }
        None => Err(process.failure("ended before it listened")),
    }
}
