//! `CreateFileSystem` as asked for.

use serde::{Deserialize, Serialize};

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Tag {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// The request. Members the simulator does not act on are unknown to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct CreateRequest {
    /// Token.
    pub client_request_token: Option<String>,
    /// `LUSTRE`.
    pub file_system_type: String,
    /// GiB.
    pub storage_capacity: Option<u64>,
    /// `SSD` or `HDD`.
    pub storage_type: Option<String>,
    /// Exactly one for Lustre.
    pub subnet_ids: Vec<String>,
    /// Groups of its interfaces.
    #[serde(default)]
    pub security_group_ids: Vec<String>,
    /// Tags.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// `2.10`, `2.12` or `2.15`.
    pub file_system_type_version: Option<String>,
    /// Lustre's own.
    pub lustre_configuration: Option<LustreRequest>,
}

/// `LustreConfiguration`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct LustreRequest {
    /// Default `SCRATCH_1`.
    pub deployment_type: Option<String>,
    /// MB/s per TiB.
    pub per_unit_storage_throughput: Option<u64>,
    /// `NONE` or `LZ4`.
    pub data_compression_type: Option<String>,
    /// EFA to the file system.
    pub efa_enabled: Option<bool>,
    /// `d:HH:MM`.
    pub weekly_maintenance_start_time: Option<String>,
    /// 0 to 90.
    pub automatic_backup_retention_days: Option<u32>,
    /// `HH:MM`.
    pub daily_automatic_backup_start_time: Option<String>,
    /// Tags onto backups.
    pub copy_tags_to_backups: Option<bool>,
    /// Metadata performance.
    pub metadata_configuration: Option<MetadataRequest>,
}

/// `MetadataConfiguration`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct MetadataRequest {
    /// `AUTOMATIC` or `USER_PROVISIONED`.
    pub mode: String,
    /// IOPS.
    pub iops: Option<u64>,
}

impl CreateRequest {
    /// Lustre's own, empty when absent.
    pub fn lustre(&self) -> LustreRequest {
        self.lustre_configuration.clone().unwrap_or_default()
    }

    /// The version it gets: 2.10 unless asked or needed otherwise.
    pub fn version(&self) -> String {
        let lustre = self.lustre();
        let default = match (lustre.deployment_type(), &lustre.metadata_configuration) {
            ("PERSISTENT_2", Some(_)) => "2.15",
            ("PERSISTENT_2", None) => "2.12",
            (_, _) => "2.10",
        };
        self.file_system_type_version.clone().unwrap_or_else(|| default.to_owned())
    }
}

impl LustreRequest {
    /// FSx's own default is the first generation.
    pub fn deployment_type(&self) -> &str {
        self.deployment_type.as_deref().unwrap_or("SCRATCH_1")
    }
}
