//! Calls and signals on their way to the loop, and replies on their way back.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use watershed_core::{
    Answer, Call, CallId, CommitError, CommitId, Epoch, InvocationId, Refusal, Returned, Revision,
    RunOutcome, Settlement,
};

use crate::inbox::remote_reply::RemoteReply;
use crate::store::Answers;

/// A call on its way to the loop.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) id: CallId,
    pub(crate) by: Option<Caller>,
    pub(crate) call: Call,
    pub(crate) reply: Reply,
    /// Time at which the call was sent.
    pub(crate) sent: Instant,
}

/// The invocation that makes a call; its id is unique only within the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) epoch: Epoch,
    pub(crate) invocation: InvocationId,
}

/// A signal to the loop, taken at any time, however many calls wait.
///
/// The channel has no bound of its own because each sender has one: an invocation returns once, has one progress
/// text and one state write on the way, one commit is under way, and the lease has one keeper.
#[derive(Debug)]
pub(crate) enum Signal {
    /// An invocation's task has ended.
    Returned {
        invocation: InvocationId,
        result: Returned,
    },
    /// An invocation has left a new progress text in its slot.
    Progress(InvocationId),
    /// An invocation writes its state; kept in order with its return.
    WriteState(Command),
    /// The commit under way has ended.
    Committed {
        commit: CommitId,
        result: Result<(), CommitError>,
    },
    /// The lease of the catalog was renewed.
    Renewed,
    /// Another process has taken the lease.
    LeaseLost,
}

/// Senders of the two queues of signals to the loop. Urgent signals, which a caller waits for, overtake the others.
/// Each sender uses only one queue, so its own signals stay in order.
#[derive(Debug, Clone)]
pub(crate) struct SignalsOut {
    /// Queue for commits, the lease, and invocations that a caller requested.
    pub(crate) urgent: mpsc::UnboundedSender<Signal>,
    /// Queue for all other invocations.
    pub(crate) ordinary: mpsc::UnboundedSender<Signal>,
}

/// Receivers of the two queues of signals.
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) urgent: mpsc::UnboundedReceiver<Signal>,
    pub(crate) ordinary: mpsc::UnboundedReceiver<Signal>,
}

/// Creates the queues of signals.
pub(crate) fn signals() -> (SignalsOut, Signals) {
    let (urgent_out, urgent) = mpsc::unbounded_channel();
    let (ordinary_out, ordinary) = mpsc::unbounded_channel();
    let out = SignalsOut {
        urgent: urgent_out,
        ordinary: ordinary_out,
    };
    (out, Signals { urgent, ordinary })
}

/// Receivers of everything that handles send. They outlive a loop whose process may lead again.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) shutdown: watch::Receiver<Option<Duration>>,
    pub(crate) forgotten: mpsc::UnboundedReceiver<CallId>,
    pub(crate) commands: mpsc::Receiver<Command>,
}

/// Waits for the next shutdown request, and returns its grace period.
pub(crate) async fn changed(shutdown: &mut watch::Receiver<Option<Duration>>) -> Duration {
    loop {
        if shutdown.changed().await.is_err() {
            // The controller is gone and had asked before it went.
            return std::future::pending().await;
        }
        if let Some(grace) = *shutdown.borrow_and_update() {
            return grace;
        }
    }
}

/// The receiver of a call's answers. A caller that is gone is no error.
#[derive(Debug)]
pub(crate) enum Reply {
    /// For calls that get exactly one answer.
    Once(oneshot::Sender<Answer>),
    /// For requests for a reconcile and awaited edits, which have three answers.
    Request(Box<RequestReply>),
    /// For calls of other processes, which find the answers in the store.
    Remote(Box<RemoteReply>),
}

#[derive(Debug)]
pub(crate) struct RequestReply {
    /// Receives the acceptance of the request, or its refusal.
    pub(crate) recorded: Option<oneshot::Sender<Answer>>,
    /// Receives the outcome, or the outcomes of a batch.
    pub(crate) outcome: Option<oneshot::Sender<Answer>>,
    pub(crate) settled: Option<oneshot::Sender<Settlement>>,
}

