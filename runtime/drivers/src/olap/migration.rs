//! Migrations: SQL that runs once, with a record of the run and of the objects it left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Failure;

/// An engine that can run migrations.
pub trait Migrations: Send + Sync {
    /// Runs a migration's statements, and records in the same transaction the run and the objects it left: the
    /// difference of the catalog before and after. Returns all objects and settings that this resource's runs have
    /// left.
    fn run<'a>(
        &'a self,
        migration: &'a Migration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Left, Failure>>;

    /// Returns the last migration of a resource; if there is none, an identical one of another resource.
    fn last<'a>(
        &'a self,
        uid: Uuid,
        proof: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Migrated>, Failure>>;

    /// Forgets the migrations of a resource and drops the functions that they made; other objects stay. Returns true if
    /// any had run.
    fn forget<'a>(&'a self, uid: Uuid, cancel: &'a CancellationToken)
    -> BoxFuture<'a, Result<bool, Failure>>;
}

/// A migration to run once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Uid of the migration's resource.
    pub uid: Uuid,
    /// Version for which the migration runs.
    pub version: u32,
    /// Unique id of this run.
    pub run: Uuid,
    /// Proof: a fingerprint of the statements.
    pub proof: String,
    /// The statements, one or more.
    pub sql: String,
    /// Bytes to store beside created objects, by their names in lower case; opaque to the engine.
    pub definitions: BTreeMap<String, Vec<u8>>,
    /// Names of tables whose rows may change, in lower case.
    pub mentions: BTreeSet<String>,
    /// True if the text replaces an edited one, whose functions are dropped first in the same transaction.
    pub replaces: bool,
}

/// The last migration of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// Version for which the migration ran.
    pub version: u32,
    /// Proof: a fingerprint of the statements that ran.
    pub proof: String,
    /// Objects and settings that the runs left.
    pub left: Left,
}

/// The objects and settings that migrations left in the engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Left {
    /// Objects that were created, or whose rows may have changed, ordered by name.
    pub things: Vec<Thing>,
    /// Changed settings with their values, which every process that opens the file applies again.
    pub settings: BTreeMap<String, String>,
}

/// An object that a migration created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Kind of the object.
    pub kind: ThingKind,
    /// Name of the object's schema.
    pub schema: String,
    /// Name of the object.
    pub name: String,
    /// Id of the run that last created or changed the object.
    pub run: Uuid,
    /// Bytes stored beside the object; none if the run gave none.
    pub definition: Option<Vec<u8>>,
}

/// A kind of object in the engine's catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThingKind {
    /// A scalar macro.
    Function,
    /// A table macro.
    TableFunction,
    /// A table with rows.
    Table,
    /// A view, stored as its query.
    View,
    /// A user-defined type.
    Type,
    /// A sequence of numbers.
    Sequence,
}

impl ThingKind {
    /// All kinds of objects.
    pub const ALL: [Self; 6] = [
        Self::Function,
        Self::TableFunction,
        Self::Table,
        Self::View,
        Self::Type,
        Self::Sequence,
    ];

    /// Returns the stable name of the kind.
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

    /// Parses the stable name of a kind.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns true if objects of this kind consist of their definition and hold no rows.
    pub fn is_definition(self) -> bool {
        !matches!(self, Self::Table | Self::Sequence)
    }
}

impl fmt::Display for ThingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
