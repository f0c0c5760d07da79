//! The operations of a controller: those of its handle.

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

/// Operations, each as of a [`Handle`].
impl Controller {
    /// As [`Handle::create`].
    pub fn create(&self, new: NewResource) -> EditRequest<'_> {
        self.handle.create(new)
    }

    /// As [`Handle::apply`].
    pub fn apply(&self, new: NewResource) -> EditRequest<'_> {
        self.handle.apply(new)
    }

    /// As [`Handle::update`].
    pub fn update(&self, target: impl Into<Target>, update: Update) -> EditRequest<'_> {
        self.handle.update(target, update)
    }

    /// As [`Handle::update_spec`].
    pub fn update_spec<S: Message>(&self, target: impl Into<Target>, spec: &S) -> EditRequest<'_> {
        self.handle.update_spec(target, spec)
    }

    /// As [`Handle::rename`].
    pub fn rename(&self, target: impl Into<Target>, name: impl Into<Name>) -> EditRequest<'_> {
        self.handle.rename(target, name)
    }

    /// As [`Handle::delete`].
    pub fn delete(&self, target: impl Into<Target>) -> EditRequest<'_> {
        self.handle.delete(target)
    }

    /// As [`Handle::delete_with`].
    pub fn delete_with(&self, target: impl Into<Target>, how: Delete) -> EditRequest<'_> {
        self.handle.delete_with(target, how)
    }

    /// As [`Handle::edit`].
    pub fn edit(&self, batch: impl Into<Batch>) -> BatchRequest<'_> {
        self.handle.edit(batch)
    }

    /// As [`Handle::reconcile`].
    pub async fn reconcile(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.handle.reconcile(target).await
    }

    /// As [`Handle::refresh`].
    pub async fn refresh(&self, target: impl Into<Target>, how: Refresh) -> Result<Request, RequestError> {
        self.handle.refresh(target, how).await
    }

    /// As [`Handle::nudge`].
    pub async fn nudge(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.nudge(target).await
    }

    /// As [`Handle::nudge_all`].
    pub async fn nudge_all(&self) -> Result<(), RequestError> {
        self.handle.nudge_all().await
    }

    /// As [`Handle::cancel`].
    pub async fn cancel(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.cancel(target).await
    }

    /// As [`Handle::retry`].
    pub async fn retry(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.retry(target).await
    }

    /// As [`Handle::pause`].
    pub async fn pause(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.pause(target).await
    }

    /// As [`Handle::resume`].
    pub async fn resume(&self, target: impl Into<Target>) -> Result<(), RequestError> {
        self.handle.resume(target).await
    }

    /// As [`Handle::reconcile_once`].
    pub async fn reconcile_once(&self, target: impl Into<Target>) -> Result<Request, RequestError> {
        self.handle.reconcile_once(target).await
    }

    /// As [`Handle::explain`].
    pub async fn explain(&self, target: impl Into<Target>) -> Result<Explanation, RequestError> {
        self.handle.explain(target).await
    }

    /// As [`Handle::get`].
    pub fn get(&self, target: impl Into<Target>) -> Result<Resource, RequestError> {
        self.handle.get(target)
    }

    /// As [`Handle::list`].
    pub fn list(&self, select: Select) -> Listing {
        self.handle.list(select)
    }

    /// As [`Handle::watch`].
    pub fn watch(&self, from: Revision) -> Watch {
        self.handle.watch(from)
    }

    /// As [`Handle::watch_selected`].
    pub fn watch_selected(&self, select: Select) -> (Listing, SelectionWatch) {
        self.handle.watch_selected(select)
    }

    /// As [`Handle::history`].
    pub async fn history(
        &self,
        target: impl Into<Target>,
        limit: u32,
    ) -> Result<Vec<HistoryRow>, HistoryError> {
        self.handle.history(target, limit).await
    }

    /// As [`Handle::recent_history`].
    pub async fn recent_history(&self, limit: u32) -> Result<Vec<HistoryRow>, HistoryError> {
        self.handle.recent_history(limit).await
    }

    /// As [`Handle::stats`].
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// As [`Handle::check_consistency`].
    pub async fn check_consistency(&self) -> Result<Consistency, CheckError> {
        self.handle.check_consistency().await
    }

    /// As [`Handle::holds_instance`].
    pub fn holds_instance(&self) -> bool {
        self.handle.holds_instance()
    }

    /// As [`Handle::lease`].
    pub fn lease(&self) -> Option<Lease> {
        self.handle.lease()
    }

    /// As [`Handle::stopped`].
    pub fn stopped(&self) -> Option<StopReason> {
        self.handle.stopped()
    }

    /// As [`Handle::wait_until_idle`].
    pub async fn wait_until_idle(&self, deadline: impl Into<Option<Duration>>) -> Result<(), WaitError> {
        self.handle.wait_until_idle(deadline).await
    }

    /// As [`Handle::wait_until`].
    pub async fn wait_until(
        &self,
        key: Key,
        predicate: impl FnMut(Option<&Resource>) -> bool,
        deadline: impl Into<Option<Duration>>,
    ) -> Result<Option<Resource>, WaitError> {
        self.handle.wait_until(key, predicate, deadline).await
    }

    /// As [`Handle::resources`].
    #[track_caller]
    pub fn resources<R: Reconciler>(&self) -> Resources<R> {
        self.handle.resources()
    }
}

/// Lets a controller stand where a handle is taken.
impl AsRef<Handle> for Controller {
    fn as_ref(&self) -> &Handle {
        &self.handle
    }
}
