//! Starting and stopping a simulator, in a process of its own or in a test's.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::bodiless::Bodiless;
use crate::catalog::Types;
use crate::clock::Clock;
use crate::dice::Dice;
use crate::machine::MachinesFactory;
use crate::server;
use crate::shared::Shared;
use crate::view::View;
use crate::world::Engine;

/// How often life cycles go on while nobody calls.
const TICK: Duration = Duration::from_millis(20);

/// What a simulator is started with.
pub struct Config {
    /// Address to listen on; port 0 chooses one.
    pub listen: SocketAddr,
    /// Seed of all chance.
    pub seed: u64,
    /// Factor of all delays; 1.0 is as slow as AWS.
    pub time_scale: f64,
    /// Folder for the data of volumes and file systems.
    pub state_dir: PathBuf,
    /// Makes the machines of instances with bodies; `None` has none.
    pub machines: Option<MachinesFactory>,
    /// Whether new accounts give their instances bodies.
    pub bodies: bool,
}

impl Config {
    /// A fast simulator on a free loopback port, without bodies.
    pub fn bodiless(state_dir: PathBuf, seed: u64) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            seed,
            time_scale: 0.02,
            state_dir,
            machines: None,
            bodies: false,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("listen", &self.listen)
            .field("seed", &self.seed)
            .field("time_scale", &self.time_scale)
            .finish_non_exhaustive()
    }
}

/// Why a simulator did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The built-in instance types are unreadable.
    #[error("cannot read the instance types")]
    Types {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The state folder cannot be made.
    #[error("cannot make {path}")]
    StateDir {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Simulated AWS.
#[derive(Debug)]
pub struct Simulator;

impl Simulator {
    /// Starts one on the current runtime.
    pub async fn start(config: Config) -> Result<Running, StartError> {
        let Config { listen, seed, time_scale, state_dir, machines, bodies } = config;
        std::fs::create_dir_all(&state_dir)
            .map_err(|source| StartError::StateDir { path: state_dir.clone(), source })?;
        let failed = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let engine = Engine {
            clock: Clock::new(time_scale),
            dice: Dice::new(seed),
            types: Types::load().map_err(|source| StartError::Types { source })?,
            state_dir,
            listen: address,
            bodies,
        };
        let shared = Arc::new(Shared::new(engine, Handle::current()));
        shared.set_machines(match machines {
            Some(make) => make(Arc::new(View::new(&shared))),
            None => Arc::new(Bodiless),
        });
        let tasks = vec![
            tokio::spawn(server::serve(listener, Arc::clone(&shared))),
            tokio::spawn(tick(Arc::clone(&shared))),
        ];
        Ok(Running { url: format!("http://{address}"), seed, shared, tasks })
    }
}

async fn tick(shared: Arc<Shared>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        shared.tick();
    }
}

/// A simulator at work. Dropping it stops it, without waiting for its bodies;
/// [`Running::stop`] waits.
#[derive(Debug)]
pub struct Running {
    /// Where it listens, for example `http://127.0.0.1:4567`.
    pub url: String,
    /// Its seed.
    pub seed: u64,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Running {
    /// Stops listening and ends all bodies.
    pub async fn stop(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        let Some(machines) = self.shared.machines().cloned() else {
            return;
        };
        for instance_id in machines.running() {
            if let Err(error) = machines.kill(&instance_id).await {
                tracing::error!(%error, "a body stays");
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
