//! The flags. Their names are the chart's; their bounds are checked here, before anything starts.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use hpc_plan::cluster::Settings;

/// Kubernetes operator for HPC clusters on AWS.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Command {
    /// What to do; without a subcommand the operator runs.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the operator.
    #[command(flatten)]
    pub config: Config,
}

/// Subcommands.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Verb {
    /// Print the custom resource definitions and leave.
    Crds,
}

/// Flags of the operator.
#[derive(Clone, Debug, Args)]
pub struct Config {
    /// Names this installation in every tag; never changed later.
    #[arg(long, default_value = "default", value_parser = installation)]
    pub installation_id: String,
    /// Namespaces served, comma separated; empty is all.
    #[arg(long, default_value = "")]
    pub watch_namespaces: String,
    /// Most live instances over the installation, heads included.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    pub max_instances: i64,
    /// Most US dollars per hour over the installation, heads included.
    #[arg(long, default_value = "100", value_parser = micro_dollars)]
    pub max_hourly_cost: i64,
    /// Plan and tell, change nothing in AWS.
    #[arg(long)]
    pub dry_run: bool,
    /// Name of the lease that makes one process the operator.
    #[arg(long, default_value = "hpc-operator")]
    pub lease_name: String,
    /// Namespace of the lease.
    #[arg(long, default_value = "default")]
    pub lease_namespace: String,
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub bind: SocketAddr,
    /// Provider that stands in for EFA in a laboratory; empty on AWS.
    #[arg(long, default_value = "")]
    pub simulated_fabric: String,
    /// Identity in the lease and in events.
    #[arg(long, env = "POD_NAME", default_value = "hpc-operator")]
    pub pod_name: String,
    /// Waits and bounds.
    #[command(flatten)]
    pub waits: Waits,
}

/// Waits and bounds, in seconds.
#[derive(Clone, Debug, Args)]
pub struct Waits {
    /// For the agent of a new head.
    #[arg(long, default_value_t = 600)]
    pub agent_timeout_seconds: u64,
    /// For the boot of a node.
    #[arg(long, default_value_t = 1200)]
    pub boot_timeout_seconds: u64,
    /// How long AWS may hide what it has made.
    #[arg(long, default_value_t = 30)]
    pub visibility_window_seconds: u64,
    /// How long a token is looked up before its attempt is given up.
    #[arg(long, default_value_t = 300)]
    pub lookup_window_seconds: u64,
    /// First wait after a lack of capacity; doubles to ten minutes.
    #[arg(long, default_value_t = 30)]
    pub capacity_backoff_seconds: u64,
    /// Between the two looks before the finalizer goes.
    #[arg(long, default_value_t = 5)]
    pub finalizer_gap_seconds: u64,
    /// Between two looks at a steady object.
    #[arg(long, default_value_t = 60)]
    pub fleet_sweep_seconds: u64,
    /// Between two questions about a job under way.
    #[arg(long, default_value_t = 10)]
    pub job_poll_seconds: u64,
}

impl Config {
    /// The namespaces served; empty is all.
    pub fn namespaces(&self) -> Vec<String> {
        let names = self.watch_namespaces.split(',').map(str::trim);
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// What the planner must know of the flags.
    pub fn settings(&self) -> Settings {
        let waits = &self.waits;
        Settings {
            installation: self.installation_id.clone(),
            max_instances: self.max_instances,
            max_hourly_cost: self.max_hourly_cost,
            dry_run: self.dry_run,
            simulated_fabric: self.simulated_fabric.clone(),
            agent_timeout: Duration::from_secs(waits.agent_timeout_seconds),
            boot_timeout: Duration::from_secs(waits.boot_timeout_seconds),
            visibility_window: Duration::from_secs(waits.visibility_window_seconds),
            lookup_window: Duration::from_secs(waits.lookup_window_seconds),
            capacity_backoff: Duration::from_secs(waits.capacity_backoff_seconds),
            finalizer_gap: Duration::from_secs(waits.finalizer_gap_seconds),
        }
    }
}

/// An installation id is part of names and tags.
fn installation(text: &str) -> Result<String, String> {
    let fits = (1..=32).contains(&text.len());
    let plain = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
    if fits && plain {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 32 lower-case letters, digits and dashes".to_owned())
    }
}

/// Dollars with at most six decimals, as micro-dollars.
fn micro_dollars(text: &str) -> Result<i64, String> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err("must be dollars with at most six decimals, such as 100 or 99.50".to_owned());
    }
    format!("{whole}{part:0<6}").parse().map_err(|_| "is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_without_floats() {
        for (text, expected) in [
            ("100", Some(100_000_000)),
            ("0.5", Some(500_000)),
            ("99.123456", Some(99_123_456)),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("1.1234567", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(micro_dollars(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_flags_of_the_chart_are_understood() {
        let line = "hpc-operator --installation-id=lab --watch-namespaces=a,b --max-instances=5 \
                    --max-hourly-cost=20 --dry-run --lease-name=l --lease-namespace=n \
                    --bind=127.0.0.1:0 --simulated-fabric=tcp --agent-timeout-seconds=6 \
                    --boot-timeout-seconds=7";
        let command = Command::parse_from(line.split_whitespace());
        assert_eq!(command.config.namespaces(), ["a", "b"]);
        let settings = command.config.settings();
        assert_eq!((settings.max_instances, settings.max_hourly_cost), (5, 20_000_000));
        assert!(Command::try_parse_from(["hpc-operator", "--installation-id", "Lab_1"]).is_err());
    }
}
