//! What must hold for a change whatever the caller believes: that a resource is ours before it is
//! touched, and that a launch keeps within the limits of the installation.
//!
//! Status can be forged and two clusters can be planned from the same picture, so neither is left
//! to the plan.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hpc_plan::cloud::{Failure, Kind, Tags};
use hpc_plan::cluster::Instance;
use hpc_plan::cluster::LaunchBody;
use hpc_plan::names::{CLUSTER_UID, INSTALLATION};
use tokio::time::Instant;

use crate::action::{Action, RUN_INSTANCES};
use crate::error::failure;
use crate::price::price;
use crate::{Limits, Scope};

/// How long AWS may hide what was launched.
const HIDDEN: Duration = Duration::from_mins(5);

/// Refuses what does not carry the uid and installation of this scope.
pub(crate) fn ours(action: &Action, scope: &Scope, id: &str, tags: &Tags) -> Result<(), Failure> {
    let carries = |key: &str, value: &str| tags.get(key).is_some_and(|found| found == value);
    if carries(INSTALLATION, &scope.owner.installation) && carries(CLUSTER_UID, &scope.owner.uid) {
        return Ok(());
    }
    let message = format!("{id} does not carry the tags of {}", scope.owner.full_name());
    Err(failure(action, Kind::Denied, "NotOurs", &message))
}

/// Instances and what they cost per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    /// Live ones.
    pub instances: i64,
    /// Micro-dollars per hour; a type without a known price counts as nothing.
    pub hourly_cost: i64,
}

impl Total {
    fn of(count: i64, instance_type: &str) -> Self {
        Self { instances: count, hourly_cost: price(instance_type).unwrap_or_default() * count }
    }
}

impl std::iter::Sum for Total {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            instances: sum.instances + one.instances,
            hourly_cost: sum.hourly_cost + one.hourly_cost,
        })
    }
}

/// Launches of this process that AWS may not show yet, and the totals of the other regions.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    pending: HashMap<String, Pending>,
    regions: HashMap<String, Total>,
}

#[derive(Debug)]
struct Pending {
    region: String,
    total: Total,
    at: Instant,
}

impl Launches {
    /// Totals over all regions, given what one of them shows now.
    pub fn total(&self, region: &str, seen: &[Instance]) -> Total {
        self.books.lock().unwrap_or_else(PoisonError::into_inner).total(region, seen, None)
    }

    /// Books a launch, unless it would exceed the limits. A repeat of a token replaces its first
    /// booking and does not count what it already launched.
    pub fn book(
        &self,
        scope: &Scope,
        seen: &[Instance],
        token: &str,
        body: &LaunchBody,
    ) -> Result<(), Failure> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = Total::of(i64::from(body.count), &body.instance_type);
        let sum = [books.total(&scope.region, seen, Some(token)), wanted].into_iter().sum();
        within(&scope.limits, sum)?;
        let pending = Pending { region: scope.region.clone(), total: wanted, at: Instant::now() };
        books.pending.insert(token.to_owned(), pending);
        Ok(())
    }

    /// Takes back the booking of a launch that AWS refused.
    pub fn refused(&self, token: &str) {
        self.books.lock().unwrap_or_else(PoisonError::into_inner).pending.remove(token);
    }
}

impl Books {
    fn total(&mut self, region: &str, seen: &[Instance], except: Option<&str>) -> Total {
        let is_seen = |token: &str| seen.iter().any(|one| one.token.as_deref() == Some(token));
        self.pending.retain(|token, pending| {
            pending.at.elapsed() < HIDDEN && !(pending.region == region && is_seen(token))
        });
        let live = seen.iter().filter(|one| one.state.is_live());
        let all: Total = live.clone().map(|one| Total::of(1, &one.instance_type)).sum();
        self.regions.insert(region.to_owned(), all);
        let others = self.regions.iter().filter(|(name, _)| *name != region);
        let hidden = self.pending.iter().filter(|(token, _)| Some(token.as_str()) != except);
        live.filter(|one| except.is_none() || one.token.as_deref() != except)
            .map(|one| Total::of(1, &one.instance_type))
            .chain(others.map(|(_, total)| *total))
            .chain(hidden.map(|(_, pending)| pending.total))
            .sum()
    }
}

fn within(limits: &Limits, sum: Total) -> Result<(), Failure> {
    let message = if sum.instances > limits.max_instances {
        format!("--max-instances is {}: this launch makes {}", limits.max_instances, sum.instances)
    } else if sum.hourly_cost > limits.max_hourly_cost {
        let dollars = |micro: i64| format!("{}.{:02}", micro / 1_000_000, micro / 10_000 % 100);
        let (limit, cost) = (dollars(limits.max_hourly_cost), dollars(sum.hourly_cost));
        format!("--max-hourly-cost is {limit} USD: this launch makes {cost} USD per hour")
    } else {
        return Ok(());
    };
    Err(failure(&RUN_INSTANCES, Kind::Quota, "LimitExceeded", &message))
}

