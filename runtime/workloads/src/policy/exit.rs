//! Classes of ends and of failed starts (rule W7), and the end of a job (rule W8).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::{Attempts, RetryPolicy, Timestamp};

/// The end of a process (W7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// By the limit of its memory.
    OutOfMemory,
    /// Stopped, as it had run for its whole timeout.
    Timeout,
    /// Unseen: its parent was killed in between.
    Unknown,
}

/// The class of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitClass {
    /// A code that counts as success.
    Success,
    /// An end that another start may not have.
    Failure,
    /// A code that says that another start would end the same way.
    Permanent,
}

/// The codes that have a meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codes {
    /// Codes of success.
    pub success: Vec<i32>,
    /// Codes after which nothing is tried again.
    pub no_retry: Vec<i32>,
}

impl Default for Codes {
    /// 0 is success; 126 and 127 are what a shell says of a program that it can't execute or find.
    fn default() -> Self {
        Self {
            success: vec![0],
            no_retry: vec![126, 127],
        }
    }
}

impl Codes {
    /// Returns the class of an end. A code in both lists is a success: the program ended as it was meant to.
    pub fn classify(&self, exit: Exit) -> ExitClass {
        match exit {
            Exit::Code(code) if self.success.contains(&code) => ExitClass::Success,
            Exit::Code(code) if self.no_retry.contains(&code) => ExitClass::Permanent,
            _ => ExitClass::Failure,
        }
    }
}

/// The reason why a process could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// There is no such program.
    ProgramMissing,
    /// The program may not be executed, or is none.
    NotExecutable,
    /// The command is empty, too long or has a zero byte.
    BadCommand,
    /// The folder to start in is none.
    BadFolder,
    /// There is no such image.
    ImageMissing,
    /// The image may not be read.
    ImageForbidden,
    /// Another process has the port.
    PortBusy,
    /// The system had no room for another process.
    ForkFailed,
    /// The output file can't be opened: a disk may be full.
    BadOutput,
    /// The image did not arrive whole.
    PullInterrupted,
    /// The container engine, or the parent of local processes, does not answer.
    EngineUnreachable,
    /// The memory limit is above the memory that is free.
    InsufficientResources,
    /// The container engine refuses the container: a limit or a network that it does not have.
    EngineRefused,
}

/// The class of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartClass {
    /// It fails again until a person changes something.
    Permanent,
    /// It may succeed a little later.
    Transient,
    /// It waits for room, however long that takes.
    Pending,
}

impl StartFailure {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::ProgramMissing,
        Self::NotExecutable,
        Self::BadCommand,
        Self::BadFolder,
        Self::ImageMissing,
        Self::ImageForbidden,
        Self::PortBusy,
        Self::ForkFailed,
        Self::BadOutput,
        Self::PullInterrupted,
        Self::EngineUnreachable,
        Self::InsufficientResources,
        Self::EngineRefused,
    ];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProgramMissing => "program_missing",
            Self::NotExecutable => "not_executable",
            Self::BadCommand => "bad_command",
            Self::BadFolder => "bad_folder",
            Self::ImageMissing => "image_missing",
            Self::ImageForbidden => "image_forbidden",
            Self::PortBusy => "port_busy",
            Self::ForkFailed => "fork_failed",
            Self::BadOutput => "bad_output",
            Self::PullInterrupted => "image_pull_back_off",
            Self::EngineUnreachable => "engine_unreachable",
            Self::InsufficientResources => "insufficient_resources",
            Self::EngineRefused => "create_container_error",
        }
    }

    /// Returns the class (W7).
    pub fn class(self) -> StartClass {
        match self {
            Self::ProgramMissing
            | Self::NotExecutable
            | Self::BadCommand
            | Self::BadFolder
            | Self::ImageMissing
            | Self::ImageForbidden
            | Self::EngineRefused => StartClass::Permanent,
            Self::PortBusy
            | Self::ForkFailed
            | Self::BadOutput
            | Self::PullInterrupted
            | Self::EngineUnreachable => StartClass::Transient,
            Self::InsufficientResources => StartClass::Pending,
        }
    }
}

/// The wait before another look whether there is room for a start.
pub const NO_ROOM: Duration = Duration::from_secs(10);

/// Retries of a start that failed for a passing reason: 5, after 1 s, doubling to 60 s (W7). The first attempt is no
/// retry.
pub const START_RETRIES: RetryPolicy = RetryPolicy::Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(60),
    attempts: 6,
    reset_after: Duration::ZERO,
};

/// The decision after a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterStart {
    /// The replica or job has failed.
    Fail,
    /// Another start at [`Attempts::next`]. The count is kept apart from that of exits.
    Retry(Attempts),
    /// It is pending, `insufficient_resources`, and looked at again by each scan.
    Wait,
}

