//! Questions to heads: submit, poll, fetch, cancel, each one run of the installation's SSM document.
//!
//! Polls of all runs that fall into the same moment share one `SendCommand`, up to 50 heads; an
//! answer is kept until the poll interval has passed, so however often runs are looked at, SSM is
//! asked at that pace and only while something is in flight.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use flate2::read::GzDecoder;
use hpc_aws::{Cloud, RunAnswer, RunRequest};
use hpc_plan::cloud::{Failure, InstanceId, Kind};
use hpc_plan::node;
use hpc_plan::run::{Head, Poll, Submission, Submitted};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Read;
use tokio::sync::oneshot;
use tokio::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// How long polls are gathered before they go out together.
const GATHER: Duration = Duration::from_millis(50);
/// Heads that one `SendCommand` takes.
const HEADS_PER_COMMAND: usize = 50;
/// Patience with one command.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Most bytes of output fetched of one attempt.
const OUTPUT_LIMIT: usize = 16 << 20;

/// The one who asks heads.
pub struct Heads {
    cloud: Arc<dyn Cloud>,
    document: String,
    interval: Duration,
    gathered: Mutex<Vec<Asked>>,
    answered: Mutex<BTreeMap<String, (Instant, Poll)>>,
    outputs: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// An attempt by id and folder.
pub type Place = (String, String);

struct Asked {
    head: Head,
    attempts: Vec<Place>,
    reply: oneshot::Sender<Result<Vec<Poll>, Failure>>,
}

#[derive(Deserialize)]
struct Polled {
    attempts: Vec<Poll>,
}

#[derive(Deserialize)]
struct SubmittedAll {
    attempts: Vec<Submitted>,
}

#[derive(Deserialize)]
struct Page {
    data: String,
    next: Option<u64>,
}

impl Heads {
    /// Asks through the document of this build, each attempt at most once per `interval`.
    pub fn new(cloud: Arc<dyn Cloud>, installation: &str, interval: Duration) -> Arc<Self> {
        Arc::new(Self {
            cloud,
            document: node::document(installation).name,
            interval,
            gathered: Mutex::default(),
            answered: Mutex::default(),
            outputs: Mutex::default(),
        })
    }

    /// What the head says of these attempts, not older than the poll interval.
    pub async fn poll(
        self: &Arc<Self>,
        head: &Head,
        attempts: Vec<Place>,
    ) -> Result<BTreeMap<String, Poll>, Failure> {
        let stale: Vec<_> =
            attempts.iter().filter(|(id, _)| !self.is_recent(id)).cloned().collect();
        if !stale.is_empty() {
            let polls = self.gather(head, stale).await?;
            let now = Instant::now();
            let mut answered = lock(&self.answered);
            answered.extend(polls.into_iter().map(|poll| (poll.id.clone(), (now, poll))));
        }
        let answered = lock(&self.answered);
        let told = attempts.iter().filter_map(|(id, _)| answered.get(id));
        Ok(told.map(|(_, poll)| (poll.id.clone(), poll.clone())).collect())
    }

    fn is_recent(&self, id: &str) -> bool {
        lock(&self.answered).get(id).is_some_and(|(at, _)| at.elapsed() < self.interval)
    }

