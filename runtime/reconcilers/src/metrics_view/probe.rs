//! All that is tried of a metrics view, each with its statement and the place of its text in the project.

use std::borrow::Cow;
use std::collections::BTreeSet;

use watershed_dialect::ENGINE;
use watershed_metrics::probe::{self, NestedTooDeep, Statement};
use watershed_metrics::view::{Dimension, Source, Uri};
use watershed_metrics::{Measure, View};
use watershed_proto::{MetricsViewDimension, MetricsViewMeasure, Spot, SqlSource};
use watershed_resolvers::view;

use super::whole::Whole;

/// One thing to be tried.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Probe {
    /// `dimension`, `measure`, `lookup_table`, ...
    pub(super) role: &'static str,
    /// The name of what is tried.
    pub(super) name: String,
    /// The statement that tries it; none where that of its field does, or none can be written.
    pub(super) statement: Option<Statement>,
    /// The author's text in it, if it is an expression.
    pub(super) text: Option<String>,
    /// The place of that text, if it is known.
    pub(super) source: Option<SqlSource>,
    /// The place of what is tried.
    pub(super) spot: Option<Spot>,
}

/// Writes the statements for one metrics view.
pub(super) struct Prober<'a> {
    whole: &'a Whole,
    /// The view, without what can't be written.
    view: &'a View,
}

impl<'a> Prober<'a> {
    pub(super) fn new(whole: &'a Whole, view: &'a View) -> Self {
        Self { whole, view }
    }

    /// The statement that tries the table alone.
    pub(super) fn table(&self) -> String {
        probe::columns(&self.view.table, &[], &ENGINE)
    }

    /// One statement for all fields.
    ///
    /// # Errors
    /// When measures are nested too deep.
    pub(super) fn all(&self) -> Result<String, NestedTooDeep> {
        probe::all(self.view, &ENGINE)
    }

    /// The expressions of the view, each of which is to be one alone.
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

    /// The fields one by one, as far as they can be written.
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

    /// The other things: tables beside its own, what stands for missing values, links, filters, the watermark, the key of its
    /// cache.
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

    /// Tables that the view reads beside its own, with the columns that it needs of them.
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

    /// Row filters without a template: one with a template says something else for everybody who asks.
    fn row_filters(&self) -> impl Iterator<Item = (&'a str, Option<Spot>)> {
        let rules = self.whole.spec.security_rules.iter();
        rules
            .filter(|rule| !rule.sql.is_empty() && !rule.sql.contains("{{"))
            .map(|rule| (rule.sql.as_str(), rule.at))
    }
}

/// Returns a window with the frame of a measure, if the measure says one.
fn framed(one: &Measure) -> Option<String> {
    let frame = one.window.as_ref()?.frame.as_str();
    (!frame.is_empty()).then(|| format!("count(*) OVER (\n{frame}\n)"))
}

/// Returns what stands for values of a dimension without a translation.
fn default_of(one: &Dimension) -> Option<&str> {
    one.lookup.as_ref()?.default.as_deref()
}

/// Returns the expression of the links of a dimension's values.
fn link_of(one: &Dimension) -> Option<&str> {
    match one.uri.as_ref()? {
        Uri::Expression(text) => Some(text),
        Uri::Value => None,
    }
}
