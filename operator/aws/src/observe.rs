//! One observation: every read a cluster needs, at the same time, through the shared caches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hpc_plan::cloud::{Failure, InstanceId, InstanceType, Kind, Tags};
use hpc_plan::cluster::{
    Account, Ailing, FileSystem, Group, Image, Instance, InstanceState, Interface, Lifecycle,
    Observed, PlacementGroup, Report, Stranger, Subnet, Volume, VolumeState,
};
use hpc_plan::names::{CLUSTER, CLUSTER_UID, HEAD, Owner, RETAINED, ROLE};
use tokio::time::Instant;

use crate::Query;
use crate::action::{DESCRIBE_AGENTS, GET_CALLER};
use crate::fleet::{Reading, kept};
use crate::price::price;
use crate::region::{Aws, Region};

/// Whose credentials we hold; they may be replaced under us.
const ACCOUNT: Duration = Duration::from_secs(30);
/// Which agents are online.
const AGENTS: Duration = Duration::from_millis(2500);
/// Values of one filter of `DescribeInstanceInformation`.
const AGENTS_PER_CALL: usize = 50;

/// See [`crate::Cloud::observe`].
pub(crate) async fn observe(aws: &Aws, query: &Query) -> Observed {
    let region = aws.region(&query.scope.region);
    let since = region.shared.not_before(query);
    let ((account, facts), (things, documents)) = tokio::join!(
        futures::future::join(aws.account(&region), facts(&region, query)),
        futures::future::join(things(&region, query, since), documents(&region, query, since)),
    );
    let mut observed = Observed { prices: prices(query), ..Observed::default() };
    let mut failures = Failures::default();
    observed.account = failures.keep(account);
    facts.tell(&mut observed, &mut failures);
    documents.tell(query, &mut observed, &mut failures);
    things.tell(aws, query, &mut observed, &mut failures);
    observed.failures = failures.0;
    observed
}

/// See [`crate::Cloud::report`].
pub(crate) async fn report(region: &Region, parameter: &str) -> Result<Option<Report>, Failure> {
    let parameters = region.parameters(None).await?;
    Ok(parameters.get(parameter).and_then(|value| Report::read(value)))
}

fn prices(query: &Query) -> BTreeMap<String, i64> {
    query.types.iter().filter_map(|name| Some((name.clone(), price(name)?))).collect()
}

/// Collects failed reads; the fields they fill stay empty.
#[derive(Default)]
struct Failures(Vec<Failure>);

impl Failures {
    fn keep<T: Default>(&mut self, reading: Result<T, Failure>) -> T {
        reading.unwrap_or_else(|failure| {
            if !self.0.contains(&failure) {
                self.0.push(failure);
            }
            T::default()
        })
    }

    fn read<T: Default + Clone>(&mut self, reading: Reading<T>) -> T {
        self.keep(reading.map(Arc::unwrap_or_clone))
    }
}

/// What AWS offers: the same for every cluster that asks for the same.
struct Facts {
    subnets: Reading<Vec<Subnet>>,
    types: Reading<Vec<InstanceType>>,
    offered: Reading<Vec<(String, String)>>,
    image: Reading<Option<Image>>,
}

async fn facts(region: &Region, query: &Query) -> Facts {
    let (subnets, types, offered, image) = tokio::join!(
        region.subnets(&query.subnets),
        region.types(&query.types),
        region.offered(&query.types),
        region.image(&query.image),
    );
    Facts { subnets, types, offered, image }
}

impl Facts {
    fn tell(self, observed: &mut Observed, failures: &mut Failures) {
        observed.subnets = failures.read(self.subnets);
        let types = failures.read(self.types).into_iter();
        observed.types = types.map(|one| (one.name.clone(), one)).collect();
        observed.offered = failures.read(self.offered);
        observed.image = failures.read(self.image);
    }
}

/// What Systems Manager holds.
struct Documents {
    document: Reading<bool>,
    parameters: Reading<BTreeMap<String, String>>,
}

async fn documents(region: &Region, query: &Query, since: Option<Instant>) -> Documents {
    // A document that is active stays so: a fresh look at it tells nothing.
    let document = region.document(&query.document, region.shared.last_act(query));
    let (document, parameters) = tokio::join!(document, region.parameters(since));
    Documents { document, parameters }
}

