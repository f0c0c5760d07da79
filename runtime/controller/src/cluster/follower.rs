//! A follower: applies the leader's commits to its view, and submits calls to the leader through the store.
//!
//! Invariants:
//! 1. A call is answered once: by the leader, or here when its timeout is over.
//! 2. Nothing is answered before this process sees the revision that the answer speaks of.
//! 3. At most [`OPEN_MAX`] calls are open; further ones wait in the inbox.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use watershed_core::{
    Answer, Call, CallId, Publish, Refusal, Removed, Row, RunOutcome, Settled, Settlement, Stage, Status,
    StatusUpdate, Stored, Target, Uid,
};

use crate::cluster::call_server::{read, recorded_as};
use crate::inbox::call::{Command, Inbox, Reply, changed};
use crate::inbox::shared::Shared;
use crate::store::{Answers, Exchange, Interest, Opened, RemoteCall, StoreError, Wake};
use crate::tasks::AbortOnDrop;

/// Maximum number of open calls of one process: as many as a loop queues before it pushes back.
const OPEN_MAX: usize = 1_024;
/// Interval at which the leader is reminded of open calls and the store is polled for answers, in case a notification
/// was lost.
const REMIND: Duration = Duration::from_secs(1);
/// Interval at which the store is polled for commits, in case a notification was lost.
const POLL: Duration = Duration::from_secs(10);
/// Interval at which a process tells the store that it is alive.
const TOUCH: Duration = Duration::from_secs(60);
/// Time limit of one read of the store, after which the next poll tries again.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reasons why following ends: a shutdown, or the lease was won.
pub(crate) enum FollowEnd {
    ShutDown,
    Won(Box<Opened>),
}

/// A call that was submitted and waits for answers.
#[derive(Debug)]
struct PendingCall {
    id: CallId,
    call: Call,
    reply: Reply,
    since: Instant,
    in_store: InStore,
    /// First answer, if the request is recorded and its outcome is still awaited.
    recorded: Option<Answer>,
}

/// Tells whether a call has reached the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InStore {
    No,
    Maybe,
    Yes,
}

impl PendingCall {
    /// Returns true if the call has waited for longer than the timeout. Calls that only wait are never overdue.
    fn is_overdue(&self, call_timeout: Duration) -> bool {
        let waits = self.recorded.is_some()
            || (matches!(self.call, Call::WaitUntilIdle) && self.in_store == InStore::Yes);
        !waits && self.since.elapsed() >= call_timeout
    }
}

/// An event for the follower's loop.
enum Event {
    ShutDown,
    Won(Option<Opened>),
    Forgotten(CallId),
    Command(Command),
    Woken,
    Time,
}

/// State of a process that does not hold the lease.
pub(crate) struct Follower {
    shared: Arc<Shared>,
    exchange: Arc<dyn Exchange>,
    caller: Uuid,
    call_timeout: Duration,
    open: HashMap<Uuid, PendingCall>,
    ids: HashMap<CallId, Uuid>,
    /// Calls that are not in the store yet, in order of arrival.
    to_store: Vec<Uuid>,
    touched: Instant,
}

impl Follower {
    pub(crate) fn new(shared: Arc<Shared>, exchange: Arc<dyn Exchange>, call_timeout: Duration) -> Self {
        Self {
            shared,
            exchange,
            caller: Uuid::now_v7(),
            call_timeout,
            open: HashMap::new(),
            ids: HashMap::new(),
            to_store: Vec::new(),
            touched: Instant::now(),
        }
    }

