//! Exit codes of the program.

/// The exit code of a command, for scripts.
///
/// The numbers are a promise; see `docs/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything converged, or no problem was found.
    Converged = 0,
    /// The project, the SQL or a resource has an error; everything else converged.
    ProjectError = 1,
    /// The command, a name or an option is unknown, or the folder holds no project.
    Usage = 2,
    /// The command can't run now: another process holds the folder, a deadline passed, or the state folder can't be
    /// written.
    NotNow = 3,
    /// The state folder is damaged or from a newer version; nothing was touched.
    StateFolder = 4,
    /// There is something to do, and `--exit-code` was given.
    WouldChange = 5,
    /// The command stopped in order because its terminal was closed.
    HungUp = 129,
    /// The command stopped in order because of Ctrl-C.
    Interrupted = 130,
    /// The command stopped in order because of a request to terminate (SIGTERM).
    Terminated = 143,
}

impl Exit {
    /// Returns the number that the process exits with.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit code with a number; `NotNow` for an unknown number.
    pub fn from_code(code: u8) -> Self {
        let all = [
            Self::Converged,
            Self::ProjectError,
            Self::Usage,
            Self::NotNow,
            Self::StateFolder,
            Self::WouldChange,
            Self::HungUp,
            Self::Interrupted,
            Self::Terminated,
        ];
        let found = all.into_iter().find(|exit| exit.code() == code);
        found.unwrap_or(Self::NotNow)
    }

    /// Returns the name of the exit code in documents of errors.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::ProjectError => "project",
            Self::Usage => "usage",
            Self::NotNow => "not-now",
            Self::StateFolder => "state-folder",
            Self::WouldChange => "would-change",
            Self::HungUp | Self::Interrupted | Self::Terminated => "interrupted",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
