//! Errors of runs that all kinds share, in the form stored on resources.

mod sql;

use std::path::Path;
use std::sync::Arc;

use watershed_api::hint::{self, without_sandbox};
use watershed_compilers::RenderError;
use watershed_core::{Error, ErrorKind, Ref, SourcePosition};
use watershed_drivers::objects::StoreError;
use watershed_drivers::olap::{Failure, OpenError};
use watershed_drivers::reach::{ReachError, Refused};
use watershed_proto::Fault;

pub use sql::{from_sql, is_unreached, sql_code};

/// Returns the error of a model whose files do not compile.
pub fn from_fault(fault: &Fault) -> Error {
    Error {
        hint: text(&fault.hint),
        place: Some(SourcePosition {
            path: fault.path.as_str().into(),
            line: fault.line,
            column: fault.column,
        }),
        ..Error::permanent(fault.code.as_str(), fault.message.as_str())
    }
}

/// Returns the error of a ref to a resource that doesn't exist.
pub fn missing_ref(to: &Ref) -> Error {
    let message = format!("{} \"{}\" does not exist", to.kind, to.name);
    Error::new(ErrorKind::Dependency(to.clone()), "missing-ref", message)
}

/// Returns the error of a ref to a model that was never built and is not selected by the run.
pub fn left_out_ref(to: &Ref) -> Error {
    let message = format!(
        "{} \"{}\", which it reads, was never built and is not selected",
        to.kind, to.name
    );
    Error {
        hint: Some("`+` before the name of what is selected selects what it reads too".into()),
        ..Error::permanent("input-not-selected", message)
    }
}

/// Returns the error of a failed ref on a resource that is only checked, not built.
pub fn unchecked_ref(to: &Ref) -> Error {
    let message = format!("not checked, because {} \"{}\" has failed", to.kind, to.name);
    Error::new(ErrorKind::Dependency(to.clone()), "ref-failed", message)
}

/// Returns the hint of errors about access outside the sandbox.
pub fn confined() -> String {
    format!(
        "with {} a project reaches its own folder and its state alone; copy it there, or run a project that you trust \
         without it, in a service with `trust: full`",
        hint::option("sandbox", "")
    )
}

/// Returns the error of an object store that can't be reached.
pub fn from_store(error: &StoreError) -> Error {
    if *error == StoreError::Cancelled {
        return cancelled();
    }
    let kind = match error.passes() {
        true => ErrorKind::Transient,
        false => ErrorKind::Permanent,
    };
    Error {
        hint: error.hint().map(Into::into),
        ..Error::new(kind, error.code(), error.to_string())
    }
}

/// Returns the error of a database whose server the policy of outgoing connections does not allow.
pub fn from_reach(error: &ReachError) -> Error {
    match error {
        ReachError::Unknown => Error::transient("host-unknown", error.to_string()),
        ReachError::Refused(_) | ReachError::NoHost => Error {
            hint: Some(Refused::HINT.into()),
            ..Error::permanent(Refused::CODE, error.to_string())
        },
    }
}

/// Returns the error of an address of an object store that the sandbox does not permit.
pub fn confined_store(address: &str) -> Error {
    let hint = format!(
        "in a service the operator lists what is asked, and the store's endpoint, under `reach` of the instance; {}",
        confined()
    );
    Error {
        hint: Some(hint.into()),
        ..Error::permanent("outside-sandbox", format!("\"{address}\" is outside the sandbox"))
    }
}

/// Returns the error of objects that can't be fetched for a confined project, whose engine reaches no network.
pub fn unfetched(message: impl Into<Arc<str>>) -> Error {
    let hint = "read CSV, JSON, Parquet or XLSX by `path` in a source that is a table, or run a project that you trust with `trust: full`";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent("outside-sandbox", message)
    }
}

/// Returns the error of a database of another system that the sandbox does not permit.
pub fn confined_database() -> Error {
    let message = "databases of other systems are outside the sandbox";
    Error {
        hint: Some(
            format!(
                "{}, in a service with `trust: full`, or bring what it reads as files",
                without_sandbox()
            )
            .into(),
        ),
        ..Error::permanent("outside-sandbox", message)
    }
}

/// Returns the error of a missing database file.
pub fn missing_database(file: &Path) -> Error {
    let message = format!("the database `{}` does not exist", file.display());
    Error::permanent("missing-file", message)
}

/// Returns the error of a table in a database file that neither the source nor its connector names.
pub fn unnamed_database(connector: &str) -> Error {
    let hint = "add `db: data/NAME.duckdb` beside `table`, or a `path` to the connector";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(
            "missing-file",
            format!("connector \"{connector}\" names no database file"),
        )
    }
}

/// Returns the error of a template that can't be executed.
pub fn from_render(error: &RenderError) -> Error {
    let hint = error.hint.as_deref().map(Arc::from);
    Error {
        hint,
        ..Error::permanent("template", error.message.as_str())
    }
}

/// Returns the error of a data block whose resolver is not supported.
pub fn unsupported_data(resolver: &str) -> Error {
    let hint = "`data` takes `sql`, `metrics`, `metrics_sql`, `api`, `glob` or `resource_status`";
    Error {
        hint: Some(hint.into()),
        ..Error::permanent(
            "not-supported-yet",
            format!("`data` by `{resolver}` is not supported yet"),
        )
    }
}

/// Returns the error of a cancelled run. The controller discards it.
pub fn cancelled() -> Error {
    Error::transient("interrupted", "interrupted")
}

/// Returns the error of a failure of the engine.
pub fn from_failure(failure: &Failure) -> Error {
    if let Failure::Sql(sql) = failure {
        return from_sql(sql);
    }
    let kind = match failure {
        Failure::Fenced => ErrorKind::Fenced,
        Failure::Database(error) if !error.passes() => ErrorKind::Permanent,
        Failure::MissingExtension { .. }
        | Failure::Unsupported { .. }
        | Failure::Open(OpenError::Damaged { .. } | OpenError::Newer { .. }) => ErrorKind::Permanent,
        _ => ErrorKind::Transient,
    };
    let hint = failure.hint().map(Arc::from);
    Error {
        hint,
        ..Error::new(kind, failure.code(), failure.to_string())
    }
}

fn text(text: &str) -> Option<Arc<str>> {
    (!text.is_empty()).then(|| text.into())
}
