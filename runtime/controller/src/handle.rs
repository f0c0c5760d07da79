//! The public interface of a running controller.

pub(crate) mod edit;
pub(crate) mod origin;
pub(crate) mod request;

use std::any::TypeId;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use watershed_core::{
    Answer, Applied, Batch, Call, CallId, Compared, Consistency, Edit, Epoch, Explanation, HistoryRow, Key,
    Kind, Name, NewResource, Refusal, Revision, StopReason, Target, Update,
};

use self::edit::{BatchRequest, EditRequest};
use crate::handle::request::{Forget, Promise, Request, Waits, within};
use crate::inbox::call::{Caller, Command, Reply, RequestReply};
use crate::inbox::shared::Shared;
use crate::metrics::stats::Stats;
use crate::read::watch::{Event, Watch};
use crate::store::Lease;
use crate::types::error::{CheckError, HistoryError, RequestError, WaitError};
use crate::types::message::Message;
use crate::types::resource::Resource;
use crate::types::select::Select;

/// A client of a running controller. Cheap to clone, and usable from any task.
///
/// **Writes** that returned are committed and visible to every later read in this process. Their futures may be
/// dropped: a call that was on its way is then carried out or not, as a whole.
///
/// **Reads** ([`get`](Self::get), [`list`](Self::list)) are of the committed catalog, take no lock that the
/// controller's loop holds while it works, and go on after it has stopped. One exception: a name without its kind that
/// is found in no kind, or in several, while a batch renames is looked for again when its names have moved.
///
/// **Any process** that shares the instance's store has the same handle ([`Builder::join`](crate::Builder::join),
/// [`Builder::attach`](crate::Builder::attach)): where another one holds the instance, calls are left for it in the
/// store and answered from there.
///
/// From inside an invocation (through [`Context::controller`](crate::Context::controller)) every write is bound to
/// it: once it is cancelled or has returned they are refused, and so is every wait at any time.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         let page = Page(context.spec().0.clone());
/// #         context.set_state(&page).await?;
/// #         Ok(Outcome::default())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, Expect, KindOptions, Refresh, Resource, RunOutcome, Select};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let uid = controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
///
/// // An edit can say what it expects; a stale one is refused, and nothing has changed.
/// let seen = controller.get("page/home")?;
/// let expect = Expect { uid: Some(uid), spec_version: Some(seen.row.spec_version) };
/// controller.update_spec("page/home", &Page("hi".into())).expecting(expect).await?;
/// assert!(controller.update_spec("page/home", &Page("ho".into())).expecting(expect).await.is_err());
///
/// // It can be awaited further: to the outcome of the run that it asks for, or until all below has settled.
/// let outcome = controller.rename("page/home", "start").outcome(Duration::from_secs(10)).await?;
/// assert!(matches!(outcome, RunOutcome::Done { .. }));
/// controller.refresh("start", Refresh::Plain).await?.settled(None).await?;
/// assert_eq!(controller.list(Select::new()).resources.len(), 1);
///
/// controller.delete("start").settled(None).await?;
/// assert!(controller.get(uid).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    by: Option<Caller>,
}

/// Lets functions accept a handle and a controller alike.
impl AsRef<Handle> for Handle {
    fn as_ref(&self) -> &Handle {
        self
    }
}

/// The way in which a resource is deleted.
///
/// See [`Handle`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delete {
    /// Deletes through the reconciler, which first removes its output.
    #[default]
    Graceful,
    /// Deletes at once, without the reconciler; recorded in the history.
    Forced,
}

/// The extent of a refresh.
///
/// See [`Handle`] for an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Refresh {
    /// Does the work again.
    #[default]
    Plain,
    /// Does the work again and forgets incremental state.
    Full,
}

/// Resources at one revision.
///
/// See [`Handle`] for an example.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Revision of the listing. A [`Handle::watch`] from here, applied over the listing, converges.
    pub revision: Revision,
    /// Selected resources, in order of kind and name. Those with an unfinished delete carry their mark.
    pub resources: Vec<Resource>,
}

/// Number of times that a check reads the store to find the same revision as the loop, since a busy controller may
/// never stand still.
const CHECK_LOOKS: u32 = 5;

