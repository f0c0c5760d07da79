//! The probes of a metrics view, each with its statement and the place of its text.

use std::borrow::Cow;
use std::collections::BTreeSet;

use watershed_dialect::ENGINE;
use watershed_metrics::probe::{self, NestedTooDeep, Statement};
use watershed_metrics::view::{Dimension, Source, Uri};
use watershed_metrics::{Measure, View};
use watershed_proto::{MetricsViewDimension, MetricsViewMeasure, Spot, SqlSource};
use watershed_resolvers::view;

use super::whole::Whole;

/// A probe of one field or other part of a metrics view.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Probe {
    /// The role of the probed part, such as `dimension`, `measure` or `lookup_table`.
    pub(super) role: &'static str,
    /// The name of the probed part.
    pub(super) name: String,
    /// The statement of the probe; none if another probe covers the part, or no statement can be written.
    pub(super) statement: Option<Statement>,
    /// The author's expression in the statement, if there is one.
    pub(super) text: Option<String>,
    /// The place of the expression, if it is known.
    pub(super) source: Option<SqlSource>,
    /// The place of the probed part in the YAML file, if it is known.
    pub(super) spot: Option<Spot>,
}

/// A writer of the probes of one metrics view.
pub(super) struct Prober<'a> {
    whole: &'a Whole,
    /// The view without the parts that can't be written as SQL.
    view: &'a View,
}

impl<'a> Prober<'a> {
    pub(super) fn new(whole: &'a Whole, view: &'a View) -> Self {
        Self { whole, view }
    }

    /// Returns the statement that probes the table alone.
    pub(super) fn table(&self) -> String {
        probe::columns(&self.view.table, &[], &ENGINE)
    }

    /// Returns one statement that probes all fields.
    ///
    /// # Errors
    /// When measures are nested too deep.
    pub(super) fn all(&self) -> Result<String, NestedTooDeep> {
        probe::all(self.view, &ENGINE)
    }

