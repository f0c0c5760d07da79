//! Tables of the catalog in Postgres, and the migration of older catalogs.
//!
//! As in SQLite every table's name begins with the embedder's prefix, and the version of the schema is the highest
//! row of our own migrations table. An advisory lock keeps processes that start together from migrating together.

use sqlx::{AssertSqlSafe, PgPool, Row};

use super::super::{StoreError, TablePrefix};
use super::database;
use super::transaction::Transaction;

/// A step from one schema version to the next.
#[derive(Debug, Clone, Copy)]
struct Migration {
    version: i32,
    /// Description of the step, for people who look into the database.
    name: &'static str,
    /// SQL statements, with `{p}` for the prefix of tables.
    sql: &'static str,
}

/// All steps, oldest first, without gaps. A released step is never changed, only followed by another.
const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "instances, resources, history",
        sql: INITIAL,
    },
    Migration {
        version: 2,
        name: "calls of other processes",
        sql: CALLS,
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

/// Statement for the table of migrations that were done.
const MIGRATIONS_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS {p}migrations (
        version INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    )";

/// Tables of the first version. Names have no unique index, because it is checked row by row, which would refuse a swap
/// of two names. Times are milliseconds since 1970; those of leases are the server's.
const INITIAL: &str = "
    CREATE TABLE {p}instances (
        instance TEXT PRIMARY KEY,
        epoch BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        removed_at BIGINT NOT NULL DEFAULT 0,
        holder UUID,
        expires_at TIMESTAMPTZ NOT NULL
    );

    CREATE TABLE {p}resources (
        instance TEXT NOT NULL,
        epoch BIGINT NOT NULL,
        uid UUID NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        refs TEXT NOT NULL,
        owner_uid UUID,
        paths TEXT NOT NULL,
        labels TEXT NOT NULL,
        marks TEXT NOT NULL,
        revision BIGINT NOT NULL,
        spec_version BIGINT NOT NULL,
        state_version BIGINT NOT NULL,
        error TEXT,
        next_reconcile BIGINT,
        attempts BIGINT NOT NULL,
        paused BOOLEAN NOT NULL,
        hidden BOOLEAN NOT NULL,
        refresh_plain BIGINT NOT NULL,
        refresh_full BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL,
        spec_format BIGINT NOT NULL,
        state_format BIGINT NOT NULL,
        runs_total BIGINT NOT NULL,
        last_run TEXT,
        last_success BIGINT,
        spec BYTEA NOT NULL,
        state BYTEA,
        PRIMARY KEY (instance, uid)
    ) WITH (fillfactor = 80);

    CREATE TABLE {p}history (
        instance TEXT NOT NULL,
        uid UUID NOT NULL,
        epoch BIGINT NOT NULL,
        invocation BIGINT NOT NULL,
        revision BIGINT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        ended_at BIGINT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (instance, uid, epoch, invocation)
    );

    CREATE INDEX {p}history_by_age ON {p}history (instance, ended_at)";

/// Migration that adds the retry policy of a resource; null means the policy of its kind.
const RETRY: &str = "ALTER TABLE {p}resources ADD COLUMN retry TEXT";

/// Migration that adds the readiness of a resource. Resources that were stored before count as ready.
const UNREADY: &str = "ALTER TABLE {p}resources ADD COLUMN unready TEXT";

/// Migration for calls of other processes and for followers: tables of calls and of removals, and indexes by revision.
const CALLS: &str = "
    CREATE TABLE {p}calls (
        instance TEXT NOT NULL,
        number BIGINT GENERATED ALWAYS AS IDENTITY,
        id UUID PRIMARY KEY,
        caller UUID NOT NULL,
        call TEXT NOT NULL,
        taken_by BIGINT NOT NULL DEFAULT 0,
        first TEXT,
        outcome TEXT,
        settled TEXT,
        done BOOLEAN NOT NULL DEFAULT FALSE,
        revision BIGINT NOT NULL DEFAULT 0,
        touched_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    );

    CREATE INDEX {p}calls_open ON {p}calls (instance, number) WHERE NOT done;

    CREATE INDEX {p}calls_of_caller ON {p}calls (caller);

    CREATE TABLE {p}removals (
        instance TEXT NOT NULL,
        uid UUID NOT NULL,
        revision BIGINT NOT NULL,
        PRIMARY KEY (instance, uid)
    );

    CREATE INDEX {p}removals_by_revision ON {p}removals (instance, revision);

    CREATE INDEX {p}resources_by_revision ON {p}resources (instance, revision)";

/// Runs the migrations that the database lacks, in one transaction. A newer database is not changed.
pub(super) async fn migrate(pool: &PgPool, prefix: &TablePrefix) -> Result<(), StoreError> {
    let failed = database("migrate the catalog");
    let mut transaction = Transaction::begin(pool).await.map_err(&failed)?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    let lock = sqlx::query(lock).bind(prefix.apply("{p}migrations"));
    lock.execute(&mut *transaction).await.map_err(&failed)?;
    let table = prefix.apply(MIGRATIONS_TABLE);
    let table = sqlx::raw_sql(AssertSqlSafe(table));
    table.execute(&mut *transaction).await.map_err(&failed)?;
    let highest = prefix.apply("SELECT coalesce(max(version), 0) FROM {p}migrations");
    let highest = sqlx::query(AssertSqlSafe(highest)).fetch_one(&mut *transaction);
    let found: i32 = highest.await.and_then(|row| row.try_get(0)).map_err(&failed)?;
    let known = MIGRATIONS.last().map_or(0, |step| step.version);
    if found > known {
        let (found, known) = (found.unsigned_abs(), known.unsigned_abs());
        return Err(StoreError::Newer { found, known });
    }
    for step in MIGRATIONS.iter().filter(|step| step.version > found) {
        let sql = sqlx::raw_sql(AssertSqlSafe(prefix.apply(step.sql)));
        sql.execute(&mut *transaction).await.map_err(&failed)?;
        let record = prefix.apply("INSERT INTO {p}migrations (version, name) VALUES ($1, $2)");
        let record = sqlx::query(AssertSqlSafe(record))
            .bind(step.version)
            .bind(step.name);
        record.execute(&mut *transaction).await.map_err(&failed)?;
    }
    transaction.commit().await.map_err(failed)
}
