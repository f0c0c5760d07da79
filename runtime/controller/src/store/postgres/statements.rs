//! SQL statements of the store, built once. Rows are passed as one array per column, so that one prepared statement
//! writes any number of them.

use std::sync::Arc;

use super::super::columns::{Column, HISTORY, RESOURCE, names};
use super::super::{HISTORY_PER_RESOURCE, TablePrefix, WORK_IN_HISTORY};
use super::dialect::name_of;

/// Text of every statement.
///
/// Whoever locks the row of an instance for longer than a statement says with it how long the server may wait for the
/// rest of the transaction: a holder that stands still in the middle of a commit must not keep the next one out.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) take: Arc<str>,
    pub(super) held_for: Arc<str>,
    pub(super) renew: Arc<str>,
    pub(super) release: Arc<str>,
    pub(super) notify: Arc<str>,
    pub(super) instance: Arc<str>,
    pub(super) load: Arc<str>,
    pub(super) advance: Arc<str>,
    pub(super) put: Arc<str>,
    pub(super) remove: Arc<str>,
    pub(super) record: Arc<str>,
    pub(super) replace: Arc<str>,
    pub(super) prune_resource: Arc<str>,
    pub(super) prune_age: Arc<str>,
    pub(super) history: Arc<str>,
    pub(super) recent: Arc<str>,
    pub(super) later: Arc<str>,
    pub(super) removed: Arc<str>,
    pub(super) note_removals: Arc<str>,
    pub(super) forget_removals: Arc<str>,
    pub(super) ask: Arc<str>,
    pub(super) answers: Arc<str>,
    pub(super) withdraw: Arc<str>,
    pub(super) forget: Arc<str>,
    pub(super) touch: Arc<str>,
    pub(super) take_calls: Arc<str>,
    pub(super) answer: Arc<str>,
    pub(super) tidy: Arc<str>,
    pub(super) open_calls: Arc<str>,
}

impl Statements {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let fixed = |sql: &str| Arc::from(prefix.apply(sql));
        Self {
            take: fixed(
                "INSERT INTO {p}instances AS held (instance, epoch, revision, holder, expires_at)
                 VALUES ($1, CAST($4 AS bigint) + 1, 0, $2, clock_timestamp() + $3 * interval '1 millisecond')
                 ON CONFLICT (instance) DO UPDATE
                 SET epoch = greatest(held.epoch, $4) + 1, holder = excluded.holder, expires_at = excluded.expires_at
                 WHERE held.holder IS NULL OR held.holder = excluded.holder
                    OR held.expires_at <= clock_timestamp()
                 RETURNING epoch, revision, removed_at",
            ),
            held_for: fixed(
                "SELECT CAST(extract(epoch FROM expires_at - clock_timestamp()) * 1000 AS bigint)
                 FROM {p}instances WHERE instance = $1",
            ),
            renew: fixed(
                "UPDATE {p}instances SET expires_at = clock_timestamp() + $3 * interval '1 millisecond'
                 WHERE instance = $1 AND epoch = $2",
            ),
            release: fixed(
                "WITH released AS (
                     UPDATE {p}instances SET holder = NULL, expires_at = clock_timestamp()
                     WHERE instance = $1 AND epoch = $2 RETURNING 1
                 )
                 SELECT pg_notify('{p}events', $3) FROM released",
            ),
            notify: fixed("SELECT pg_notify('{p}events', $1)"),
            instance: fixed("SELECT epoch, revision, removed_at FROM {p}instances WHERE instance = $1"),
            load: fixed(&format!(
                "SELECT {} FROM {{p}}resources WHERE instance = $1 ORDER BY uid",
                names(&RESOURCE)
            )),
            advance: fixed(
                "WITH patience AS MATERIALIZED (
                     SELECT set_config('idle_in_transaction_session_timeout', $5, true) AS of
                 )
                 UPDATE {p}instances
                 SET revision = $2, removed_at = CASE WHEN $4 THEN $2 ELSE removed_at END FROM patience
                 WHERE instance = $1 AND epoch = $3 AND patience.of IS NOT NULL",
            ),
            put: fixed(&put()),
            remove: fixed("DELETE FROM {p}resources WHERE instance = $1 AND uid = ANY($2)"),
            record: fixed(&record()),
            replace: fixed(
                "DELETE FROM {p}history AS entry
                 USING unnest($2::uuid[], $3::bigint[], $4::bigint[]) AS old (uid, epoch, invocation)
                 WHERE entry.instance = $1 AND entry.uid = old.uid AND entry.epoch = old.epoch
                    AND entry.invocation = old.invocation",
            ),
            prune_resource: fixed(&prune_resource()),
            prune_age: fixed(
                "DELETE FROM {p}history WHERE instance = $1 AND ended_at < (
                     SELECT max(ended_at) FROM {p}history WHERE instance = $1 AND ended_at <= $2) - $3",
            ),
            history: fixed(&history()),
            recent: fixed(
                "SELECT epoch, entry FROM {p}history WHERE instance = $1
                 ORDER BY ended_at DESC, epoch DESC, invocation DESC LIMIT $2",
            ),
            later: fixed(&format!(
                "SELECT {} FROM {{p}}resources WHERE instance = $1 AND revision > $2 ORDER BY revision, uid",
                names(&RESOURCE)
            )),
            removed: fixed("SELECT uid, revision FROM {p}removals WHERE instance = $1 AND revision > $2"),
            note_removals: fixed(
                "INSERT INTO {p}removals (instance, revision, uid) SELECT $1, $2, unnest($3::uuid[])
                 ON CONFLICT (instance, uid) DO UPDATE SET revision = excluded.revision",
            ),
            forget_removals: fixed("DELETE FROM {p}removals WHERE instance = $1 AND revision < $2"),
            ask: fixed(
                "INSERT INTO {p}calls (instance, caller, id, call)
                 SELECT $1, $2, id, call
                 FROM unnest($3::uuid[], $4::text[]) WITH ORDINALITY AS asked (id, call, place) ORDER BY place
                 ON CONFLICT (id) DO NOTHING",
            ),
            answers: fixed(
                "SELECT id, first, outcome, settled, done, revision FROM {p}calls WHERE caller = $1",
            ),
            withdraw: fixed("DELETE FROM {p}calls WHERE id = ANY($1) AND taken_by = 0 RETURNING id"),
            forget: fixed("DELETE FROM {p}calls WHERE id = ANY($1)"),
            touch: fixed("UPDATE {p}calls SET touched_at = clock_timestamp() WHERE caller = $1"),
            take_calls: fixed(
                "WITH held AS MATERIALIZED (
                     SELECT 1 FROM {p}instances WHERE instance = $1 AND epoch = $2 FOR SHARE
                 ), next AS MATERIALIZED (
                     SELECT id FROM {p}calls WHERE instance = $1 AND NOT done AND taken_by < $2
                     ORDER BY number LIMIT $3 FOR UPDATE
                 )
                 UPDATE {p}calls AS taken SET taken_by = $2 FROM next
                 WHERE taken.id = next.id AND EXISTS (SELECT 1 FROM held)
                 RETURNING taken.number, taken.id, taken.call, taken.first",
            ),
            answer: fixed(
                "WITH held AS MATERIALIZED (
                     SELECT set_config('idle_in_transaction_session_timeout', $9, true) FROM {p}instances WHERE instance = $1 AND epoch = $2 FOR SHARE
                 )
                 UPDATE {p}calls AS asked
                 SET first = coalesce(asked.first, given.first), outcome = coalesce(asked.outcome, given.outcome),
                     settled = coalesce(asked.settled, given.settled), done = asked.done OR given.done,
                     revision = greatest(asked.revision, given.revision)
                 FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::bigint[])
                     AS given (id, first, outcome, settled, done, revision)
                 WHERE asked.id = given.id AND asked.taken_by = $2 AND EXISTS (SELECT 1 FROM held)
                 RETURNING asked.caller",
            ),
            tidy: fixed(
                "DELETE FROM {p}calls
                 WHERE instance = $1 AND touched_at < clock_timestamp() - interval '5 minutes'",
            ),
            open_calls: fixed("SELECT id FROM {p}calls WHERE instance = $1 AND NOT done"),
        }
    }
}

