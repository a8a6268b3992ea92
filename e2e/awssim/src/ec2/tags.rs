//! Tags: in create calls, `CreateTags`, `DeleteTags`, and their rules.

use serde_json::{Value, json};

use super::done;
use crate::call::Call;
use crate::ledger::{Kind, Tags};
use crate::wire::{ApiError, Params};

/// Most tags of one resource.
const MAX_TAGS: usize = 50;

/// `TagSpecification.N` of a create call, by resource type.
#[derive(Debug, Clone, Default)]
pub struct TagSpecifications(Vec<(String, Tags)>);

impl TagSpecifications {
    /// Reads them; only the `allowed` kinds may be tagged by this call.
    pub fn read(params: &mut Params, allowed: &[Kind]) -> Result<Self, ApiError> {
        let all = params.list("TagSpecification", |p| {
            Ok((p.required("ResourceType")?, p.list("Tag", read_tag)?))
        })?;
        let mut specifications: Vec<(String, Tags)> = Vec::new();
        for (kind, pairs) in all {
            if !allowed.iter().any(|known| known.name() == kind) {
                return Err(ApiError::client(
                    "InvalidParameterValue",
                    format!("'{kind}' is not a valid taggable resource type for this operation."),
                ));
            }
            if specifications.iter().any(|(known, _)| *known == kind) {
                return Err(ApiError::client(
                    "InvalidParameterValue",
                    format!("Duplicate tag specification for resource type '{kind}'"),
                ));
            }
            specifications.push((kind, collect(pairs)?));
        }
        Ok(Self(specifications))
    }

    /// Tags for one kind.
    pub fn of(&self, kind: Kind) -> Tags {
        let found = self.0.iter().find(|(name, _)| name == kind.name());
        found.map(|(_, tags)| tags.clone()).unwrap_or_default()
    }
}

fn read_tag(params: &mut Params) -> Result<(String, String), ApiError> {
    Ok((params.required("Key")?, params.text("Value")?.unwrap_or_default()))
}

/// A set of tags by EC2's rules: no duplicates, lengths, count, prefix.
fn collect(pairs: Vec<(String, String)>) -> Result<Tags, ApiError> {
    let mut tags = Tags::new();
    for (key, value) in pairs {
        if tags.insert(key.clone(), value).is_some() {
            return Err(ApiError::client(
                "InvalidParameterValue",
                format!("Duplicate tag key '{key}' specified."),
            ));
        }
    }
    check_tags(&tags)?;
    Ok(tags)
}

/// EC2's rules for tags.
pub fn check_tags(tags: &Tags) -> Result<(), ApiError> {
    for (key, value) in tags {
        let refusal = if key.to_lowercase().starts_with("aws:") {
            "Tag keys starting with 'aws:' are reserved for internal use"
        } else if key.is_empty() || key.chars().count() > 128 {
            "Tag key exceeds the maximum length of 128 characters"
        } else if value.chars().count() > 256 {
            "Tag value exceeds the maximum length of 256 characters"
        } else {
            continue;
        };
        return Err(ApiError::client("InvalidParameterValue", refusal));
    }
    if tags.len() > MAX_TAGS {
        return Err(ApiError::client("TagLimitExceeded", "The maximum number of Tags is 50"));
    }
    Ok(())
}

/// With `InstanceMetadataTags=enabled` a key becomes a path in IMDS.
pub fn check_metadata_keys(tags: &Tags) -> Result<(), ApiError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "+-=.,_:@".contains(c);
    let reserved = [".", "..", "_index"];
    match tags.keys().find(|key| !key.chars().all(allowed) || reserved.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(ApiError::client(
            "InvalidParameterValue",
            format!(
                "'{key}' is not a valid tag key. Tag keys must match pattern \
                 ([0-9a-zA-Z\\-_+=,.@:]{{1,255}}), and must not be a reserved name ('.', '..', '_index')"
            ),
        )),
    }
}

/// `tagSet` of an answer.
pub fn render_tags(tags: &Tags) -> Value {
    Value::Array(tags.iter().map(|(key, value)| json!({"key": key, "value": value})).collect())
}

/// `CreateTags`.
pub fn create(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, tags) = params.read(|p| Ok((p.texts("ResourceId")?, p.list("Tag", read_tag)?)))?;
    let tags = collect(tags)?;
    let kinds = known(call, &ids)?;
    for (kind, id) in &kinds {
        let mut all = call.tags(*kind, id).clone();
        all.extend(tags.clone());
        check_tags(&all)?;
    }
    call.commit()?;
    for (kind, id) in kinds {
        if let Some(existing) = call.account.ledger.tags_mut(kind, &call.region.name, &id) {
            existing.extend(tags.clone());
        }
    }
    Ok(done())
}

/// `DeleteTags`.
pub fn delete(call: &mut Call<'_>, params: Params) -> Result<Value, ApiError> {
    let (ids, tags) = params.read(|p| {
        let tag = |t: &mut Params| Ok((t.required("Key")?, t.text("Value")?));
        Ok((p.texts("ResourceId")?, p.list("Tag", tag)?))
    })?;
    let kinds = known(call, &ids)?;
    call.commit()?;
    for (kind, id) in kinds {
        let Some(existing) = call.account.ledger.tags_mut(kind, &call.region.name, &id) else {
            continue;
        };
        existing.retain(|key, value| {
            let named = tags.iter().find(|(tag, _)| tag == key);
            let hit = named.is_some_and(|(_, wanted)| wanted.as_ref().is_none_or(|w| w == value));
            !(hit || tags.is_empty())
        });
    }
    Ok(done())
}

/// The kind of each id, or the `NotFound` error of the first unknown one.
fn known(call: &Call<'_>, ids: &[String]) -> Result<Vec<(Kind, String)>, ApiError> {
    if ids.is_empty() {
        return Err(ApiError::missing("resourceIdSet"));
    }
    ids.iter()
        .map(|id| {
            let kind = Kind::of_ec2_id(id).filter(|kind| lives(call, *kind, id));
            kind.map(|kind| (kind, id.clone())).ok_or_else(|| not_found(id))
        })
        .collect()
}

fn lives(call: &Call<'_>, kind: Kind, id: &str) -> bool {
    let entry = call.account.ledger.find(kind, &call.region.name, id);
    let usable = match kind {
        Kind::Instance => {
            call.region.ec2.instances.get(id).is_some_and(|i| i.usable_at <= call.now)
        }
        Kind::NetworkInterface
        | Kind::Volume
        | Kind::SecurityGroup
        | Kind::PlacementGroup
        | Kind::FileSystem
        | Kind::Parameter
        | Kind::Document => true,
    };
    usable && entry.is_some_and(|entry| entry.deleted_at.is_none())
}

fn not_found(id: &str) -> ApiError {
    let (code, what) = match Kind::of_ec2_id(id) {
        Some(Kind::Instance) => ("InvalidInstanceID.NotFound", "instance ID"),
        Some(Kind::Volume) => ("InvalidVolume.NotFound", "volume"),
        Some(Kind::NetworkInterface) => {
            ("InvalidNetworkInterfaceID.NotFound", "networkInterface ID")
        }
        Some(Kind::SecurityGroup) => ("InvalidGroup.NotFound", "security group"),
        Some(Kind::PlacementGroup) => ("InvalidPlacementGroup.Unknown", "placement group"),
        Some(Kind::FileSystem | Kind::Parameter | Kind::Document) | None => ("InvalidID", "ID"),
    };
    ApiError::client(code, format!("The {what} '{id}' does not exist"))
}
