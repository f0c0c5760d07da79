//! Builds used by the tests.

use uuid::Uuid;
use watershed_drivers::olap::{Build, OutputKind, Tag};

/// Returns a build of a table.
pub(crate) fn table(n: u128, name: &str, sql: &str) -> Build {
    let tag = Tag {
        uid: Uuid::from_u128(n),
        build: Uuid::from_u128(n << 64),
    };
    Build::of_statement(tag, Vec::new(), OutputKind::Table, name, sql)
}
