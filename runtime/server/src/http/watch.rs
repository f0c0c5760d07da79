//! Streams of resource changes, as server-sent events.
//!
//! A reader gets the resources that changed after the last number that it knows, each once and in its current version. A slow
//! reader costs no memory, since versions in between are skipped, not queued.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::Stream;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{Health, Phase};
use watershed_api::{Code, Problem};
use watershed_core::Uid;

use super::answers;
use super::list::{Chosen, Filter, catalog, filter};
use super::scope::Scope;
use super::service::Open;
use super::token::Token;
use super::visibility::Visibility;
use crate::instance::{Attended, Instance};
use crate::projection::{Progress, Projection, Slot, Table};

/// The shortest interval between two batches of events.
const BETWEEN_BATCHES: Duration = Duration::from_millis(50);
/// The longest silence before a comment is sent, so that proxies keep the connection open.
const SILENCE: Duration = Duration::from_secs(15);
/// An empty comment, which event readers ignore.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b": \n\n");
/// Target size of a piece of a batch, in bytes. A piece is sent when the reader has taken the one before.
const PIECE: usize = 64 << 10;

/// Starts a stream of resource changes as a role sees it and a scope; where the role may read files, the stream says too
/// when files of the project may have changed.
///
/// # Errors
/// Words that can't be read, and a token that was altered.
pub(super) async fn stream(
    open: &Open,
    (visibility, scope): (Visibility, Scope),
    mut words: Value,
    last_event: Option<&str>,
    tells_files: bool,
    stopping: &CancellationToken,
) -> Result<Response, Problem> {
    let from = match words.as_object_mut().and_then(|words| words.remove("from")) {
        Some(Value::String(from)) => Some(from),
        _ => None,
    };
    let filter = filter(words)?;
    let projection = open.instance.projection().await;
    let (catalog, begun) = {
        let table = projection.table();
        filter.chosen(&table, &scope)?;
        let catalog = catalog(&table);
        let token = last_event.map(str::to_owned).or(from);
        let token = token.map(|text| Token::read(&text, catalog)).transpose()?;
        if token.as_ref().is_some_and(|token| token.filter != filter.sign()) {
            let message = "the token is that of another list or stream";
            return Err(
                Problem::new(Code::BadArgument, message).hint("give the filter of the list with the stream")
            );
        }
        (catalog, token)
    };
    let reader = Reader {
        progress: projection.follow(),
        files: tells_files.then(|| open.instance.file_reports()),
        instance: Arc::clone(&open.instance),
        _attended: open.instance.attend(),
        seen: 0,
        shown: BTreeSet::new(),
        resumes: false,
        state: begin(&projection, begun, &scope),
        batch: Instant::now(),
        waiting: VecDeque::new(),
        stopping: stopping.clone(),
        projection,
        filter,
        visibility,
        scope,
        catalog,
    };
    Ok(answers::of_type(
        "text/event-stream",
        Body::from_stream(events(reader)),
    ))
}

/// Returns the state in which a stream starts: a full list, changes since a token, or too old a token.
fn begin(projection: &Projection, token: Option<Token>, scope: &Scope) -> State {
    match token {
        None => State::Listing,
        // Nobody remembers which names the reader knows, and others must not be told.
        Some(_) if !scope.has_all() => State::Lagged,
        Some(token) => {
            let is_known = token.projection == projection.id()
                && projection.table().changed_after(token.change).is_some();
            match is_known {
                true => State::Resuming(token.change),
                false => State::Lagged,
            }
        }
    }
}

fn events(reader: Reader) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(reader, async |mut reader| {
        let piece = reader.next().await?;
        Some((Ok(piece), reader))
    })
}

/// The state of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All resources are sent next.
    Listing,
    /// Changes after this number are sent next.
    Resuming(u64),
    /// New changes are sent as they happen.
    Following,
    /// The reader has missed changes and must list again.
    Lagged,
    /// The stream has ended.
    Over,
}

/// The server's side of a stream.
struct Reader {
    instance: Arc<Instance>,
    _attended: Attended,
    projection: Arc<Projection>,
    progress: Receiver<Progress>,
    /// Reports of changed files; none if the reader is not told of files.
    files: Option<Receiver<u64>>,
    filter: Filter,
    visibility: Visibility,
    scope: Scope,
    catalog: Uuid,
    /// Number of the last change that was sent.
    seen: u64,
    state: State,
    /// Resources that the selection matched in the last batch; empty without a selection.
    shown: BTreeSet<Uid>,
    /// True after a resumption, while the resources that the client already has are unknown.
    resumes: bool,
    /// Time of the last batch.
    batch: Instant,
    /// Pieces of the current batch that are not sent yet.
    waiting: VecDeque<Bytes>,
    stopping: CancellationToken,
}

