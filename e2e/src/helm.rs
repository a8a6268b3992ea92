//! Our chart, installed with the real helm.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::process::Command;

use crate::control_plane::http_get;
use crate::error::{LabError, Result};
use crate::eventually::{await_condition, eventually};
use crate::places;
use crate::process::run;

/// helm, speaking for the holder of a kubeconfig.
#[derive(Debug, Clone)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    dir: PathBuf,
}

/// A release of our chart.
#[derive(Debug, Clone)]
pub struct Release {
    /// Its name, and the name of what it makes.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// Its values.
    pub values: Value,
}

impl Helm {
    /// helm with its caches and value files in `dir`.
    pub async fn new(kubeconfig: &Path, dir: &Path) -> Result<Self> {
        let program = places::control_plane_programs().await?.join("helm");
        std::fs::create_dir_all(dir).map_err(LabError::io("create", dir))?;
        Ok(Self { program, kubeconfig: kubeconfig.to_owned(), dir: dir.to_owned() })
    }

    /// Installs a release, or brings it to these values.
    pub async fn install(&self, release: &Release) -> Result<()> {
        let values = self.write_values(release)?;
        let mut command = self.command(&["upgrade", "--install", &release.name]);
        command
            .arg(chart())
            .args(["--namespace", &release.namespace, "--values"])
            .arg(values.path());
        run(&mut command).await.map(drop)
    }

    /// Removes a release.
    pub async fn uninstall(&self, release: &Release) -> Result<()> {
        let mut command = self.command(&["uninstall", &release.name]);
        command.args(["--namespace", &release.namespace, "--ignore-not-found"]);
        run(&mut command).await.map(drop)
    }

    /// What a release would make, without asking any apiserver.
    pub async fn template(&self, release: &Release, only: Option<&str>) -> Result<String> {
        let values = self.write_values(release)?;
        let mut command = self.command(&["template", &release.name]);
        command
            .arg(chart())
            .args(["--namespace", &release.namespace, "--values"])
            .arg(values.path());
        if let Some(only) = only {
            command.args(["--show-only", only]);
        }
        run(&mut command).await
    }

    /// Checks the chart as it is.
    pub async fn lint(&self) -> Result<String> {
        run(self.command(&["lint", "--strict"]).arg(chart())).await
    }

    /// Applies the chart's custom resource definitions, once for all releases of a lab, and waits
    /// until they are served.
    pub async fn apply_crds(&self, client: &Client) -> Result<()> {
        let values = serde_json::json!({"installationId": "lab", "crds": {"enabled": true}});
        let release = Release { name: "crds".into(), namespace: "default".into(), values };
        let text = self.template(&release, Some("templates/crds.yaml")).await?;
        let crds: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&text)
            .map_err(LabError::malformed("the chart's custom resource definitions"))?;
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in &crds {
            let name = crd.name_any();
            let applied = api.patch(&name, &PatchParams::apply("lab"), &Patch::Apply(crd)).await;
            applied.map_err(LabError::kube(format!("apply {name}")))?;
        }
        self.await_crds(client).await
    }

    /// Waits until both kinds are served and their schema is published.
    pub async fn await_crds(&self, client: &Client) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in ["hpcclusters.hpcops.dev", "benchmarkruns.hpcops.dev"] {
            await_established(&api, crd).await?;
        }
        await_published(client).await
    }

    /// A file of its own per call: the same release may be rendered twice at once.
    fn write_values(&self, release: &Release) -> Result<NamedTempFile> {
        let failed =
            |source| LabError::Io { what: "write values in", path: self.dir.clone(), source };
        let mut file = NamedTempFile::new_in(&self.dir).map_err(failed)?;
        file.write_all(release.values.to_string().as_bytes()).map_err(failed)?;
        Ok(file)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env("KUBECONFIG", &self.kubeconfig);
        for (name, folder) in [
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(name, self.dir.join(folder));
        }
        command
    }
}

/// The chart's folder.
pub fn chart() -> PathBuf {
    places::root().join("charts/hpc-operator")
}

async fn await_established(api: &Api<CustomResourceDefinition>, name: &str) -> Result<()> {
    let deadline = Duration::from_secs(30);
    await_condition(api, name, "is served", deadline, |crd| {
        let status = crd.and_then(|crd| crd.status.as_ref());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|c| c.type_ == "Established" && c.status == "True")
    })
    .await
    .map(drop)
}

/// kubectl validates, explains and merges by the published schema, which follows a moment later.
async fn await_published(client: &Client) -> Result<()> {
    eventually("the kinds' schema is published", Duration::from_secs(30), async || {
        let request = http_get("/openapi/v3")?;
        let text =
            client.request_text(request).await.map_err(LabError::kube("read /openapi/v3"))?;
        Ok(text.contains("apis/hpcops.dev/v1alpha1").then_some(()))
    })
    .await
}
