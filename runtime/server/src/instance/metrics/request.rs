//! Requests of the command line: a query of a metrics view, with conditions in SQL, for a user, into a file.

use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{Existing, Export, FileFormat, Layout};
use watershed_metrics::plan::PlanError;
use watershed_metrics::{Query, QueryError};

use watershed_api::request::MetricsRequest;
use watershed_api::{Answer, Code, Problem};
use watershed_core::Key;
use watershed_reconcilers::metrics_view::KIND;
use watershed_reconcilers::resolvers::error::UNSPOKEN;
use watershed_reconcilers::resolvers::metrics::{LONGEST, MetricsError, Question};
use watershed_reconcilers::resolvers::{Heading, Until, Viewer, Views, condition};
use watershed_reconcilers::secrets::Secrets;
use watershed_reconcilers::{canvas, explore};

use super::{Entries, answer as answers};
use crate::instance::{export, query as queries};
use crate::report::names;
use crate::socket::Replies;

/// The way in for questions of the command line.
pub(in crate::instance) struct Door<'a> {
    pub(in crate::instance) views: &'a Views<'a>,
    pub(in crate::instance) engine: &'a Engine,
    pub(in crate::instance) entries: &'a Entries<'a>,
}

/// Answers a request. Ends early when nobody listens any more.
///
/// # Errors
/// A query that can't be read, planned or run, and a file that can't be written.
pub(in crate::instance) async fn answer(
    door: &Door<'_>,
    request: MetricsRequest,
    replies: &Replies,
) -> Result<Answer, Problem> {
    tokio::select! {
        answered = answered(door, request, replies) => answered,
        () = replies.closed() => Err(Problem::new(Code::Interrupted, "interrupted")),
    }
}

async fn answered(door: &Door<'_>, request: MetricsRequest, replies: &Replies) -> Result<Answer, Problem> {
    let (views, refusal) = (door.views, |error| door.refusal(error));
    let now = time(request.at.as_deref())?;
    let viewer = match request.user {
        Some(attributes) => Viewer::user(attributes),
        None => Viewer::Owner,
    };
    let mut json = request.query;
    add_condition(&mut json, "where", request.condition.as_deref())?;
    add_condition(&mut json, "having", request.having.as_deref())?;
    if request.shows_change {
        add_comparisons(&mut json, views);
    }
    let mut query = Query::from_json(&json).map_err(|error| refused(&error))?;
    let shown = request
        .shown
        .filter(|_| query.limit.is_none() && query.pivot_on.is_empty());
    let through = request.through.as_deref().map(typed_front).transpose()?;
    let question = |query| Question {
        query,
        viewer: &viewer,
        through: through.as_ref(),
        now,
        // As for an alert that is tried out, the time stands for the latest and the watermark as well.
        execution_time: request.at.is_some().then(|| Until::moment(now)),
    };
    if request.sql {
        let shown = Shown::of(request.show_values, &viewer)?;
        let planned = views.planned(question(&query)).await.map_err(refusal)?;
        let sql = shown.of_statement(planned.statement(), views.secrets);
        let document = answers::unanswered(&query, &planned.plan, sql);
        return Ok(Answer::Metrics(Box::new(document)));
    }
    if let Some(file) = &request.file {
        let planned = views.planned(question(&query)).await.map_err(refusal)?;
        if planned.is_made_over() {
            let message = "a file has neither totals nor a pivot";
            return Err(Problem::new(Code::BadArgument, message)
                .hint("leave them out, or write `--format csv` to standard output"));
        }
        let formats = planned.headings();
        let layout = Layout {
            columns: formats.iter().map(Heading::look).collect(),
            ..Layout::default()
        };
        let export = Export {
            attributes: planned.attributes().clone(),
            ..export_of(planned.statement(), layout, file, request.force)?
        };
        let written = export::write(door.engine, views.secrets, &export, replies).await;
        // What the engine says may quote rows that a user may not see.
        return written.map_err(|refusal| match viewer {
            Viewer::User(_) if refusal.code == Code::ProjectError => unspoken(),
            _ => refusal,
        });
    }
    // One more than is shown tells whether there are more.
    query.limit = query.limit.or(shown.map(|shown| shown + 1));
    let answer = views.answer(question(&query)).await.map_err(refusal)?;
    let mut document = answers::document(&query, &answer);
    let shown = shown.and_then(|shown| usize::try_from(shown).ok());
    if let Some(shown) = shown.filter(|shown| document.rows.len() > *shown) {
        document.rows.truncate(shown);
        document.truncated = true;
    }
    Ok(Answer::Metrics(Box::new(document)))
}

/// The form in which a statement is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::instance) enum Shown {
    /// With names in the place of the values of variables.
    Masked,
    /// As it runs.
    Whole,
}

impl Shown {
    /// Returns the form that somebody may see.
    ///
    /// # Errors
    /// Values that are wanted in somebody else's name.
    pub(in crate::instance) fn of(with_values: bool, viewer: &Viewer) -> Result<Self, Problem> {
        match (with_values, viewer) {
            (false, _) => Ok(Self::Masked),
            (true, Viewer::Owner) => Ok(Self::Whole),
            (true, Viewer::User(_)) => {
                let message = "values of variables are shown to the project's owner alone";
                Err(Problem::new(Code::NotAllowed, message).hint("leave out `--as` or `--show-values`"))
            }
        }
    }

    /// Returns a statement in this form.
    pub(in crate::instance) fn of_statement(self, sql: String, secrets: &Secrets) -> String {
        match self {
            Self::Masked => secrets.redact(&sql).into_owned(),
            Self::Whole => sql,
        }
    }
}

