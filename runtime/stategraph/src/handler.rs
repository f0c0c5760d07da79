//! Handlers, which the embedder writes: they create, modify and delete the items of one type.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

use crate::message::Message;
use crate::operations::OperationId;
use crate::planner::Observed;
use crate::reference::Ref;
use crate::value::Value;

/// The error of an operation, for people. Converts from any error, with its sources in the text.
///
/// ```
/// use watershed_stategraph::HandlerError;
/// fn columns(text: &str) -> Result<u16, HandlerError> {
///     let count = text.parse()?; // any error will do
///     if count == 0 {
///         return Err(HandlerError::new("a table has at least one column"));
///     }
///     Ok(count)
/// }
/// assert_eq!(columns("many").unwrap_err().to_string(), "invalid digit found in string");
/// assert_eq!(columns("0").unwrap_err().to_string(), "a table has at least one column");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerError(String);

impl HandlerError {
    /// Creates an error from a message: lower case, no full stop.
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

/// Converts any error. `HandlerError` is no `std::error::Error` itself, so that `?` converts all of them.
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

/// Context of a running operation.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{Value, json};
/// # use watershed_stategraph::*;
/// /// An export takes hours: no call waits for it, and it ends early when it is not wanted any more.
/// struct Export;
/// impl Handler<Value> for Export {
///     async fn create(&self, context: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> {
///         context.go_on_in_background();
///         context.cancelled().cancelled().await; // or until all is written
///         Err(HandlerError::new("cancelled"))
///     }
///     // ...
/// #     async fn modify(&self, _: &Context, _: &Ref, _: &Value, _: &Value) -> Result<(), HandlerError> { Ok(()) }
/// #     async fn delete(&self, _: &Context, _: &Ref, _: &Value) -> Result<(), HandlerError> { Ok(()) }
/// }
/// let executor = Executor::new().handle("export", ItemType::new(), Export);
/// let (mut current, mut intended) = (Graph::new("warehouse"), Graph::new("warehouse"));
/// intended.insert(Item::new(Ref::parse("export/orders")?, json!("orders.csv")))?;
/// let report = executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// assert_eq!(report.status.running.len(), 1);
/// assert_eq!(executor.cancel("warehouse", |_, operation| operation == Operation::Create), 1);
/// assert_eq!(executor.ended().await.as_deref(), Some("warehouse")); // time to call again
/// # Ok(())
/// # }
/// ```
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
    /// Returns the token that is cancelled when the operation should end. The operation should then return an error
    /// soon; after its type's deadline it counts as failed in any case.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Lets the call return while the operation continues. [`crate::Executor::ended`] resolves when it ends.
    pub fn go_on_in_background(&self) {
        if let Some(background) = &self.background
            && !background.is_back.swap(true, Ordering::SeqCst)
        {
            let _ = background.inbox.send(Message::Background(background.id));
        }
    }
}

/// Performs operations on the items of one type.
///
/// Operations may be tried again after a failure and should bear it. A panic is a failure.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::collections::BTreeMap;
/// # use std::sync::{Arc, Mutex};
/// # use serde_json::{Value, json};
/// # use watershed_stategraph::*;
/// /// Tables in memory.
/// #[derive(Clone, Default)]
/// struct Tables(Arc<Mutex<BTreeMap<Ref, Value>>>);
/// impl Handler<Value> for Tables {
///     async fn create(&self, _: &Context, table: &Ref, new: &Value) -> Result<(), HandlerError> {
///         self.0.lock().unwrap().insert(table.clone(), new.clone());
///         Ok(())
///     }
///     async fn modify(&self, at: &Context, table: &Ref, _: &Value, new: &Value) -> Result<(), HandlerError> {
///         self.create(at, table, new).await
///     }
///     async fn delete(&self, _: &Context, table: &Ref, _: &Value) -> Result<(), HandlerError> {
///         self.0.lock().unwrap().remove(table);
///         Ok(())
///     }
///     async fn observe(&self, table: &Ref, _: &Value) -> Observed<Value> {
///         self.0.lock().unwrap().get(table).cloned().map_or(Observed::Absent, Observed::Present)
///     }
/// }
/// let (tables, orders) = (Tables::default(), Ref::parse("table/orders")?);
/// let executor = Executor::new().handle("table", ItemType::new().observes(), tables.clone());
/// let (mut current, mut intended) = (Graph::new("warehouse"), Graph::new("warehouse"));
/// intended.insert(Item::new(orders.clone(), json!(["day"])))?;
/// executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// tables.0.lock().unwrap().clear(); // behind our back
/// executor.recheck(&mut current);
/// executor.converge(&mut current, Some(&intended), &Extent::Everything).await?;
/// assert!(tables.0.lock().unwrap().contains_key(&orders));
/// # Ok(())
/// # }
/// ```
pub trait Handler<V: Value>: Send + Sync + 'static {
    /// Creates an item.
    fn create(
        &self,
        context: &Context,
        reference: &Ref,
        new: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Modifies an item to another value, or to the same value if only a target was replaced or the last operation
    /// failed.
    fn modify(
        &self,
        context: &Context,
        reference: &Ref,
        old: &V,
        new: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Deletes an item, or what remains of one whose create failed.
    fn delete(
        &self,
        context: &Context,
        reference: &Ref,
        old: &V,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Returns true if this change of value requires that the item be deleted and created. Must have no effect.
    fn needs_recreate(
        &self,
        _reference: &Ref,
        _old: &V,
        _new: &V,
    ) -> impl Future<Output = Result<bool, HandlerError>> + Send {
        async { Ok(false) }
    }

    /// Gives a replacement the name of the old item, which is gone by now. Needed only for types that create first.
    fn adopt(
        &self,
        _context: &Context,
        alias: &Ref,
        _reference: &Ref,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send {
        let message = format!("`{alias}` cannot be adopted: its handler does not say how");
        async { Err(HandlerError::new(message)) }
    }

    /// Observes the present state of an item. Called only if the type allows it.
    fn observe(&self, _reference: &Ref, _known: &V) -> impl Future<Output = Observed<V>> + Send {
        async { Observed::Unclear("cannot be observed".to_owned()) }
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An object-safe form of [`Handler`].
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
