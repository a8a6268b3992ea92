//! The way of one call: noted, struck by faults, throttled, authorised,
//! performed, and noted again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::bucket::CallClass;
use crate::call::Call;
use crate::calls::{Entry, Raw};
use crate::fault::{CallKey, Strike, When};
use crate::hold::{Parked, Then};
use crate::incoming::{Arguments, Incoming, ROLE_TAG};
use crate::ledger::Kind;
use crate::shared::Shared;
use crate::wire::{ApiError, Params, Service, xml_document};
use crate::world::Principal;
use crate::{ec2, fsx, permission, ssm, sts};

/// What the caller gets.
#[derive(Debug)]
pub enum Outcome {
    /// An HTTP answer.
    Answer {
        /// HTTP status.
        status: u16,
        /// Service whose format it has.
        service: Service,
        /// Body.
        body: String,
        /// Request id.
        request_id: String,
    },
    /// A broken connection.
    Broken,
}

/// A call that has been noted.
struct Noted {
    principal: Principal,
    place: usize,
    key: CallKey,
    token: Option<String>,
    strikes: Vec<Strike>,
}

/// Takes a call all the way.
pub async fn pass(shared: &Arc<Shared>, incoming: Incoming) -> Outcome {
    let request_id = shared.request_id();
    let noted = arrive(shared, &incoming);
    if let Err(outcome) = strike_before(shared, &incoming, &noted, &request_id).await {
        return outcome;
    }
    let result = shared.work(&noted.principal.account, &incoming.region, |call| {
        let result = perform(call, &incoming);
        finish(call, noted.place, &result);
        result
    });
    if strike_after(shared, &noted).await == Then::Drop {
        return Outcome::Broken;
    }
    answer(&incoming, result, request_id)
}

/// Notes the call and draws the faults that strike it.
fn arrive(shared: &Arc<Shared>, incoming: &Incoming) -> Noted {
    let principal = shared.state().principal(&incoming.access_key);
    let account = principal.account.clone();
    let token = incoming.token();
    shared.work(&account, &incoming.region, |call| {
        let role = incoming.role().or_else(|| role_of_resource(call, incoming));
        let key = call.account.calls.key(&incoming.action, role);
        let class = class(incoming);
        let place = call.account.calls.arrive(Entry {
            at: call.now,
            service: incoming.service,
            region: incoming.region.clone(),
            key: key.clone(),
            mutating: !class.reads(),
            token: token.clone(),
            caller: principal.caller(),
            code: None,
        });
        call.account.calls.record(Raw {
            service: incoming.service,
            action: incoming.action.clone(),
            content_type: incoming.content_type.clone(),
            user_agent: incoming.user_agent.clone(),
            body: incoming.body.clone(),
        });
        let strikes = call.account.faults.strike(&key);
        Noted { principal, place, key, token, strikes }
    })
}

/// The role tag of the resource the request is about; of several, the first by name, so that the
/// answer does not hang on the order of ids.
fn role_of_resource(call: &Call<'_>, incoming: &Incoming) -> Option<String> {
    let (about, referred) = incoming.names();
    let role = |name: &String| role_of(call, name);
    about.iter().find_map(role).or_else(|| referred.iter().filter_map(role).min())
}

fn role_of(call: &Call<'_>, name: &str) -> Option<String> {
    let region = &call.region.name;
    let group = call.region.ec2.placement_groups.get(name).map(|group| group.id.clone());
    let id = group.as_deref().unwrap_or(name);
    let kinds = match Kind::of_ec2_id(id) {
        Some(kind) => vec![kind],
        None => vec![Kind::FileSystem, Kind::Parameter, Kind::Document],
    };
    kinds
        .into_iter()
        .find_map(|kind| call.account.ledger.find(kind, region, id)?.tags.get(ROLE_TAG).cloned())
}

fn class(incoming: &Incoming) -> CallClass<'_> {
    CallClass {
        service: incoming.service,
        action: &incoming.action,
        unfiltered: incoming.is_unfiltered(),
    }
}

