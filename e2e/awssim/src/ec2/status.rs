//! `DescribeInstanceStatus`.

use serde_json::{Value, json};

use super::filters::Filters;
use super::instance::{Instance, check_id};
use super::page::{Page, paginate};
use crate::call::Call;
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

const FILTERS: [&str; 5] = [
    "availability-zone",
    "event.code",
    "instance-state-name",
    "instance-status.status",
    "system-status.status",
];

/// `DescribeInstanceStatus`: running ones only, unless all are asked for.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, all, filters, page) = params.read(|p| {
        Ok((
            p.texts("InstanceId")?,
            p.flag("IncludeAllInstances")?.unwrap_or(false),
            Filters::read(p, &FILTERS)?,
            Page::read(p, (5, 1000))?,
        ))
    })?;
    if ids.len() > 100 {
        return Err(ApiError::client(
            "InvalidParameterValue",
            "The maximum number of instance IDs in a request is 100",
        ));
    }
    for id in &ids {
        check_id(id)?;
        call.region.ec2.instance(id, call.now)?;
    }
    let rows = call
        .region
        .ec2
        .instances
        .values()
        .filter(|instance| instance.visible_at <= call.now)
        .filter(|instance| ids.is_empty() || ids.contains(&instance.id))
        .filter(|instance| all || instance.is_up())
        .filter(|instance| filters.pass(&Tags::new(), |name| value(call, instance, name)))
        .map(|instance| (instance.id.clone(), render(call, instance)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    Ok(json!({"instanceStatusSet": rows, "nextToken": next}))
}

fn value(call: &Call<'_>, instance: &Instance, name: &str) -> Vec<String> {
    if name == "event.code" {
        return instance.health.event.iter().map(|(code, ..)| code.clone()).collect();
    }
    let value = match name {
        "availability-zone" => &instance.zone,
        "instance-state-name" => instance.state.wire().0,
        _ => verdict(call, instance),
    };
    vec![value.to_owned()]
}

fn verdict(call: &Call<'_>, instance: &Instance) -> &'static str {
    if !instance.is_up() {
        "not-applicable"
    } else if instance.health.impaired_since.is_some() {
        "impaired"
    } else if instance.status_ok_at <= call.now {
        "ok"
    } else {
        "initializing"
    }
}

fn render(call: &Call<'_>, instance: &Instance) -> Value {
    let verdict = verdict(call, instance);
    let (state, code) = instance.state.wire();
    let reachability = match verdict {
        "ok" => json!([{"name": "reachability", "status": "passed"}]),
        "initializing" => json!([{"name": "reachability", "status": "initializing"}]),
        "impaired" => {
            let since = instance.health.impaired_since.map(|since| since.to_string());
            json!([{"name": "reachability", "status": "failed", "impairedSince": since}])
        }
        _ => json!([]),
    };
    let events = instance.health.event.iter().map(|(code, description, time)| {
        let id = format!("instance-event-{}", instance.id.trim_start_matches("i-"));
        let not_before = time.to_string();
        json!({"code": code, "description": description, "instanceEventId": id, "notBefore": not_before})
    });
    let events: Vec<_> = events.collect();
    json!({
        "instanceId": instance.id,
        "availabilityZone": instance.zone,
        "instanceState": {"code": code, "name": state},
        "systemStatus": {"status": verdict, "details": reachability},
        "instanceStatus": {"status": verdict, "details": reachability},
        "eventsSet": events,
    })
}
