//! A cluster at rest: nothing is to be done until its head reports something else. Only that report
//! is read then, in one call for all clusters of a region, until the next whole look is due.

use hpc_crds::HpcCluster;
use hpc_plan::Requeue;
use hpc_plan::cluster::{Desired, Report};

use crate::context::Context;
use crate::memory::Rest;

/// Whether the cluster is at rest and its head has no news. When that cannot be known, the whole is
/// looked at.
pub async fn lasts(ctx: &Context, cluster: &HpcCluster, desired: &Desired) -> bool {
    let now = ctx.clock.now();
    let Some(rest) =
        ctx.memory.resting(cluster).filter(|rest| (rest.began..rest.ends).contains(&now))
    else {
        return false;
    };
    let parameter = desired.owner.parameter();
    let report = ctx.cloud.report(&desired.cluster.region, &parameter).await;
    report.is_ok_and(|report| report == rest.report)
}

/// Notes what this pass has seen, if its plan was to listen.
pub fn begin(ctx: &Context, cluster: &HpcCluster, report: Option<Report>, wish: Requeue) {
    let began = ctx.clock.now();
    let rest = match wish {
        Requeue::OnReport { most, .. } => {
            let longest = ctx.sweep_of(cluster);
            let ends = began.checked_add(most.unwrap_or(longest).min(longest));
            ends.ok().map(|ends| Rest { report, began, ends })
        }
        Requeue::After(_) | Requeue::OnChange => None,
    };
    ctx.memory.rest(cluster, rest);
}
