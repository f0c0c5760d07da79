//! Newtypes for identities and versions.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identity of a resource from its creation to the end of its deletion, through renames; never reused.
///
/// Handed in with the create, so that the core stays free of randomness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Uid(pub Uuid);

impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (high, low) = self.0.as_u64_pair();
        state.write_u64(high);
        state.write_u64(low);
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
        )]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the number that follows this one.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Version of the catalog: rises by one with every batch of changes, and is never reused. A resource has the
    /// revision of its last stored change.
    Revision
}
number! {
    /// Counter of changes to a resource's spec, refs, name or deletion; 1 for a new resource.
    SpecVersion
}
number! {
    /// Counter of changes to a resource's state; 0 before the first state is written.
    StateVersion
}
number! {
    /// Counter of the holders of an instance's lease. Every commit is conditional on it.
    Epoch
}
number! {
    /// Id of an invocation, in the order of starts; unique within one [`Epoch`].
    InvocationId
}
number! {
    /// Id of a call, assigned by the host; unique for the life of a [`Core`](crate::Core).
    CallId
}
number! {
    /// Id of a transaction of the store, which a retry keeps.
    CommitId
}

/// Counters that a refresh raises, and that a reconciler compares with those in its state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Refreshes {
    /// Counter of requests to do the work again.
    pub plain: u64,
    /// Counter of requests to do the work again and forget incremental state.
    pub full: u64,
}
