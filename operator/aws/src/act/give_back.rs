//! Terminating, deleting and marking: each re-reads the tags right before and refuses what is not
//! ours, whatever status or plan say.

use hpc_plan::cloud::{Failure, InstanceId, Kind, Tags};
use hpc_plan::cluster::{InstanceState, Resource};
use hpc_plan::names::{CLUSTER_UID, INSTALLATION};

use super::Made;
use super::network::tolerate;
use crate::Scope;
use crate::action::{
    Action, CREATE_TAGS, DELETE_FILE_SYSTEM, DELETE_NETWORK_INTERFACE, DELETE_PARAMETER,
    DELETE_PLACEMENT_GROUP, DELETE_SECURITY_GROUP, DELETE_VOLUME, DESCRIBE_FILE_SYSTEMS,
    DESCRIBE_NETWORK_INTERFACES, DESCRIBE_PLACEMENT_GROUPS, DESCRIBE_SECURITY_GROUPS,
    DESCRIBE_VOLUMES, TAG_FILE_SYSTEM, TAG_PARAMETER, TERMINATE_INSTANCES,
};
use crate::guard::ours;
use crate::region::Region;
use crate::words;

/// Ids of one call; AWS takes 1,000 and advises fewer.
const TERMINATED_PER_CALL: usize = 500;

/// Ends instances. One unknown id would keep AWS from ending any, so only those it shows now are
/// named; the next observation has the others.
pub(super) async fn terminate(region: &Region, scope: &Scope, ids: &[InstanceId]) -> Made {
    let mut ended = Vec::new();
    for ids in ids.chunks(200) {
        let filter = words::filter("instance-id", ids.iter().map(InstanceId::as_str));
        for found in region.described_instances(&[filter]).await? {
            ours(&TERMINATE_INSTANCES, scope, found.id.as_str(), &found.tags)?;
            if found.state != InstanceState::Terminated {
                ended.push(found.id.0);
            }
        }
    }
    for ids in ended.chunks(TERMINATED_PER_CALL) {
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let request = region.ec2.terminate_instances().set_instance_ids(Some(ids.to_vec()));
        region.call_for(&TERMINATE_INSTANCES, count, || request.clone().send()).await?;
    }
    Ok(ended)
}

/// Deletes one resource; one that is gone counts as deleted.
pub(super) async fn delete(region: &Region, scope: &Scope, resource: &Resource) -> Made {
    let Some(found) = find(region, scope, resource).await? else {
        return Ok(Vec::new());
    };
    let action = deletion_of(resource);
    ours(&action, scope, &found.id, &found.tags)?;
    if found.going {
        return Ok(Vec::new());
    }
    tolerate(remove(region, &action, resource).await, Kind::NotFound)?;
    Ok(vec![found.id])
}

/// Adds tags to one resource.
pub(super) async fn mark(region: &Region, scope: &Scope, resource: &Resource, tags: &Tags) -> Made {
    let Some(found) = find(region, scope, resource).await? else {
        return Ok(Vec::new());
    };
    ours(&CREATE_TAGS, scope, &found.id, &found.tags)?;
    match resource {
        Resource::FileSystem(..) => {
            let request = region.fsx.tag_resource().resource_arn(&found.handle);
            let request = request.set_tags(Some(words::fsx_tags(tags)));
            region.call(&TAG_FILE_SYSTEM, || request.clone().send()).await.map(drop)?;
        }
        Resource::Parameter(name) => {
            let kind = aws_sdk_ssm::types::ResourceTypeForTagging::Parameter;
            let request = region.ssm.add_tags_to_resource().resource_type(kind).resource_id(name);
            let request = request.set_tags(Some(words::ssm_tags(tags)));
            region.call(&TAG_PARAMETER, || request.clone().send()).await.map(drop)?;
        }
        Resource::Group(_)
        | Resource::PlacementGroup(_)
        | Resource::Interface(_)
        | Resource::Volume(_) => {
            let request = region.ec2.create_tags().resources(&found.handle);
            let request = request.set_tags(Some(words::ec2_tags(tags)));
            region.call(&CREATE_TAGS, || request.clone().send()).await.map(drop)?;
        }
    }
    Ok(vec![found.id])
}

const fn deletion_of(resource: &Resource) -> Action {
    match resource {
        Resource::Group(_) => DELETE_SECURITY_GROUP,
        Resource::PlacementGroup(_) => DELETE_PLACEMENT_GROUP,
        Resource::Interface(_) => DELETE_NETWORK_INTERFACE,
        Resource::Volume(_) => DELETE_VOLUME,
        Resource::FileSystem(..) => DELETE_FILE_SYSTEM,
        Resource::Parameter(_) => DELETE_PARAMETER,
    }
}

