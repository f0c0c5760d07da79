//! Edits of the catalog, alone or in a batch that takes effect whole or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::{Key, Kind, Name, Ref, RetryPolicy, Revision, SpecVersion, Uid};

/// A reference to a resource, as callers write it.
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
    /// Refers to a resource by kind and name.
    Key(Key),
    /// Refers to a resource by name alone; ambiguous if several kinds have one of that name.
    Name(Name),
    /// Refers to a resource by uid, which survives renames.
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

/// Parses `kind/name`, or a name alone: neither part contains a slash.
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

/// Preconditions of an edit. The revision is no precondition, because unrelated changes move it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Expect {
    /// Uid that the resource must have; none for any.
    pub uid: Option<Uid>,
    /// Spec version that the resource must have; none for any.
    pub spec_version: Option<SpecVersion>,
}

/// Columns of a resource that an edit creates.
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
    /// A fresh uid. Not used if a resource with this kind and name is updated or revived instead.
    pub uid: Uid,
    /// Kind of the resource; need not be registered here.
    pub kind: Kind,
    /// Name, unique among the live resources of its kind.
    pub name: Name,
    /// Resources that it reads.
    pub refs: Arc<[Ref]>,
    /// Desired spec, as opaque bytes.
    #[serde(with = "crate::types::bytes")]
    pub spec: Arc<[u8]>,
    /// Version of the spec message.
    pub spec_format: u32,
    /// Uid of the resource that owns it; none for no owner.
    pub owner: Option<Uid>,
    /// Files that declare it.
    pub paths: Arc<[Arc<str>]>,
    /// Free-form labels by key.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// True to leave the resource out of listings unless hidden resources are requested.
    pub hidden: bool,
    /// Retry policy of the resource; none for the policy of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
}

/// Returns the shared empty labels, which most resources have.
pub(crate) fn no_labels() -> Arc<BTreeMap<Arc<str>, Arc<str>>> {
    static NONE: LazyLock<Arc<BTreeMap<Arc<str>, Arc<str>>>> = LazyLock::new(Arc::default);
    NONE.clone()
}

/// Returns the slice, or a shared one without memory of its own if it is empty.
pub(crate) fn unless_empty<T>(all: Arc<[T]>) -> Arc<[T]> {
    if all.is_empty() { Arc::default() } else { all }
}

impl NewResource {
    /// Creates a resource with a spec and nothing else.
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

    /// Returns the kind and name.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }

    /// Sets a retry policy that replaces the one of the kind.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// Makes the resource belong to an owner, whose delete takes it along.
    #[must_use]
    pub fn with_owner(mut self, owner: Uid) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Adds a free-form label, replacing one with the same key.
    #[must_use]
    pub fn with_label(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Arc::make_mut(&mut self.labels).insert(key.into(), value.into());
        self
    }

    /// Hides the resource from listings that don't ask for hidden ones.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Replaces the refs: the resources that it reads.
    #[must_use]
    pub fn with_refs(mut self, refs: impl Into<Arc<[Ref]>>) -> Self {
        self.refs = refs.into();
        self
    }
}

/// New values for some columns; none leaves a column unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Update {
    /// New spec, with the version of its message.
    #[serde(with = "crate::types::bytes::with_format")]
    pub spec: Option<(Arc<[u8]>, u32)>,
    /// New list of resources that it reads.
    pub refs: Option<Arc<[Ref]>>,
    /// New list of files that declare it. Requests no run.
    pub paths: Option<Arc<[Arc<str>]>>,
    /// New labels, which replace all old ones. Requests no run.
    pub labels: Option<Arc<BTreeMap<Arc<str>, Arc<str>>>>,
    /// New owner, or the removal of the owner. Requests no run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub owner: Option<Option<Uid>>,
    /// True to leave the resource out of listings. Requests no run.
    pub hidden: Option<bool>,
    /// New retry policy, or a return to the kind's. Requests no run, and applies at once to a present failure.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub retry: Option<Option<RetryPolicy>>,
}

/// Reads a field that is present, even if null.
fn said<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Kind of an edit, with its data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// Creates a resource. The target must be its own kind and name; [`Edit::create`] sets that.
    Create(Box<NewResource>),
    /// Creates a resource, or replaces all columns of the live one with the same kind and name: omitted refs or labels
    /// are removed. Made by [`Edit::apply`].
    Apply(Box<NewResource>),
    /// Changes some columns.
    Update(Update),
    /// Gives the resource another name.
    Rename(Name),
    /// Deletes the resource through its reconciler.
    Delete,
    /// Deletes the resource at once, without its reconciler.
    ForceDelete,
}

/// A change of one resource, with its target and preconditions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Edit {
    /// Resource to edit, as it was before the batch.
    pub target: Target,
    /// Preconditions of the edit.
    pub expect: Expect,
    /// Change of the target: creation, new columns, another name, or deletion.
    pub change: Change,
    /// Origin of the edit, as text for people: the path of a file, for instance. None if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
}

impl Edit {
    /// Creates an edit that creates a resource.
    pub fn create(new: NewResource) -> Self {
        Self {
            target: Target::Key(new.key()),
            expect: Expect::default(),
            change: Change::Create(Box::new(new)),
            origin: None,
        }
    }

    /// Creates an edit that creates a resource, or replaces all columns of a live one.
    pub fn apply(new: NewResource) -> Self {
        Self {
            target: Target::Key(new.key()),
            expect: Expect::default(),
            change: Change::Apply(Box::new(new)),
            origin: None,
        }
    }

    /// Creates an edit that changes some columns.
    pub fn update(target: impl Into<Target>, update: Update) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Update(update),
            origin: None,
        }
    }

    /// Creates an edit that renames a resource.
    pub fn rename(target: impl Into<Target>, name: impl Into<Name>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Rename(name.into()),
            origin: None,
        }
    }

    /// Creates an edit that deletes a resource through its reconciler.
    pub fn delete(target: impl Into<Target>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::Delete,
            origin: None,
        }
    }

    /// Creates an edit that deletes a resource without its reconciler.
    pub fn force_delete(target: impl Into<Target>) -> Self {
        Self {
            target: target.into(),
            expect: Expect::default(),
            change: Change::ForceDelete,
            origin: None,
        }
    }

    /// Sets the origin of the edit.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Sets the preconditions; if one does not hold, the edit is refused.
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
    /// Edits in any order: they take effect at the same time.
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

/// Result of an applied batch.
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
    /// Revision of the catalog with the batch; unchanged if the batch changed nothing.
    pub revision: Revision,
    /// Uid of the resource that each edit concerned, in the order of the edits.
    pub uids: Vec<Uid>,
}
