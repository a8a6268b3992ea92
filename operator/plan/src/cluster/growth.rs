//! Nodes that come and go with the jobs. Only the scheduler's demand launches: each resumption of
//! nodes for a job is a gang of its own, launched once, all or nothing. What cannot be had is
//! answered with a time; the scheduler powers those nodes down, requeues the job and asks again
//! under a new name.
//!
//! A gang that was given up is remembered for a while: until its back-off is over, gangs of the same
//! queue that could do no better are answered at once, and then one goes first and the others wait.

use std::collections::BTreeSet;

use hpc_crds::{ConditionStatus, Intent, IntentState, Reason, Time};
use serde::Serialize;

use crate::intents::{self, Cause, Payload};
use crate::names::{HEAD, queue_role};
use crate::slots::Slots;

use super::desired::{Numbers, Queue};
use super::fleets::{Fleet, gang_of, place, slot_of};
use super::leaving::{self, Leave};
use super::making::reason_of;
use super::observed::Report;
use super::part::{Part, Verdict, View};
use super::step::Step;
use super::strays;
use super::wait::Wait;

/// Most answers one parameter holds.
const MOST_ANSWERS: usize = 12;
/// Most bytes of a parameter.
const LONGEST_ANSWER: usize = 4096;
/// Longest message of one answer.
const LONGEST_MESSAGE: usize = 160;

/// The gangs of a queue. `FleetsReady` speaks of the nodes that always run, so whatever becomes of
/// these is no verdict on the cluster.
pub(super) fn growth(view: &View<'_>, queue: &Queue, head_ready: bool) -> Part {
    let gangs = gangs(view, queue);
    let parts = gangs.iter().map(|gang| gang.follow(head_ready));
    let part = Part::all(parts, "");
    Part { verdict: Verdict::ready(""), ..part }
}

/// Every gang that is demanded, seen or remembered, in a stable order.
pub(super) fn gangs<'a>(view: &'a View<'a>, queue: &'a Queue) -> Vec<Fleet<'a>> {
    let report = scheduler(view);
    let asked =
        report.iter().flat_map(|report| &report.demand).filter(|asked| asked.queue == queue.name);
    let role = queue_role(&queue.name);
    let seen = view.instances(&role).map(gang_of);
    let known = view.observed.object.status.intents.iter().filter_map(|intent| {
        place(&intent.thing).filter(|(name, _)| *name == queue.name).map(|(_, gang)| gang)
    });
    let names = asked.map(|asked| asked.gang.as_str()).chain(seen).chain(known);
    let names: BTreeSet<&str> = names.filter(|gang| !gang.is_empty()).collect();
    let wanted = |gang: &str| report.and_then(|report| slots(view, report, (queue, gang)));
    names.into_iter().map(|gang| Fleet::new(view, queue, gang, wanted(gang))).collect()
}

/// What the scheduler says: only a head that is up speaks for it.
pub(super) fn scheduler<'a>(view: &View<'a>) -> Option<&'a Report> {
    let head = view.instances(HEAD).find(|head| head.state.is_live())?;
    let report = view.observed.report.as_ref()?;
    (report.instance_id == head.id.0 && report.state == "Ready").then_some(report)
}

/// The nodes a gang is asked to have; nothing while nobody can say. Nodes that always run are
/// nobody's gang, and of two gangs that ask for one node the first has it. What a gang has already
/// it keeps, whatever has become of the queue since.
fn slots(view: &View<'_>, report: &Report, (queue, gang): (&Queue, &str)) -> Option<Slots> {
    let mut taken = Slots::default();
    for asked in report.demand.iter().filter(|asked| asked.queue == queue.name) {
        let here = here(view, queue, &asked.gang);
        let may_come = |slot: i32| slot <= queue.most && !queue.nodes.contains(slot);
        let free = asked.slots.iter().filter(|slot| here.contains(*slot) || may_come(*slot));
        let free = free.collect::<Slots>().without(&taken);
        if asked.gang == gang {
            return Some(free);
        }
        taken = taken.iter().chain(free.iter()).collect();
    }
    (!report.cut).then(Slots::default)
}

/// The nodes of a gang that live.
fn here(view: &View<'_>, queue: &Queue, gang: &str) -> Slots {
    let role = queue_role(&queue.name);
    let nodes = view.instances(&role).filter(|node| node.state.is_live() && gang_of(node) == gang);
    nodes.filter_map(slot_of).collect()
}

