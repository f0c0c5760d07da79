//! Answers: the document that a command writes to its standard output, and an HTTP call is answered with.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use watershed_controller::{Error, Timestamp};
use watershed_schedule::jiff::{self, SignedDuration};

use crate::event::EventMatch;
use crate::manager::{Done, Observation};
use crate::stages::Stage;

/// The most bytes of an answer. Its data are stored with the resource and loaded with it, so it must not be large.
pub const ANSWER_MAX: usize = 256 * 1024;
/// The longest wait that an answer may ask for: one that is longer is a mistake of units.
const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The code of answers that can't be used.
pub(super) const BAD_ANSWER: &str = "bad-answer";
/// The code of failures that say no other.
pub(super) const FAILED: &str = "step-failed";

/// The result of a step or a look. All is optional, but a look must say the stage.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// The stage at which it is. A step without one has reached its own.
    pub stage: Option<String>,
    /// More that is known of it. Those of a look replace what was known, those of a step are added.
    pub data: Option<Map<String, Value>>,
    /// A sentence for people.
    pub message: Option<String>,
    /// The time after which the step is performed again, for it is not finished.
    pub requeue_after: Option<Wait>,
    /// The event that completes the step.
    #[serde(rename = "await")]
    pub awaits: Option<AwaitAnswer>,
    /// The failure. It counts whatever the exit code or the status is.
    pub error: Option<ErrorAnswer>,
}

/// A wait: seconds, or a text such as `1m30s`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Wait {
    /// Seconds.
    Seconds(f64),
    /// A text with units.
    Text(String),
}

/// The event that a step waits for.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwaitAnswer {
    /// The type of the event; one that ends in `*` stands for all that begin so.
    #[serde(rename = "type")]
    pub kind: String,
    /// The source; any without one.
    #[serde(default)]
    pub source: Option<String>,
    /// The subject; the name of the resource without one.
    #[serde(default)]
    pub subject: Option<String>,
    /// The deadline (RFC 3339), after which the attempt has failed.
    pub until: String,
}

/// A failure.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorAnswer {
    /// A code for programs.
    pub code: Option<String>,
    /// The message for people.
    pub message: String,
    /// Set if no further attempt helps.
    pub permanent: bool,
}

impl Answer {
    /// Reads an answer. Nothing at all is an empty one.
    ///
    /// # Errors
    /// `bad-answer` if it is no such document.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(bytes).map_err(|error| {
            let message = format!("its answer can't be read: {error}");
            let hint =
                "one JSON object is expected, or nothing; what people should read belongs on standard error";
            Error {
                hint: Some(hint.into()),
                ..Error::transient(BAD_ANSWER, message)
            }
        })
    }

    /// Returns the failure that it states, if it does.
    pub(super) fn failure(&self) -> Option<Error> {
        let error = self.error.as_ref()?;
        let code = error.code.as_deref().unwrap_or(FAILED);
        let mut failure = match error.permanent {
            true => Error::permanent(code, error.message.as_str()),
            false => Error::transient(code, error.message.as_str()),
        };
        failure.retry_after = self.wait().ok().flatten();
        Some(failure)
    }

    /// Returns the wait that it asks for.
    ///
    /// # Errors
    /// `bad-answer` if it is none.
    pub(super) fn wait(&self) -> Result<Option<Duration>, Error> {
        let Some(wait) = &self.requeue_after else {
            return Ok(None);
        };
        let read = match wait {
            Wait::Seconds(seconds) => Duration::try_from_secs_f64(*seconds).ok(),
            Wait::Text(text) => {
                let read: Option<SignedDuration> = text.parse().ok();
                read.and_then(|read| Duration::try_from(read).ok())
            }
        };
        let bad = || Error::transient(BAD_ANSWER, "`requeue_after` is no duration, such as `30s`");
        read.map(|wait| Some(wait.min(WAIT_MAX))).ok_or_else(bad)
    }

    /// Returns the end of a step.
    ///
    /// # Errors
    /// The failure that it states, or `bad-answer`.
    pub fn done(&self, to: &Stage) -> Result<Done, Error> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        if let Some(awaits) = &self.awaits {
            let until: Result<jiff::Timestamp, _> = awaits.until.parse();
            let until = until.map_err(|_| {
                let message = format!("\"{}\" is no time such as 2027-03-01T09:00:00Z", awaits.until);
                Error::transient(BAD_ANSWER, message)
            })?;
            let event = EventMatch {
                kind: awaits.kind.clone(),
                source: awaits.source.clone(),
                subject: awaits.subject.clone(),
            };
            let until = Timestamp(until.as_millisecond());
            return Ok(Done::Await { event, until });
        }
        if let Some(wait) = self.wait()? {
            return Ok(Done::RequeueAfter(wait));
        }
        Ok(Done::At(
            self.stage.as_deref().map_or_else(|| to.clone(), Stage::from),
        ))
    }

    /// Returns the result of a look.
    ///
    /// # Errors
    /// The failure that it states, or `bad-answer` without a stage.
    pub fn observation(self) -> Result<Observation<Map<String, Value>>, Error> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let Some(stage) = self.stage else {
            let message = "the answer to a look has no `stage`";
            return Err(Error::transient(BAD_ANSWER, message));
        };
        Ok(Observation::at(stage.as_str(), self.data.unwrap_or_default()))
    }
}