/// Edits. Each is carried out when awaited; it can also be followed to the outcome of its run, or until everything
/// below has settled. See [`EditRequest`].
impl Handle {
    /// Creates a resource, made with [`Resource::declare`] for instance. Keeps the uid of an earlier resource of that
    /// name whose delete is unfinished.
    pub fn create(&self, new: NewResource) -> EditRequest<'_> {
        EditRequest::new(self, Ok(Edit::create(new)))
    }

    /// Creates a resource, or replaces all columns of the one with the same kind and name. Columns that are not set,
    /// such as refs and labels, are cleared.
    pub fn apply(&self, new: NewResource) -> EditRequest<'_> {
        EditRequest::new(self, Ok(Edit::apply(new)))
    }

    /// Gives some columns new values.
    pub fn update(&self, target: impl Into<Target>, update: Update) -> EditRequest<'_> {
        EditRequest::new(self, Ok(Edit::update(target, update)))
    }

    /// Replaces the spec of a resource.
    pub fn update_spec<S: Message>(&self, target: impl Into<Target>, spec: &S) -> EditRequest<'_> {
        let update = Resource::new_spec(spec);
        EditRequest::new(self, update.map(|update| Edit::update(target, update)))
    }

    /// Renames a resource; its reconciler moves the output.
    ///
    /// A name that another resource is about to give up, because its own rename or delete is unfinished, can be had: the
    /// rename runs, and the reconcile that follows it waits for the name. A rename that was cancelled is tried again, as
    /// one that has failed.
    pub fn rename(&self, target: impl Into<Target>, name: impl Into<Name>) -> EditRequest<'_> {
        EditRequest::new(self, Ok(Edit::rename(target, name)))
    }

    /// Deletes a resource: its reconciler removes the output, and then the resource leaves the catalog.
    pub fn delete(&self, target: impl Into<Target>) -> EditRequest<'_> {
        self.delete_with(target, Delete::default())
    }

    /// Deletes a resource in the given way.
    pub fn delete_with(&self, target: impl Into<Target>, how: Delete) -> EditRequest<'_> {
        let edit = match how {
            Delete::Graceful => Edit::delete(target),
            Delete::Forced => Edit::force_delete(target),
        };
        EditRequest::new(self, Ok(edit))
    }

    /// Applies several edits, all or none, with nothing scheduled in between.
    pub fn edit(&self, batch: impl Into<Batch>) -> BatchRequest<'_> {
        BatchRequest::new(self, batch.into())
    }

    pub(crate) async fn carry_out(&self, batch: Batch) -> Result<Applied, Refusal> {
        self.shared.check_specs(&batch)?;
        match self.call(Call::Apply(batch)).await? {
            Answer::Applied(applied) => Ok(applied),
            other => unreachable!("a batch was answered by {other:?}"),
        }
    }

    pub(crate) async fn carry_out_and_follow(&self, batch: Batch) -> Result<(Applied, Waits), Refusal> {
        self.shared.check_specs(&batch)?;
        match self.follow(Call::ApplyAndAwait(batch)).await? {
            (Answer::Applied(applied), waits) => Ok((applied, waits)),
            (other, _) => unreachable!("a batch was answered by {other:?}"),
        }
    }

    /// Refuses a call that would wait inside an invocation, before any part is carried out.
    pub(crate) fn refuse_inside(&self) -> Result<(), Refusal> {
        if self.by.is_some() {
            return Err(Refusal::FromInside);
        }
        Ok(())
    }
}

/// Requests for runs of resources.
impl Handle {
    /// Requests a reconcile; returns once the request is recorded.
    pub async fn reconcile(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.request(Call::Reconcile(target.into())).await
    }

    /// Requests that the work be done although nothing changed. The request is stored, so that no crash loses or
    /// repeats it.
    pub async fn refresh(&self, target: impl Into<Target>, how: Refresh) -> Result<Request, RequestError> {
        self.request(Call::Refresh {
            target: target.into(),
            full: how == Refresh::Full,
        })
        .await
    }

    /// Reports a change outside. Debounced; never cancels the resource's own invocation.
    pub async fn nudge(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.done(Call::Nudge(target.into())).await
    }

    /// Nudges every resource whose requeue, retry or resync is due within its kind's nudging interval.
    pub async fn nudge_all(&self) -> Result<(), RequestError> {
        self.done(Call::NudgeAll).await
    }

    /// Cancels the running invocation, and the pending requests for this resource alone. A resource that is being
    /// deleted is found only by uid, because another may have its name.
    pub async fn cancel(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.done(Call::Cancel(target.into())).await
    }

    /// Retries a failed resource now, with its failures forgotten; also a failed delete or rename. Does nothing to a
    /// resource that has not failed.
    pub async fn retry(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.done(Call::Retry(target.into())).await
    }

    /// Holds back further reconciles. Deletes and renames go on, and so do the resources below. The pause is stored.
    pub async fn pause(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.done(Call::Pause(target.into())).await
    }

    /// Ends a pause. All requests during the pause count as one.
    pub async fn resume(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.done(Call::Resume(target.into())).await
    }

    /// Requests one reconcile of a paused resource.
    pub async fn reconcile_once(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.request(Call::ReconcileOnce(target.into())).await
    }