impl Documents {
    fn tell(self, query: &Query, observed: &mut Observed, failures: &mut Failures) {
        observed.document_ready = failures.read(self.document);
        let parameters = failures.keep(self.parameters);
        let value = parameters.get(&query.parameter);
        observed.parameter_exists = value.is_some();
        let notes = parameters.iter().filter(|(name, _)| query.scope.owner.may_tell(name));
        observed.notes = notes.map(|(name, text)| (name.clone(), text.clone())).collect();
        observed.report = value.and_then(|value| Report::read(value.as_str()));
    }
}

/// What the installation has.
struct Things {
    instances: Reading<Vec<Instance>>,
    volumes: Reading<Vec<Volume>>,
    interfaces: Reading<Vec<Interface>>,
    groups: Reading<Vec<Group>>,
    placement_groups: Reading<Vec<(PlacementGroup, Tags)>>,
    file_systems: Reading<Vec<FileSystem>>,
    ailing: Reading<Vec<Ailing>>,
    agents: Result<Vec<InstanceId>, Failure>,
}

async fn things(region: &Region, query: &Query, since: Option<Instant>) -> Things {
    let id = &query.scope.owner.installation;
    let (instances, volumes, interfaces, groups, placement_groups, file_systems) = tokio::join!(
        region.instances(id, since),
        region.volumes(id, since),
        region.interfaces(id, since),
        region.groups(id, since),
        region.placement_groups(id, since),
        region.wanted_file_systems(query, since),
    );
    let ailing = region.ailing(query.status_poll).await;
    let agents = match &instances {
        Ok(all) => region.agents(heads(all)).await,
        Err(_) => Ok(Vec::new()),
    };
    Things {
        instances,
        volumes,
        interfaces,
        groups,
        placement_groups,
        file_systems,
        ailing,
        agents,
    }
}

fn heads(instances: &[Instance]) -> Vec<InstanceId> {
    let runs = |one: &&Instance| one.state == InstanceState::Running;
    let is_head = |one: &&Instance| has_role(&one.tags, HEAD);
    let mut ids: Vec<_> =
        instances.iter().filter(runs).filter(is_head).map(|one| one.id.clone()).collect();
    ids.sort();
    ids
}

impl Things {
    fn tell(self, aws: &Aws, query: &Query, observed: &mut Observed, failures: &mut Failures) {
        let owner = &query.scope.owner;
        let instances = failures.keep(self.instances);
        let total = aws.launches.total(&query.scope.region, &instances);
        observed.installation_instances = total.instances;
        observed.installation_hourly_cost = total.hourly_cost;
        let volumes = failures.keep(self.volumes);
        let interfaces = failures.keep(self.interfaces);
        let groups = failures.keep(self.groups);
        let placement_groups = failures.keep(self.placement_groups);
        let file_systems = failures.keep(self.file_systems);
        let strangers = Strangers(owner);
        observed.strangers = [
            strangers.among(&instances, |one| (one.id.as_str(), &one.tags, one.state.is_live())),
            strangers.among(&volumes, |one| {
                (one.id.as_str(), &one.tags, one.state != VolumeState::Deleting)
            }),
            strangers.among(&interfaces, |one| (one.id.as_str(), &one.tags, true)),
            strangers.among(&groups, |one| (one.id.as_str(), &one.tags, true)),
            strangers.among(&placement_groups, |(one, tags)| (&one.name, tags, !one.deleting)),
            strangers.among(&file_systems, |one| {
                (one.id.as_str(), &one.tags, one.lifecycle != Lifecycle::Deleting)
            }),
        ]
        .concat();
        let mine = |tags: &Tags| tags.get(CLUSTER_UID) == Some(&owner.uid);
        observed.instances = chosen(&instances, |one| mine(&one.tags));
        observed.volumes = chosen(&volumes, |one| mine(&one.tags));
        observed.interfaces = chosen(&interfaces, |one| mine(&one.tags));
        observed.groups = chosen(&groups, |one| mine(&one.tags));
        let placement_groups = chosen(&placement_groups, |(_, tags)| mine(tags)).into_iter();
        observed.placement_groups = placement_groups.map(|(group, _)| group).collect();
        observed.file_systems = chosen(&file_systems, |one| mine(&one.tags));
        // Who may not ask how machines fare does not know, and unknown is not sick.
        let ailing = self.ailing.map(Arc::unwrap_or_clone).unwrap_or_default();
        let is_mine = |one: &Ailing| observed.instances.iter().any(|found| found.id == one.id);
        observed.ailing = ailing.into_iter().filter(is_mine).collect();
        observed.agents_online = failures.keep(self.agents);
        observed.agents_online.retain(|id| observed.instances.iter().any(|one| one.id == *id));
    }
}

