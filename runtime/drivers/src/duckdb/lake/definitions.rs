//! Views and macros of a lake, whoever made them, and what statements reach through them.

use std::collections::BTreeSet;

use watershed_dialect::{Dialect as _, DuckDb};

use super::{Lake, name, run, text};
use crate::duckdb::sys::{Connection, RawError};

/// Beginning of the functions that run a text as a statement, or look a table up by one.
const QUERY: &str = "query";

/// A view or macro of a lake.
pub(super) struct Definition {
    pub(super) name: String,
    /// The query of a view or of a macro for tables, or the expression of another macro.
    pub(super) sql: String,
    /// True for a macro that is used as an expression.
    pub(super) is_expression: bool,
}

/// Returns the views and macros, as they were when the open transaction began.
pub(super) fn definitions(lake: &Lake, connection: &Connection) -> Result<Vec<Definition>, RawError> {
    let [views, macros, bodies] =
        ["ducklake_view", "ducklake_macro", "ducklake_macro_impl"].map(|table| lake.own_table(table));
    let sql = format!(
        "SELECT view_name, sql, '' FROM {views} WHERE end_snapshot IS NULL \
         UNION ALL SELECT m.macro_name, b.sql, b.type FROM {macros} m JOIN {bodies} b USING (macro_id) \
         WHERE m.end_snapshot IS NULL"
    );
    let definition = |row: Vec<_>| {
        let [name, sql, kind] = <[_; 3]>::try_from(row).ok()?;
        Some(Definition {
            name: text(name)?,
            sql: text(sql)?,
            is_expression: text(kind)? == "scalar",
        })
    };
    Ok(run(connection, &sql)?
        .into_iter()
        .filter_map(definition)
        .collect())
}

/// Returns true if a statement may read a table, by its name or through views and macros. A name that stands anywhere in
/// a text counts, so this may be true of statements that do not.
pub(in crate::duckdb) fn may_read(
    lake: &Lake,
    connection: &Connection,
    sql: &str,
    table: &str,
) -> Result<bool, RawError> {
    let (sql, definitions) = (DuckDb.fold(sql), definitions(lake, connection)?);
    Ok(leads_to(&sql, table, &definitions))
}

/// Returns true if a statement mentions a table, or something that does.
fn leads_to(sql: &str, table: &str, definitions: &[Definition]) -> bool {
    let folded: Vec<[String; 2]> = definitions
        .iter()
        .map(|one| [DuckDb.fold(&one.name), DuckDb.fold(&one.sql)])
        .collect();
    let mut leading = BTreeSet::from([DuckDb.fold(table), QUERY.to_owned()]);
    loop {
        let more = folded
            .iter()
            .filter(|[name, sql]| !leading.contains(name) && mentions(sql, &leading));
        let more: Vec<String> = more.map(|[name, _]| name.clone()).collect();
        if more.is_empty() {
            return mentions(sql, &leading);
        }
        leading.extend(more);
    }
}

/// Returns true if one of the names stands in a text, as it is or within quotes.
fn mentions(sql: &str, names: &BTreeSet<String>) -> bool {
    names
        .iter()
        .any(|one| sql.contains(one.as_str()) || sql.contains(&name(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, sql: &str) -> Definition {
        Definition {
            name: name.to_owned(),
            sql: sql.to_owned(),
            is_expression: false,
        }
    }

    #[test]
    fn a_table_is_read_by_its_name_in_any_form_and_through_views_and_macros() {
        let definitions = [
            definition("Seen", "SELECT * FROM orders"),
            definition("through", "FROM \"SEEN\""),
            definition("odd", "FROM \"a\"\"b\""),
            definition("told", "FROM query(x)"),
            definition("other", "FROM customers"),
        ];
        for (sql, table, leads) in [
            ("from orders", "Orders", true),
            ("from \"a\"\"b\"", "a\"b", true),
            ("select x from through", "orders", true),
            ("select told()", "orders", true),
            ("select x from odd", "a\"b", true),
            ("select x from other", "orders", false),
            ("select x from odd", "orders", false),
        ] {
            assert_eq!(leads_to(sql, table, &definitions), leads, "{sql}");
        }
    }
}
