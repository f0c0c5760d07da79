//! Edits of the catalog, alone or as a batch that takes effect whole or not at all.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use crate::{Key, Kind, Name, Ref, Revision, SpecVersion, Uid};

/// What a caller means by a resource.
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

impl From<Uid> for Target {
    fn from(uid: Uid) -> Self {
        Target::Uid(uid)
    }
}

/// What an edit expects to find. Never the revision, which others' work moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Expect {
    /// The name stands for this resource.
    pub uid: Option<Uid>,
    /// Its spec version is this.
    pub spec_version: Option<SpecVersion>,
}

/// A resource to be created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewResource {
    /// Fresh identity. Not used if a resource of this kind and name is taken up again.
    pub uid: Uid,
    /// Its kind; need not be registered here.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// What it reads.
    pub refs: Arc<[Ref]>,
    /// What is wanted.
    #[serde(with = "crate::bytes")]
    pub spec: Arc<[u8]>,
    /// Version of the spec's message.
    pub spec_format: u32,
    /// The resource that it belongs to.
    pub owner: Option<Uid>,
    /// Files that declare it.
    pub paths: Arc<[Arc<str>]>,
    /// Free key-value pairs.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Left out of listings unless asked for.
    pub hidden: bool,
}

/// What a resource without labels has: most have none, and share it.
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
        }
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
    #[serde(with = "crate::bytes::with_format")]
    pub spec: Option<(Arc<[u8]>, u32)>,
    /// What it reads.
    pub refs: Option<Arc<[Ref]>>,
    /// Files that declare it. Asks for nothing.
    pub paths: Option<Arc<[Arc<str>]>>,
    /// Free key-value pairs. Asks for nothing.
    pub labels: Option<Arc<BTreeMap<Arc<str>, Arc<str>>>>,
    /// The resource that it belongs to, or none. Asks for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "said")]
    pub owner: Option<Option<Uid>>,
    /// Whether it is left out of listings. Asks for nothing.
    pub hidden: Option<bool>,
}

/// An owner that is there, be it none, is one that was spoken of.
fn said<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Uid>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What an edit does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Change {
    /// A new resource. Its target is its own kind and name; [`Edit::create`] sees to that.
    Create(Box<NewResource>),
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
    /// What it is expected to be.
    pub expect: Expect,
    /// What is done to it.
    pub change: Change,
    /// Where it comes from, in words to be shown to people: the path of a file, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Arc<str>>,
}

impl Edit {
    /// A create.
    pub fn create(new: NewResource) -> Self {
        let target = Target::Key(Key {
            kind: new.kind.clone(),
            name: new.name.clone(),
        });
        Self {
            target,
            expect: Expect::default(),
            change: Change::Create(Box::new(new)),
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
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    /// The edits.
    pub edits: Vec<Edit>,
}

impl From<Edit> for Batch {
    fn from(edit: Edit) -> Self {
        Self { edits: vec![edit] }
    }
}

/// What a batch came to, committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The catalog's revision with the batch in it; unchanged if the batch changed nothing.
    pub revision: Revision,
    /// For each edit, the resource that it was about.
    pub uids: Vec<Uid>,
}
