//! Delivery by command: a program that reads the message from standard input.

use std::path::PathBuf;
use std::time::Duration;

use watershed_outside::Program;
use watershed_outside::program::{Ended, Keep, RunError};

use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::{Message, shown};
use crate::policy;

/// Default time limit of the program.
const WITHIN: Duration = Duration::from_secs(60);
/// The most bytes kept of the end of standard error, whose last line is shown.
const STDERR_KEPT: usize = 4096;

/// Delivers each message by running a program: arguments without a shell, the message as JSON on standard input, the
/// key in the variable `WATERSHED_KEY`.
#[derive(Debug, Clone)]
pub struct Command {
    root: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    within: Duration,
}

impl Command {
    /// Creates the notifier for a program with arguments, which starts in the project's root. A program name with a
    /// slash is a path below the root.
    pub fn new(root: impl Into<PathBuf>, arguments: Vec<String>) -> Self {
        Self {
            root: root.into(),
            arguments,
            environment: Vec::new(),
            within: WITHIN,
        }
    }

    /// Sets an environment variable of the program.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets the time limit of the program; by default a minute.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn run(&self, message: &Message, attempt: Attempt<'_>) -> Result<Receipt, DeliveryError> {
        let mut program = Program::new(&self.root, &self.arguments)
            .ok_or_else(|| DeliveryError::permanent("the command is empty"))?;
        program.pass_on();
        program.variables(self.environment.iter().cloned());
        program.variables([
            ("WATERSHED_KEY", message.key.as_str().to_owned()),
            ("WATERSHED_ATTEMPT", attempt.number.to_string()),
        ]);
        program.input =
            serde_json::to_vec(message).map_err(|error| DeliveryError::permanent(error.to_string()))?;
        program.errors = Keep::Last(STDERR_KEPT);
        program.within = Some(self.within);
        // All that it started ends with it, however it ends.
        judge(&program.run().await?)
    }
}

impl From<RunError> for DeliveryError {
    fn from(error: RunError) -> Self {
        match error.is_permanent() {
            true => Self::permanent(error.to_string()),
            false => Self::transient(error.to_string()),
        }
    }
}

impl Notifier for Command {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.run(message, attempt))
    }
}

fn judge(ended: &Ended) -> Result<Receipt, DeliveryError> {
    let how = ended.how();
    if ended.status.success() {
        return Ok(Receipt { said: how });
    }
    let message = match ended.last_line() {
        Some(line) => format!("{how}: {}", shown(&line)),
        None => how,
    };
    let class = policy::of_exit(ended.status.code());
    Err(DeliveryError::of(class, message))
}
