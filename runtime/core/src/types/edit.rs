//! Edits of the catalog, alone or in a batch that takes effect whole or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::{Key, Kind, Name, Ref, RetryPolicy, Revision, SpecVersion, Uid};

/// A reference to a resource, as callers make it.
///
/// ```
/// use watershed_core::{Key, Name, Target, Uid};
///
/// let uid = Uid(uuid::Uuid::from_u128(1));
/// assert_eq!(Target::from(Key::new("page", "home")), Target::Key(Key::new("page", "home")));
/// assert_eq!(Target::from(uid), Target::Uid(uid));
/// assert_eq!(Target::from("page/home"), Target::Key(Key::new("page", "home")));
/// assert_eq!(Target::from("home"), Target::Name(Name::new("home")));
/// assert_eq!(Target::Name(Name::new("Home")), Target::Name(Name::new("home")));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Target {
    /// By kind and name.
    Key(Key),
    /// By name alone; ambiguous if several kinds have it.
    Name(Name),
    /// By identity.
    Uid(Uid),
}

impl From<Key> for Target {
    fn from(key: Key) -> Self {
        Target::Key(key)
    }
}

impl From<&Key> for Target {
    fn from(key: &Key) -> Self {
        Target::Key(key.clone())
    }
}

impl From<Name> for Target {
    fn from(name: Name) -> Self {
        Target::Name(name)
    }
}

/// `kind/name`, or a name alone: neither has a slash in it.
impl From<&str> for Target {
    fn from(text: &str) -> Self {
        match text.split_once('/') {
            Some((kind, name)) => Target::Key(Key::new(kind, name)),
            None => Target::Name(Name::new(text)),
        }
    }
}

impl From<&String> for Target {
    fn from(text: &String) -> Self {
        Target::from(text.as_str())
    }
}

impl From<String> for Target {
    fn from(text: String) -> Self {
        Target::from(text.as_str())
    }
}

impl From<Uid> for Target {
    fn from(uid: Uid) -> Self {
        Target::Uid(uid)
    }
}

/// The preconditions of an edit. Never the revision, which others' work moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Expect {
    /// The name stands for this resource.
    pub uid: Option<Uid>,
    /// Its spec version is this.
    pub spec_version: Option<SpecVersion>,
}

/// A resource to be created.
///
/// ```
/// use watershed_core::{NewResource, Ref, Uid};
///
/// let uid = Uid(uuid::Uuid::from_u128(1));
/// let new = NewResource::new(uid, "page", "home", *b"hello").with_refs([Ref::completed("style", "plain")]);
/// assert_eq!(&*new.spec, b"hello");
/// assert_eq!(new.refs.len(), 1);
/// assert!(new.owner.is_none() && !new.hidden);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewResource {
    /// Fresh identity. Not used if a resource of this kind and name is taken up again.
    pub uid: Uid,
    /// Its kind; need not be registered here.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// The resources that it reads.
    pub refs: Arc<[Ref]>,
    /// The desired spec.
    #[serde(with = "crate::types::bytes")]
    pub spec: Arc<[u8]>,
    /// Version of the spec's message.
    pub spec_format: u32,
    /// The resource that it belongs to.
    pub owner: Option<Uid>,
    /// Files that declare it.
    pub paths: Arc<[Arc<str>]>,
    /// Free key-value pairs.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Left out of listings unless requested.
    pub hidden: bool,
    /// Its own policy for retries; none for what its kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
}

/// Returns the empty labels: most resources have none, and share them.
pub(crate) fn no_labels() -> Arc<BTreeMap<Arc<str>, Arc<str>>> {
    static NONE: LazyLock<Arc<BTreeMap<Arc<str>, Arc<str>>>> = LazyLock::new(Arc::default);
    NONE.clone()
}

/// The same, which needs no memory of its own if there is nothing in it.
pub(crate) fn unless_empty<T>(all: Arc<[T]>) -> Arc<[T]> {
    if all.is_empty() { Arc::default() } else { all }
}

impl NewResource {
    /// One with a spec and nothing else.
    pub fn new(uid: Uid, kind: impl Into<Kind>, name: impl Into<Name>, spec: impl Into<Arc<[u8]>>) -> Self {
        Self {
            uid,
            kind: kind.into(),
            name: name.into(),
            refs: Arc::default(),
            spec: spec.into(),
            spec_format: 1,
            owner: None,
            paths: Arc::default(),
            labels: no_labels(),
            hidden: false,
            retry: None,
        }
    }

    /// Returns its kind and name.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }

    /// The same with a policy of its own for retries, instead of that of its kind.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// The same as something that belongs to this resource.
    #[must_use]
    pub fn with_owner(mut self, owner: Uid) -> Self {
        self.owner = Some(owner);
        self
    }

    /// The same with one more label.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Arc::make_mut(&mut self.labels).insert(key.into(), value.into());
        self
    }

    /// The same, left out of listings unless they ask for hidden ones.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// The same with these refs.
    #[must_use]
    pub fn with_refs(mut self, refs: impl Into<Arc<[Ref]>>) -> Self {
        self.refs = refs.into();
        self
    }
}

