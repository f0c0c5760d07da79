//! The result of a consistency check: broken rules, with details.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Revision, Subject};

/// A rule that a finding breaks: one of the controller, or one that the machine needs for all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// At most one invocation per resource, and one under each name.
    OneRunPerName,
    /// At most one invocation that is not cancelled on a path.
    OneRunPerPath,
    /// Unsettled resources above and running ones below are counted: both come before the resource's own run.
    AncestorsFirst,
    /// Everything below an unsettled resource is unsettled.
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
    /// Owners and owned resources agree.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The broken rule.
    pub rule: Rule,
    /// The resource that it is about; none for what is about the whole.
    pub subject: Option<Subject>,
    /// A description for people who debug the controller.
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

/// The extent to which a stored catalog could be compared with the loaded one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// It was not.
    Not,
    /// Row by row where neither had changed since; the catalog moved on between the two looks.
    Partly,
    /// Whole: both are of one revision.
    Whole,
}

/// The result of a check.
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
    /// The catalog's revision.
    pub revision: Revision,
    /// Its resources, deleted ones included whose delete is unfinished.
    pub resources: usize,
    /// The rules that were checked.
    pub rules: Vec<Rule>,
    /// The extent to which the store was compared.
    pub compared: Compared,
    /// Broken rules; at most 20 findings of each.
    pub findings: Vec<Finding>,
}
