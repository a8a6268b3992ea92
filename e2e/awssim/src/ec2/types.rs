//! `DescribeInstanceTypes` and `DescribeInstanceTypeOfferings`.

use serde_json::{Value, json};

use super::filters::Filters;
use super::page::{Page, paginate};
use crate::call::Call;
use crate::catalog::{InstanceType, Zone, offered};
use crate::ledger::Tags;
use crate::wire::{ApiError, Params};

const FILTERS: [&str; 13] = [
    "bare-metal",
    "current-generation",
    "hypervisor",
    "instance-type",
    "network-info.efa-info.maximum-efa-interfaces",
    "network-info.efa-supported",
    "network-info.maximum-network-cards",
    "network-info.maximum-network-interfaces",
    "processor-info.supported-architecture",
    "supported-usage-class",
    "vcpu-info.default-cores",
    "vcpu-info.default-vcpus",
    "memory-info.size-in-mib",
];

/// `DescribeInstanceTypes`.
pub fn describe(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (names, filters, page) = params.read(|p| {
        Ok((p.texts("InstanceType")?, Filters::read(p, &FILTERS)?, Page::read(p, (5, 100))?))
    })?;
    check_names(call, &names)?;
    if !names.is_empty() && page.is_sized() {
        return Err(ApiError::combination(
            "The parameter MaxResults cannot be used with the parameter InstanceTypes",
        ));
    }
    let zones = &call.region.ec2.network.zones;
    let rows = call
        .engine
        .types
        .all()
        .filter(|t| zones.iter().any(|zone| offered(t, zone)))
        .filter(|t| names.is_empty() || names.contains(&t.name))
        .filter(|t| filters.pass(&Tags::new(), |name| value(t, name)))
        .map(|t| (t.name.clone(), t))
        .collect();
    // Without `MaxResults` the service still answers at most 100 types.
    let (rows, next) = paginate(rows, &page.or_size(100), call.engine.dice, &call.now.to_string());
    let rows: Vec<Value> = rows.into_iter().map(|t| to_wire(&t.raw)).collect();
    Ok(json!({"instanceTypeSet": rows, "nextToken": next}))
}

fn check_names(call: &Call<'_>, names: &[String]) -> Result<(), ApiError> {
    if names.len() > 100 {
        return Err(ApiError::client(
            "InvalidParameterValue",
            "The maximum number of instance types in a request is 100",
        ));
    }
    let zones = &call.region.ec2.network.zones;
    let exists = |name: &str| {
        call.engine.types.get(name).is_some_and(|t| zones.iter().any(|zone| offered(t, zone)))
    };
    let unknown: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !exists(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(ApiError::client(
        "InvalidInstanceType",
        format!("The following supplied instance types do not exist: [{}]", unknown.join(", ")),
    ))
}

fn value(t: &InstanceType, name: &str) -> Vec<String> {
    let raw = |pointer: &str| {
        let found = t.raw.pointer(pointer).map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => value.to_string(),
        });
        found.into_iter().collect::<Vec<_>>()
    };
    match name {
        "bare-metal" => raw("/BareMetal"),
        "current-generation" => raw("/CurrentGeneration"),
        "hypervisor" => raw("/Hypervisor"),
        "instance-type" => vec![t.name.clone()],
        "network-info.efa-info.maximum-efa-interfaces" => vec![t.max_efa.to_string()],
        "network-info.efa-supported" => vec![(t.max_efa > 0).to_string()],
        "network-info.maximum-network-cards" => raw("/NetworkInfo/MaximumNetworkCards"),
        "network-info.maximum-network-interfaces" => vec![t.max_interfaces.to_string()],
        "processor-info.supported-architecture" => t.architectures.clone(),
        "supported-usage-class" => t.usage_classes.clone(),
        "vcpu-info.default-cores" => vec![t.cores.to_string()],
        "memory-info.size-in-mib" => vec![t.memory_mib.to_string()],
        _ => vec![t.vcpus.to_string()],
    }
}

/// Member names of the wire: the first letter is small, but for the exceptions
/// of EC2's model.
fn to_wire(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| member_to_wire(name, value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(to_wire).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn member_to_wire(member: &str, value: &Value) -> (String, Value) {
    let name = match member {
        "EbsCards" => "ebsCardSet".to_owned(),
        "InterfaceTypes" => "interfaceTypeSet".to_owned(),
        "Workloads" => "workloadSet".to_owned(),
        other => first_letter_small(other),
    };
    let value = if member == "InferenceAcceleratorInfo" {
        // The one list whose elements are not called `item`; no type has two.
        let accelerator = value.pointer("/Accelerators/0").map(to_wire);
        let memory = value.get("TotalInferenceMemoryInMiB");
        json!({"accelerators": {"member": accelerator}, "totalInferenceMemoryInMiB": memory})
    } else {
        to_wire(value)
    };
    (name, value)
}

fn first_letter_small(member: &str) -> String {
    let mut letters = member.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// `DescribeInstanceTypeOfferings`.
pub fn describe_offerings(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (place, filters, page) = params.read(|p| {
        Ok((
            p.text("LocationType")?.unwrap_or_else(|| "region".to_owned()),
            Filters::read(p, &["instance-type", "location"])?,
            Page::read(p, (5, 1000))?,
        ))
    })?;
    let locations = locations(call, &place)?;
    let mut rows = Vec::new();
    for (location, zones) in locations {
        let here = call.engine.types.all().filter(|t| zones.iter().any(|zone| offered(t, zone)));
        for t in here {
            let value = |name: &str| match name {
                "location" => vec![location.clone()],
                _ => vec![t.name.clone()],
            };
            if filters.pass(&Tags::new(), value) {
                let row = json!({
                    "instanceType": t.name, "locationType": place, "location": location,
                });
                rows.push((format!("{} {location}", t.name), row));
            }
        }
    }
    let (rows, next) = paginate(rows, &page.or_size(1000), call.engine.dice, &call.now.to_string());
    Ok(json!({"instanceTypeOfferingSet": rows, "nextToken": next}))
}

fn locations(call: &Call<'_>, place: &str) -> Result<Vec<(String, Vec<Zone>)>, ApiError> {
    let zones = call.region.ec2.network.zones.clone();
    match place {
        "region" => Ok(vec![(call.region.name.clone(), zones)]),
        "availability-zone" => {
            Ok(zones.into_iter().map(|zone| (zone.name.clone(), vec![zone])).collect())
        }
        "availability-zone-id" => {
            Ok(zones.into_iter().map(|zone| (zone.id.clone(), vec![zone])).collect())
        }
        other => Err(ApiError::invalid_value("LocationType", other, "Unknown location type.")),
    }
}
