//! How calls and what happens in tasks reach the loop, and how answers find their callers.

use std::collections::HashMap;

use tokio::sync::oneshot;
use tokio::time::Instant;
use watershed_core::{
    Answer, Call, CallId, CommitError, CommitId, InvocationId, Refusal, Returned, RunOutcome, Settlement, Uid,
};

/// A call on its way to the loop.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) id: CallId,
    pub(crate) by: Option<InvocationId>,
    pub(crate) call: Call,
    pub(crate) reply: Reply,
    /// When it was sent.
    pub(crate) sent: Instant,
}

/// What the loop takes at any time, however many calls wait.
///
/// The channel has no bound of its own because each sender has one: an invocation returns once, has one progress
/// text and one state write on the way, one commit is under way, and a call is forgotten once.
#[derive(Debug)]
pub(crate) enum Signal {
    /// An invocation's task has ended.
    Returned {
        invocation: InvocationId,
        result: Returned,
    },
    /// An invocation has left a new progress text in its slot.
    Progress(InvocationId),
    /// An invocation writes its own state: in order with its return.
    WriteState(Command),
    /// The commit under way has ended.
    Committed {
        commit: CommitId,
        result: Result<(), CommitError>,
    },
    /// The lease of the catalog was renewed.
    Renewed,
    /// Somebody else has it.
    LeaseLost,
    /// Nobody waits for the answer any more.
    Forget(CallId),
}

/// Where the answers to a call go. A caller that is gone is no error.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Calls with one answer.
    Once(oneshot::Sender<Answer>),
    /// Requests for a reconcile, which have three.
    Request(Box<RequestReply>),
}

#[derive(Debug)]
pub(crate) struct RequestReply {
    pub(crate) recorded: Option<oneshot::Sender<Result<Uid, Refusal>>>,
    pub(crate) outcome: Option<oneshot::Sender<RunOutcome>>,
    pub(crate) settled: Option<oneshot::Sender<Settlement>>,
}

/// Calls that have not had their last answer.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    replies: HashMap<CallId, Reply>,
}

impl OpenCalls {
    pub(crate) fn insert(&mut self, id: CallId, reply: Reply) {
        self.replies.insert(id, reply);
    }

    pub(crate) fn forget(&mut self, id: CallId) {
        self.replies.remove(&id);
    }

    /// Hands an answer to its caller; after the last one the call is closed.
    pub(crate) fn answer(&mut self, id: CallId, answer: Answer) {
        let Some(reply) = self.replies.remove(&id) else {
            return;
        };
        if let Some(rest) = reply.answer(answer) {
            self.replies.insert(id, rest);
        }
    }
}

impl Reply {
    /// Sends one answer; returns what is still to be answered.
    pub(crate) fn answer(self, answer: Answer) -> Option<Reply> {
        match self {
            Reply::Once(caller) => {
                let _ = caller.send(answer);
                None
            }
            Reply::Request(request) => request.answer(answer).map(Reply::Request),
        }
    }
}

impl RequestReply {
    fn answer(mut self: Box<Self>, answer: Answer) -> Option<Box<Self>> {
        match answer {
            Answer::Recorded(uid) => send(self.recorded.take(), Ok(uid)),
            Answer::Refused(refusal) => {
                send(self.recorded.take(), Err(refusal));
                return None;
            }
            Answer::Outcome(outcome) => send(self.outcome.take(), outcome),
            Answer::Settled(settlement) => send(self.settled.take(), settlement),
            Answer::Applied(_)
            | Answer::StateWritten(_)
            | Answer::Explained(_)
            | Answer::Checked(_)
            | Answer::Done => {
                unreachable!("a request for a reconcile has no answer {answer:?}")
            }
        }
        (self.outcome.is_some() || self.settled.is_some()).then_some(self)
    }
}

fn send<T>(caller: Option<oneshot::Sender<T>>, answer: T) {
    if let Some(caller) = caller {
        let _ = caller.send(answer);
    }
}
