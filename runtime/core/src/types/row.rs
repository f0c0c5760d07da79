//! One stored resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::edit::no_labels;
use crate::{
    Error, Key, Kind, LastRun, Name, Ref, Refreshes, RetryPolicy, Revision, SpecVersion, StateVersion,
    Timestamp, Uid,
};

/// That a resource is to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deletion {
    /// The time at which it was requested.
    pub at: Timestamp,
    /// The revision of that edit: of several deleted ones of one name, the last is the one that a create takes up.
    #[serde(default)]
    pub revision: Revision,
}

/// Pending operations of a resource: it is no regular work before they are done.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Intents {
    /// Set while a delete is not finished. Such a resource is not live: its name is free.
    pub deletion: Option<Deletion>,
    /// Every name since the last completed rename, oldest first, without the present one's spelling. Empty
    /// when no rename is unfinished.
    pub former_names: Arc<[Name]>,
}

impl Intents {
    /// Returns true if a delete is unfinished.
    pub fn is_deleted(&self) -> bool {
        self.deletion.is_some()
    }

    /// Returns true if a rename is unfinished.
    pub fn is_renamed(&self) -> bool {
        !self.former_names.is_empty()
    }
}

/// A resource with all of its stored columns, except the instance, which is the store's.
///
/// Rows are shared: a change makes a new one, so a snapshot stays what it was.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// let new = NewResource::new(uid, "page", "Home", *b"hello");
/// let call = Call::Apply(Edit::create(new).into());
/// core.handle(now, Input::Call { id: CallId(1), by: None, call }, &mut effects);
/// # core.flush(now, &mut effects);
/// # let row = effects.iter().find_map(|effect| match effect {
/// #     Effect::Commit(commit) => commit.writes.iter().find_map(|write| match write {
/// #         Write::Put(row) => Some(row.clone()),
/// #         Write::Remove(_) => None,
/// #     }),
/// #     _ => None,
/// # });
/// # let row = row.expect("it is to be stored");
/// // What is stored of it:
/// assert_eq!(row.key(), Key::new("page", "home"));
/// assert_eq!((row.revision, row.spec_version), (Revision(1), SpecVersion(1)));
/// assert!(row.error.is_none() && row.state.is_none());
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Identity, and the key of the row within its instance.
    pub uid: Uid,
    /// Registered type.
    pub kind: Kind,
    /// Present name.
    pub name: Name,
    /// The resources that it reads.
    pub refs: Arc<[Ref]>,
    /// The resource that it belongs to.
    pub owner: Option<Uid>,
    /// Files that declare it.
    pub paths: Arc<[Arc<str>]>,
    /// Free key-value pairs.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Unfinished delete and rename.
    pub intents: Intents,
    /// Catalog revision of its last stored change.
    pub revision: Revision,
    /// Version of spec, refs, name and deletion.
    pub spec_version: SpecVersion,
    /// Version of its state.
    pub state_version: StateVersion,
    /// The error of its last completed run, or the cycle that it is on.
    pub error: Option<Arc<Error>>,
    /// The reason why it can't be used yet, although its last completed run succeeded.
    pub unready: Option<Arc<str>>,
    /// The time at which it is to run again, as its last run returned it.
    pub next_reconcile: Option<Timestamp>,
    /// Failures in a row.
    pub attempts: u32,
    /// Retry policy of this resource; `None` means that of its kind.
    pub retry: Option<Arc<RetryPolicy>>,
    /// True if further reconciles are held back.
    pub paused: bool,
    /// Left out of listings unless requested.
    pub hidden: bool,
    /// Refresh counters.
    pub refreshes: Refreshes,
    /// The time at which it was created.
    pub created_at: Timestamp,
    /// The time at which it last changed.
    pub updated_at: Timestamp,
    /// Version of the spec's message.
    pub spec_format: u32,
    /// Version of the state's message; 0 while there is no state.
    pub state_format: u32,
    /// Invocations that returned.
    pub runs_total: u64,
    /// The last of them.
    pub last_run: Option<Arc<LastRun>>,
    /// The time at which a reconcile last succeeded.
    pub last_success: Option<Timestamp>,
    /// The desired spec: opaque here; equal specs have equal bytes.
    pub spec: Arc<[u8]>,
    /// The stored state. None before the first state was written.
    pub state: Option<Arc<[u8]>>,
}

impl Row {
    /// A row of which nothing but its identity and its name is known: no refs, an empty spec, never run.
    pub fn new(uid: Uid, kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        Self {
            uid,
            kind: kind.into(),
            name: name.into(),
            refs: Arc::default(),
            owner: None,
            paths: Arc::default(),
            labels: no_labels(),
            intents: Intents::default(),
            revision: Revision(0),
            spec_version: SpecVersion(0),
            state_version: StateVersion(0),
            error: None,
            unready: None,
            next_reconcile: None,
            attempts: 0,
            retry: None,
            paused: false,
            hidden: false,
            refreshes: Refreshes::default(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
            spec_format: 0,
            state_format: 0,
            runs_total: 0,
            last_run: None,
            last_success: None,
            spec: Arc::default(),
            state: None,
        }
    }

    /// Returns its key.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}