/// Calls that have not had their last answer.
#[derive(Debug, Default)]
pub(crate) struct PendingCalls {
    replies: HashMap<CallId, Reply>,
    /// Number of open calls of other processes.
    remote: usize,
}

impl PendingCalls {
    pub(crate) fn len(&self) -> usize {
        self.replies.len()
    }

    pub(crate) fn insert(&mut self, id: CallId, reply: Reply) {
        self.remote += usize::from(matches!(reply, Reply::Remote(_)));
        self.replies.insert(id, reply);
    }

    pub(crate) fn forget(&mut self, id: CallId) {
        self.remove(id);
    }

    fn remove(&mut self, id: CallId) -> Option<Reply> {
        let reply = self.replies.remove(&id)?;
        self.remote -= usize::from(matches!(reply, Reply::Remote(_)));
        Some(reply)
    }

    /// Collects the answers that a commit stores for callers of other processes.
    pub(crate) fn with_commit<'a>(
        &mut self,
        answers: impl Iterator<Item = (CallId, &'a Answer)>,
        revision: Revision,
    ) -> Vec<Answers> {
        if self.remote == 0 {
            return Vec::new();
        }
        let mut by_call: Vec<(CallId, Vec<&Answer>)> = Vec::new();
        let mut places: HashMap<CallId, usize> = HashMap::new();
        for (call, answer) in answers {
            if matches!(self.replies.get(&call), Some(Reply::Remote(_))) {
                let place = *places.entry(call).or_insert_with(|| {
                    by_call.push((call, Vec::new()));
                    by_call.len() - 1
                });
                by_call[place].1.push(answer);
            }
        }
        let mut given = Vec::with_capacity(by_call.len());
        for (call, answers) in by_call {
            if let Some(Reply::Remote(remote)) = self.replies.get_mut(&call) {
                given.extend(remote.with_commit(&answers, revision));
            }
        }
        given
    }

    /// Hands an answer to its caller, and closes the call after the last one. The number of open calls is reported
    /// first, because the caller may look at it at once.
    pub(crate) fn answer(
        &mut self,
        id: CallId,
        answer: Answer,
        revision: Revision,
        left: impl FnOnce(usize),
    ) {
        let Some(reply) = self.remove(id) else {
            return;
        };
        left(self.len());
        if let Some(rest) = reply.answer(answer, revision) {
            self.insert(id, rest);
        }
    }
}

impl Reply {
    /// Sends one answer, valid as of this revision; returns the reply for the remaining ones.
    pub(crate) fn answer(self, answer: Answer, revision: Revision) -> Option<Reply> {
        match self {
            Reply::Once(caller) => {
                let _ = caller.send(answer);
                None
            }
            Reply::Request(request) => request.answer(answer).map(Reply::Request),
            Reply::Remote(remote) => remote.answer(&answer, revision).map(Reply::Remote),
        }
    }
}

impl RequestReply {
    fn answer(mut self: Box<Self>, answer: Answer) -> Option<Box<Self>> {
        match answer {
            Answer::Recorded(_) | Answer::Applied(_) => send(self.recorded.take(), answer),
            // It was recorded by an earlier holder, and what it was for has gone since.
            Answer::Refused(Refusal::Unknown(_)) if self.recorded.is_none() => {
                send(self.outcome.take(), Answer::Outcome(RunOutcome::Deleted));
                send(self.settled.take(), Settlement::Settled);
            }
            Answer::Refused(_) => {
                send(self.recorded.take(), answer);
                return None;
            }
            Answer::Outcome(_) | Answer::Outcomes(_) => send(self.outcome.take(), answer),
            Answer::Settled(settlement) => send(self.settled.take(), settlement),
            Answer::StateWritten(_) | Answer::Explained(_) | Answer::Checked(_) | Answer::Done => {
                unreachable!("a request has no answer {answer:?}")
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
