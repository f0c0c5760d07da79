//! A resource as readers receive it.

use std::sync::Arc;

use watershed_core::{Key, Kind, Name, NewResource, Row, Status, Target, Uid, Update};

use crate::types::message::{self, DecodeError, EncodeError, Message};

/// A resource: its committed row, and its status at the time of the read.
///
/// The columns are those of its [`Row`].
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
/// use watershed_controller::{Controller, Key, KindOptions, Resource};
/// use watershed_controller::resource::{Settled, Stage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
///
/// let home = controller.get(Key::new("page", "home"))?;
/// assert_eq!((home.key().to_string(), home.row.runs_total), ("page/home".into(), 1));
/// assert_eq!(home.spec::<Page>()?, Page("hello".into()));
/// assert_eq!(home.state::<Page>()?, Some(Page("hello".into())));
/// assert!(matches!(home.status.stage, Stage::Settled(Settled::Idle)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Committed row, shared with other readers.
    pub row: Arc<Row>,
    /// Status of the resource at the time of the read; not stored.
    pub status: Status,
}

impl Resource {
    /// Returns the kind and name.
    pub fn key(&self) -> Key {
        self.row.key()
    }

    /// Returns the identity of the resource, which survives renames.
    pub fn uid(&self) -> Uid {
        self.row.uid
    }

    /// Returns the name, without the kind.
    pub fn name(&self) -> &Name {
        &self.row.name
    }

    /// Returns the kind, without the name.
    pub fn kind(&self) -> &Kind {
        &self.row.kind
    }

    /// Decodes the desired spec.
    pub fn spec<S: Message>(&self) -> Result<S, DecodeError> {
        Self::spec_of(&self.row)
    }

    /// Decodes the stored state; none before the first is written.
    pub fn state<S: Message>(&self) -> Result<Option<S>, DecodeError> {
        Self::state_of(&self.row)
    }

    /// Decodes the spec of a row to a message type.
    ///
    /// See [`Context`](crate::Context) for an example.
    pub fn spec_of<S: Message>(row: &Row) -> Result<S, DecodeError> {
        message::decode(row.spec_format, &row.spec)
    }

    /// Decodes the state of a row to a message type; none before the first is written.
    ///
    /// See [`Context`](crate::Context) for an example.
    pub fn state_of<S: Message>(row: &Row) -> Result<Option<S>, DecodeError> {
        row.state
            .as_deref()
            .map(|bytes| message::decode(row.state_format, bytes))
            .transpose()
    }

    /// Creates the declaration of a resource with a [`fresh_uid`](Self::fresh_uid) and this spec, for
    /// [`Handle::create`](crate::Handle::create) and [`Handle::apply`](crate::Handle::apply). Further columns are set
    /// in its fields.
    ///
    /// ```
    /// use std::time::Duration;
    /// use watershed_controller::{Ref, Resource, RetryPolicy, json_message};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Page(String);
    /// json_message!(Page, format = 1);
    ///
    /// let index = Resource::declare("page", "index", &Page("all".into()))?;
    /// let index = index.with_refs([Ref::completed("page", "home"), Ref::ready("server", "main")]);
    /// let index = index.with_label("team", "web").hidden();
    /// // It is tried again more often than its kind says.
    /// let index = index.with_retry(RetryPolicy::Backoff {
    ///     base: Duration::from_secs(1),
    ///     cap: Duration::from_secs(60),
    ///     attempts: 100,
    ///     reset_after: Duration::from_secs(600),
    /// });
    /// assert!(index.retry.is_some());
    ///
    /// let update = Resource::new_spec(&Page("everything".into()))?;
    /// assert!(update.spec.is_some() && update.refs.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn declare<S: Message>(kind: &str, name: &str, spec: &S) -> Result<NewResource, EncodeError> {
        let mut new = NewResource::new(Self::fresh_uid(), kind, name, message::encode(spec)?);
        new.spec_format = S::FORMAT;
        Ok(new)
    }

    /// Creates an update of only the spec. Further columns are set in its fields.
    ///
    /// See [`declare`](Self::declare) for an example.
    pub fn new_spec<S: Message>(spec: &S) -> Result<Update, EncodeError> {
        Ok(Update {
            spec: Some((message::encode(spec)?.into(), S::FORMAT)),
            ..Update::default()
        })
    }

    /// Generates a uid: a UUID that sorts by its time of creation.
    ///
    /// Where randomness is handed in instead (seeded tests), make the [`Uid`] there.
    ///
    /// ```
    /// use watershed_controller::Resource;
    ///
    /// assert_ne!(Resource::fresh_uid(), Resource::fresh_uid());
    /// ```
    pub fn fresh_uid() -> Uid {
        Uid(uuid::Uuid::now_v7())
    }
}

/// Lets every operation take a resource that was read; it is found by uid.
impl From<&Resource> for Target {
    fn from(resource: &Resource) -> Self {
        Target::Uid(resource.row.uid)
    }
}
