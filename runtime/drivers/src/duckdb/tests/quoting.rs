//! Tests of quoting: hostile names and texts, written by the dialect and read back from the engine.

use watershed_dialect::{DuckDb, Quoting as _, attacks};

use crate::duckdb::sys::{Connection, Database, RawError};
use crate::olap::Value;

#[test]
fn the_engine_reads_texts_and_names_as_they_were_before_they_were_quoted() {
    let database = Database::open(None, &[]).unwrap();
    let connection = Connection::new(&database).unwrap();
    attacks::each(|text, name| {
        let (one, other) = (DuckDb.text(text), DuckDb.name(name));
        let sql =
            format!("SELECT {one} AS {other}, t.{other} FROM (SELECT 1 AS {other}) t WHERE {one} = {one}");
        let answer = connection.run(&sql, &[]);
        if name.is_empty() || name.contains('\0') {
            assert!(answer.is_err(), "the engine has no such name: {sql}");
            return;
        }
        let answer = answer.unwrap_or_else(|RawError(message)| panic!("{message}\nin: {sql}"));
        let columns: Vec<&str> = answer.columns().iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(columns, [name, name], "{sql}");
        let row = vec![Value::Text(text.to_owned()), Value::Integer(1)];
        assert_eq!(answer.collect().ok(), Some(vec![row]), "{sql}");
    });
}
