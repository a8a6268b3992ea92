//! Launch options that concern one instance by itself: user data, metadata
//! service, processor, market.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::instance::Metadata;
use super::launch_request::{LaunchRequest, MetadataRequest};
use super::tags::check_metadata_keys;
use crate::catalog::InstanceType;
use crate::ledger::Kind;
use crate::wire::ApiError;

const MOST_USER_DATA: usize = 16_384;

/// Base64 of at most 16 KiB.
pub fn decode_user_data(text: Option<&str>) -> Result<Option<Vec<u8>>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let data = STANDARD.decode(compact).map_err(|_undecodable| {
        ApiError::client("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data")
    })?;
    if data.len() > MOST_USER_DATA {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("User data is limited to {MOST_USER_DATA} bytes"),
        ));
    }
    Ok(Some(data))
}

pub fn check_metadata(request: &LaunchRequest) -> Result<Metadata, ApiError> {
    let asked: &MetadataRequest = &request.metadata;
    let one_of = |value: &Option<String>, known: [&str; 2], name: &str| {
        let value = value.clone().unwrap_or_else(|| known[0].to_owned());
        if known.contains(&value.as_str()) {
            return Ok(value);
        }
        Err(ApiError::invalid_value(name, &value, "Unknown value."))
    };
    let metadata = Metadata {
        tokens: one_of(&asked.tokens, ["optional", "required"], "HttpTokens")?,
        endpoint: one_of(&asked.endpoint, ["enabled", "disabled"], "HttpEndpoint")?,
        tags: one_of(&asked.tags, ["disabled", "enabled"], "InstanceMetadataTags")?,
        hop_limit: asked.hop_limit.unwrap_or(1),
    };
    if !(1..=64).contains(&metadata.hop_limit) {
        return Err(ApiError::invalid_value(
            "HttpPutResponseHopLimit",
            &metadata.hop_limit.to_string(),
            "Expecting a value between 1 and 64.",
        ));
    }
    if metadata.tags == "enabled" {
        check_metadata_keys(&request.tags.of(Kind::Instance))?;
    }
    Ok(metadata)
}

pub fn check_cpu(request: &LaunchRequest, t: &InstanceType) -> Result<(u32, u32), ApiError> {
    let (cores, threads) = match request.cpu {
        None | Some((None, None)) => return Ok((t.cores, t.threads)),
        Some((Some(cores), Some(threads))) => (cores, threads),
        Some(_) => {
            return Err(ApiError::client(
                "InvalidParameterCombination",
                "Both CoreCount and ThreadsPerCore must be specified in CpuOptions.",
            ));
        }
    };
    if t.valid_threads.is_empty() {
        return Err(ApiError::client(
            "InvalidParameterCombination",
            format!("CpuOptions is not supported by instance type {}.", t.name),
        ));
    }
    let cores_fit = t.valid_cores.is_empty() || t.valid_cores.contains(&cores);
    if !cores_fit || !t.valid_threads.contains(&threads) {
        return Err(ApiError::client(
            "InvalidParameterValue",
            format!("CoreCount {cores} with ThreadsPerCore {threads} is not valid for {}.", t.name),
        ));
    }
    Ok((cores, threads))
}

pub fn check_market(request: &LaunchRequest, t: &InstanceType) -> Result<&'static str, ApiError> {
    let market = match request.market.as_deref() {
        None => "on-demand",
        Some("spot") => "spot",
        Some(other) => {
            return Err(ApiError::invalid_value("MarketType", other, "Unknown market type."));
        }
    };
    if !t.usage_classes.is_empty() && !t.usage_classes.iter().any(|class| class == market) {
        return Err(ApiError::client(
            "UnsupportedOperation",
            format!("The instance type {} does not support the market {market}.", t.name),
        ));
    }
    Ok(market)
}

pub fn check_tenancy(request: &LaunchRequest) -> Result<(), ApiError> {
    match request.placement.tenancy.as_deref() {
        None | Some("default" | "dedicated") => Ok(()),
        Some(other) => Err(ApiError::invalid_value("Tenancy", other, "Unknown tenancy.")),
    }
}
