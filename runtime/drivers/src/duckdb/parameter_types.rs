//! Types of a statement's parameters, told by an in-memory engine that has the tables without their rows.

use std::collections::BTreeMap;

use watershed_dialect::{DuckDb, Quoting as _};

use super::catalog;
use super::failure::classify;
use super::sys::{Answer, Connection, RawError};
use crate::olap::{Failure, Outline, Schema, Statement, Statements as _, sole_statement};

/// Statements before the first one: the optimizer would compute constants, which nobody asked for.
const SETTINGS: [&str; 4] = [
    "CREATE SCHEMA metrics",
    "SET search_path = 'main,metrics'",
    "PRAGMA disable_optimizer",
    "SET lock_configuration = true",
];

/// Returns the types of parameters by their names, as [`crate::parameter_types`] says.
///
/// # Errors
/// How the engine failed.
pub(crate) fn parameter_types(
    tables: &[Outline],
    forms: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    find(tables, forms).map_err(|raw| classify(&raw, None).0)
}

fn find(tables: &[Outline], forms: &[String]) -> Result<BTreeMap<String, String>, RawError> {
    let database = catalog::open()?;
    let connection = Connection::new(&database)?;
    let run = |sql: &str| connection.run(sql, &[]).and_then(Answer::collect);
    for setting in SETTINGS {
        run(setting)?;
    }
    for Outline {
        schema,
        name,
        columns,
    } in tables
    {
        let schema = match schema {
            Schema::Main => "main",
            Schema::Metrics => "metrics",
        };
        let rows = DuckDb.write(&Statement::NoRows(columns));
        // A table of types that this engine lacks is not there; others are.
        let _ = run(&format!("CREATE VIEW {schema}.{} AS {rows}", DuckDb.name(name)));
    }
    let mut types = BTreeMap::new();
    for (at, form) in forms.iter().enumerate() {
        let prepared = sole_statement(form)
            .ok()
            .and_then(|form| connection.prepare_alone(form).ok());
        let found = prepared
            .map(|statement| statement.parameter_types())
            .unwrap_or_default();
        match at {
            // All are known.
            0 if found.len() + 1 == forms.len() => return Ok(found),
            0 => types = found,
            _ => {
                if let Some(own) = found.into_values().next() {
                    types.entry(at.to_string()).or_insert(own);
                }
            }
        }
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_types_of_what_they_stand_beside() {
        let column = |name: &str, data_type: &str| (name.to_owned(), data_type.to_owned());
        let table = |schema, name: &str, columns| Outline {
            schema,
            name: name.to_owned(),
            columns,
        };
        let tables = [
            table(
                Schema::Main,
                "a b",
                vec![column("n", "INTEGER"), column("t", "TIMESTAMP WITH TIME ZONE")],
            ),
            table(
                Schema::Metrics,
                "sales",
                vec![column("day", "DATE"), column("kinds", "VARCHAR[]")],
            ),
        ];
        for (sql, types) in [
            ("SELECT 1", ""),
            (
                "SELECT * FROM \"a b\" WHERE n = $2 AND t < $1 LIMIT $3",
                "1 TIMESTAMP WITH TIME ZONE, 2 INTEGER, 3 BIGINT",
            ),
            (
                "SELECT day FROM metrics.sales WHERE day BETWEEN $1 AND $2 AND kinds = $3",
                "1 DATE, 2 DATE, 3 VARCHAR[]",
            ),
            ("SELECT day FROM sales WHERE day > $1", "1 DATE"),
        ] {
            let found = parameter_types(&tables, &[sql.to_owned()]).unwrap();
            let found: Vec<String> = found.iter().map(|(name, own)| format!("{name} {own}")).collect();
            assert_eq!(found.join(", "), types, "{sql}");
        }
        for refused in [
            "SELECT n FROM other WHERE n = $1",
            "SELECT $1; SELECT 2",
            // Its parts would run.
            "PIVOT (FROM range(1000000000000)) ON range % 3 USING count(*) LIMIT $1",
            "SELECT * FROM read_csv('/etc/passwd') WHERE column0 = $1",
        ] {
            let found = parameter_types(&tables, &[refused.to_owned()]).unwrap();
            assert_eq!(found, BTreeMap::new(), "{refused}");
        }
        // Beside a parameter of which nothing is known, others are known by forms in which each stands alone.
        let forms = [
            "SELECT $1, $2::DOUBLE",
            "SELECT $1, NULL::DOUBLE",
            "SELECT NULL, $1::DOUBLE",
        ];
        let found = parameter_types(&tables, &forms.map(str::to_owned)).unwrap();
        assert_eq!(found, [("2".to_owned(), "DOUBLE".to_owned())].into());
    }
}
