//! The codes of problems, each with its exit code and its HTTP status.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit::Exit;

/// The kind of a problem, by which programs decide what to do.
///
/// Each has its section in `docs/diagnostics.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Nothing has the name that was given.
    UnknownName,
    /// Several resources have the name that was given.
    AmbiguousName,
    /// An argument can't be read, does not fit the others, or is out of its range.
    BadArgument,
    /// A file or table of that name is there already.
    AlreadyExists,
    /// The resource, or the project, is in a state or of a kind in which this can't be done.
    WrongState,
    /// The rules of the project keep the one who asks out.
    NotAllowed,
    /// The project's files may run programs, and the operator lets nobody else change them.
    RemoteEditOff,
    /// The service does not know who asks.
    Unauthenticated,
    /// An idempotency key was used for another call.
    KeyReused,
    /// A change needs the version of the file that it replaces.
    VersionRequired,
    /// A file has another version than the one that a change replaces.
    StaleVersion,
    /// The files come from git, and are changed there.
    OwnedByGit,
    /// A file of the project, its SQL or a resource has an error.
    ProjectError,
    /// Nothing was built yet, so there is nothing to ask.
    NotBuilt,
    /// Another process holds what is needed.
    HeldElsewhere,
    /// The time that was given is over. What was asked for was not done, or only read.
    DeadlinePassed,
    /// Nobody can tell whether what was asked for was done.
    OutcomeUnknown,
    /// Too many requests wait already.
    Busy,
    /// The process that was asked ends. Another one may go on where it was.
    Stopping,
    /// No process runs the project, and this needs one.
    Unattended,
    /// A file, a disk or the system does not let it be done at present.
    Unavailable,
    /// The disk is full, so that nothing was changed.
    NoSpace,
    /// The one who asked broke off.
    Interrupted,
    /// Stored state can't be read: it is damaged or a newer version wrote it.
    StateUnreadable,
    /// The program has a defect.
    Defect,
}

/// A line of the table of codes: a code's name, exit code and HTTP status.
struct Line {
    code: Code,
    name: &'static str,
    exit: Exit,
    http: u16,
    is_retryable: bool,
}

const fn line(code: Code, name: &'static str, exit: Exit, http: u16, is_retryable: bool) -> Line {
    Line {
        code,
        name,
        exit,
        http,
        is_retryable,
    }
}

/// The table of codes, one line each, in the order of the enum.
const TABLE: [Line; 25] = [
    line(Code::UnknownName, "unknown-name", Exit::Usage, 404, false),
    line(Code::AmbiguousName, "ambiguous-name", Exit::Usage, 400, false),
    line(Code::BadArgument, "bad-argument", Exit::Usage, 400, false),
    line(Code::AlreadyExists, "already-exists", Exit::Usage, 412, false),
    line(Code::WrongState, "wrong-state", Exit::Usage, 409, false),
    line(Code::NotAllowed, "not-allowed", Exit::Usage, 403, false),
    line(Code::RemoteEditOff, "remote-edit-off", Exit::Usage, 403, false),
    line(Code::Unauthenticated, "unauthenticated", Exit::Usage, 401, false),
    line(Code::KeyReused, "key-reused", Exit::Usage, 422, false),
    line(Code::VersionRequired, "version-required", Exit::Usage, 428, false),
    line(Code::StaleVersion, "stale-version", Exit::Usage, 412, false),
    line(Code::OwnedByGit, "owned-by-git", Exit::Usage, 409, false),
    line(
        Code::ProjectError,
        "project-error",
        Exit::ProjectError,
        422,
        false,
    ),
    line(Code::NotBuilt, "not-built", Exit::ProjectError, 409, false),
    line(Code::HeldElsewhere, "held-elsewhere", Exit::NotNow, 503, true),
    line(Code::DeadlinePassed, "deadline-passed", Exit::NotNow, 504, true),
    line(Code::OutcomeUnknown, "outcome-unknown", Exit::NotNow, 504, false),
    line(Code::Busy, "busy", Exit::NotNow, 503, true),
    line(Code::Stopping, "stopping", Exit::NotNow, 503, true),
    line(Code::Unattended, "unattended", Exit::NotNow, 503, true),
    line(Code::Unavailable, "unavailable", Exit::NotNow, 503, true),
    line(Code::NoSpace, "no-space", Exit::NotNow, 507, true),
    line(Code::Interrupted, "interrupted", Exit::Interrupted, 499, true),
    line(
        Code::StateUnreadable,
        "state-unreadable",
        Exit::StateFolder,
        500,
        false,
    ),
    line(Code::Defect, "defect", Exit::NotNow, 500, false),
];

impl Code {
    /// Returns all codes, in the order of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|line| line.code)
    }

    fn line(self) -> &'static Line {
        &TABLE[self as usize]
    }

    /// Returns the name of the code in documents, such as `unknown-name`.
    pub fn name(self) -> &'static str {
        self.line().name
    }

    /// Returns the exit code of a command that ends with the problem.
    pub fn exit(self) -> Exit {
        self.line().exit
    }

    /// Returns the HTTP status of an answer with the problem.
    pub fn http_status(self) -> u16 {
        self.line().http
    }

    /// Returns true if the same request may succeed later without any change by hand.
    pub fn is_retryable(self) -> bool {
        self.line().is_retryable
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_code_at_its_place_under_the_name_that_documents_have() {
        for (index, line) in TABLE.iter().enumerate() {
            assert_eq!(line.code as usize, index, "{}", line.name);
            assert_eq!(serde_json::to_value(line.code).unwrap(), line.name);
            assert!((400..600).contains(&line.http), "{}", line.name);
            assert_ne!(line.exit, Exit::Converged, "{}", line.name);
        }
    }
}