/// Faults before the effect.
async fn strike_before(
    shared: &Arc<Shared>,
    incoming: &Incoming,
    noted: &Noted,
    request_id: &str,
) -> Result<(), Outcome> {
    for strike in &noted.strikes {
        match strike {
            Strike::Latency { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Strike::Drop { when: When::Before } => {
                conclude(shared, incoming, noted, "(dropped before)");
                return Err(Outcome::Broken);
            }
            Strike::Hold { when: When::Before } => {
                if park(shared, noted, When::Before).await == Then::Drop {
                    conclude(shared, incoming, noted, "(dropped before)");
                    return Err(Outcome::Broken);
                }
            }
            Strike::Error { status, code, message } => {
                conclude(shared, incoming, noted, code);
                let error = ApiError::with_status(*status, code, message.clone());
                return Err(answer(incoming, Err(error), request_id.to_owned()));
            }
            Strike::Drop { when: When::After } | Strike::Hold { when: When::After } => {}
        }
    }
    Ok(())
}

fn conclude(shared: &Arc<Shared>, incoming: &Incoming, noted: &Noted, code: &str) {
    shared.work(&noted.principal.account, &incoming.region, |call| {
        call.account.calls.finish(noted.place, code);
    });
}

/// Faults after the effect: the caller may never learn of it.
async fn strike_after(shared: &Arc<Shared>, noted: &Noted) -> Then {
    for strike in &noted.strikes {
        match strike {
            Strike::Drop { when: When::After } => return Then::Drop,
            Strike::Hold { when: When::After } => {
                if park(shared, noted, When::After).await == Then::Drop {
                    return Then::Drop;
                }
            }
            Strike::Latency { .. }
            | Strike::Error { .. }
            | Strike::Drop { when: When::Before }
            | Strike::Hold { when: When::Before } => {}
        }
    }
    Then::Continue
}

async fn park(shared: &Arc<Shared>, noted: &Noted, when: When) -> Then {
    let parked = Parked {
        account: noted.principal.account.clone(),
        key: noted.key.clone(),
        token: noted.token.clone(),
        when,
    };
    shared.holds.park(parked).await
}

fn finish(call: &mut Call<'_>, place: usize, result: &Result<Value, ApiError>) {
    let code = result.as_ref().map_or_else(|error| error.code.as_str(), |_| "OK");
    call.account.calls.finish(place, code);
}

/// Throttle, permission, action.
fn perform(call: &mut Call<'_>, incoming: &Incoming) -> Result<Value, ApiError> {
    if call.account.settings.throttling {
        call.region.buckets.request(&class(incoming), call.now)?;
    }
    if call.region.ec2.network.zones.is_empty() {
        return Err(ApiError::client(
            "AuthFailure",
            format!("Region {} is not simulated.", incoming.region),
        ));
    }
    let needed = permission::needed(incoming.service, &incoming.action, incoming.traits());
    permission::check(&call.account.denied, incoming.service, &needed, &call.account.id)?;
    let action = &incoming.action;
    match (&incoming.arguments, incoming.service) {
        (Arguments::Form(pairs), Service::Ec2) => {
            ec2::perform(call, action, Params::from_pairs(pairs)?)
        }
        (Arguments::Form(pairs), _) => sts::perform(call, action, Params::from_pairs(pairs)?),
        (Arguments::Json(request), Service::Fsx) => fsx::perform(call, action, request),
        (Arguments::Json(request), _) => ssm::perform(call, action, request),
    }
}

fn answer(incoming: &Incoming, result: Result<Value, ApiError>, request_id: String) -> Outcome {
    let service = incoming.service;
    let (status, body) = match result {
        Ok(value) => (200, render(service, &incoming.action, &request_id, &value)),
        Err(error) => (error.status, error.render(service, &request_id)),
    };
    Outcome::Answer { status, service, body, request_id }
}

fn render(service: Service, action: &str, request_id: &str, value: &Value) -> String {
    match service {
        Service::Ec2 => xml_document(action, request_id, value),
        Service::Sts => sts::document(action, request_id, value),
        Service::Fsx | Service::Ssm => value.to_string(),
    }
}
