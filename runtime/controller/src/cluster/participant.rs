//! A participant of an instance, which leads under the lease or follows the leader.
//!
//! The handles are the same in both cases. What they ask for comes out of one inbox, which goes to the loop while this
//! process holds the instance, and to [`Follower`] while another one does.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tracing::{Instrument, Span};
use watershed_core::{Core, Error, Kind, KindOptions, Limits, OpenError, StopReason, Stored};

use crate::cluster::call_server::{self, CallServer};
use crate::cluster::follower::{FollowEnd, Follower, status_from_row};
use crate::cluster::lease_keeper;
use crate::event_loop::commit_delay::CommitDelay;
use crate::event_loop::committer;
use crate::event_loop::debounce::Debouncer;
use crate::event_loop::host::{Host, OnLeaseLost, Stop};
use crate::inbox::call::{self, Inbox, PendingCalls};
use crate::inbox::shared::Shared;
use crate::store::{Catalog, Opened, Store};
use crate::tasks::AbortOnDrop;
use crate::types::clock::Clock;
use crate::workers::Workers;
use crate::workers::invocation::{Runner, UNREADABLE};

/// Pause after a failed attempt to take the lease.
const CAMPAIGN_AGAIN: Duration = Duration::from_secs(1);

/// Everything that a process needs to lead or follow an instance, any number of times.
pub(crate) struct Participant {
    pub(crate) instance: Arc<str>,
    /// Store for further leases; none if processes don't share the instance. The open catalog then holds the last
    /// reference to the store, so that closing the catalog releases everything before the controller reports its end.
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) limits: Limits,
    pub(crate) kinds: Vec<KindOptions>,
    pub(crate) runners: Arc<BTreeMap<Kind, Arc<dyn Runner>>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) on_lease_lost: OnLeaseLost,
    pub(crate) role: Role,
    /// Time that a call may wait for a leader.
    pub(crate) call_timeout: Duration,
    pub(crate) span: Span,
}

/// Role of a process in an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A process that leads whenever it can take the lease.
    Candidate,
    /// A process that only follows.
    Follower,
}

/// Present state of a participant: leading or following.
pub(crate) enum Leadership {
    Leading(Box<Host>),
    Following(Inbox),
}

impl Participant {
    /// Leads and follows in turn until the controller stops.
    pub(crate) async fn serve(&self, mut seat: Leadership) -> Stop {
        loop {
            seat = match seat {
                Leadership::Leading(host) => {
                    let (stop, inbox) = host.run().await;
                    let goes_on =
                        stop.reason == StopReason::LeaseLost && self.on_lease_lost == OnLeaseLost::Campaign;
                    if !goes_on {
                        return stop;
                    }
                    Leadership::Following(inbox)
                }
                Leadership::Following(inbox) => match self.follow(inbox).await {
                    Ok(host) => Leadership::Leading(host),
                    Err(stop) => return stop,
                },
            };
        }
    }

    /// Follows the leader until this process has won the lease itself.
    async fn follow(&self, mut inbox: Inbox) -> Result<Box<Host>, Stop> {
        let (Some(exchange), Some(store)) = (&self.shared.exchange, &self.store) else {
            return Err(self.stopped(StopReason::LeaseLost, &mut inbox).await);
        };
        self.shared.forget_standing();
        let mut follower = Follower::new(Arc::clone(&self.shared), Arc::clone(exchange), self.call_timeout);
        let campaign = (self.role == Role::Candidate).then(|| self.campaign(Arc::clone(store)));
        match follower.follow(&mut inbox, campaign).await {
            FollowEnd::ShutDown => Err(self.stopped(StopReason::Shutdown, &mut inbox).await),
            FollowEnd::Won(opened) => {
                let Opened { stored, catalog } = *opened;
                follower.adopt(&stored);
                let calls = follower.reclaim().await;
                let catalog: Arc<dyn Catalog> = Arc::from(catalog);
                match self.host(stored, Arc::clone(&catalog), inbox) {
                    Ok(mut host) => {
                        host.begin(calls);
                        Ok(host)
                    }
                    Err((error, mut inbox)) => {
                        catalog.close().await;
                        let reason = StopReason::StoreFailed(error.to_string());
                        Err(self.stopped(reason, &mut inbox).await)
                    }
                }
            }
        }
    }

