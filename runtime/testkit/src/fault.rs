//! Faults of reconcilers, and their reports.

use std::fmt;

/// A fault of a reconciler, named after the steps that show it.
///
/// A play that failed is made as short as can be. What is left in it is what the reconciler can't stand.
///
/// See [`Report`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// A run with nothing changed changes something.
    NotIdempotent,
    /// A cancelled or dropped run leaves something that the next run does not repair.
    NotCancelSafe,
    /// A run whose process died or lost its lease leaves something that the next one does not repair.
    NotCrashSafe,
    /// After an orderly restart, the reconciler lacks what it kept in memory.
    MemoryOnly,
    /// A run continues for too long after its cancel.
    IgnoresCancel,
    /// A run of an earlier leader changes the output of a later one.
    IgnoresEpoch,
    /// After a change of the spec, some output is still that of the earlier spec.
    StaleSpec,
    /// After a change of a ref's target, some output is still as before.
    StaleRef,
    /// The output depends on a resource to which there is no ref.
    UndeclaredRead,
    /// After a rename, some output is not in its place.
    LosesRename,
    /// After a delete, some output is left.
    LeavesBehind,
    /// Work is in progress outside, but the reconciler did not ask to be run again.
    LosesRetrigger,
    /// A failed run leaves something that the next run does not repair.
    NotRetrySafe,
    /// The outside failed during a run, which reported success.
    SwallowsError,
    /// The outside shows an output that must never be visible.
    Torn,
    /// A run fails without a cause outside.
    Fails,
    /// A run panics, whatever the cause.
    Panics,
    /// A run never ends.
    Endless,
}

impl Fault {
    /// Returns a text about the fault that continues "the reconciler".
    fn as_str(self) -> &'static str {
        match self {
            Fault::NotIdempotent => "is not idempotent: run again with nothing changed, it changes something",
            Fault::NotCancelSafe => "is not cancel-safe: a run after a cancelled one does not make it right",
            Fault::NotCrashSafe => "is not crash-safe: what a process left that died is not made right",
            Fault::MemoryOnly => "keeps in memory what must survive a restart",
            Fault::IgnoresCancel => "ignores its cancel",
            Fault::IgnoresEpoch => "ignores the epoch: a holder of yesterday changes what a later one made",
            Fault::StaleSpec => "misses a change of its spec",
            Fault::StaleRef => "misses a change of what it reads",
            Fault::UndeclaredRead => "reads what it has no ref to",
            Fault::LosesRename => "does not carry out a rename",
            Fault::LeavesBehind => "leaves something behind when its resource is deleted",
            Fault::LosesRetrigger => "does not come back to what is under way",
            Fault::NotRetrySafe => "is not safe to be tried again: what a failed run left is not made right",
            Fault::SwallowsError => "says that all is well when the outside has failed",
            Fault::Torn => "lets the outside show what must never be seen",
            Fault::Fails => "fails although nothing stands in its way",
            Fault::Panics => "panics",
            Fault::Endless => "never comes to an end",
        }
    }

    /// Returns a hint where to look first.
    fn hint(self) -> &'static str {
        match self {
            Fault::NotIdempotent => "look at what is there before acting; \"it is already there\" is success",
            Fault::NotCancelSafe | Fault::NotCrashSafe | Fault::NotRetrySafe => {
                "effect first, state second; find what an earlier run left by a key of your own, the uid for instance"
            }
            Fault::MemoryOnly => "keep it in the state, or find it again outside",
            Fault::IgnoresCancel => "pass `context.cancellation()` to whatever waits",
            Fault::IgnoresEpoch => {
                "send `context.epoch()` along, and have lower ones refused where the effect is"
            }
            Fault::StaleSpec => "compare what is there with the whole of `context.spec()`",
            Fault::StaleRef => {
                "compare the uid and the `state_version` of each ref's target with those last used"
            }
            Fault::UndeclaredRead => "read through `context.refs()` and declare every ref",
            Fault::LosesRename => "move what stands under `context.former_names()` in `rename`",
            Fault::LeavesBehind => {
                "remove in `delete` all that any run may have made, also an unfinished one"
            }
            Fault::LosesRetrigger => "return a `retrigger` as long as something is under way",
            Fault::SwallowsError => "return the error; `Error::transient` if it may pass by itself",
            Fault::Torn => "make the new thing aside and put it in place at once",
            Fault::Fails => {
                "give the kit specs that can be had; resources that are read are all there and well"
            }
            Fault::Panics => "a ref's target may be missing or without a state",
            Fault::Endless => "return and ask to be run again with a `retrigger`",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Report of a failed check: the shortest play found that shows the fault.
///
/// ```
/// # use std::{collections::BTreeMap, sync::{Arc, Mutex}};
/// # use watershed_controller::{Context, Error, Outcome, Reconciler, Uid};
/// use watershed_testkit::{Fault, Kit, Outside};
///
/// /// Counts, and never looks.
/// struct Counter(Total);
///
/// impl Reconciler for Counter {
///     type Spec = ();
///     type State = ();
///
///     async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
///         *self.0.0.lock().unwrap() += 1;
///         Ok(Outcome::default())
///     }
/// }
///
/// #[derive(Clone, Default)]
/// struct Total(Arc<Mutex<u64>>);
///
/// impl Outside for Total {
///     type Seen = u64;
///
///     fn look(&self) -> u64 {
///         *self.0.lock().unwrap()
///     }
/// }
///
/// let kit = Kit::new(Total::default, |total| Counter(total.clone()), |_| ());
/// let report = kit.find().expect_err("it counts each run");
/// assert_eq!(report.fault, Fault::NotIdempotent);
/// assert!(kit.play(report.seed).is_err());
/// println!("{report}");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report {
    /// Fault that the shortest play shows.
    pub fault: Fault,
    /// Seed that shows the fault again, with [`Kit::play`](super::Kit::play) or `WATERSHED_TESTKIT_SEED`.
    pub seed: u64,
    /// Events of the play, a line each.
    pub story: Vec<String>,
    /// Actual result, beside the expected one.
    pub finding: String,
    /// Number of steps played until the fault.
    pub steps: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the reconciler {}", self.fault)?;
        for (number, line) in self.story.iter().enumerate() {
            writeln!(f, "{:>3}. {line}", number + 1)?;
        }
        writeln!(f, "{}", self.finding.trim_end())?;
        writeln!(f, "hint: {}", self.fault.hint())?;
        write!(
            f,
            "again: WATERSHED_TESTKIT_SEED={} with this test, found after {} steps",
            self.seed, self.steps
        )
    }
}