    /// Explains why a resource is not running now, root cause first.
    pub async fn explain(&self, target: impl Into<Target>) -> Result<Explanation, RequestError> {
        match self.call(Call::Explain(target.into())).await? {
            Answer::Explained(explanation) => Ok(*explanation),
            other => unreachable!("an explanation was asked for and {other:?} came"),
        }
    }

    async fn done(&self, call: Call) -> Result<(), RequestError> {
        self.call(call).await?;
        Ok(())
    }

    async fn request(&self, call: Call) -> Result<Request, RequestError> {
        match self.follow(call).await? {
            (Answer::Recorded(uid), waits) => Ok(Request { uid, waits }),
            (other, _) => unreachable!("a request was answered by {other:?}"),
        }
    }

    /// Sends a call that has several answers, and returns with the first.
    async fn follow(&self, call: Call) -> Result<(Answer, Waits), Refusal> {
        let (recorded, is_recorded) = oneshot::channel();
        let (outcome, outcome_of) = oneshot::channel();
        let (settled, is_settled) = oneshot::channel();
        let reply = RequestReply {
            recorded: Some(recorded),
            outcome: Some(outcome),
            settled: Some(settled),
        };
        let id = self.send(call, Reply::Request(Box::new(reply))).await?;
        let forget = Forget {
            id,
            shared: Arc::clone(&self.shared),
        };
        let first = answered(is_recorded).await?;
        let waits = Waits {
            outcome: Promise::Awaited(outcome_of),
            settled: Promise::Awaited(is_settled),
            inside: self.by.is_some(),
            _forget: forget,
        };
        Ok((first, waits))
    }
}

/// Reads of the catalog, of history and of metrics.
impl Handle {
    /// Returns one resource: by name only a live one, by uid also one whose delete is unfinished.
    pub fn get(&self, target: impl Into<Target>) -> Result<Resource, RequestError> {
        Ok(self.shared.view.get(&target.into())?)
    }

    /// Lists the selected resources at one revision. A batch appears whole or not at all.
    pub fn list(&self, select: Select) -> Listing {
        let (revision, mut resources) = self.shared.view.list(|row| select.keeps_row(row));
        resources.retain(|found| select.keeps_status(&found.row, &found.status));
        Listing { revision, resources }
    }

    /// Returns the revision that readers see.
    pub fn revision(&self) -> Revision {
        self.shared.view.revision()
    }

    /// Lists the kinds that a reconciler of this type was registered for.
    pub(crate) fn kinds_of(&self, reconciler: TypeId) -> impl Iterator<Item = &Kind> {
        let kinds = self.shared.kinds.iter();
        kinds
            .filter(move |(id, _)| *id == reconciler)
            .map(|(_, kind)| kind)
    }

    /// Follows the changes committed after `from`: the revision of a listing, or the last one that an earlier watch
    /// saw, even before a restart. If nothing was removed since, the watch first returns the present rows of all
    /// changed resources.
    ///
    /// A watcher may be as slow as it likes: it costs bounded memory, and at the bound it gets [`Event::Lagged`].
    pub fn watch(&self, from: Revision) -> Watch {
        self.shared.changes.watch(from, &self.shared.view)
    }

