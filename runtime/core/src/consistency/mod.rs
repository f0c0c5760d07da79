//! The consistency check of the machine: one function for each rule that is a statement about a state, and for each
//! invariant that the rules lean on.
//!
//! Each computes what it checks from scratch, from rows, refs and stages, and compares that with what the machine
//! counts and remembers. Rules that speak of what happens, not of what is, are checked by the simulator.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::calls::waiters::Waiters;
use crate::graph::Graph;
use crate::journal::Journal;
use crate::schedule::barrier::Barrier;
use crate::schedule::scheduler::Scheduler;
use crate::timers::Timers;
use crate::types::index::Slot;
use crate::{Core, Subject};

mod graph;
mod invocations;
mod marks;
mod names;
mod stored;
mod times;
mod waiting;

pub use stored::{Compared, Consistency};

/// Findings of one rule that are told; a broken count can be wrong in every resource of a catalog.
const FINDINGS_PER_RULE: usize = 20;

/// What a finding breaks: a rule of the controller, or what the machine needs for all of them.
///
/// ```
/// use watershed_core::Rule;
///
/// assert_eq!(Rule::OneRunPerName.to_string(), "one_run_per_name");
/// assert_eq!(Rule::TimersAgree.as_str(), "timers_agree");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// At most one invocation per resource, and one under each name.
    OneRunPerName,
    /// At most one invocation that is not cancelled on a path.
    OneRunPerPath,
    /// What is unsettled above a resource and what runs below it is counted: both come before its own run.
    AncestorsFirst,
    /// What is below an unsettled resource is unsettled.
    PendingBelow,
    /// An invocation that is not cancelled has seen what there is to see.
    RunsSeeThePresent,
    /// Unfinished deletes and renames are known, counted, and in order.
    DeletesThenRenames,
    /// Exactly the members of cycles are on one, settle together, and say so.
    NoRunOnCycles,
    /// Abandoned invocations stand aside, and name what they keep out.
    AbandonedAside,
    /// No lost wake-ups: whatever is pending waits for something that will have it considered.
    NoLostWakeUps,
    /// The limits hold, and what could start has started.
    ConcurrencyLimits,
    /// Each live resource is the one of its name, and every claim on a name is known.
    NamesAgree,
    /// Every edge between live resources is counted, and no other.
    EdgesAgree,
    /// Who owns what is known.
    OwnersAgree,
    /// Everything that is unsettled is waited for, and callers wait only for that.
    WaitersAreAnswered,
    /// Paused resources settle as such.
    PausedStays,
    /// The resources of `first` kinds that hold others back are known.
    StartupBarrier,
    /// Every timer belongs to something that waits for it.
    TimersAgree,
    /// Every change is on its way to the store, and nothing is newer than the catalog.
    ChangesAreStored,
    /// The store holds what the machine holds.
    StoreAgrees,
}

impl Rule {
    /// The word used in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::OneRunPerName => "one_run_per_name",
            Rule::OneRunPerPath => "one_run_per_path",
            Rule::AncestorsFirst => "ancestors_first",
            Rule::PendingBelow => "pending_below",
            Rule::RunsSeeThePresent => "runs_see_the_present",
            Rule::DeletesThenRenames => "deletes_then_renames",
            Rule::NoRunOnCycles => "no_run_on_cycles",
            Rule::AbandonedAside => "abandoned_aside",
            Rule::NoLostWakeUps => "no_lost_wake_ups",
            Rule::ConcurrencyLimits => "concurrency_limits",
            Rule::NamesAgree => "names_agree",
            Rule::EdgesAgree => "edges_agree",
            Rule::OwnersAgree => "owners_agree",
            Rule::WaitersAreAnswered => "waiters_are_answered",
            Rule::PausedStays => "paused_stays",
            Rule::StartupBarrier => "startup_barrier",
            Rule::TimersAgree => "timers_agree",
            Rule::ChangesAreStored => "changes_are_stored",
            Rule::StoreAgrees => "store_agrees",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that does not hold.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// assert_eq!(core.check_consistency(), [], "nothing is wrong");
/// # core.handle(now, Input::Time, &mut effects);
/// # assert_eq!(core.check_consistency(), []);
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What it breaks.
    pub rule: Rule,
    /// The resource that it is about; none for what is about the whole.
    pub subject: Option<Subject>,
    /// What is wrong, for whoever debugs the controller.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.rule)?;
        if let Some(subject) = &self.subject {
            write!(f, "\"{}\" ", subject.key)?;
        }
        f.write_str(&self.detail)
    }
}

