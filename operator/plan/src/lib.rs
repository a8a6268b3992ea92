//! The functional core: what exists and what is asked go in, a [`Plan`] comes out.
//!
//! The loop of both kinds is `Desired::new -> observe -> plan -> act -> publish`. This crate holds
//! the first and the third part: pure, total, without IO, clock or randomness (time is an
//! argument, jitter is a hash). The shell around it reads ([`cluster::Observed`]), carries out
//! ([`cluster::Step`]) and writes status; it never decides.

pub mod cloud;
pub mod cluster;
pub mod intents;
pub mod names;
pub mod node;
pub mod run;
pub mod slots;

#[cfg(any(test, feature = "world"))]
pub mod rules;
#[cfg(any(test, feature = "world"))]
pub mod world;

use std::fmt;
use std::time::Duration;

/// What to do now, and why nothing else. Printing it is the audit log; comparing it is the test.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<Step, Wait, Status> {
    /// All executable now, in any order; each carries everything needed to do it.
    pub steps: Vec<Step>,
    /// What stands between here and ready, most important first.
    pub waits: Vec<Wait>,
    /// What the observation justifies; the outcome of the steps is added, nothing is promised.
    pub status: Status,
    /// When to look again without being told.
    pub requeue: Requeue,
}

/// When the object is looked at again without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// After this long.
    After(Duration),
    /// When the head reports something else, which is asked for every `poll`; after `most` at the
    /// latest, or else with the shell's slow sweep.
    OnReport {
        /// Between two looks at the report alone.
        poll: Duration,
        /// Longest time without a whole look.
        most: Option<Duration>,
    },
    /// Only when the object changes (with the shell's slow periodic sweep behind it).
    OnChange,
}

impl fmt::Display for Requeue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::After(wait) => write!(f, "{}s", wait.as_secs_f32()),
            Self::OnReport { poll, most } => {
                write!(f, "on news of the head, asked every {}s", poll.as_secs_f32())?;
                most.map_or(Ok(()), |most| write!(f, ", or after {}s", most.as_secs_f32()))
            }
            Self::OnChange => f.write_str("on change"),
        }
    }
}

impl<S: fmt::Display, W: fmt::Display, T: fmt::Display> fmt::Display for Plan<S, W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, "steps", &self.steps)?;
        list(f, "waits", &self.waits)?;
        writeln!(f, "{}", self.status)?;
        writeln!(f, "requeue: {}", self.requeue)
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, title: &str, items: &[T]) -> fmt::Result {
    if items.is_empty() {
        return writeln!(f, "{title}: none");
    }
    writeln!(f, "{title}:")?;
    items.iter().try_for_each(|item| writeln!(f, "  {item}"))
}
