//! `DescribeImages`.

use serde_json::{Value, json};

use super::filters::Filters;
use super::page::{Page, paginate};
use crate::call::Call;
use crate::catalog::{Image, images};
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

const FILTERS: [&str; 11] = [
    "architecture",
    "creation-date",
    "image-id",
    "image-type",
    "is-public",
    "name",
    "owner-alias",
    "owner-id",
    "root-device-type",
    "state",
    "virtualization-type",
];

/// `DescribeImages`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, owners, filters, page) = params.read(|p| {
        p.flag("IncludeDeprecated")?;
        p.flag("IncludeDisabled")?;
        p.texts("ExecutableBy")?;
        Ok((
            p.texts("ImageId")?,
            p.texts("Owner")?,
            Filters::read(p, &FILTERS)?,
            Page::read(p, (1, 1000))?,
        ))
    })?;
    let all = images();
    for id in &ids {
        find(&all, id)?;
    }
    let rows = all
        .iter()
        .filter(|image| ids.is_empty() || ids.contains(&image.id))
        .filter(|image| owners.is_empty() || owners.iter().any(|owner| owned(image, owner)))
        .filter(|image| filters.pass(&Tags::new(), |name| value(image, name)))
        .map(|image| (image.id.clone(), render(image)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"imagesSet": rows, "nextToken": next}))
}

/// The image with this id.
pub fn find<'a>(all: &'a [Image], id: &str) -> Result<&'a Image, ApiError> {
    all.iter().find(|image| image.id == id).ok_or_else(|| {
        ApiError::client("InvalidAMIID.NotFound", format!("The image id '[{id}]' does not exist"))
    })
}

fn owned(image: &Image, owner: &str) -> bool {
    owner == "amazon" || owner == image.owner
}

fn value(image: &Image, name: &str) -> Vec<String> {
    let value = match name {
        "architecture" => image.architecture,
        "creation-date" => image.created,
        "image-id" => &image.id,
        "image-type" => "machine",
        "is-public" => "true",
        "name" => &image.name,
        "owner-alias" => "amazon",
        "owner-id" => image.owner,
        "root-device-type" => "ebs",
        "state" => "available",
        _ => "hvm",
    };
    vec![value.to_owned()]
}

fn render(image: &Image) -> Value {
    json!({
        "imageId": image.id,
        "imageLocation": format!("amazon/{}", image.name),
        "imageState": "available",
        "imageOwnerId": image.owner,
        "imageOwnerAlias": "amazon",
        "creationDate": image.created,
        "isPublic": true,
        "architecture": image.architecture,
        "imageType": "machine",
        "name": image.name,
        "description": image.name,
        "rootDeviceType": "ebs",
        "rootDeviceName": image.root_device,
        "blockDeviceMapping": [{
            "deviceName": image.root_device,
            "ebs": {
                "snapshotId": image.id.replace("ami-", "snap-"), "volumeSize": image.root_gib,
                "volumeType": "gp3", "deleteOnTermination": true, "encrypted": false,
            },
        }],
        "virtualizationType": "hvm",
        "hypervisor": "xen",
        "enaSupport": true,
        "sriovNetSupport": "simple",
        "platformDetails": "Linux/UNIX",
        "usageOperation": "RunInstances",
        "bootMode": "uefi-preferred",
    })
}
