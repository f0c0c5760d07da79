//! Resolver of local files that match a pattern, as a query over constants.

mod grouping;

use watershed_compilers::{Arguments, Scope, render_rule, render_text};
use watershed_proto::{MapValue, Value};

pub use grouping::{By, Group, Grouping, UPDATED_ON, folder_of, listed_files};

use super::{ResolveError, Resolvers};

/// Returns the query with a row for each file or folder, or `transform_sql` applied to those rows.
pub(super) fn statement(
    resolvers: &Resolvers<'_>,
    properties: &MapValue,
    scope: &Scope,
) -> Result<String, ResolveError> {
    let path = properties.str("path").unwrap_or_default();
    check_arguments(path, scope)?;
    let pattern = render_text(path, scope)?;
    let by = properties.str("partition").unwrap_or_default();
    let rollup = properties.get("rollup_files").and_then(Value::as_bool) == Some(true);
    let table = listed_files(resolvers.root, resolvers.sandbox, &pattern, by, rollup)
        .map_err(|error| ResolveError::Files(error.to_string()))?;
    match properties.str("transform_sql") {
        None => Ok(format!("SELECT * FROM {table}")),
        Some(transform) => {
            let scope = Scope {
                table,
                ..scope.clone()
            };
            Ok(render_rule(transform, &scope)?)
        }
    }
}

/// Refuses arguments that would change the path beyond its author's intent: each must be part of a name, without a
/// pattern.
fn check_arguments(path: &str, scope: &Scope) -> Result<(), ResolveError> {
    let mut read = Arguments::default();
    read.add(path);
    let leads_away = |text: &str| text.contains(['/', '\\', '*', '?', '[', ']', '{', '}']) || text == "..";
    let mut read = scope.args.iter().filter(|(name, _)| read.has(name));
    match read.find(|(_, value)| value.as_str().is_some_and(leads_away)) {
        Some((name, _)) => Err(ResolveError::Files(format!(
            "argument \"{name}\" stands in a path, and can't hold slashes or signs of a pattern"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_argument_in_a_path_is_a_piece_of_a_name() {
        let checked = |value: &str| {
            let args = BTreeMap::from([("day".to_owned(), Value::from(value))]);
            let scope = Scope {
                args,
                ..Scope::default()
            };
            check_arguments("data/{{ .args.day }}/*.csv", &scope).is_ok()
        };
        for harmless in ["2024-03-01", "o'neil", "a b", "..a"] {
            assert!(checked(harmless), "{harmless}");
        }
        for hostile in ["..", "../..", "a/b", "*", "[a]", "{a,b}", "a\\b"] {
            assert!(!checked(hostile), "{hostile}");
        }
    }
}
