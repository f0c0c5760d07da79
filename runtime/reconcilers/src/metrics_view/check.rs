//! The check of a metrics view by the engine: all fields in one statement, and if that fails, each by itself, so that
//! every faulty field is named.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use watershed_compilers::{Scope, nearest_name, render_text};
use watershed_core::{Error, SourcePosition};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{SqlError, Statement, Statements as _};
use watershed_metrics::probe::COUNT;
use watershed_outputs::{Asking, failure};
use watershed_proto::{FieldProblem, SqlSource};
use watershed_resolvers::view::{self, RenderError};

use super::{
    probe::{Probe, Prober},
    whole::Whole,
};
use crate::places;

/// The inputs needed to check a metrics view.
pub(super) struct Check<'a> {
    pub(super) engine: Asking<'a>,
    pub(super) environment: &'a str,
    pub(super) paths: &'a [Arc<str>],
    /// A function that returns the names of all models, for hints.
    pub(super) models: &'a (dyn Fn() -> Vec<String> + Sync),
}

/// The types of fields and the problems that a check found.
#[derive(Debug, Default)]
pub(super) struct CheckedFields {
    pub(super) types: BTreeMap<String, String>,
    pub(super) problems: Vec<FieldProblem>,
}

impl Check<'_> {
    pub(super) async fn run(&self, whole: &Whole) -> Result<CheckedFields, Error> {
        // Variables are as they were when the file was read.
        let scope = Scope {
            environment: self.environment.to_owned(),
            variables: self.engine.outputs.secrets().open(&whole.spec.variables)?,
            ..Scope::default()
        };
        let render = |source: &SqlSource| match source.templated {
            false => Ok(source.text.clone()),
            true => render_text(&source.text, &scope).map_err(|error| error.message),
        };
        let (view, unwritten) = view::untried(&whole.spec, &whole.table, &whole.translations, &render);
        let prober = Prober::new(whole, &view);
        let several = self.several(&prober).await?;
        let mut found = CheckedFields::default();
        let described = match prober.all() {
            Ok(sql) if unwritten.is_empty() && several.is_empty() => self.engine.describe(&sql).await?.ok(),
            _ => None,
        };
        let tables = match described {
            Some(columns) => {
                let fields = columns.into_iter().filter(|(name, _)| name != COUNT);
                found.types = fields.collect();
                true
            }
            None => {
                for error in &unwritten {
                    found.problems.push(self.unwritten(whole, error));
                }
                self.one_by_one(whole, &prober, &several, &mut found).await?
            }
        };
        if tables {
            self.time(whole, &mut found);
        }
        for probe in prober.others() {
            self.attempt(&probe, &several, &mut found).await?;
        }
        let place = |one: &FieldProblem| (one.line, one.column);
        found.problems.sort_by_key(place);
        Ok(found)
    }

    /// Returns the field expressions that do not parse as a single expression. Such a text would break the statement
    /// around it.
    async fn several(&self, prober: &Prober<'_>) -> Result<BTreeSet<String>, Error> {
        let texts = prober.expressions();
        if texts.is_empty() {
            return Ok(BTreeSet::new());
        }
        let asked: Vec<&str> = texts.iter().map(|text| text.as_ref()).collect();
        let rows = self
            .engine
            .rows(ENGINE.write(&Statement::Expressions(&asked)))
            .await?;
        let several = ENGINE.not_one_expression(&asked, &rows.unwrap_or_default());
        Ok(several.into_iter().map(str::to_owned).collect())
    }

    /// Checks each field by itself; returns false if the table can't be read.
    async fn one_by_one(
        &self,
        whole: &Whole,
        prober: &Prober<'_>,
        several: &BTreeSet<String>,
        found: &mut CheckedFields,
    ) -> Result<bool, Error> {
        if let Err(error) = self.engine.describe(&prober.table()).await? {
            found.problems.push(self.no_table(whole, &error));
            return Ok(false);
        }
        for probe in prober.each() {
            match probe {
                Ok(probe) => {
                    let column = self.attempt(&probe, several, found).await?;
                    found
                        .types
                        .extend(column.map(|data_type| (probe.name, data_type)));
                }
                Err((probe, error)) => {
                    found
                        .problems
                        .push(self.problem(&probe, &unwritable(&error.to_string()), None));
                }
            }
        }
        Ok(true)
    }

    /// Binds one probe and returns the type of its first column; records a problem.
    async fn attempt(
        &self,
        probe: &Probe,
        several: &BTreeSet<String>,
        found: &mut CheckedFields,
    ) -> Result<Option<String>, Error> {
        let described = match &probe.statement {
            Some(statement) => self.engine.describe(&statement.sql).await?,
            None => Ok(Vec::new()),
        };
        match described {
            Err(error) => {
                let told = failure::from_sql(&error);
                found.problems.push(self.problem(probe, &told, error.offset));
            }
            Ok(_) if probe.text.as_ref().is_some_and(|text| several.contains(text)) => {
                let error = Error {
                    hint: Some("write one expression, whose brackets close what they open".into()),
                    ..Error::permanent("not-one-expression", "this is not one expression alone")
                };
                found.problems.push(self.problem(probe, &error, None));
            }
            Ok(columns) => return Ok(columns.into_iter().next().map(|(_, data_type)| data_type)),
        }
        Ok(None)
    }

    /// Returns the problem that the table can't be read, with the nearest model's name as a hint.
    fn no_table(&self, whole: &Whole, error: &SqlError) -> FieldProblem {
        let spec = &whole.spec;
        let place = places::from_spot(self.paths, spec.table_at.as_ref());
        let (role, name) = if spec.model.is_empty() {
            ("table", whole.table.replace('"', ""))
        } else {
            ("model", spec.model.clone())
        };
        let mut told = failure::from_sql(error);
        let models = (self.models)();
        let near = nearest_name(&name.to_lowercase(), models.iter().map(String::as_str));
        if let Some(near) = near {
            told.hint = Some(format!("did you mean `{near}`?").into());
        }
        tell(role, &name, &told, place)
    }

    /// Returns the problem that the template of an expression can't be executed.
    fn unwritten(&self, whole: &Whole, error: &RenderError) -> FieldProblem {
        let spec = &whole.spec;
        let dimension = spec.dimensions.iter().find(|one| one.name == error.field);
        let measure = spec.measures.iter().find(|one| one.name == error.field);
        let watermark = spec.watermark_expression.as_ref();
        let (role, place) = match (dimension, measure, watermark) {
            (Some(one), _, _) => ("dimension", places::from_spot(self.paths, one.at.as_ref())),
            (None, Some(one), _) => ("measure", places::from_spot(self.paths, one.at.as_ref())),
            (None, None, Some(one)) => ("watermark", places::from_source(self.paths, one, "", None)),
            (None, None, None) => ("watermark", places::from_spot(self.paths, None)),
        };
        tell(role, &error.field, &unwritable(&error.message), place)
    }

    fn problem(&self, probe: &Probe, error: &Error, offset: Option<usize>) -> FieldProblem {
        let text = probe.text.as_deref().unwrap_or_default();
        let begin = probe.statement.as_ref().map_or(0, |statement| statement.at);
        let place = match (&probe.source, offset) {
            (Some(source), Some(offset)) if offset >= begin => {
                let offset = (offset - begin).min(text.len());
                places::from_source(self.paths, source, text, Some(offset))
            }
            (Some(source), _) if probe.spot.is_none() => places::from_source(self.paths, source, text, None),
            _ => places::from_spot(self.paths, probe.spot.as_ref()),
        };
        tell(probe.role, &probe.name, error, place)
    }

    /// Records a problem if the type of the time column is not a time.
    fn time(&self, whole: &Whole, found: &mut CheckedFields) {
        let time = &whole.spec.time_dimension;
        let Some(r#type) = found.types.get(time) else {
            return;
        };
        if !time.is_empty() && !r#type.starts_with("TIMESTAMP") && r#type != "DATE" {
            let message = format!("expected a column of dates or times, not of type {type}");
            let error = Error {
                hint: Some("cast it in the model: `CAST(... AS TIMESTAMP)`".into()),
                ..Error::permanent("not-a-time", message)
            };
            let place = places::from_spot(self.paths, whole.spec.time_at.as_ref());
            found.problems.push(tell("timeseries", time, &error, place));
        }
    }
}

