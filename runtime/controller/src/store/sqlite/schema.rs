//! Tables of the catalog in SQLite, and the migration of older catalogs.
//!
//! Every table's name begins with the embedder's [`TablePrefix`](super::TablePrefix), so that a catalog can live among other tables.
//! The version of the schema is the highest row of our own migrations table; nobody else's is read or written.

/// A step from one schema version to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    /// Schema version after the step.
    pub(super) version: u32,
    /// Description of the step, for people who look into the database.
    pub(super) name: &'static str,
    /// SQL statements, with `{p}` for the prefix of tables.
    pub(super) sql: &'static str,
}

/// All steps, oldest first, without gaps. A released step is never changed, only followed by another.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "instances, resources, history",
        sql: INITIAL,
    },
    Migration {
        version: 2,
        name: "the revision of the last removal",
        sql: LAST_REMOVAL,
    },
    Migration {
        version: 3,
        name: "retries of single resources",
        sql: RETRY,
    },
    Migration {
        version: 4,
        name: "readiness of resources",
        sql: UNREADY,
    },
];

/// Columns of resources that were added after the first version, each with that version.
pub(super) const LATER_COLUMNS: [(&str, u32); 2] = [("retry", 3), ("unready", 4)];

/// Schema version after every step.
pub(super) const NEWEST: u32 = MIGRATIONS[MIGRATIONS.len() - 1].version;

/// Oldest schema version that can be read without a migration.
pub(super) const OLDEST_READABLE: u32 = 1;

/// SQL statement that creates the table of applied migrations.
pub(super) const MIGRATIONS_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS {p}migrations (
        version INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at INTEGER NOT NULL
    )";

/// Migration that adds the revision of the last removal. Earlier removals are unknown, so no watcher resumes from
/// before.
const LAST_REMOVAL: &str = "
    ALTER TABLE {p}instances ADD COLUMN removed_at INTEGER NOT NULL DEFAULT 0;
    UPDATE {p}instances SET removed_at = revision";

/// Migration that adds the retry policy of a resource; null means the policy of its kind.
const RETRY: &str = "ALTER TABLE {p}resources ADD COLUMN retry TEXT";

/// Migration that adds the readiness of a resource. Resources that were stored before count as ready.
const UNREADY: &str = "ALTER TABLE {p}resources ADD COLUMN unready TEXT";

/// Tables of the first version. Names have no unique index, because it is checked row by row, which would refuse a swap
/// of two names. Times are milliseconds since 1970.
const INITIAL: &str = "
    CREATE TABLE {p}instances (
        instance TEXT PRIMARY KEY,
        epoch INTEGER NOT NULL,
        revision INTEGER NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE {p}resources (
        instance TEXT NOT NULL,
        uid BLOB NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        refs TEXT NOT NULL,
        owner_uid BLOB,
        paths TEXT NOT NULL,
        labels TEXT NOT NULL,
        marks TEXT NOT NULL,
        revision INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        spec_version INTEGER NOT NULL,
        state_version INTEGER NOT NULL,
        error TEXT,
        next_reconcile INTEGER,
        attempts INTEGER NOT NULL,
        paused INTEGER NOT NULL,
        hidden INTEGER NOT NULL,
        refresh_plain INTEGER NOT NULL,
        refresh_full INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        spec_format INTEGER NOT NULL,
        state_format INTEGER NOT NULL,
        runs_total INTEGER NOT NULL,
        last_run BLOB,
        last_success INTEGER,
        spec BLOB NOT NULL,
        state BLOB,
        PRIMARY KEY (instance, uid)
    ) WITHOUT ROWID;

    CREATE TABLE {p}history (
        instance TEXT NOT NULL,
        uid BLOB NOT NULL,
        invocation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        epoch INTEGER NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        ended_at INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (instance, uid, epoch, invocation)
    ) WITHOUT ROWID;

    CREATE INDEX {p}history_by_age ON {p}history (instance, ended_at)";
