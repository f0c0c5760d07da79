//! Edits that are awaited: the outcomes and ends that must come, and none too early.

use std::collections::{BTreeMap, BTreeSet};

use watershed_core::{Answer, Batch, Call, CallId, InvocationId, RunOutcome, Settlement, Stage, Uid};

use crate::model::Asked;
use crate::world::{Check, Simulation, ensure};

/// Every third call that edits is awaited; by its number, so that the worlds of kept seeds stay what they were.
const EVERY: u64 = 3;

/// An edit whose end somebody waits for.
#[derive(Clone, Debug)]
pub(crate) struct Awaited {
    asked: u64,
    /// Invocations from this one on started after it.
    since: u64,
    /// Those that ran on when it was made: they have seen it.
    running: BTreeMap<Uid, u64>,
    /// Those that had settled when it was made, and of which it requests nothing: no later settling is awaited of them. A
    /// retry that a new policy makes due at once is a request of its own.
    rested: BTreeSet<Uid>,
    /// The resources of its edits, once it is acknowledged.
    uids: Vec<Uid>,
    is_acknowledged: bool,
    outcomes: bool,
    settled: bool,
}

/// The call that carries a batch out.
pub(crate) fn call_of(id: CallId, by: Option<InvocationId>, batch: Batch) -> Call {
    if by.is_none() && id.0.is_multiple_of(EVERY) {
        Call::ApplyAndAwait(batch)
    } else {
        Call::Apply(batch)
    }
}

impl Simulation {
    /// Notes what an awaited edit has to be told; `since` is the first invocation that started after it.
    pub(crate) fn expect_ends(&mut self, id: CallId, by: Option<InvocationId>, since: u64, asked: &Asked) {
        if by.is_some() || !id.0.is_multiple_of(EVERY) {
            return;
        }
        let awaited = Awaited {
            asked: self.step,
            since,
            running: BTreeMap::new(),
            rested: self.rested(asked),
            uids: Vec::new(),
            is_acknowledged: false,
            outcomes: false,
            settled: false,
        };
        self.awaited.insert(id, awaited);
    }

    /// The resources that have settled, but for those of which an edit requests something.
    fn rested(&self, asked: &Asked) -> BTreeSet<Uid> {
        let requests = [&asked.edited, &asked.ref_changed, &asked.deleted];
        let rests = self.stages.iter();
        rests
            .filter(|(_, stage)| matches!(stage, Stage::Settled(_)))
            .map(|(uid, _)| *uid)
            .filter(|uid| !requests.iter().any(|requested| requested.contains(uid)))
            .collect()
    }

    /// Notes which invocations an edit has left alone.
    pub(crate) fn see_running(&mut self, id: CallId) {
        if let Some(awaited) = self.awaited.get_mut(&id) {
            let running = self.running.iter().filter(|(_, run)| !run.cancelled);
            let running = running.map(|(invocation, run)| (run.uid, invocation.0));
            awaited.running = running
                .filter(|(_, invocation)| *invocation < awaited.since)
                .collect();
        }
    }

    /// Takes an answer to an awaited edit; returns false if it is one to something else.
    pub(crate) fn take_end(&mut self, call: CallId, answer: &Answer) -> Result<bool, String> {
        let stopping = self.stopping;
        let Some(awaited) = self.awaited.get_mut(&call) else {
            return Ok(false);
        };
        match answer {
            Answer::Applied(applied) => {
                awaited.is_acknowledged = true;
                awaited.uids.clone_from(&applied.uids);
            }
            // A controller that stops gives up on it, which its caller learns.
            Answer::Refused(_) if stopping && awaited.is_acknowledged => {
                (awaited.outcomes, awaited.settled) = (true, true);
                return Ok(true);
            }
            Answer::Refused(_) => {
                self.awaited.remove(&call);
            }
            Answer::Outcomes(outcomes) => {
                let is_first = !std::mem::replace(&mut awaited.outcomes, true);
                ensure(is_first, "edits", || format!("{call:?} has its outcomes twice"))?;
                check_outcomes(call, awaited, outcomes)?;
                return Ok(true);
            }
            Answer::Settled(settlement) => {
                let is_first = !std::mem::replace(&mut awaited.settled, true);
                ensure(is_first, "edits", || format!("{call:?} settled twice"))?;
                ensure(*settlement == Settlement::Settled || stopping, "edits", || {
                    format!("{call:?} ended by {settlement:?}")
                })?;
                if *settlement == Settlement::Settled {
                    self.check_settled(call)?;
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    /// Each live resource of the edits has settled once after them.
    fn check_settled(&self, call: CallId) -> Check {
        let Some(awaited) = self.awaited.get(&call) else {
            return Ok(());
        };
        for uid in awaited.uids.iter().filter(|uid| self.catalog.is_live(**uid)) {
            let now = matches!(self.stages.get(uid), Some(Stage::Settled(_)));
            let since = self.past.get(uid);
            let since = since.is_some_and(|past| past.settled.max(past.completed_end) >= awaited.asked);
            let rested = awaited.rested.contains(uid);
            ensure(now || since || rested, "edits", || {
                format!("{call:?} settled before {uid}")
            })?;
        }
        Ok(())
    }

    /// At rest every awaited edit has its outcomes, and has settled unless a delete among them is still to be tried.
    pub(crate) fn check_ends_at_rest(&mut self) -> Check {
        for (call, awaited) in &self.awaited {
            ensure(awaited.outcomes, "edits", || {
                format!("{call:?} never had its outcomes")
            })?;
            let is_marked = |uid: &Uid| self.catalog.items.contains_key(uid) && !self.catalog.is_live(*uid);
            ensure(
                awaited.settled || awaited.uids.iter().any(is_marked),
                "edits",
                || format!("{call:?} never settled"),
            )?;
        }
        self.awaited.retain(|_, awaited| !awaited.settled);
        Ok(())
    }

    /// A controller that has stopped leaves nobody waiting.
    pub(crate) fn check_ends_when_stopped(&self) -> Check {
        let left = self
            .awaited
            .iter()
            .find(|(_, awaited)| !(awaited.outcomes && awaited.settled));
        ensure(left.is_none(), "edits", || format!("{left:?} was not told"))
    }
}

/// No run that began before an edit, and has not seen it, is its outcome.
fn check_outcomes(call: CallId, awaited: &Awaited, outcomes: &[RunOutcome]) -> Check {
    ensure(outcomes.len() == awaited.uids.len(), "edits", || {
        format!("{call:?} has {} outcomes", outcomes.len())
    })?;
    for (uid, outcome) in awaited.uids.iter().zip(outcomes) {
        let invocation = match outcome {
            RunOutcome::Done { invocation, .. } | RunOutcome::Failed { invocation, .. } => invocation,
            _ => continue,
        };
        let first = awaited.running.get(uid).copied().unwrap_or(awaited.since);
        ensure(invocation.0 >= first, "edits", || {
            format!("{invocation:?} of {uid} started before {call:?}")
        })?;
    }
    Ok(())
}