/// Decides what follows on a failed start (W7). `attempts` are the failed starts in a row before it.
pub fn after_failed_start(failure: StartFailure, attempts: Attempts, now: Timestamp) -> AfterStart {
    match failure.class() {
        StartClass::Permanent => AfterStart::Fail,
        StartClass::Pending => AfterStart::Wait,
        StartClass::Transient => match attempts.failed(now, START_RETRIES) {
            attempts if attempts.is_used_up() => AfterStart::Fail,
            attempts => AfterStart::Retry(attempts),
        },
    }
}

/// The decision after the end of a job's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterJob {
    /// The run key is finished.
    Complete,
    /// Another start at [`Attempts::next`].
    Retry(Attempts),
    /// The job has failed.
    Fail,
}

/// Decides what follows on the end of a job's process (W8): a success code completes, any other end, also an unknown
/// one, is tried again as `retries` allows. `attempts` are the failures in a row before it.
///
/// Nothing is known of an unknown end, so it is no success.
pub fn after_job(
    success: &[i32],
    retries: RetryPolicy,
    attempts: Attempts,
    exit: Exit,
    now: Timestamp,
) -> AfterJob {
    if matches!(exit, Exit::Code(code) if success.contains(&code)) {
        return AfterJob::Complete;
    }
    match attempts.failed(now, retries) {
        attempts if attempts.is_used_up() => AfterJob::Fail,
        attempts => AfterJob::Retry(attempts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    /// W7.
    #[test]
    fn each_end_has_one_class() {
        let codes = Codes {
            success: vec![0, 7, 126],
            ..Codes::default()
        };
        for (exit, class) in [
            (Exit::Code(0), ExitClass::Success),
            (Exit::Code(7), ExitClass::Success),
            (Exit::Code(126), ExitClass::Success),
            (Exit::Code(127), ExitClass::Permanent),
            (Exit::Code(1), ExitClass::Failure),
            (Exit::Code(-1), ExitClass::Failure),
            (Exit::Signal(9), ExitClass::Failure),
            (Exit::Signal(0), ExitClass::Failure),
            (Exit::OutOfMemory, ExitClass::Failure),
            (Exit::Timeout, ExitClass::Failure),
            (Exit::Unknown, ExitClass::Failure),
        ] {
            assert_eq!(codes.classify(exit), class, "{exit:?}");
        }
        assert_eq!(Codes::default().classify(Exit::Code(126)), ExitClass::Permanent);
    }

    /// W7.
    #[test]
    fn a_failed_start_is_permanent_passing_or_waits_for_room() {
        use StartFailure::*;
        let fails = [
            ProgramMissing,
            NotExecutable,
            BadCommand,
            BadFolder,
            ImageMissing,
            ImageForbidden,
            EngineRefused,
        ];
        let passes = [
            PortBusy,
            ForkFailed,
            BadOutput,
            PullInterrupted,
            EngineUnreachable,
        ];
        for failure in StartFailure::ALL {
            let found = after_failed_start(failure, Attempts::default(), NOW);
            match found {
                AfterStart::Fail => assert!(fails.contains(&failure), "{failure:?}"),
                AfterStart::Retry(attempts) => {
                    assert!(passes.contains(&failure), "{failure:?}");
                    assert_eq!((attempts.count, attempts.next), (1, Some(Timestamp(2_000))));
                }
                AfterStart::Wait => assert_eq!(failure, InsufficientResources),
            }
        }
    }

    /// W7.
    #[test]
    fn a_start_is_tried_again_five_times_with_waits_that_double() {
        let mut attempts = Attempts::default();
        let mut waits = Vec::new();
        while let AfterStart::Retry(next) = after_failed_start(StartFailure::PortBusy, attempts, NOW) {
            waits.push(next.wait(NOW).unwrap().as_secs());
            attempts = next;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16]);
    }

    /// W8.
    #[test]
    fn a_job_completes_by_a_success_code_and_fails_when_its_attempts_are_used_up() {
        let retries = |attempts| RetryPolicy::Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
            attempts,
            reset_after: Duration::ZERO,
        };
        let others = [
            Exit::Code(1),
            Exit::Signal(15),
            Exit::OutOfMemory,
            Exit::Timeout,
            Exit::Unknown,
        ];
        let first = Attempts::default();
        assert_eq!(
            after_job(&[0, 3], retries(1), first, Exit::Code(3), NOW),
            AfterJob::Complete
        );
        for exit in others {
            assert_eq!(
                after_job(&[0], retries(1), first, exit, NOW),
                AfterJob::Fail,
                "{exit:?}"
            );
            let AfterJob::Retry(second) = after_job(&[0], retries(2), first, exit, NOW) else {
                panic!("{exit:?} is tried again");
            };
            assert_eq!(second.next, Some(Timestamp(2_000)));
            assert_eq!(
                after_job(&[0], retries(2), second, exit, NOW),
                AfterJob::Fail,
                "{exit:?}"
            );
        }
    }
}
