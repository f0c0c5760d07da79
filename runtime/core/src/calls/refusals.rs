//! Refusals for all open calls when the core stops at once.

use std::collections::BTreeSet;

use super::waiters::Waiters;
use crate::journal::Journal;
use crate::{Answer, CallId, Effect, Refusal, RunOutcome, Settlement};

/// Answers every open call: the lease is lost, or, where a commit may still contain the call, the outcome is unknown.
pub(crate) fn refuse_all(
    journal: &mut Journal,
    waiters: &mut Waiters,
    lease_lost: bool,
    out: &mut Vec<Effect>,
) {
    let waiting = journal.take_answers();
    let in_doubt: BTreeSet<CallId> = waiting
        .iter()
        .filter_map(|(call, in_doubt)| in_doubt.then_some(*call))
        .collect();
    let waiting = waiting.into_iter().map(|(call, _)| call);
    let idle = waiters.take_idle();
    let mut calls: Vec<CallId> = waiting.chain(idle).collect();
    let handles = waiters.take_open();
    if !lease_lost {
        calls.extend(handles.iter().map(|(call, _)| *call));
    }
    calls.sort_unstable();
    calls.dedup();
    for call in &calls {
        let refusal = if lease_lost && !in_doubt.contains(call) {
            Refusal::LeaseLost
        } else {
            Refusal::OutcomeUnknown
        };
        out.push(Effect::Answer {
            call: *call,
            answer: Answer::Refused(refusal),
        });
    }
    // What is refused above hears nothing more: no outcome follows a refusal.
    for (call, open) in handles
        .into_iter()
        .filter(|(call, _)| calls.binary_search(call).is_err())
    {
        let answers = open.end(&RunOutcome::LeaseLost, Settlement::LeaseLost);
        out.extend(answers.map(|answer| Effect::Answer { call, answer }));
    }
}
