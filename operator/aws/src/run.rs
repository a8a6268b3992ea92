//! Running the installation's document on heads and collecting what it prints.
//!
//! `SendCommand` has no token, so it is sent once; the document's script makes a repeat harmless.

use std::time::Duration;

use hpc_plan::cloud::{Failure, InstanceId, Kind};
use tokio::time::{Instant, sleep};

use crate::action::{GET_INVOCATION, SEND_COMMAND};
use crate::region::Region;
use crate::{RunAnswer, RunRequest};

/// First wait for an answer, doubling up to [`SLOWEST`].
const FASTEST: Duration = Duration::from_millis(200);
const SLOWEST: Duration = Duration::from_secs(2);
/// How long SSM may say that it does not know the command it has just taken.
const UNKNOWN: Duration = Duration::from_secs(30);
/// Least and most seconds that SSM tries to deliver a command.
const DELIVERY: (u64, u64) = (30, 3600);

/// See [`crate::Cloud::run`].
pub(crate) async fn run(region: &Region, request: &RunRequest) -> Result<Vec<RunAnswer>, Failure> {
    let deadline = Instant::now() + request.timeout;
    let command = send(region, request).await?;
    let answers = request.instances.iter().map(|id| answer(region, &command, id, deadline));
    futures::future::try_join_all(answers).await
}

async fn send(region: &Region, request: &RunRequest) -> Result<String, Failure> {
    let ids = request.instances.iter().map(|id| id.0.clone()).collect();
    let delivery = request.timeout.as_secs().clamp(DELIVERY.0, DELIVERY.1);
    let command = region
        .ssm
        .send_command()
        .set_instance_ids(Some(ids))
        .document_name(&request.document)
        .parameters("payload", vec![request.payload_base64.clone()])
        .timeout_seconds(i32::try_from(delivery).unwrap_or(i32::MAX));
    let sent = region.call(&SEND_COMMAND, || command.clone().send()).await?;
    Ok(sent.command.and_then(|command| command.command_id).unwrap_or_default())
}

async fn answer(
    region: &Region,
    command: &str,
    instance: &InstanceId,
    deadline: Instant,
) -> Result<RunAnswer, Failure> {
    let (began, mut pause) = (Instant::now(), FASTEST);
    loop {
        sleep(pause).await;
        pause = (pause * 2).min(SLOWEST);
        match look(region, command, instance).await {
            Ok(answer) if is_final(&answer.status) || Instant::now() >= deadline => {
                return Ok(answer);
            }
            Err(failure) if !is_early(&failure, began) => return Err(failure),
            Ok(_) | Err(_) => {}
        }
    }
}

/// Right after the command was taken SSM may not know it yet.
fn is_early(failure: &Failure, began: Instant) -> bool {
    failure.kind == Kind::NotFound && began.elapsed() < UNKNOWN
}

async fn look(region: &Region, command: &str, id: &InstanceId) -> Result<RunAnswer, Failure> {
    let request = region.ssm.get_command_invocation().command_id(command).instance_id(id.as_str());
    let found = region.call(&GET_INVOCATION, || request.clone().send()).await?;
    Ok(RunAnswer {
        instance: id.clone(),
        status: found.status_details.unwrap_or_else(|| "Pending".to_owned()),
        exit_code: found.response_code,
        stdout: found.standard_output_content.unwrap_or_default(),
        stderr: found.standard_error_content.unwrap_or_default(),
    })
}

fn is_final(status: &str) -> bool {
    !matches!(status, "" | "Pending" | "InProgress" | "Delayed" | "Cancelling")
}
