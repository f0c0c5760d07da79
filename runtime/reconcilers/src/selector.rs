//! Resolution of selectors of fields in metrics views.

use std::sync::Arc;

use watershed_compilers::fields::{self, Unknown};
use watershed_core::Error;
use watershed_dialect::{ENGINE, Quoting as _};
use watershed_drivers::olap::{Statement, Statements as _};
use watershed_outputs::{Asking, failure};
use watershed_proto::FieldSelector;

use crate::places;

/// Returns an error about the first unknown name, at its place in the YAML file of `paths`.
///
/// # Errors
/// If there is one.
pub(crate) fn refuse(unknown: Vec<Unknown>, paths: &[Arc<str>]) -> Result<(), Error> {
    let Some(first) = unknown.into_iter().next() else {
        return Ok(());
    };
    Err(Error {
        hint: first.hint.map(Arc::from),
        place: Some(places::from_spot(paths, first.at.as_ref())),
        ..Error::permanent("unknown-field", first.message)
    })
}

/// The resolver of selectors; only patterns and expressions need the engine.
#[derive(Clone, Copy)]
pub(crate) struct Choosing<'a> {
    pub(crate) engine: Asking<'a>,
    pub(crate) paths: &'a [Arc<str>],
}

impl Choosing<'_> {
    /// Returns the names that a selector selects, in its order; all names without a selector.
    ///
    /// # Errors
    /// When it names what is not there, can't be read, or the engine can't be asked.
    pub(crate) async fn choose(
        &self,
        selector: Option<&FieldSelector>,
        names: &[String],
        what: &str,
    ) -> Result<Vec<String>, Error> {
        let known = match fields::listed(selector, names, what) {
            Ok(known) => known,
            Err(unknown) => {
                refuse(unknown, self.paths)?;
                None
            }
        };
        let (None, Some(selector)) = (&known, selector) else {
            return Ok(known.unwrap_or_default());
        };
        let chosen = if selector.regex.is_empty() {
            self.expressed(selector, names).await?
        } else {
            self.matching(selector, names).await?
        };
        Ok(if selector.invert {
            let rest = names.iter().filter(|name| !chosen.contains(name));
            rest.cloned().collect()
        } else {
            chosen.into_iter().filter(|name| names.contains(name)).collect()
        })
    }

    async fn matching(&self, selector: &FieldSelector, names: &[String]) -> Result<Vec<String>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let pattern = &selector.regex;
        let sql = ENGINE.write(&Statement::Matching { names, pattern });
        match self.engine.rows(sql).await? {
            Ok(rows) => {
                let found = rows.into_iter().flatten();
                let found: Vec<_> = found.map(|value| value.to_string()).collect();
                let in_order = names.iter().filter(|name| found.contains(name));
                Ok(in_order.cloned().collect())
            }
            Err(error) => Err(self.refused(selector, &error)),
        }
    }

    async fn expressed(&self, selector: &FieldSelector, names: &[String]) -> Result<Vec<String>, Error> {
        let columns: Vec<_> = names
            .iter()
            .map(|name| format!("1 AS {}", ENGINE.name(name)))
            .collect();
        let sql = format!(
            "SELECT {} FROM (SELECT {})",
            selector.duckdb_expression,
            columns.join(", ")
        );
        match self.engine.describe(&sql).await? {
            Ok(columns) => Ok(columns.into_iter().map(|(name, _)| name).collect()),
            Err(error) => Err(self.refused(selector, &error)),
        }
    }

    fn refused(&self, selector: &FieldSelector, error: &watershed_drivers::olap::SqlError) -> Error {
        Error {
            place: Some(places::from_spot(self.paths, selector.spots.first())),
            ..failure::from_sql(error)
        }
    }
}