fn has_role(tags: &Tags, role: &str) -> bool {
    tags.get(ROLE).is_some_and(|found| found == role)
}

fn chosen<T: Clone>(all: &[T], mine: impl Fn(&T) -> bool) -> Vec<T> {
    all.iter().filter(|one| mine(one)).cloned().collect()
}

/// Finds what an earlier object of the same name left.
struct Strangers<'o>(&'o Owner);

impl Strangers<'_> {
    /// `look` answers id, tags and whether the thing still stands.
    fn among<T>(&self, all: &[T], look: impl Fn(&T) -> (&str, &Tags, bool)) -> Vec<Stranger> {
        let name = self.0.full_name();
        let stranger = |one| {
            let (id, tags, stands) = look(one);
            let uid = tags.get(CLUSTER_UID)?;
            let same_name = tags.get(CLUSTER) == Some(&name);
            (stands && same_name && *uid != self.0.uid).then(|| Stranger {
                id: id.to_owned(),
                uid: uid.clone(),
                retained: tags.contains_key(RETAINED),
            })
        };
        all.iter().filter_map(stranger).collect()
    }
}

impl Aws {
    async fn account(&self, region: &Region) -> Result<Option<Account>, Failure> {
        let read = || async {
            let answer = region.call(&GET_CALLER, || region.sts.get_caller_identity().send()).await;
            let account = answer.map(|answer| Account {
                id: answer.account.unwrap_or_default(),
                partition: partition(answer.arn.as_deref().unwrap_or_default()),
            });
            let keep = if account.is_ok() { ACCOUNT } else { Duration::from_secs(1) };
            (account, keep)
        };
        self.account.get(None, read).await.map(Some)
    }
}

/// `aws` of `arn:aws:sts::123456789012:…`.
fn partition(arn: &str) -> String {
    arn.split(':').nth(1).unwrap_or("aws").to_owned()
}

impl Region {
    /// Of these instances, those whose agent is online.
    async fn agents(&self, heads: Vec<InstanceId>) -> Result<Vec<InstanceId>, Failure> {
        let mut online = Vec::new();
        for chunk in heads.chunks(AGENTS_PER_CALL) {
            let read = || async { kept(self.online(chunk).await, AGENTS) };
            let some = self.shared.agents.get(chunk.to_vec(), None, read).await?;
            online.extend(some.iter().cloned());
        }
        Ok(online)
    }

    async fn online(&self, ids: &[InstanceId]) -> Result<Vec<InstanceId>, Failure> {
        let filter = aws_sdk_ssm::types::InstanceInformationStringFilter::builder()
            .key("InstanceIds")
            .set_values(Some(ids.iter().map(|id| id.0.clone()).collect()))
            .build();
        let Ok(filter) = filter else {
            return Ok(Vec::new());
        };
        let request = self.ssm.describe_instance_information().filters(filter).max_results(50);
        self.pages(|next| {
            let request = request.clone().set_next_token(next);
            async move {
                let answer = self.call(&DESCRIBE_AGENTS, || request.clone().send()).await?;
                let online = |one: &&aws_sdk_ssm::types::InstanceInformation| {
                    one.ping_status() == Some(&aws_sdk_ssm::types::PingStatus::Online)
                };
                let list = answer.instance_information_list().iter().filter(online);
                let ids = list.filter_map(|one| one.instance_id()).map(InstanceId::from).collect();
                Ok((ids, answer.next_token))
            }
        })
        .await
    }

    /// By id where the ids are known, by a listing while they are not or one of them is gone.
    async fn wanted_file_systems(
        &self,
        query: &Query,
        since: Option<Instant>,
    ) -> Reading<Vec<FileSystem>> {
        let ids = &query.file_systems;
        if query.list_file_systems {
            return self.file_systems(since).await;
        }
        if ids.is_empty() {
            return Ok(Arc::default());
        }
        let read = || async { kept(self.described_file_systems(ids).await, AGENTS) };
        match self.shared.known_file_systems.get(ids.clone(), since, read).await {
            Err(failure) if failure.kind == Kind::NotFound => self.file_systems(since).await,
            reading => reading,
        }
    }
}
