//! Every resource ever made, with the times of its making and going: what
//! tests count leaks and doubles with. It also is the only holder of tags.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::clock::iso;

/// What a ledger entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// EC2 instance.
    Instance,
    /// EC2 network interface.
    NetworkInterface,
    /// EBS volume.
    Volume,
    /// EC2 security group.
    SecurityGroup,
    /// EC2 placement group.
    PlacementGroup,
    /// FSx file system.
    FileSystem,
    /// SSM parameter.
    Parameter,
    /// SSM document.
    Document,
}

impl Kind {
    /// Name in answers, and EC2's `ResourceType` where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::NetworkInterface => "network-interface",
            Self::Volume => "volume",
            Self::SecurityGroup => "security-group",
            Self::PlacementGroup => "placement-group",
            Self::FileSystem => "file-system",
            Self::Parameter => "parameter",
            Self::Document => "document",
        }
    }

    fn service(self) -> &'static str {
        match self {
            Self::FileSystem => "fsx",
            Self::Parameter | Self::Document => "ssm",
            Self::Instance
            | Self::NetworkInterface
            | Self::Volume
            | Self::SecurityGroup
            | Self::PlacementGroup => "ec2",
        }
    }

    /// The kind an EC2 id's prefix says.
    pub fn of_ec2_id(id: &str) -> Option<Self> {
        match id.split_once('-')?.0 {
            "i" => Some(Self::Instance),
            "eni" => Some(Self::NetworkInterface),
            "vol" => Some(Self::Volume),
            "sg" => Some(Self::SecurityGroup),
            "pg" => Some(Self::PlacementGroup),
            _ => None,
        }
    }
}

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// One resource, alive or gone.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its id, or its name where AWS has no id.
    pub id: String,
    /// Region it lives in.
    pub region: String,
    /// When the create call took effect.
    pub created_at: Timestamp,
    /// When it was gone.
    pub deleted_at: Option<Timestamp>,
    /// Its tags now, or when it went.
    pub tags: Tags,
    /// Client token of the create call.
    pub client_token: Option<String>,
    /// What else tests ask for, by kind.
    pub detail: Value,
}

/// A resource to note down.
#[derive(Debug, Clone)]
pub struct Birth {
    /// What it is.
    pub kind: Kind,
    /// Its id or name.
    pub id: String,
    /// Tags of the create call.
    pub tags: Tags,
    /// Token of the create call.
    pub client_token: Option<String>,
    /// What else tests ask for.
    pub detail: Value,
}

/// All resources of an account.
#[derive(Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    newest: BTreeMap<Kind, BTreeMap<String, BTreeMap<String, usize>>>,
}

impl Ledger {
    /// Notes a new resource.
    pub fn add(&mut self, region: &str, now: Timestamp, birth: Birth) {
        let here = self.newest.entry(birth.kind).or_default().entry(region.to_owned()).or_default();
        here.insert(birth.id.clone(), self.entries.len());
        self.entries.push(Entry {
            kind: birth.kind,
            id: birth.id,
            region: region.to_owned(),
            created_at: now,
            deleted_at: None,
            tags: birth.tags,
            client_token: birth.client_token,
            detail: birth.detail,
        });
    }

    /// Notes that a resource is gone.
    pub fn remove(&mut self, kind: Kind, region: &str, id: &str, now: Timestamp) {
        if let Some(entry) = self.find_mut(kind, region, id) {
            entry.deleted_at.get_or_insert(now);
        }
    }

    /// Tags of a resource; none when it is unknown.
    pub fn tags(&self, kind: Kind, region: &str, id: &str) -> &Tags {
        static NONE: Tags = Tags::new();
        self.find(kind, region, id).map_or(&NONE, |entry| &entry.tags)
    }

    /// Tags to change.
    pub fn tags_mut(&mut self, kind: Kind, region: &str, id: &str) -> Option<&mut Tags> {
        self.find_mut(kind, region, id).map(|entry| &mut entry.tags)
    }

    /// The newest entry of that name.
    pub fn find(&self, kind: Kind, region: &str, id: &str) -> Option<&Entry> {
        let index = self.place(kind, region, id)?;
        self.entries.get(index)
    }

    fn place(&self, kind: Kind, region: &str, id: &str) -> Option<usize> {
        self.newest.get(&kind)?.get(region)?.get(id).copied()
    }

    fn find_mut(&mut self, kind: Kind, region: &str, id: &str) -> Option<&mut Entry> {
        let index = self.place(kind, region, id)?;
        self.entries.get_mut(index)
    }

    /// How many of a kind live now in a region.
    pub fn living(&self, kind: Kind, region: &str) -> usize {
        self.entries
            .iter()
            .filter(|entry| entry.kind == kind && entry.region == region)
            .filter(|entry| entry.deleted_at.is_none())
            .count()
    }

    /// The ledger as the control API shows it, as far as it is asked for.
    pub fn render(&self, account: &str, asked: impl Fn(&Entry) -> bool) -> Value {
        let entries = self.entries.iter().filter(|entry| asked(entry));
        Value::Array(entries.map(|entry| render_entry(entry, account)).collect())
    }
}

fn render_entry(entry: &Entry, account: &str) -> Value {
    json!({
        "kind": entry.kind.name(),
        "id": entry.id,
        "service": entry.kind.service(),
        "account": account,
        "region": entry.region,
        "createdAt": iso(entry.created_at),
        "deletedAt": entry.deleted_at.map(iso),
        "tags": entry.tags,
        "clientToken": entry.client_token,
        "detail": entry.detail,
    })
}
