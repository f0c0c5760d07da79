//! Conversion of errors of questions to problems.

use watershed_api::documents::ResourceName;
use watershed_api::{Code, Problem, hint};
use watershed_core::Error;
use watershed_drivers::olap::{Failure, QueryError, SoleError, SqlError};
use watershed_metrics::QueryError as Misunderstood;
use watershed_metrics::plan::PlanError;
use watershed_metrics::query;
use watershed_resolvers::{ResolveError, error::UNSPOKEN, metrics::MetricsError};

use crate::instance::engine_problem;

/// Returns the problem of an export with totals or a pivot, which have no place in a file.
pub(crate) fn made_over() -> Problem {
    Problem::new(Code::BadArgument, "a file has neither totals nor a pivot").hint(format!(
        "leave them out, or write {} to standard output",
        hint::option("format", "csv")
    ))
}

/// Returns the problem of a user's query that failed in the engine, without the reason.
pub(crate) fn unspoken() -> Problem {
    Problem::new(Code::ProjectError, UNSPOKEN)
        .hint("the project's owner sees the reason, with the same query")
}

/// Converts the error of a resource.
pub(crate) fn of_resource(error: &Error) -> Problem {
    Problem {
        hint: error.hint.as_deref().map(Into::into),
        ..Problem::new(Code::ProjectError, error.message.to_string()).at(&*error.code, None)
    }
}

/// Converts the error of a question that has no answer.
pub(crate) fn unresolved(error: ResolveError) -> Problem {
    match error {
        ResolveError::Metrics(error) => of_metrics(error),
        error => {
            let code = match error {
                ResolveError::NotAllowed(_) => Code::NotAllowed,
                ResolveError::UnknownApi(_) => Code::UnknownName,
                ResolveError::UnknownArgument { .. } => Code::BadArgument,
                _ => Code::ProjectError,
            };
            let problem = of_resource(&error.to_error());
            Problem { code, ..problem }
        }
    }
}

/// Converts the error of a caller's own statement, whose mistakes the caller may read.
pub(crate) fn of_statement(error: ResolveError) -> Problem {
    let is_own = matches!(error, ResolveError::MetricsSql { .. });
    let problem = unresolved(error);
    match is_own {
        true => Problem {
            code: Code::BadArgument,
            ..problem
        },
        false => problem,
    }
}

/// Converts the error of a query that can't be understood.
pub(crate) fn misunderstood(error: &Misunderstood) -> Problem {
    let code = match error.code {
        query::Code::NotAllowed => Code::NotAllowed,
        _ => Code::BadArgument,
    };
    let problem = Problem::new(code, error.to_string()).at(error.code.name(), None);
    match &error.hint {
        Some(hint) => problem.hint(hint.as_str()),
        None => problem,
    }
}

/// Converts the error of a metrics query.
pub(crate) fn of_metrics(error: MetricsError) -> Problem {
    match error {
        MetricsError::Engine(error) => of_query(&error),
        MetricsError::Unspoken(_) => unspoken(),
        MetricsError::Refused(PlanError::Refused(error)) => misunderstood(&error),
        MetricsError::NotValid(ref name) => {
            let view = format!("metrics_view/{name}");
            let status = hint::operation("status", [view.as_str()]);
            Problem::new(Code::ProjectError, error.to_string())
                .about(ResourceName::new("metrics_view", name.as_str()))
                .hint(format!("{status} says what is wrong with it"))
        }
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

/// Converts the error of a statement without rows.
pub(crate) fn of_query(error: &QueryError) -> Problem {
    match error {
        QueryError::Timeout(_) => Problem::new(Code::DeadlinePassed, error.to_string())
            .hint(format!("{} gives it more time", hint::option("timeout", "D"))),
        QueryError::NotReading => Problem::new(Code::ProjectError, error.to_string())
            .hint("tables are changed by changing the project's files"),
        QueryError::NotOne(SoleError::Several { offset }) => {
            Problem::new(Code::ProjectError, error.to_string())
                .at(SEVERAL_CODE, Some(*offset))
                .hint("ask one at a time")
        }
        QueryError::Parameters(message) => Problem::new(Code::BadArgument, message.clone())
            .hint("`parameters` takes a list for `$1`, `$2` or `?`, and names for `$name`"),
        QueryError::Failed(Failure::Sql(sql)) => problem_of_sql(sql),
        QueryError::Failed(failure @ Failure::Open(_)) => engine_problem(failure),
        error => Problem::new(Code::ProjectError, error.to_string()),
    }
}

/// The compiler's code for text with more than one statement.
const SEVERAL_CODE: &str = "several-statements";

/// Converts an error in the statement, or in the data that it reads.
fn problem_of_sql(error: &SqlError) -> Problem {
    let message = match &error.data {
        Some(at) => format!("{} ({}:{})", error.message, at.file, at.line),
        None => error.message.clone(),
    };
    let stored = watershed_outputs::failure::from_sql(error);
    Problem {
        hint: stored.hint.as_deref().map(Into::into),
        ..Problem::new(Code::ProjectError, message).at(&*stored.code, error.offset)
    }
}
