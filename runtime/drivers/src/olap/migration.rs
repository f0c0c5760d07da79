//! SQL that is run once, with the record that says so and says what it left for everybody.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Failure;

/// An engine in which statements of a person's can be run once.
pub trait Migrations: Send + Sync {
    /// Runs statements of a person's, and records that in the same transaction together with what they left for
    /// everybody: the difference of the engine's catalog before and after. Returns all that was left by the runs for
    /// this resource.
    fn run<'a>(
        &'a self,
        migration: &'a Migration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Left, Failure>>;

    /// Returns the migration last run for a resource or, if there is none, the equal one run for another.
    fn last<'a>(
        &'a self,
        uid: Uuid,
        proof: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Migrated>, Failure>>;

    /// Forgets what was run for a resource; what that did stays, but for functions that it made: they are dropped.
    /// Returns whether anything was run.
    fn forget<'a>(&'a self, uid: Uuid, cancel: &'a CancellationToken)
    -> BoxFuture<'a, Result<bool, Failure>>;
}

/// SQL to be run once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// The resource.
    pub uid: Uuid,
    /// The version that it is run for.
    pub version: u32,
    /// This run; never used again.
    pub run: Uuid,
    /// Stands for what is run.
    pub proof: String,
    /// One or more statements.
    pub sql: String,
    /// The bytes to keep beside a thing that it makes, by the thing's name in lower case; opaque here.
    pub definitions: BTreeMap<String, Vec<u8>>,
    /// Names of tables whose rows it may change, in lower case.
    pub mentions: BTreeSet<String>,
    /// It is an edited text that takes the place of the one before: functions that that one made are dropped first,
    /// in the same transaction.
    pub replaces: bool,
}

/// The migration that was run last for a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The version that it was run for.
    pub version: u32,
    /// Stands for what was run.
    pub proof: String,
    /// The things and settings that it left.
    pub left: Left,
}

/// The things and settings that a migration left in the engine for everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Things that it made, or whose rows it may have changed; ordered by name.
    pub things: Vec<Thing>,
    /// Settings that it changed, and to which values. Every process that opens the file makes them again.
    pub settings: BTreeMap<String, String>,
}

/// A thing that a migration made or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// The kind of thing.
    pub kind: ThingKind,
    /// The schema that holds it.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The run that made or changed it last.
    pub run: Uuid,
    /// The bytes that were given to be kept beside it, if the run had something to say of it.
    pub definition: Option<Vec<u8>>,
}

/// A kind of thing in the engine's catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThingKind {
    /// A macro that yields a value.
    Function,
    /// A macro that yields a table.
    TableFunction,
    /// A table.
    Table,
    /// A view.
    View,
    /// A type.
    Type,
    /// A sequence.
    Sequence,
}

impl ThingKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Function,
        Self::TableFunction,
        Self::Table,
        Self::View,
        Self::Type,
        Self::Sequence,
    ];

    /// A stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::TableFunction => "table_function",
            Self::Table => "table",
            Self::View => "view",
            Self::Type => "type",
            Self::Sequence => "sequence",
        }
    }

    /// Reads a stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether all that there is of it is its definition: it holds no rows.
    pub fn is_definition(self) -> bool {
        !matches!(self, Self::Table | Self::Sequence)
    }
}

impl fmt::Display for ThingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
