//! What a person sees while the lab works: each wait is named, with how long it has lasted.

use std::time::{Duration, Instant};

use hpc_e2e::{LabError, Result};
use tokio::time::interval;

/// How often a wait is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// How often a wait that shows nothing new says that it still lasts.
const REMIND: Duration = Duration::from_secs(15);

/// Prints a line.
#[expect(clippy::print_stdout, reason = "this program speaks to its terminal")]
pub fn say(line: &str) {
    println!("{line}");
}

/// A timer for the lines of one command.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    begun: Instant,
}

/// What a look at something waited for found.
pub enum Seen<T> {
    /// It has come true.
    Done(T),
    /// Not yet; how it stands, in a few words.
    Waiting(String),
    /// It never will; why.
    Hopeless(String),
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self { begun: Instant::now() }
    }

    /// Seconds since the start.
    pub fn seconds(self) -> u64 {
        self.begun.elapsed().as_secs()
    }

    /// Prints a line with the time since the start.
    pub fn tell(self, line: &str) {
        say(&format!("{:4} s  {line}", self.seconds()));
    }

    /// Looks until it is done, and prints each new state and, now and then, that it still lasts.
    pub async fn wait<T>(
        self,
        what: &str,
        deadline: Duration,
        mut look: impl AsyncFnMut() -> Result<Seen<T>>,
    ) -> Result<T> {
        let (since, mut told, mut last) = (Instant::now(), None::<Instant>, String::new());
        let mut ticks = interval(LOOK);
        loop {
            ticks.tick().await;
            let state = match look().await {
                Ok(Seen::Done(found)) => return Ok(found),
                Ok(Seen::Waiting(state)) => state,
                Ok(Seen::Hopeless(why)) => return Err(LabError::missing(what, why)),
                Err(error) => error.chain(),
            };
            if since.elapsed() > deadline {
                return Err(LabError::Deadline { what: what.to_owned(), within: deadline, last });
            }
            if state != last || told.is_none_or(|told| told.elapsed() > REMIND) {
                let lasts = since.elapsed().as_secs();
                self.tell(&format!("waiting {lasts} s for {what}: {state}"));
                (last, told) = (state, Some(Instant::now()));
            }
        }
    }
}