impl Reader {
    /// Waits for the next piece of the stream; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.waiting.pop_front() {
                return Some(piece);
            }
            match self.state {
                State::Over => return None,
                State::Lagged => {
                    self.state = State::Over;
                    return Some(event(
                        "lagged",
                        None,
                        br#"{"hint":"list again, and watch from there"}"#,
                    ));
                }
                State::Listing => self.list(),
                State::Resuming(from) => {
                    self.seen = from;
                    self.resumes = true;
                    self.follow();
                    self.tell_restless();
                    // Where nothing was missed, the reader learns that at once too.
                    self.waiting.push_back(SIGN_OF_LIFE);
                }
                State::Following => match self.wait().await {
                    Woken::Changed => self.follow(),
                    // It has no place to go on from: whoever missed it lists the files anew.
                    Woken::Files => return Some(event("file", None, b"{}")),
                    Woken::Silence => return Some(SIGN_OF_LIFE),
                    Woken::Stopping => {
                        self.state = State::Over;
                        return Some(event("bye", None, b"{}"));
                    }
                    Woken::Over => self.state = State::Lagged,
                },
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let seen = self.seen;
        let files = &mut self.files;
        let filed = async { files.as_mut()?.changed().await.ok() };
        let changed = async {
            let progress = self
                .progress
                .wait_for(|progress| progress.change > seen || progress.is_over);
            match progress.await.map(|progress| progress.is_over) {
                Ok(false) => {}
                Ok(true) | Err(_) => return Woken::Over,
            }
            tokio::time::sleep_until(self.batch + BETWEEN_BATCHES).await;
            Woken::Changed
        };
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Woken::Stopping,
            woken = changed => woken,
            Some(()) = filed => Woken::Files,
            () = tokio::time::sleep(SILENCE) => Woken::Silence,
        }
    }

    /// Collects all resources into a batch.
    fn list(&mut self) {
        let projection = Arc::clone(&self.projection);
        let table = projection.table();
        let Ok(chosen) = self.filter.chosen(&table, &self.scope) else {
            self.state = State::Over;
            return;
        };
        let mut batch = Batch::default();
        for (_, slot) in table.after(None).filter(|(_, slot)| chosen.keeps(slot)) {
            batch.push(
                "changed",
                &chosen.document(&table, slot, &self.instance, self.visibility),
            );
            self.note_shown(slot, true);
        }
        batch.push("listed", b"{}");
        self.end(&table, batch);
    }

    /// Collects the changes since the last batch.
    fn follow(&mut self) {
        let projection = Arc::clone(&self.projection);
        let table = projection.table();
        let Some(changed) = table.changed_after(self.seen) else {
            self.state = State::Lagged;
            return;
        };
        // A selection that nothing matches any more has lost what it stood for.
        let chosen = self
            .filter
            .chosen(&table, &self.scope)
            .unwrap_or_else(|_| self.filter.of_nothing());
        let mut batch = Batch::default();
        for gone in table.gone_after(self.seen) {
            if self.scope.has_all() || self.shown.contains(&gone.uid) {
                batch.gone(gone.key.kind.as_str(), gone.key.name.as_str());
            }
        }
        match self.is_selective() {
            true => self.compare(&table, &chosen, &mut batch),
            false => changed.for_each(|slot| self.tell(&table, &chosen, slot, &mut batch)),
        }
        self.end(&table, batch);
    }

    /// Compares the resources that the selection matches now with those of the last batch, since other resources may
    /// have changed the selection.
    fn compare(&mut self, table: &Table, chosen: &Chosen, batch: &mut Batch) {
        for (_, slot) in table.after(None) {
            let is_new = slot.changed > self.seen;
            match (chosen.keeps(slot), self.is_shown(slot)) {
                (true, true) if !is_new => {}
                (false, false) => {}
                (true, false) => batch.push(
                    "changed",
                    &chosen.document(table, slot, &self.instance, self.visibility),
                ),
                _ => self.tell(table, chosen, slot, batch),
            }
            self.note_shown(slot, chosen.keeps(slot));
        }
        self.resumes = false;
    }

    /// Adds the event of a changed resource to the batch.
    fn tell(&self, table: &Table, chosen: &Chosen, slot: &Slot, batch: &mut Batch) {
        let row = &slot.entry.row;
        match chosen.keeps(slot) {
            true if slot.document_changed > self.seen => {
                batch.push(
                    "changed",
                    &chosen.document(table, slot, &self.instance, self.visibility),
                );
            }
            true => batch.status(slot),
            false if row.hidden && !chosen.shows_hidden() => {}
            false => batch.gone(row.kind.as_str(), row.name.as_str()),
        }
    }

    /// Returns true if the client may already have the resource.
    fn is_shown(&self, slot: &Slot) -> bool {
        // Nobody remembers what a selection stood for when the reader was here last.
        self.resumes && !slot.entry.row.hidden || self.shown.contains(&slot.entry.row.uid)
    }

    /// Returns true if other resources can change which ones are shown.
    fn is_selective(&self) -> bool {
        self.filter.is_selective() || !self.scope.has_all()
    }

    fn note_shown(&mut self, slot: &Slot, is_shown: bool) {
        if !self.is_selective() {
            return;
        }
        match is_shown {
            true => self.shown.insert(slot.entry.row.uid),
            false => self.shown.remove(&slot.entry.row.uid),
        };
    }

    /// Adds the statuses of all resources that are not idle and healthy, which no change reports after a resumption.
    fn tell_restless(&mut self) {
        let projection = Arc::clone(&self.projection);
        let table = projection.table();
        let Ok(chosen) = self.filter.chosen(&table, &self.scope) else {
            return;
        };
        let restless = |slot: &Slot| slot.standing.phase != Phase::Idle || slot.standing.health != Health::Ok;
        let mut batch = Batch::default();
        for (_, slot) in table.after(None) {
            if chosen.keeps(slot) && restless(slot) {
                batch.status(slot);
            }
        }
        self.end(&table, batch);
    }

    fn end(&mut self, table: &Table, batch: Batch) {
        self.seen = table.last();
        self.waiting.extend(batch.pieces(&self.token()));
        self.batch = Instant::now();
        self.state = State::Following;
    }

    fn token(&self) -> String {
        let token = Token {
            projection: self.projection.id(),
            change: self.seen,
            filter: self.filter.sign(),
            after: None,
        };
        token.write(self.catalog)
    }
}

