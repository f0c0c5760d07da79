//! The part of a DuckLake that a source reads, and whether it is what it was: its snapshots tell, and no row is read for it.
//!
//! Of a table those snapshots count that say they changed it; of a query, all that changed any table. What can't be told is a
//! change: a snapshot that was read and has been expired since, one of another lake of that name, or a change of a sort that
//! is not known here.

use watershed_dialect::{ENGINE, Quoting as _};
use watershed_drivers::olap::{NamedRow, Snapshot, TableName, Value, lake_catalog};

use super::plan::FileNow;

/// The beginning of the addresses that stand for what is read of a lake.
const SCHEME: &str = "ducklake://";

/// Changes that touch no row of any table.
const HARMLESS: [&str; 7] = [
    "flushed_inlined",
    "merge_adjacent",
    "rewrite_delete",
    "scalar_macros_created",
    "schemas_created",
    "schemas_dropped",
    "views_dropped",
];

/// Changes that say which tables they touch by their numbers.
const NUMBERED: [&str; 6] = [
    "inlined_delete",
    "inlined_insert",
    "tables_altered",
    "tables_deleted_from",
    "tables_dropped",
    "tables_inserted_into",
];

/// Changes that say so by their names.
const NAMED: [&str; 2] = ["tables_created", "views_created"];

/// The part of a lake that a source reads.
pub(super) struct Part<'a> {
    /// The connector.
    pub(super) connector: &'a str,
    /// The name under which the lake is attached.
    pub(super) attached: &'a str,
    /// The table; none for whatever a query reads.
    pub(super) table: Option<TableName>,
    /// The state that is read, if it is not the newest.
    pub(super) snapshot: Option<&'a Snapshot>,
}