    /// Follows the leader until a shutdown, or until the lease is won.
    pub(crate) async fn follow(
        &mut self,
        inbox: &mut Inbox,
        mut campaign: Option<AbortOnDrop<Opened>>,
    ) -> FollowEnd {
        let mut wake = self.exchange.follow(Interest::Answers(self.caller));
        let mut time = Instant::now();
        loop {
            let mut catch_up = false;
            match self.next(inbox, campaign.as_mut(), wake.as_mut(), time).await {
                Event::ShutDown => {
                    self.withdraw_all().await;
                    return FollowEnd::ShutDown;
                }
                Event::Won(Some(opened)) => return FollowEnd::Won(Box::new(opened)),
                Event::Won(None) => campaign = None,
                Event::Forgotten(call) => self.forget(call).await,
                Event::Command(command) => {
                    self.take(command);
                    while self.open.len() < OPEN_MAX
                        && let Ok(command) = inbox.commands.try_recv()
                    {
                        self.take(command);
                    }
                }
                Event::Woken => {
                    drain(wake.as_mut()).await;
                    catch_up = true;
                }
                Event::Time => {
                    self.remind().await;
                    catch_up = true;
                }
            }
            self.store_calls().await;
            if catch_up {
                self.catch_up().await;
                self.expire().await;
                time = Instant::now() + if self.open.is_empty() { POLL } else { REMIND };
            } else {
                time = time.min(Instant::now() + REMIND);
            }
        }
    }

    /// Waits for the next event. Cancel-safe.
    async fn next(
        &self,
        inbox: &mut Inbox,
        campaign: Option<&mut AbortOnDrop<Opened>>,
        wake: &mut dyn Wake,
        time: Instant,
    ) -> Event {
        let has_room = self.open.len() < OPEN_MAX;
        let Inbox {
            shutdown,
            forgotten,
            commands,
        } = inbox;
        tokio::select! {
            biased;
            _ = changed(shutdown) => Event::ShutDown,
            won = async { match campaign {
                Some(campaign) => campaign.end().await,
                None => std::future::pending().await,
            } } => Event::Won(won),
            Some(call) = forgotten.recv() => Event::Forgotten(call),
            Some(command) = commands.recv(), if has_room => Event::Command(command),
            () = wake.next() => Event::Woken,
            () = sleep_until(time) => Event::Time,
        }
    }

    fn take(&mut self, command: Command) {
        let Command {
            id,
            by,
            call,
            reply,
            sent,
        } = command;
        if by.is_some() {
            // It ran when this process held the instance.
            reply.answer(
                Answer::Refused(Refusal::InvocationCancelled),
                self.shared.view.revision(),
            );
            return;
        }
        if matches!(reply, Reply::Remote(_)) {
            return; // The present holder takes it from where it was taken.
        }
        let key = Uuid::now_v7();
        let open = PendingCall {
            id,
            call,
            reply,
            since: sent,
            in_store: InStore::No,
            recorded: None,
        };
        self.open.insert(key, open);
        self.ids.insert(id, key);
        self.to_store.push(key);
    }

    /// Submits calls to the store. A failure is retried, because submitting a call twice counts once.
    async fn store_calls(&mut self) {
        let keys = self.to_store.iter().filter(|key| self.open.contains_key(*key));
        let keys: Vec<Uuid> = keys.copied().collect();
        let text = |key: &Uuid| serde_json::to_string(&self.open.get(key)?.call).ok();
        let calls: Vec<RemoteCall> = keys
            .iter()
            .filter_map(|key| {
                Some(RemoteCall {
                    id: *key,
                    call: text(key)?,
                })
            })
            .collect();
        if calls.is_empty() {
            self.to_store.clear();
            return;
        }
        let left = within_timeout(self.exchange.submit(self.caller, &calls)).await;
        for key in &keys {
            if let Some(open) = self.open.get_mut(key) {
                open.in_store = if left.is_some() {
                    InStore::Yes
                } else {
                    InStore::Maybe
                };
            }
        }
        self.to_store = if left.is_some() { Vec::new() } else { keys };
    }

    /// Wakes the leader, which may have missed a call, and tells the store that this process is alive.
    async fn remind(&mut self) {
        if self.open.values().any(|open| open.in_store == InStore::Yes) {
            within_timeout(self.exchange.submit(self.caller, &[])).await;
        }
        if self.touched.elapsed() >= TOUCH && within_timeout(self.exchange.touch(self.caller)).await.is_some()
        {
            self.touched = Instant::now();
        }
    }

