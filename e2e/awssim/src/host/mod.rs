//! Bodies: simulated instances that are real processes on this machine.
//!
//! A body has mount, UTS, IPC, network and PID namespaces of its own, an overlay
//! of the host's `/` under an image profile, a private `/dev` and `/sys`, a
//! metadata service and a network cable to a bridge that leads nowhere else. What
//! the hardware or AWS would do is done by stand-ins that ask the simulator.

mod body;
mod disks;
mod dns;
mod door;
mod exec;
mod failure;
mod imds;
mod profile;
mod proxy;
mod rack;
mod sysfs;
#[cfg(test)]
mod tests;
mod vpc;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::task::AbortHandle;

use self::body::Body;
use self::disks::Disks;
use self::failure::io_failed;
use self::profile::Profile;
use self::rack::Rack;
use self::vpc::Vpc;
use crate::machine::{
    BodySpec, Command, ExecOutput, HostView, MachineError, Machines, MachinesFactory,
};

/// How often attached volumes are compared with the devices of the bodies.
const VOLUME_PERIOD: Duration = Duration::from_millis(250);

/// Where and under which name a simulator keeps its bodies.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Marks the processes of this simulator; a second one with the same prefix
    /// ends the first one's bodies. Letters, digits and dashes.
    pub prefix: String,
    /// Folder for console logs and scratch files; made when missing.
    pub state_dir: PathBuf,
}

/// The bodies of one simulator. Nothing is touched before the first start; all
/// is gone when it is dropped, or when its process ends in whatever way.
pub struct Bodies {
    host: Arc<Host>,
}

/// What all bodies share.
pub(crate) struct Host {
    config: HostConfig,
    view: Arc<dyn HostView>,
    rack: OnceCell<Rack>,
    disks: Disks,
    /// One lock per instance, so that a kill waits for a start under way.
    slots: Mutex<BTreeMap<String, Slot>>,
    bodies: Mutex<BTreeMap<String, Arc<Body>>>,
    killed: Mutex<BTreeSet<String>>,
    vpcs: AsyncMutex<BTreeMap<String, Arc<Vpc>>>,
    layers: AsyncMutex<BTreeSet<String>>,
    tasks: Mutex<Vec<AbortHandle>>,
}

type Slot = Arc<AsyncMutex<()>>;

/// A poisoned lock still guards whole values here: each is changed in one act.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bodies {
    /// Bodies that ask `view`. Starting one needs root on Linux.
    pub fn new(config: HostConfig, view: Arc<dyn HostView>) -> Self {
        let host = Host {
            config,
            view,
            rack: OnceCell::new(),
            disks: Disks::default(),
            slots: Mutex::default(),
            bodies: Mutex::default(),
            killed: Mutex::default(),
            vpcs: AsyncMutex::default(),
            layers: AsyncMutex::default(),
            tasks: Mutex::default(),
        };
        Self { host: Arc::new(host) }
    }

    /// A factory for the simulator's start.
    pub fn factory(config: HostConfig) -> MachinesFactory {
        Box::new(move |view| Arc::new(Self::new(config, view)))
    }

    /// The console of an instance so far: its init, and what user data printed
    /// is in its own `/var/log/cloud-init-output.log`.
    pub fn console(&self, instance_id: &str) -> PathBuf {
        self.host.console(instance_id)
    }
}

impl Drop for Bodies {
    fn drop(&mut self) {
        for task in locked(&self.host.tasks).drain(..) {
            task.abort();
        }
    }
}

impl Host {
    fn console(&self, instance_id: &str) -> PathBuf {
        self.config.state_dir.join("console").join(format!("{instance_id}.log"))
    }

    fn slot(&self, instance_id: &str) -> Slot {
        Arc::clone(locked(&self.slots).entry(instance_id.to_owned()).or_default())
    }

    fn body(&self, instance_id: &str) -> Option<Arc<Body>> {
        locked(&self.bodies).get(instance_id).cloned()
    }

    fn all(&self) -> Vec<Arc<Body>> {
        locked(&self.bodies).values().cloned().collect()
    }

    fn rack(&self) -> Option<&Rack> {
        self.rack.get()
    }

    fn keep(&self, task: AbortHandle) {
        locked(&self.tasks).push(task);
    }

