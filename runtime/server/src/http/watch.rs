//! Changes of resources, as server-sent events.
//!
//! A reader is given what changed after the last number that it knows, each resource once and as it is now, so a slow one
//! costs no memory: what it missed is left out, not kept.

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
use super::service::Open;
use super::token::Token;
use crate::instance::{Attended, Instance};
use crate::projection::{Progress, Projection, Slot, Table};

/// The shortest time between two batches: more often than that no eye follows.
const BETWEEN_BATCHES: Duration = Duration::from_millis(50);
/// The time after which something is said, so that proxies don't hang up.
const SILENCE: Duration = Duration::from_secs(15);
/// A comment, which readers of events pass over.
const SIGN_OF_LIFE: Bytes = Bytes::from_static(b": \n\n");
/// The bytes of one piece of a batch. The next one is made when this is taken.
const PIECE: usize = 64 << 10;

/// Begins a stream.
///
/// # Errors
/// Words that can't be read, and a token that was altered.
pub(super) async fn stream(
    open: &Open,
    mut words: Value,
    last_event: Option<&str>,
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
        filter.chosen(&table)?;
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
        instance: Arc::clone(&open.instance),
        _attended: open.instance.attend(),
        seen: 0,
        shown: BTreeSet::new(),
        resumes: false,
        state: begin(&projection, begun),
        batch: Instant::now(),
        waiting: VecDeque::new(),
        stopping: stopping.clone(),
        projection,
        filter,
        catalog,
    };
    Ok(answers::of_type(
        "text/event-stream",
        Body::from_stream(events(reader)),
    ))
}

/// Returns what a reader is given first.
fn begin(projection: &Projection, token: Option<Token>) -> State {
    match token {
        None => State::Listing,
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

/// The place of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Everything there is comes first.
    Listing,
    /// Changes after a number come first.
    Resuming(u64),
    /// Changes come as they are made.
    Following,
    /// The reader has to list again.
    Lagged,
    /// The stream is over.
    Over,
}

/// A reader of the stream.
struct Reader {
    instance: Arc<Instance>,
    _attended: Attended,
    projection: Arc<Projection>,
    progress: Receiver<Progress>,
    filter: Filter,
    catalog: Uuid,
    /// The number of the last change that was told.
    seen: u64,
    state: State,
    /// The resources that a selection stood for in the last batch; empty without one.
    shown: BTreeSet<Uid>,
    /// True while nobody knows what the reader was shown.
    resumes: bool,
    /// The time of the last batch.
    batch: Instant,
    /// Pieces of the present batch.
    waiting: VecDeque<Bytes>,
    stopping: CancellationToken,
}

impl Reader {
    /// Waits for the next piece of the stream; none at its end.
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
            () = tokio::time::sleep(SILENCE) => Woken::Silence,
        }
    }

    /// Gathers everything there is.
    fn list(&mut self) {
        let projection = Arc::clone(&self.projection);
        let table = projection.table();
        let Ok(chosen) = self.filter.chosen(&table) else {
            self.state = State::Over;
            return;
        };
        let mut batch = Batch::default();
        for (_, slot) in table.after(None).filter(|(_, slot)| chosen.keeps(slot)) {
            batch.push("changed", &chosen.document(&table, slot, &self.instance));
            self.note_shown(slot, true);
        }
        batch.push("listed", b"{}");
        self.end(&table, batch);
    }

    /// Gathers what changed after what the reader knows.
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
            .chosen(&table)
            .unwrap_or_else(|_| self.filter.of_nothing());
        let mut batch = Batch::default();
        for gone in table.gone_after(self.seen) {
            batch.gone(gone.key.kind.as_str(), gone.key.name.as_str());
        }
        match self.filter.is_selective() {
            true => self.compare(&table, &chosen, &mut batch),
            false => changed.for_each(|slot| self.tell(&table, &chosen, slot, &mut batch)),
        }
        self.end(&table, batch);
    }

    /// Gathers what a selection stands for now, and no more: others may have changed that.
    fn compare(&mut self, table: &Table, chosen: &Chosen, batch: &mut Batch) {
        for (_, slot) in table.after(None) {
            let is_new = slot.changed > self.seen;
            match (chosen.keeps(slot), self.is_shown(slot)) {
                (true, true) if !is_new => {}
                (false, false) => {}
                (true, false) => batch.push("changed", &chosen.document(table, slot, &self.instance)),
                _ => self.tell(table, chosen, slot, batch),
            }
            self.note_shown(slot, chosen.keeps(slot));
        }
        self.resumes = false;
    }

    /// Tells of a resource that has changed.
    fn tell(&self, table: &Table, chosen: &Chosen, slot: &Slot, batch: &mut Batch) {
        let row = &slot.entry.row;
        match chosen.keeps(slot) {
            true if slot.document_changed > self.seen => {
                batch.push("changed", &chosen.document(table, slot, &self.instance));
            }
            true => batch.status(slot),
            false if row.hidden && !chosen.shows_hidden() => {}
            false => batch.gone(row.kind.as_str(), row.name.as_str()),
        }
    }

    /// Returns true if the reader may know a resource.
    fn is_shown(&self, slot: &Slot) -> bool {
        // Nobody remembers what a selection stood for when the reader was here last.
        self.resumes && !slot.entry.row.hidden || self.shown.contains(&slot.entry.row.uid)
    }

    fn note_shown(&mut self, slot: &Slot, is_shown: bool) {
        if !self.filter.is_selective() {
            return;
        }
        match is_shown {
            true => self.shown.insert(slot.entry.row.uid),
            false => self.shown.remove(&slot.entry.row.uid),
        };
    }

    /// Adds the statuses that belong to no change: of what is not idle and well.
    fn tell_restless(&mut self) {
        let projection = Arc::clone(&self.projection);
        let table = projection.table();
        let Ok(chosen) = self.filter.chosen(&table) else {
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

/// The end of a wait.
enum Woken {
    Changed,
    Silence,
    Stopping,
    Over,
}

/// Events that are sent together. The last one has the token from which the reader may go on.
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

    /// Returns the events as they are sent, in pieces of a bounded size.
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

/// Writes an event; `data` is one line.
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