impl std::error::Error for Report {}

/// Extent of a check without a fault.
///
/// What [`Kit::find`](super::Kit::find) and [`Kit::check`](super::Kit::check) return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Passed {
    /// Number of worlds played, each from a seed of its own.
    pub plays: u64,
    /// Number of steps: edits, interruptions, and polls of invocations.
    pub steps: u64,
    /// Number of invocations that began in all plays.
    pub invocations: u64,
    /// Number of invocations that were cancelled and returned.
    pub cancelled: u64,
    /// Number of invocations that were dropped at an await.
    pub dropped: u64,
    /// Number of processes that died.
    pub crashes: u64,
    /// Number of processes that froze until another one had taken over.
    pub frozen: u64,
}

/// Finding of a play, before it is known which steps are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The outside differs from the one made from scratch.
    Differs,
    /// A state differs from the one made from scratch.
    State,
    /// A resource fails that does not fail from scratch.
    Stuck,
    /// A resource fails from scratch.
    Fails,
    /// A repeated run changed something.
    Again,
    /// Something is left after everything was deleted.
    Left,
    /// Work is in progress outside, and no run will look at it again.
    Asleep,
    /// The outside reports an output that must never be visible.
    Torn,
    Late,
    Panicked,
    Endless,
}

/// A finding of a failed play, with its text.
#[derive(Debug, Clone)]
pub(super) struct Wrong {
    pub(super) what: What,
    pub(super) finding: String,
}

impl Wrong {
    pub(super) fn new(what: What, finding: impl Into<String>) -> Self {
        Self {
            what,
            finding: finding.into(),
        }
    }
}

/// Maximum number of lines shown of a difference.
const SHOWN: usize = 40;

/// Returns the lines in which two values differ, by their debug output.
pub(super) fn difference<T: fmt::Debug>(title: &str, found: &T, expected: &T) -> String {
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let (found, expected): (Vec<_>, Vec<_>) = (found.lines().collect(), expected.lines().collect());
    let head = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let rest = found.len().min(expected.len()) - head;
    let ends = found.iter().rev().zip(expected.iter().rev());
    let tail = ends.take(rest).take_while(|(a, b)| a == b).count();
    let mut lines = vec![title.to_owned()];
    lines.extend(
        expected[head..expected.len() - tail]
            .iter()
            .map(|line| format!("  - {line}")),
    );
    lines.extend(
        found[head..found.len() - tail]
            .iter()
            .map(|line| format!("  + {line}")),
    );
    if lines.len() > SHOWN {
        lines.truncate(SHOWN);
        lines.push("    ...".to_owned());
    }
    lines.join("\n")
}