    /// The rack, started by whoever needs it first.
    async fn standing_rack(self: &Arc<Self>) -> Result<&Rack, MachineError> {
        self.rack
            .get_or_try_init(|| async {
                let rack = Rack::start(&self.config.prefix, &self.config.state_dir).await?;
                self.keep(self.watch_volumes());
                Ok(rack)
            })
            .await
    }

    /// Makes sure that the layer of an image and the `/sys` of a type are there.
    async fn prepare(&self, rack: &Rack, spec: &BodySpec) -> Result<(), MachineError> {
        let mut built = self.layers.lock().await;
        let profile = Profile::of_image(&spec.image_name)?;
        if built.insert(profile.name.clone()) {
            profile.build(&rack.folder().join("layers").join(&profile.name))?;
        }
        let processors = body::processors(spec);
        if built.insert(processors.key()) {
            processors
                .write(&rack.folder().join("sys").join(processors.key()))
                .map_err(io_failed(&spec.instance_id, "write the processors"))?;
        }
        Ok(())
    }

    fn watch_volumes(self: &Arc<Self>) -> AbortHandle {
        let host = Arc::downgrade(self);
        let task = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(VOLUME_PERIOD);
            loop {
                ticks.tick().await;
                let Some(host) = host.upgrade() else { return };
                for body in host.all() {
                    let volumes = host.view.volumes(body.id());
                    host.disks.reconcile(&body, &volumes).await;
                }
            }
        });
        task.abort_handle()
    }

    /// The network of an instance, made for the first of its account and region.
    async fn vpc(&self, rack: &Rack, spec: &BodySpec) -> Result<Arc<Vpc>, MachineError> {
        let mut vpcs = self.vpcs.lock().await;
        let key = Vpc::key(spec);
        if let Some(vpc) = vpcs.get(&key) {
            return Ok(Arc::clone(vpc));
        }
        let vpc = Vpc::start(rack, &key, &self.view).await?;
        vpcs.insert(key, Arc::clone(&vpc));
        Ok(vpc)
    }

    /// Takes away what a body left, after its end.
    async fn clear(&self, body: &Body) -> Result<(), MachineError> {
        locked(&self.bodies).remove(body.id());
        self.disks.release(body.id());
        match self.rack() {
            Some(rack) => body.clear(rack).await,
            None => Ok(()),
        }
    }

    /// Notices a body that ended by itself, as an instance that powers off.
    fn watch_end(self: &Arc<Self>, body: &Arc<Body>) {
        let (host, body) = (Arc::downgrade(self), Arc::clone(body));
        tokio::spawn(async move {
            body.ended().await;
            let Some(host) = host.upgrade() else { return };
            let slot = host.slot(body.id());
            let _guard = slot.lock().await;
            if host.body(body.id()).is_some() {
                if let Err(error) = host.clear(&body).await {
                    tracing::warn!(instance = body.id(), %error, "could not clear an ended body");
                }
                host.view.shutdown(body.id());
            }
        });
    }
}

#[async_trait]
impl Machines for Bodies {
    async fn start(&self, spec: BodySpec) -> Result<(), MachineError> {
        let id = spec.instance_id.clone();
        let slot = self.host.slot(&id);
        let _guard = slot.lock().await;
        if locked(&self.host.killed).contains(&id) {
            return Err(MachineError::NoBody { instance_id: id });
        }
        let rack = self.host.standing_rack().await?;
        self.host.prepare(rack, &spec).await?;
        let body = Body::start(&self.host, rack, spec).await?;
        self.host.watch_end(&body);
        locked(&self.host.bodies).insert(id, body);
        Ok(())
    }

    async fn exec(&self, instance_id: &str, command: Command) -> Result<ExecOutput, MachineError> {
        let body = self.host.body(instance_id);
        let body =
            body.ok_or_else(|| MachineError::NoBody { instance_id: instance_id.to_owned() })?;
        exec::run(&self.host.config.state_dir, &body, command).await
    }

    async fn kill(&self, instance_id: &str) -> Result<(), MachineError> {
        locked(&self.host.killed).insert(instance_id.to_owned());
        let slot = self.host.slot(instance_id);
        let _guard = slot.lock().await;
        let Some(body) = self.host.body(instance_id) else {
            return Ok(());
        };
        body.kill().await?;
        self.host.clear(&body).await
    }

    fn running(&self) -> Vec<String> {
        locked(&self.host.bodies).keys().cloned().collect()
    }

    fn pid(&self, instance_id: &str) -> Option<i32> {
        self.host.body(instance_id).map(|body| body.pid())
    }
}
