//! What the embedder writes: how items of one type are created, modified and deleted.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::engine::Message;
use crate::operations::OperationId;
use crate::planner::Observed;
use crate::reference::Ref;
use crate::value::Value;

/// Why an operation failed, for people. Made from any error, whose sources are kept in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerError(String);

impl HandlerError {
    /// An error that is only a message: lower case, no full stop.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// It is no `std::error::Error` itself, so that every such error turns into it by `?`.
impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        Self(text)
    }
}

/// What a running operation knows of its surroundings.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) cancel: CancellationToken,
    pub(crate) background: Option<Background>,
}

#[derive(Debug, Clone)]
pub(crate) struct Background {
    pub(crate) id: OperationId,
    pub(crate) inbox: UnboundedSender<Message>,
    pub(crate) is_back: Arc<AtomicBool>,
}

impl Context {
    /// Cancelled when somebody wants the operation to end. It should return an error soon; after the
    /// deadline of its type it counts as failed whatever it does.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Lets the call return without this operation, which goes on. When it ends, [`crate::Executor::ended`]
    /// tells.
    pub fn go_on_in_background(&self) {
        if let Some(background) = &self.background
            && !background.is_back.swap(true, Ordering::SeqCst)
        {
            let _ = background.inbox.send(Message::Background(background.id));
        }
    }
}

/// Operates on the items of one type.
///
/// Operations may be tried again after a failure and should bear it. A panic is a failure.
pub trait Handler<V: Value>: Send + Sync + 'static {
    /// Brings an item into being.
    fn create(
        &self,
        context: &Context,
        reference: &Ref,
        new: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Gives an item another value; the same one if only what it depends on was replaced, or if the last
    /// operation failed.
    fn modify(
        &self,
        context: &Context,
        reference: &Ref,
        old: &V,
        new: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Ends an item, also what is left of one whose create failed.
    fn delete(
        &self,
        context: &Context,
        reference: &Ref,
        old: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Whether an item with one value has to be deleted and created to have the other. Does nothing.
    fn needs_recreate(
        &self,
        _reference: &Ref,
        _old: &V,
        _new: &V,
    ) -> impl Future<Output = Result<bool, HandlerError>> + Send {
        async { Ok(false) }
    }

    /// Gives a replacement the name of the item that it replaces, which is gone by now. Needed only for
    /// types that create first.
    fn adopt(
        &self,
        _context: &Context,
        alias: &Ref,
        _reference: &Ref,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send {
        let message = format!("`{alias}` cannot be adopted: its handler does not say how");
        async { Err(HandlerError::new(message)) }
    }

    /// Finds out what has become of an item. Asked only if the type says that it observes.
    fn observe(&self, _reference: &Ref, _known: &V) -> impl Future<Output = Observed<V>> + Send {
        async { Observed::Unclear("cannot be observed".to_owned()) }
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Handler`] behind a pointer.
pub(crate) trait AnyHandler<V: Value>: Send + Sync {
    fn create<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        new: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>>;
    fn modify<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        old: &'a V,
        new: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>>;
    fn delete<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        old: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>>;
    fn needs_recreate<'a>(
        &'a self,
        reference: &'a Ref,
        old: &'a V,
        new: &'a V,
    ) -> Boxed<'a, Result<bool, HandlerError>>;
    fn adopt<'a>(
        &'a self,
        context: &'a Context,
        alias: &'a Ref,
        reference: &'a Ref,
    ) -> Boxed<'a, Result<(), HandlerError>>;
    fn observe<'a>(&'a self, reference: &'a Ref, known: &'a V) -> Boxed<'a, Observed<V>>;
}

impl<V: Value, H: Handler<V>> AnyHandler<V> for H {
    fn create<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        new: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>> {
        Box::pin(Handler::create(self, context, reference, new))
    }

    fn modify<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        old: &'a V,
        new: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>> {
        Box::pin(Handler::modify(self, context, reference, old, new))
    }

    fn delete<'a>(
        &'a self,
        context: &'a Context,
        reference: &'a Ref,
        old: &'a V,
    ) -> Boxed<'a, Result<(), HandlerError>> {
        Box::pin(Handler::delete(self, context, reference, old))
    }

    fn needs_recreate<'a>(
        &'a self,
        reference: &'a Ref,
        old: &'a V,
        new: &'a V,
    ) -> Boxed<'a, Result<bool, HandlerError>> {
        Box::pin(Handler::needs_recreate(self, reference, old, new))
    }

    fn adopt<'a>(
        &'a self,
        context: &'a Context,
        alias: &'a Ref,
        reference: &'a Ref,
    ) -> Boxed<'a, Result<(), HandlerError>> {
        Box::pin(Handler::adopt(self, context, alias, reference))
    }

    fn observe<'a>(&'a self, reference: &'a Ref, known: &'a V) -> Boxed<'a, Observed<V>> {
        Box::pin(Handler::observe(self, reference, known))
    }
}
