//! The seam between simulated AWS and the machine it runs on.
//!
//! The simulator decides *when* an instance boots, runs a command or dies; a
//! [`Machines`] decides *how*. The host in turn asks the simulator, through
//! [`HostView`], for everything a real machine would learn from AWS.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

/// What a simulated instance needs from the machine it runs on.
#[async_trait]
pub trait Machines: Send + Sync {
    /// Starts a body. Returns when its init runs; the boot (user data, agent)
    /// goes on inside, and the body tells [`HostView::agent_online`] when its
    /// agent is up.
    async fn start(&self, body: BodySpec) -> Result<(), MachineError>;

    /// Runs one Run Command script as root inside the body. At
    /// [`Command::timeout`] the process group gets SIGKILL. Dropping the
    /// returned future kills the process group as well (`CancelCommand`).
    async fn exec(&self, instance_id: &str, command: Command) -> Result<ExecOutput, MachineError>;

    /// Kills the PID namespace and removes the network namespace. Idempotent:
    /// an unknown id is `Ok`.
    async fn kill(&self, instance_id: &str) -> Result<(), MachineError>;

    /// Ids of the instances whose body lives now.
    fn running(&self) -> Vec<String>;

    /// Process on this machine that is PID 1 of a body.
    fn pid(&self, instance_id: &str) -> Option<i32>;
}

/// Makes the machines of a simulator, given the view they may ask questions to.
pub type MachinesFactory = Box<dyn FnOnce(Arc<dyn HostView>) -> Arc<dyn Machines> + Send>;

/// Why a machine could not do what the simulator asked.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The body is not (or no longer) there.
    #[error("no body runs for {instance_id}")]
    NoBody {
        /// The instance asked for.
        instance_id: String,
    },
    /// The host could not do one named step.
    #[error("{step} failed for {instance_id}: {message}")]
    Failed {
        /// The instance asked for.
        instance_id: String,
        /// What was tried, in one or two words.
        step: String,
        /// The last words of the tool or call that failed.
        message: String,
    },
    /// An operating-system call failed.
    #[error("{step} failed for {instance_id}")]
    Io {
        /// The instance asked for.
        instance_id: String,
        /// What was tried.
        step: &'static str,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// Everything a body needs to start.
#[derive(Debug, Clone)]
pub struct BodySpec {
    /// `i-…`.
    pub instance_id: String,
    /// The 12-digit account.
    pub account: String,
    /// `ami-…`.
    pub image_id: String,
    /// Name of the image; the host chooses an image profile by it.
    pub image_name: String,
    /// For example `c5n.18xlarge`.
    pub instance_type: String,
    /// Hardware threads of the type.
    pub vcpus: u32,
    /// Physical cores of the type.
    pub cores: u32,
    /// Memory of the type in MiB.
    pub memory_mib: u64,
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// For example `us-east-1`.
    pub region: String,
    /// For example `us-east-1a`.
    pub availability_zone: String,
    /// Primary private address.
    pub private_ip: Ipv4Addr,
    /// Subnet of the primary interface, for example `10.0.0.0/20`.
    pub subnet_cidr: String,
    /// EC2's private DNS name, for example `ip-10-0-0-10.ec2.internal`.
    pub hostname: String,
    /// Position within the reservation, from 0.
    pub launch_index: u32,
    /// `r-…`.
    pub reservation_id: String,
    /// Raw (decoded) user data.
    pub user_data: Option<Vec<u8>>,
    /// Tags of the instance.
    pub tags: Vec<(String, String)>,
    /// Whether the launch asked for `InstanceMetadataTags=enabled`.
    pub metadata_tags: bool,
    /// ARN of the instance profile, if any.
    pub profile_arn: Option<String>,
    /// Role credentials that IMDS hands out; present when there is a profile.
    pub credentials: Option<RoleCredentials>,
    /// All interfaces, the primary first.
    pub network_interfaces: Vec<BodyInterface>,
    /// Where the simulator listens on the host. A body with its own network
    /// reaches it through whatever the host puts at its gateway.
    pub endpoint_url: String,
}

/// One network interface of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyInterface {
    /// `eni-…`.
    pub id: String,
    /// For example `02:00:0a:00:00:0a`.
    pub mac: String,
    /// `None` for `efa-only`.
    pub private_ip: Option<Ipv4Addr>,
    /// `subnet-…`.
    pub subnet_id: String,
    /// Security group ids.
    pub groups: Vec<String>,
    /// `interface`, `efa` or `efa-only`.
    pub interface_type: String,
    /// Network card.
    pub card: u32,
    /// Device index on that card.
    pub device: u32,
}

