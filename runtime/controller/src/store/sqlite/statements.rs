//! SQL statements of the store, built once: each for a few numbers of rows, so that they stay prepared.

use std::sync::Arc;

use super::super::columns::{HISTORY, RESOURCE, names};
use super::super::{HISTORY_PER_RESOURCE, WORK_IN_HISTORY};
use super::TablePrefix;
use super::schema::{LATER_COLUMNS, NEWEST, OLDEST_READABLE};

/// Numbers of rows that one statement can write, largest first. A commit is cut into these.
const SIZES: [usize; 8] = [128, 64, 32, 16, 8, 4, 2, 1];

/// Divisor of a piece's length: this share of rows may be written twice to fill up a larger statement, because every
/// statement costs a switch of threads.
const SPARE: usize = 8;

/// Text of every statement.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) open: Arc<str>,
    pub(super) load: Arc<str>,
    /// Statements like `load` for earlier schema versions, oldest first.
    older_loads: Vec<Arc<str>>,
    pub(super) advance: Arc<str>,
    pub(super) put: Sized,
    pub(super) remove: Sized,
    pub(super) record: Sized,
    pub(super) replace: Sized,
    pub(super) prune_resource: Arc<str>,
    pub(super) prune_age: Arc<str>,
    pub(super) history: Arc<str>,
    pub(super) recent: Arc<str>,
    pub(super) instance: Arc<str>,
}

/// A statement, prepared for each number of rows in `SIZES`.
#[derive(Debug)]
pub(super) struct Sized([Arc<str>; SIZES.len()]);

impl Sized {
    fn new(make: impl Fn(usize) -> String) -> Self {
        Self(SIZES.map(|rows| Arc::from(make(rows))))
    }

    /// Cuts rows into pieces, each with the statement of the right size. The last row may be repeated to fill a piece:
    /// every such statement may write a row twice.
    pub(super) fn cut<'a, T>(
        &'a self,
        mut rows: &'a [T],
    ) -> impl Iterator<Item = (Arc<str>, impl Iterator<Item = &'a T>)> {
        std::iter::from_fn(move || {
            let last = rows.last()?;
            let nearly_full = |size: &usize| {
                let spare = size.checked_sub(rows.len());
                spare.is_some_and(|spare| spare <= rows.len() / SPARE)
            };
            let fits = SIZES.iter().rposition(nearly_full);
            let fits = fits.or_else(|| SIZES.iter().position(|size| *size <= rows.len()))?;
            let (piece, rest) = rows.split_at(SIZES[fits].min(rows.len()));
            rows = rest;
            let piece = piece.iter().chain(std::iter::repeat(last)).take(SIZES[fits]);
            Some((Arc::clone(&self.0[fits]), piece))
        })
    }
}

/// Builds the statement that reads resources from a catalog of this schema version; columns that were added later are
/// null.
fn load(version: u32) -> String {
    let came_later = |name: &str| {
        LATER_COLUMNS
            .iter()
            .any(|(later, from)| *later == name && *from > version)
    };
    let columns = RESOURCE.iter().map(|column| match came_later(column.name) {
        true => format!("NULL AS {}", column.name),
        false => column.name.to_owned(),
    });
    let columns: Vec<String> = columns.collect();
    format!(
        "SELECT {} FROM {{p}}resources WHERE instance = ?1",
        columns.join(", ")
    )
}