    /// Reads the newest entries of a resource's history, newest first, at most `limit`. Runs that found nothing to do
    /// have no entry, but are counted in the row.
    pub async fn history(
        &self,
        target: impl Into<Target>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>, HistoryError> {
        let uid = self.shared.view.get(&target.into())?.row.uid;
        Ok(self.shared.history(uid, limit).await?)
    }

    /// Reads the newest history entries of the whole instance, newest first, at most `limit`, including entries of
    /// removed resources.
    pub async fn recent_history(&self, limit: u32) -> Result<Vec<HistoryRow>, HistoryError> {
        Ok(self.shared.recent(limit).await?)
    }

    /// Returns the present metrics of the controller: pending, running and failed resources, and durations. Visits
    /// every resource once, and does not involve the loop.
    pub fn stats(&self) -> Stats {
        self.shared.stats(self.shared.clock.now().wall)
    }

    /// Checks every rule of the controller from scratch, and compares the stored catalog with the loaded one. For
    /// suspected bugs of the controller itself: blocks the loop for about a second per million resources, and reads the
    /// whole store.
    ///
    /// The two catalogs are [`Compared::Whole`] if nothing was written between the look at one and at the other, which
    /// is tried for a few times; else as far as neither has changed. Where another process holds the instance, that one
    /// checks its rules, and no catalogs are compared.
    ///
    /// # Errors
    /// If the store can't be read, or the controller has stopped.
    pub async fn check_consistency(&self) -> Result<Consistency, CheckError> {
        for looks_left in (0..CHECK_LOOKS).rev() {
            let stored = self.shared.read().await?;
            let can_compare = stored.is_some();
            let call = Call::Check(stored.map(Arc::new));
            let checked = match self.call(call).await? {
                Answer::Checked(checked) => *checked,
                other => unreachable!("a check was asked for and {other:?} came"),
            };
            let whole = checked.compared == Compared::Whole;
            if whole || !can_compare || looks_left == 0 || !checked.findings.is_empty() {
                return Ok(checked);
            }
        }
        unreachable!("the last look returns")
    }

    /// Returns true if this process leads the instance now, and so runs its reconcilers.
    pub fn holds_instance(&self) -> bool {
        self.shared.holds.load(Ordering::SeqCst)
    }

    /// Returns the epoch under which this process leads, or under which it led last; none if it never led.
    pub fn epoch(&self) -> Option<Epoch> {
        match self.shared.epoch.load(Ordering::SeqCst) {
            0 => None,
            epoch => Some(Epoch(epoch)),
        }
    }

    /// Returns the lease under which this process leads, as last renewed; none if it doesn't lead or the lease can't
    /// expire.
    ///
    /// None while another process holds the instance, and with a store whose lock lasts as long as the process. For what
    /// must not go on beyond it: nobody else holds the instance before [`Lease::expires_at`].
    pub fn lease(&self) -> Option<Lease> {
        self.shared.lease()
    }

    /// Returns the reason why the controller has stopped; none while it runs.
    pub fn stopped(&self) -> Option<StopReason> {
        self.shared.stopped.get().cloned()
    }
}

/// Waits. Refused inside an invocation, which would wait for itself.
impl Handle {
    /// Waits until every resource has settled: none runs and none is pending. Does not wait for timers.
    ///
    /// Cancel-safe.
    pub async fn wait_until_idle(&self, deadline: impl Into<Option<Duration>>) -> Result<(), WaitError> {
        within(deadline, async {
            let (reply, answer) = oneshot::channel();
            let id = self.send(Call::WaitUntilIdle, Reply::Once(reply)).await?;
            let _forget = Forget {
                id,
                shared: Arc::clone(&self.shared),
            };
            answered(answer).await.map(drop)
        })
        .await
    }

    /// Waits until the resource of this name, or its absence, satisfies `predicate`, and returns it.
    ///
    /// The predicate is asked once at the beginning, then whenever what stands there has changed. Cancel-safe.
    pub async fn wait_until(
        &self,
        key: Key,
        mut predicate: impl FnMut(Option<&Resource>) -> bool,
        deadline: impl Into<Option<Duration>>,
    ) -> Result<Option<Resource>, WaitError> {
        self.refuse_inside()?;
        let target = Target::Key(key);
        within(deadline, async {
            loop {
                let mut watch = self.watch(self.shared.view.revision());
                let mut seen = None;
                loop {
                    let found = self.get(target.clone()).ok();
                    if seen.as_ref() != Some(&found) {
                        if predicate(found.as_ref()) {
                            return Ok(found);
                        }
                        seen = Some(found);
                    }
                    match watch.next().await {
                        Some(Event::Lagged) => break,
                        Some(_) => {}
                        None => return Err(self.unreachable()),
                    }
                }
            }
        })
        .await
    }
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, by: None }
    }

    /// Creates a handle for use inside an invocation.
    pub(crate) fn inside(shared: Arc<Shared>, by: Caller) -> Self {
        Self { shared, by: Some(by) }
    }

    /// Waits until the controller accepts no more calls, for any reason. Cancel-safe.
    #[cfg(feature = "stategraph")]
    pub(crate) async fn until_stopped(&self) {
        self.shared.commands.closed().await;
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.send(call, Reply::Once(reply)).await?;
        answered(answer).await
    }

    /// Sends a call to the loop; waits while the queue is full.
    async fn send(&self, call: Call, reply: Reply) -> Result<CallId, Refusal> {
        let id = self.shared.call_id();
        let call = origin::named(call);
        let command = Command {
            id,
            by: self.by,
            call,
            reply,
            sent: Instant::now(),
        };
        self.shared
            .commands
            .send(command)
            .await
            .map_err(|_| self.unreachable())?;
        self.shared.wake();
        Ok(id)
    }

    /// Returns the refusal of a call that the loop never took.
    fn unreachable(&self) -> Refusal {
        match self.shared.stopped.get() {
            Some(StopReason::LeaseLost) => Refusal::LeaseLost,
            _ => Refusal::ShuttingDown,
        }
    }
}

/// Waits for the answer to a call that was sent.
pub(crate) async fn answered(
    answer: impl Future<Output = Result<Answer, oneshot::error::RecvError>>,
) -> Result<Answer, Refusal> {
    match answer.await {
        Ok(Answer::Refused(refusal)) => Err(refusal),
        Ok(answer) => Ok(answer),
        Err(_) => Err(Refusal::OutcomeUnknown),
    }
}
