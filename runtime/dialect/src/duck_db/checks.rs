//! DuckDB's queries for data tests of models.

use super::DuckDb;
use crate::{Checks, Quoting as _};

impl Checks for DuckDb {
    fn unaccepted(&self, table: &str, column: &str, texts: &[String]) -> String {
        let rows: Vec<String> = texts.iter().map(|text| format!("({text})")).collect();
        let (text, value) = ("_watershed_text", "_watershed_value");
        let is_same = is_same_as_text(value, text);
        format!(
            "SELECT {column}, count(*) AS \"rows\" FROM {table} WHERE {column} IS NOT NULL GROUP BY {column} \
             HAVING {column} NOT IN (SELECT {value} FROM \
             (SELECT {text}, TRY(cast_to_type({text}, {column})) AS {value} \
             FROM (VALUES {}) AS _watershed_accepted({text}) \
             LEFT JOIN (SELECT {column} FROM {table} LIMIT 0) AS _watershed_typed ON true) \
             WHERE {value} IS NOT NULL AND {is_same})",
            rows.join(", ")
        )
    }

    fn unrelated(&self, table: &str, column: &str, other: &str, key: &str) -> String {
        let (of_other, value) = ("_watershed_of_other", "_watershed_value");
        let is_same = is_same_as_text(value, of_other);
        // In a subquery a key that is not there would be the column of that name of the tested table.
        format!(
            "WITH _watershed_others AS (SELECT {key} AS {of_other} FROM {other} WHERE {key} IS NOT NULL) \
             SELECT {column}, count(*) AS \"rows\" FROM {table} WHERE {column} NOT IN (SELECT {value} FROM \
             (SELECT {of_other}, TRY(cast_to_type({of_other}, _watershed_of_column)) AS {value} \
             FROM _watershed_others \
             LEFT JOIN (SELECT {column} AS _watershed_of_column FROM {table} LIMIT 0) AS _watershed_typed ON true) \
             WHERE {value} IS NOT NULL AND (typeof({value}) = typeof({of_other}) OR CASE typeof({of_other}) WHEN 'VARCHAR' \
             THEN {is_same} ELSE TRY(cast_to_type({value}, {of_other})) = {of_other} END)) GROUP BY {column}"
        )
    }

    fn difference(&self, expected: &str, actual: &str) -> String {
        format!(
            "SELECT 'missing' AS difference, * FROM (SELECT * FROM {expected} EXCEPT ALL SELECT * FROM {actual}) \
             UNION ALL SELECT 'unexpected', * FROM (SELECT * FROM {actual} EXCEPT ALL SELECT * FROM {expected}) ORDER BY ALL"
        )
    }

    fn with_columns_of(&self, table: &str, columns: &str) -> String {
        let of_table = |columns: &str| format!(" UNION ALL BY NAME (SELECT {columns} FROM {table} LIMIT 0)");
        let own = if columns.is_empty() {
            String::new()
        } else {
            of_table(columns)
        };
        of_table("*") + &own
    }

    fn file(&self, path: &str) -> String {
        format!("SELECT * FROM read_csv({})", self.text(path))
    }
}

/// Returns the condition that a value equals a text without rounding a number or cutting off a time. Numbers are
/// compared as such, and whole ones to their last digit.
fn is_same_as_text(value: &str, text: &str) -> String {
    let same = |kind: &str| {
        format!("TRY_CAST({value}::VARCHAR AS {kind}) IS NOT DISTINCT FROM TRY_CAST({text} AS {kind})")
    };
    let (same_number, same_digits, same_time) = (same("DOUBLE"), same("DECIMAL(38, 0)"), same("TIMESTAMP"));
    format!("{same_number} AND {same_digits} AND (typeof({value}) <> 'DATE' OR {same_time})")
}