impl Fleet<'_> {
    fn follow(&self, head_ready: bool) -> Part {
        self.unless_under_way(|| self.serve(head_ready))
    }

    /// Nothing is under way: launch what the job wants, once, or let go what no job wants.
    fn serve(&self, head_ready: bool) -> Part {
        let Some(wanted) = &self.wanted else {
            return Part::ready("");
        };
        if wanted.is_empty() {
            return self.dismiss();
        }
        let missing = self.missing();
        if missing.is_empty() {
            return self.call_off().unwrap_or_else(|| self.verdict_of_nodes());
        }
        let waits = if self.is_settled() || self.refused(&missing).is_some() {
            Some(Wait::Scheduler { thing: self.thing.clone() })
        } else {
            self.obstacle(head_ready).or_else(|| self.probe())
        };
        match waits {
            Some(wait) => Part { waits: vec![wait], ..Part::pending() },
            None => self.launch(&missing, Payload { round: self.round(), ..Payload::default() }),
        }
    }

    /// It was whole: what is missing was lost, and its job with it.
    fn is_settled(&self) -> bool {
        self.intent.is_some_and(|intent| intent.state == IntentState::Settled)
    }

    /// No job wants it: what is under way is called off; a failure is remembered for a while.
    fn dismiss(&self) -> Part {
        let Some(intent) = self.intent else {
            return Part::ready("");
        };
        let remembered = self.lesson().is_some_and(|lesson| lesson.thing == intent.thing);
        let window = 2 * self.view.backoff(intent);
        if remembered && self.view.since(intent) <= window {
            return strays::remember(self.view, intent, window);
        }
        strays::call_off(self.view, intent, "no job wants it any more")
    }

    /// The latest gang of the queue that was given up, unless one has come up since.
    fn lesson(&self) -> Option<&Intent> {
        let failed = self.gangs_of_queue().filter(|intent| is_lesson(intent));
        let latest = failed.max_by_key(|intent| (intent.changed_at.timestamp(), &intent.thing))?;
        let mut came_up = self.gangs_of_queue().filter(|intent| {
            let later = intent.changed_at.timestamp() >= latest.changed_at.timestamp();
            intent.state == IntentState::Settled && later
        });
        came_up.next().is_none().then_some(latest)
    }

    fn gangs_of_queue(&self) -> impl Iterator<Item = &Intent> {
        self.intents_of_queue().filter(|(gang, _)| !gang.is_empty()).map(|(_, intent)| intent)
    }

    /// How often in a row gangs of this queue were given up.
    fn round(&self) -> i32 {
        self.lesson().map_or(0, |lesson| Payload::of(lesson).round.saturating_add(1))
    }

    /// After a failure one gang goes first.
    fn probe(&self) -> Option<Wait> {
        self.lesson()?;
        let mut others = self.gangs_of_queue().filter(|other| self.is_beside(other));
        let begun = self.intent.is_some_and(|own| own.state == IntentState::Open);
        let first = others.next().filter(|_| !begun)?;
        Some(Wait::Visible { thing: first.thing.clone() })
    }

    /// Why the missing nodes cannot be had now.
    fn refused(&self, missing: &Slots) -> Option<Refusal> {
        match self.intent {
            Some(own) if own.state == IntentState::Abandoned => {
                self.is_over(own).then(|| Refusal::of(self.view, own))
            }
            Some(_) => None,
            None => self.beyond().or_else(|| self.held_back(missing)).or_else(|| {
                let excess = self.over_limit(missing)?;
                Some(Refusal { reason: excess.reason, message: excess.message, next_try: None })
            }),
        }
    }

    /// Nodes that the queue has no more: the scheduler did not know yet when it asked.
    fn beyond(&self) -> Option<Refusal> {
        let under_way = self.intent.is_some_and(|own| own.state != IntentState::Abandoned);
        let asked = scheduler(self.view)?.demand.iter();
        let asked = asked.filter(|asked| asked.queue == self.queue.name && asked.gang == self.gang);
        let last = asked.flat_map(|asked| asked.slots.iter()).max()?;
        let most = self.queue.most;
        let refused = last > most && !under_way && self.members().next().is_none();
        refused.then(|| Refusal {
            reason: Reason::TooFewNodes,
            message: format!(
                "node {last} of queue {} is wanted, maxNodes is {most}",
                self.queue.name
            ),
            next_try: None,
        })
    }

    /// Whether the ladder of an attempt that was given up has no further rung.
    fn is_over(&self, own: &Intent) -> bool {
        let payload = Payload::of(own);
        let (cause, _) = Cause::read(own);
        let types = self.queue.types.len();
        let subnets = self.view.desired.cluster.compute_subnets.len();
        let last = payload.rung + 1 >= types * subnets;
        // A refusal may hide that an earlier call had worked: that would show by then.
        let window = self.view.desired.settings.visibility_window;
        let shows = !intents::may_have_worked(own) || self.view.since(own) > window;
        shows
            && is_lesson(own)
            && (last || !matches!(cause, Some(Cause::Capacity | Cause::NotOffered)))
    }

    /// The refusal of a gang that could do no better than the one before it, within its back-off.
    fn held_back(&self, missing: &Slots) -> Option<Refusal> {
        let lesson = self.lesson()?;
        let smaller = missing.len() < Payload::of(lesson).slots.len();
        let by_size = matches!(Cause::read(lesson).0, Some(Cause::Capacity | Cause::Partial));
        let over = self.view.since(lesson) >= self.view.backoff(lesson);
        let could_do_better = over || (smaller && by_size);
        (!could_do_better).then(|| Refusal::of(self.view, lesson))
    }
}

