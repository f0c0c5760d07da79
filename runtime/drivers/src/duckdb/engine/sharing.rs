//! The file shared with other programs.
//!
//! The engine locks its file for as long as it has it open, so one process alone writes to it, and no other reads it
//! meanwhile. The file is waited for while another process has it open, and given up while nobody works in it.
//!
//! Invariants:
//! 1. The file is given up with the gate held whole and no name claimed: no transaction is open then, and all that was
//!    committed stands in the file or its log.
//! 2. The proof of how it was left is taken before the lock is let go, and compared after the lock is taken again. So
//!    every change by another process is noticed at the latest when the file is opened, before any work in it.
//! 3. Such a change is counted before the work that noticed it begins: whoever asks for the count afterwards knows.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned;

use super::super::proof::FileProof;
use super::{Engine, on_blocking_thread};
use crate::crash;
use crate::olap::{Access, Failure, OpenError};

/// The first and the longest pause between two tries to open a file that another process has open. A try costs a few
/// system calls, and a person's program lets go of a file within seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The longest time that a reader waits for the file where work may wait longer: a person sits before it.
const READERS_PATIENCE: Duration = Duration::from_secs(10);

/// The state of the file between this process and others.
#[derive(Debug)]
pub(in crate::duckdb) struct Sharing {
    held: Held,
    last_used: Instant,
    /// The end and the length of the wait that was given up last: what comes right after it does not wait anew.
    given_up_wait: Option<(Instant, Duration)>,
    changes: watch::Sender<u64>,
    /// The number of those who wait, and whom they wait for.
    waiting: usize,
    holder: watch::Sender<Option<String>>,
}

/// The holder of the file, as far as this process knows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Held {
    /// This process, or nobody since this process closed the file for a moment with its gate closed.
    Here,
    /// Anybody: the file was like this when this process held it last, or looked at it first. None: there was none.
    Anywhere(Option<FileProof>),
    /// Anybody, and it could not be looked at.
    Unseen,
}

impl Held {
    fn seen(options: &super::super::Options) -> Self {
        FileProof::read(&options.path).map_or(Self::Unseen, Self::Anywhere)
    }
}

impl Sharing {
    /// Looks at a file that this process has not opened yet.
    pub(in crate::duckdb) fn from_options(options: &super::super::Options) -> Self {
        Self {
            held: Held::seen(options),
            last_used: Instant::now(),
            given_up_wait: None,
            changes: watch::Sender::new(0),
            waiting: 0,
            holder: watch::Sender::new(None),
        }
    }

    fn count_change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// An opening under way: what the file was like before.
pub(in crate::duckdb) struct Opening {
    before: Held,
    now: Held,
}

impl Engine {
    /// Opens the file, waiting for another process that has it open for as long as the options allow.
    ///
    /// # Errors
    /// [`Failure::Open`]; the file is left as it was. [`Failure::Interrupted`] when the token is cancelled first.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file open or unopened, to be opened by the next work.
    pub async fn open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        self.open_within(self.options().patience, cancel).await
    }

    /// As [`open`](Self::open), for somebody who waits for the answer.
    pub(in crate::duckdb) async fn open_for_reader(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        let patience = self.options().patience;
        let patience = match self.options().access {
            // Nothing but readers: the options are theirs.
            Access::ReadOnly => patience,
            Access::ReadWrite => patience.min(READERS_PATIENCE),
        };
        self.open_within(patience, cancel).await
    }

    async fn open_within(&self, patience: Duration, cancel: &CancellationToken) -> Result<(), Failure> {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut waiting = None;
        loop {
            if self.is_open() {
                return Ok(());
            }
            let locked = match self.try_to_open(cancel).await {
                Err(Failure::Open(locked @ OpenError::Locked { .. })) => locked,
                opened => return opened,
            };
            if began.elapsed() >= patience || self.has_waited(patience) {
                self.sharing().given_up_wait = Some((Instant::now(), patience));
                return Err(Failure::Open(locked));
            }
            waiting.get_or_insert_with(|| Waiting::begin(self)).name(&locked);
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Failure::Interrupted),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    /// Opens the file if no other process has it open.
    ///
    /// # Errors
    /// [`Failure::Open`]; the file is left as it was.
    ///
    /// # Cancel safety
    /// As [`open`](Self::open).
    pub async fn open_now(&self) -> Result<(), Failure> {
        self.try_to_open(&CancellationToken::new()).await
    }

    async fn try_to_open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        // Work alone in the engine may have closed the file for a moment.
        let pass = self.enter(cancel, super::Company::Others).await?;
        let engine = self.clone();
        on_blocking_thread(move || {
            let _pass = pass;
            engine.checkout().map(|connection| engine.check_in(connection))
        })
        .await?
    }

    /// Closes the file if nobody works in it at this moment, so that other programs can open it; the next work opens it
    /// anew. Returns whether it is closed.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the file open, or closing by itself.
    pub async fn give_up_file(&self) -> bool {
        if !self.is_open() {
            return true;
        }
        let Some(pass) = self.enter_alone_now() else {
            return false;
        };
        if self.names().has_claims() {
            return false;
        }
        let engine = self.clone();
        let closing = on_blocking_thread(move || {
            let _pass = pass;
            engine.let_go_of_file();
        });
        closing.await.is_ok()
    }