fn put() -> String {
    let (columns, arrays) = (names(&RESOURCE), arrays(&RESOURCE, 3));
    let values: Vec<String> = RESOURCE[1..]
        .iter()
        .map(|column| format!("{0} = excluded.{0}", column.name))
        .collect();
    format!(
        "INSERT INTO {{p}}resources (instance, epoch, {columns})
         SELECT $1, $2, * FROM unnest({arrays})
         ON CONFLICT (instance, uid) DO UPDATE SET epoch = excluded.epoch, {}",
        values.join(", ")
    )
}

/// Returns a subquery that numbers the history entries of a resource, newest first; entries with work and others are
/// numbered separately.
fn placed() -> String {
    let is_work = WORK_IN_HISTORY.map(|text| format!("position('{text}' IN entry) > 0"));
    format!(
        "SELECT epoch, invocation, entry, row_number() OVER (
             PARTITION BY {} ORDER BY epoch DESC, invocation DESC
         ) AS place FROM {{p}}history WHERE instance = $1 AND uid = $2",
        is_work.join(" OR ")
    )
}

/// Returns the statement that cuts the history of a resource to its bound.
fn prune_resource() -> String {
    format!(
        "DELETE FROM {{p}}history WHERE instance = $1 AND uid = $2 AND (epoch, invocation) IN (
             SELECT epoch, invocation FROM ({}) AS placed WHERE place > {HISTORY_PER_RESOURCE})",
        placed()
    )
}

/// Returns the statement that reads the newest history entries of a resource, ignoring entries beyond the bound that
/// are not cut yet.
fn history() -> String {
    format!(
        "SELECT epoch, entry FROM ({}) AS placed WHERE place <= {HISTORY_PER_RESOURCE}
         ORDER BY epoch DESC, invocation DESC LIMIT $3",
        placed()
    )
}

/// Returns the statement that adds history entries. Adding an entry twice counts once.
fn record() -> String {
    let (columns, arrays) = (names(&HISTORY), arrays(&HISTORY, 4));
    format!(
        "INSERT INTO {{p}}history (instance, epoch, revision, {columns})
         SELECT $1, $2, $3, * FROM unnest({arrays})
         ON CONFLICT (instance, uid, epoch, invocation) DO NOTHING"
    )
}

/// Returns parameters with array types: `$3::uuid[], $4::text[], ...`
fn arrays<T>(columns: &[Column<T>], first: usize) -> String {
    let arrays: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| format!("${}::{}[]", first + index, name_of(column.of)))
        .collect();
    arrays.join(", ")
}