    /// Returns the expressions of the view, each of which must be a single expression.
    pub(super) fn expressions(&self) -> BTreeSet<Cow<'a, str>> {
        let view = self.view;
        let mut texts: Vec<&str> = view.watermark.as_deref().into_iter().collect();
        for one in &view.dimensions {
            if let Source::Expression(text) = &one.source {
                texts.push(text);
            }
            texts.extend(default_of(one));
            texts.extend(link_of(one));
        }
        for one in &view.measures {
            texts.push(&one.expression);
            texts.extend(one.treat_nulls_as.as_deref());
        }
        texts.extend(self.row_filters().map(|(text, _)| text));
        let frames = view.measures.iter().filter_map(framed).map(Cow::Owned);
        texts.into_iter().map(Cow::Borrowed).chain(frames).collect()
    }

    /// Returns a probe for each field, or an error for a field that can't be written.
    pub(super) fn each(&self) -> Vec<Result<Probe, (Probe, NestedTooDeep)>> {
        let spec = &self.whole.spec;
        let dimensions = spec.dimensions.iter().filter_map(|one| self.dimension(one));
        let measures = spec.measures.iter().filter_map(|one| self.measure(one));
        dimensions.map(Ok).chain(measures).collect()
    }

    fn dimension(&self, one: &MetricsViewDimension) -> Option<Probe> {
        let found = self.view.dimension(&one.name)?;
        Some(Probe {
            role: "dimension",
            name: one.name.clone(),
            statement: Some(probe::dimension(self.view, found, &ENGINE)),
            text: match &found.source {
                Source::Expression(text) => Some(text.clone()),
                Source::Column(_) => None,
            },
            source: one.expression.clone(),
            spot: one.at,
        })
    }

    fn measure(&self, one: &MetricsViewMeasure) -> Option<Result<Probe, (Probe, NestedTooDeep)>> {
        let found = self.view.measure(&one.name)?;
        let written = probe::measure(self.view, found, &ENGINE);
        let made = |statement| Probe {
            role: "measure",
            name: one.name.clone(),
            statement,
            text: Some(found.expression.clone()),
            source: one.expression.clone(),
            spot: one.at,
        };
        Some(match written {
            Ok(statement) => Ok(made(Some(statement))),
            Err(error) => Err((made(None), error)),
        })
    }

    /// Returns the probes of all other parts: further tables, defaults of lookups, links, filters, the watermark, the
    /// cache key.
    pub(super) fn others(&self) -> Vec<Probe> {
        let mut probes = self.tables();
        probes.extend(self.of_dimensions());
        probes.extend(self.of_measures());
        let spec = &self.whole.spec;
        probes.extend(self.row_filters().map(|(text, spot)| Probe {
            role: "row_filter",
            name: "security".to_owned(),
            statement: Some(probe::row_filter(self.view, text, &ENGINE)),
            text: Some(text.to_owned()),
            source: None,
            spot,
        }));
        let key = spec.cache.as_ref().map(|cache| cache.key_sql.as_str());
        probes.extend(key.filter(|key| !key.is_empty()).map(|key| Probe {
            role: "cache",
            name: "key_sql".to_owned(),
            // A statement of its own: between brackets only a query can stand.
            statement: Some(Statement {
                sql: format!("SELECT * FROM (\n{key}\n)"),
                at: 0,
            }),
            text: None,
            source: None,
            spot: None,
        }));
        if let Some(statement) = probe::watermark(self.view, &ENGINE) {
            probes.push(Probe {
                role: "watermark",
                name: "watermark".to_owned(),
                statement: Some(statement),
                text: self.view.watermark.clone(),
                source: spec.watermark_expression.clone(),
                spot: None,
            });
        }
        probes
    }

    /// Returns the probes of the further tables that the view reads, with the columns it needs.
    fn tables(&self) -> Vec<Probe> {
        let (spec, whole) = (&self.whole.spec, self.whole);
        let table = |role, name: &str, table: &str, columns: &[&str], spot| Probe {
            role,
            name: name.to_owned(),
            statement: Some(Statement {
                sql: probe::columns(&view::parts(table), columns, &ENGINE),
                at: 0,
            }),
            text: None,
            source: None,
            spot,
        };
        let mut probes = Vec::new();
        for (one, name) in spec.dimensions.iter().zip(&whole.translations) {
            if !name.is_empty() {
                let columns = [one.lookup_key_column.as_str(), one.lookup_value_column.as_str()];
                probes.push(table("lookup_table", &one.name, name, &columns, one.lookup_at));
            }
        }
        for (one, name) in spec.annotations.iter().zip(&whole.annotations) {
            probes.push(table(
                "annotation",
                &one.name,
                name,
                &["time", "description"],
                one.at,
            ));
        }
        for (one, name) in spec.rollups.iter().zip(&whole.rollups) {
            probes.push(table("rollup", &one.model, name, &[&spec.time_dimension], one.at));
        }
        probes
    }

    fn of_dimensions(&self) -> impl Iterator<Item = Probe> {
        let dimensions = self.whole.spec.dimensions.iter();
        dimensions.flat_map(|one| {
            let found = self.view.dimension(&one.name);
            let made = |role, text: Option<&str>, statement: Option<Statement>| {
                Some(Probe {
                    role,
                    name: one.name.clone(),
                    statement: Some(statement?),
                    text: text.map(str::to_owned),
                    source: None,
                    spot: one.lookup_at.or(one.at),
                })
            };
            let default = found.and_then(|found| {
                let statement = probe::lookup_default(self.view, found, &ENGINE);
                made("lookup_default_expression", default_of(found), statement)
            });
            let link = found.and_then(|found| {
                let statement = probe::uri(self.view, found, &ENGINE);
                made("uri", link_of(found), statement)
            });
            default.into_iter().chain(link)
        })
    }

    fn of_measures(&self) -> impl Iterator<Item = Probe> {
        let measures = self.whole.spec.measures.iter();
        measures.flat_map(|one| {
            let found = self.view.measure(&one.name);
            let made = |role, statement, text| Probe {
                role,
                name: one.name.clone(),
                statement,
                text,
                source: None,
                spot: one.at,
            };
            // What is nested too deep was told of the measure itself.
            let replaced = found.and_then(|found| {
                let statement = probe::replaced_nulls(self.view, found, &ENGINE).ok()??;
                Some(made(
                    "treat_nulls_as",
                    Some(statement),
                    found.treat_nulls_as.clone(),
                ))
            });
            let window = found
                .and_then(framed)
                .map(|text| made("window", None, Some(text)));
            replaced.into_iter().chain(window)
        })
    }

    /// Returns the row filters without templates; filters with templates differ for each viewer.
    fn row_filters(&self) -> impl Iterator<Item = (&'a str, Option<Spot>)> {
        let rules = self.whole.spec.security_rules.iter();
        rules
            .filter(|rule| !rule.sql.is_empty() && !rule.sql.contains("{{"))
            .map(|rule| (rule.sql.as_str(), rule.at))
    }
}

/// Returns a window function with the frame of a measure, if the measure has one.
fn framed(one: &Measure) -> Option<String> {
    let frame = one.window.as_ref()?.frame.as_str();
    (!frame.is_empty()).then(|| format!("count(*) OVER (\n{frame}\n)"))
}

/// Returns the default expression for values of a dimension that its lookup table lacks.
fn default_of(one: &Dimension) -> Option<&str> {
    one.lookup.as_ref()?.default.as_deref()
}

/// Returns the expression that yields links for a dimension's values, if there is one.
fn link_of(one: &Dimension) -> Option<&str> {
    match one.uri.as_ref()? {
        Uri::Expression(text) => Some(text),
        Uri::Value => None,
    }
}