/// New values for some columns; None leaves a column alone.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Update {
    /// The spec and the version of its message.
    #[serde(with = "crate::types::bytes::with_format")]
    pub spec: Option<(Arc<[u8]>, u32)>,
    /// The resources that it reads.
    pub refs: Option<Arc<[Ref]>>,
    /// Files that declare it. Requests nothing.
    pub paths: Option<Arc<[Arc<str>]>>,
    /// Free key-value pairs. Requests nothing.
    pub labels: Option<Arc<BTreeMap<Arc<str>, Arc<str>>>>,
    /// The resource that it belongs to, or none. Requests nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub owner: Option<Option<Uid>>,
    /// True if it is left out of listings. Requests nothing.
    pub hidden: Option<bool>,
    /// Its own policy for retries, or none for that of its kind. Requests nothing, and holds at once: also for a
    /// failure that stands already.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub retry: Option<Option<RetryPolicy>>,
}

/// Reads a field that is present, be it null.
fn said<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// The change of an edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A new resource. Its target is its own kind and name; [`Edit::create`] sees to that.
    Create(Box<NewResource>),
    /// A new resource, or, where one of its kind and name is there, all of its columns for that one: what it does not
    /// say, refs and labels for instance, is taken away. Made by [`Edit::apply`].
    Apply(Box<NewResource>),
    /// New values for some columns.
    Update(Update),
    /// Another name.
    Rename(Name),
    /// Delete it by its reconciler.
    Delete,
    /// Delete it at once, giving up on the reconciler.
    ForceDelete,
}

/// One edit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edit {
    /// The resource, as it was before the batch.
    pub target: Target,
    /// The preconditions.
    pub expect: Expect,
    /// The change.
    pub change: Change,
    /// Its origin, as a text for people: the path of a file, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
}

impl Edit {
    /// A create.
    pub fn create(new: NewResource) -> Self {
        Self {
            target: Target::Key(new.key()),
            expect: Expect::default(),
            change: Change::Create(Box::new(new)),
            origin: None,
        }
    }

    /// A create or a full update, whichever is right when it is carried out.
    pub fn apply(new: NewResource) -> Self {
        Self {
            target: Target::Key(new.key()),
            expect: Expect::default(),
            change: Change::Apply(Box::new(new)),
            origin: None,
        }
    }

    /// An update.
    pub fn update(target: impl Into<Target>, update: Update) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Update(update),
            origin: None,
        }
    }

    /// A rename.
    pub fn rename(target: impl Into<Target>, name: impl Into<Name>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Rename(name.into()),
            origin: None,
        }
    }

    /// A delete by the reconciler.
    pub fn delete(target: impl Into<Target>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Delete,
            origin: None,
        }
    }

    /// A delete without the reconciler.
    pub fn force_delete(target: impl Into<Target>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::ForceDelete,
            origin: None,
        }
    }

    /// The same, saying where it comes from.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// The same, refused unless `expect` holds.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }
}

/// Edits that take effect together or not at all.
///
/// A batch names resources as they were before it and states how they are after it: its edits are simultaneous,
/// and their order never matters. Delete and create of one name are one full update of the same uid.
///
/// ```
/// use watershed_core::{Batch, Edit, Key};
///
/// // Two names change hands at once.
/// let swap = Batch {
///     edits: vec![Edit::rename(Key::new("page", "a"), "b"), Edit::rename(Key::new("page", "b"), "a")],
/// };
/// assert_eq!(swap.edits.len(), 2);
/// assert_eq!(Batch::from(Edit::delete(Key::new("page", "a"))).edits.len(), 1);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// The edits.
    pub edits: Vec<Edit>,
}

impl From<Vec<Edit>> for Batch {
    fn from(edits: Vec<Edit>) -> Self {
        Self { edits }
    }
}

impl From<Edit> for Batch {
    fn from(edit: Edit) -> Self {
        Self { edits: vec![edit] }
    }
}

/// The result of a committed batch.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// let new = NewResource::new(uid, "page", "home", *b"hello");
/// let call = Call::Apply(Edit::create(new).into());
/// core.handle(now, Input::Call { id: CallId(1), by: None, call }, &mut effects);
/// # let mut applied = None;
/// # for _ in 0..2 {
/// #     core.flush(now, &mut effects);
/// #     for effect in std::mem::take(&mut effects) {
/// #         match effect {
/// #             Effect::Commit(commit) => core.handle(now, Input::Committed(commit.id), &mut effects),
/// #             Effect::Answer { answer: Answer::Applied(answer), .. } => applied = Some(answer),
/// #             _ => {}
/// #         }
/// #     }
/// # }
/// // Once it is committed:
/// assert_eq!(applied, Some(Applied { revision: Revision(1), uids: vec![uid] }));
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The catalog's revision with the batch in it; unchanged if the batch changed nothing.
    pub revision: Revision,
    /// For each edit, the resource that it was about.
    pub uids: Vec<Uid>,
}
