//! Result of a consistency check: broken rules, with details.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Revision, Subject};

/// A rule of the consistency check: of the contract, or an invariant behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// One invocation at most per resource, and under each name.
    OneRunPerName,
    /// One uncancelled invocation at most on each path.
    OneRunPerPath,
    /// Unsettled ancestors and running descendants are counted, and a resource waits for both.
    AncestorsFirst,
    /// Everything below an unsettled resource is unsettled.
    PendingBelow,
    /// An uncancelled invocation has seen its present inputs.
    RunsSeeThePresent,
    /// Unfinished deletes and renames are known, counted, and in order.
    DeletesThenRenames,
    /// Exactly the members of cycles are marked as such, settle together, and carry the error.
    NoRunOnCycles,
    /// Abandoned invocations are counted, and every resource that one keeps out names it.
    AbandonedAside,
    /// Every pending resource waits for an event after which it is evaluated again.
    NoLostWakeUps,
    /// The concurrency limits hold, and whatever could start has started.
    ConcurrencyLimits,
    /// Each live resource is bound to its name, and every claim on a name is known.
    NamesAgree,
    /// Exactly the edges between live resources are counted.
    EdgesAgree,
    /// The index of owners matches the rows.
    OwnersAgree,
    /// Callers wait only for unsettled resources, and every unsettled resource is counted.
    WaitersAreAnswered,
    /// Only paused resources settle as paused.
    PausedStays,
    /// The gate holds exactly the resources of `first` kinds that have not settled.
    StartupBarrier,
    /// Every timer belongs to something that waits for it.
    TimersAgree,
    /// Every change is on its way to the store, and no row is newer than the catalog.
    ChangesAreStored,
    /// The store holds the same catalog as the core.
    StoreAgrees,
}

impl Rule {
    /// Returns the rule's name in documents.
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

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Rule that does not hold.
    pub rule: Rule,
    /// Resource concerned; none if the finding is about the whole core.
    pub subject: Option<Subject>,
    /// Description for people who debug the controller.
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

/// Extent to which a stored catalog was compared with the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// No stored catalog was given, so none was compared.
    Not,
    /// Compared only where neither row had changed since; the catalog moved on between the two reads.
    Partly,
    /// Compared as a whole: both are at the same revision.
    Whole,
}

/// Result of a consistency check.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// core.handle(now, Input::Call { id: CallId(1), by: None, call: Call::Check(None) }, &mut effects);
/// # core.flush(now, &mut effects);
/// # let checked = effects.into_iter().find_map(|effect| match effect {
/// #     Effect::Answer { answer: Answer::Checked(checked), .. } => Some(checked),
/// #     _ => None,
/// # });
/// # let checked = checked.expect("it was requested");
/// assert_eq!(checked.findings, []);
/// assert!(checked.rules.contains(&Rule::NoRunOnCycles));
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Consistency {
    /// Revision of the catalog at the time of the check.
    pub revision: Revision,
    /// Number of stored resources, including those with an unfinished delete.
    pub resources: usize,
    /// Rules that were checked.
    pub rules: Vec<Rule>,
    /// Extent to which the store was compared.
    pub compared: Compared,
    /// Broken rules; at most 20 findings of each.
    pub findings: Vec<Finding>,
}
