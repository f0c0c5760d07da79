//! Typed access to the resources of one kind.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;
use watershed_core::{Edit, Key, Kind, Name, NewResource, Revision, Row};

use crate::handle::Handle;
use crate::handle::edit::EditRequest;
use crate::handle::request::Request;
use crate::read::watch::{Changes, Event, Watch};
use crate::types::error::RequestError;
use crate::types::message::{DecodeError, EncodeError};
use crate::types::resource::Resource;
use crate::types::select::Select;
use crate::workers::reconciler::Reconciler;

impl Handle {
    /// Returns the resources of the kind that this reconciler was registered for, with its types.
    ///
    /// # Panics
    /// If the reconciler was registered for no kind, or for several.
    #[track_caller]
    pub fn resources<R: Reconciler>(&self) -> Resources<R> {
        let name = std::any::type_name::<R>();
        let mut kinds = self.kinds_of(TypeId::of::<R>());
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Resources::new(self.clone(), kind.clone()),
            (None, _) => panic!("`{name}` is registered for no kind"),
            (Some(_), Some(_)) => panic!("`{name}` is registered for several kinds"),
        }
    }
}

/// The resources of one kind with their types, see [`Handle::resources`].
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
/// use watershed_controller::{Controller, KindOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let pages = controller.resources::<Pages>();
/// pages.apply("home", &Page("hello".into())).await?;
/// pages.apply("home", &Page("hi".into())).settled(None).await?; // It is there already, and gets another spec.
///
/// let home = pages.get("home")?;
/// assert_eq!((home.spec, home.state), (Page("hi".into()), Some(Page("hi".into()))));
/// assert_eq!(pages.list()?.len(), 1);
///
/// pages.delete("home").settled(None).await?;
/// assert!(pages.get("home").is_err());
/// # Ok(())
/// # }
/// ```
pub struct Resources<R> {
    handle: Handle,
    kind: Kind,
    reconciler: PhantomData<fn() -> R>,
}

/// A resource with its decoded spec and state.
///
/// See [`Resources`] for an example.
pub struct Typed<R: Reconciler> {
    /// Spec as a value of the reconciler's type.
    pub spec: R::Spec,
    /// State as a value of the reconciler's type; none before the first is written.
    pub state: Option<R::State>,
    /// The undecoded resource: row and status.
    pub resource: Resource,
}

/// Errors of reading a resource with its types.
///
/// See [`Resources`] for an example.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The resource was not found.
    #[error(transparent)]
    Refused(#[from] RequestError),
    /// The stored bytes don't decode to these types.
    #[error("can't read \"{key}\"")]
    Unreadable {
        /// Kind and name of the resource.
        key: Key,
        /// Error of decoding the spec or state.
        source: DecodeError,
    },
}

impl<R: Reconciler> Typed<R> {
    fn read(resource: Resource) -> Result<Self, ReadError> {
        let unreadable = |source| ReadError::Unreadable {
            key: resource.key(),
            source,
        };
        Ok(Self {
            spec: resource.spec().map_err(unreadable)?,
            state: resource.state().map_err(unreadable)?,
            resource,
        })
    }
}

impl<R: Reconciler> fmt::Debug for Typed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Resources<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<R> Clone for Resources<R> {
    fn clone(&self) -> Self {
        Self::new(self.handle.clone(), self.kind.clone())
    }
}

impl<R> Resources<R> {
    pub(crate) fn new(handle: Handle, kind: Kind) -> Self {
        Self {
            handle,
            kind,
            reconciler: PhantomData,
        }
    }

    fn key(&self, name: impl Into<Name>) -> Key {
        Key {
            kind: self.kind.clone(),
            name: name.into(),
        }
    }
}

impl<R: Reconciler> Resources<R> {
    /// Returns the resource with this name.
    ///
    /// # Errors
    /// If there is none of that name, or its bytes can't be read.
    pub fn get(&self, name: impl Into<Name>) -> Result<Typed<R>, ReadError> {
        Typed::read(self.handle.get(self.key(name))?)
    }

    /// Lists the resources that are neither hidden nor being deleted, in order of their names.
    ///
    /// # Errors
    /// If the bytes of one can't be read.
    pub fn list(&self) -> Result<Vec<Typed<R>>, ReadError> {
        let listing = self.handle.list(Select::kind(self.kind.clone()));
        listing.resources.into_iter().map(Typed::read).collect()
    }

    /// Creates the declaration of a resource of this kind, for [`Handle::create`] and [`Handle::apply`]. Further
    /// columns are set in its fields.
    ///
    /// # Errors
    /// If the spec has no bytes.
    pub fn declare(&self, name: &str, spec: &R::Spec) -> Result<NewResource, EncodeError> {
        Resource::declare(self.kind.as_str(), name, spec)
    }

    /// Creates a resource with this spec, as [`Handle::create`] does.
    pub fn create(&self, name: &str, spec: &R::Spec) -> EditRequest<'_> {
        EditRequest::new(&self.handle, self.declare(name, spec).map(Edit::create))
    }

    /// Creates a resource with only this spec, or replaces all columns of the existing one, as [`Handle::apply`] does.
    pub fn apply(&self, name: &str, spec: &R::Spec) -> EditRequest<'_> {
        EditRequest::new(&self.handle, self.declare(name, spec).map(Edit::apply))
    }

    /// Replaces the spec of a resource and keeps its other columns, as [`Handle::update_spec`] does.
    pub fn update(&self, name: impl Into<Name>, spec: &R::Spec) -> EditRequest<'_> {
        self.handle.update_spec(self.key(name), spec)
    }

    /// Deletes a resource through its reconciler, as [`Handle::delete`] does.
    pub fn delete(&self, name: impl Into<Name>) -> EditRequest<'_> {
        self.handle.delete(self.key(name))
    }

    /// Requests a reconcile, as [`Handle::reconcile`] does.
    ///
    /// # Errors
    /// If there is none of that name.
    pub async fn reconcile(&self, name: impl Into<Name>) -> Result<Request, RequestError> {
        self.handle.reconcile(self.key(name)).await
    }

    /// Follows the changes of this kind committed after `from`, as [`Handle::watch`] does.
    pub fn watch(&self, from: Revision) -> KindWatch {
        KindWatch {
            watch: self.handle.watch(from),
            kind: self.kind.clone(),
        }
    }
}

/// A watch on the resources of one kind, see [`Resources::watch`].
#[derive(Debug)]
pub struct KindWatch {
    watch: Watch,
    kind: Kind,
}

impl KindWatch {
    /// Waits for the next event of the kind: [`Event::Changed`] with only its rows, or [`Event::Lagged`]. None as for
    /// [`Watch::next`].
    ///
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.watch.next().await? {
                Event::Changed(changes) => {
                    let found = self.only_this_kind(changes);
                    if !found.rows.is_empty() || !found.removed.is_empty() {
                        return Some(Event::Changed(found));
                    }
                }
                Event::Lagged => return Some(Event::Lagged),
                _ => {}
            }
        }
    }

    fn only_this_kind(&self, mut changes: Changes) -> Changes {
        let is_ours = |row: &Row| row.kind == self.kind;
        changes.rows.retain(|row| is_ours(row));
        changes.removed.retain(|removed| removed.key.kind == self.kind);
        changes
    }
}
