//! `RunInstances` as asked for: the parameters, read and nothing more.

use std::net::Ipv4Addr;

use super::tags::TagSpecifications;
use crate::ledger::Kind;
use crate::wire::{ApiError, Params};

/// One `NetworkInterface.N`.
#[derive(Debug, Clone, Default)]
pub struct NicRequest {
    /// Device index on its card.
    pub device: Option<u32>,
    /// Network card.
    pub card: u32,
    /// Type name.
    pub interface_type: Option<String>,
    /// Subnet.
    pub subnet_id: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// An existing interface.
    pub existing: Option<String>,
    /// A public address.
    pub public: Option<bool>,
    /// Goes with the instance.
    pub delete_on_termination: Option<bool>,
    /// A wanted address.
    pub private_ip: Option<Ipv4Addr>,
    /// For people.
    pub description: Option<String>,
}

/// One `BlockDeviceMapping.N`.
#[derive(Debug, Clone)]
pub struct DiskRequest {
    /// Device name.
    pub device: String,
    /// GiB.
    pub size: Option<u32>,
    /// `gp3`, …
    pub volume_type: Option<String>,
    /// At rest.
    pub encrypted: Option<bool>,
    /// Goes with the instance.
    pub delete_on_termination: Option<bool>,
}

/// `Placement`.
#[derive(Debug, Clone, Default)]
pub struct PlacementRequest {
    /// Group name.
    pub group_name: Option<String>,
    /// Group id.
    pub group_id: Option<String>,
    /// Zone.
    pub zone: Option<String>,
    /// `default` or `dedicated`.
    pub tenancy: Option<String>,
}

/// `MetadataOptions`.
#[derive(Debug, Clone, Default)]
pub struct MetadataRequest {
    /// `HttpTokens`.
    pub tokens: Option<String>,
    /// `HttpPutResponseHopLimit`.
    pub hop_limit: Option<u32>,
    /// `HttpEndpoint`.
    pub endpoint: Option<String>,
    /// `InstanceMetadataTags`.
    pub tags: Option<String>,
}

/// The whole request, without its token.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    /// `MinCount`.
    pub min: u32,
    /// `MaxCount`.
    pub max: u32,
    /// Image.
    pub image_id: String,
    /// Type.
    pub instance_type: String,
    /// Key pair.
    pub key_name: Option<String>,
    /// Top-level subnet.
    pub subnet_id: Option<String>,
    /// Top-level groups.
    pub groups: Vec<String>,
    /// Top-level address.
    pub private_ip: Option<Ipv4Addr>,
    /// Base64.
    pub user_data: Option<String>,
    /// Interfaces.
    pub nics: Vec<NicRequest>,
    /// Disks.
    pub disks: Vec<DiskRequest>,
    /// Profile: (ARN, name).
    pub profile: Option<(Option<String>, Option<String>)>,
    /// Placement.
    pub placement: PlacementRequest,
    /// IMDS.
    pub metadata: MetadataRequest,
    /// (cores, threads per core).
    pub cpu: Option<(Option<u32>, Option<u32>)>,
    /// `stop` or `terminate`.
    pub shutdown: Option<String>,
    /// `spot`, when asked.
    pub market: Option<String>,
    /// Termination protection.
    pub protected: bool,
    /// Tags by resource.
    pub tags: TagSpecifications,
}

/// Kinds a launch may tag.
const TAGGABLE: [Kind; 3] = [Kind::Instance, Kind::Volume, Kind::NetworkInterface];

