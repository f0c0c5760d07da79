//! Consistency check of the core: one function for each rule about a state, and for each invariant behind the rules.
//!
//! Each computes what it checks from scratch, from rows, refs and stages, and compares that with what the machine
//! counts and remembers. Rules that speak of what happens, not of what is, are checked by the simulator.

use crate::calls::waiters::Waiters;
use crate::graph::Graph;
use crate::journal::Journal;
use crate::schedule::barrier::Barrier;
use crate::schedule::scheduler::Scheduler;
use crate::timers::Timers;
use crate::types::index::Slot;
use crate::{Finding, Rule, Subject};

mod graph;
mod invocations;
mod names;
mod operations;
mod stored;
mod times;
mod waiting;

/// Maximum number of findings reported per rule: a broken count can be wrong in every resource.
const FINDINGS_PER_RULE: usize = 20;

/// A rule and the function that checks it.
type Check<'a> = (Rule, fn(&Parts<'a>, &mut Findings));

/// Findings so far.
struct Findings {
    rule: Rule,
    of_rule: usize,
    list: Vec<Finding>,
}

impl Findings {
    fn for_rule(rule: Rule) -> Self {
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

    /// Adds a finding about the whole core unless `holds`.
    fn ensure(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.add(None, detail());
        }
    }

    /// Adds a finding about one resource unless the check holds.
    fn ensure_of(&mut self, graph: &Graph, slot: Slot, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            let row = graph[slot].row();
            let subject = Subject {
                uid: row.uid,
                key: row.key(),
            };
            self.add(Some(subject), detail());
        }
    }
}

/// Components of a core that a consistency check compares.
pub(crate) struct Parts<'a> {
    graph: &'a Graph,
    scheduler: &'a Scheduler,
    barrier: &'a Barrier,
    timers: &'a Timers,
    journal: &'a Journal,
    waiters: &'a Waiters,
    /// True while the core accepts calls and starts work.
    serves: bool,
}

impl<'a> Parts<'a> {
    /// Bundles the components of a core; `serves` is true while the core accepts calls and starts work.
    pub(crate) fn new(
        graph: &'a Graph,
        (scheduler, barrier): (&'a Scheduler, &'a Barrier),
        timers: &'a Timers,
        journal: &'a Journal,
        waiters: &'a Waiters,
        serves: bool,
    ) -> Self {
        Self {
            graph,
            scheduler,
            barrier,
            timers,
            journal,
            waiters,
            serves,
        }
    }

    /// All rules with their checks, in order.
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

    /// Lists the rules that are checked, in order.
    pub(crate) fn rules() -> impl Iterator<Item = Rule> {
        Parts::CHECKS.into_iter().map(|(rule, _)| rule)
    }

    /// Checks every rule; see [`Core::check_consistency`](crate::Core::check_consistency).
    pub(crate) fn check(&self) -> Vec<Finding> {
        let mut findings = Findings::for_rule(Rule::OneRunPerName);
        for (rule, check) in Self::CHECKS {
            findings.begin(rule);
            check(self, &mut findings);
        }
        findings.list
    }
}
