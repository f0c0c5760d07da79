//! The sender of replies, which converts rows to JSON and redacts secrets.

use serde_json::Value;
use tokio::sync::mpsc::error::SendError;
use watershed_api::documents::{Column, Event, LogLine, OutputLine, ResourceDocument, RunDocument};
use watershed_api::request::Activity;
use watershed_api::{Answer, Problem, Reply};
use watershed_drivers::olap;
use watershed_outputs::secrets::Secrets;

use crate::report::{Entry, kinds};
use crate::socket::Replies;

/// Keys of documents whose values are rows, in which no secrets are redacted.
const ROWS: [&str; 2] = ["rows", "totals"];
/// The key of an SQL statement, which its handler has already redacted unless the owner asked for the values.
const STATEMENT: &str = "sql";
/// Longest message that is sent, in bytes; the rest is cut off.
const LONGEST_MESSAGE: usize = 16 << 10;

/// The sender of the replies to one request.
#[derive(Clone)]
pub(crate) struct Out(Replies);

impl Out {
    /// Returns a sender to one reader.
    pub(crate) fn new(replies: Replies) -> Self {
        Self(replies)
    }

    async fn send(&self, reply: Reply) {
        // Nobody may listen any more, and the work goes on.
        let _: Result<(), SendError<Reply>> = self.0.send(reply).await;
    }

    /// Sends an event.
    pub(crate) async fn event(&self, event: Event) {
        self.send(Reply::Event(Box::new(event))).await;
    }

    /// Sends the progress of the work; drops it if the reader is slow.
    pub(crate) fn activity(&self, activity: Activity) {
        let _ = self.0.try_send(Reply::Activity(activity));
    }

    /// Reports the process for which the work waits.
    pub(crate) async fn waiting(&self, holder: String) {
        self.send(Reply::Waiting(holder)).await;
    }

    /// Reports that everything has settled for the first time, and why files can't be watched if they can't.
    pub(crate) async fn converged(&self, document: RunDocument, trouble: Option<String>) {
        self.send(Reply::Converged(Box::new(document), trouble)).await;
    }

    /// Sends the models that files declare as sources.
    pub(crate) async fn sources(&self, entries: &[Entry]) {
        let is_source = |entry: &&Entry| kinds::declared_as(&entry.row).is_some();
        let names = entries
            .iter()
            .filter(is_source)
            .map(|entry| entry.row.name.to_string());
        self.send(Reply::Sources(names.collect())).await;
    }

    /// Sends the resource whose rows follow.
    pub(crate) async fn about(&self, resource: Box<ResourceDocument>) {
        self.send(Reply::About(resource)).await;
    }

    /// Sends the columns of the rows that follow.
    pub(crate) async fn columns(&self, columns: &[olap::Column]) {
        let column = |column: &olap::Column| Column {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
        };
        self.send(Reply::Columns(columns.iter().map(column).collect()))
            .await;
    }

    /// Sends rows unchanged, as the engine returns them.
    pub(crate) async fn rows(&self, chunk: Vec<Vec<olap::Value>>) {
        let json = |row: Vec<olap::Value>| row.iter().map(olap::Value::to_json).collect();
        self.send(Reply::Rows(chunk.into_iter().map(json).collect()))
            .await;
    }

    /// Sends log lines of runs, whose secrets were redacted when they were written.
    pub(crate) async fn lines(&self, lines: Vec<LogLine>) {
        self.send(Reply::Lines(lines)).await;
    }

    /// Sends output lines of programs.
    pub(crate) async fn output(&self, mut lines: Vec<OutputLine>, secrets: &Secrets) {
        for line in &mut lines {
            hide(secrets, &mut line.text);
        }
        self.send(Reply::Output(lines)).await;
    }

    /// Sends the last reply, with the secrets redacted.
    pub(crate) async fn end(&self, ended: Result<Answer, Problem>, secrets: &Secrets) {
        self.send(match ended {
            Ok(answer) => Reply::Done(Box::new(without_secrets(answer, secrets))),
            Err(problem) => Reply::Refused(redacted(problem, secrets)),
        })
        .await;
    }

    /// Resolves when the reader has hung up. Cancel-safe.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Returns a problem with its secrets redacted.
pub(crate) fn redacted(mut problem: Problem, secrets: &Secrets) -> Problem {
    hide(secrets, &mut problem.message);
    shorten(&mut problem.message);
    if let Some(hint) = &mut problem.hint {
        *hint = secrets.redact(hint.as_str()).into_owned().into();
    }
    problem
}

/// Cuts a message, which may quote a whole request, to a bounded length.
fn shorten(message: &mut String) {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push_str(" ...");
    }
}

/// Returns a document with its secrets redacted, except in rows.
pub(crate) fn without_secrets<T>(document: T, secrets: &Secrets) -> T
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    if secrets.is_empty() {
        return document;
    }
    let Ok(mut value) = serde_json::to_value(&document) else {
        return document;
    };
    if !hide_in(secrets, &mut value) {
        return document;
    }
    serde_json::from_value(value).unwrap_or(document)
}

/// Redacts secrets in all texts except rows. Returns true if there was a secret.
fn hide_in(secrets: &Secrets, value: &mut Value) -> bool {
    match value {
        Value::String(text) => hide(secrets, text),
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |found, value| hide_in(secrets, value) | found),
        Value::Object(fields) => {
            let is_told =
                |key: &str, value: &Value| !ROWS.contains(&key) && (key != STATEMENT || !value.is_string());
            let told = fields.iter_mut().filter(|(key, value)| is_told(key, value));
            told.fold(false, |found, (_, value)| hide_in(secrets, value) | found)
        }
        _ => false,
    }
}

fn hide(secrets: &Secrets, text: &mut String) -> bool {
    match secrets.redact(text) {
        std::borrow::Cow::Borrowed(_) => false,
        std::borrow::Cow::Owned(hidden) => {
            *text = hidden;
            true
        }
    }
}
