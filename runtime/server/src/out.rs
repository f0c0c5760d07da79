//! The way of answers to whoever asks: here rows become JSON, and secrets are taken out of what is said.

use serde_json::Value;
use tokio::sync::mpsc::error::SendError;
use watershed_api::documents::{Column, Event, LogLine, OutputLine, ResourceDocument, RunDocument};
use watershed_api::request::Activity;
use watershed_api::{Answer, Problem, Reply};
use watershed_drivers::olap;
use watershed_outputs::secrets::Secrets;

use crate::report::{Entry, kinds};
use crate::socket::Replies;

/// Keys of documents whose values are rows, which are shown as they are.
const ROWS: [&str; 2] = ["rows", "totals"];
/// The key of a statement as its handler has written it: with names in the place of values, unless the owner asked for these.
const STATEMENT: &str = "sql";
/// The most of a message that is told, in bytes.
const LONGEST_MESSAGE: usize = 16 << 10;

/// The answers to one request, on their way to whoever asked.
#[derive(Clone)]
pub(crate) struct Out(Replies);

impl Out {
    /// Returns the way to a reader.
    pub(crate) fn new(replies: Replies) -> Self {
        Self(replies)
    }

    async fn send(&self, reply: Reply) {
        // Nobody may listen any more, and the work goes on.
        let _: Result<(), SendError<Reply>> = self.0.send(reply).await;
    }

    /// Tells an event.
    pub(crate) async fn event(&self, event: Event) {
        self.send(Reply::Event(Box::new(event))).await;
    }

    /// Tells how far the work is, if the reader is not behind.
    pub(crate) fn activity(&self, activity: Activity) {
        let _ = self.0.try_send(Reply::Activity(activity));
    }

    /// Tells which process the work waits for.
    pub(crate) async fn waiting(&self, holder: String) {
        self.send(Reply::Waiting(holder)).await;
    }

    /// Tells that everything has settled for the first time, and why files can't be watched if they can't.
    pub(crate) async fn converged(&self, document: RunDocument, trouble: Option<String>) {
        self.send(Reply::Converged(Box::new(document), trouble)).await;
    }

    /// Tells which models files declare as sources.
    pub(crate) async fn sources(&self, entries: &[Entry]) {
        let is_source = |entry: &&Entry| kinds::declared_as(&entry.row).is_some();
        let names = entries
            .iter()
            .filter(is_source)
            .map(|entry| entry.row.name.to_string());
        self.send(Reply::Sources(names.collect())).await;
    }

    /// Tells which resource the rows are of that follow.
    pub(crate) async fn about(&self, resource: Box<ResourceDocument>) {
        self.send(Reply::About(resource)).await;
    }

    /// Tells the columns of the rows that follow.
    pub(crate) async fn columns(&self, columns: &[olap::Column]) {
        let column = |column: &olap::Column| Column {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
        };
        self.send(Reply::Columns(columns.iter().map(column).collect()))
            .await;
    }

    /// Tells rows as the engine gives them.
    pub(crate) async fn rows(&self, chunk: Vec<Vec<olap::Value>>) {
        let json = |row: Vec<olap::Value>| row.iter().map(olap::Value::to_json).collect();
        self.send(Reply::Rows(chunk.into_iter().map(json).collect()))
            .await;
    }

    /// Tells log lines of runs, which were written without secrets.
    pub(crate) async fn lines(&self, lines: Vec<LogLine>) {
        self.send(Reply::Lines(lines)).await;
    }

    /// Tells lines that programs wrote.
    pub(crate) async fn output(&self, mut lines: Vec<OutputLine>, secrets: &Secrets) {
        for line in &mut lines {
            hide(secrets, &mut line.text);
        }
        self.send(Reply::Output(lines)).await;
    }

    /// Tells the end, without these secrets.
    pub(crate) async fn end(&self, ended: Result<Answer, Problem>, secrets: &Secrets) {
        self.send(match ended {
            Ok(answer) => Reply::Done(Box::new(without_secrets(answer, secrets))),
            Err(problem) => Reply::Refused(redacted(problem, secrets)),
        })
        .await;
    }

    /// Resolves when nobody listens any more. Cancel-safe.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}

/// Returns a problem without secrets.
pub(crate) fn redacted(mut problem: Problem, secrets: &Secrets) -> Problem {
    hide(secrets, &mut problem.message);
    shorten(&mut problem.message);
    if let Some(hint) = &mut problem.hint {
        *hint = secrets.redact(hint.as_str()).into_owned().into();
    }
    problem
}

/// Shortens a message, which may quote all that was asked.
fn shorten(message: &mut String) {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push_str(" ...");
    }
}

/// Returns a document without secrets, but for the rows in it.
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

/// Takes secrets out of all texts but rows. Returns true if there was one.
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
