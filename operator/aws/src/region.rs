//! The clients of one region, and the one way a call leaves this process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{Region as Name, SdkConfig};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use hpc_plan::cloud::{Failure, Kind};
use hpc_plan::cluster::{Account, Observed, Report, Step};
use tokio::time::{Instant, sleep, timeout};

use crate::action::Action;
use crate::bucket::Buckets;
use crate::cache::Cached;
use crate::error::{failure, from_sdk};
use crate::fleet::Shared;
use crate::guard::Launches;
use crate::{Cloud, Query, RunAnswer, RunRequest, Scope, act, observe, run};

/// A connection is made in this time or not at all.
const CONNECT: Duration = Duration::from_millis(3100);
/// Longest wait for the answer to a read.
const READ: Duration = Duration::from_secs(20);
/// Longest wait for the answer to a change: big launches take their time.
const CHANGE: Duration = Duration::from_mins(1);
/// Tries of a read.
const READ_ATTEMPTS: u32 = 3;
/// Between two tries of a read, doubling.
const READ_PAUSE: Duration = Duration::from_millis(200);

/// Told of every call, for metrics.
pub type Listener = Arc<dyn Fn(&Heard<'_>) + Send + Sync>;

/// One call as the listener hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'c> {
    /// `ec2`, `fsx`, `ssm`, `sts`.
    pub service: &'static str,
    /// Such as `RunInstances`.
    pub operation: &'static str,
    /// AWS' error code, or `OK`.
    pub code: &'c str,
    /// Whether AWS refused for the pace of calls.
    pub throttled: bool,
    /// From sending to the answer.
    pub took: Duration,
}

/// [`crate::Cloud`] on AWS.
pub struct Aws {
    config: SdkConfig,
    listener: Listener,
    regions: Mutex<HashMap<String, Arc<Region>>>,
    pub(crate) account: Cached<Result<Account, Failure>>,
    pub(crate) launches: Launches,
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws").finish_non_exhaustive()
    }
}

impl Aws {
    /// Credentials and endpoints from the environment, as the AWS tools read them.
    pub async fn from_env(listener: Listener) -> Self {
        let config = aws_config::defaults(aws_config::BehaviorVersion::latest())
            // Repeats are made here, where each one costs a token of the action's bucket and where
            // a launch is never repeated: the SDK would hide a lack of capacity, an HTTP 500.
            .retry_config(RetryConfig::standard().with_max_attempts(1))
            .timeout_config(
                TimeoutConfig::builder().connect_timeout(CONNECT).operation_timeout(CHANGE).build(),
            )
            .load()
            .await;
        Self::new(config, listener)
    }

    pub(crate) fn new(config: SdkConfig, listener: Listener) -> Self {
        Self {
            config,
            listener,
            regions: Mutex::default(),
            account: Cached::default(),
            launches: Launches::default(),
        }
    }

    /// The clients of a region, made on first use.
    pub(crate) fn region(&self, name: &str) -> Arc<Region> {
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let region = regions.entry(name.to_owned());
        Arc::clone(region.or_insert_with(|| {
            let config = self.config.to_builder().region(Name::new(name.to_owned())).build();
            Arc::new(Region::new(&config, Arc::clone(&self.listener)))
        }))
    }
}

type Answer<T, E> = Result<T, SdkError<E, HttpResponse>>;

/// One region.
pub(crate) struct Region {
    pub ec2: aws_sdk_ec2::Client,
    pub fsx: aws_sdk_fsx::Client,
    pub ssm: aws_sdk_ssm::Client,
    pub sts: aws_sdk_sts::Client,
    pub shared: Shared,
    caller: Caller,
}

impl Region {
    fn new(config: &SdkConfig, listener: Listener) -> Self {
        Self {
            ec2: aws_sdk_ec2::Client::new(config),
            fsx: aws_sdk_fsx::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
            shared: Shared::default(),
            caller: Caller { buckets: Buckets::default(), listener },
        }
    }

    /// One call. A read is tried again when that is harmless and may help; a change never is.
    pub async fn call<T, E, F>(
        &self,
        action: &Action,
        request: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Answer<T, E>> + Send,
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        self.call_for(action, 0, request).await
    }

    /// One call for a number of instances, which AWS counts as well.
    pub async fn call_for<T, E, F>(
        &self,
        action: &Action,
        resources: u32,
        request: impl Fn() -> F + Send + Sync,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Answer<T, E>> + Send,
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let mut attempt = 1;
        loop {
            let answer = self.caller.once(action, resources, Box::pin(request())).await;
            match answer {
                Err(failure) if action.reads && may_help(&failure) && attempt < READ_ATTEMPTS => {
                    sleep(READ_PAUSE * attempt).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    /// A paged read: every page is a call of its own.
    pub async fn pages<T, F>(
        &self,
        page: impl Fn(Option<String>) -> F + Send + Sync,
    ) -> Result<Vec<T>, Failure>
    where
        F: Future<Output = Result<(Vec<T>, Option<String>), Failure>> + Send,
        T: Send,
    {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let (items, token) = page(next.take()).await?;
            all.extend(items);
            match token.filter(|token| !token.is_empty()) {
                Some(token) => next = Some(token),
                None => return Ok(all),
            }
        }
    }
}

/// Whether the same read may well succeed now.
fn may_help(failure: &Failure) -> bool {
    matches!(failure.kind, Kind::Unknown | Kind::Throttled) && failure.code != "ClientThrottled"
}

struct Caller {
    buckets: Buckets,
    listener: Listener,
}

impl Caller {
    async fn once<T, E, F>(&self, action: &Action, resources: u32, request: F) -> Result<T, Failure>
    where
        F: Future<Output = Answer<T, E>> + Send,
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        self.buckets.admit(action, resources).await.map_err(|wait| {
            let message = format!("the rate limit lets the next call through in {wait:.0?}");
            failure(action, Kind::Throttled, "ClientThrottled", &message)
        })?;
        let began = Instant::now();
        let patience = if action.reads { READ } else { CHANGE };
        let answer = match timeout(patience, request).await {
            Ok(answer) => answer.map_err(|error| from_sdk(action, &error)),
            Err(_) => Err(failure(action, Kind::Unknown, "Timeout", "no answer in time")),
        };
        self.heard(action, began, answer.as_ref().err());
        answer
    }

    fn heard(&self, action: &Action, began: Instant, failed: Option<&Failure>) {
        let now = Instant::now();
        let throttled = failed.is_some_and(|failure| failure.kind == Kind::Throttled);
        if throttled {
            self.buckets.throttled(action, began, now);
        } else {
            self.buckets.accepted(action, now);
        }
        let code = failed.map_or("OK", |failure| failure.code.as_str());
        let took = now - began;
        let (service, operation) = (action.service, action.name);
        tracing::debug!(service, operation, code, ms = took.as_millis(), "aws");
        (self.listener)(&Heard { service, operation, code, throttled, took });
    }
}

#[async_trait]
impl Cloud for Aws {
    async fn observe(&self, query: &Query) -> Observed {
        Box::pin(observe::observe(self, query)).await
    }

    async fn report(&self, region: &str, parameter: &str) -> Result<Option<Report>, Failure> {
        observe::report(&self.region(region), parameter).await
    }

    async fn apply(&self, scope: &Scope, step: &Step) -> Result<Vec<String>, Failure> {
        Box::pin(act::apply(self, scope, step)).await
    }

    async fn run(&self, request: &RunRequest) -> Result<Vec<RunAnswer>, Failure> {
        run::run(&self.region(&request.region), request).await
    }
}
