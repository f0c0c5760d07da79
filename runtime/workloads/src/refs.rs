//! Checks of a workload's refs.

use watershed_controller::Error;
use watershed_core::{ErrorKind, RefView, Required, SourcePosition};
use watershed_proto::Fault;

/// Returns an error if a ref is missing or has failed.
///
/// # Errors
/// The first ref that is one of these.
pub(crate) fn check(refs: &[RefView]) -> Result<(), Error> {
    for view in refs {
        let to = &view.reference;
        let (code, message) = match (&view.target, view.failed) {
            (None, _) => (
                "missing-ref",
                format!("{} \"{}\" does not exist", to.kind, to.name),
            ),
            (Some(_), true) if to.required != Required::Exists => (
                "ref-failed",
                format!("not started, because {} \"{}\" has failed", to.kind, to.name),
            ),
            (Some(_), _) => continue,
        };
        return Err(Error::new(ErrorKind::Dependency(to.clone()), code, message));
    }
    Ok(())
}

/// Returns the error of a file that does not compile.
pub(crate) fn from_fault(fault: &Fault) -> Error {
    let mut error = Error::permanent(fault.code.as_str(), fault.message.as_str());
    error.hint = (!fault.hint.is_empty()).then(|| fault.hint.as_str().into());
    error.place = Some(SourcePosition {
        path: fault.path.as_str().into(),
        line: fault.line,
        column: fault.column,
    });
    error
}