    /// Applies new commits to the view, then delivers the answers that they make valid.
    async fn catch_up(&mut self) {
        let answers = if self.open.is_empty() {
            Some(Vec::new())
        } else {
            within_timeout(self.exchange.answers(self.caller)).await
        };
        let from = self.shared.view.revision();
        match within_timeout(self.exchange.later(from)).await {
            Some(Some(later)) => {
                let removed = later.removed.into_iter();
                let removed = removed.filter_map(|(uid, revision)| {
                    let key = self.shared.view.get(&Target::Uid(uid)).ok()?.key();
                    Some(Removed { uid, key, revision })
                });
                let publish = Publish {
                    revision: later.revision,
                    removed: removed.collect(),
                    statuses: later.rows.iter().map(|row| status_from_row(row)).collect(),
                    rows: later.rows,
                };
                if later.revision > from {
                    self.shared.publish(publish);
                }
            }
            Some(None) => {
                let Some((stored, _)) = within_timeout(self.exchange.read()).await else {
                    return;
                };
                self.adopt(&stored);
            }
            None => return,
        }
        if let Some(answers) = answers {
            self.deliver(answers).await;
        }
    }

    /// Publishes the difference between a newly read catalog and the view.
    pub(crate) fn adopt(&self, stored: &Stored) {
        let view = &self.shared.view;
        let known: HashSet<Uid> = stored.rows.iter().map(|entry| entry.row.uid).collect();
        let mut removed = Vec::new();
        view.each(|row, _, _| {
            if !known.contains(&row.uid) {
                removed.push(Removed {
                    uid: row.uid,
                    key: row.key(),
                    revision: stored.revision,
                });
            }
        });
        let changed = |row: &&Arc<Row>| {
            view.get(&Target::Uid(row.uid))
                .map_or(true, |seen| seen.row.revision != row.revision)
        };
        let rows = stored.rows.iter().map(|entry| &entry.row).filter(changed);
        let rows: Vec<Arc<Row>> = rows.cloned().collect();
        if rows.is_empty() && removed.is_empty() && stored.revision == view.revision() {
            return;
        }
        self.shared.publish(Publish {
            revision: stored.revision,
            removed,
            statuses: rows.iter().map(|row| status_from_row(row)).collect(),
            rows,
        });
    }

    /// Answers callers, and removes calls from the store after their last answer.
    async fn deliver(&mut self, answers: Vec<Answers>) {
        let seen = self.shared.view.revision();
        let present: HashSet<Uuid> = answers.iter().map(|given| given.id).collect();
        let lost: Vec<Uuid> = self
            .open
            .iter()
            .filter(|(key, open)| open.in_store == InStore::Yes && !present.contains(*key))
            .map(|(key, _)| *key)
            .collect();
        for key in lost {
            self.close(key, Refusal::OutcomeUnknown);
        }
        let mut delivered = Vec::new();
        for given in answers.into_iter().filter(|given| given.revision <= seen) {
            if given.done {
                delivered.push(given.id);
            }
            self.answer(&given);
        }
        if !delivered.is_empty() {
            within_timeout(self.exchange.forget(&delivered)).await;
        }
    }

    fn answer(&mut self, given: &Answers) {
        let Some(open) = self.open.remove(&given.id) else {
            return;
        };
        let PendingCall {
            id,
            call,
            reply,
            since,
            in_store,
            mut recorded,
        } = open;
        let mut rest = Some(reply);
        let parts = [&given.first, &given.outcome, &given.settled];
        for answer in parts.into_iter().filter_map(|part| read(part.as_deref())) {
            if let Answer::Recorded(_) | Answer::Applied(_) = answer {
                recorded = Some(answer.clone());
            }
            rest = rest.and_then(|reply| reply.answer(answer, given.revision));
        }
        match rest {
            Some(reply) if !given.done => {
                let open = PendingCall {
                    id,
                    call,
                    reply,
                    since,
                    in_store,
                    recorded,
                };
                self.open.insert(given.id, open);
            }
            rest => {
                self.ids.remove(&id);
                if let (Some(reply), Some(_)) = (rest, recorded) {
                    let removed = Refusal::Unknown(given.id.to_string());
                    reply.answer(Answer::Refused(removed), given.revision);
                }
            }
        }
    }

    /// Ends a call with a refusal by this process.
    fn close(&mut self, key: Uuid, refusal: Refusal) {
        let Some(open) = self.open.remove(&key) else {
            return;
        };
        self.ids.remove(&open.id);
        let revision = self.shared.view.revision();
        if open.recorded.is_none() {
            open.reply.answer(Answer::Refused(refusal), revision);
        } else if refusal == Refusal::ShuttingDown {
            let rest = open.reply.answer(Answer::Outcome(RunOutcome::ShutDown), revision);
            rest.and_then(|rest| rest.answer(Answer::Settled(Settlement::ShutDown), revision));
        }
    }