    async fn stopped(&self, reason: StopReason, inbox: &mut Inbox) -> Stop {
        self.shared.stop(&reason, inbox).await;
        Stop {
            reason,
            unreturned: Vec::new(),
        }
    }

    /// Takes the lease as soon as it is free.
    fn campaign(&self, store: Arc<dyn Store>) -> AbortOnDrop<Opened> {
        let instance = Arc::clone(&self.instance);
        AbortOnDrop::spawn(async move {
            loop {
                match store.open(&instance).await {
                    Ok(opened) => return opened,
                    Err(error) => {
                        tracing::debug!(%error, "the lease can't be taken and is tried again");
                        sleep(CAMPAIGN_AGAIN).await;
                    }
                }
            }
        })
    }

    /// Creates the loop for a catalog whose lease was taken. The caller must begin it.
    pub(crate) fn host(
        &self,
        mut stored: Stored,
        catalog: Arc<dyn Catalog>,
        inbox: Inbox,
    ) -> Result<Box<Host>, (OpenError, Inbox)> {
        judge_stored(&mut stored, &self.runners);
        let epoch = stored.epoch;
        let (limits, kinds) = (self.limits, self.kinds.clone());
        let (core, effects) = match Core::open(self.clock.now(), limits, kinds, stored) {
            Ok(opened) => opened,
            Err(error) => return Err((error, inbox)),
        };
        let opened = self.shared.opened(Arc::clone(&catalog), epoch);
        let (signals_out, signals) = call::signals();
        let (commits, commits_in) = mpsc::channel(1);
        let mut tasks = vec![self.spawn(committer::run(
            commits_in,
            signals_out.urgent.clone(),
            Arc::clone(&self.shared),
        ))];
        let lease = catalog.lease();
        if lease.is_some() {
            tasks.push(self.spawn(lease_keeper::keep(
                Arc::clone(&catalog),
                signals_out.urgent.clone(),
                Arc::clone(&self.shared),
            )));
        }
        if let Some(exchange) = &self.shared.exchange {
            let (out, answers) = mpsc::unbounded_channel();
            let server = CallServer {
                exchange: Arc::clone(exchange),
                epoch,
                shared: Arc::clone(&self.shared),
            };
            tasks.push(self.spawn(server.run(out)));
            tasks.push(self.spawn(call_server::write_answers(Arc::clone(exchange), epoch, answers)));
        }
        Ok(Box::new(Host {
            core,
            epoch,
            clock: Arc::clone(&self.clock),
            shared: Arc::clone(&self.shared),
            catalog,
            runners: Arc::clone(&self.runners),
            commits,
            committed: VecDeque::new(),
            commit_delay: CommitDelay::default(),
            inbox,
            signals,
            signals_out,
            on_lease_lost: self.on_lease_lost,
            calls: PendingCalls::default(),
            running: HashMap::default(),
            starting: Vec::new(),
            workers: Workers::spawn(Arc::clone(&self.shared), self.span.clone()),
            timer: None,
            debouncer: Debouncer::new(&self.kinds),
            stop: None,
            lease,
            tasks,
            effects,
            opened,
        }))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortOnDrop<()> {
        AbortOnDrop::spawn(future.instrument(self.span.clone()))
    }
}

impl Shared {
    /// Resets every status to what the row shows, since only the leader knows more.
    pub(crate) fn forget_standing(&self) {
        let mut statuses = Vec::new();
        self.view.each(|row, _, _| statuses.push(status_from_row(row)));
        self.publish(watershed_core::Publish {
            revision: self.view.revision(),
            statuses,
            ..watershed_core::Publish::default()
        });
    }
}

/// Marks the rows whose bytes can't be read here, and those that may rest. Known formats are read by their kinds.
fn judge_stored(stored: &mut Stored, runners: &BTreeMap<Kind, Arc<dyn Runner>>) {
    for entry in &mut stored.rows {
        let Some(runner) = runners.get(&entry.row.kind) else {
            continue;
        };
        if entry.unreadable.is_none() {
            match runner.check(&entry.row) {
                Ok(may_rest) => entry.may_rest = may_rest,
                Err(error) => entry.unreadable = Some(Error::permanent(UNREADABLE, error.to_string())),
            }
        }
    }
}