/// A rule with the function that checks it.
type Check<'a> = (Rule, fn(&Parts<'a>, &mut Findings));

/// What was found so far.
struct Findings {
    rule: Rule,
    of_rule: usize,
    list: Vec<Finding>,
}

impl Findings {
    fn of(rule: Rule) -> Self {
        Self {
            rule,
            of_rule: 0,
            list: Vec::new(),
        }
    }

    fn begin(&mut self, rule: Rule) {
        (self.rule, self.of_rule) = (rule, 0);
    }

    fn add(&mut self, subject: Option<Subject>, detail: String) {
        self.of_rule += 1;
        if self.of_rule <= FINDINGS_PER_RULE {
            self.list.push(Finding {
                rule: self.rule,
                subject,
                detail,
            });
        }
    }

    /// Something about the whole.
    fn ensure(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.add(None, detail());
        }
    }

    /// Something about one resource.
    fn ensure_of(&mut self, graph: &Graph, slot: Slot, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            let row = &graph[slot].row;
            let subject = Subject {
                uid: row.uid,
                key: row.key(),
            };
            self.add(Some(subject), detail());
        }
    }
}

/// The components that are checked.
pub(crate) struct Parts<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) scheduler: &'a Scheduler,
    pub(crate) barrier: &'a Barrier,
    pub(crate) timers: &'a Timers,
    pub(crate) journal: &'a Journal,
    pub(crate) waiters: &'a Waiters,
    /// Whether the core takes calls and starts work.
    pub(crate) serves: bool,
}

impl<'a> Parts<'a> {
    /// Every rule that is checked, in order.
    const CHECKS: [Check<'a>; 18] = [
        (Rule::OneRunPerName, Self::check_one_run_per_name),
        (Rule::OneRunPerPath, Self::check_one_run_per_path),
        (Rule::AncestorsFirst, Self::check_ancestors_first),
        (Rule::PendingBelow, Self::check_pending_below),
        (Rule::RunsSeeThePresent, Self::check_runs_see_the_present),
        (Rule::DeletesThenRenames, Self::check_deletes_then_renames),
        (Rule::NoRunOnCycles, Self::check_no_run_on_cycles),
        (Rule::AbandonedAside, Self::check_abandoned_aside),
        (Rule::NoLostWakeUps, Self::check_no_lost_wake_ups),
        (Rule::ConcurrencyLimits, Self::check_concurrency_limits),
        (Rule::NamesAgree, Self::check_names_agree),
        (Rule::EdgesAgree, Self::check_edges_agree),
        (Rule::OwnersAgree, Self::check_owners_agree),
        (Rule::WaitersAreAnswered, Self::check_waiters_are_answered),
        (Rule::PausedStays, Self::check_paused_stays),
        (Rule::StartupBarrier, Self::check_startup_barrier),
        (Rule::TimersAgree, Self::check_timers_agree),
        (Rule::ChangesAreStored, Self::check_changes_are_stored),
    ];

    /// Checks every rule; see [`Core::check_consistency`].
    pub(crate) fn check(&self) -> Vec<Finding> {
        let mut findings = Findings::of(Rule::OneRunPerName);
        for (rule, check) in Self::CHECKS {
            findings.begin(rule);
            check(self, &mut findings);
        }
        findings.list
    }
}

impl Core {
    /// The rules that are checked, in their order.
    pub fn checked_rules() -> impl Iterator<Item = Rule> {
        Parts::CHECKS.into_iter().map(|(rule, _)| rule)
    }
}