    /// Forgets a call whose caller is gone, also in the store.
    async fn forget(&mut self, call: CallId) {
        let Some(key) = self.ids.remove(&call) else { return };
        if self.open.remove(&key).is_some() {
            within_timeout(self.exchange.forget(&[key])).await;
        }
    }

    /// Withdraws overdue calls that no leader has claimed; the outcome of claimed ones is unknown.
    async fn expire(&mut self) {
        let overdue = self
            .open
            .iter()
            .filter(|(_, open)| open.is_overdue(self.call_timeout));
        let overdue: Vec<Uuid> = overdue.map(|(key, _)| *key).collect();
        self.take_back(overdue, Refusal::Unattended).await;
    }

    async fn take_back(&mut self, keys: Vec<Uuid>, refusal: Refusal) {
        if keys.is_empty() {
            return;
        }
        let withdrawn = within_timeout(self.exchange.withdraw(&keys))
            .await
            .unwrap_or_default();
        for key in keys {
            let never_left = self
                .open
                .get(&key)
                .is_some_and(|open| open.in_store == InStore::No);
            let recorded = self.open.get(&key).is_some_and(|open| open.recorded.is_some());
            let is_certain = never_left || recorded || withdrawn.contains(&key);
            let refusal = if is_certain {
                refusal.clone()
            } else {
                Refusal::OutcomeUnknown
            };
            self.close(key, refusal);
        }
    }

    async fn withdraw_all(&mut self) {
        self.catch_up().await;
        let keys: Vec<Uuid> = self.open.keys().copied().collect();
        let recorded = self.open.iter().filter(|(_, open)| open.recorded.is_some());
        let recorded: Vec<Uuid> = recorded.map(|(key, _)| *key).collect();
        self.take_back(keys, Refusal::ShuttingDown).await;
        if !recorded.is_empty() {
            within_timeout(self.exchange.forget(&recorded)).await;
        }
    }

    /// Takes the unanswered calls back from the store when this process has become the leader, to carry them out here.
    pub(crate) async fn reclaim(&mut self) -> Vec<Command> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let answers = within_timeout(self.exchange.answers(self.caller)).await;
        let is_known = answers.is_some();
        self.deliver(answers.unwrap_or_default()).await;
        let mut left: Vec<(Uuid, PendingCall)> = self.open.drain().collect();
        left.sort_by_key(|(key, _)| *key);
        self.ids.clear();
        let keys: Vec<Uuid> = left.iter().map(|(key, _)| *key).collect();
        let is_ours = is_known && within_timeout(self.exchange.forget(&keys)).await.is_some();
        let mut commands = Vec::new();
        for (_, open) in left {
            if !is_ours {
                let unknown = Answer::Refused(Refusal::OutcomeUnknown);
                open.reply.answer(unknown, self.shared.view.revision());
                continue;
            }
            commands.push(Command {
                id: open.id,
                by: None,
                call: recorded_as(open.recorded, open.call),
                reply: open.reply,
                sent: Instant::now(),
            });
        }
        commands
    }
}

/// Derives a status from a row, as far as the row shows it.
pub(crate) fn status_from_row(row: &Row) -> StatusUpdate {
    let settled = if row.error.is_some() {
        Settled::Failed
    } else {
        Settled::Idle
    };
    StatusUpdate {
        uid: row.uid,
        status: Status {
            stage: Stage::Settled(settled),
            reason: None,
            progress: None,
        },
        no_op: None,
    }
}

/// Returns the store's answer, or none if it fails or comes too late. The next poll tries again.
async fn within_timeout<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
    match timeout(STORE_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the store of a shared instance failed");
            None
        }
        Err(_) => None,
    }
}

/// Takes all pending wake-ups, which together cause only one catch-up.
async fn drain(wake: &mut dyn Wake) {
    loop {
        tokio::select! {
            biased;
            () = wake.next() => {}
            () = std::future::ready(()) => return,
        }
    }
}
