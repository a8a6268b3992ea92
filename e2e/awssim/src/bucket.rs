//! Token buckets as the EC2 throttling page lists them, per account and
//! region. They keep true size and refill at any time scale: an operator that
//! respects them here respects them there.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::wire::{ApiError, Service};

/// Size of a bucket and tokens per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Most tokens it holds.
    pub size: f64,
    /// Tokens per second.
    pub refill: f64,
}

const fn rate(size: f64, refill: f64) -> Rate {
    Rate { size, refill }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

/// All buckets of one account in one region.
#[derive(Debug, Default)]
pub struct Buckets {
    levels: BTreeMap<String, Bucket>,
}

impl Buckets {
    /// Takes one token for a request.
    pub fn request(&mut self, call: &CallClass<'_>, now: Timestamp) -> Result<(), ApiError> {
        let (name, rate) = call.bucket();
        if self.take(&name, rate, 1.0, now) {
            return Ok(());
        }
        Err(throttled(call.service))
    }

    /// Takes as many tokens as there are resources, or none.
    pub fn resources(&mut self, action: &str, count: u32, now: Timestamp) -> Result<(), ApiError> {
        let rate = match action {
            "RunInstances" => rate(1000.0, 2.0),
            "TerminateInstances" => rate(1000.0, 20.0),
            _ => return Ok(()),
        };
        if self.take(&format!("{action} resources"), rate, f64::from(count), now) {
            return Ok(());
        }
        Err(throttled(Service::Ec2))
    }

    fn take(&mut self, name: &str, rate: Rate, tokens: f64, now: Timestamp) -> bool {
        let bucket =
            self.levels.entry(name.to_owned()).or_insert(Bucket { tokens: rate.size, at: now });
        let passed = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        bucket.tokens = (bucket.tokens + passed * rate.refill).min(rate.size);
        bucket.at = now;
        let enough = bucket.tokens >= tokens;
        if enough {
            bucket.tokens -= tokens;
        }
        enough
    }

    /// Tokens left per bucket, for `GET /_sim/config`.
    pub fn levels(&self) -> BTreeMap<String, f64> {
        self.levels.iter().map(|(name, bucket)| (name.clone(), bucket.tokens)).collect()
    }
}

fn throttled(service: Service) -> ApiError {
    if service.speaks_json() || service == Service::Sts {
        return ApiError::client("ThrottlingException", "Rate exceeded");
    }
    ApiError::with_status(503, "RequestLimitExceeded", "Request limit exceeded.")
}

/// What decides the bucket of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallClass<'a> {
    /// Its service.
    pub service: Service,
    /// Its action.
    pub action: &'a str,
    /// Neither filters, ids nor a page size were given.
    pub unfiltered: bool,
}

/// Describes that have a smaller bucket when neither filtered nor paged.
const COSTLY_WHEN_UNFILTERED: [&str; 5] = [
    "DescribeInstances",
    "DescribeInstanceStatus",
    "DescribeNetworkInterfaces",
    "DescribeSecurityGroups",
    "DescribeVolumes",
];

impl CallClass<'_> {
    /// Whether the call only reads.
    pub fn reads(&self) -> bool {
        ["Describe", "Get", "List"].iter().any(|verb| self.action.starts_with(verb))
    }

    /// Each action has its own bucket (the page: "per API action").
    fn bucket(&self) -> (String, Rate) {
        let (suffix, rate) = match self.service {
            Service::Ec2 => self.ec2(),
            Service::Fsx | Service::Ssm | Service::Sts => self.others(),
        };
        (format!("{} {}{suffix}", self.service.name(), self.action), rate)
    }

    fn ec2(&self) -> (&'static str, Rate) {
        match self.action {
            "RunInstances" => ("", rate(5.0, 2.0)),
            "TerminateInstances"
            | "CreateNetworkInterface"
            | "DeleteNetworkInterface"
            | "CreateVolume"
            | "DeleteVolume"
            | "AttachVolume"
            | "DetachVolume" => ("", rate(100.0, 5.0)),
            "CreateTags" | "DeleteTags" => ("", rate(100.0, 10.0)),
            action if self.unfiltered && COSTLY_WHEN_UNFILTERED.contains(&action) => {
                (" unfiltered", rate(50.0, 10.0))
            }
            _ if self.reads() => ("", rate(100.0, 20.0)),
            _ => ("", rate(50.0, 5.0)),
        }
    }

    /// FSx, SSM and STS publish no rates; these are assumed. Parameter Store's
    /// 40 per second is published and shared by its actions.
    fn others(&self) -> (&'static str, Rate) {
        match (self.service, self.action) {
            (Service::Ssm, "PutParameter") => ("", rate(10.0, 3.0)),
            (Service::Ssm, "GetParameter" | "GetParametersByPath") => ("", rate(40.0, 40.0)),
            (Service::Ssm, "SendCommand" | "CancelCommand") => ("", rate(10.0, 5.0)),
            (Service::Ssm, _) if self.reads() => ("", rate(20.0, 10.0)),
            (Service::Fsx, _) if self.reads() => ("", rate(20.0, 5.0)),
            (Service::Sts, _) => ("", rate(100.0, 50.0)),
            _ => ("", rate(10.0, 2.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn buckets_have_the_published_sizes_and_refill() {
        let start = Timestamp::UNIX_EPOCH;
        let burst = |action, seconds| {
            let call = CallClass { service: Service::Ec2, action, unfiltered: false };
            let mut buckets = Buckets::default();
            let count = |buckets: &mut Buckets, now| {
                (0..2000).take_while(|_| buckets.request(&call, now).is_ok()).count()
            };
            let first = count(&mut buckets, start);
            let later = start.checked_add(SignedDuration::from_secs(seconds)).unwrap();
            (first, count(&mut buckets, later))
        };
        assert_eq!(burst("RunInstances", 2), (5, 4));
        assert_eq!(burst("TerminateInstances", 2), (100, 10));
        assert_eq!(burst("DescribeInstances", 1), (100, 20));
        assert_eq!(burst("CreatePlacementGroup", 3600), (50, 50));
    }

    #[test]
    fn a_launch_takes_one_resource_token_per_instance_or_none() {
        let mut buckets = Buckets::default();
        let now = Timestamp::UNIX_EPOCH;
        buckets.resources("RunInstances", 900, now).unwrap();
        assert_eq!(
            buckets.resources("RunInstances", 101, now).unwrap_err().code,
            "RequestLimitExceeded"
        );
        buckets.resources("RunInstances", 100, now).unwrap();
    }
}
