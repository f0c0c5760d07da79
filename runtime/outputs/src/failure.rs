//! Errors of runs that all kinds share, as they are stored on resources.

mod sql;

use std::path::Path;
use std::sync::Arc;

use watershed_api::hint::{self, without_sandbox};
use watershed_compilers::RenderError;
use watershed_core::{Error, ErrorKind, Ref, SourcePosition};
use watershed_drivers::objects::StoreError;
use watershed_drivers::olap::{Failure, OpenError};
use watershed_proto::Fault;

pub use sql::{from_sql, sql_code};

/// A model whose files do not compile.
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

/// A ref that names nothing.
pub fn missing_ref(to: &Ref) -> Error {
    let message = format!("{} \"{}\" does not exist", to.kind, to.name);
    Error::new(ErrorKind::Dependency(to.clone()), "missing-ref", message)
}

/// A ref to a model that was never built and that the run leaves out.
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

/// A ref that failed, to what is looked at and not built.
pub fn unchecked_ref(to: &Ref) -> Error {
    let message = format!("not checked, because {} \"{}\" has failed", to.kind, to.name);
    Error::new(ErrorKind::Dependency(to.clone()), "ref-failed", message)
}

/// Returns the hint of errors about what is outside the sandbox.
pub fn confined() -> String {
    format!(
        "with {} a project reaches its own folder and its state alone; copy it there, or run a project that you trust \
         without it",
        hint::option("sandbox", "")
    )
}

/// A store that can't be asked.
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

/// Stores are outside the sandbox.
pub fn confined_store() -> Error {
    Error {
        hint: Some(confined().into()),
        ..Error::permanent("outside-sandbox", "stores of objects are outside the sandbox")
    }
}

/// Databases of other systems are outside the sandbox.
pub fn confined_database() -> Error {
    let message = "databases of other systems are outside the sandbox";
    Error {
        hint: Some(format!("{}, or bring what it reads as files", without_sandbox()).into()),
        ..Error::permanent("outside-sandbox", message)
    }
}

/// A database that is a file, and is not there.
pub fn missing_database(file: &Path) -> Error {
    let message = format!("the database `{}` does not exist", file.display());
    Error::permanent("missing-file", message)
}

/// A template that can't be executed.
pub fn from_render(error: &RenderError) -> Error {
    let hint = error.hint.as_deref().map(Arc::from);
    Error {
        hint,
        ..Error::permanent("template", error.message.as_str())
    }
}

/// A data block whose way to fetch rows is not supported.
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

/// A run that was cancelled: dropped by the controller, whatever it says.
pub fn cancelled() -> Error {
    Error::transient("interrupted", "interrupted")
}

/// A failure of the engine.
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
