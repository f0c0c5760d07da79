//! Operations of a controller: all of those of its handle.

use std::time::Duration;

use watershed_core::{
    Batch, Consistency, Explanation, HistoryRow, Key, Name, NewResource, Revision, StopReason, Target, Update,
};

use super::Controller;
use crate::api::selected::SelectionWatch;
use crate::api::typed::Resources;
use crate::handle::edit::{BatchRequest, EditRequest};
use crate::handle::request::Request;
use crate::handle::{Delete, Handle, Listing, Refresh};
use crate::metrics::stats::Stats;
use crate::read::watch::Watch;
use crate::store::Lease;
use crate::types::error::{CheckError, HistoryError, RequestError, WaitError};
use crate::types::message::Message;
use crate::types::resource::Resource;
use crate::types::select::Select;
use crate::workers::reconciler::Reconciler;

/// Operations, each documented at [`Handle`].
impl Controller {
    /// Creates a resource; see [`Handle::create`].
    pub fn create(&self, new: NewResource) -> EditRequest<'_> {
        self.handle.create(new)
    }

    /// Creates or replaces a resource; see [`Handle::apply`].
    pub fn apply(&self, new: NewResource) -> EditRequest<'_> {
        self.handle.apply(new)
    }

    /// Changes columns of a resource; see [`Handle::update`].
    pub fn update(&self, target: impl Into<Target>, update: Update) -> EditRequest<'_> {
        self.handle.update(target, update)
    }

    /// Replaces the spec of a resource; see [`Handle::update_spec`].
    pub fn update_spec<S: Message>(&self, target: impl Into<Target>, spec: &S) -> EditRequest<'_> {
        self.handle.update_spec(target, spec)
    }

    /// Renames a resource; see [`Handle::rename`].
    pub fn rename(&self, target: impl Into<Target>, name: impl Into<Name>) -> EditRequest<'_> {
        self.handle.rename(target, name)
    }

    /// Deletes a resource; see [`Handle::delete`].
    pub fn delete(&self, target: impl Into<Target>) -> EditRequest<'_> {
        self.handle.delete(target)
    }

    /// Deletes a resource in a chosen way; see [`Handle::delete_with`].
    pub fn delete_with(&self, target: impl Into<Target>, how: Delete) -> EditRequest<'_> {
        self.handle.delete_with(target, how)
    }

    /// Applies a batch of edits; see [`Handle::edit`].
    pub fn edit(&self, batch: impl Into<Batch>) -> BatchRequest<'_> {
        self.handle.edit(batch)
    }

    /// Requests a reconcile; see [`Handle::reconcile`].
    pub async fn reconcile(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.handle.reconcile(target).await
    }

    /// Requests that work be done again; see [`Handle::refresh`].
    pub async fn refresh(&self, target: impl Into<Target>, how: Refresh) -> Result<Request, RequestError> {
        self.handle.refresh(target, how).await
    }

    /// Reports a change outside for one resource; see [`Handle::nudge`].
    pub async fn nudge(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.nudge(target).await
    }

    /// Nudges every resource that is due soon; see [`Handle::nudge_all`].
    pub async fn nudge_all(&self) -> Result<(), RequestError> {
        self.handle.nudge_all().await
    }

    /// Cancels a running invocation; see [`Handle::cancel`].
    pub async fn cancel(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.cancel(target).await
    }

    /// Retries a failed resource; see [`Handle::retry`].
    pub async fn retry(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.retry(target).await
    }

    /// Pauses a resource; see [`Handle::pause`].
    pub async fn pause(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.pause(target).await
    }

    /// Resumes a paused resource; see [`Handle::resume`].
    pub async fn resume(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.resume(target).await
    }

    /// Requests one reconcile of a paused resource; see [`Handle::reconcile_once`].
    pub async fn reconcile_once(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.handle.reconcile_once(target).await
    }

    /// Explains why a resource is not running; see [`Handle::explain`].
    pub async fn explain(&self, target: impl Into<Target>) -> Result<Explanation, RequestError> {
        self.handle.explain(target).await
    }

    /// Returns a resource; see [`Handle::get`].
    pub fn get(&self, target: impl Into<Target>) -> Result<Resource, RequestError> {
        self.handle.get(target)
    }

    /// Lists selected resources; see [`Handle::list`].
    pub fn list(&self, select: Select) -> Listing {
        self.handle.list(select)
    }

    /// Follows the catalog; see [`Handle::watch`].
    pub fn watch(&self, from: Revision) -> Watch {
        self.handle.watch(from)
    }

    /// Lists and follows selected resources; see [`Handle::watch_selected`].
    pub fn watch_selected(&self, select: Select) -> (Listing, SelectionWatch) {
        self.handle.watch_selected(select)
    }

    /// Reads the history of a resource; see [`Handle::history`].
    pub async fn history(
        &self,
        target: impl Into<Target>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>, HistoryError> {
        self.handle.history(target, limit).await
    }

    /// Reads the history of the whole instance; see [`Handle::recent_history`].
    pub async fn recent_history(&self, limit: u32) -> Result<Vec<HistoryRow>, HistoryError> {
        self.handle.recent_history(limit).await
    }

    /// Returns the controller's metrics; see [`Handle::stats`].
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// Checks the controller's invariants; see [`Handle::check_consistency`].
    pub async fn check_consistency(&self) -> Result<Consistency, CheckError> {
        self.handle.check_consistency().await
    }

    /// Returns true if this process leads the instance; see [`Handle::holds_instance`].
    pub fn holds_instance(&self) -> bool {
        self.handle.holds_instance()
    }

    /// Returns the lease of this process; see [`Handle::lease`].
    pub fn lease(&self) -> Option<Lease> {
        self.handle.lease()
    }

    /// Returns the reason for a stop; see [`Handle::stopped`].
    pub fn stopped(&self) -> Option<StopReason> {
        self.handle.stopped()
    }

    /// Waits until everything has settled; see [`Handle::wait_until_idle`].
    pub async fn wait_until_idle(&self, deadline: impl Into<Option<Duration>>) -> Result<(), WaitError> {
        self.handle.wait_until_idle(deadline).await
    }

    /// Waits until a resource satisfies a predicate; see [`Handle::wait_until`].
    pub async fn wait_until(
        &self,
        key: Key,
        predicate: impl FnMut(Option<&Resource>) -> bool,
        deadline: impl Into<Option<Duration>>,
    ) -> Result<Option<Resource>, WaitError> {
        self.handle.wait_until(key, predicate, deadline).await
    }

    /// Returns a typed view of one kind's resources; see [`Handle::resources`].
    #[track_caller]
    pub fn resources<R: Reconciler>(&self) -> Resources<R> {
        self.handle.resources()
    }
}

/// Lets a controller be passed where a handle is expected.
impl AsRef<Handle> for Controller {
    fn as_ref(&self) -> &Handle {
        &self.handle
    }
}
