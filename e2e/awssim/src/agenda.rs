//! What will happen by itself and when: life cycles are entries of a heap
//! that is emptied whenever anyone looks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;

/// Something that happens to one resource at a set time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A pending instance runs (or fails to).
    InstanceRunning(String),
    /// A bodiless instance's agent registers.
    AgentOnline(String),
    /// A stopping instance is gone.
    InstanceTerminated(String),
    /// A terminated instance is no longer shown.
    InstanceForgotten(String),
    /// A file system is ready or has failed.
    FileSystemSettled(String),
    /// A deleted file system is gone.
    FileSystemGone(String),
    /// A command reaches an agent: (command id, instance id).
    CommandDelivered(String, String),
    /// A command that never started gives up: (command id, instance id).
    CommandExpired(String, String),
}

/// A queue of events by time.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    sequence: u64,
}

impl Agenda {
    /// Adds an event.
    pub fn add(&mut self, at: Timestamp, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, event)));
    }

    /// Takes the next event that is due.
    pub fn due(&mut self, now: Timestamp) -> Option<(Timestamp, Event)> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
