//! A process of a play: a real controller over a store in memory, which can die.

use std::sync::Arc;
use std::time::Duration;

use watershed_core::{Commit, CommitError, HistoryRow, KindOptions, Revision, Stored, Uid};

use crate::given::Givens;
use crate::probe::{Control, Probed, Pulse};
use watershed_controller::Builder;
use watershed_controller::Controller;
use watershed_controller::Reconciler;
use watershed_controller::StartError;
use watershed_controller::clock::TokioClock;
use watershed_controller::store::{BoxFuture, Catalog, MemoryStore, Opened, Store, StoreError};

/// Number of turns in which a stopped process can drop its invocations.
const TURNS: usize = 64;

/// A controller with its life signs.
pub(super) struct Process {
    pub(super) controller: Controller,
    pub(super) pulse: Arc<Pulse>,
}

/// The set-up that all processes of a play share.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) store: &'a MemoryStore,
    pub(super) clock: TokioClock,
    pub(super) options: &'a KindOptions,
    pub(super) givens: &'a [Givens],
    pub(super) beside: &'a dyn Fn(Builder) -> Builder,
    pub(super) control: &'a Arc<Control>,
    pub(super) cancel_within: Duration,
}

impl Process {
    pub(super) async fn start<R: Reconciler>(
        setting: Setting<'_>,
        reconciler: R,
    ) -> Result<Self, StartError> {
        let pulse = Arc::new(Pulse::default());
        let store = Mortal {
            store: setting.store.clone(),
            pulse: Arc::clone(&pulse),
            control: Arc::clone(setting.control),
        };
        let mut options = setting.options.clone();
        // Simulated time stands still while another thread works.
        options.blocking = false;
        let control = Arc::clone(setting.control);
        let probed = Probed::new(reconciler, control, Arc::clone(&pulse), setting.cancel_within);
        let mut builder = Controller::builder()
            .store(store)
            .clock(setting.clock)
            .kind(options, probed);
        for givens in setting.givens {
            builder = (givens.register)(builder);
        }
        builder = (setting.beside)(builder);
        Ok(Self {
            controller: builder.start().await?,
            pulse,
        })
    }

    /// Stops the controller without waiting for invocations, and returns once all of them were dropped.
    pub(super) async fn stop(self) {
        // How that went is seen in what it left.
        let _ = self.controller.shutdown(Duration::ZERO).await;
        for _ in 0..TURNS {
            if self.pulse.is_empty() {
                break;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Marks the process as dead, so that it continues and stores nothing, and stops it.
    pub(super) async fn bury(self) {
        self.pulse.die();
        self.stop().await;
    }
}

/// A store that dead processes can't reach.
#[derive(Debug)]
struct Mortal {
    store: MemoryStore,
    pulse: Arc<Pulse>,
    control: Arc<Control>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}

impl Store for Mortal {
    fn open<'a>(&'a self, instance: &'a str) -> BoxFuture<'a, Result<Opened, StoreError>> {
        Box::pin(async move {
            let opened = self.store.open(instance).await?;
            Ok(Opened {
                stored: opened.stored,
                catalog: Box::new(MortalCatalog {
                    catalog: opened.catalog,
                    pulse: Arc::clone(&self.pulse),
                    control: Arc::clone(&self.control),
                }),
            })
        })
    }
}

#[derive(Debug)]
struct MortalCatalog {
    catalog: Box<dyn Catalog>,
    pulse: Arc<Pulse>,
    control: Arc<Control>,
}

impl Catalog for MortalCatalog {
    fn commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<(), CommitError>> {
        Box::pin(async move {
            if !self.pulse.may_write() {
                return Err(CommitError::LeaseLost);
            }
            match self.control.dies_at_commit() {
                None => self.catalog.commit(commit).await,
                Some(is_durable) => {
                    if is_durable {
                        self.catalog.commit(commit).await?;
                    }
                    self.pulse.die();
                    self.control.happened.notify_one();
                    Err(CommitError::LeaseLost)
                }
            }
        })
    }

    fn read(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        self.catalog.read()
    }

    fn history<'a>(&'a self, uid: Uid, limit: u32) -> BoxFuture<'a, Result<Vec<HistoryRow>, StoreError>> {
        self.catalog.history(uid, limit)
    }

    fn recent(&self, limit: u32) -> BoxFuture<'_, Result<Vec<HistoryRow>, StoreError>> {
        self.catalog.recent(limit)
    }

    fn last_removal(&self) -> Option<Revision> {
        self.catalog.last_removal()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.catalog.close()
    }
}
