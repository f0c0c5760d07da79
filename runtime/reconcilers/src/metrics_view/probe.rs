//! The statements that try the fields of a metrics view. Each is only ever bound: no row is read.
//!
//! Dimensions stand in a `GROUP BY`, so that an aggregate is refused; measures beside a `count(*)`, so that a plain
//! column is. What uses other measures reads a subquery that computes them.

use watershed_drivers::olap::quote_identifier;
use watershed_proto::{MetricsViewDimension, MetricsViewMeasure, MetricsViewSpec, Spot, SqlSource};

use super::whole::Whole;

/// The greatest depth of measures that use measures.
const DEEPEST: usize = 8;

/// A statement that tries one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// `dimension`, `measure`, `lookup_table`, ...
    pub role: &'static str,
    /// The name of what is tried.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// Bytes of the statement before the text of `source`.
    pub before: usize,
    /// The text that it tries, as it was sent.
    pub sent: String,
    /// The place of that text, if it is an expression.
    pub source: Option<SqlSource>,
    /// The place of the probed text.
    pub spot: Option<Spot>,
}

/// Expressions with their templates executed, by the text that they had.
pub trait Render: Sync {
    /// The text to be sent for an expression.
    ///
    /// # Errors
    /// Why its template can't be executed.
    fn render(&self, source: &SqlSource) -> Result<String, String>;
}

/// Writes the statements for one metrics view.
pub struct Prober<'a> {
    whole: &'a Whole,
    render: &'a dyn Render,
}

impl<'a> Prober<'a> {
    /// For what is to be tried; templates are executed by `render`.
    #[must_use]
    pub fn new(whole: &'a Whole, render: &'a dyn Render) -> Self {
        Self { whole, render }
    }

    fn spec(&self) -> &MetricsViewSpec {
        &self.whole.spec
    }

    /// The statement that tries the table alone.
    #[must_use]
    pub fn table(&self) -> String {
        format!("SELECT * FROM {}", self.whole.table)
    }

    /// One statement for all fields; its columns are the dimensions, then the measures, then what each group of
    /// fields needs beside.
    ///
    /// # Errors
    /// When a template can't be executed; then the fields are to be tried one by one.
    pub fn all(&self) -> Result<String, String> {
        let mut parts = Vec::new();
        let dimensions = &self.spec().dimensions;
        if !dimensions.is_empty() {
            let columns = dimensions.iter().map(|one| self.grouped(one));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let numbers: Vec<_> = (1..=columns.len()).map(|number| number.to_string()).collect();
            parts.push(format!(
                "(SELECT {} FROM {} GROUP BY {})",
                columns.join(", "),
                self.unnested()?,
                numbers.join(", ")
            ));
        }
        let (simple, advanced): (Vec<_>, Vec<_>) =
            self.spec().measures.iter().partition(|one| is_simple(one));
        if !simple.is_empty() {
            let columns = simple.iter().map(|one| self.named(one));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            parts.push(format!(
                "(SELECT {}, count(*) AS {COUNT} FROM {})",
                columns.join(", "),
                self.whole.table
            ));
        }
        for measure in advanced {
            let (before, sent, after) = self.advanced(measure, DEEPEST)?;
            parts.push(format!("({before}{sent}{after})"));
        }
        Ok(format!("SELECT * FROM {}", parts.join(", ")))
    }

    /// One statement for each field.
    #[must_use]
    pub fn each(&self) -> Vec<Result<Probe, (Probe, String)>> {
        let dimensions = self.spec().dimensions.iter().map(|one| self.dimension(one));
        let measures = self.spec().measures.iter().map(|one| self.measure(one));
        dimensions.chain(measures).collect()
    }

    fn dimension(&self, one: &MetricsViewDimension) -> Result<Probe, (Probe, String)> {
        let mut probe = Probe::of("dimension", &one.name, one.expression.clone(), one.at);
        let sent = match self.expression(one) {
            Ok(sent) => sent,
            Err(message) => return Err((probe, message)),
        };
        let (before, after) = if one.unnest {
            ("SELECT unnest(\n", format!("\n) FROM {}", self.whole.table))
        } else {
            ("SELECT (\n", format!("\n) FROM {} GROUP BY 1", self.whole.table))
        };
        probe.sql = format!("{before}{sent}{after}");
        probe.before = before.len();
        probe.sent = sent;
        Ok(probe)
    }

