//! A process that follows another one's commits, and leaves its calls for it.
//!
//! Invariants:
//! 1. A call is answered once: by the holder, or by us when its patience is over.
//! 2. Nothing is answered before this process sees the revision that the answer speaks of.
//! 3. At most [`OPEN_MAX`] calls are open; further ones wait in the inbox.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use uuid::Uuid;
use watershed_core::{
    Answer, Call, CallId, Gone, Publish, Refusal, Row, RunOutcome, Settled, Settlement, Standing, Status,
    StatusUpdate, Stored, Target, Uid,
};

use crate::event_loop::call::{Command, Reply};
use crate::cluster::call_server::read;
use crate::event_loop::host::{Inbox, changed};
use crate::event_loop::shared::Shared;
use crate::store::{Asked, Exchange, Given, Interest, Opened, StoreError, Wake};
use crate::tasks::OnlyWhileHeld;

/// Calls of one process that wait for answers: as many as a loop takes before it pushes back.
const OPEN_MAX: usize = 1_024;
/// How often the holder is reminded of calls that are open, and answers are looked for although none was announced.
const REMIND: Duration = Duration::from_secs(1);
/// How often commits are looked for although none was announced.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How often the holder is told that this process is still there.
const TOUCH: Duration = Duration::from_secs(60);
/// How long one look into the store may take.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// How following came to an end.
pub(crate) enum Followed {
    ShutDown,
    Won(Box<Opened>),
}

/// What is known of a call that was sent.
#[derive(Debug)]
struct Open {
    id: CallId,
    call: Call,
    reply: Reply,
    since: Instant,
    /// Whether it may be in the store.
    left: Left,
    /// The request stands, and its outcome is waited for.
    recorded: Option<Uid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    No,
    Perhaps,
    Yes,
}

impl Open {
    /// Whoever waits says for how long; the rest has a patience of its own.
    fn is_overdue(&self, patience: Duration) -> bool {
        let waits =
            self.recorded.is_some() || (matches!(self.call, Call::WaitUntilIdle) && self.left == Left::Yes);
        !waits && self.since.elapsed() >= patience
    }
}

/// One thing that happened.
enum Happened {
    ShutDown,
    Won(Option<Opened>),
    Forgotten(CallId),
    Command(Command),
    Woken,
    Time,
}

/// The side of a process without the lease.
pub(crate) struct Attached {
    shared: Arc<Shared>,
    exchange: Arc<dyn Exchange>,
    caller: Uuid,
    patience: Duration,
    open: HashMap<Uuid, Open>,
    ids: HashMap<CallId, Uuid>,
    /// In the order in which they came, and not in the store yet.
    to_leave: Vec<Uuid>,
    touched: Instant,
}

impl Attached {
    pub(crate) fn new(shared: Arc<Shared>, exchange: Arc<dyn Exchange>, patience: Duration) -> Self {
        Self {
            shared,
            exchange,
            caller: Uuid::now_v7(),
            patience,
            open: HashMap::new(),
            ids: HashMap::new(),
            to_leave: Vec::new(),
            touched: Instant::now(),
        }
    }

    /// Follows until the shutdown, or until the campaign is won.
    pub(crate) async fn follow(
        &mut self,
        inbox: &mut Inbox,
        mut campaign: Option<OnlyWhileHeld<Opened>>,
    ) -> Followed {
        let mut wake = self.exchange.follow(Interest::Answers(self.caller));
        let mut time = Instant::now();
        loop {
            let mut look = false;
            match self.next(inbox, campaign.as_mut(), wake.as_mut(), time).await {
                Happened::ShutDown => {
                    self.give_up().await;
                    return Followed::ShutDown;
                }
                Happened::Won(Some(opened)) => return Followed::Won(Box::new(opened)),
                Happened::Won(None) => campaign = None,
                Happened::Forgotten(call) => self.forget(call).await,
                Happened::Command(command) => {
                    self.take(command);
                    while self.open.len() < OPEN_MAX
                        && let Ok(command) = inbox.commands.try_recv()
                    {
                        self.take(command);
                    }
                }
                Happened::Woken => {
                    drain(wake.as_mut()).await;
                    look = true;
                }
                Happened::Time => {
                    self.remind().await;
                    look = true;
                }
            }
            self.leave().await;
            if look {
                self.look().await;
                self.expire().await;
                time = Instant::now() + if self.open.is_empty() { LOOK_AGAIN } else { REMIND };
            } else {
                time = time.min(Instant::now() + REMIND);
            }
        }
    }

