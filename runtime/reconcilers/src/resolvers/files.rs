//! Local files that match a pattern, as a statement of constants.

use watershed_compilers::{Scope, render_text};
use watershed_proto::{MapValue, Value};

use super::{ResolveError, Resolvers};
use crate::model::partitions::listed_files;

/// Returns the statement that yields a row for each file or folder, or what `transform_sql` makes of them.
pub(super) fn statement(
    resolvers: &Resolvers<'_>,
    properties: &MapValue,
    scope: &Scope,
) -> Result<String, ResolveError> {
    let pattern = render_text(properties.str("path").unwrap_or_default(), scope)?;
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
            Ok(render_text(transform, &scope)?)
        }
    }
}