    fn measure(&self, one: &MetricsViewMeasure) -> Result<Probe, (Probe, String)> {
        let mut probe = Probe::of("measure", &one.name, one.expression.clone(), one.at);
        let made = if is_simple(one) {
            self.text(one.expression.as_ref()).map(|sent| {
                let after = format!("\n), count(*) FROM {}", self.whole.table);
                ("SELECT (\n".to_owned(), sent, after)
            })
        } else {
            self.advanced(one, DEEPEST)
        };
        match made {
            Ok((before, sent, after)) => {
                probe.sql = format!("{before}{sent}{after}");
                probe.before = before.len();
                probe.sent = sent;
                Ok(probe)
            }
            Err(message) => Err((probe, message)),
        }
    }

    /// Lists the other probes: tables beside its own, the watermark, the key of its cache.
    #[must_use]
    pub fn others(&self) -> Vec<Probe> {
        let spec = self.spec();
        let mut probes = Vec::new();
        let mut add = |role, name: &str, sql: String, spot| {
            let mut probe = Probe::of(role, name, None, spot);
            probe.sql = sql;
            probes.push(probe);
        };
        for (one, table) in spec.dimensions.iter().zip(&self.whole.lookups) {
            if table.is_empty() {
                continue;
            }
            let columns = [&one.lookup_key_column, &one.lookup_value_column];
            let columns = columns.map(|name| quote_identifier(name)).join(", ");
            add(
                "lookup_table",
                &one.name,
                format!("SELECT {columns} FROM {table}"),
                one.lookup_at,
            );
        }
        for (one, table) in spec.annotations.iter().zip(&self.whole.annotations) {
            let sql = format!("SELECT \"time\", \"description\" FROM {table}");
            add("annotation", &one.name, sql, one.at);
        }
        for (one, table) in spec.rollups.iter().zip(&self.whole.rollups) {
            let time = quote_identifier(&spec.time_dimension);
            add(
                "rollup",
                &one.model,
                format!("SELECT {time} FROM {table}"),
                one.at,
            );
        }
        // One with a template says something else for everybody who asks.
        let filters = spec.security_rules.iter();
        for rule in filters.filter(|rule| !rule.sql.is_empty() && !rule.sql.contains("{{")) {
            let sql = format!("SELECT 1 FROM {} WHERE (\n{}\n)", self.whole.table, rule.sql);
            add("row_filter", "security", sql, rule.at);
        }
        let key = spec.cache.as_ref().map(|cache| cache.key_sql.as_str());
        if let Some(key) = key.filter(|key| !key.is_empty()) {
            add("cache", "key_sql", format!("SELECT * FROM ({key}\n)"), None);
        }
        if let Some(source) = &spec.watermark_expression {
            let before = "SELECT (\n";
            let mut probe = Probe::of("watermark", "watermark", Some(source.clone()), None);
            probe.sent = self.render.render(source).unwrap_or_else(|_| source.text.clone());
            probe.sql = format!("{before}{}\n) FROM {}", probe.sent, self.whole.table);
            probe.before = before.len();
            probes.push(probe);
        }
        probes
    }

    fn expression(&self, one: &MetricsViewDimension) -> Result<String, String> {
        match &one.expression {
            Some(source) => self.render.render(source),
            None => Ok(quote_identifier(&one.column)),
        }
    }

    fn text(&self, source: Option<&SqlSource>) -> Result<String, String> {
        source.map_or_else(
            || Err("it has no expression".to_owned()),
            |source| self.render.render(source),
        )
    }

    fn named(&self, one: &MetricsViewMeasure) -> Result<String, String> {
        let sent = self.text(one.expression.as_ref())?;
        Ok(format!("(\n{sent}\n) AS {}", quote_identifier(&one.name)))
    }

    /// A dimension as a column to group by.
    fn grouped(&self, one: &MetricsViewDimension) -> Result<String, String> {
        let name = quote_identifier(&one.name);
        if one.unnest {
            return Ok(format!("{} AS {name}", unnested(&one.name)));
        }
        Ok(format!("(\n{}\n) AS {name}", self.expression(one)?))
    }

