//! Exit codes of the program, the one place where they are written down.

/// The end of a command, as scripts see it.
///
/// The numbers are a promise; see `docs/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Converged, or nothing wrong.
    Converged = 0,
    /// The project, the SQL or a resource has an error; everything else is converged.
    ProjectError = 1,
    /// Unknown command, name or option, or no project here.
    Usage = 2,
    /// Not now: another process holds the folder, a deadline passed, the state folder can't be written.
    NotNow = 3,
    /// The state folder is damaged or from a newer version; nothing was touched.
    StateFolder = 4,
    /// Asked for by `--exit-code`: something would be done.
    WouldChange = 5,
    /// Stopped in order when its terminal was closed.
    HungUp = 129,
    /// Stopped in order by Ctrl-C.
    Interrupted = 130,
    /// Stopped in order by a request to terminate.
    Terminated = 143,
}

impl Exit {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The code that a document or another process names.
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

    /// The word for it in documents of errors.
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