    /// Puts the question to those that leave together in a moment; the first one sends them off.
    async fn gather(
        self: &Arc<Self>,
        head: &Head,
        attempts: Vec<Place>,
    ) -> Result<Vec<Poll>, Failure> {
        let (reply, answer) = oneshot::channel();
        let is_first = {
            let mut gathered = lock(&self.gathered);
            gathered.push(Asked { head: head.clone(), attempts, reply });
            gathered.len() == 1
        };
        if is_first {
            let heads = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(GATHER).await;
                heads.send_off().await;
            });
        }
        answer.await.unwrap_or_else(|_| Err(unreadable("the poll was dropped")))
    }

    async fn send_off(&self) {
        let mut left = std::mem::take(&mut *lock(&self.gathered));
        while !left.is_empty() {
            let region = left.first().map(|asked| asked.head.region.clone()).unwrap_or_default();
            let (same, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|asked| asked.head.region == region);
            left = others;
            self.ask_all(&region, same).await;
        }
    }

    async fn ask_all(&self, region: &str, asked: Vec<Asked>) {
        let mut by_head: BTreeMap<InstanceId, Vec<Asked>> = BTreeMap::new();
        for one in asked {
            by_head.entry(one.head.instance.clone()).or_default().push(one);
        }
        let mut rest = by_head.into_iter().peekable();
        while rest.peek().is_some() {
            let chunk: Vec<_> = rest.by_ref().take(HEADS_PER_COMMAND).collect();
            self.ask_some(region, chunk).await;
        }
    }

    async fn ask_some(&self, region: &str, chunk: Vec<(InstanceId, Vec<Asked>)>) {
        let heads = chunk.iter().map(|(instance, asked)| {
            let places = asked.iter().flat_map(|asked| &asked.attempts);
            let places: Vec<_> =
                places.map(|(id, folder)| json!({"id": id, "folder": folder})).collect();
            (instance.0.clone(), Value::from(places))
        });
        let question = json!({"op": "poll", "heads": heads.collect::<serde_json::Map<_, _>>()});
        let instances = chunk.iter().map(|(instance, _)| instance.clone()).collect();
        let answers = self.command(region, instances, &question).await;
        for (instance, asked) in chunk {
            let polls = answers.clone().and_then(|answers| {
                let answer = answers.into_iter().find(|answer| answer.instance == instance);
                read::<Polled>(answer.as_ref())
            });
            reply(asked, &polls.map(|polled| polled.attempts));
        }
    }

    /// Hands attempts to the scheduler; those it has already are told as existing.
    pub async fn submit(
        &self,
        head: &Head,
        attempts: &[Submission],
    ) -> Result<Vec<Submitted>, Failure> {
        let question = json!({"op": "submit", "attempts": attempts});
        let submitted = self.ask::<SubmittedAll>(head, &question).await?.attempts;
        // What was heard of them before is over.
        lock(&self.answered).retain(|id, _| attempts.iter().all(|attempt| attempt.id != *id));
        Ok(submitted)
    }

    /// Takes attempts out of the scheduler.
    pub async fn cancel(&self, head: &Head, ids: &[String]) -> Result<(), Failure> {
        let _: Value = self.ask(head, &json!({"op": "cancel", "ids": ids})).await?;
        let mut answered = lock(&self.answered);
        answered.retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Reads the whole output of an ended attempt and keeps it for the next look at its run.
    pub async fn fetch(&self, head: &Head, id: &str, folder: &str) -> Result<(), Failure> {
        let (mut output, mut offset) = (Vec::new(), 0);
        loop {
            let question = json!({"op": "fetch", "id": id, "folder": folder, "offset": offset});
            let page: Page = self.ask(head, &question).await?;
            output.extend(unpack(&page.data)?);
            if output.len() > OUTPUT_LIMIT {
                return Err(unreadable("the output is larger than 16 MiB"));
            }
            match page.next {
                Some(next) if next > offset => offset = next,
                Some(_) | None => break,
            }
        }
        lock(&self.outputs).insert(id.to_owned(), output);
        Ok(())
    }

    /// Outputs fetched of these attempts.
    pub fn outputs(&self, ids: &[String]) -> BTreeMap<String, Vec<u8>> {
        let outputs = lock(&self.outputs);
        let found = ids.iter().filter_map(|id| Some((id.clone(), outputs.get(id)?.clone())));
        found.collect()
    }

    /// Forgets what was kept of attempts that are done with.
    pub fn forget(&self, is_done: impl Fn(&str) -> bool) {
        lock(&self.outputs).retain(|id, _| !is_done(id));
        lock(&self.answered).retain(|id, _| !is_done(id));
    }

    async fn ask<T: for<'a> Deserialize<'a>>(
        &self,
        head: &Head,
        question: &Value,
    ) -> Result<T, Failure> {
        let answers = self.command(&head.region, vec![head.instance.clone()], question).await?;
        read(answers.first())
    }

    async fn command(
        &self,
        region: &str,
        instances: Vec<InstanceId>,
        question: &Value,
    ) -> Result<Vec<RunAnswer>, Failure> {
        let request = RunRequest {
            region: region.to_owned(),
            instances,
            document: self.document.clone(),
            payload_base64: node::payload(question),
            timeout: TIMEOUT,
        };
        self.cloud.run(&request).await
    }
}

/// Sends each asker its own attempts' answers.
fn reply(asked: Vec<Asked>, polls: &Result<Vec<Poll>, Failure>) {
    for one in asked {
        let own = polls.clone().map(|polls| {
            let is_own = |poll: &Poll| one.attempts.iter().any(|(id, _)| *id == poll.id);
            polls.into_iter().filter(is_own).collect()
        });
        // The asker may have been cancelled; then nobody waits for the answer.
        let _ = one.reply.send(own);
    }
}

fn read<T: for<'a> Deserialize<'a>>(answer: Option<&RunAnswer>) -> Result<T, Failure> {
    let Some(answer) = answer else {
        return Err(unreadable("the head did not answer"));
    };
    if !answer.succeeded() {
        let said =
            format!("{} (exit code {}): {}", answer.status, answer.exit_code, answer.stderr.trim());
        return Err(unreadable(&said));
    }
    serde_json::from_str(answer.stdout.trim()).map_err(|error| unreadable(&error.to_string()))
}

fn unpack(data: &str) -> Result<Vec<u8>, Failure> {
    let packed = STANDARD.decode(data).map_err(|error| unreadable(&error.to_string()))?;
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice())
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error.to_string()))?;
    Ok(bytes)
}

/// A head that answered something else, or nothing: the next pass asks again.
fn unreadable(message: &str) -> Failure {
    Failure {
        kind: Kind::Unknown,
        service: "ssm".to_owned(),
        operation: "SendCommand".to_owned(),
        code: "NoAnswer".to_owned(),
        message: message.chars().take(300).collect(),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
