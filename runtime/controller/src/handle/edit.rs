//! Edits before and after they are awaited: carried out when awaited, then followed to their outcomes.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use watershed_core::{Applied, Batch, Edit, Expect, Refusal, RunOutcome, Settlement, Uid};

use super::Handle;
use crate::handle::request::{AppliedBatch, Request};
use crate::types::error::EditError;
use crate::types::message::EncodeError;

/// A boxed future, as [`IntoFuture`] needs it.
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One edit, made by [`Handle::create`], [`Handle::apply`], [`Handle::update`], [`Handle::rename`] and
/// [`Handle::delete`]. Nothing happens before it is awaited, in one of these ways:
///
/// - `.await` carries it out and returns the resource's uid once that is committed;
/// - [`.outcome(deadline)`](Self::outcome) waits also for the run that it asks for, and returns how that ended;
/// - [`.settled(deadline)`](Self::settled) waits until the resource and all below it have settled; after a delete, until
///   the resource has left the catalog;
/// - [`.follow()`](Self::follow) returns once it is committed, with a [`Request`] for both.
///
/// The wait belongs to the edit: no run that began before it is taken for its outcome, and none that came quickly is
/// missed. From inside an invocation, which would wait for itself, waits are refused.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         context.set_state(&Page(context.spec().0.clone())).await?;
/// #         Ok(Outcome::changed())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use watershed_controller::{Controller, KindOptions, Resource, RunOutcome};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let home = Resource::declare("page", "home", &Page("hello".into()))?;
/// let outcome = controller.create(home.clone()).outcome(None).await?; // None: at most a minute.
/// assert!(matches!(outcome, RunOutcome::Done { .. }));
///
/// controller.apply(home).settled(None).await?; // Nothing to do: it is settled already.
/// controller.delete("home").settled(None).await?;
/// assert!(controller.get("home").is_err());
/// # Ok(())
/// # }
/// ```
#[must_use = "an edit is carried out when it is awaited"]
#[derive(Debug)]
pub struct EditRequest<'a> {
    handle: &'a Handle,
    edit: Result<Edit, EncodeError>,
}

impl<'a> EditRequest<'a> {
    pub(crate) fn new(handle: &'a Handle, edit: Result<Edit, EncodeError>) -> Self {
        Self { handle, edit }
    }

    /// Sets preconditions; if one does not hold, the edit is refused. Without any, every edit is accepted.
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.edit = self.edit.map(|edit| edit.expecting(expect));
        self
    }

    /// Sets the origin of the edit, as text for people: the path of a file, for instance.
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.edit = self.edit.map(|edit| edit.with_origin(origin));
        self
    }

    /// Carries out the edit; returns once it is committed, with a handle to follow it.
    pub async fn follow(self) -> Result<Request, EditError> {
        let batch = Batch::from(self.edit?);
        let (applied, waits) = self.handle.carry_out_and_follow(batch).await?;
        let uid = only(&applied)?;
        Ok(Request { uid, waits })
    }

    /// Carries out the edit and waits for the outcome of the requested run, see [`Request::outcome`]. If no run is
    /// requested, because nothing changes or the resource is paused, the outcome is [`RunOutcome::NotRun`].
    ///
    /// The deadline counts from the commit; [`DEFAULT_DEADLINE`](crate::request::DEFAULT_DEADLINE) if it is none.
    ///
    /// # Errors
    /// [`EditError::Wait`] if the edit was carried out and its outcome did not come in time.
    pub async fn outcome(self, deadline: impl Into<Option<Duration>>) -> Result<RunOutcome, EditError> {
        self.handle.refuse_inside()?;
        let mut request = self.follow().await?;
        request.outcome(deadline).await.map_err(EditError::Wait)
    }

    /// Carries out the edit and waits until the resource and its descendants have settled, see [`Request::settled`].
    ///
    /// The deadline counts from the commit; [`DEFAULT_DEADLINE`](crate::request::DEFAULT_DEADLINE) if it is none.
    ///
    /// # Errors
    /// [`EditError::Wait`] if the edit was carried out and all had not settled in time.
    pub async fn settled(self, deadline: impl Into<Option<Duration>>) -> Result<Settlement, EditError> {
        self.handle.refuse_inside()?;
        let mut request = self.follow().await?;
        request.settled(deadline).await.map_err(EditError::Wait)
    }
}

impl<'a> IntoFuture for EditRequest<'a> {
    type Output = Result<Uid, EditError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let applied = self.handle.carry_out(self.edit?.into()).await?;
            Ok(only(&applied)?)
        })
    }
}

/// Returns the only resource of a batch of one edit.
fn only(applied: &Applied) -> Result<Uid, Refusal> {
    applied.uids.first().copied().ok_or(Refusal::OutcomeUnknown)
}

/// A batch of edits, made by [`Handle::edit`]: like an [`EditRequest`], for several resources.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         context.set_state(&Page(context.spec().0.clone())).await?;
/// #         Ok(Outcome::changed())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use watershed_controller::{Controller, Edit, KindOptions, Resource, RunOutcome};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let page = |name| Resource::declare("page", name, &Page("hello".into()));
/// controller.edit(vec![Edit::create(page("a")?), Edit::create(page("b")?)]).settled(None).await?;
///
/// // All or none, at once: two names change hands, and one resource more is there.
/// let edits = vec![Edit::rename("a", "b"), Edit::rename("b", "a"), Edit::apply(page("c")?)];
/// let outcomes = controller.edit(edits).outcomes(None).await?;
/// assert!(outcomes.iter().all(|outcome| matches!(outcome, RunOutcome::Done { .. })));
/// # Ok(())
/// # }
/// ```
#[must_use = "a batch is carried out when it is awaited"]
#[derive(Debug)]
pub struct BatchRequest<'a> {
    handle: &'a Handle,
    batch: Batch,
}

impl<'a> BatchRequest<'a> {
    pub(crate) fn new(handle: &'a Handle, batch: Batch) -> Self {
        Self { handle, batch }
    }

    /// Carries out the batch; returns once it is committed, with a handle to follow it.
    pub async fn follow(self) -> Result<AppliedBatch, EditError> {
        let (applied, waits) = self.handle.carry_out_and_follow(self.batch).await?;
        Ok(AppliedBatch { applied, waits })
    }

    /// Carries out the batch and waits for the outcome of each edit, in order, as [`EditRequest::outcome`] does.
    pub async fn outcomes(self, deadline: impl Into<Option<Duration>>) -> Result<Vec<RunOutcome>, EditError> {
        self.handle.refuse_inside()?;
        let mut applied = self.follow().await?;
        applied.outcomes(deadline).await.map_err(EditError::Wait)
    }

    /// Carries out the batch and waits for all of its resources, as [`EditRequest::settled`] does.
    pub async fn settled(self, deadline: impl Into<Option<Duration>>) -> Result<Settlement, EditError> {
        self.handle.refuse_inside()?;
        let mut applied = self.follow().await?;
        applied.settled(deadline).await.map_err(EditError::Wait)
    }
}

impl<'a> IntoFuture for BatchRequest<'a> {
    type Output = Result<Applied, EditError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(self.handle.carry_out(self.batch).await?) })
    }
}
