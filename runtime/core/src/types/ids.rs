//! Newtypes for identities and versions.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Identity of one resource from its creation to the end of its deletion, through renames; never used again.
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
            /// The one after this.
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
    /// Version of the catalog: plus one for every batch of changes, never reused. A resource's revision is that
    /// of its last stored change.
    Revision
}
number! {
    /// Rises with every change of a resource's spec, refs, name or deletion. A new resource has 1.
    SpecVersion
}
number! {
    /// Rises with every change of a resource's state. 0 before the first state is written.
    StateVersion
}
number! {
    /// Counts the holders of an instance's lease. Every commit is conditional on it.
    Epoch
}
number! {
    /// One invocation, in the order of their starts. Unique within one [`Epoch`].
    InvocationId
}
number! {
    /// A caller's request, numbered by the host; unique for the life of a [`Core`](crate::Core).
    CallId
}
number! {
    /// One transaction of the store. A commit that is tried again keeps its id.
    CommitId
}

/// The two counters that a refresh raises and a reconciler compares with those in its state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Refreshes {
    /// Do the work again.
    pub plain: u64,
    /// Do it again and forget incremental state.
    pub full: u64,
}