/// What IMDS answers under `iam/security-credentials/<role>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleCredentials {
    /// Role (here: profile) name.
    pub role: String,
    /// Begins with `ASIA`; the simulator knows it as a key of the account.
    pub access_key_id: String,
    /// Any secret: signatures are not verified.
    pub secret_access_key: String,
    /// Session token.
    pub token: String,
}

/// One script to run as root in a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The Run Command id; the agent exports it as `SSM_COMMAND_ID`.
    pub command_id: String,
    /// Shell text, run by `sh` (a shebang in its first line is honoured).
    pub script: String,
    /// Extra environment.
    pub environment: Vec<(String, String)>,
    /// `workingDirectory`, if given.
    pub working_directory: Option<String>,
    /// SIGKILL after this.
    pub timeout: Duration,
}

/// How a script ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// It exited by itself with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was killed at its timeout.
    TimedOut,
}

/// What a script left. Whole streams: the simulator cuts them as SSM does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub end: ExecEnd,
    /// Standard output (the host may stop keeping it after 1 MiB).
    pub stdout: Vec<u8>,
    /// Standard error (the host may stop keeping it after 1 MiB).
    pub stderr: Vec<u8>,
}

/// A Lustre file system that may be mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystemDir {
    /// `fs-…`.
    pub file_system_id: String,
    /// Folder on the host that holds its data, owned by root, 0755, as a new
    /// file system is. All bodies of the account share it.
    pub path: PathBuf,
    /// Capacity in GiB.
    pub capacity_gib: u64,
}

/// A volume attached to an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedVolume {
    /// `vol-…`; the `NVMe` serial is this without the dash.
    pub volume_id: String,
    /// As asked at attach, for example `/dev/sdf`.
    pub device: String,
    /// Size in GiB.
    pub size_gib: u64,
    /// Sparse file on the host with the volume's blocks; survives detach and
    /// replacement of the instance, goes with the volume.
    pub backing_file: PathBuf,
    /// Whether it is the root volume (which a body does not need).
    pub is_root: bool,
}

/// What the host may ask the simulator.
pub trait HostView: Send + Sync {
    /// The instance metadata at `path` (for example `latest/meta-data/mac` or
    /// `latest/dynamic/instance-identity/document`); `None` answers 404.
    fn imds(&self, instance_id: &str, path: &str) -> Option<String>;

    /// Whether this instance can mount this Lustre file system now: it is
    /// AVAILABLE and TCP 988 and 1018-1023 are open. `Err` says what a client
    /// would see.
    fn may_mount_lustre(
        &self,
        instance_id: &str,
        dns_name: &str,
        mount_name: &str,
    ) -> Result<FileSystemDir, String>;

    /// Whether TCP 2049 is open from this instance to that address; gives the
    /// server's instance id.
    fn may_mount_nfs(&self, instance_id: &str, server: IpAddr) -> Result<String, String>;

    /// Volumes attached to the instance now.
    fn volumes(&self, instance_id: &str) -> Vec<AttachedVolume>;

    /// The operating system of the instance shut itself down.
    fn shutdown(&self, instance_id: &str);

    /// The SSM agent of the instance has started and has credentials.
    fn agent_online(&self, instance_id: &str);

    /// Address and port the simulator listens on.
    fn endpoint(&self) -> std::net::SocketAddr;
}
