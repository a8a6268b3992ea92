//! Reads for a run: its cluster and results from Kubernetes, its jobs from the head.

use std::collections::BTreeSet;

use hpc_crds::{
    AttemptStatus, BenchmarkRun, ConditionStatus, ConditionType, HpcCluster, condition,
};
use hpc_plan::cloud::{Failure, InstanceId};
use hpc_plan::cluster::Cluster;
use hpc_plan::names::FINALIZER;
use hpc_plan::run::{ClusterSeen, Desired, Head, Object, Observed, QueueSeen, folder};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use crate::context::Context;
use crate::finalizer::failure;

/// Label of a results `ConfigMap`: uid of its run.
pub const RUN_LABEL: &str = "hpcops.dev/run-uid";

/// Everything the planner needs. Reads that fail are told in the observation.
pub async fn observe(ctx: &Context, run: &BenchmarkRun, desired: &Desired) -> Observed {
    let mut observed = Observed {
        object: Object {
            finalizer: run.finalizers().iter().any(|name| name == FINALIZER),
            status: run.status.clone().unwrap_or_default(),
        },
        ..Observed::default()
    };
    match cluster(ctx, desired).await {
        Ok(cluster) => observed.cluster = cluster,
        Err(failure) => observed.failures.push(failure),
    }
    let open: Vec<_> = observed
        .object
        .status
        .attempts
        .iter()
        .filter(|told| !told.state.is_final())
        .cloned()
        .collect();
    if !open.is_empty() {
        jobs(ctx, desired, &mut observed, &open).await;
        match results(ctx, desired).await {
            Ok(names) => observed.results = names,
            Err(failure) => observed.failures.push(failure),
        }
    }
    observed
}

async fn cluster(ctx: &Context, desired: &Desired) -> Result<Option<ClusterSeen>, Failure> {
    let api: Api<HpcCluster> = Api::namespaced(ctx.client.clone(), &desired.owner.namespace);
    let found =
        api.get_opt(&desired.cluster).await.map_err(|error| failure("GetCluster", &error))?;
    Ok(found.as_ref().map(seen))
}

/// The cluster in the run's words.
fn seen(cluster: &HpcCluster) -> ClusterSeen {
    let status = cluster.status.clone().unwrap_or_default();
    let ready = condition::find(&status.conditions, ConditionType::Ready);
    let aws = &cluster.spec.aws;
    let head = status.head.filter(|head| !head.instance_id.is_empty());
    ClusterSeen {
        uid: cluster.uid().unwrap_or_default(),
        deleting: cluster.metadata.deletion_timestamp.is_some(),
        ready: ready.is_some_and(|ready| ready.status == ConditionStatus::True),
        message: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
        head: head.map(|head| Head {
            region: aws.region.clone(),
            instance: InstanceId(head.instance_id),
        }),
        storage_path: aws.storage.first().map(|storage| storage.mount_path.clone()),
        queues: aws
            .queues
            .iter()
            .map(|queue| QueueSeen {
                name: queue.name.clone(),
                nodes: queue.max_nodes,
                efa: queue.network_interface == hpc_crds::NetworkInterface::Efa,
            })
            .collect(),
        users: Cluster::new(cluster).users.into_iter().map(|user| user.name).collect(),
        image_family: aws.image.os.to_string(),
        image_id: status.image.map(|image| image.id).unwrap_or_default(),
    }
}

/// What the head says of open attempts. A head that does not answer leaves them unknown: the run
/// waits, nothing is concluded.
async fn jobs(ctx: &Context, desired: &Desired, observed: &mut Observed, open: &[AttemptStatus]) {
    let Some(cluster) = observed.cluster.as_ref().filter(|cluster| !cluster.deleting) else {
        return;
    };
    let (Some(head), Some(mount)) = (&cluster.head, &cluster.storage_path) else { return };
    let stored_long = |told: &&AttemptStatus| {
        desired.goal == hpc_plan::run::Goal::Absent || told.state != hpc_crds::AttemptState::Pending
    };
    let places: Vec<_> = open
        .iter()
        .filter(stored_long)
        .map(|told| (told.id.clone(), folder(mount, desired, &told.id)))
        .collect();
    if places.is_empty() {
        return;
    }
    let ids: Vec<_> = places.iter().map(|(id, _)| id.clone()).collect();
    match ctx.heads.poll(head, places).await {
        Ok(polls) => observed.polls = polls,
        Err(failure) => {
            tracing::warn!(run = desired.owner.full_name(), %failure, failure.message, "poll");
        }
    }
    observed.outputs = ctx.heads.outputs(&ids);
}

async fn results(ctx: &Context, desired: &Desired) -> Result<BTreeSet<String>, Failure> {
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &desired.owner.namespace);
    let own = ListParams::default().labels(&format!("{RUN_LABEL}={}", desired.owner.uid));
    let found = api.list_metadata(&own).await.map_err(|error| failure("ListResults", &error))?;
    Ok(found.items.iter().map(ResourceExt::name_any).collect())
}
