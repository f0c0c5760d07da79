//! Errors of the engine against a statement, in the form stored on resources.

use std::sync::Arc;

use watershed_core::Error;
use watershed_drivers::olap::SqlError;

/// Converts the engine's error against a statement to the stored form.
pub fn from_sql(error: &SqlError) -> Error {
    let hint = error.hint.as_deref();
    let hint = hint.filter(|hint| !names_internals(hint) && !proposes_missing(&error.message, hint));
    let hint = match error.message.starts_with(OPEN_PIVOT) {
        true => {
            Some("a table can: `-- @materialize: true`; for a view, list the values with `ON x IN (...)`")
        }
        false if hint.is_none() && error.message.contains("does not exist because schema") => Some(
            "tables of models have no schema; a table of a file or a database of its own is read by a source with `connector` and `table`",
        ),
        false => hint,
    };
    let message = error.message.as_str();
    Error {
        hint: hint.map(Arc::from),
        details: error.details.as_deref().map(Arc::from),
        ..match is_unreached(message) {
            true => Error::transient(sql_code(error), message),
            false => Error::permanent(sql_code(error), message),
        }
    }
}

/// Returns true if the engine's message says that a server gave no answer, which may have one later. With an answer, the message
/// names its status.
pub fn is_unreached(message: &str) -> bool {
    message.contains(" error for HTTP ")
}

/// Returns a stable code for the engine's error against a statement.
pub fn sql_code(error: &SqlError) -> String {
    let says = |text: &str| error.message.contains(text);
    match error.class.as_str() {
        _ if is_unreached(&error.message) => "connection-failed".to_owned(),
        "parser" | "syntax" => "sql-syntax".to_owned(),
        "binder" if says("Referenced column") || says("does not have a column") => {
            "unknown-column".to_owned()
        }
        "catalog" if says("Table with name") => "unknown-table".to_owned(),
        "catalog" if says("Function with name") => "unknown-function".to_owned(),
        "io" if says("No files found") => "missing-file".to_owned(),
        "sandbox" => "outside-sandbox".to_owned(),
        class => {
            let code = format!("sql-{}", class.replace([' ', '_'], "-"));
            match SQL_CODES.contains(&code.as_str()) {
                true => code,
                false => OTHER_SQL_CODE.to_owned(),
            }
        }
    }
}

/// Start of the engine's message that refuses a view whose columns depend on the data.
const OPEN_PIVOT: &str = "PIVOT statements with pivot elements extracted from the data";

/// Returns true if a hint proposes one of the engine's internal tables, which users don't mean.
fn names_internals(hint: &str) -> bool {
    [
        "duckdb_",
        "pg_",
        "pragma_",
        "sqlite_",
        "information_schema",
        "_watershed",
    ]
    .iter()
    .any(|prefix| hint.contains(&format!("\"{prefix}")))
}

/// Returns true if a hint proposes the very name that is missing, since the table was dropped a moment ago.
fn proposes_missing(message: &str, hint: &str) -> bool {
    let missing = message
        .strip_prefix("Table with name ")
        .and_then(|rest| rest.strip_suffix(" does not exist!"));
    let proposed = hint
        .strip_prefix("Did you mean \"")
        .and_then(|rest| rest.strip_suffix("\"?"));
    let (Some(missing), Some(proposed)) = (missing, proposed) else {
        return false;
    };
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    last(missing) == last(proposed)
}

/// Codes for the engine's classes of errors. Each has its section in `docs/diagnostics.md`.
const SQL_CODES: [&str; 10] = [
    "sql-binder",
    "sql-catalog",
    "sql-constraint",
    "sql-conversion",
    "sql-dependency",
    "sql-invalid-input",
    "sql-io",
    "sql-mismatch-type",
    "sql-not-implemented",
    "sql-out-of-range",
];

/// Code for all classes of errors without their own.
const OTHER_SQL_CODE: &str = "sql";

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_core::ErrorKind;

    #[test]
    fn a_store_without_an_answer_may_have_one_later() {
        let told = |message: &str| {
            from_sql(&SqlError {
                class: "io".into(),
                message: message.into(),
                ..SqlError::default()
            })
        };
        for (message, code) in [
            (
                "Could not establish connection error for HTTP HEAD to 'http://a/b'",
                "connection-failed",
            ),
            ("HTTP GET error on 'http://a/b' (HTTP 403)", "sql-io"),
        ] {
            let error = told(message);
            assert_eq!(&*error.code, code);
            assert_eq!(error.kind == ErrorKind::Transient, code == "connection-failed");
        }
    }

    #[test]
    fn the_engines_own_tables_are_not_proposed() {
        let hint = |hint: &str| {
            let (class, message) = ("catalog".into(), "Table with name x does not exist!".into());
            from_sql(&SqlError {
                class,
                message,
                hint: Some(hint.into()),
                ..SqlError::default()
            })
            .hint
        };
        assert_eq!(hint("Did you mean \"duckdb_schemas\"?"), None);
        assert!(hint("Did you mean \"orders\"?").is_some());
        assert_eq!(hint("Did you mean \"main.x\"?"), None, "what is missing");
        assert_eq!(hint("Did you mean \"X\"?"), None);
        assert_eq!(hint("Did you mean \"_watershed_trash_1\"?"), None);
    }
}
