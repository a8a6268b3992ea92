//! `CreateFileSystem`: token, checks, interfaces, and the wait.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::check::{check, interface_count, tags};
use super::request::CreateRequest;
use super::{FileSystem, Lifecycle, Spent, render};
use crate::agenda::Event;
use crate::call::{Call, Newborn};
use crate::clock::Delay;
use crate::ec2::{InterfaceType, NewInterface, create_interface};
use crate::ledger::{Kind, Tags};
use crate::wire::{ApiError, decode_json};

/// Seconds a file system takes longer per GiB (a regression over many real
/// creations, aws-fsx-csi-driver issue 383).
const SECONDS_PER_GIB: f64 = 0.002_18;

/// `CreateFileSystem`.
pub fn create(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: CreateRequest = decode_json(request)?;
    let digest = digest(&request);
    if let Some(token) = &request.client_request_token {
        check_token(token)?;
        if let Some(answer) = replay(call, token, digest)? {
            return Ok(answer);
        }
    }
    let capacity = check(call, &request)?;
    let id = call.new_id("fs");
    let interfaces = make_interfaces(call, &request, &id, capacity)?;
    let fs = FileSystem {
        mount_name: mount_name(&id, &request),
        interfaces,
        lifecycle: Lifecycle::Creating,
        failure: None,
        fate: next_fate(call),
        created_at: call.now,
        visible_at: call.after(Delay::FileSystemVisible, &id),
        capacity_gib: capacity,
        id: id.clone(),
        request: request.clone(),
    };
    note(call, &fs);
    let settled = call.after(Delay::FileSystem, &id).saturating_add(growth(call, capacity));
    call.schedule(settled.unwrap_or(call.now), Event::FileSystemSettled(id.clone()));
    if let Some(token) = request.client_request_token {
        call.region.fsx.tokens.insert(token, Spent { digest, file_system_id: id.clone() });
    }
    let answer = json!({"FileSystem": render(call, &fs)});
    call.region.fsx.file_systems.insert(id, fs);
    Ok(answer)
}

#[expect(clippy::cast_precision_loss, reason = "capacities are far below 2^52 GiB")]
fn growth(call: &Call<'_>, capacity: u64) -> jiff::SignedDuration {
    call.engine.clock.scaled(capacity as f64 * SECONDS_PER_GIB)
}

fn next_fate(call: &mut Call<'_>) -> Option<String> {
    let planned = &mut call.region.fsx.failures;
    if planned.is_empty() { None } else { Some(planned.remove(0)) }
}

fn note(call: &mut Call<'_>, fs: &FileSystem) {
    let detail = json!({"capacityGiB": fs.capacity_gib, "mountName": fs.mount_name});
    call.born(Newborn {
        kind: Kind::FileSystem,
        id: &fs.id,
        tags: tags(&fs.request),
        token: fs.request.client_request_token.as_deref(),
        detail,
    });
}

fn digest(request: &CreateRequest) -> [u8; 32] {
    let plain = CreateRequest { client_request_token: None, ..request.clone() };
    Sha256::digest(format!("{plain:?}").as_bytes()).into()
}

fn check_token(token: &str) -> Result<(), ApiError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=63).contains(&token.len()) && token.chars().all(legal) {
        return Ok(());
    }
    Err(ApiError::client(
        "BadRequest",
        "Value at 'clientRequestToken' failed to satisfy constraint: \
         Member must satisfy regular expression pattern: [A-za-z0-9_.-]{0,63}$",
    ))
}

/// The file system an earlier call made, as it is now.
fn replay(call: &Call<'_>, token: &str, digest: [u8; 32]) -> Result<Option<Value>, ApiError> {
    let Some(spent) = call.region.fsx.tokens.get(token) else {
        return Ok(None);
    };
    let Some(fs) = call.region.fsx.file_systems.get(&spent.file_system_id) else {
        return Ok(None);
    };
    if spent.digest != digest {
        return Err(ApiError::client(
            "IncompatibleParameterError",
            "A file system with this client request token but other parameters exists.",
        )
        .field("Parameter", "ClientRequestToken"));
    }
    Ok(Some(json!({"FileSystem": render(call, fs)})))
}

fn make_interfaces(
    call: &mut Call<'_>,
    request: &CreateRequest,
    id: &str,
    capacity: u64,
) -> Result<Vec<String>, ApiError> {
    let subnet_id = request.subnet_ids.first().cloned().unwrap_or_default();
    (0..interface_count(capacity))
        .map(|_| {
            let new = NewInterface {
                subnet_id: subnet_id.clone(),
                groups: request.security_group_ids.clone(),
                private_ip: None,
                interface_type: InterfaceType::Interface,
                description: format!("ENI for FSx file system {id}"),
                requester: Some("amazon-fsx".to_owned()),
                tags: Tags::new(),
                token: None,
            };
            create_interface(call, new).map(|interface| interface.id)
        })
        .collect()
}

fn mount_name(id: &str, request: &CreateRequest) -> String {
    if request.lustre().deployment_type() == "SCRATCH_1" {
        return "fsx".to_owned();
    }
    let hash = Sha256::digest(id.as_bytes());
    let letters = hash.iter().take(8).map(|byte| char::from(b'a' + byte % 26));
    letters.collect()
}
