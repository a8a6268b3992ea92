//! What AWS has on offer: subnets, types, where they are to be had, images, and our own document.
//! The same for every cluster that asks for the same, and slow to change.

use std::sync::Arc;
use std::time::Duration;

use hpc_plan::cloud::{InstanceType, Kind, SubnetId};
use hpc_plan::cluster::{Image, Subnet};
use tokio::time::Instant;

use crate::action::{
    DESCRIBE_DOCUMENT, DESCRIBE_IMAGES, DESCRIBE_INSTANCE_TYPES, DESCRIBE_OFFERINGS,
    DESCRIBE_SUBNETS,
};
use crate::fleet::{Reading, kept};
use crate::region::Region;
use crate::{ImageQuery, words};

/// Facts that hardly ever change.
const LONG: Duration = Duration::from_mins(10);
/// The same facts while they disappoint.
const SHORT: Duration = Duration::from_secs(5);

impl Region {
    /// Those of these subnets that exist.
    pub async fn subnets(&self, ids: &[SubnetId]) -> Reading<Vec<Subnet>> {
        let ids = distinct(ids);
        let filter = words::filter("subnet-id", ids.iter().map(SubnetId::as_str));
        let request = self.ec2.describe_subnets().filters(filter);
        let wanted = ids.len();
        let read = || async {
            let answer = self.call(&DESCRIBE_SUBNETS, || request.clone().send()).await;
            let found: Result<Vec<_>, _> =
                answer.map(|answer| answer.subnets().iter().map(words::subnet).collect());
            let whole = found.as_ref().is_ok_and(|found| found.len() == wanted);
            kept(found, if whole { LONG / 10 } else { SHORT })
        };
        self.shared.subnets.get(ids.clone(), None, read).await
    }

    /// Those of these types that exist.
    pub async fn types(&self, names: &[String]) -> Reading<Vec<InstanceType>> {
        let names = distinct(names);
        let filter = words::filter("instance-type", names.clone());
        let request = self.ec2.describe_instance_types().filters(filter);
        let wanted = names.len();
        let read = || async {
            let found = self.pages(|next| {
                let request = request.clone().set_next_token(next);
                async move {
                    let answer = self.call(&DESCRIBE_INSTANCE_TYPES, || request.clone().send());
                    let answer = answer.await?;
                    let types = answer.instance_types().iter().map(words::instance_type).collect();
                    Ok((types, answer.next_token))
                }
            });
            let found = found.await;
            let whole = found.as_ref().is_ok_and(|found| found.len() == wanted);
            kept(found, if whole { LONG } else { SHORT })
        };
        self.shared.types.get(names.clone(), None, read).await
    }

    /// In which zones these types are to be had.
    pub async fn offered(&self, names: &[String]) -> Reading<Vec<(String, String)>> {
        let names = distinct(names);
        let request = self
            .ec2
            .describe_instance_type_offerings()
            .location_type(aws_sdk_ec2::types::LocationType::AvailabilityZone)
            .filters(words::filter("instance-type", names.clone()));
        let read = || async {
            let found = self.pages(|next| {
                let request = request.clone().set_next_token(next);
                async move {
                    let answer = self.call(&DESCRIBE_OFFERINGS, || request.clone().send()).await?;
                    let pair = |one: &aws_sdk_ec2::types::InstanceTypeOffering| {
                        Some((one.instance_type()?.as_str().to_owned(), one.location()?.to_owned()))
                    };
                    let pairs = answer.instance_type_offerings().iter().filter_map(pair).collect();
                    Ok((pairs, answer.next_token))
                }
            });
            kept(found.await, LONG / 10)
        };
        self.shared.offered.get(names.clone(), None, read).await
    }

    /// The image, if there is one.
    pub async fn image(&self, query: &ImageQuery) -> Reading<Option<Image>> {
        let images = self.ec2.describe_images();
        let request = match query {
            ImageQuery::Id(id) => images.filters(words::filter("image-id", [id])),
            ImageQuery::Family { owner, names, instance_type } => {
                let types = self.types(std::slice::from_ref(instance_type)).await?;
                let name = types.first().and_then(|info| names.get(&info.architecture));
                let Some(name) = name else {
                    return Ok(Arc::default());
                };
                let name = words::filter("name", [name]);
                images.owners(owner).filters(name).filters(words::filter("state", ["available"]))
            }
        };
        let read = || async {
            let answer = self.call(&DESCRIBE_IMAGES, || request.clone().send()).await;
            let newest = answer.map(|answer| {
                let images = answer.images().iter();
                images.max_by_key(|image| image.creation_date()).map(words::image)
            });
            let found = newest.as_ref().is_ok_and(Option::is_some);
            kept(newest, if found { LONG } else { SHORT })
        };
        self.shared.images.get(query.clone(), None, read).await
    }

    /// Whether the document is there and active.
    pub async fn document(&self, name: &str, since: Option<Instant>) -> Reading<bool> {
        let request = self.ssm.describe_document().name(name);
        let read = || async {
            let answer = self.call(&DESCRIBE_DOCUMENT, || request.clone().send()).await;
            let ready = match answer {
                Ok(answer) => Ok(answer
                    .document
                    .and_then(|document| document.status)
                    .is_some_and(|status| status == aws_sdk_ssm::types::DocumentStatus::Active)),
                Err(failure) if failure.kind == Kind::NotFound => Ok(false),
                Err(failure) => Err(failure),
            };
            let keep = if ready == Ok(true) { LONG } else { Duration::from_secs(1) };
            kept(ready, keep)
        };
        self.shared.documents.get(name.to_owned(), since, read).await
    }
}

fn distinct<T: Clone + Ord>(all: &[T]) -> Vec<T> {
    let mut all = all.to_vec();
    all.sort();
    all.dedup();
    all
}
