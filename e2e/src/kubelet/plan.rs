//! What a kubelet reads from a pod template: pure, so that a chart which asks for something the lab
//! does not play is refused instead of half obeyed.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodTemplateSpec, Probe as KubeProbe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::error::{LabError, Result};

/// Everything needed to run the only container of a Deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Namespace of the Deployment.
    pub namespace: String,
    /// Name of the Deployment.
    pub name: String,
    /// Whose token the pod gets.
    pub service_account: String,
    /// Arguments of the image's entry point, as written.
    pub args: Vec<String>,
    /// Environment, in order; later ones win.
    pub env: Vec<(String, Source)>,
    /// Secrets whose keys become variables, overridden by `env`.
    pub env_from: Vec<String>,
    /// Failing it restarts the container.
    pub liveness: Option<Probe>,
    /// Failing it makes the pod unready.
    pub readiness: Option<Probe>,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: u64,
}

/// Where a variable's value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Written in the template.
    Value(String),
    /// The pod's name.
    PodName,
    /// The pod's namespace.
    PodNamespace,
    /// A key of a Secret in the pod's namespace.
    Secret {
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
}

/// An HTTP probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Path, with its leading slash.
    pub path: String,
    /// Port of the container.
    pub port: u16,
    /// Seconds between looks.
    pub period_seconds: u64,
    /// Seconds an answer may take.
    pub timeout_seconds: u64,
    /// Failures in a row that count.
    pub failures: u32,
}

impl Plan {
    /// Reads a Deployment.
    pub fn read(deployment: &Deployment) -> Result<Self> {
        let spec = deployment.spec.as_ref().ok_or_else(|| refuse("a Deployment without a spec"))?;
        let strategy = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        if spec.replicas != Some(1) || strategy != Some("Recreate") {
            return Err(refuse("anything but one replica with strategy Recreate"));
        }
        let metadata = &deployment.metadata;
        let of = |field: &Option<String>| field.clone().unwrap_or_default();
        Self::read_template(&spec.template, of(&metadata.namespace), of(&metadata.name))
    }

    fn read_template(template: &PodTemplateSpec, namespace: String, name: String) -> Result<Self> {
        let pod = template.spec.as_ref().ok_or_else(|| refuse("a pod without a spec"))?;
        let [container] = pod.containers.as_slice() else {
            return Err(refuse("more than one container"));
        };
        if pod.init_containers.is_some() || pod.volumes.is_some() || container.command.is_some() {
            return Err(refuse("init containers, volumes or a command"));
        }
        Ok(Self {
            namespace,
            name,
            service_account: pod.service_account_name.clone().unwrap_or_else(|| "default".into()),
            args: container.args.clone().unwrap_or_default(),
            env: container.env.iter().flatten().map(variable).collect::<Result<_>>()?,
            env_from: env_from(container)?,
            liveness: probe(container, container.liveness_probe.as_ref())?,
            readiness: probe(container, container.readiness_probe.as_ref())?,
            grace_seconds: positive(pod.termination_grace_period_seconds, 30),
        })
    }
}

fn refuse(what: &str) -> LabError {
    LabError::missing(format!("support for {what}"), "teach the lab's kubelet")
}

fn variable(env: &EnvVar) -> Result<(String, Source)> {
    let Some(from) = &env.value_from else {
        return Ok((env.name.clone(), Source::Value(env.value.clone().unwrap_or_default())));
    };
    let field = from.field_ref.as_ref().map(|field| field.field_path.as_str());
    let source = match (field, &from.secret_key_ref) {
        (Some("metadata.name"), None) => Source::PodName,
        (Some("metadata.namespace"), None) => Source::PodNamespace,
        (None, Some(secret)) => {
            Source::Secret { name: secret.name.clone(), key: secret.key.clone() }
        }
        _ => return Err(refuse(&format!("the source of variable {}", env.name))),
    };
    Ok((env.name.clone(), source))
}

fn env_from(container: &Container) -> Result<Vec<String>> {
    let sources = container.env_from.iter().flatten();
    sources
        .map(|source| match &source.secret_ref {
            Some(secret) if source.prefix.is_none() => Ok(secret.name.clone()),
            _ => Err(refuse("an envFrom that is not a plain Secret")),
        })
        .collect()
}

fn probe(container: &Container, probe: Option<&KubeProbe>) -> Result<Option<Probe>> {
    let Some(probe) = probe else { return Ok(None) };
    let get = probe.http_get.as_ref().ok_or_else(|| refuse("a probe that is not HTTP"))?;
    let named = |name: &str| {
        let ports = container.ports.iter().flatten();
        ports
            .filter(|port| port.name.as_deref() == Some(name))
            .map(|port| port.container_port)
            .next()
    };
    let port = match &get.port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => named(name),
    };
    let port = port.and_then(|port| u16::try_from(port).ok());
    Ok(Some(Probe {
        path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
        port: port.ok_or_else(|| refuse("a probe of a port without a number"))?,
        period_seconds: positive(probe.period_seconds, 10),
        timeout_seconds: positive(probe.timeout_seconds, 1),
        failures: u32::try_from(positive(probe.failure_threshold, 3)).unwrap_or(3),
    }))
}

/// A Kubernetes number, or the default the apiserver would have filled in.
fn positive<N: TryInto<u64>>(number: Option<N>, default: u64) -> u64 {
    number.and_then(|number| number.try_into().ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(edit: impl FnOnce(&mut serde_json::Value)) -> Deployment {
        let mut value: serde_json::Value =
            serde_json::from_str(include_str!("plan_sample.json")).unwrap();
        edit(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_template_says_what_to_run_and_how_to_probe_it() {
        let plan = Plan::read(&deployment(|_| ())).unwrap();
        assert_eq!(plan.args, ["--bind=0.0.0.0:9000"]);
        assert_eq!(plan.env[0], ("POD_NAME".to_owned(), Source::PodName));
        assert_eq!(plan.env_from, ["aws"]);
        let liveness = plan.liveness.unwrap();
        assert_eq!((liveness.path.as_str(), liveness.port, liveness.failures), ("/livez", 9000, 3));
        assert_eq!(plan.grace_seconds, 30);
    }

    #[test]
    fn what_the_lab_cannot_play_is_refused() {
        let check = |edit: fn(&mut serde_json::Value), expected: &str| {
            let refused = Plan::read(&deployment(edit)).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        };
        check(|d| d["spec"]["replicas"] = 2.into(), "one replica");
        check(|d| d["spec"]["strategy"]["type"] = "RollingUpdate".into(), "Recreate");
        check(
            |d| d["spec"]["template"]["spec"]["volumes"] = serde_json::json!([{"name": "v"}]),
            "volumes",
        );
        check(
            |d| {
                d["spec"]["template"]["spec"]["containers"][0]["env"][0]["valueFrom"] =
                    serde_json::json!({"fieldRef": {"fieldPath": "status.podIP"}});
            },
            "variable POD_NAME",
        );
    }
}
