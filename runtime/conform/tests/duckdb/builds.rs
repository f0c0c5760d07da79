//! Builds of tests.

use uuid::Uuid;
use watershed_drivers::olap::{Build, Fate, Hooks, OutputKind, Step, Tag};

/// A table, as a build of its own.
pub(crate) fn table(n: u128, name: &str, sql: &str) -> Build {
    Build {
        name: name.to_owned(),
        kind: OutputKind::Table,
        sql: sql.to_owned(),
        order_by: None,
        hooks: Hooks::default(),
        databases: Vec::new(),
        step: Step::Replace,
        is_brief: true,
        key: Vec::new(),
        checks: Vec::new(),
        state: None,
        tag: Tag {
            uid: Uuid::from_u128(n),
            build: Uuid::from_u128(n << 64),
        },
        record: Vec::new(),
        stage: None,
        replaced: Fate::Gone,
        unless_rows: None,
        put_columns: None,
        reads: None,
    }
}
