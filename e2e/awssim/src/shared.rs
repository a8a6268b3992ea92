//! The running simulator: state under one lock, and effects done outside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::agenda::Event;
use crate::call::Call;
use crate::ec2::{self, Fate};
use crate::effect::{Effect, InvocationKey};
use crate::hold::Holds;
use crate::machine::{BodySpec, Command, Machines};
use crate::world::{Engine, Principal, State, World};
use crate::{clock, fsx, ssm};

/// Everything the parts of a running simulator share.
pub struct Shared {
    /// What never changes.
    pub engine: Engine,
    /// Parked calls.
    pub holds: Holds,
    state: Mutex<State>,
    machines: OnceLock<Arc<dyn Machines>>,
    running: Mutex<BTreeMap<InvocationKey, AbortHandle>>,
    runtime: Handle,
    requests: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("engine", &self.engine.clock).finish_non_exhaustive()
    }
}

impl Shared {
    /// A simulator without machines yet.
    pub fn new(engine: Engine, runtime: Handle) -> Self {
        Self {
            engine,
            holds: Holds::default(),
            state: Mutex::default(),
            machines: OnceLock::new(),
            running: Mutex::default(),
            runtime,
            requests: AtomicU64::new(1),
        }
    }

    /// Gives it its machines, once.
    pub fn set_machines(&self, machines: Arc<dyn Machines>) {
        if self.machines.set(machines).is_err() {
            tracing::error!("machines were set twice");
        }
    }

    /// Its machines.
    pub fn machines(&self) -> Option<&Arc<dyn Machines>> {
        self.machines.get()
    }

    /// The state. A panic elsewhere does not make it unreadable.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request id like AWS's.
    pub fn request_id(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-5100-4000-8000-{number:012x}", self.engine.dice.seed() & 0xffff_ffff)
    }

    /// Works on one region of one account: what is due happens first, effects
    /// happen afterwards.
    pub fn work<T>(
        self: &Arc<Self>,
        account: &str,
        region: &str,
        work: impl FnOnce(&mut Call<'_>) -> T,
    ) -> T {
        let mut effects = Vec::new();
        let result = {
            let mut state = self.state();
            let now = clock::now();
            let mut keys = Vec::new();
            let world = state.world(account, &self.engine);
            settle(world, &self.engine, now, &mut effects, &mut keys);
            let (account, region) = world.split(region);
            let result = work(&mut Call {
                account,
                region,
                engine: &self.engine,
                now,
                effects: &mut effects,
                keys: &mut keys,
                dry_run: false,
            });
            for (key, principal) in keys {
                state.assign(&key, principal);
            }
            result
        };
        self.perform(effects);
        result
    }

    /// Lets everything happen that is due.
    pub fn tick(self: &Arc<Self>) {
        let mut effects = Vec::new();
        {
            let mut state = self.state();
            let now = clock::now();
            let mut keys = Vec::new();
            for world in state.worlds().values_mut() {
                settle(world, &self.engine, now, &mut effects, &mut keys);
            }
            for (key, principal) in keys {
                state.assign(&key, principal);
            }
        }
        self.perform(effects);
    }

    /// Does what was decided under the lock.
    pub fn perform(self: &Arc<Self>, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Start(spec) => self.start(*spec),
                Effect::Kill { instance_id } => self.kill(instance_id),
                Effect::Execute { key, command } => self.execute(key, command),
                Effect::Abort { key } => self.abort(&key),
                Effect::Discard { path } => {
                    self.runtime.spawn_blocking(move || discard(&path));
                }
            }
        }
    }

    fn start(self: &Arc<Self>, spec: BodySpec) {
        let Some(machines) = self.machines().cloned() else {
            return;
        };
        let shared = Arc::clone(self);
        self.runtime.spawn(async move {
            let (account, region) = (spec.account.clone(), spec.region.clone());
            let id = spec.instance_id.clone();
            if let Err(error) = machines.start(spec).await {
                tracing::warn!(%error, cause = ?std::error::Error::source(&error), "no body");
                shared.work(&account, &region, |call| no_body(call, &id, &error.to_string()));
            }
            let wanted = shared.work(&account, &region, |call| {
                call.region.ec2.instances.get(&id).is_some_and(ec2::Instance::is_up)
            });
            if !wanted {
                shared.kill(id);
            }
        });
    }

    fn kill(self: &Arc<Self>, instance_id: String) {
        let Some(machines) = self.machines().cloned() else {
            return;
        };
        self.runtime.spawn(async move {
            if let Err(error) = machines.kill(&instance_id).await {
                tracing::error!(%error, instance_id, "a body could not be killed");
            }
        });
    }

    fn execute(self: &Arc<Self>, key: InvocationKey, command: Command) {
        let Some(machines) = self.machines().cloned() else {
            return;
        };
        let (shared, mine) = (Arc::clone(self), key.clone());
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let task = self.runtime.spawn(async move {
            let output = machines.exec(&mine.instance_id, command).await;
            shared.work(&mine.account, &mine.region, |call| ssm::complete(call, &mine, output));
            shared.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&mine);
        });
        running.insert(key, task.abort_handle());
    }

    fn abort(&self, key: &InvocationKey) {
        let task = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        if let Some(task) = task {
            task.abort();
        }
    }
}

fn no_body(call: &mut Call<'_>, id: &str, why: &str) {
    let now = call.now;
    call.account.warn(now, "BodyFailed", id, why);
    let fate = Fate {
        code: "Server.InternalError".to_owned(),
        message: format!("Server.InternalError: {why}"),
    };
    ec2::fail(call, id, &fate);
}

fn discard(path: &std::path::Path) {
    let result =
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(error) = result
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "data of a deleted resource stays");
    }
}

/// Lets happen what is due in an account.
fn settle(
    world: &mut World,
    engine: &Engine,
    now: Timestamp,
    effects: &mut Vec<Effect>,
    keys: &mut Vec<(String, Principal)>,
) {
    let World { account, regions } = world;
    for region in regions.values_mut() {
        while let Some((at, event)) = region.agenda.due(now) {
            let mut call = Call { account, region, engine, now: at, effects, keys, dry_run: false };
            happen(&mut call, &event);
        }
    }
}

fn happen(call: &mut Call<'_>, event: &Event) {
    match event {
        Event::InstanceRunning(_)
        | Event::AgentOnline(_)
        | Event::InstanceTerminated(_)
        | Event::InstanceForgotten(_) => ec2::handle_event(call, event),
        Event::FileSystemSettled(_) | Event::FileSystemGone(_) => fsx::handle_event(call, event),
        Event::CommandDelivered(..) | Event::CommandExpired(..) => ssm::handle_event(call, event),
    }
}