impl Part<'_> {
    /// Returns the address that stands for it.
    pub(super) fn address(&self) -> String {
        let table = self.table.as_ref().map_or_else(String::new, |table| {
            let schema = table.schema.as_deref().unwrap_or("main");
            format!("{schema}.{}", table.table)
        });
        format!("{SCHEME}{}/{table}", self.connector)
    }

    /// Returns the question whether anything changed since a snapshot.
    pub(super) fn question(&self, then: Option<&FileNow>) -> String {
        let then = then.map_or(-1, |then| i64::try_from(then.size).unwrap_or(i64::MAX));
        let read = match self.snapshot {
            None => "true".to_owned(),
            Some(Snapshot::Version(version)) => format!("id <= {version}"),
            Some(Snapshot::Time(time)) => format!("made <= {}::TIMESTAMPTZ", ENGINE.text(time)),
        };
        let list = |words: &[&str]| {
            words
                .iter()
                .map(|word| ENGINE.text(word))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (harmless, numbered, named) = (list(&HARMLESS), list(&NUMBERED), list(&NAMED));
        let name = self
            .table
            .as_ref()
            .map_or_else(String::new, |table| table.table.to_lowercase());
        format!(
            "WITH listed AS ( \
               SELECT snapshot_id AS id, snapshot_time AS made, epoch_ns(snapshot_time) AS made_ns, changes FROM ducklake_snapshots({lake}) \
             ), newest AS (SELECT max(id) AS id FROM listed WHERE {read}), \
             mine AS ({mine}), \
             later AS ( \
               SELECT len(list_filter(map_entries(changes), lambda one: CASE \
                 WHEN one.key IN ({harmless}) THEN false \
                 WHEN mine.id IS NULL THEN true \
                 WHEN one.key IN ({numbered}) THEN list_contains(one.value, mine.id) \
                 WHEN one.key IN ({named}) \
                   THEN len(list_filter(one.value, lambda name: contains(lower(name), {name}))) > 0 \
                 ELSE true END)) > 0 AS touches \
               FROM listed, newest, mine WHERE listed.id > {then} AND listed.id <= newest.id \
             ) \
             SELECT newest.id AS id, \
               (SELECT max(made_ns) FROM listed WHERE listed.id = newest.id) AS made_ns, \
               (SELECT max(made_ns) FROM listed WHERE listed.id = {then}) AS then_ns, \
               (SELECT count(*) FROM later) AS later, \
               (SELECT coalesce(bool_or(touches), false) FROM later) AS touched \
             FROM newest",
            lake = ENGINE.text(self.attached),
            mine = self.number(),
            name = ENGINE.text(&name),
        )
    }

    /// The query of the table's number in the catalog, as a text; NULL if there is no such table.
    fn number(&self) -> String {
        let Some(table) = &self.table else {
            return "SELECT NULL::VARCHAR AS id".to_owned();
        };
        let catalog = ENGINE.name(&lake_catalog(self.attached));
        let schema = table.schema.as_deref().unwrap_or("main").to_lowercase();
        format!(
            "SELECT max(t.table_id)::VARCHAR AS id FROM {catalog}.ducklake_table t \
             JOIN {catalog}.ducklake_schema s ON s.schema_id = t.schema_id \
             WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL \
             AND lower(t.table_name) = {} AND lower(s.schema_name) = {}",
            ENGINE.text(&table.table.to_lowercase()),
            ENGINE.text(&schema)
        )
    }

    /// Reads the answer: what was read then if nothing changed, or else what would be read now. None if it can't be read.
    pub(super) fn now(&self, then: Option<&FileNow>, row: &NamedRow) -> Option<FileNow> {
        let value = |wanted: &str| {
            let (_, value) = row.iter().find(|(name, _)| name == wanted)?;
            match value {
                Value::Integer(value) => i64::try_from(*value).ok(),
                Value::Boolean(value) => Some(i64::from(*value)),
                _ => None,
            }
        };
        let (id, at) = (value("id")?, value("made_ns")?);
        if let Some(then) = then {
            let before = i64::try_from(then.size).ok()?;
            let is_whole = value("later")? == id.saturating_sub(before);
            if value("then_ns") == Some(then.modified_ns) && is_whole && value("touched")? == 0 {
                return Some(then.clone());
            }
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&id.to_le_bytes()).update(&at.to_le_bytes());
        Some(FileNow {
            path: self.address(),
            modified_ns: at,
            size: u64::try_from(id).ok()?,
            content: Some(hasher.finalize().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part<'static> {
        Part {
            connector: "lake",
            attached: "_watershed_orders",
            table: TableName::parse("orders"),
            snapshot: None,
        }
    }

    fn row(id: i128, at: i128, then_at: Option<i128>, later: i128, touched: bool) -> NamedRow {
        let number = |value: Option<i128>| value.map_or(Value::Null, Value::Integer);
        vec![
            ("id".into(), Value::Integer(id)),
            ("made_ns".into(), Value::Integer(at)),
            ("then_ns".into(), number(then_at)),
            ("later".into(), Value::Integer(later)),
            ("touched".into(), Value::Boolean(touched)),
        ]
    }

    #[test]
    fn only_what_is_known_to_be_the_same_is_the_same() {
        let part = part();
        let then = part.now(None, &row(3, 30, None, 4, true)).unwrap();
        assert_eq!(
            (then.path.as_str(), then.size),
            ("ducklake://lake/main.orders", 3)
        );
        let now = |row| part.now(Some(&then), &row).unwrap();
        assert_eq!(now(row(3, 30, Some(30), 0, false)), then);
        assert_eq!(now(row(5, 50, Some(30), 2, false)), then, "others changed");
        for changed in [
            row(5, 50, Some(30), 2, true),
            row(5, 50, Some(30), 1, false),
            row(5, 50, None, 2, false),
            row(3, 31, Some(31), 0, false),
            row(2, 20, None, 0, false),
        ] {
            assert_ne!(now(changed).content, then.content);
        }
        assert_eq!(part.now(None, &Vec::new()), None);
    }

    #[test]
    fn the_question_is_about_the_table_and_a_query_is_about_all() {
        let question = part().question(None);
        assert!(
            question.contains("\"__ducklake_metadata__watershed_orders\".ducklake_table"),
            "{question}"
        );
        assert!(question.contains("listed.id > -1"), "{question}");
        let all = Part {
            table: None,
            ..part()
        };
        assert!(
            !all.question(None).contains("ducklake_table"),
            "no table is looked for"
        );
        assert_eq!(all.address(), "ducklake://lake/");
    }
}
