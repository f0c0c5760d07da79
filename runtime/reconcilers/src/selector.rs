//! Which fields of a metrics view a selector means.

use std::sync::Arc;

use watershed_compilers::nearest_name;
use watershed_core::Error;
use watershed_drivers::olap::{quote_identifier, quote_literal};
use watershed_proto::FieldSelector;

use crate::{asking::Asking, model::failure, places};

/// Finds out what selectors mean. Only patterns and expressions are asked of the engine.
#[derive(Clone, Copy)]
pub(crate) struct Choosing<'a> {
    pub(crate) engine: Asking<'a>,
    pub(crate) paths: &'a [Arc<str>],
}

impl Choosing<'_> {
    /// The names that a selector means, in its order; all without one.
    ///
    /// # Errors
    /// When it names what is not there, can't be read, or the engine can't be asked.
    pub(crate) async fn choose(
        &self,
        selector: Option<&FieldSelector>,
        names: &[&str],
        what: &str,
    ) -> Result<Vec<String>, Error> {
        let all = || names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let Some(selector) = selector else {
            return Ok(all());
        };
        let said_nothing =
            selector.regex.is_empty() && selector.duckdb_expression.is_empty() && selector.fields.is_empty();
        let chosen = if selector.all || (said_nothing && selector.spots.len() == 1) {
            all()
        } else if !selector.regex.is_empty() {
            self.matching(selector, names).await?
        } else if !selector.duckdb_expression.is_empty() {
            self.expressed(selector, names).await?
        } else {
            self.listed(selector, names, what)?
        };
        Ok(if selector.invert {
            all().into_iter().filter(|name| !chosen.contains(name)).collect()
        } else {
            chosen
        })
    }

    /// The fields of a list, in the spelling of the metrics view.
    fn listed(&self, selector: &FieldSelector, names: &[&str], what: &str) -> Result<Vec<String>, Error> {
        let mut chosen = Vec::new();
        for (index, wanted) in selector.fields.iter().enumerate() {
            let found = names.iter().find(|name| name.eq_ignore_ascii_case(wanted));
            match found {
                Some(found) => chosen.push((*found).to_owned()),
                None => {
                    let place = places::of_spot(self.paths, selector.spots.get(index));
                    return Err(unknown(wanted, names, what, place));
                }
            }
        }
        Ok(chosen)
    }

    async fn matching(&self, selector: &FieldSelector, names: &[&str]) -> Result<Vec<String>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<_> = names
            .iter()
            .map(|name| format!("({})", quote_literal(name)))
            .collect();
        let sql = format!(
            "SELECT name FROM (VALUES {}) AS fields(name) WHERE regexp_matches(name, {})",
            rows.join(", "),
            quote_literal(&selector.regex)
        );
        match self.engine.rows(sql).await? {
            Ok(rows) => {
                let found: Vec<_> = rows
                    .into_iter()
                    .flatten()
                    .map(|value| value.to_string())
                    .collect();
                Ok(in_order(names, &found))
            }
            Err(error) => Err(self.refused(selector, &error)),
        }
    }

    async fn expressed(&self, selector: &FieldSelector, names: &[&str]) -> Result<Vec<String>, Error> {
        let columns: Vec<_> = names
            .iter()
            .map(|name| format!("1 AS {}", quote_identifier(name)))
            .collect();
        let sql = format!(
            "SELECT {} FROM (SELECT {})",
            selector.duckdb_expression,
            columns.join(", ")
        );
        match self.engine.describe(&sql).await? {
            Ok(columns) => Ok(columns
                .into_iter()
                .map(|(name, _)| name)
                .filter(|name| names.contains(&name.as_str()))
                .collect()),
            Err(error) => Err(self.refused(selector, &error)),
        }
    }

    fn refused(&self, selector: &FieldSelector, error: &watershed_drivers::olap::SqlError) -> Error {
        Error {
            place: Some(places::of_spot(self.paths, selector.spots.first())),
            ..failure::of_sql(error)
        }
    }
}

/// The error of a name that no field has.
pub(crate) fn unknown(wanted: &str, names: &[&str], what: &str, place: watershed_core::Place) -> Error {
    let message = format!("the metrics view has no {what} \"{wanted}\"");
    let near = nearest_name(&wanted.to_lowercase(), names.iter().copied());
    let hint = near.map(|near| format!("did you mean `{near}`?"));
    Error {
        hint: hint.map(Arc::from),
        place: Some(place),
        ..Error::permanent("unknown-field", message)
    }
}

fn in_order(names: &[&str], found: &[String]) -> Vec<String> {
    names
        .iter()
        .filter(|name| found.iter().any(|one| one == *name))
        .map(|name| (*name).to_owned())
        .collect()
}
