//! Writes for a run: each step as it says, no decision.

use hpc_crds::BenchmarkRun;
use hpc_plan::cloud::Failure;
use hpc_plan::run::{Desired, Outcome, Results, RunPlan, Step};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Resource};

use super::observe::RUN_LABEL;
use crate::context::Context;
use crate::finalizer::{self, failure};

/// Carries out every step of the plan; a failed one does not stop the others.
pub async fn act(
    ctx: &Context,
    run: &BenchmarkRun,
    desired: &Desired,
    plan: &RunPlan,
) -> Vec<Outcome> {
    ctx.tell(run, plan);
    let mut outcomes = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let outcome = carry_out(ctx, desired, run, step).await;
        outcomes.push(outcome.unwrap_or_else(Outcome::Failed));
    }
    outcomes
}

async fn carry_out(
    ctx: &Context,
    desired: &Desired,
    run: &BenchmarkRun,
    step: &Step,
) -> Result<Outcome, Failure> {
    match step {
        Step::AddFinalizer => finalizer::add(ctx, run).await?,
        Step::RemoveFinalizer => {
            finalizer::remove(ctx, run).await?;
            ctx.telemetry.forget(run);
        }
        Step::Submit { head, attempts } => {
            return Ok(Outcome::Submitted(ctx.heads.submit(head, attempts).await?));
        }
        Step::Fetch { head, id, folder } => ctx.heads.fetch(head, id, folder).await?,
        Step::Cancel { head, ids } => {
            ctx.heads.cancel(head, ids).await?;
            return Ok(Outcome::Cancelled(ids.clone()));
        }
        Step::Store(results) => store(ctx, desired, run, results).await?,
    }
    Ok(Outcome::Done)
}

/// Its name is its content, so one that exists already is the same.
async fn store(
    ctx: &Context,
    desired: &Desired,
    run: &BenchmarkRun,
    results: &Results,
) -> Result<(), Failure> {
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(results.name.clone()),
            labels: Some([(RUN_LABEL.to_owned(), desired.owner.uid.clone())].into()),
            owner_references: run.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(results.data.clone()),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &desired.owner.namespace);
    match api.create(&PostParams::default(), &map).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(failure("CreateResults", &error)),
    }
}