/// Whether a gang was given up for a reason that the next one would meet as well.
fn is_lesson(intent: &Intent) -> bool {
    let (cause, _) = Cause::read(intent);
    let chance = matches!(
        cause,
        None | Some(Cause::Superseded | Cause::Deleting | Cause::Spent | Cause::Vanished)
    );
    intent.state == IntentState::Abandoned && !chance
}

/// Why a gang cannot be had, and when to ask again.
struct Refusal {
    reason: Reason,
    message: String,
    next_try: Option<Time>,
}

impl Refusal {
    fn of(view: &View<'_>, intent: &Intent) -> Self {
        let (cause, detail) = Cause::read(intent);
        Self {
            reason: reason_of(cause).0,
            message: detail.to_owned(),
            next_try: view.next_try(intent),
        }
    }
}

/// What the head is told of one gang.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    gang: String,
    code: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_try: Option<Time>,
}

/// All that the head is told, while there is anything to tell.
#[derive(Serialize)]
struct Word {
    v: i32,
    answers: Vec<Answer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queues: Vec<Numbers>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leave: Vec<Leave>,
}

impl Word {
    fn new(view: &View<'_>, report: &Report) -> Self {
        let answers = refusals(view).map(|(gang, refusal)| answer(gang, &refusal));
        Self {
            v: 1,
            answers: answers.take(MOST_ANSWERS).collect(),
            queues: numbers(view, report),
            leave: leaving::told(view),
        }
    }

    /// What the parameter has room for; what is left out is told when the rest is done.
    fn text(mut self) -> String {
        loop {
            let text = serde_json::to_string(&self).unwrap_or_default();
            let fits = text.len() <= LONGEST_ANSWER;
            if fits || (self.leave.pop().is_none() && self.answers.pop().is_none()) {
                return text;
            }
        }
    }
}

/// The numbers of the queues, once they are others than the head booted with.
fn numbers(view: &View<'_>, report: &Report) -> Vec<Numbers> {
    let wanted: Vec<_> = view.desired.cluster.queues.iter().map(Queue::numbers).collect();
    let told = view.observed.notes.get(&view.desired.owner.answers());
    let is_told = told.is_some_and(|told| told.contains("\"queues\":["));
    let differs = !report.queues.is_empty() && report.queues != wanted;
    if is_told || differs { wanted } else { vec![] }
}

/// Tells the head what cannot be had, what its queues are and which nodes leave, when that is not
/// what it was told last.
pub(super) fn answers(view: &View<'_>) -> Part {
    let Some(report) = scheduler(view) else {
        return Part::ready("");
    };
    let word = Word::new(view, report);
    let parameter = view.desired.owner.answers();
    let told = view.observed.notes.get(&parameter);
    let says_nothing = word.answers.is_empty() && word.queues.is_empty() && word.leave.is_empty();
    if says_nothing && told.is_none() {
        return Part::ready("");
    }
    let text = word.text();
    if told == Some(&text) {
        return Part::ready("");
    }
    let step = Step::Answer { parameter, text };
    Part { steps: vec![step], ..Part::ready("") }
}

fn answer(gang: String, refusal: &Refusal) -> Answer {
    let message = refusal.message.chars().take(LONGEST_MESSAGE).collect();
    Answer { gang, code: refusal.reason.to_string(), message, next_try: refusal.next_try }
}

fn refusals(view: &View<'_>) -> impl Iterator<Item = (String, Refusal)> {
    let queues = view.desired.cluster.queues.iter();
    queues.flat_map(|queue| {
        let gangs = gangs(view, queue);
        let refused = gangs.iter().filter_map(|gang| {
            let missing = gang.missing();
            let refused = || (!missing.is_empty()).then(|| gang.refused(&missing)).flatten();
            let refusal = gang.beyond().or_else(refused)?;
            Some((gang.gang.to_owned(), refusal))
        });
        refused.collect::<Vec<_>>()
    })
}

/// What keeps the queues from growing now, for the condition `GrowthBlocked`.
pub(super) fn blocked(view: &View<'_>) -> Option<Verdict> {
    let (gang, refusal) = refusals(view).next()?;
    let when = refusal.next_try.map_or_else(String::new, |time| format!("; next try at {time}"));
    let message = format!(
        "Job gang {gang}: {}{when}. {}",
        refusal.message.trim_end_matches('.'),
        refusal.reason.way_out()
    );
    Some(Verdict::new(ConditionStatus::True, refusal.reason, message))
}

/// When the queue's latest failure lets the next gang go.
pub(super) fn next_try(view: &View<'_>, queue: &Queue) -> Option<Time> {
    let fleet = Fleet::new(view, queue, "", None);
    let lesson = fleet.lesson().filter(|lesson| view.since(lesson) < view.backoff(lesson))?;
    view.next_try(lesson)
}
