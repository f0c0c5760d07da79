//! Answers: the JSON document with which a command or an HTTP service answers a call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use watershed_controller::{Error, Timestamp};
use watershed_schedule::jiff::{self, SignedDuration};

use crate::event::EventMatch;
use crate::manager::{Done, Observation};
use crate::stages::Stage;

/// The largest answer, in bytes. Its data are stored and loaded with the resource.
pub const ANSWER_MAX: usize = 256 * 1024;
/// The longest wait that an answer may ask for; longer ones are shortened.
const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The code of errors for unusable answers.
pub(super) const BAD_ANSWER: &str = "bad-answer";
/// The code of failures that give no code of their own.
pub(super) const FAILED: &str = "step-failed";

/// The answer to a step or a look. All fields are optional, but the answer to a look needs the stage.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// The present stage. Without it, a step has reached the stage that it leads to.
    pub stage: Option<String>,
    /// Further data about the thing. Data of a look replace all earlier data; data of a step are added.
    pub data: Option<Map<String, Value>>,
    /// A sentence for people about the result.
    pub message: Option<String>,
    /// The time after which an unfinished step is performed again.
    pub requeue_after: Option<Wait>,
    /// The event that completes the step.
    #[serde(rename = "await")]
    pub awaits: Option<AwaitAnswer>,
    /// The failure, if the call failed. It counts regardless of exit code and status.
    pub error: Option<ErrorAnswer>,
}

/// A wait, in seconds or as a text such as `1m30s`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Wait {
    /// A wait as a number, in seconds.
    Seconds(f64),
    /// A text with units.
    Text(String),
}

/// The event that a step waits for.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AwaitAnswer {
    /// The type of the event; a final `*` stands for any ending.
    #[serde(rename = "type")]
    pub kind: String,
    /// The source of the event; any source if none.
    #[serde(default)]
    pub source: Option<String>,
    /// The subject of the event; the name of the resource if none.
    #[serde(default)]
    pub subject: Option<String>,
    /// The deadline (RFC 3339), after which the attempt fails.
    pub until: String,
}

/// A failure of a call.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorAnswer {
    /// The code of the failure, for programs; `step-failed` if none.
    pub code: Option<String>,
    /// The description of the failure, for people.
    pub message: String,
    /// True if further attempts would not help.
    pub permanent: bool,
}

impl Answer {
    /// Reads an answer. Empty input is an empty answer.
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

    /// Returns the failure in the answer, if there is one.
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

    /// Returns the wait that the answer asks for, if any.
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

    /// Returns the result of a step towards a stage.
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

    /// Returns the observation that an answer to a look states.
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
