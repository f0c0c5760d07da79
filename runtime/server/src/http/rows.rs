//! Rows of an answer in the form that the caller accepts, sent while the engine computes them.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::TRAILER;
use axum::response::Response;
use futures::stream;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use watershed_api::http::ProblemDocument;
use watershed_api::{Problem, Request};
use watershed_drivers::olap::{ArrowStream, Olap, Query, QueryError, Rows};

use super::answers::{self, of_type};
use super::call::{Call, Unanswered};
use super::form::{self, Chosen, Form, TRUNCATED, name_file, truncated};
use super::made_file;
use super::sent_file::TAKES_NOTHING;
use crate::forms::document::Document;
use crate::forms::lines::Keys;
use crate::forms::{Cell, csv};
use crate::out::redacted;
use crate::service::answers::{self as engine, Statement};
use crate::service::problems::of_query;

/// Bytes that are collected before the response begins. A smaller answer is sent whole, and its error has a status.
const FIRST_BYTES: usize = 64 << 10;

impl Call<'_> {
    /// Sends the rows of an operation in the form that the caller accepts. The statement ends with the connection.
    pub(super) async fn rows(&self, request: Request) -> Result<Response, Unanswered> {
        let chosen = form::choose(self.headers, &form::ALL)?;
        self.trail.begin().await?;
        let name = match &request {
            Request::Show(shown) => shown.name.rsplit('/').next().unwrap_or_default().to_owned(),
            _ => "query".to_owned(),
        };
        let instance = &self.open.instance;
        let usual = self.service.gate().limits().statement;
        let Statement { query, slot } = engine::statement(instance, request, usual).await?;
        let redact = {
            let (instance, visibility) = (Arc::clone(instance), self.visibility);
            move |problem| {
                let problem = redacted(problem, instance.outputs.secrets());
                visibility.problem_of_question(answers::problem(problem, &instance))
            }
        };
        let asked = RowsAsked {
            engine: Arc::clone(&instance.engine),
            query,
            name,
            folder: instance.state.answers(),
            base: self.service.base().to_owned(),
            redact: Box::new(redact),
        };
        Ok(respond(asked, chosen, slot).await?)
    }
}

/// A question to the engine whose rows become a response.
pub(super) struct RowsAsked {
    /// The engine that answers.
    pub(super) engine: Arc<dyn Olap>,
    /// The statement, with its limits.
    pub(super) query: Query,
    /// Name of the rows, from which the name of a file is made.
    pub(super) name: String,
    /// Folder for files that are made before they are sent.
    pub(super) folder: PathBuf,
    /// Path prefix of the service's links.
    pub(super) base: String,
    /// Changes a problem to what the caller may see.
    pub(super) redact: Box<dyn Fn(Problem) -> Problem + Send + Sync>,
}

/// Answers a question in a form. `held` is dropped with the last row, and when the caller is gone.
///
/// # Errors
/// Those of the statement that come before the first [`FIRST_BYTES`] bytes. A later one is a member `error` at the end
/// of a JSON document, and breaks off the body of every other form.
///
/// # Cancel safety
/// Dropping the future or the response's body ends the statement.
pub(super) async fn respond(
    asked: RowsAsked,
    chosen: Chosen,
    held: impl Send + 'static,
) -> Result<Response, Problem> {
    let asked_name = asked.name.clone();
    let mut response = match chosen.form.file_format() {
        Some(format) => {
            let redact = asked.redact;
            let export = made_file::export(asked.query, format);
            let made = made_file::make(&*asked.engine, export, &asked.folder, chosen.form.extension()).await;
            drop(held);
            made.map_err(redact)?.response(chosen.media)
        }
        None => stream_rows(asked, chosen, held).await?,
    };
    name_file(&mut response, &asked_name, chosen.form);
    Ok(response)
}

async fn stream_rows(
    asked: RowsAsked,
    chosen: Chosen,
    held: impl Send + 'static,
) -> Result<Response, Problem> {
    let cancel = CancellationToken::new();
    let source = Source::begin(&asked, chosen.form, &cancel).await;
    let source = source.map_err(|error| (asked.redact)(of_query(&error)))?;
    let mut sending = Sending {
        source,
        base: asked.base,
        redact: asked.redact,
        is_over: false,
        _held: Box::new(held),
    };
    let mut first = Vec::new();
    while first.len() < FIRST_BYTES {
        match sending.source.next().await {
            Ok(true) => first.append(sending.source.buffer()),
            Ok(false) => {
                first.append(sending.source.buffer());
                let mut response = of_type(chosen.media, first);
                if sending.source.truncated() {
                    response.headers_mut().extend(truncated());
                }
                return Ok(response);
            }
            Err(error) => return Err((sending.redact)(of_query(&error))),
        }
    }
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(pump(sending, sender));
    let rest = stream::unfold(receiver, async |mut receiver: mpsc::Receiver<_>| {
        Some((receiver.recv().await?, receiver))
    });
    let first = stream::iter([Ok::<_, io::Error>(Frame::data(Bytes::from(first)))]);
    let body = StreamBody::new(futures::StreamExt::chain(first, rest));
    let mut response = of_type(chosen.media, Body::new(body));
    if chosen.form != Form::Json {
        let name = HeaderValue::from_name(TRUNCATED);
        response.headers_mut().insert(TRAILER, name);
    }
    Ok(response)
}

