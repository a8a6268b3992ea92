//! What the installation has in one region, read once for all its clusters.
//!
//! One paged Describe per kind, filtered by the installation tag, answers every cluster: the cost
//! grows with the number of resources, not with the number of objects. The longer the answer, the
//! longer it is kept, which holds the pace at a page every few seconds whatever the size.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hpc_plan::cloud::{Failure, FileSystemId, InstanceId, InstanceType, SubnetId, Tags};
use hpc_plan::cluster::{
    FileSystem, Group, Image, Instance, Interface, PlacementGroup, Subnet, Volume,
};
use hpc_plan::names::{HEAD_INTERFACE, INSTALLATION, ROLE, STATE};
use tokio::time::Instant;

use crate::action::{
    DESCRIBE_FILE_SYSTEMS, DESCRIBE_INSTANCES, DESCRIBE_NETWORK_INTERFACES,
    DESCRIBE_PLACEMENT_GROUPS, DESCRIBE_SECURITY_GROUPS, DESCRIBE_VOLUMES, GET_PARAMETERS,
};
use crate::cache::{Cached, Keyed};
use crate::region::Region;
use crate::status::Looks;
use crate::words;
use crate::{ImageQuery, Query};

/// Items of a page of EC2.
const PAGE: i32 = 1000;
/// How long a reading is kept, for each page it took.
const KEEP_PAGE: Duration = Duration::from_millis(2500);
/// How long a failure is shared among those who ask at the same time.
const KEEP_FAILURE: Duration = Duration::from_secs(1);
/// Where the heads report.
const PARAMETERS: &str = "/hpcops/";

/// A reading that many share.
pub(crate) type Reading<T> = Result<Arc<T>, Failure>;

/// The shared readings of one region.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    instances: Keyed<String, Reading<Vec<Instance>>>,
    volumes: Keyed<String, Reading<Vec<Volume>>>,
    interfaces: Keyed<String, Reading<Vec<Interface>>>,
    groups: Keyed<String, Reading<Vec<Group>>>,
    placement_groups: Keyed<String, Reading<Vec<(PlacementGroup, Tags)>>>,
    parameters: Cached<Reading<BTreeMap<String, String>>>,
    file_systems: Cached<Reading<Vec<FileSystem>>>,
    pub agents: Keyed<Vec<InstanceId>, Reading<Vec<InstanceId>>>,
    pub known_file_systems: Keyed<Vec<FileSystemId>, Reading<Vec<FileSystem>>>,
    pub subnets: Keyed<Vec<SubnetId>, Reading<Vec<Subnet>>>,
    pub types: Keyed<Vec<String>, Reading<Vec<InstanceType>>>,
    pub offered: Keyed<Vec<String>, Reading<Vec<(String, String)>>>,
    pub images: Keyed<ImageQuery, Reading<Option<Image>>>,
    pub documents: Keyed<String, Reading<bool>>,
    pub looks: Looks,
    acts: Mutex<HashMap<String, Instant>>,
}

impl Shared {
    /// Notes that something was done for the object of this uid: no reading that began before
    /// counts for it any more.
    pub fn acted(&self, uid: &str) {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.insert(uid.to_owned(), Instant::now());
    }

    /// The moment after which a reading must have begun to count for this query.
    pub fn not_before(&self, query: &Query) -> Option<Instant> {
        if query.fresh { Some(Instant::now()) } else { self.last_act(query) }
    }

    /// When something was last done for the object of this query.
    pub fn last_act(&self, query: &Query) -> Option<Instant> {
        let acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.get(&query.scope.owner.uid).copied()
    }
}

/// Puts a finished reading into shape for the cache.
pub(crate) fn kept<T>(reading: Result<T, Failure>, keep: Duration) -> (Reading<T>, Duration) {
    match reading {
        Ok(value) => (Ok(Arc::new(value)), keep),
        Err(failure) => (Err(failure), KEEP_FAILURE),
    }
}

fn kept_by_size<T>(reading: Result<Vec<T>, Failure>, page: usize) -> (Reading<Vec<T>>, Duration) {
    let pages = reading.as_ref().map_or(1, |items| items.len() / page + 1);
    kept(reading, KEEP_PAGE * u32::try_from(pages).unwrap_or(u32::MAX))
}

/// Reads one page through the action's bucket and passes its items on as our words.
macro_rules! page {
    ($region:expr, $action:expr, $request:expr, $items:ident) => {{
        let request = $request;
        let answer = $region.call($action, || request.clone().send()).await?;
        (answer.$items.unwrap_or_default(), answer.next_token)
    }};
}

impl Region {
    fn ours(installation: &str) -> aws_sdk_ec2::types::Filter {
        words::filter(&format!("tag:{INSTALLATION}"), [installation])
    }

    /// Volumes and interfaces made with an instance carry its role and go with it; of ten thousand
    /// nodes nobody wants to read them. Those with a role of their own were made on their own.
    fn in_role(role: &str) -> aws_sdk_ec2::types::Filter {
        words::filter(&format!("tag:{ROLE}"), [role])
    }

    /// Instances of the installation, those that are gone included while AWS shows them.
    pub async fn instances(
        &self,
        installation: &str,
        not_before: Option<Instant>,
    ) -> Reading<Vec<Instance>> {
        let read = || async {
            kept_by_size(self.described_instances(&[Self::ours(installation)]).await, PAGE as usize)
        };
        self.shared.instances.get(installation.to_owned(), not_before, read).await
    }