    /// Gives the file up each time that nobody has worked in it for `rest`, and costs nothing while it is closed. Does
    /// not return.
    pub async fn share_file(&self, rest: Duration) {
        loop {
            let opened = self.openings().notified();
            tokio::pin!(opened);
            // Before looking, so that no opening is missed in between.
            opened.as_mut().enable();
            if !self.is_open() {
                opened.await;
            }
            let idle = self.sharing().last_used.elapsed();
            match rest.checked_sub(idle) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                _ if self.give_up_file().await => {}
                _ => tokio::time::sleep(rest).await,
            }
        }
    }

    /// Returns how often the file was found changed by another process while this one did not hold it. A closed file is
    /// looked at, which costs two system calls.
    pub fn changes_by_others(&self) -> u64 {
        let mut sharing = self.sharing();
        if matches!(sharing.held, Held::Anywhere(_) | Held::Unseen) {
            let now = Held::seen(self.options());
            if now != sharing.held || now == Held::Unseen {
                sharing.held = now;
                sharing.count_change();
            }
        }
        *sharing.changes.borrow()
    }

    /// Follows the count of [`changes_by_others`](Self::changes_by_others), as it stands whenever the file is opened or
    /// the count is asked for.
    pub fn watch_changes_by_others(&self) -> watch::Receiver<u64> {
        self.sharing().changes.subscribe()
    }

    /// Follows whom work waits for to close the file; none while nothing waits.
    pub fn watch_holder(&self) -> watch::Receiver<Option<String>> {
        self.sharing().holder.subscribe()
    }

    /// Takes note of work in the file.
    pub(in crate::duckdb) fn note_use(&self) {
        self.sharing().last_used = Instant::now();
    }

    /// The file is about to be opened.
    pub(in crate::duckdb) fn begin_opening(&self) -> Opening {
        let mut sharing = self.sharing();
        let now = Held::seen(self.options());
        let before = std::mem::replace(&mut sharing.held, Held::Here);
        Opening { before, now }
    }

    /// The file could not be opened.
    pub(in crate::duckdb) fn end_opening_in_vain(&self, opening: Opening) {
        self.sharing().held = opening.before;
    }

    /// The file is open, and nothing was written to it yet.
    pub(in crate::duckdb) fn end_opening(&self, opening: Opening) {
        let Opening { before, now } = opening;
        let opened = Held::seen(self.options());
        // A file is made, and a log is replayed, by the opening itself: there the look just before has to do.
        let is_changed_by_opening = match &now {
            Held::Anywhere(None) => true,
            Held::Anywhere(Some(proof)) => proof.wal.is_some(),
            Held::Here | Held::Unseen => false,
        };
        let is_as_left = before == now && (now == opened || is_changed_by_opening);
        let mut sharing = self.sharing();
        sharing.given_up_wait = None;
        if before != Held::Here && !is_as_left {
            sharing.count_change();
        }
    }

    /// The file was opened and is closed again, because it could not be read: it is left as it is now.
    pub(in crate::duckdb) fn end_reading_in_vain(&self) {
        let seen = Held::seen(self.options());
        self.sharing().held = seen;
    }

    /// The proof of how this process left a file that it does not hold: what happened to it since is not in it. None
    /// while the file is held.
    pub(in crate::duckdb) fn left_as(&self) -> Option<Option<FileProof>> {
        match &self.sharing().held {
            Held::Anywhere(left) => Some(left.clone()),
            Held::Here | Held::Unseen => None,
        }
    }

    /// Closes the file to others' use. The gate is held whole.
    fn let_go_of_file(&self) {
        crash::point("drivers::give_up::before");
        let proof = self.forget_file_and(|engine| FileProof::read(&engine.options().path));
        self.sharing().held = match proof {
            Some(Ok(left)) => Held::Anywhere(left),
            Some(Err(_)) => Held::Unseen,
            // It was closed already.
            None => return,
        };
        crash::point("drivers::give_up::after");
    }

    /// Returns whether a wait as long was given up just now: work beside it is not to wait as long again.
    fn has_waited(&self, patience: Duration) -> bool {
        let given_up = self.sharing().given_up_wait;
        given_up.is_some_and(|(at, waited)| waited >= patience && at.elapsed() < LONGEST_PAUSE)
    }

    fn sharing(&self) -> MutexGuard<'_, Sharing> {
        self.sharing_lock().lock().unpoisoned()
    }
}

/// One that waits for the file, for as long as it does.
struct Waiting<'a>(&'a Engine);

impl<'a> Waiting<'a> {
    fn begin(engine: &'a Engine) -> Self {
        engine.sharing().waiting += 1;
        Self(engine)
    }

    /// Tells whom it waits for.
    fn name(&self, locked: &OpenError) {
        let holder = Some(locked.holder());
        self.0.sharing().holder.send_if_modified(|told| {
            let is_news = *told != holder;
            if is_news {
                tracing::info!("waiting until {} closes the engine's file", locked.holder());
                *told = holder;
            }
            is_news
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut sharing = self.0.sharing();
        sharing.waiting -= 1;
        if sharing.waiting == 0 {
            sharing.holder.send_replace(None);
        }
    }
}
