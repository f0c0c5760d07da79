//! Classification of exits and failed starts (rule W7), and the consequences of a job's end (rule W8).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_core::{Attempts, RetryPolicy, Timestamp};

/// The way in which a process exited, as policies see it (W7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// Exited with this code.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Killed at its memory limit.
    OutOfMemory,
    /// Stopped at its timeout.
    Timeout,
    /// Not observed: the parent process was killed in the meantime.
    Unknown,
}

/// The class of an exit, which determines restarts and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitClass {
    /// The exit code is listed as success.
    Success,
    /// The exit is a failure that a retry may avoid.
    Failure,
    /// The exit code is listed as permanent, so a retry would end the same way.
    Permanent,
}

/// Exit codes with a special meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Codes {
    /// Exit codes of success.
    pub success: Vec<i32>,
    /// Exit codes after which there is no retry.
    pub no_retry: Vec<i32>,
}

impl Default for Codes {
    /// Returns the default codes: 0 for success; 126 and 127, a shell's codes for a program that it can't execute or
    /// find, for no retry.
    fn default() -> Self {
        Self {
            success: vec![0],
            no_retry: vec![126, 127],
        }
    }
}

impl Codes {
    /// Classifies an exit. A code in both lists is a success.
    pub fn classify(&self, exit: Exit) -> ExitClass {
        match exit {
            Exit::Code(code) if self.success.contains(&code) => ExitClass::Success,
            Exit::Code(code) if self.no_retry.contains(&code) => ExitClass::Permanent,
            _ => ExitClass::Failure,
        }
    }
}

/// The reason of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartFailure {
    /// The program does not exist.
    ProgramMissing,
    /// The file is not executable or no program.
    NotExecutable,
    /// The command is empty, too long or contains a zero byte.
    BadCommand,
    /// The working directory does not exist.
    BadFolder,
    /// The image does not exist.
    ImageMissing,
    /// The registry forbids the pull of the image.
    ImageForbidden,
    /// Another process uses the port.
    PortBusy,
    /// The system could not create another process.
    ForkFailed,
    /// The output file can't be opened, for example on a full disk.
    BadOutput,
    /// The pull of the image was interrupted.
    PullInterrupted,
    /// The container engine or the shim does not answer.
    EngineUnreachable,
    /// The memory limit exceeds the available memory.
    InsufficientResources,
    /// The container engine refuses the settings, such as an unknown network or an unsupported limit.
    EngineRefused,
}

/// The class of a failed start, which determines what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartClass {
    /// A retry would fail until a person changes something.
    Permanent,
    /// A retry may succeed soon.
    Transient,
    /// The start waits until memory is available, without a limit of time.
    Pending,
}

impl StartFailure {
    /// All reasons of failed starts.
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

    /// Returns the failure as a word.
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

    /// Returns the class of the failure (W7).
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

/// Interval between two checks for available memory.
pub const NO_ROOM: Duration = Duration::from_secs(10);

/// Retries of a start after a transient failure: 5, first after 1 s, doubling up to 60 s (W7). The first attempt does
/// not count.
pub const START_RETRIES: RetryPolicy = RetryPolicy::Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(60),
    attempts: 6,
    reset_after: Duration::ZERO,
};

/// Decision after a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterStart {
    /// Fail the replica or job.
    Fail,
    /// Retry at [`Attempts::next`]. Failed starts are counted apart from exits.
    Retry(Attempts),
    /// Stay pending with the reason `insufficient_resources`, rechecked by each scan.
    Wait,
}

/// Decides about a failed start (W7). `attempts` counts the consecutive failed starts before it.
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

/// Decision after the end of a job's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterJob {
    /// Complete the run.
    Complete,
    /// Retry at [`Attempts::next`].
    Retry(Attempts),
    /// Fail the job.
    Fail,
}

/// Decides about the end of a job's process (W8): a success code completes the run, and any other end, even an unknown
/// one, is retried as `retries` allows. `attempts` counts the consecutive failures before it.
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

    /// Covers W7: classes of exits.
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

    /// Covers W7: classes of failed starts.
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

    /// Covers W7: retries of starts.
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

    /// Covers W8: completion, retries and failure of a job.
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
