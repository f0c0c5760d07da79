//! State that handles and the event loop share.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::mpsc;
use watershed_core::{
    Answer, Batch, CallId, Change, Epoch, HistoryRow, Key, Kind, Publish, Refusal, StopReason, Stored,
    Target, Uid, Update,
};

use crate::inbox::call::{Command, Inbox};
use crate::metrics::Metrics;
use crate::read::view::View;
use crate::read::watch::ChangeLog;
use crate::store::{Catalog, Exchange, Lease, StoreError};
use crate::sync::{AtomicBool, AtomicU64, Notify, OnceLock, RwLock, Unpoisoned};
use crate::tasks::panics;
use crate::types::clock::Clock;
use crate::types::message::DecodeError;
use crate::types::observer::InvocationObserver;

/// A function that checks whether spec bytes of this format can be decoded.
pub(crate) type SpecCheck = fn(u32, &[u8]) -> Result<(), DecodeError>;

/// State that handles and the event loop share.
pub(crate) struct Shared {
    pub(crate) commands: mpsc::Sender<Command>,
    /// Sender of calls whose callers are gone.
    pub(crate) forgotten: mpsc::UnboundedSender<CallId>,
    pub(crate) view: View,
    pub(crate) changes: ChangeLog,
    pub(crate) metrics: Metrics,
    pub(crate) clock: Arc<dyn Clock>,
    /// The open catalog while this process leads, and the closed one afterwards; none before.
    pub(crate) catalog: RwLock<Option<Arc<dyn Catalog>>>,
    /// The store's exchange with other processes of the instance; none if the store is not shared.
    pub(crate) exchange: Option<Arc<dyn Exchange>>,
    /// True while this process leads the instance.
    pub(crate) holds: AtomicBool,
    /// Epoch under which this process leads, or last led; 0 before.
    pub(crate) epoch: AtomicU64,
    pub(crate) next_call: AtomicU64,
    /// Types of the registered reconcilers, each with its kind.
    pub(crate) kinds: Vec<(TypeId, Kind)>,
    /// Functions that check whether a spec can be decoded, by kind.
    pub(crate) specs: BTreeMap<Kind, SpecCheck>,
    /// Observer of invocations; none if there is no need.
    pub(crate) observer: Option<Arc<dyn InvocationObserver>>,
    /// Wakes the loop while this process leads.
    pub(crate) wake_up: Notify,
    /// Reason why the controller has stopped; unset while it runs.
    pub(crate) stopped: OnceLock<StopReason>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("catalog", &self.catalog)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn call_id(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    /// Refuses a batch with a spec that its kind can't read. Kinds that are not registered here are not checked.
    pub(crate) fn check_specs(&self, batch: &Batch) -> Result<(), Refusal> {
        batch.edits.iter().try_for_each(|edit| match &edit.change {
            Change::Create(new) | Change::Apply(new) => {
                self.check_spec(|| new.key(), &new.kind, (&new.spec, new.spec_format))
            }
            Change::Update(Update {
                spec: Some((spec, format)),
                ..
            }) => match (&edit.target, self.view.get(&edit.target)) {
                (Target::Key(key), _) => self.check_spec(|| key.clone(), &key.kind, (spec, *format)),
                (_, Ok(found)) => self.check_spec(|| found.row.key(), &found.row.kind, (spec, *format)),
                // The loop knows better whether it is there, and says so.
                (_, Err(_)) => Ok(()),
            },
            _ => Ok(()),
        })
    }

    fn check_spec(
        &self,
        key: impl FnOnce() -> Key,
        kind: &Kind,
        (spec, format): (&[u8], u32),
    ) -> Result<(), Refusal> {
        let Some(check) = self.specs.get(kind) else {
            return Ok(());
        };
        check(format, spec).map_err(|error| Refusal::UnreadableSpec {
            key: key(),
            message: error.to_string(),
        })
    }

    /// Publishes to readers first and then to watchers, so that a change reported to a watcher can be read.
    pub(crate) fn publish(&self, publish: Publish) {
        self.changes.announce(&publish);
        self.view.apply(&publish, self.clock.now().wall);
        self.changes.publish(publish);
    }

    /// Ends what handles wait for: refuses calls that were never taken, and ends watches.
    pub(crate) async fn stop(&self, reason: &StopReason, inbox: &mut Inbox) {
        let _ = self.stopped.set(reason.clone());
        let refusal = match reason {
            StopReason::LeaseLost => Refusal::LeaseLost,
            StopReason::Shutdown
            | StopReason::StoreFailed(_)
            | StopReason::StoreFull(_)
            | StopReason::RuntimeEnded
            | StopReason::Panicked => Refusal::ShuttingDown,
        };
        inbox.commands.close();
        while let Some(command) = inbox.commands.recv().await {
            let refused = Answer::Refused(refusal.clone());
            command.reply.answer(refused, self.view.revision());
        }
        self.changes.end();
    }

    /// Ends what handles wait for after the loop is gone without an orderly end. Calls already fail, because their
    /// receiver is gone.
    pub(crate) fn stop_without_loop(&self, reason: StopReason) {
        self.holds.store(false, Ordering::SeqCst);
        let _ = self.stopped.set(reason);
        // Nothing runs any more, whatever readers were told last. What the loop panicked at may panic here too.
        if let Err(message) = panics::caught(|| self.forget_standing()) {
            tracing::error!("the last standing of resources is shown on: {message}");
        }
        self.changes.end();
    }

    /// Tells the loop that no caller waits for a call any more. Without a loop nothing needs to be forgotten.
    pub(crate) fn forget(&self, call: CallId) {
        let _ = self.forgotten.send(call);
        self.wake();
    }

    /// Wakes the loop, which then takes everything sent before. During a turn, this causes another one.
    pub(crate) fn wake(&self) {
        self.wake_up.notify_one();
    }

    pub(crate) fn catalog(&self) -> Option<Arc<dyn Catalog>> {
        self.catalog.read().unpoisoned().clone()
    }

    #[must_use]
    pub(crate) fn opened(self: &Arc<Self>, catalog: Arc<dyn Catalog>, epoch: Epoch) -> OpenedCatalog {
        self.epoch.store(epoch.0, Ordering::SeqCst);
        *self.catalog.write().unpoisoned() = Some(catalog);
        self.holds.store(true, Ordering::SeqCst);
        OpenedCatalog {
            shared: Arc::clone(self),
            is_closed: false,
        }
    }

    /// Returns the lease while this process leads; none if the lease can't expire.
    pub(crate) fn lease(&self) -> Option<Lease> {
        let holds = self.holds.load(Ordering::SeqCst);
        self.catalog().filter(|_| holds)?.lease()
    }

    /// Reads the stored catalog if this process leads.
    pub(crate) async fn read(&self) -> Result<Option<Stored>, StoreError> {
        let holds = self.holds.load(Ordering::SeqCst);
        match self.catalog().filter(|_| holds) {
            Some(catalog) => Ok(Some(catalog.read().await?)),
            None => Ok(None),
        }
    }

    pub(crate) async fn history(&self, uid: Uid, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        match (&self.exchange, self.catalog()) {
            (_, Some(catalog)) => catalog.history(uid, limit).await,
            (Some(exchange), None) => exchange.history(uid, limit).await,
            (None, None) => Err(StoreError::Closed),
        }
    }

    pub(crate) async fn recent(&self, limit: u32) -> Result<Vec<HistoryRow>, StoreError> {
        match (&self.exchange, self.catalog()) {
            (_, Some(catalog)) => catalog.recent(limit).await,
            (Some(exchange), None) => exchange.recent(limit).await,
            (None, None) => Err(StoreError::Closed),
        }
    }
}

/// Guard that withdraws the catalog from handles if the loop ends without closing it, as when the runtime is dropped.
/// What the catalog holds, such as a file lock, is then released, however many handles remain.
#[derive(Debug)]
pub(crate) struct OpenedCatalog {
    shared: Arc<Shared>,
    pub(crate) is_closed: bool,
}

impl Drop for OpenedCatalog {
    fn drop(&mut self) {
        if !self.is_closed {
            self.shared.holds.store(false, Ordering::SeqCst);
            let mut held = self.shared.catalog.write().unpoisoned();
            let catalog = held.take();
            drop(held);
            drop(catalog);
        }
    }
}
