//! What the host may ask: answers from the state, for real machines.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Weak};

use crate::agenda::Event;
use crate::call::Call;
use crate::clock::Delay;
use crate::ec2::{self, Fate, Instance, InstanceState, Interface, Reach, Traffic, backing_file};
use crate::fsx::{FileSystem, Lifecycle};
use crate::imds;
use crate::machine::{AttachedVolume, FileSystemDir, HostView};
use crate::shared::Shared;

/// The view of one simulator. It does not keep the simulator alive.
#[derive(Debug, Clone)]
pub struct View {
    shared: Weak<Shared>,
    endpoint: SocketAddr,
}

impl View {
    /// A view of `shared`.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::downgrade(shared), endpoint: shared.engine.listen }
    }

    /// Works where an instance lives.
    fn at<T>(&self, id: &str, work: impl FnOnce(&mut Call<'_>) -> T) -> Option<T> {
        let shared = self.shared.upgrade()?;
        let (account, region) = shared.state().locate(id)?;
        Some(shared.work(&account, &region, work))
    }
}

impl HostView for View {
    fn imds(&self, instance_id: &str, path: &str) -> Option<String> {
        self.at(instance_id, |call| {
            let instance = call.region.ec2.instances.get(instance_id)?;
            imds::lookup(call, instance, path)
        })?
    }

    fn may_mount_lustre(
        &self,
        instance_id: &str,
        dns_name: &str,
        mount_name: &str,
    ) -> Result<FileSystemDir, String> {
        let found = self
            .at(instance_id, |call| lustre(call, instance_id, dns_name, mount_name))
            .unwrap_or_else(|| Err(format!("instance {instance_id} is gone")))?;
        // The data of a file system begins to exist when somebody mounts it.
        std::fs::create_dir_all(&found.path).map_err(|error| error.to_string())?;
        Ok(found)
    }

    fn may_mount_nfs(&self, instance_id: &str, server: IpAddr) -> Result<String, String> {
        self.at(instance_id, |call| nfs(call, instance_id, server))
            .unwrap_or_else(|| Err(format!("instance {instance_id} is gone")))
    }

    fn volumes(&self, instance_id: &str) -> Vec<AttachedVolume> {
        let found = self.at(instance_id, |call| attached(call, instance_id)).unwrap_or_default();
        found.into_iter().filter(|volume| volume.is_root || backed(volume)).collect()
    }

    fn shutdown(&self, instance_id: &str) {
        self.at(instance_id, |call| shut_down(call, instance_id));
    }

    fn agent_online(&self, instance_id: &str) {
        self.at(instance_id, |call| {
            let at = call.after(Delay::Delivery, &format!("agent {instance_id}"));
            call.schedule(at, Event::AgentOnline(instance_id.to_owned()));
        });
    }

    fn endpoint(&self) -> SocketAddr {
        self.endpoint
    }
}

fn primary<'a>(call: &'a Call<'_>, instance_id: &str) -> Result<&'a Interface, String> {
    let ec2 = &call.region.ec2;
    let instance: Option<&Instance> = ec2.instances.get(instance_id);
    let nic = instance.and_then(|instance| ec2.interfaces.get(instance.interfaces.first()?));
    nic.ok_or_else(|| format!("instance {instance_id} has no network"))
}

fn reach(nic: &Interface) -> Reach<'_> {
    Reach { groups: &nic.groups, address: nic.private_ip }
}