    /// Instances that fit the filters, uncached.
    pub async fn described_instances(
        &self,
        filters: &[aws_sdk_ec2::types::Filter],
    ) -> Result<Vec<Instance>, Failure> {
        let request = self.ec2.describe_instances().set_filters(Some(filters.to_vec()));
        self.pages(|next| {
            let request = request.clone().max_results(PAGE).set_next_token(next);
            async move {
                let (items, next) = page!(self, &DESCRIBE_INSTANCES, request, reservations);
                let items = items.iter().flat_map(aws_sdk_ec2::types::Reservation::instances);
                Ok((items.map(words::instance).collect(), next))
            }
        })
        .await
    }

    /// State volumes of the installation.
    pub async fn volumes(
        &self,
        installation: &str,
        not_before: Option<Instant>,
    ) -> Reading<Vec<Volume>> {
        let request = self
            .ec2
            .describe_volumes()
            .filters(Self::ours(installation))
            .filters(Self::in_role(STATE));
        let read = || async {
            let all = self.pages(|next| {
                let request = request.clone().max_results(PAGE).set_next_token(next);
                async move {
                    let (items, next) = page!(self, &DESCRIBE_VOLUMES, request, volumes);
                    Ok((items.iter().map(words::volume).collect(), next))
                }
            });
            kept_by_size(all.await, PAGE as usize)
        };
        self.shared.volumes.get(installation.to_owned(), not_before, read).await
    }

    /// Interfaces of the installation's heads.
    pub async fn interfaces(
        &self,
        installation: &str,
        not_before: Option<Instant>,
    ) -> Reading<Vec<Interface>> {
        let request = self
            .ec2
            .describe_network_interfaces()
            .filters(Self::ours(installation))
            .filters(Self::in_role(HEAD_INTERFACE));
        let read = || async {
            let all = self.pages(|next| {
                let request = request.clone().max_results(PAGE).set_next_token(next);
                async move {
                    let action = &DESCRIBE_NETWORK_INTERFACES;
                    let (items, next) = page!(self, action, request, network_interfaces);
                    Ok((items.iter().map(words::interface).collect(), next))
                }
            });
            kept_by_size(all.await, PAGE as usize)
        };
        self.shared.interfaces.get(installation.to_owned(), not_before, read).await
    }

    /// Security groups of the installation.
    pub async fn groups(
        &self,
        installation: &str,
        not_before: Option<Instant>,
    ) -> Reading<Vec<Group>> {
        let request = self.ec2.describe_security_groups().filters(Self::ours(installation));
        let read = || async {
            let all = self.pages(|next| {
                let request = request.clone().max_results(PAGE).set_next_token(next);
                async move {
                    let (items, next) =
                        page!(self, &DESCRIBE_SECURITY_GROUPS, request, security_groups);
                    Ok((items.iter().map(words::group).collect(), next))
                }
            });
            kept_by_size(all.await, PAGE as usize)
        };
        self.shared.groups.get(installation.to_owned(), not_before, read).await
    }

    /// Placement groups of the installation with their tags; this call has no pages.
    pub async fn placement_groups(
        &self,
        installation: &str,
        not_before: Option<Instant>,
    ) -> Reading<Vec<(PlacementGroup, Tags)>> {
        let request = self.ec2.describe_placement_groups().filters(Self::ours(installation));
        let read = || async {
            let answer = self.call(&DESCRIBE_PLACEMENT_GROUPS, || request.clone().send()).await;
            let all = answer.map(|answer| {
                let groups = answer.placement_groups().iter();
                groups
                    .map(|group| (words::placement_group(group), words::tags(group.tags())))
                    .collect()
            });
            kept_by_size(all, PAGE as usize)
        };
        self.shared.placement_groups.get(installation.to_owned(), not_before, read).await
    }

    /// What the heads of the region report, by parameter name.
    pub async fn parameters(
        &self,
        not_before: Option<Instant>,
    ) -> Reading<BTreeMap<String, String>> {
        let request = self.ssm.get_parameters_by_path().path(PARAMETERS).recursive(true);
        let read = || async {
            let all = self.pages(|next| {
                let request = request.clone().max_results(10).set_next_token(next);
                async move {
                    let (items, next) = page!(self, &GET_PARAMETERS, request, parameters);
                    let pair =
                        |item: aws_sdk_ssm::types::Parameter| Some((item.name?, item.value?));
                    Ok((items.into_iter().filter_map(pair).collect(), next))
                }
            });
            kept(all.await.map(BTreeMap::from_iter), KEEP_PAGE)
        };
        self.shared.parameters.get(not_before, read).await
    }

    /// All file systems of the account: FSx filters by nothing but the id.
    pub async fn file_systems(&self, not_before: Option<Instant>) -> Reading<Vec<FileSystem>> {
        let read = || async { kept_by_size(self.described_file_systems(&[]).await, 50) };
        self.shared.file_systems.get(not_before, read).await
    }

    /// File systems by id, or all of them; one unknown id fails the call.
    pub async fn described_file_systems(
        &self,
        ids: &[FileSystemId],
    ) -> Result<Vec<FileSystem>, Failure> {
        let ids: Vec<_> = ids.iter().map(|id| id.0.clone()).collect();
        let request =
            self.fsx.describe_file_systems().set_file_system_ids((!ids.is_empty()).then_some(ids));
        self.pages(|next| {
            let request = request.clone().set_next_token(next);
            async move {
                let (items, next) = page!(self, &DESCRIBE_FILE_SYSTEMS, request, file_systems);
                Ok((items.iter().map(words::file_system).collect(), next))
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_of_any_size_costs_at_most_two_percent_of_the_budget() {
        for size in [0, 999, 10_000, 100_000] {
            let (_, keep) = kept_by_size(Ok(vec![(); size]), PAGE as usize);
            let calls = f64::from(u32::try_from(size / PAGE as usize + 1).unwrap());
            let budget = DESCRIBE_INSTANCES.requests.refill;
            assert!(calls / keep.as_secs_f64() <= 0.02 * budget, "{size}");
        }
    }
}