#[cfg(test)]
mod tests {
    use hpc_plan::cluster::InstanceState;
    use hpc_plan::names::Owner;

    use super::*;

    fn scope(max_instances: i64, max_dollars: i64) -> Scope {
        Scope {
            region: "us-east-1".to_owned(),
            owner: Owner {
                installation: "lab".to_owned(),
                uid: "u1".to_owned(),
                namespace: "cfd".to_owned(),
                name: "wing".to_owned(),
            },
            limits: Limits { max_instances, max_hourly_cost: max_dollars * 1_000_000 },
        }
    }

    fn body(count: i32) -> LaunchBody {
        LaunchBody {
            count,
            instance_type: "c5n.18xlarge".to_owned(),
            image: "ami-1".to_owned(),
            subnet: "subnet-1".into(),
            groups: Vec::new(),
            interface: None,
            nics: Vec::new(),
            single_threaded: None,
            placement_group: None,
            profile: "node".to_owned(),
            key_name: None,
            user_data: String::new(),
            tags: Tags::new(),
        }
    }

    fn instance(token: &str, state: InstanceState) -> Instance {
        Instance {
            id: "i-1".into(),
            instance_type: "c5n.18xlarge".to_owned(),
            zone: "us-east-1a".to_owned(),
            state,
            state_reason: None,
            private_ip: None,
            launch_index: 0,
            token: Some(token.to_owned()),
            tags: Tags::new(),
        }
    }

    /// The code of the refusal, or `booked`.
    fn book(launches: &Launches, scope: &Scope, seen: &[Instance], token: &str, n: i32) -> String {
        match launches.book(scope, seen, token, &body(n)) {
            Ok(()) => "booked".to_owned(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn two_launches_planned_from_one_picture_share_the_limit() {
        let (launches, scope) = (Launches::default(), scope(4, 1000));
        assert_eq!(book(&launches, &scope, &[], "a", 3), "booked");
        assert_eq!(
            book(&launches, &scope, &[], "b", 2),
            "--max-instances is 4: this launch makes 5"
        );
        assert_eq!(book(&launches, &scope, &[], "b", 1), "booked");
    }

    #[test]
    fn what_aws_refused_or_shows_terminated_frees_its_share() {
        let (launches, scope) = (Launches::default(), scope(3, 1000));
        assert_eq!(book(&launches, &scope, &[], "a", 3), "booked");
        launches.refused("a");
        assert_eq!(book(&launches, &scope, &[], "b", 3), "booked");
        let gone = [instance("b", InstanceState::Terminated)];
        assert_eq!(book(&launches, &scope, &gone, "c", 3), "booked");
    }

    #[test]
    fn the_repeat_of_a_token_is_not_counted_twice() {
        let (launches, scope) = (Launches::default(), scope(3, 1000));
        assert_eq!(book(&launches, &scope, &[], "a", 3), "booked");
        assert_eq!(book(&launches, &scope, &[], "a", 3), "booked");
        let seen = [instance("a", InstanceState::Running), instance("a", InstanceState::Pending)];
        assert_eq!(book(&launches, &scope, &seen, "a", 3), "booked");
        assert_eq!(launches.total("us-east-1", &seen).instances, 2);
    }

    #[test]
    fn money_is_a_limit_of_its_own_and_other_regions_count() {
        let (launches, scope) = (Launches::default(), scope(20, 8));
        assert_eq!(book(&launches, &scope, &[], "a", 2), "booked");
        let elsewhere = Scope { region: "eu-west-1".to_owned(), ..scope };
        assert_eq!(
            book(&launches, &elsewhere, &[], "b", 1),
            "--max-hourly-cost is 8.00 USD: this launch makes 11.66 USD per hour"
        );
    }

    #[test]
    fn what_carries_another_uid_or_no_tags_is_refused() {
        let scope = scope(1, 1);
        let mut tags = scope.owner.tags("head", &Tags::new());
        assert_eq!(ours(&RUN_INSTANCES, &scope, "i-1", &tags), Ok(()));
        tags.insert(CLUSTER_UID.to_owned(), "u2".to_owned());
        for tags in [tags, Tags::new()] {
            let refusal = ours(&RUN_INSTANCES, &scope, "i-1", &tags).unwrap_err();
            assert_eq!(refusal.code, "NotOurs");
        }
    }
}
