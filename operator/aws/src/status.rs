//! Which machines EC2 calls sick, and which it is about to take: one look for all clusters of a
//! region, at most as often as the installation says.
//!
//! Asked for by filters, so that a healthy account of any size answers with empty pages, and what
//! EC2 says nothing of, or not yet, is never taken for sick.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_ec2::types::{InstanceStatus, InstanceStatusEvent};
use hpc_plan::cloud::{Failure, InstanceId};
use hpc_plan::cluster::{Ailing, Ill};

use crate::action::DESCRIBE_INSTANCE_STATUS;
use crate::cache::Cached;
use crate::fleet::Reading;
use crate::region::Region;
use crate::words;

/// Items of a page.
const PAGE: i32 = 1000;
/// Checks of which one that fails makes a machine sick.
const CHECKS: [&str; 2] = ["instance-status.status", "system-status.status"];
/// What AWS may be about to do to an instance.
const EVENTS: [&str; 5] = [
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
];
/// Marks of events that are over.
const OVER: [&str; 2] = ["[Completed]", "[Canceled]"];

/// The latest look of a region.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    latest: Cached<Reading<Vec<Ailing>>>,
    /// Those that the look before called impaired.
    before: Mutex<BTreeSet<String>>,
}

impl Looks {
    /// Those impaired at this look and at the one before.
    fn confirmed(&self, impaired: BTreeSet<String>) -> Vec<Ailing> {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = impaired.intersection(&before).cloned();
        let twice = twice.map(|id| Ailing { id: InstanceId(id), ill: Ill::Impaired }).collect();
        *before = impaired;
        twice
    }
}

impl Region {
    /// Machines of the region that are sick or about to go, whoever's they are.
    pub async fn ailing(&self, keep: Duration) -> Reading<Vec<Ailing>> {
        let looks = &self.shared.looks;
        // A failure is kept as long: who may not ask does not ask at every pass.
        let read = || async { (self.look(looks).await.map(Arc::new), keep) };
        looks.latest.get(None, read).await
    }

    async fn look(&self, looks: &Looks) -> Result<Vec<Ailing>, Failure> {
        let mut impaired = BTreeSet::new();
        for check in CHECKS {
            let sick = self.statuses(words::filter(check, ["impaired"])).await?;
            impaired.extend(sick.iter().filter_map(InstanceStatus::instance_id).map(str::to_owned));
        }
        let coming = self.statuses(words::filter("event.code", EVENTS)).await?;
        let events = coming.iter().filter_map(event);
        let mut ailing = looks.confirmed(impaired);
        for event in events {
            if ailing.iter().all(|known| known.id != event.id) {
                ailing.push(event);
            }
        }
        Ok(ailing)
    }

    async fn statuses(
        &self,
        filter: aws_sdk_ec2::types::Filter,
    ) -> Result<Vec<InstanceStatus>, Failure> {
        let request = self.ec2.describe_instance_status().filters(filter);
        self.pages(|next| {
            let request = request.clone().max_results(PAGE).set_next_token(next);
            async move {
                let action = &DESCRIBE_INSTANCE_STATUS;
                let answer = self.call(action, || request.clone().send()).await?;
                Ok((answer.instance_statuses.unwrap_or_default(), answer.next_token))
            }
        })
        .await
    }
}

/// The first event of an instance that is still to come.
fn event(status: &InstanceStatus) -> Option<Ailing> {
    let mut coming = status.events().iter().filter(|event| !is_over(event));
    let event = coming.next()?;
    let code = event.code()?.as_str();
    let time = event.not_before().map_or_else(String::new, |time| format!(" not before {time}"));
    Some(Ailing {
        id: InstanceId(status.instance_id()?.to_owned()),
        ill: Ill::Event(format!("{code}{time}")),
    })
}

fn is_over(event: &InstanceStatusEvent) -> bool {
    let description = event.description().unwrap_or_default();
    OVER.iter().any(|mark| description.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(events: &[(&str, &str)]) -> InstanceStatus {
        let events = events.iter().map(|(code, description)| {
            let event = InstanceStatusEvent::builder().description(*description);
            event.code((*code).into()).build()
        });
        InstanceStatus::builder().instance_id("i-1").set_events(Some(events.collect())).build()
    }

    #[test]
    fn an_event_that_is_over_is_none() {
        for (events, expected) in [
            (vec![], None),
            (vec![("instance-stop", "[Completed] old hardware")], None),
            (vec![("instance-stop", "[Canceled] x")], None),
            (
                vec![("instance-stop", "[Completed] x"), ("system-reboot", "x")],
                Some("system-reboot"),
            ),
        ] {
            let found = event(&status(&events)).map(|found| found.ill);
            assert_eq!(found, expected.map(|code| Ill::Event(code.to_owned())), "{events:?}");
        }
    }

    #[test]
    fn a_machine_is_sick_only_at_the_second_look_in_a_row() {
        let looks = Looks::default();
        let look = |ids: &[&str]| {
            let found = looks.confirmed(ids.iter().map(|id| (*id).to_owned()).collect());
            found.into_iter().map(|found| found.id.0).collect::<Vec<_>>()
        };
        let none = Vec::<String>::new();
        assert_eq!(look(&["i-1"]), none);
        assert_eq!(look(&["i-1", "i-2"]), ["i-1"]);
        assert_eq!(look(&["i-2"]), ["i-2"]);
        assert_eq!(look(&[]), none);
        assert_eq!(look(&["i-2"]), none);
    }
}