    /// Waits for one thing; every arm is cancel-safe.
    async fn next(
        &self,
        inbox: &mut Inbox,
        campaign: Option<&mut OnlyWhileHeld<Opened>>,
        wake: &mut dyn Wake,
        time: Instant,
    ) -> Happened {
        let has_room = self.open.len() < OPEN_MAX;
        let Inbox {
            shutdown,
            forgotten,
            commands,
        } = inbox;
        tokio::select! {
            biased;
            _ = changed(shutdown) => Happened::ShutDown,
            won = async { match campaign {
                Some(campaign) => campaign.end().await,
                None => std::future::pending().await,
            } } => Happened::Won(won),
            Some(call) = forgotten.recv() => Happened::Forgotten(call),
            Some(command) = commands.recv(), if has_room => Happened::Command(command),
            () = wake.next() => Happened::Woken,
            () = sleep_until(time) => Happened::Time,
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
        if matches!(reply, Reply::Distant(_)) {
            return; // The present holder takes it from where it was taken.
        }
        let key = Uuid::now_v7();
        let open = Open {
            id,
            call,
            reply,
            since: sent,
            left: Left::No,
            recorded: None,
        };
        self.open.insert(key, open);
        self.ids.insert(id, key);
        self.to_leave.push(key);
    }

    /// Leaves calls for the holder. What fails is tried again: asking twice is asking once.
    async fn leave(&mut self) {
        let keys = self.to_leave.iter().filter(|key| self.open.contains_key(*key));
        let keys: Vec<Uuid> = keys.copied().collect();
        let text = |key: &Uuid| serde_json::to_string(&self.open.get(key)?.call).ok();
        let calls: Vec<Asked> = keys
            .iter()
            .filter_map(|key| {
                Some(Asked {
                    id: *key,
                    call: text(key)?,
                })
            })
            .collect();
        if calls.is_empty() {
            self.to_leave.clear();
            return;
        }
        let left = within_patience(self.exchange.ask(self.caller, &calls)).await;
        for key in &keys {
            if let Some(open) = self.open.get_mut(key) {
                open.left = if left.is_some() { Left::Yes } else { Left::Perhaps };
            }
        }
        self.to_leave = if left.is_some() { Vec::new() } else { keys };
    }

    /// Tells the holder, which may have missed it, that something is open, and that this process is there.
    async fn remind(&mut self) {
        if self.open.values().any(|open| open.left == Left::Yes) {
            within_patience(self.exchange.ask(self.caller, &[])).await;
        }
        if self.touched.elapsed() >= TOUCH
            && within_patience(self.exchange.touch(self.caller)).await.is_some()
        {
            self.touched = Instant::now();
        }
    }

    /// Takes up what was committed, and hands on what was answered before that.
    async fn look(&mut self) {
        let answers = if self.open.is_empty() {
            Some(Vec::new())
        } else {
            within_patience(self.exchange.answers(self.caller)).await
        };
        let from = self.shared.view.revision();
        match within_patience(self.exchange.later(from)).await {
            Some(Some(later)) => {
                let gone = later.gone.into_iter();
                let gone = gone.filter_map(|(uid, revision)| {
                    let key = self.shared.view.get(&Target::Uid(uid)).ok()?.key();
                    Some(Gone { uid, key, revision })
                });
                let publish = Publish {
                    revision: later.revision,
                    gone: gone.collect(),
                    statuses: later.rows.iter().map(|row| told_by(row)).collect(),
                    rows: later.rows,
                };
                if later.revision > from {
                    self.shared.publish(publish);
                }
            }
            Some(None) => {
                let Some((stored, _)) = within_patience(self.exchange.read()).await else {
                    return;
                };
                self.take_up(&stored);
            }
            None => return,
        }
        if let Some(answers) = answers {
            self.hand_on(answers).await;
        }
    }

    /// Shows a whole catalog as what has become of the one that readers know.
    pub(crate) fn take_up(&self, stored: &Stored) {
        let view = &self.shared.view;
        let known: HashSet<Uid> = stored.rows.iter().map(|entry| entry.row.uid).collect();
        let mut gone = Vec::new();
        view.each(|row, _, _| {
            if !known.contains(&row.uid) {
                gone.push(Gone {
                    uid: row.uid,
                    key: row.key(),
                    revision: stored.revision,
                });
            }
        });
        let changed = |row: &&Arc<Row>| {
            view.get(&Target::Uid(row.uid))
                .map_or(true, |seen| seen.revision != row.revision)
        };
        let rows = stored.rows.iter().map(|entry| &entry.row).filter(changed);
        let rows: Vec<Arc<Row>> = rows.cloned().collect();
        if rows.is_empty() && gone.is_empty() && stored.revision == view.revision() {
            return;
        }
        self.shared.publish(Publish {
            revision: stored.revision,
            gone,
            statuses: rows.iter().map(|row| told_by(row)).collect(),
            rows,
        });
    }

    /// Answers callers. What is answered for good is taken out of the store.
    async fn hand_on(&mut self, answers: Vec<Given>) {
        let seen = self.shared.view.revision();
        let present: HashSet<Uuid> = answers.iter().map(|given| given.id).collect();
        let lost: Vec<Uuid> = self
            .open
            .iter()
            .filter(|(key, open)| open.left == Left::Yes && !present.contains(*key))
            .map(|(key, _)| *key)
            .collect();
        for key in lost {
            self.close(key, Refusal::OutcomeUnknown);
        }
        let mut read_out = Vec::new();
        for given in answers.into_iter().filter(|given| given.revision <= seen) {
            if given.done {
                read_out.push(given.id);
            }
            self.answer(&given);
        }
        if !read_out.is_empty() {
            within_patience(self.exchange.forget(&read_out)).await;
        }
    }

    fn answer(&mut self, given: &Given) {
        let Some(open) = self.open.remove(&given.id) else {
            return;
        };
        let Open {
            id,
            call,
            reply,
            since,
            left,
            mut recorded,
        } = open;
        let mut rest = Some(reply);
        let parts = [&given.first, &given.outcome, &given.settled];
        for answer in parts.into_iter().filter_map(|part| read(part.as_deref())) {
            if let Answer::Recorded(uid) = answer {
                recorded = Some(uid);
            }
            rest = rest.and_then(|reply| reply.answer(answer, given.revision));
        }
        match rest {
            Some(reply) if !given.done => {
                let open = Open {
                    id,
                    call,
                    reply,
                    since,
                    left,
                    recorded,
                };
                self.open.insert(given.id, open);
            }
            rest => {
                self.ids.remove(&id);
                if let (Some(reply), Some(uid)) = (rest, recorded) {
                    let gone = Refusal::Unknown(uid.to_string());
                    reply.answer(Answer::Refused(gone), given.revision);
                }
            }
        }
    }

    /// Ends the wait for an answer with a refusal of our own.
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

    /// Nobody waits for the answers to this call any more.
    async fn forget(&mut self, call: CallId) {
        let Some(key) = self.ids.remove(&call) else { return };
        if self.open.remove(&key).is_some() {
            within_patience(self.exchange.forget(&[key])).await;
        }
    }

    /// Takes back what no holder took in time; of what one took, nobody here knows the outcome.
    async fn expire(&mut self) {
        let overdue = self
            .open
            .iter()
            .filter(|(_, open)| open.is_overdue(self.patience));
        let overdue: Vec<Uuid> = overdue.map(|(key, _)| *key).collect();
        self.take_back(overdue, Refusal::Unattended).await;
    }

    async fn take_back(&mut self, keys: Vec<Uuid>, refusal: Refusal) {
        if keys.is_empty() {
            return;
        }
        let withdrawn = within_patience(self.exchange.withdraw(&keys))
            .await
            .unwrap_or_default();
        for key in keys {
            let never_left = self.open.get(&key).is_some_and(|open| open.left == Left::No);
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

    async fn give_up(&mut self) {
        self.look().await;
        let keys: Vec<Uuid> = self.open.keys().copied().collect();
        let recorded = self.open.iter().filter(|(_, open)| open.recorded.is_some());
        let recorded: Vec<Uuid> = recorded.map(|(key, _)| *key).collect();
        self.take_back(keys, Refusal::ShuttingDown).await;
        if !recorded.is_empty() {
            within_patience(self.exchange.forget(&recorded)).await;
        }
    }

    /// This process holds the instance now: what an earlier holder left unanswered was not carried out, and is taken
    /// from the store to be done here.
    pub(crate) async fn reclaim(&mut self) -> Vec<Command> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let answers = within_patience(self.exchange.answers(self.caller)).await;
        let is_known = answers.is_some();
        self.hand_on(answers.unwrap_or_default()).await;
        let mut left: Vec<(Uuid, Open)> = self.open.drain().collect();
        left.sort_by_key(|(key, _)| *key);
        self.ids.clear();
        let keys: Vec<Uuid> = left.iter().map(|(key, _)| *key).collect();
        let is_ours = is_known && within_patience(self.exchange.forget(&keys)).await.is_some();
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
                call: match (open.recorded, open.call) {
                    (Some(uid), Call::ReconcileOnce(_)) => Call::ReconcileOnce(Target::Uid(uid)),
                    (Some(uid), _) => Call::Reconcile(Target::Uid(uid)),
                    (None, call) => call,
                },
                reply: open.reply,
                sent: Instant::now(),
            });
        }
        commands
    }
}

/// How a resource stands as far as its row tells.
pub(crate) fn told_by(row: &Row) -> StatusUpdate {
    let settled = if row.error.is_some() {
        Settled::Failed
    } else {
        Settled::Idle
    };
    StatusUpdate {
        uid: row.uid,
        status: Status {
            standing: Standing::Settled(settled),
            reason: None,
            progress: None,
        },
        no_op: None,
    }
}

/// What the store answers, if it does so in time. What fails is looked at again by and by.
async fn within_patience<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
    match timeout(STORE_PATIENCE, answer).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the store of a shared instance failed");
            None
        }
        Err(_) => None,
    }
}

/// Many things that have happened are one reason to look.
async fn drain(wake: &mut dyn Wake) {
    loop {
        tokio::select! {
            biased;
            () = wake.next() => {}
            () = std::future::ready(()) => return,
        }
    }
}