/// Returns the explore or canvas that was typed.
///
/// # Errors
/// Anything else.
fn typed_front(typed: &str) -> Result<Key, Problem> {
    front(typed).ok_or_else(|| {
        Problem::new(
            Code::BadArgument,
            format!("`{typed}` is no explore and no canvas"),
        )
        .hint("write `explore/NAME` or `canvas/NAME`")
    })
}

/// Reads the name of an explore or a canvas with its kind.
pub(super) fn front(typed: &str) -> Option<Key> {
    match typed.split_once('/')? {
        (kind @ (explore::KIND | canvas::KIND), name) => Some(Key::new(kind, name)),
        _ => None,
    }
}

/// Returns the time that a question is put at.
///
/// # Errors
/// A text that is no time.
pub(in crate::instance) fn time(typed: Option<&str>) -> Result<Timestamp, Problem> {
    let Some(typed) = typed else {
        return Ok(Timestamp::now());
    };
    let day = || format!("{typed}T00:00:00Z").parse().ok();
    typed.parse().ok().or_else(day).ok_or_else(|| {
        Problem::new(Code::BadArgument, format!("`{typed}` is no time"))
            .hint("write a time such as `2024-02-29T12:00:00Z`, or a day")
    })
}

/// Adds a condition in SQL to the filter that a query has.
fn add_condition(query: &mut Value, key: &str, sql: Option<&str>) -> Result<(), Problem> {
    let Some(sql) = sql else {
        return Ok(());
    };
    let added = condition::filter(sql).map_err(|message| {
        Problem::new(Code::BadArgument, format!("`--{key}`: {message}")).hint(
            "conditions compare fields with constants, as in `origin = 'JFK' AND delay > 15`; text stands in single quotes",
        )
    })?;
    if let Value::Object(query) = query {
        let filter = match query.remove(key) {
            None | Some(Value::Null) => added,
            Some(Value::Object(there)) if there.is_empty() => added,
            Some(there) => json!({"cond": {"op": "and", "exprs": [there, added]}}),
        };
        query.insert(key.to_owned(), filter);
    }
    Ok(())
}

/// Adds to each measure its value in the range that is compared with and the change since then, as a share of it. One
/// that compares by itself has neither.
fn add_comparisons(query: &mut Value, views: &Views<'_>) {
    let view = query.get("metrics_view").and_then(Value::as_str);
    let view = view.unwrap_or_default().to_owned();
    let Some(measures) = query.get_mut("measures").and_then(Value::as_array_mut) else {
        return;
    };
    let names = measures.iter().filter_map(Value::as_str);
    let added: Vec<Value> = names
        .filter(|name| !views.compares(&view, name))
        .flat_map(|name| {
            [("before", "comparison_value"), ("change", "comparison_ratio")]
                .map(|(end, compute)| json!({"name": format!("{name}_{end}"), "compute": {compute: {"measure": name}}}))
        })
        .collect();
    measures.extend(added);
}

fn export_of(sql: String, layout: Layout, file: &Path, force: bool) -> Result<Export, Problem> {
    let Some(format) = FileFormat::from_path(file) else {
        let message = format!("`{}` is no .csv, .xlsx or .parquet file", file.display());
        return Err(Problem::new(Code::BadArgument, message));
    };
    Ok(Export {
        sql,
        // A file has all rows, or is not there: they pass through, and the time is bounded.
        limit: None,
        timeout: Some(LONGEST),
        attributes: Default::default(),
        format,
        existing: match force {
            true => Existing::Replace,
            false => Existing::Keep,
        },
        file: file.to_owned(),
        layout,
    })
}

fn refused(error: &QueryError) -> Problem {
    let refusal = Problem::new(Code::BadArgument, error.to_string()).at(error.code.name(), None);
    match &error.hint {
        Some(hint) => refusal.hint(hint.as_str()),
        None => refusal,
    }
}

impl Door<'_> {
    fn refusal(&self, error: MetricsError) -> Problem {
        if let MetricsError::Unknown(name) = &error
            && let Err(refusal) = names::resolve(self.entries.0, &format!("{KIND}/{name}"))
        {
            return refusal;
        }
        queries::redacted(refusal(error), self.views.secrets)
    }
}

/// Returns the refusal of a user whose query failed on rows.
pub(in crate::instance) fn unspoken() -> Problem {
    Problem::new(Code::ProjectError, UNSPOKEN)
        .hint("the project's owner sees the reason, with the same query")
}

/// Returns the refusal that an error of a metrics view is.
pub(in crate::instance) fn refusal(error: MetricsError) -> Problem {
    match error {
        MetricsError::Engine(error) => queries::refusal(&error),
        MetricsError::Unspoken(_) => unspoken(),
        MetricsError::Refused(PlanError::Refused(error)) => refused(&error),
        MetricsError::NotValid(ref name) => Problem::new(Code::ProjectError, error.to_string()).hint(
            format!("`watershed status metrics_view/{name}` says what is wrong with it"),
        ),
        MetricsError::Policy { .. } | MetricsError::Render(_) => {
            Problem::new(Code::ProjectError, error.to_string())
        }
        MetricsError::Refused(ref planned) => Problem {
            hint: planned.hint().map(Into::into),
            ..Problem::new(Code::BadArgument, error.to_string())
        },
        MetricsError::Unknown(_) | MetricsError::NoFront(_) => {
            Problem::new(Code::UnknownName, error.to_string())
        }
        MetricsError::NotInFront { .. } | MetricsError::TooManyRows | MetricsError::TooManyColumns(_) => {
            Problem::new(Code::BadArgument, error.to_string())
        }
    }
}
