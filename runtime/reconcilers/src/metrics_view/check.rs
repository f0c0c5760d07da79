//! One look at a metrics view: all fields in one question and, if the engine refuses, one question a field, so that
//! each that is wrong is named.

use std::{collections::BTreeMap, sync::Arc};

use watershed_compilers::{Scope, nearest_name, render_text};
use watershed_core::{Error, SourcePosition};
use watershed_drivers::olap::SqlError;
use watershed_proto::{FieldProblem, SqlSource};

use super::{
    probe::{Probe, Prober, Render},
    whole::Whole,
};
use crate::{asking::Asking, model::failure, places};

/// The inputs of a check.
pub(super) struct Check<'a> {
    pub(super) engine: Asking<'a>,
    pub(super) environment: &'a str,
    pub(super) paths: &'a [Arc<str>],
    /// The models that there are, for hints.
    pub(super) models: &'a (dyn Fn() -> Vec<String> + Sync),
}

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct CheckedFields {
    pub(super) types: BTreeMap<String, String>,
    pub(super) problems: Vec<FieldProblem>,
}

/// Variables as they were when the file was read.
struct Variables {
    scope: Scope,
}

impl Render for Variables {
    fn render(&self, source: &SqlSource) -> Result<String, String> {
        if !source.templated {
            return Ok(source.text.clone());
        }
        render_text(&source.text, &self.scope).map_err(|error| error.message)
    }
}

impl Check<'_> {
    pub(super) async fn run(&self, whole: &Whole) -> Result<CheckedFields, Error> {
        let render = Variables {
            scope: Scope {
                environment: self.environment.to_owned(),
                variables: self.engine.outputs.secrets().open(&whole.spec.variables)?,
                ..Scope::default()
            },
        };
        let prober = Prober::new(whole, &render);
        let mut found = CheckedFields::default();
        let described = match prober.all() {
            Ok(sql) => self.engine.describe(&sql).await?.ok(),
            Err(_) => None,
        };
        match described {
            Some(columns) => {
                let ours = super::probe::COUNT.trim_matches('"');
                found.types = columns.into_iter().filter(|(name, _)| name != ours).collect();
                self.time(whole, &mut found);
            }
            None => self.one_by_one(whole, &prober, &mut found).await?,
        }
        for probe in prober.others() {
            if let Err(error) = self.engine.describe(&probe.sql).await? {
                found.problems.push(self.problem(&probe, &error));
            }
        }
        let place = |one: &FieldProblem| (one.line, one.column);
        found.problems.sort_by_key(place);
        Ok(found)
    }

    async fn one_by_one(
        &self,
        whole: &Whole,
        prober: &Prober<'_>,
        found: &mut CheckedFields,
    ) -> Result<(), Error> {
        if let Err(error) = self.engine.describe(&prober.table()).await? {
            found.problems.push(self.no_table(whole, &error));
            return Ok(());
        }
        for probe in prober.each() {
            let (probe, outcome) = match probe {
                Ok(probe) => {
                    let outcome = self.engine.describe(&probe.sql).await?;
                    (probe, outcome)
                }
                Err((probe, message)) => {
                    let error = SqlError {
                        class: "template".to_owned(),
                        message,
                        ..SqlError::default()
                    };
                    (probe, Err(error))
                }
            };
            match outcome {
                Ok(columns) => {
                    let first = columns.into_iter().next();
                    found.types.extend(first.map(|(_, r#type)| (probe.name, r#type)));
                }
                Err(error) => found.problems.push(self.problem(&probe, &error)),
            }
        }
        self.time(whole, found);
        Ok(())
    }

    /// The table can't be read. Most often a model's name is misspelled: names of models are what people mean.
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

    fn problem(&self, probe: &Probe, error: &SqlError) -> FieldProblem {
        let place = match (&probe.source, error.offset) {
            (Some(source), Some(offset)) if offset >= probe.before => {
                let offset = (offset - probe.before).min(probe.sent.len());
                places::from_source(self.paths, source, &probe.sent, Some(offset))
            }
            (Some(source), _) if probe.spot.is_none() => {
                places::from_source(self.paths, source, &probe.sent, None)
            }
            _ => places::from_spot(self.paths, probe.spot.as_ref()),
        };
        tell(probe.role, &probe.name, &failure::from_sql(error), place)
    }

    /// The time column has to hold times.
    fn time(&self, whole: &Whole, found: &mut CheckedFields) {
        let time = &whole.spec.time_dimension;
        let Some(r#type) = found.types.get(time) else {
            return;
        };
        if !time.is_empty() && !r#type.starts_with("TIMESTAMP") && r#type != "DATE" {
            let message = format!("expected a time, and its type is {type}");
            let error = Error {
                hint: Some("cast it in the model: `CAST(... AS TIMESTAMP)`".into()),
                ..Error::permanent("not-a-time", message)
            };
            let place = places::from_spot(self.paths, whole.spec.time_at.as_ref());
            found.problems.push(tell("timeseries", time, &error, place));
        }
    }
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

/// All problems as one error, at the place of the first.
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