/// Returns the error of a text that can't be written into a statement.
fn unwritable(message: &str) -> Error {
    failure::from_sql(&SqlError {
        class: "template".to_owned(),
        message: message.to_owned(),
        ..SqlError::default()
    })
}

fn tell(role: &str, name: &str, error: &Error, place: SourcePosition) -> FieldProblem {
    FieldProblem {
        role: role.to_owned(),
        name: name.to_owned(),
        code: error.code.to_string(),
        message: error.message.to_string(),
        hint: error.hint.as_deref().unwrap_or_default().to_owned(),
        path: place.path.to_string(),
        line: place.line,
        column: place.column,
    }
}

/// Combines all problems into one error, at the place of the first.
pub(super) fn error(problems: &[FieldProblem]) -> Option<Error> {
    let (first, others) = problems.split_first()?;
    let mut hints: Vec<String> = Vec::new();
    hints.extend((!first.hint.is_empty()).then(|| first.hint.clone()));
    if !others.is_empty() {
        let also = others.iter().map(|one| {
            format!(
                "{} \"{}\" ({}:{}:{}): {}",
                one.role, one.name, one.path, one.line, one.column, one.message
            )
        });
        hints.push(format!("also wrong: {}", also.collect::<Vec<_>>().join("; ")));
    }
    Some(Error {
        hint: (!hints.is_empty()).then(|| hints.join("; ").into()),
        place: Some(SourcePosition {
            path: first.path.as_str().into(),
            line: first.line,
            column: first.column,
        }),
        ..Error::permanent(
            first.code.as_str(),
            format!("{} \"{}\": {}", first.role, first.name, first.message),
        )
    })
}
