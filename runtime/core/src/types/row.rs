//! The stored row of a resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::types::edit::no_labels;
use crate::{
    Error, Key, Kind, LastRun, Name, Ref, Refreshes, RetryPolicy, Revision, SpecVersion, StateVersion,
    Timestamp, Uid,
};

/// The mark of a resource that is to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Deletion {
    /// Time at which the delete was requested.
    pub at: Timestamp,
    /// Revision of the edit. Among several deleted resources of one name, a create revives the last.
    #[serde(default)]
    pub revision: Revision,
}

/// Unfinished operations of a resource, which come before its regular work.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Intents {
    /// Mark of an unfinished delete; none for a live resource. The name of a deleted resource is free.
    pub deletion: Option<Deletion>,
    /// Names since the last completed rename, oldest first, without the present spelling. Empty when no rename is
    /// unfinished.
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

/// A resource with all of its stored columns, except the instance, which the store adds.
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
    /// Identity of the resource, and the key of the row within its instance.
    pub uid: Uid,
    /// Kind, which decides the reconciler.
    pub kind: Kind,
    /// Present name, unique among the live resources of the kind.
    pub name: Name,
    /// Resources that it reads.
    pub refs: Arc<[Ref]>,
    /// Uid of the resource that owns it; none for no owner.
    pub owner: Option<Uid>,
    /// Files that declare it.
    pub paths: Arc<[Arc<str>]>,
    /// Free-form labels by key.
    pub labels: Arc<BTreeMap<Arc<str>, Arc<str>>>,
    /// Unfinished delete and rename.
    pub intents: Intents,
    /// Revision of the last stored change.
    pub revision: Revision,
    /// Counter of changes to spec, refs, name or deletion.
    pub spec_version: SpecVersion,
    /// Counter of changes to the state.
    pub state_version: StateVersion,
    /// Error of the last completed run, or of the cycle that the resource is on.
    pub error: Option<Arc<Error>>,
    /// Reason why the resource can't be used yet, although its last completed run succeeded; none if it can.
    pub unready: Option<Arc<str>>,
    /// Time of the next run, as the last run returned it; none if none is planned.
    pub next_reconcile: Option<Timestamp>,
    /// Number of failures in a row.
    pub attempts: u32,
    /// Retry policy of this resource; none for the policy of its kind.
    pub retry: Option<Arc<RetryPolicy>>,
    /// True if further reconciles are held back.
    pub paused: bool,
    /// True if left out of listings unless hidden resources are requested.
    pub hidden: bool,
    /// Counters of requested refreshes.
    pub refreshes: Refreshes,
    /// Time at which the resource was first created.
    pub created_at: Timestamp,
    /// Time of the last stored change.
    pub updated_at: Timestamp,
    /// Version of the spec message.
    pub spec_format: u32,
    /// Version of the state message; 0 while there is no state.
    pub state_format: u32,
    /// Number of runs so far, in any phase and with any result.
    pub runs_total: u64,
    /// The last of these invocations; none before the first.
    pub last_run: Option<Arc<LastRun>>,
    /// Time of the last successful reconcile; none before the first.
    pub last_success: Option<Timestamp>,
    /// Desired spec, opaque here; equal specs have equal bytes.
    pub spec: Arc<[u8]>,
    /// Stored state, opaque here; none before the first is written.
    pub state: Option<Arc<[u8]>>,
}

impl Row {
    /// Creates a row with only an identity and a name: no refs, an empty spec, never run.
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

    /// Returns the kind and name.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}
