//! Queries about changes of a DuckLake, by its snapshots.

use watershed_dialect::{DuckDb, Quoting as _};

use crate::olap::{Snapshot, TableName};

/// Prefix of the engine's names for the catalogs of attached lakes.
const CATALOG_PREFIX: &str = "__ducklake_metadata_";

/// Kinds of changes that affect no rows.
const HARMLESS: [&str; 7] = [
    "flushed_inlined",
    "merge_adjacent",
    "rewrite_delete",
    "scalar_macros_created",
    "schemas_created",
    "schemas_dropped",
    "views_dropped",
];

/// Kinds of changes that identify tables by number.
const NUMBERED: [&str; 6] = [
    "inlined_delete",
    "inlined_insert",
    "tables_altered",
    "tables_deleted_from",
    "tables_dropped",
    "tables_inserted_into",
];

/// Kinds of changes that identify tables by name.
const NAMED: [&str; 2] = ["tables_created", "views_created"];

/// Returns the query for changes of a part of an attached lake since a snapshot.
pub(super) fn changes(
    (lake, schema): (&str, Option<&str>),
    table: Option<&TableName>,
    snapshot: Option<&Snapshot>,
    then: i64,
) -> String {
    let read = match snapshot {
        None => "true".to_owned(),
        Some(Snapshot::Version(version)) => format!("id <= {version}"),
        Some(Snapshot::Time(time)) => format!("made <= {}::TIMESTAMPTZ", DuckDb.text(time)),
    };
    let list = |words: &[&str]| {
        words
            .iter()
            .map(|word| DuckDb.text(word))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (harmless, numbered, named) = (list(&HARMLESS), list(&NUMBERED), list(&NAMED));
    let name = table.map_or_else(String::new, |table| table.table.to_lowercase());
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
        lake = DuckDb.text(lake),
        mine = number(lake, schema, table),
        name = DuckDb.text(&name),
    )
}

/// Returns a query for a table's number in the catalog, as text; NULL if the table does not exist.
fn number(lake: &str, catalog_schema: Option<&str>, table: Option<&TableName>) -> String {
    let Some(table) = table else {
        return "SELECT NULL::VARCHAR AS id".to_owned();
    };
    let name = format!("{CATALOG_PREFIX}{lake}");
    let catalog = match catalog_schema {
        Some(schema) => DuckDb.path(&[&name, schema]),
        None => DuckDb.name(&name),
    };
    let schema = table.schema.as_deref().unwrap_or("main").to_lowercase();
    format!(
        "SELECT max(t.table_id)::VARCHAR AS id FROM {catalog}.ducklake_table t \
         JOIN {catalog}.ducklake_schema s ON s.schema_id = t.schema_id \
         WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL \
         AND lower(t.table_name) = {} AND lower(s.schema_name) = {}",
        DuckDb.text(&table.table.to_lowercase()),
        DuckDb.text(&schema)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_is_about_the_table_and_a_query_is_about_all() {
        let question = changes(
            ("_watershed_orders", None),
            TableName::parse("orders").as_ref(),
            None,
            -1,
        );
        assert!(
            question.contains("\"__ducklake_metadata__watershed_orders\".ducklake_table"),
            "{question}"
        );
        assert!(question.contains("listed.id > -1"), "{question}");
        let orders = TableName::parse("orders");
        let elsewhere = changes(("_watershed_orders", Some("shop dev")), orders.as_ref(), None, -1);
        assert!(
            elsewhere.contains("\"__ducklake_metadata__watershed_orders\".\"shop dev\".ducklake_table"),
            "{elsewhere}"
        );
        let all = changes(("_watershed_orders", None), None, None, -1);
        assert!(!all.contains("ducklake_table"), "no table is looked for");
    }
}