async fn remove(region: &Region, action: &Action, resource: &Resource) -> Result<(), Failure> {
    match resource {
        Resource::Group(id) => {
            let request = region.ec2.delete_security_group().group_id(id.as_str());
            region.call(action, || request.clone().send()).await.map(drop)
        }
        Resource::PlacementGroup(name) => {
            let request = region.ec2.delete_placement_group().group_name(name);
            region.call(action, || request.clone().send()).await.map(drop)
        }
        Resource::Interface(id) => {
            let request = region.ec2.delete_network_interface().network_interface_id(id.as_str());
            region.call(action, || request.clone().send()).await.map(drop)
        }
        Resource::Volume(id) => {
            let request = region.ec2.delete_volume().volume_id(id.as_str());
            region.call(action, || request.clone().send()).await.map(drop)
        }
        Resource::FileSystem(id, token) => {
            let request = region.fsx.delete_file_system().file_system_id(id.as_str());
            let request = request.client_request_token(token.as_str());
            region.call(action, || request.clone().send()).await.map(drop)
        }
        Resource::Parameter(name) => {
            let request = region.ssm.delete_parameter().name(name);
            region.call(action, || request.clone().send()).await.map(drop)
        }
    }
}

/// A resource as it stands right now.
struct Found {
    id: String,
    /// What tagging calls it: the id, or an ARN.
    handle: String,
    tags: Tags,
    /// Whether it is on its way out already.
    going: bool,
}

impl Found {
    fn new(id: Option<&str>, tags: Tags) -> Self {
        let id = id.unwrap_or_default().to_owned();
        Self { handle: id.clone(), id, tags, going: false }
    }
}

type Look = Result<Option<Found>, Failure>;

async fn find(region: &Region, scope: &Scope, resource: &Resource) -> Look {
    match resource {
        Resource::Group(id) => group(region, id.as_str()).await,
        Resource::PlacementGroup(name) => placement_group(region, name).await,
        Resource::Interface(id) => interface(region, id.as_str()).await,
        Resource::Volume(id) => volume(region, id.as_str()).await,
        Resource::FileSystem(id, _) => file_system(region, id.as_str()).await,
        Resource::Parameter(name) => Ok(Some(parameter(scope, name))),
    }
}

async fn group(region: &Region, id: &str) -> Look {
    let request = region.ec2.describe_security_groups().filters(words::filter("group-id", [id]));
    let answer = region.call(&DESCRIBE_SECURITY_GROUPS, || request.clone().send()).await?;
    let found = answer.security_groups().first();
    Ok(found.map(|one| Found::new(one.group_id(), words::tags(one.tags()))))
}

async fn placement_group(region: &Region, name: &str) -> Look {
    let request =
        region.ec2.describe_placement_groups().filters(words::filter("group-name", [name]));
    let answer = region.call(&DESCRIBE_PLACEMENT_GROUPS, || request.clone().send()).await?;
    Ok(answer.placement_groups().first().map(|one| Found {
        id: name.to_owned(),
        going: words::placement_group(one).deleting,
        ..Found::new(one.group_id(), words::tags(one.tags()))
    }))
}

async fn interface(region: &Region, id: &str) -> Look {
    let filter = words::filter("network-interface-id", [id]);
    let request = region.ec2.describe_network_interfaces().filters(filter);
    let answer = region.call(&DESCRIBE_NETWORK_INTERFACES, || request.clone().send()).await?;
    let found = answer.network_interfaces().first();
    Ok(found.map(|one| Found::new(one.network_interface_id(), words::tags(one.tag_set()))))
}

async fn volume(region: &Region, id: &str) -> Look {
    let request = region.ec2.describe_volumes().filters(words::filter("volume-id", [id]));
    let answer = region.call(&DESCRIBE_VOLUMES, || request.clone().send()).await?;
    Ok(answer.volumes().first().map(|one| Found::new(one.volume_id(), words::tags(one.tags()))))
}

async fn file_system(region: &Region, id: &str) -> Look {
    let request = region.fsx.describe_file_systems().file_system_ids(id);
    let answer = match region.call(&DESCRIBE_FILE_SYSTEMS, || request.clone().send()).await {
        Err(gone) if gone.kind == Kind::NotFound => return Ok(None),
        answer => answer?,
    };
    Ok(answer.file_systems().first().map(|one| Found {
        handle: one.resource_arn().unwrap_or_default().to_owned(),
        going: one.lifecycle() == Some(&aws_sdk_fsx::types::FileSystemLifecycle::Deleting),
        ..Found::new(one.file_system_id(), words::file_system(one).tags)
    }))
}

/// The head makes its parameter itself and untagged; the uid is in the name.
fn parameter(scope: &Scope, name: &str) -> Found {
    let owner = &scope.owner;
    let mut tags = Tags::new();
    if owner.owns(name) {
        tags.insert(INSTALLATION.to_owned(), owner.installation.clone());
        tags.insert(CLUSTER_UID.to_owned(), owner.uid.clone());
    }
    Found::new(Some(name), tags)
}
