//! `DescribeInstanceInformation`: which agents SSM knows.

use serde::Deserialize;
use serde_json::{Value, json};

use super::invalid;
use crate::call::Call;
use crate::clock::epoch;
use crate::ec2::{Agent, Instance, Page, paginate};
use crate::ledger::Kind;
use crate::wire::{ApiError, decode_json};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    #[serde(default)]
    filters: Vec<Filter>,
    max_results: Option<usize>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Filter {
    key: String,
    values: Vec<String>,
}

/// `DescribeInstanceInformation`.
pub fn describe(call: &mut Call<'_>, request: &Value) -> Result<Value, ApiError> {
    let request: Request = decode_json(request)?;
    check(&request.filters)?;
    let size = request.max_results.unwrap_or(10);
    let page = Page::new(Some(size), request.next_token.as_deref(), (5, 50))
        .map_err(|error| invalid(error.message))?;
    let rows = call
        .region
        .ec2
        .instances
        .values()
        .filter(|instance| instance.is_up())
        .filter_map(|instance| render(call, instance))
        .filter(|(id, row)| request.filters.iter().all(|filter| passes(call, filter, id, row)))
        .collect();
    let (rows, next) = paginate(rows, &page, call.engine.dice, &call.now.to_string());
    let mut answer = json!({"InstanceInformationList": rows});
    if let (Some(next), Some(members)) = (next, answer.as_object_mut()) {
        members.insert("NextToken".to_owned(), json!(next));
    }
    Ok(answer)
}

fn check(filters: &[Filter]) -> Result<(), ApiError> {
    let known = ["InstanceIds", "PingStatus", "PlatformTypes", "ResourceType"];
    let about_tags = |filter: &&Filter| filter.key.starts_with("tag:");
    for filter in filters {
        if !known.contains(&filter.key.as_str()) && !about_tags(&filter) {
            return Err(ApiError::client(
                "InvalidFilterKey",
                format!("Invalid filter {}.", filter.key),
            ));
        }
        if filter.values.is_empty() || filter.values.len() > 100 {
            return Err(invalid("A filter takes 1 to 100 values."));
        }
    }
    if filters.iter().any(|filter| about_tags(&filter)) && filters.len() > 1 {
        return Err(invalid("Tag filters cannot be combined with others."));
    }
    Ok(())
}

fn passes(call: &Call<'_>, filter: &Filter, id: &str, row: &Value) -> bool {
    let found = match filter.key.as_str() {
        "InstanceIds" => Some(id.to_owned()),
        "PingStatus" => row.get("PingStatus").and_then(Value::as_str).map(str::to_owned),
        "PlatformTypes" => Some("Linux".to_owned()),
        "ResourceType" => Some("EC2Instance".to_owned()),
        key => {
            let key = key.trim_start_matches("tag:");
            call.tags(Kind::Instance, id).get(key).cloned()
        }
    };
    found.is_some_and(|value| filter.values.contains(&value))
}

fn render(call: &Call<'_>, instance: &Instance) -> Option<(String, Value)> {
    let (ping, at) = match instance.agent {
        Agent::Unregistered | Agent::Barred => return None,
        Agent::Online(_) => ("Online", call.now),
        Agent::Lost(since) => ("ConnectionLost", since),
    };
    let row = json!({
        "InstanceId": instance.id,
        "PingStatus": ping,
        "LastPingDateTime": epoch(at),
        "AgentVersion": "3.3.2746.0",
        "IsLatestVersion": true,
        "PlatformType": "Linux",
        "PlatformName": "Amazon Linux",
        "PlatformVersion": "2023",
        "ResourceType": "EC2Instance",
        "IPAddress": instance.private_ip,
        "ComputerName": instance.hostname(&call.region.name),
        "SourceId": instance.id,
        "SourceType": "AWS::EC2::Instance",
    });
    Some((instance.id.clone(), row))
}