/// The reason why a wait ended.
enum Woken {
    Changed,
    /// Files of the project may have changed.
    Files,
    Silence,
    Stopping,
    Over,
}

/// Events that are sent together. The last event has the token from which the client may resume.
#[derive(Default)]
struct Batch {
    events: Vec<(&'static str, Vec<u8>)>,
}

impl Batch {
    fn push(&mut self, name: &'static str, data: &[u8]) {
        self.events.push((name, data.to_vec()));
    }

    fn gone(&mut self, kind: &str, name: &str) {
        let told = json!({ "kind": kind, "name": name });
        self.push("gone", told.to_string().as_bytes());
    }

    fn status(&mut self, slot: &Slot) {
        let row = &slot.entry.row;
        let told = json!({
            "kind": row.kind.as_str(),
            "name": row.name.as_str(),
            "phase": slot.standing.phase,
            "health": slot.standing.health,
        });
        self.push("status", told.to_string().as_bytes());
    }

    /// Encodes the events into pieces of bounded size.
    fn pieces(self, token: &str) -> Vec<Bytes> {
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let number = self.events.len();
        for (index, (name, data)) in self.events.into_iter().enumerate() {
            let id = (index + 1 == number).then_some(token);
            let event = event(name, id, &data);
            match pieces.last_mut() {
                Some(last) if last.len() + event.len() <= PIECE => last.extend(event.iter()),
                _ => pieces.push(event.to_vec()),
            }
        }
        pieces.into_iter().map(Bytes::from).collect()
    }
}

/// Encodes a server-sent event; `data` is one line.
fn event(name: &str, id: Option<&str>, data: &[u8]) -> Bytes {
    let mut bytes = format!("event: {name}\n").into_bytes();
    if let Some(id) = id {
        bytes.extend(format!("id: {id}\n").as_bytes());
    }
    bytes.extend(b"data: ");
    bytes.extend(data);
    bytes.extend(b"\n\n");
    bytes.into()
}
