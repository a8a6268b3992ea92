//! Making single things: interface, volume, file system, document.

use aws_sdk_ec2::types::{ResourceType, VolumeType};
use aws_sdk_fsx::types::{
    CreateFileSystemLustreConfiguration, FileSystemType, LustreDeploymentType, StorageType,
};
use aws_sdk_ssm::types::{DocumentFormat, DocumentType, ParameterType};
use hpc_plan::cloud::{Kind, Tags, Token};
use hpc_plan::cluster::{FileSystemBody, InterfaceBody, VolumeBody};

use super::Made;
use crate::Scope;
use crate::action::{
    CREATE_DOCUMENT, CREATE_FILE_SYSTEM, CREATE_NETWORK_INTERFACE, CREATE_VOLUME, PUT_PARAMETER,
};
use crate::error::failure;
use crate::region::Region;
use crate::words;

pub(super) async fn interface(region: &Region, token: &Token, body: &InterfaceBody) -> Made {
    let request = region
        .ec2
        .create_network_interface()
        .client_token(token.as_str())
        .subnet_id(body.subnet.as_str())
        .set_groups(Some(body.groups.iter().map(|id| id.0.clone()).collect()))
        .description(&body.description)
        .tag_specifications(words::tagged(ResourceType::NetworkInterface, &body.tags));
    let answer = region.call(&CREATE_NETWORK_INTERFACE, || request.clone().send()).await?;
    let made = answer.network_interface.and_then(|made| made.network_interface_id);
    Ok(made.into_iter().collect())
}

pub(super) async fn volume(region: &Region, token: &Token, body: &VolumeBody) -> Made {
    let request = region
        .ec2
        .create_volume()
        .client_token(token.as_str())
        .availability_zone(&body.zone)
        .size(body.size_gib)
        .volume_type(VolumeType::Gp3)
        .encrypted(true)
        .tag_specifications(words::tagged(ResourceType::Volume, &body.tags));
    let answer = region.call(&CREATE_VOLUME, || request.clone().send()).await?;
    Ok(answer.volume_id.into_iter().collect())
}

pub(super) async fn file_system(region: &Region, token: &Token, body: &FileSystemBody) -> Made {
    let lustre = CreateFileSystemLustreConfiguration::builder()
        .deployment_type(LustreDeploymentType::from(body.deployment_type.as_str()))
        .set_per_unit_storage_throughput(body.per_unit_throughput)
        .build();
    let request = region
        .fsx
        .create_file_system()
        .client_request_token(token.as_str())
        .file_system_type(FileSystemType::Lustre)
        .file_system_type_version(&body.version)
        .storage_type(StorageType::Ssd)
        .storage_capacity(body.capacity_gib)
        .subnet_ids(body.subnet.as_str())
        .set_security_group_ids(Some(body.groups.iter().map(|id| id.0.clone()).collect()))
        .lustre_configuration(lustre)
        .set_tags(Some(words::fsx_tags(&body.tags)));
    let answer = region.call(&CREATE_FILE_SYSTEM, || request.clone().send()).await?;
    Ok(answer.file_system.and_then(|made| made.file_system_id).into_iter().collect())
}

/// Tells a head something: the name is the key, the last text counts.
pub(super) async fn answer(region: &Region, scope: &Scope, name: &str, text: &str) -> Made {
    if !scope.owner.may_tell(name) {
        let message = format!("{name} is not a parameter of {}", scope.owner.full_name());
        return Err(failure(&PUT_PARAMETER, Kind::Denied, "NotOurs", &message));
    }
    let request = region.ssm.put_parameter().name(name).value(text);
    let request = request.r#type(ParameterType::String).overwrite(true);
    region.call(&PUT_PARAMETER, || request.clone().send()).await?;
    Ok(vec![name.to_owned()])
}

/// The name carries the installation and the hash of the content: one that is taken is ours and
/// says the same.
pub(super) async fn document(region: &Region, name: &str, content: &str, tags: &Tags) -> Made {
    let request = region
        .ssm
        .create_document()
        .name(name)
        .content(content)
        .document_type(DocumentType::Command)
        .document_format(DocumentFormat::Json)
        .target_type("/AWS::EC2::Instance")
        .set_tags(Some(words::ssm_tags(tags)));
    match region.call(&CREATE_DOCUMENT, || request.clone().send()).await {
        Ok(_) => Ok(vec![name.to_owned()]),
        Err(taken) if taken.kind == Kind::Exists => Ok(vec![name.to_owned()]),
        Err(failure) => Err(failure),
    }
}
