//! The command line: limits and waits of the installation.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use hpc_plan::cluster::Settings;

/// Turns HPCCluster and BenchmarkRun objects into clusters and results.
#[derive(Debug, Parser)]
#[command(name = "hpc-operator", version)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Cli {
    /// What to do instead of operating.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to operate.
    #[command(flatten)]
    pub flags: Option<Flags>,
}

/// What the binary does beside operating.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the custom resource definitions.
    Crds,
}

/// Flags of the operator.
#[derive(Clone, Debug, Args)]
pub struct Flags {
    /// Names this installation in the tags of everything it makes; never changed later.
    #[arg(long, value_parser = installation)]
    pub installation_id: String,
    /// Namespaces to serve, separated by commas; empty is all.
    #[arg(long, value_delimiter = ',', default_value = "")]
    pub watch_namespaces: Vec<String>,
    /// Most instances over all clusters, heads included.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(0..))]
    pub max_instances: i64,
    /// Most US dollars per hour over all clusters, heads included.
    #[arg(long, default_value = "100", value_parser = micro_dollars)]
    pub max_hourly_cost: i64,
    /// Plan and report, change nothing in AWS.
    #[arg(long)]
    pub dry_run: bool,
    /// Name of the lease that makes one process at a time the operator.
    #[arg(long, default_value = "hpc-operator")]
    pub lease_name: String,
    /// Namespace of the lease; empty is the pod's own.
    #[arg(long, default_value = "")]
    pub lease_namespace: String,
    /// Address of /livez, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub bind: SocketAddr,
    /// Libfabric provider that stands in for EFA in a laboratory; empty on AWS.
    #[arg(long, default_value = "")]
    pub simulated_fabric: String,
    /// How long the SSM agent of a head may take to come online.
    #[arg(long, default_value_t = 600)]
    pub agent_timeout_seconds: u64,
    /// How long a node may take to boot.
    #[arg(long, default_value_t = 1200)]
    pub boot_timeout_seconds: u64,
    /// How long AWS may hide what it has made.
    #[arg(long, default_value_t = 30)]
    pub visibility_window_seconds: u64,
    /// How long a token is looked up before its attempt is given up.
    #[arg(long, default_value_t = 300)]
    pub lookup_window_seconds: u64,
    /// First wait after a refusal for lack of capacity; doubles to ten minutes.
    #[arg(long, default_value_t = 30)]
    pub capacity_backoff_seconds: u64,
    /// Between the two clean observations that let an object go.
    #[arg(long, default_value_t = 5)]
    pub finalizer_gap_seconds: u64,
    /// How often a steady cluster is looked at.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub fleet_sweep_seconds: u64,
    /// How often jobs under way are asked for.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub job_poll_seconds: u64,
    /// How often the jobs of a queue that can grow are asked what they want.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub demand_poll_seconds: u64,
    /// How often EC2 is asked which machines are sick or about to be taken.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub status_poll_seconds: u64,
    /// Identity of this process for the lease.
    #[arg(long, env = "POD_NAME", default_value = "hpc-operator", hide = true)]
    pub pod_name: String,
}

impl Flags {
    /// What the planner is told.
    pub fn settings(&self) -> Settings {
        Settings {
            installation: self.installation_id.clone(),
            max_instances: self.max_instances,
            max_hourly_cost: self.max_hourly_cost,
            dry_run: self.dry_run,
            simulated_fabric: self.simulated_fabric.clone(),
            agent_timeout: Duration::from_secs(self.agent_timeout_seconds),
            boot_timeout: Duration::from_secs(self.boot_timeout_seconds),
            visibility_window: Duration::from_secs(self.visibility_window_seconds),
            lookup_window: Duration::from_secs(self.lookup_window_seconds),
            capacity_backoff: Duration::from_secs(self.capacity_backoff_seconds),
            demand_poll: Duration::from_secs(self.demand_poll_seconds),
            status_poll: Duration::from_secs(self.status_poll_seconds),
            finalizer_gap: Duration::from_secs(self.finalizer_gap_seconds),
        }
    }

    /// The namespaces served; none is all.
    pub fn namespaces(&self) -> Vec<String> {
        let named = self.watch_namespaces.iter().map(|name| name.trim());
        named.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// The id becomes part of tags, names and paths.
fn installation(text: &str) -> Result<String, String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.is_empty() || text.len() > 32 || !text.bytes().all(allowed) {
        return Err("use 1 to 32 lower-case letters, digits and dashes".to_owned());
    }
    Ok(text.to_owned())
}

/// Dollars as a decimal, read without rounding: at most six decimals.
fn micro_dollars(text: &str) -> Result<i64, String> {
    let wrong = || "use US dollars such as 100 or 99.50".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: i64 = whole.parse().map_err(|_overflow| wrong())?;
    let part: i64 = format!("{part:0<6}").parse().map_err(|_overflow| wrong())?;
    whole.checked_mul(1_000_000).and_then(|micro| micro.checked_add(part)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["hpc-operator"], arguments].concat())
    }

    #[test]
    fn dollars_become_micro_dollars_without_rounding() {
        for (text, expected) in [
            ("100", Some(100_000_000)),
            ("0.1", Some(100_000)),
            ("99.50", Some(99_500_000)),
            ("0.000001", Some(1)),
            ("", None),
            ("-1", None),
            ("1e3", None),
            (".5", None),
            ("1.0000001", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(micro_dollars(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_design() {
        let flags = parse(&["--installation-id=lab"]).unwrap().flags.unwrap();
        let settings = Settings { installation: "lab".to_owned(), ..Settings::default() };
        assert_eq!(flags.settings(), settings);
        assert_eq!(flags.namespaces(), Vec::<String>::new());
    }

    #[test]
    fn namespaces_are_a_list_and_the_installation_is_required_to_operate() {
        let flags = parse(&["--installation-id=lab", "--watch-namespaces=a,b"]).unwrap().flags;
        assert_eq!(flags.unwrap().namespaces(), ["a", "b"]);
        assert!(matches!(parse(&["crds"]).unwrap().command, Some(Command::Crds)));
        assert!(parse(&["--installation-id=Lab_1"]).is_err());
        assert!(parse(&[]).is_err_and(|error| error.to_string().contains("--installation-id")));
    }
}
