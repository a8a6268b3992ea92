//! `hpc-lab up`: control plane, simulated AWS, our chart's release and its operator.

use std::path::Path;
use std::time::Duration;

use clap::Parser;
use hpc_e2e::helm::{Helm, Release};
use hpc_e2e::kubeconfig::write_private;
use hpc_e2e::process::{Lifetime, Process, Spawn};
use hpc_e2e::sim::{Awssim, Settings};
use hpc_e2e::{ControlPlane, LabError, Result, eventually, places};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::account::Account;
use crate::down;
use crate::progress::Clock;
use crate::site::{Site, State, Staying};

/// Namespace and name of the operator's release.
const RELEASE: (&str, &str) = ("hpcops-system", "hpc-operator");
/// How the lab is to be.
#[derive(Debug, Clone, Parser)]
pub struct Wishes {
    /// Seed of the simulator.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Factor on simulated delays; 1 is as slow as AWS.
    #[arg(long, default_value_t = 0.02)]
    pub time_scale: f64,
    /// Instances exist in answers only: no processes, so no jobs; needs no root.
    #[arg(long)]
    pub bodiless: bool,
    /// No simulator: real AWS, with the credentials of this environment and a hard cost cap.
    #[arg(long, hide = true)]
    pub real_aws: bool,
}

/// Brings it up, or leaves it alone if it is.
pub async fn run(site: &Site, wishes: &Wishes) -> Result<State> {
    let _lock = site.lock()?;
    let clock = Clock::start();
    let state = site.state()?;
    if state.is_up() {
        clock.tell("the lab is up already");
        return Ok(state);
    }
    check_rights(wishes)?;
    down::stop(site, &state, clock).await?;
    let state = start(site, wishes, clock).await?;
    clock.tell(&format!("the lab is up; use it with: . {}/env", site.name()));
    Ok(state)
}

fn check_rights(wishes: &Wishes) -> Result<()> {
    if wishes.bodiless || wishes.real_aws || nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    let hint = "instances with bodies need namespaces: run as root, or `hpc-lab up --bodiless`";
    Err(LabError::missing("root", hint))
}

async fn start(site: &Site, wishes: &Wishes, clock: Clock) -> Result<State> {
    let run_dir = site.run_dir();
    drop(std::fs::remove_dir_all(&run_dir));
    let mut state = State { body_prefix: prefix_of(site), ..State::default() };

    clock.tell("starting etcd, kube-apiserver and kube-controller-manager");
    let control_plane =
        ControlPlane::start_for(&run_dir.join("control-plane"), Lifetime::Detached).await?;
    for identity in control_plane.identities().into_iter().rev() {
        state.processes.push(Staying { name: "control plane".to_owned(), identity });
    }
    site.remember(&state)?;

    let account = account(site, wishes, &mut state, clock).await?;
    clock.tell("installing the chart");
    install(site, &control_plane, &account).await?;

    clock.tell("starting the operator");
    let kubelet = start_kubelet(site, &control_plane)?;
    state.processes.push(Staying { name: "kubelet".to_owned(), identity: kubelet.identity() });
    site.remember(&state)?;
    await_operator(site, kubelet).await?;
    write_env(site, &account).await?;
    Ok(state)
}

async fn account(site: &Site, wishes: &Wishes, state: &mut State, clock: Clock) -> Result<Account> {
    if wishes.real_aws {
        return Account::of_this_person();
    }
    clock.tell("starting simulated AWS");
    let sim = Awssim::start(&sim_settings(site, state, wishes)).await?;
    sim.url().clone_into(&mut state.sim_url);
    state.processes.push(Staying { name: "awssim".to_owned(), identity: sim.identity() });
    site.remember(state)?;
    Ok(Account::simulated(sim.url()))
}

fn sim_settings(site: &Site, state: &State, wishes: &Wishes) -> Settings {
    Settings {
        seed: wishes.seed,
        time_scale: wishes.time_scale,
        bodies: !wishes.bodiless,
        prefix: state.body_prefix.clone(),
        dir: site.run_dir().join("awssim"),
        lifetime: Lifetime::Detached,
    }
}

/// A prefix per checkout, so that two labs on one machine keep their hands off each other's bodies.
fn prefix_of(site: &Site) -> String {
    let path = site.run_dir().display().to_string();
    let sum = path.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("hpclab-{sum:08x}")
}

async fn install(site: &Site, control_plane: &ControlPlane, account: &Account) -> Result<()> {
    let client = control_plane.client();
    let (namespace, name) = RELEASE;
    let params = PatchParams::apply("hpc-lab");
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": labels}});
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.patch(namespace, &params, &Patch::Apply(&object)).await;
    made.map_err(LabError::kube("make the release's namespace"))?;
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "aws"},
        "stringData": account.credentials()});
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let made = secrets.patch("aws", &params, &Patch::Apply(&object)).await;
    made.map_err(LabError::kube("make the operator's credentials"))?;
    let helm = Helm::new(&control_plane.kubeconfig(), &site.run_dir().join("helm")).await?;
    let (name, namespace) = (name.to_owned(), namespace.to_owned());
    helm.install(&Release { name, namespace, values: account.values()? }).await?;
    helm.await_crds(&client).await
}

fn start_kubelet(site: &Site, control_plane: &ControlPlane) -> Result<Process> {
    let me = std::env::current_exe().map_err(LabError::io("find", "this program"))?;
    let endpoint = control_plane.endpoint();
    let args = [
        "kubelet".to_owned(),
        format!("--kubeconfig={}", site.kubeconfig().display()),
        format!("--server={}", endpoint.url),
        format!("--ca={}", endpoint.ca.display()),
        format!("--dir={}", site.run_dir().join("pods").display()),
        format!("--pid-file={}", site.pid_file().display()),
        format!("--namespace={}", RELEASE.0),
        format!("--deployment={}", RELEASE.1),
    ];
    let log = site.run_dir().join("kubelet.log");
    Spawn::new(me, args, log).lifetime(Lifetime::Detached).start()
}

/// The kubelet writes the process id once the operator is ready.
async fn await_operator(site: &Site, mut kubelet: Process) -> Result<()> {
    let deadline = Duration::from_mins(1);
    eventually("the operator is ready", deadline, async || {
        if let Some(status) = kubelet.exited() {
            return Ok(Some(Err(kubelet.failure(&status.to_string()))));
        }
        Ok(site.pid_file().is_file().then_some(Ok(())))
    })
    .await?
}

async fn write_env(site: &Site, account: &Account) -> Result<()> {
    let mut path = vec![places::kubectl().await?, places::control_plane_programs().await?];
    if let Ok(me) = std::env::current_exe() {
        path.extend(me.parent().map(Path::to_path_buf));
    }
    let path: Vec<String> = path.iter().map(|dir| dir.display().to_string()).collect();
    let mut exports = account.exports();
    exports.push(("KUBECONFIG", site.kubeconfig().display().to_string()));
    exports.push(("OPERATOR_PID_FILE", site.pid_file().display().to_string()));
    let quoted = |value: &str| format!("'{}'", value.replace('\'', "'\\''"));
    let lines = exports.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
    let path = format!("export PATH={}:\"$PATH\"\n", quoted(&path.join(":")));
    let text: String = lines.chain([path]).collect();
    write_private(&site.at("env"), &text)
}