/// LNET goes both ways between a client and the file system.
fn lustre(
    call: &Call<'_>,
    instance_id: &str,
    dns_name: &str,
    mount_name: &str,
) -> Result<FileSystemDir, String> {
    let region = &call.region.name;
    let fs = call.region.fsx.file_systems.values().find(|fs| fs.dns_name(region) == dns_name);
    let fs: &FileSystem = fs.ok_or_else(|| format!("{dns_name}: name does not resolve"))?;
    if fs.lifecycle != Lifecycle::Available {
        return Err(format!("{dns_name}: no answer (file system is {})", fs.lifecycle.name()));
    }
    if fs.mount_name != mount_name {
        return Err(format!("{dns_name}: there is no file system called {mount_name}"));
    }
    let ec2 = &call.region.ec2;
    let client = primary(call, instance_id)?;
    let servers = fs.interfaces.iter().filter_map(|id| ec2.interfaces.get(id));
    for server in servers {
        for traffic in [Traffic::LNET, Traffic::LNET_SOURCES] {
            let there = ec2.is_open(call.now, reach(client), reach(server), traffic);
            let back = ec2.is_open(call.now, reach(server), reach(client), traffic);
            if !there || !back {
                return Err(format!(
                    "{dns_name}: Connection timed out (TCP {}-{} is closed between the groups)",
                    traffic.from, traffic.to
                ));
            }
        }
    }
    Ok(FileSystemDir {
        file_system_id: fs.id.clone(),
        path: call.engine.state_dir.join("fsx").join(&call.account.id).join(&fs.id),
        capacity_gib: fs.capacity_gib,
    })
}

fn nfs(call: &Call<'_>, instance_id: &str, server: IpAddr) -> Result<String, String> {
    let ec2 = &call.region.ec2;
    let unreachable = || format!("{server}: No route to host");
    let IpAddr::V4(address) = server else {
        return Err(unreachable());
    };
    let target = ec2.interfaces.values().find(|nic| nic.private_ip == Some(address));
    let target = target.ok_or_else(unreachable)?;
    let owner = target.attachment.as_ref().ok_or_else(unreachable)?.instance_id.clone();
    if !ec2.instances.get(&owner).is_some_and(Instance::is_up) {
        return Err(unreachable());
    }
    let client = primary(call, instance_id)?;
    if !ec2.is_open(call.now, reach(client), reach(target), Traffic::NFS) {
        return Err(format!(
            "{server}: Connection timed out (TCP 2049 is closed between the groups)"
        ));
    }
    Ok(owner)
}

fn attached(call: &Call<'_>, instance_id: &str) -> Vec<AttachedVolume> {
    let Some(instance) = call.region.ec2.instances.get(instance_id) else { return Vec::new() };
    let volumes = instance.volumes.iter().filter_map(|id| call.region.ec2.volumes.get(id));
    volumes
        .filter_map(|volume| Some((volume, volume.attachment.as_ref()?)))
        .filter(|(_, at)| at.attached_at <= call.now)
        .map(|(volume, at)| AttachedVolume {
            volume_id: volume.id.clone(),
            device: at.device.clone(),
            size_gib: u64::from(volume.size_gib),
            backing_file: backing_file(call, &volume.id),
            is_root: at.device == instance.root_device,
        })
        .collect()
}

/// Makes the sparse file of a volume when it is first needed.
fn backed(volume: &AttachedVolume) -> bool {
    match make_sparse(&volume.backing_file, volume.size_gib) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, volume = volume.volume_id, "no file for a volume");
            false
        }
    }
}

fn make_sparse(path: &Path, size_gib: u64) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create(path)?.set_len(size_gib << 30)
}

/// What `shutdown -h` does is a launch option.
fn shut_down(call: &mut Call<'_>, instance_id: &str) {
    let Some(instance) = call.region.ec2.instances.get_mut(instance_id) else {
        return;
    };
    if !instance.is_up() {
        return;
    }
    let why = Fate {
        code: "Client.InstanceInitiatedShutdown".to_owned(),
        message: "Client.InstanceInitiatedShutdown: Instance initiated shutdown".to_owned(),
    };
    if instance.terminates_on_shutdown {
        ec2::terminate_by_id(call, instance_id, &why);
    } else {
        instance.state = InstanceState::Stopped;
        instance.reason = Some(why);
    }
}
