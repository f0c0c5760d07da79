//! The leader's server for calls of other processes: claims the calls, hands them to the loop, and stores the answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;
use watershed_core::{Answer, Call, CallId, CommitError, Epoch, Refusal, Target};

use crate::inbox::call::{Command, Reply};
use crate::inbox::remote_reply::{RemoteReply, record};
use crate::inbox::shared::Shared;
use crate::store::{Answers, ClaimedCall, Exchange, Interest};

/// Maximum number of calls claimed at once, which the loop takes within a few turns.
const AT_ONCE: u32 = 512;
/// Interval between searches for calls whose callers are gone.
const TIDY: Duration = Duration::from_secs(60);
/// Pause before a retry after a failure of the store.
const RETRY: Duration = Duration::from_millis(200);

/// Task that claims calls of other processes while the loop runs.
pub(crate) struct CallServer {
    pub(crate) exchange: Arc<dyn Exchange>,
    pub(crate) epoch: Epoch,
    pub(crate) shared: Arc<Shared>,
}

impl CallServer {
    /// Claims calls of other processes and hands them to the loop, in order.
    pub(crate) async fn run(self, out: mpsc::UnboundedSender<Answers>) {
        let mut calls = self.exchange.follow(Interest::Calls);
        let mut tidied = Instant::now();
        let mut open: Vec<(Uuid, CallId)> = Vec::new();
        loop {
            match self.exchange.claim(self.epoch, AT_ONCE).await {
                Ok(taken) => {
                    let is_full = taken.len() == AT_ONCE as usize;
                    for call in taken {
                        let Some(command) = self.command(&call, &out) else {
                            continue;
                        };
                        open.push((call.id, command.id));
                        if self.shared.commands.send(command).await.is_err() {
                            return;
                        }
                        self.shared.wake();
                    }
                    if is_full {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "calls of other processes can't be taken");
                    sleep(RETRY).await;
                    continue;
                }
            }
            if tidied.elapsed() >= TIDY {
                tidied = Instant::now();
                self.forget_orphans(&mut open).await;
            }
            let _ = timeout(TIDY, calls.next()).await;
        }
    }

    /// Converts a claimed call to a command for the loop. A call that can't be read is answered at once.
    fn command(&self, taken: &ClaimedCall, out: &mpsc::UnboundedSender<Answers>) -> Option<Command> {
        let call = serde_json::from_str::<Call>(&taken.call)
            .map_err(|_| Refusal::NotUnderstood)
            .and_then(|call| self.checked(call));
        let call = match call {
            Ok(call) => call,
            Err(refusal) => {
                let mut given = Answers {
                    id: taken.id,
                    done: true,
                    ..Answers::default()
                };
                record(&Answer::Refused(refusal), &mut given);
                let _ = out.send(given);
                return None;
            }
        };
        let is_request = matches!(
            call.inner(),
            Call::Reconcile(_)
                | Call::Refresh { .. }
                | Call::ReconcileOnce(_)
                | Call::ApplyAndAwait(_)
                | Call::Await(_)
        );
        let remote = RemoteReply::new(taken.id, is_request, out.clone());
        Some(Command {
            id: self.shared.call_id(),
            by: None,
            call: resume(call, taken.first.as_deref()),
            reply: Reply::Remote(Box::new(remote)),
            sent: Instant::now(),
        })
    }

    /// Refuses a call with specs that the kinds of this process can't read; the caller's process may have other kinds.
    fn checked(&self, call: Call) -> Result<Call, Refusal> {
        if let Call::Apply(batch) | Call::ApplyAndAwait(batch) = call.inner() {
            self.shared.check_specs(batch)?;
        }
        Ok(call)
    }

    /// Drops the calls of callers that are gone.
    async fn forget_orphans(&self, open: &mut Vec<(Uuid, CallId)>) {
        let Ok(present) = self.exchange.clean_up().await else {
            return;
        };
        open.retain(|(id, call)| {
            let stays = present.contains(id);
            if !stays {
                self.shared.forget(*call);
            }
            stays
        });
    }
}