impl Statements {
    /// Returns the statement that reads resources from a catalog of this schema version.
    pub(super) fn load_of(&self, version: u32) -> &Arc<str> {
        let older = version
            .checked_sub(OLDEST_READABLE)
            .and_then(|index| usize::try_from(index).ok());
        older
            .and_then(|index| self.older_loads.get(index))
            .unwrap_or(&self.load)
    }

    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let columns = names(&RESOURCE);
        let fixed = |sql: &str| Arc::from(prefix.apply(sql));
        Self {
            open: fixed(
                "INSERT INTO {p}instances (instance, epoch, revision) VALUES (?1, ?2 + 1, 0)
                 ON CONFLICT DO UPDATE SET epoch = max(epoch, ?2) + 1 RETURNING epoch, revision, removed_at",
            ),
            load: fixed(&load(NEWEST)),
            older_loads: (OLDEST_READABLE..NEWEST)
                .map(|version| fixed(&load(version)))
                .collect(),
            advance: fixed(
                "UPDATE {p}instances SET revision = ?2, removed_at = iif(?4, ?2, removed_at)
                 WHERE instance = ?1 AND epoch = ?3",
            ),
            put: Sized::new(|rows| {
                let values = values(rows, 2 + RESOURCE.len());
                prefix.apply(&format!(
                    "INSERT OR REPLACE INTO {{p}}resources (instance, epoch, {columns}) VALUES {values}"
                ))
            }),
            remove: Sized::new(|rows| {
                let uids = marks(rows);
                prefix.apply(&format!(
                    "DELETE FROM {{p}}resources WHERE instance = ? AND uid IN ({uids})"
                ))
            }),
            record: Sized::new(|rows| {
                let (columns, values) = (names(&HISTORY), values(rows, 3 + HISTORY.len()));
                prefix.apply(&format!(
                    "INSERT OR REPLACE INTO {{p}}history (instance, epoch, revision, {columns}) VALUES {values}"
                ))
            }),
            replace: Sized::new(|rows| {
                let keys = values(rows, 3);
                prefix.apply(&format!(
                    "DELETE FROM {{p}}history
                     WHERE instance = ? AND (uid, epoch, invocation) IN (VALUES {keys})"
                ))
            }),
            prune_resource: fixed(&prune_resource()),
            prune_age: fixed(
                "DELETE FROM {p}history WHERE instance = ?1 AND ended_at < (
                     SELECT max(ended_at) FROM {p}history WHERE instance = ?1 AND ended_at <= ?2) - ?3",
            ),
            history: fixed(&history()),
            recent: fixed(
                "SELECT epoch, entry FROM {p}history WHERE instance = ?1
                 ORDER BY ended_at DESC, epoch DESC, invocation DESC LIMIT ?2",
            ),
            instance: fixed("SELECT epoch, revision FROM {p}instances WHERE instance = ?1"),
        }
    }
}

/// Returns a subquery that numbers the history entries of a resource, newest first; entries with work and others are
/// numbered separately.
fn placed() -> String {
    let is_work = WORK_IN_HISTORY.map(|text| format!("instr(entry, '{text}') > 0"));
    format!(
        "SELECT epoch, invocation, entry, row_number() OVER (
             PARTITION BY {} ORDER BY epoch DESC, invocation DESC
         ) AS place FROM {{p}}history WHERE instance = ?1 AND uid = ?2",
        is_work.join(" OR ")
    )
}

/// Returns the statement that cuts the history of a resource to its bound.
fn prune_resource() -> String {
    format!(
        "DELETE FROM {{p}}history WHERE instance = ?1 AND uid = ?2 AND (epoch, invocation) IN (
             SELECT epoch, invocation FROM ({}) AS placed WHERE place > {HISTORY_PER_RESOURCE})",
        placed()
    )
}

/// Returns the statement that reads the newest history entries of a resource, ignoring entries beyond the bound that
/// are not cut yet.
fn history() -> String {
    format!(
        "SELECT epoch, entry FROM ({}) AS placed WHERE place <= {HISTORY_PER_RESOURCE}
         ORDER BY epoch DESC, invocation DESC LIMIT ?3",
        placed()
    )
}

/// Returns parameters for rows of values: `(?, ?, ...), (?, ...)`.
///
/// The parameters are not numbered: binding a numbered one searches all of them, which is quadratic in their number.
fn values(rows: usize, columns: usize) -> String {
    vec![format!("({})", marks(columns)); rows].join(", ")
}

/// Returns this many parameters for a statement: `?, ?, ...`
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_the_sizes_that_have_statements() {
        let statements = Statements::new(&TablePrefix::default());
        let pieces = |count: usize| {
            let rows: Vec<usize> = (0..count).collect();
            let pieces = statements.remove.cut(&rows);
            let pieces = pieces.map(|(sql, piece)| {
                let piece: Vec<usize> = piece.copied().collect();
                assert_eq!(sql.matches('?').count(), 1 + piece.len());
                piece
            });
            pieces.collect::<Vec<_>>()
        };
        let sizes = |count: usize| pieces(count).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(128 + 35), [128, 32, 2, 1]);
        assert_eq!(sizes(300), [128, 128, 32, 8, 4]);
        assert_eq!(sizes(60), [64], "with the last row written again");
        for count in 0..300 {
            let mut written = pieces(count).concat();
            written.dedup();
            assert_eq!(written, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn parameters_of_many_rows_have_no_numbers() {
        assert_eq!(values(2, 3), "(?, ?, ?), (?, ?, ?)");
    }
}
