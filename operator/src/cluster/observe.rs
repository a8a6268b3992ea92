//! What exists for a cluster. Reads only.

use std::collections::BTreeMap;

use hpc_aws::{ImageQuery, Limits, Query, Scope};
use hpc_crds::{ConditionType, HpcCluster, HpcClusterStatus, condition};
use hpc_plan::cloud::FileSystemId;
use hpc_plan::cluster::{Desired, Goal, Object, Observed};
use hpc_plan::names::FINALIZER;
use hpc_plan::node;
use kube::ResourceExt;

use crate::context::Context;

/// Architectures an image family may have an image for.
const ARCHITECTURES: [&str; 2] = ["x86_64", "arm64"];

/// Everything the planner needs to know of this cluster.
pub async fn observe(ctx: &Context, cluster: &HpcCluster, desired: &Desired) -> Observed {
    let status = cluster.status.clone().unwrap_or_default();
    let query = query(desired, &status);
    let finalizer = cluster.finalizers().iter().any(|name| name == FINALIZER);
    Observed { object: Object { finalizer, status }, ..ctx.cloud.observe(&query).await }
}

/// For whom and where, and what a launch may not exceed.
pub fn scope(desired: &Desired) -> Scope {
    Scope {
        region: desired.cluster.region.clone(),
        owner: desired.owner.clone(),
        limits: Limits {
            max_instances: desired.settings.max_instances,
            max_hourly_cost: desired.settings.max_hourly_cost,
        },
    }
}

fn query(desired: &Desired, status: &HpcClusterStatus) -> Query {
    let cluster = &desired.cluster;
    let queues = cluster.queues.iter().flat_map(|queue| &queue.types);
    let is_leaving = desired.goal == Goal::Absent;
    let is_steady = condition::is_true(&status.conditions, ConditionType::Ready);
    Query {
        scope: scope(desired),
        subnets: [&cluster.head_subnet]
            .into_iter()
            .chain(&cluster.compute_subnets)
            .cloned()
            .collect(),
        types: [&cluster.head_type].into_iter().chain(queues).cloned().collect(),
        image: image(desired, status),
        document: node::document(&desired.settings.installation).name,
        parameter: desired.owner.parameter(),
        file_systems: file_systems(status),
        list_file_systems: is_leaving || !is_steady,
        status_poll: desired.settings.status_poll,
        // The two looks before the finalizer goes must be two.
        fresh: is_leaving,
    }
}

/// The user's image, else the one pinned before, else the newest of the family.
fn image(desired: &Desired, status: &HpcClusterStatus) -> ImageQuery {
    let pinned = || status.image.as_ref().map(|image| image.id.clone());
    if let Some(id) = desired.cluster.image_id.clone().or_else(pinned) {
        return ImageQuery::Id(id);
    }
    let family = &desired.cluster.image_family;
    let name = |architecture: &&str| {
        Some(((*architecture).to_owned(), node::image_name_pattern(family, architecture)?))
    };
    let owner = node::image_family(family);
    ImageQuery::Family {
        owner: owner
            .get("imageOwner")
            .and_then(|owner| owner.as_str())
            .unwrap_or("amazon")
            .to_owned(),
        names: ARCHITECTURES.iter().filter_map(name).collect::<BTreeMap<_, _>>(),
        instance_type: desired.cluster.head_type.clone(),
    }
}

fn file_systems(status: &HpcClusterStatus) -> Vec<FileSystemId> {
    let ids = status.storage.iter().map(|storage| &storage.file_system_id);
    ids.filter(|id| !id.is_empty()).map(|id| FileSystemId(id.clone())).collect()
}
