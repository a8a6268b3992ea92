//! A person at a machine of the lab: what one would do by ssh, done by entering the body.

use tokio::process::Command;

use crate::error::{LabError, Result};
use crate::process::run;
use crate::sim::Sim;

/// Somebody logged in to an instance with a body.
pub struct Login {
    pid: i64,
    user: String,
}

impl Login {
    /// Logs a user in.
    pub async fn new(sim: &Sim, instance_id: &str, user: &str) -> Result<Self> {
        let body: serde_json::Value = sim.get(&format!("bodies/{instance_id}")).await?;
        let pid = body.get("pid").and_then(serde_json::Value::as_i64);
        let pid = pid.ok_or_else(|| LabError::Sim {
            what: format!("log in to {instance_id}"),
            source: "no pid was told".into(),
        })?;
        Ok(Self { pid, user: user.to_owned() })
    }

    /// Runs a command line in a login shell; gives what it printed, or fails with its words.
    pub async fn run(&self, line: &str) -> Result<String> {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.pid.to_string()])
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--"])
            .args(["su", "--login", &self.user, "--command", line])
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        run(&mut command).await
    }
}
