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
    /// Run again with nothing changed, it changed something.
    NotIdempotent,
    /// Cancelled, or dropped where it waits, it left something that the next run did not make right.
    NotCancelSafe,
    /// Its process died or lost its lease, and the next one did not make right what was left.
    NotCrashSafe,
    /// After a restart in order it did not find again what it had in memory.
    MemoryOnly,
    /// It went on for long after its cancel.
    IgnoresCancel,
    /// As a holder of yesterday it changed what a later one had made.
    IgnoresEpoch,
    /// After a change of spec, something is still as the earlier one wanted it.
    StaleSpec,
    /// After a change of what it reads, something is still as before.
    StaleRef,
    /// It depends on a resource that it has no ref to.
    UndeclaredRead,
    /// After a rename, something is not where it should be.
    LosesRename,
    /// After a delete, something is left.
    LeavesBehind,
    /// Something is under way outside, and it did not ask to be run again.
    LosesRetrigger,
    /// It failed once, and the next run did not make right what was left.
    NotRetrySafe,
    /// The outside failed while it ran, and it said that all was well.
    SwallowsError,
    /// The outside showed what must never be seen.
    Torn,
    /// It fails although nothing stands in its way.
    Fails,
    /// It panicked.
    Panics,
    /// It never came to an end.
    Endless,
}

impl Fault {
    /// Returns the fault as a text that follows "the reconciler".
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

    /// Returns a hint at the place to look at first.
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

/// The report of a failed check: the shortest play found that shows the fault.
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
    /// The fault.
    pub fault: Fault,
    /// The seed that shows it again, with [`Kit::play`](super::Kit::play) or `WATERSHED_TESTKIT_SEED`.
    pub seed: u64,
    /// The events, a line each.
    pub story: Vec<String>,
    /// The result, beside the expected one.
    pub finding: String,
    /// Steps that were played until then.
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

/// The extent of a check that has found nothing.
///
/// What [`Kit::find`](super::Kit::find) and [`Kit::check`](super::Kit::check) return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Passed {
    /// Worlds that were played, each from a seed of its own.
    pub plays: u64,
    /// The number of steps: edits, interruptions, and polls of invocations.
    pub steps: u64,
    /// Invocations that began.
    pub invocations: u64,
    /// Of them, cancelled and returned.
    pub cancelled: u64,
    /// Of them, dropped where they waited.
    pub dropped: u64,
    /// Processes that died.
    pub crashes: u64,
    /// Processes that stood still until another one had taken over.
    pub frozen: u64,
}

/// The fault that a play has found, before the steps that it takes are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The outside is not as it would be from scratch.
    Differs,
    /// A state is not.
    State,
    /// A resource fails that would not from scratch.
    Stuck,
    /// It fails from scratch.
    Fails,
    /// Run again, it changed something.
    Again,
    /// Everything was deleted, and something is left.
    Left,
    /// Something is under way and nobody will look.
    Asleep,
    /// The outside says so itself.
    Torn,
    Late,
    Panicked,
    Endless,
}

/// A play that failed.
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

/// Lines of a difference that are shown.
const SHOWN: usize = 40;

/// The lines that only one of two values has, by their debug output.
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
