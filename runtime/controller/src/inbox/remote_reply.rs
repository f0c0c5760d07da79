//! Replies to calls of other processes, through the store.

use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;
use watershed_core::{Answer, Refusal, Revision, RunOutcome, Settlement};

use crate::store::Answers;

/// Collector of the answers to a call of another process.
#[derive(Debug)]
pub(crate) struct RemoteReply {
    /// All answers so far. Each write repeats them, because writes may reach the store in any order.
    said: Answers,
    /// Answers that are still open.
    open: Open,
    /// Number of answers that the commit under way stores, and that are not sent again.
    in_commit: usize,
    out: mpsc::UnboundedSender<Answers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Once,
    Request { outcome: bool, settled: bool },
}

impl Open {
    fn after(self, answer: &Answer) -> Option<Self> {
        let Open::Request { outcome, settled } = self else {
            return None;
        };
        let (outcome, settled) = match answer {
            Answer::Outcome(_) | Answer::Outcomes(_) => (false, settled),
            Answer::Settled(_) => (outcome, false),
            Answer::Refused(_) => (false, false),
            _ => (outcome, settled),
        };
        (outcome || settled).then_some(Open::Request { outcome, settled })
    }
}

impl RemoteReply {
    /// Creates a reply without answers to the call `id`. A request gets up to three answers, other calls one.
    pub(crate) fn new(id: Uuid, is_request: bool, out: mpsc::UnboundedSender<Answers>) -> Self {
        let open = match is_request {
            true => Open::Request {
                outcome: true,
                settled: true,
            },
            false => Open::Once,
        };
        Self {
            said: Answers {
                id,
                ..Answers::default()
            },
            open,
            in_commit: 0,
            out,
        }
    }

    /// Returns the answers that the call's commit stores with its changes; none if the next leader has to answer.
    pub(crate) fn with_commit(&mut self, answers: &[&Answer], revision: Revision) -> Option<Answers> {
        self.in_commit = answers.len();
        let mut given = self.said.clone();
        given.revision = given.revision.max(revision);
        let mut open = Some(self.open);
        for answer in answers {
            if is_of_this_holder(answer) {
                return None;
            }
            record(answer, &mut given);
            open = open.and_then(|open| open.after(answer));
        }
        given.done = open.is_none();
        Some(given)
    }

    /// Sends an answer, unless a commit has stored it; returns the reply for the remaining answers.
    pub(crate) fn answer(mut self: Box<Self>, answer: &Answer, revision: Revision) -> Option<Box<Self>> {
        let open = self.open.after(answer);
        if !is_of_this_holder(answer) {
            record(answer, &mut self.said);
            self.said.revision = self.said.revision.max(revision);
            self.said.done = open.is_none();
        }
        if self.in_commit > 0 {
            self.in_commit -= 1;
        } else if !is_of_this_holder(answer) {
            let _ = self.out.send(self.said.clone());
        }
        self.open = open?;
        Some(self)
    }
}

/// Returns true if an answer only says that this leader is about to stop: the next leader gives the real one.
fn is_of_this_holder(answer: &Answer) -> bool {
    let is_no_outcome =
        |outcome: &RunOutcome| matches!(outcome, RunOutcome::ShutDown | RunOutcome::LeaseLost);
    match answer {
        Answer::Refused(refusal) => matches!(
            refusal,
            Refusal::ShuttingDown | Refusal::LeaseLost | Refusal::OutcomeUnknown
        ),
        Answer::Outcome(outcome) => is_no_outcome(outcome),
        Answer::Outcomes(outcomes) => outcomes.iter().any(is_no_outcome),
        Answer::Settled(settlement) => *settlement != Settlement::Settled,
        _ => false,
    }
}

pub(crate) fn record(answer: &Answer, given: &mut Answers) {
    let text = json(answer);
    match answer {
        Answer::Outcome(_) | Answer::Outcomes(_) => given.outcome = text,
        Answer::Settled(_) => given.settled = text,
        _ => given.first = text,
    }
}

fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}
