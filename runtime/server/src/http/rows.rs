//! Rows as streamed responses: in bounded memory, until the end or until the reader is gone.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::mpsc;
use watershed_api::documents::{Column, QueryDocument};
use watershed_api::http::ProblemDocument;
use watershed_api::{Problem, Request};
use watershed_drivers::olap;

use super::answers;
use super::call::{Call, Unanswered};
use crate::service::answers::{self as engine, Answers};

/// Time after which a reader that takes nothing is ended: an open read keeps the engine's file from shrinking.
const TAKES_NOTHING: Duration = Duration::from_secs(30);

impl Call<'_> {
    /// Streams the rows of an operation as JSON. The statement ends with the connection.
    pub(super) async fn rows(&self, request: Request) -> Result<Response, Unanswered> {
        self.trail.begin().await?;
        let usual = self.service.gate().limits().statement;
        let instance = &self.open.instance;
        let statement = engine::statement(instance, request, usual).await?;
        let answers = engine::answer(instance, statement).await?;
        let (visibility, base) = (self.visibility, self.service.base().to_owned());
        let open = std::sync::Arc::clone(instance);
        let told = move |problem: Problem| {
            let problem = visibility.problem(answers::problem(problem, &open));
            serde_json::to_string(&ProblemDocument::new(problem, &base)).unwrap_or_default()
        };
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(pump(answers, sender, told));
        let pieces = futures::stream::unfold(receiver, async |mut receiver: mpsc::Receiver<Piece>| {
            Some((receiver.recv().await?, receiver))
        });
        Ok(answers::written(Body::from_stream(pieces)))
    }
}

/// A piece of a body, or the error that ends the body early.
type Piece = Result<Bytes, io::Error>;

/// Sends rows until their end, and drops them as soon as nobody reads: the reader is gone, or takes nothing for long.
async fn pump(mut rows: Answers, sender: mpsc::Sender<Piece>, told: impl Fn(Problem) -> String) {
    let mut text = head(rows.columns());
    let mut is_first = true;
    loop {
        let next = tokio::select! {
            biased;
            () = sender.closed() => return,
            next = rows.next() => next,
        };
        let is_end = !matches!(next, Ok(Some(_)));
        match next {
            Ok(Some(chunk)) => write_rows(&mut text, &chunk, &mut is_first),
            Ok(None) => text.push_str(&format!("],\"truncated\":{}}}\n", rows.truncated())),
            Err(problem) => text.push_str(&format!("],\"error\":{}}}\n", told(problem))),
        }
        let piece = Bytes::from(std::mem::take(&mut text));
        if is_end {
            // What is read already needs no statement.
            drop(rows);
            let _ = sender.send_timeout(Ok(piece), TAKES_NOTHING).await;
            return;
        }
        if sender.send_timeout(Ok(piece), TAKES_NOTHING).await.is_err() {
            drop(rows);
            let late = io::Error::other("the reader took nothing for too long");
            // The body must not look whole to a reader that comes back.
            let _ = sender.send(Err(late)).await;
            return;
        }
    }
}

fn head(columns: &[olap::Column]) -> String {
    let columns = columns.iter().map(|column| Column {
        name: column.name.clone(),
        data_type: column.data_type.clone(),
    });
    let columns = serde_json::to_string(&columns.collect::<Vec<_>>()).unwrap_or_default();
    format!(
        "{{\"schema\":\"{}\",\"columns\":{columns},\"rows\":[",
        QueryDocument::SCHEMA
    )
}

fn write_rows(text: &mut String, chunk: &[Vec<olap::Value>], is_first: &mut bool) {
    for row in chunk {
        if !std::mem::take(is_first) {
            text.push(',');
        }
        let row: Vec<Value> = row.iter().map(olap::Value::to_json).collect();
        text.push('\n');
        text.push_str(&Value::Array(row).to_string());
    }
}
