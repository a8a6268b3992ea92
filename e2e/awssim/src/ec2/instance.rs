//! One instance and what it is at a moment.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::Ec2;
use crate::machine::RoleCredentials;
use crate::wire::ApiError;

/// State of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// Launched, not yet running.
    Pending,
    /// Running.
    Running,
    /// Going.
    ShuttingDown,
    /// Gone, still shown.
    Terminated,
    /// Stopped by its own shutdown.
    Stopped,
}

impl InstanceState {
    /// EC2's name and code.
    pub fn wire(self) -> (&'static str, u32) {
        match self {
            Self::Pending => ("pending", 0),
            Self::Running => ("running", 16),
            Self::ShuttingDown => ("shutting-down", 32),
            Self::Terminated => ("terminated", 48),
            Self::Stopped => ("stopped", 80),
        }
    }
}

/// State of an instance's SSM agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Never heard of.
    Unregistered,
    /// Never heard of, and a test wants it to stay so.
    Barred,
    /// Online since then.
    Online(Timestamp),
    /// Was online, last heard of then.
    Lost(Timestamp),
}

/// A reason to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// `StateReason.Code`, for example `Server.InternalError`.
    pub code: String,
    /// `StateReason.Message`.
    pub message: String,
}

/// One instance.
#[derive(Debug, Clone)]
#[expect(clippy::struct_field_names, reason = "the fields have EC2's names")]
pub struct Instance {
    /// `i-…`.
    pub id: String,
    /// `r-…`.
    pub reservation_id: String,
    /// Position in the reservation.
    pub launch_index: u32,
    /// Image.
    pub image_id: String,
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Subnet of the primary interface.
    pub subnet_id: String,
    /// Address of the primary interface.
    pub private_ip: Ipv4Addr,
    /// Key pair.
    pub key_name: Option<String>,
    /// Instance profile name.
    pub profile: Option<String>,
    /// Name of its placement group.
    pub placement_group: Option<String>,
    /// Token of the launch.
    pub client_token: Option<String>,
    /// Raw user data.
    pub user_data: Option<Vec<u8>>,
    /// IMDS options.
    pub metadata: Metadata,
    /// What its own shutdown does.
    pub terminates_on_shutdown: bool,
    /// `DisableApiTermination`.
    pub protected: bool,
    /// `on-demand` or `spot`.
    pub market: &'static str,
    /// Cores and threads per core.
    pub cpu: (u32, u32),
    /// Interfaces, primary first.
    pub interfaces: Vec<String>,
    /// Volumes attached to it, the root first.
    pub volumes: Vec<String>,
    /// Architecture of its image.
    pub architecture: &'static str,
    /// Root device name.
    pub root_device: String,
    /// When the launch took effect.
    pub launched_at: Timestamp,
    /// From when a Describe shows it.
    pub visible_at: Timestamp,
    /// From when other calls may name it.
    pub usable_at: Timestamp,
    /// From when its address is told.
    pub address_at: Timestamp,
    /// From when its status checks are ok.
    pub status_ok_at: Timestamp,
    /// What a test wants its status checks and its events to say.
    pub health: Health,
    /// Now.
    pub state: InstanceState,
    /// Why it goes or went.
    pub reason: Option<Fate>,
    /// `StateTransitionReason`.
    pub transition: String,
    /// What happens instead of running.
    pub fate: Option<Fate>,
    /// SSM agent.
    pub agent: Agent,
    /// Whether a body was made for it.
    pub has_body: bool,
    /// What IMDS hands out.
    pub credentials: Option<RoleCredentials>,
}

/// What a test wants `DescribeInstanceStatus` to say of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Since when its checks fail.
    pub impaired_since: Option<Timestamp>,
    /// What AWS is going to do to it: code, description and time.
    pub event: Option<(String, String, Timestamp)>,
}

/// IMDS options of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// `optional` or `required`.
    pub tokens: String,
    /// 1 to 64.
    pub hop_limit: u32,
    /// `enabled` or `disabled`.
    pub endpoint: String,
    /// `enabled` or `disabled`.
    pub tags: String,
}

impl Instance {
    /// Whether it still takes a place: not terminated.
    pub fn is_alive(&self) -> bool {
        self.state != InstanceState::Terminated
    }

    /// Whether it can run anything.
    pub fn is_up(&self) -> bool {
        self.state == InstanceState::Running
    }

    /// EC2's private DNS name.
    pub fn hostname(&self, region: &str) -> String {
        let dashed = self.private_ip.to_string().replace('.', "-");
        if region == "us-east-1" {
            format!("ip-{dashed}.ec2.internal")
        } else {
            format!("ip-{dashed}.{region}.compute.internal")
        }
    }
}

impl Ec2 {
    /// The instance, once other calls may name it.
    pub fn instance(&self, id: &str, now: Timestamp) -> Result<&Instance, ApiError> {
        check_id(id)?;
        self.instances
            .get(id)
            .filter(|instance| instance.usable_at <= now)
            .ok_or_else(|| not_found(&[id]))
    }
}

/// Whether an id has the shape of one.
pub fn check_id(id: &str) -> Result<(), ApiError> {
    let hex = id.strip_prefix("i-").unwrap_or_default();
    let shaped = [8, 17].contains(&hex.len()) && hex.chars().all(|c| c.is_ascii_hexdigit());
    if shaped {
        return Ok(());
    }
    Err(ApiError::client("InvalidInstanceID.Malformed", format!("Invalid id: \"{id}\"")))
}

/// What EC2 says about ids it does not know.
pub fn not_found(ids: &[&str]) -> ApiError {
    let text = match ids {
        [id] => format!("The instance ID '{id}' does not exist"),
        many => format!("The instance IDs '{}' do not exist", many.join(", ")),
    };
    ApiError::client("InvalidInstanceID.NotFound", text)
}
