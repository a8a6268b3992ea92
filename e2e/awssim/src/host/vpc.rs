//! The networks: one namespace per account and region, because every account
//! hands out the same private addresses and none may see another's instances.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::sync::{Arc, Mutex, Weak};

use tokio::process::{Child, ChildStdin};
use tokio::task::AbortHandle;

use super::body::Body;
use super::failure::{failed, io_failed};
use super::rack::{Rack, ready_pid};
use super::{dns, imds, locked, proxy};
use crate::machine::{BodySpec, HostView, MachineError};

/// One account's network in one region.
pub struct Vpc {
    /// Host's process id of what holds the namespace.
    pid: i32,
    tasks: Mutex<Vec<AbortHandle>>,
    /// Bodies by their private address.
    members: Mutex<BTreeMap<Ipv4Addr, Weak<Body>>>,
    // Closing it ends the holder; it is held, never written.
    _line: ChildStdin,
    _process: Child,
}

impl Vpc {
    /// Which network an instance belongs to.
    pub fn key(spec: &BodySpec) -> String {
        format!("{} {}", spec.account, spec.region)
    }

    /// Makes the network and serves metadata, names and endpoints in it.
    pub async fn start(
        rack: &Rack,
        key: &str,
        view: &Arc<dyn HostView>,
    ) -> Result<Arc<Self>, MachineError> {
        let mut process = rack
            .enter(&["--pid"])
            .args(["unshare", "--net", "sh", "vpc.sh", &rack.marker("vpc")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(rack.log().map_err(io_failed(key, "open the rack's log"))?)
            .spawn()
            .map_err(io_failed(key, "start a network"))?;
        let pid = ready_pid(&mut process, key).await?;
        let line =
            process.stdin.take().ok_or_else(|| failed(key, "start a network", "no input"))?;
        let vpc = Arc::new(Self {
            pid,
            tasks: Mutex::default(),
            members: Mutex::default(),
            _line: line,
            _process: process,
        });
        let served = [
            imds::serve(&vpc, Arc::clone(view)),
            dns::serve(&vpc),
            proxy::serve(&vpc, view.endpoint()),
        ];
        for task in served {
            let task = task.map_err(io_failed(key, "serve in a network"))?;
            locked(&vpc.tasks).push(task);
        }
        Ok(vpc)
    }

    /// Host's process id of what holds the namespace.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Knows a body by its address from now on.
    pub fn admit(&self, body: &Arc<Body>) {
        locked(&self.members).insert(body.spec().private_ip, Arc::downgrade(body));
    }

    /// Forgets a body, unless another has its address already.
    pub fn dismiss(&self, body: &Body) {
        let mut members = locked(&self.members);
        let address = body.spec().private_ip;
        if members.get(&address).is_some_and(|member| std::ptr::eq(member.as_ptr(), body)) {
            members.remove(&address);
        }
    }

    /// The body that talks from an address.
    pub fn body_at(&self, address: IpAddr) -> Option<Arc<Body>> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        locked(&self.members).get(&address)?.upgrade()
    }

    /// The address of a private name.
    pub fn address_of(&self, name: &str) -> Option<Ipv4Addr> {
        let members = locked(&self.members);
        let mut bodies = members.values().filter_map(Weak::upgrade);
        let found = bodies.find(|body| body.spec().hostname.eq_ignore_ascii_case(name));
        found.map(|body| body.spec().private_ip)
    }
}

impl Drop for Vpc {
    fn drop(&mut self) {
        for task in locked(&self.tasks).drain(..) {
            task.abort();
        }
    }
}