    /// The table, with a column for each dimension whose lists are taken apart.
    fn unnested(&self) -> Result<String, String> {
        let lists = self.spec().dimensions.iter().filter(|one| one.unnest);
        let columns = lists.map(|one| {
            let sent = self.expression(one)?;
            Ok(format!(", unnest(\n{sent}\n) AS {}", unnested(&one.name)))
        });
        let columns = columns.collect::<Result<String, String>>()?;
        Ok(if columns.is_empty() {
            self.whole.table.clone()
        } else {
            format!("(SELECT *{columns} FROM {})", self.whole.table)
        })
    }

    /// A measure that uses others: what stands before its expression, that, and what stands behind it.
    fn advanced(&self, one: &MetricsViewMeasure, depth: usize) -> Result<(String, String, String), String> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err("measures require one another in a circle".to_owned());
        };
        let sent = self.text(one.expression.as_ref())?;
        let inner = self.inner(one, depth)?;
        let name = quote_identifier(&one.name);
        let from = if one.r#type == "time_comparison" {
            format!("({inner}) AS base, ({inner}) AS comparison")
        } else {
            format!("({inner}) AS base")
        };
        Ok(match &one.window {
            None => (
                "SELECT (\n".to_owned(),
                sent,
                format!("\n) AS {name} FROM {from}"),
            ),
            Some(window) => {
                let order: Vec<_> = window.order.iter().map(|by| quote_identifier(&by.name)).collect();
                let order = if order.is_empty() {
                    String::new()
                } else {
                    format!("ORDER BY {}", order.join(", "))
                };
                let over = format!(" OVER ({order} {})", window.frame);
                (
                    "SELECT\n".to_owned(),
                    sent,
                    format!("\n{over} AS {name} FROM {from}"),
                )
            }
        })
    }

    /// The groups that a measure is computed over, with the measures that it uses.
    fn inner(&self, one: &MetricsViewMeasure, depth: usize) -> Result<String, String> {
        let spec = self.spec();
        let ordered = one.window.iter().flat_map(|window| &window.order);
        let by: Vec<&str> = one
            .per_dimensions
            .iter()
            .chain(ordered)
            .map(|by| by.name.as_str())
            .collect();
        let mut columns = Vec::new();
        for dimension in &spec.dimensions {
            if by.iter().any(|name| name.eq_ignore_ascii_case(&dimension.name)) {
                columns.push(self.grouped(dimension)?);
            }
        }
        let groups: Vec<_> = (1..=columns.len()).map(|number| number.to_string()).collect();
        for measure in &spec.measures {
            let required = if one.requires.is_empty() {
                is_simple(measure) && measure.name != one.name
            } else {
                let mut names = one.requires.iter();
                names.any(|name| name.eq_ignore_ascii_case(&measure.name))
            };
            if !required {
                continue;
            }
            if is_simple(measure) {
                columns.push(self.named(measure)?);
            } else {
                let (before, sent, after) = self.advanced(measure, depth)?;
                let name = quote_identifier(&measure.name);
                columns.push(format!("({before}{sent}{after}) AS {name}"));
            }
        }
        columns.push(format!("count(*) AS {COUNT}"));
        let mut sql = format!("SELECT {} FROM {}", columns.join(", "), self.unnested()?);
        if !groups.is_empty() {
            sql.push_str(&format!(" GROUP BY {}", groups.join(", ")));
        }
        Ok(sql)
    }
}

impl Probe {
    fn of(role: &'static str, name: &str, source: Option<SqlSource>, spot: Option<Spot>) -> Self {
        Self {
            role,
            name: name.to_owned(),
            sql: String::new(),
            before: 0,
            sent: String::new(),
            source,
            spot,
        }
    }
}

/// A column of ours beside the fields.
pub(super) const COUNT: &str = "\"_watershed rows\"";

fn unnested(name: &str) -> String {
    quote_identifier(&format!("_watershed {name}"))
}

/// Returns true if a measure is computed from the table alone.
fn is_simple(one: &MetricsViewMeasure) -> bool {
    matches!(one.r#type.as_str(), "" | "simple")
        && one.requires.is_empty()
        && one.per_dimensions.is_empty()
        && one.window.is_none()
}