/// Sends the rest of a response, and ends its statement as soon as nobody reads: the reader is gone, or takes nothing for long.
async fn pump(mut sending: Sending, sender: mpsc::Sender<io::Result<Frame<Bytes>>>) {
    loop {
        let next = tokio::select! {
            biased;
            () = sender.closed() => return,
            next = sending.next() => next,
        };
        let Some(piece) = next else { return };
        if sender.send_timeout(piece, TAKES_NOTHING).await.is_err() {
            drop(sending);
            // The body must not look whole to a reader that comes back.
            let late = io::Error::other("the reader took nothing for too long");
            let _ = sender.send(Err(late)).await;
            return;
        }
    }
}

/// The rest of a response, behind its first bytes.
struct Sending {
    source: Source,
    base: String,
    redact: Box<dyn Fn(Problem) -> Problem + Send + Sync>,
    is_over: bool,
    /// Freed when the body is sent or dropped.
    _held: Box<dyn Send>,
}

impl Sending {
    /// Returns the next piece of the body; none at its end.
    async fn next(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        while !self.is_over {
            match self.source.next().await {
                Ok(more) => self.is_over = !more,
                Err(error) => {
                    self.is_over = true;
                    return Some(self.fail(&error));
                }
            }
            let piece = std::mem::take(self.source.buffer());
            if !piece.is_empty() {
                return Some(Ok(Frame::data(piece.into())));
            }
        }
        let is_cut = self.source.truncated();
        self.source = Source::Ended(Vec::new());
        is_cut.then(|| Ok(Frame::trailers(truncated())))
    }

    /// Returns the end of a JSON document with an error, or the error that breaks off another body.
    fn fail(&mut self, error: &QueryError) -> io::Result<Frame<Bytes>> {
        let problem = (self.redact)(of_query(error));
        let Source::Json(json) = std::mem::replace(&mut self.source, Source::Ended(Vec::new())) else {
            tracing::debug!(code = problem.code.name(), "an answer was broken off");
            return Err(io::Error::other("the rows ended with an error"));
        };
        let problem = ProblemDocument::new(problem, &self.base);
        let mut end = json.out;
        json.document.end(&mut end, Err(&problem));
        Ok(Frame::data(end.into()))
    }
}

/// Rows that are encoded as they come.
enum Source {
    Json(Json),
    Text(Text),
    Arrow(Box<ArrowStream>, Vec<u8>),
    /// Nothing more, behind an error or the last rows.
    Ended(Vec<u8>),
}

/// A JSON document whose rows come.
struct Json {
    rows: Rows,
    document: Document,
    out: Vec<u8>,
}

/// Lines of text whose rows come.
struct Text {
    rows: Rows,
    /// Keys of JSON lines; none for CSV.
    keys: Option<Keys>,
    out: Vec<u8>,
}

impl Source {
    /// Starts the statement, and writes everything before the first row.
    async fn begin(asked: &RowsAsked, form: Form, cancel: &CancellationToken) -> Result<Self, QueryError> {
        let query = asked.query.clone();
        if form == Form::Arrow {
            let batches = asked.engine.batching()?.query_batches(query, cancel).await?;
            return Ok(Self::Arrow(Box::new(batches.encode()?), Vec::new()));
        }
        let rows = asked.engine.query(query, cancel).await?;
        let mut out = Vec::new();
        if form == Form::Json {
            let document = Document::default();
            document.begin(&mut out, rows.columns());
            return Ok(Self::Json(Json { rows, document, out }));
        }
        let names = || rows.columns().iter().map(|column| column.name.as_str());
        let keys = match form {
            Form::Lines => Some(Keys::of(names())),
            _ => {
                csv::write_header(&mut out, names()).map_err(|error| unwritten(&error))?;
                None
            }
        };
        Ok(Self::Text(Text { rows, keys, out }))
    }

    /// Encodes the next rows into the buffer. Returns false behind the last ones.
    async fn next(&mut self) -> Result<bool, QueryError> {
        match self {
            Self::Json(Json { rows, document, out }) => match rows.next().await.transpose()? {
                Some(batch) => {
                    document.write(out, &batch);
                    Ok(true)
                }
                None => {
                    let ended: Result<bool, &()> = Ok(rows.truncated());
                    std::mem::take(document).end(out, ended);
                    Ok(false)
                }
            },
            Self::Text(Text { rows, keys, out }) => match rows.next().await.transpose()? {
                Some(batch) => {
                    write(out, keys.as_ref(), &batch)?;
                    Ok(true)
                }
                None => Ok(false),
            },
            Self::Arrow(stream, out) => match stream.next().await.transpose()? {
                Some(bytes) => {
                    *out = bytes;
                    Ok(true)
                }
                None => Ok(false),
            },
            Self::Ended(_) => Ok(false),
        }
    }

    /// Returns the encoded bytes, to be taken.
    fn buffer(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Json(Json { out, .. }) | Self::Text(Text { out, .. }) => out,
            Self::Arrow(_, out) | Self::Ended(out) => out,
        }
    }

    /// Returns true if a limit cut off rows, and the form has no place of its own for that.
    fn truncated(&self) -> bool {
        match self {
            Self::Text(Text { rows, .. }) => rows.truncated(),
            Self::Arrow(stream, _) => stream.truncated(),
            Self::Json(_) | Self::Ended(_) => false,
        }
    }
}

fn write<C: Cell>(out: &mut Vec<u8>, keys: Option<&Keys>, rows: &[Vec<C>]) -> Result<(), QueryError> {
    match keys {
        Some(keys) => {
            keys.write(out, rows);
            Ok(())
        }
        None => csv::write_rows(out, rows).map_err(|error| unwritten(&error)),
    }
}

fn unwritten(error: &io::Error) -> QueryError {
    let message = format!("the rows can't be written: {error}");
    watershed_drivers::olap::Failure::Fatal { message }.into()
}
