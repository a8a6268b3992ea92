//! Reads for a cluster. AWS is read through the seam; Kubernetes is the object itself.

use std::collections::BTreeMap;

use hpc_aws::{ImageQuery, Query, Scope};
use hpc_crds::{HpcCluster, HpcClusterStatus};
use hpc_plan::cluster::{Desired, Goal, Object, Observed};
use hpc_plan::names::FINALIZER;
use hpc_plan::node;
use kube::ResourceExt;

use crate::context::Context;

/// Everything the planner needs. Reads that fail are told in the observation.
pub async fn observe(ctx: &Context, desired: &Desired, cluster: &HpcCluster) -> Observed {
    let status = cluster.status.clone().unwrap_or_default();
    let query = query(ctx, desired, &status);
    let object =
        Object { finalizer: cluster.finalizers().iter().any(|name| name == FINALIZER), status };
    Observed { object, ..ctx.cloud.observe(&query).await }
}

/// Region and owner of everything a cluster has.
pub fn scope(ctx: &Context, desired: &Desired) -> Scope {
    Scope {
        region: desired.cluster.region.clone(),
        owner: desired.owner.clone(),
        limits: ctx.limits(),
    }
}

fn query(ctx: &Context, desired: &Desired, status: &HpcClusterStatus) -> Query {
    let cluster = &desired.cluster;
    let known: Vec<_> =
        status.storage.iter().filter(|told| !told.file_system_id.is_empty()).collect();
    let all_known = known.len() == cluster.storages.len();
    let absent = desired.goal == Goal::Absent;
    Query {
        scope: scope(ctx, desired),
        subnets: std::iter::once(&cluster.head_subnet)
            .chain(&cluster.compute_subnets)
            .cloned()
            .collect(),
        types: std::iter::once(&cluster.head_type)
            .chain(cluster.queues.iter().flat_map(|queue| &queue.types))
            .cloned()
            .collect(),
        image: image(desired, status),
        document: node::document(&desired.owner.installation).name,
        parameter: desired.owner.parameter(),
        file_systems: known.iter().map(|told| told.file_system_id.as_str().into()).collect(),
        list_file_systems: absent || !all_known,
        fresh: absent,
    }
}

/// The image once pinned stays; before that, the user's, else the newest official one.
fn image(desired: &Desired, status: &HpcClusterStatus) -> ImageQuery {
    let pinned = status.image.as_ref().map(|image| image.id.clone());
    match pinned.or_else(|| desired.cluster.image_id.clone()) {
        Some(id) => ImageQuery::Id(id),
        None => family(desired),
    }
}

fn family(desired: &Desired) -> ImageQuery {
    let family = &desired.cluster.image_family;
    let names = ["x86_64", "arm64"].into_iter().filter_map(|architecture| {
        Some((architecture.to_owned(), node::image_name_pattern(family, architecture)?))
    });
    ImageQuery::Family {
        owner: "amazon".to_owned(),
        names: names.collect::<BTreeMap<_, _>>(),
        instance_type: desired.cluster.head_type.clone(),
    }
}
