//! FSx for Lustre: scratch and persistent file systems and their life cycle.

mod actions;
mod check;
mod create;
mod request;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use actions::{fail, handle_event};
pub use request::CreateRequest;

use crate::call::Call;
use crate::clock::epoch;
use crate::ledger::Kind;
use crate::wire::ApiError;

/// FSx of one account in one region.
#[derive(Debug, Default)]
pub struct Fsx {
    /// File systems by id.
    pub file_systems: BTreeMap<String, FileSystem>,
    /// Messages of the next file systems that will fail.
    pub failures: Vec<String>,
    tokens: BTreeMap<String, Spent>,
}

/// What a token was used for.
#[derive(Debug, Clone)]
struct Spent {
    digest: [u8; 32],
    file_system_id: String,
}

/// Life cycle of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifecycle {
    /// Being made.
    Creating,
    /// Usable.
    Available,
    /// Never will be, or no longer is.
    Failed,
    /// Going.
    Deleting,
}

impl Lifecycle {
    /// FSx's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Available => "AVAILABLE",
            Self::Failed => "FAILED",
            Self::Deleting => "DELETING",
        }
    }
}

/// One file system.
#[derive(Debug, Clone)]
pub struct FileSystem {
    /// `fs-…`.
    pub id: String,
    /// As asked.
    pub request: CreateRequest,
    /// GiB.
    pub capacity_gib: u64,
    /// At most 8 characters.
    pub mount_name: String,
    /// Its interfaces; they pin the security groups.
    pub interfaces: Vec<String>,
    /// Now.
    pub lifecycle: Lifecycle,
    /// Why it failed.
    pub failure: Option<String>,
    /// What will happen instead of AVAILABLE.
    pub fate: Option<String>,
    /// When the create call took effect.
    pub created_at: Timestamp,
    /// From when lists show it.
    pub visible_at: Timestamp,
}

impl FileSystem {
    /// The name clients mount.
    pub fn dns_name(&self, region: &str) -> String {
        format!("{}.fsx.{region}.amazonaws.com", self.id)
    }
}

type Action = fn(&mut Call<'_>, &Value) -> Result<Value, ApiError>;

const ACTIONS: [(&str, Action); 5] = [
    ("CreateFileSystem", create::create),
    ("DeleteFileSystem", actions::delete),
    ("DescribeFileSystems", actions::describe),
    ("ListTagsForResource", actions::list_tags),
    ("TagResource", actions::tag),
];

/// Names of the actions.
pub fn actions() -> Vec<&'static str> {
    ACTIONS.iter().map(|(name, _)| *name).collect()
}

/// Performs an FSx action.
pub fn perform(call: &mut Call<'_>, action: &str, request: &Value) -> Result<Value, ApiError> {
    let run = ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, run)| run);
    let run = run.ok_or_else(|| ApiError::client("UnknownOperationException", ""))?;
    run(call, request)
}

/// The description of a file system.
pub fn render(call: &Call<'_>, fs: &FileSystem) -> Value {
    let tags = call.tags(Kind::FileSystem, &fs.id);
    let tags: Vec<Value> =
        tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
    let mut row = json!({
        "OwnerId": call.account.id,
        "CreationTime": epoch(fs.created_at),
        "FileSystemId": fs.id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": fs.request.version(),
        "Lifecycle": fs.lifecycle.name(),
        "StorageCapacity": fs.capacity_gib,
        "StorageType": fs.request.storage_type.as_deref().unwrap_or("SSD"),
        "VpcId": call.region.ec2.network.vpc_id,
        "SubnetIds": fs.request.subnet_ids,
        "NetworkInterfaceIds": fs.interfaces,
        "DNSName": fs.dns_name(&call.region.name),
        "ResourceARN": arn(call, &fs.id),
        "Tags": tags,
        "LustreConfiguration": render_lustre(fs),
    });
    if let (Some(message), Some(members)) = (&fs.failure, row.as_object_mut()) {
        members.insert("FailureDetails".to_owned(), json!({"Message": message}));
    }
    row
}

fn render_lustre(fs: &FileSystem) -> Value {
    let lustre = fs.request.lustre();
    let mut row = json!({
        "DeploymentType": lustre.deployment_type(),
        "MountName": fs.mount_name,
        "WeeklyMaintenanceStartTime":
            lustre.weekly_maintenance_start_time.as_deref().unwrap_or("1:05:00"),
        "DataCompressionType": lustre.data_compression_type.as_deref().unwrap_or("NONE"),
        "CopyTagsToBackups": lustre.copy_tags_to_backups.unwrap_or(false),
        "AutomaticBackupRetentionDays": lustre.automatic_backup_retention_days.unwrap_or(0),
    });
    if let Some(members) = row.as_object_mut() {
        if let Some(throughput) = lustre.per_unit_storage_throughput {
            members.insert("PerUnitStorageThroughput".to_owned(), json!(throughput));
        }
        if let Some(efa) = lustre.efa_enabled {
            members.insert("EfaEnabled".to_owned(), json!(efa));
        }
    }
    row
}

/// ARN of a file system.
pub fn arn(call: &Call<'_>, id: &str) -> String {
    call.arn("fsx", &format!("file-system/{id}"))
}

/// What FSx says about a file system it does not know.
pub fn not_found(id: &str) -> ApiError {
    ApiError::client("FileSystemNotFound", format!("File system '{id}' does not exist."))
}