/// Reads the request and its token.
pub fn read(params: Params) -> Result<(LaunchRequest, Option<String>), ApiError> {
    params.read(|p| {
        let token = p.text("ClientToken")?;
        ignore_harmless(p)?;
        let request = LaunchRequest {
            min: p.number("MinCount")?.ok_or_else(|| ApiError::missing("MinCount"))?,
            max: p.number("MaxCount")?.ok_or_else(|| ApiError::missing("MaxCount"))?,
            image_id: p.required("ImageId")?,
            instance_type: p.required("InstanceType")?,
            key_name: p.text("KeyName")?,
            subnet_id: p.text("SubnetId")?,
            groups: p.texts("SecurityGroupId")?,
            private_ip: p.number("PrivateIpAddress")?,
            user_data: p.text("UserData")?,
            nics: p.list("NetworkInterface", read_nic)?,
            disks: p.list("BlockDeviceMapping", read_disk)?,
            profile: p
                .structure("IamInstanceProfile", |s| Ok((s.text("Arn")?, s.text("Name")?)))?,
            placement: p.structure("Placement", read_placement)?.unwrap_or_default(),
            metadata: p.structure("MetadataOptions", read_metadata)?.unwrap_or_default(),
            cpu: p.structure("CpuOptions", |s| {
                Ok((s.number("CoreCount")?, s.number("ThreadsPerCore")?))
            })?,
            shutdown: p.text("InstanceInitiatedShutdownBehavior")?,
            market: read_market(p)?,
            protected: p.flag("DisableApiTermination")?.unwrap_or(false),
            tags: TagSpecifications::read(p, &TAGGABLE)?,
        };
        Ok((request, token))
    })
}

/// Parameters that change nothing the simulator shows.
fn ignore_harmless(p: &mut Params) -> Result<(), ApiError> {
    p.flag("EbsOptimized")?;
    p.structure("Monitoring", |s| s.flag("Enabled"))?;
    Ok(())
}

fn read_nic(p: &mut Params) -> Result<NicRequest, ApiError> {
    Ok(NicRequest {
        device: p.number("DeviceIndex")?,
        card: p.number("NetworkCardIndex")?.unwrap_or(0),
        interface_type: p.text("InterfaceType")?,
        subnet_id: p.text("SubnetId")?,
        groups: p.texts("SecurityGroupId")?,
        existing: p.text("NetworkInterfaceId")?,
        public: p.flag("AssociatePublicIpAddress")?,
        delete_on_termination: p.flag("DeleteOnTermination")?,
        private_ip: p.number("PrivateIpAddress")?,
        description: p.text("Description")?,
    })
}

fn read_disk(p: &mut Params) -> Result<DiskRequest, ApiError> {
    let device = p.required("DeviceName")?;
    let disk = p.structure("Ebs", |s| {
        s.number::<u32>("Iops")?;
        s.number::<u32>("Throughput")?;
        Ok(DiskRequest {
            device: String::new(),
            size: s.number("VolumeSize")?,
            volume_type: s.text("VolumeType")?,
            encrypted: s.flag("Encrypted")?,
            delete_on_termination: s.flag("DeleteOnTermination")?,
        })
    })?;
    let disk = disk.ok_or_else(|| ApiError::missing("Ebs"))?;
    Ok(DiskRequest { device, ..disk })
}

fn read_placement(p: &mut Params) -> Result<PlacementRequest, ApiError> {
    Ok(PlacementRequest {
        group_name: p.text("GroupName")?,
        group_id: p.text("GroupId")?,
        zone: p.text("AvailabilityZone")?,
        tenancy: p.text("Tenancy")?,
    })
}

fn read_metadata(p: &mut Params) -> Result<MetadataRequest, ApiError> {
    Ok(MetadataRequest {
        tokens: p.text("HttpTokens")?,
        hop_limit: p.number("HttpPutResponseHopLimit")?,
        endpoint: p.text("HttpEndpoint")?,
        tags: p.text("InstanceMetadataTags")?,
    })
}

fn read_market(p: &mut Params) -> Result<Option<String>, ApiError> {
    let market = p.structure("InstanceMarketOptions", |s| {
        s.structure("SpotOptions", |spot| {
            spot.text("MaxPrice")?;
            spot.text("SpotInstanceType")?;
            spot.text("InstanceInterruptionBehavior")
        })?;
        s.text("MarketType")
    })?;
    Ok(market.flatten())
}