/// Replaces a call that an earlier leader has partly answered by one for the remaining answers, so that nothing counts
/// twice.
fn resume(call: Call, first: Option<&str>) -> Call {
    recorded_as(first.and_then(|text| serde_json::from_str(text).ok()), call)
}

/// Replaces a call with this first answer by one for the remaining answers.
pub(crate) fn recorded_as(first: Option<Answer>, call: Call) -> Call {
    match (first, call) {
        (first, Call::By { origin, call }) => Call::By {
            origin,
            call: Box::new(recorded_as(first, *call)),
        },
        (Some(Answer::Recorded(uid)), Call::ReconcileOnce(_)) => Call::ReconcileOnce(Target::Uid(uid)),
        (Some(Answer::Recorded(uid)), _) => Call::Reconcile(Target::Uid(uid)),
        (Some(Answer::Applied(applied)), Call::ApplyAndAwait(_)) => Call::Await(applied),
        (_, call) => call,
    }
}

/// Writes answers that belong to no commit, until the lease is lost or the loop has ended.
pub(crate) async fn write_answers(
    exchange: Arc<dyn Exchange>,
    epoch: Epoch,
    mut answers: mpsc::UnboundedReceiver<Answers>,
) {
    let mut given = Vec::new();
    while answers.recv_many(&mut given, AT_ONCE as usize).await > 0 {
        let whole = merged(std::mem::take(&mut given));
        loop {
            match exchange.answer(epoch, &whole).await {
                Ok(()) => break,
                Err(CommitError::LeaseLost) => return,
                Err(CommitError::Failed(message) | CommitError::Full(message)) => {
                    tracing::debug!(error = %message, "answers could not be given and are given again");
                    sleep(RETRY).await;
                }
            }
        }
    }
}

/// Merges the answers to each call into one entry.
fn merged(given: Vec<Answers>) -> Vec<Answers> {
    let mut whole: Vec<Answers> = Vec::with_capacity(given.len());
    let mut places: std::collections::HashMap<Uuid, usize> = std::collections::HashMap::new();
    for one in given {
        let place = *places.entry(one.id).or_insert_with(|| {
            whole.push(Answers {
                id: one.id,
                ..Answers::default()
            });
            whole.len() - 1
        });
        let all = &mut whole[place];
        all.first = all.first.take().or(one.first);
        all.outcome = all.outcome.take().or(one.outcome);
        all.settled = all.settled.take().or(one.settled);
        all.done |= one.done;
        all.revision = all.revision.max(one.revision);
    }
    whole
}

/// Parses the JSON of one answer; none if there is none.
pub(crate) fn read(text: Option<&str>) -> Option<Answer> {
    let text = text?;
    let answer = serde_json::from_str(text);
    Some(answer.unwrap_or(Answer::Refused(Refusal::NotUnderstood)))
}

#[cfg(test)]
mod tests {
    use watershed_core::{Batch, Edit, Key, NewResource, Uid, Update};

    use super::*;

    #[test]
    fn a_call_comes_back_from_its_text() {
        let updates = [None, Some(None), Some(Some(Uid(uuid::Uuid::from_u128(7))))].map(|owner| Update {
            spec: Some((Arc::from([0_u8, 255, 16]), 3)),
            owner,
            ..Update::default()
        });
        let mut edits = vec![Edit::create(NewResource::new(
            Uid(uuid::Uuid::from_u128(1)),
            "kind",
            "na\0me",
            vec![1, 2, 254],
        ))];
        edits.extend(updates.map(|update| Edit::update(Key::new("kind", "other"), update)));
        let call = Call::Apply(Batch { edits });
        let text = serde_json::to_string(&call).expect("it has a text");
        assert!(!text.contains('\0'), "which a database takes");
        let read: Call = serde_json::from_str(&text).expect("it is read");
        assert_eq!(serde_json::to_string(&read).ok(), Some(text));
        let (Call::Apply(read), Call::Apply(call)) = (read, call) else {
            panic!("it is another call");
        };
        assert_eq!(read, call);
    }
}
