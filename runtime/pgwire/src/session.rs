//! Messages of a client who has signed in.
//!
//! 1. A session has at most one place among the readers: a portal that is half read gives its place back before another statement
//!    begins. Where it can't, since too many answers are open, its rest is left, and it answers no more. A cursor is a portal.
//! 2. Behind an error of the extended protocol all is skipped until `Sync`.
//! 3. Portals live until their transaction ends, and until no rows of theirs were wanted for the time of
//!    [`Bounds::takes_nothing`]: an open read keeps the engine's file from shrinking.
//! 4. A failure ends the portals that were made since the last savepoint.

mod cursors;
mod extended;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwire::messages::PgWireBackendMessage as Out;
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned as _;

use crate::backend::{Bounds, Session};
use crate::copy::Copy;
use crate::frame::{self, Frame};
use crate::portal::{Portals, Prepared};
use crate::reading::{self, Reading, Trouble, Watch, ended};
use crate::savepoints::{Savepoints, Step};
use crate::settings;
use crate::state::{FAILED, IDLE, IDLE_IN_TRANSACTION, NO_TRANSACTION, PROTOCOL, SqlError, TOO_MANY};
use crate::statement::{Ask, End, ask};
use crate::tokens::statements;
use crate::wire::Wire;

/// The interval at which a session whose client takes no rows looks whether the engine waits too.
const PAUSE_AFTER: Duration = Duration::from_millis(100);

/// The word by which clients know that a statement had rows.
const ROWS: &str = "SELECT";
/// The word by which clients know that lines were sent.
const COPIED: &str = "COPY";

/// A session.
pub(crate) struct Talk {
    wire: Wire,
    session: Box<dyn Session>,
    bounds: Bounds,
    status: TransactionStatus,
    statements: HashMap<String, Arc<Prepared>>,
    portals: Portals,
    /// The token of the statement that a cancel request reaches.
    statement: Arc<Mutex<CancellationToken>>,
    /// Cancelled when access is revoked or the service stops.
    ending: CancellationToken,
    expires: Instant,
    skips: bool,
    savepoints: Savepoints,
    /// The schemas in which names are looked for, as the client is told them.
    search_path: String,
}

impl Talk {
    pub(crate) fn new(
        wire: Wire,
        session: Box<dyn Session>,
        bounds: Bounds,
        statement: Arc<Mutex<CancellationToken>>,
        stop: CancellationToken,
    ) -> Self {
        let ending = stop.child_token();
        let revoked = session.ended();
        tokio::spawn({
            let ending = ending.clone();
            async move {
                tokio::select! {
                    () = revoked.cancelled() => ending.cancel(),
                    () = ending.cancelled() => {}
                }
            }
        });
        // Tokens that never expire are not, and the clock ends somewhere.
        let expires_in = session.expires_in().min(Duration::from_secs(365 * 86_400));
        Self {
            wire,
            expires: Instant::now() + expires_in,
            session,
            bounds,
            status: TransactionStatus::Idle,
            statements: HashMap::new(),
            portals: Portals::default(),
            statement,
            ending,
            skips: false,
            savepoints: Savepoints::default(),
            search_path: settings::get("search_path").unwrap_or_default().to_owned(),
        }
    }

    /// Answers messages until the session ends.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        let _end = self.ending.clone().drop_guard();
        self.ready().await?;
        loop {
            let frame = match self.next().await {
                Ok(Frame::Terminate) => return Ok(()),
                Ok(frame) => frame,
                Err(trouble) => return self.leave(trouble).await,
            };
            let is_simple = matches!(frame, Frame::Query(_));
            match self.answer(frame).await {
                Ok(()) => {}
                Err(Trouble::Told(error)) => {
                    self.wire.put(error.message(false)).await?;
                    // A cursor that is held outlives what fails outside of a transaction.
                    if self.status == TransactionStatus::Transaction {
                        self.portals.end_those_after(self.savepoints.made_before());
                        self.status = TransactionStatus::Error;
                    }
                    match is_simple {
                        true => self.ready().await?,
                        false => {
                            self.skips = true;
                            self.wire.flush().await?;
                        }
                    }
                }
                Err(trouble) => return self.leave(trouble).await,
            }
        }
    }

    async fn leave(mut self, trouble: Trouble) -> io::Result<()> {
        match trouble {
            Trouble::Io(error) => Err(error),
            Trouble::Told(error) | Trouble::Fatal(error) => {
                self.wire.put(error.message(true)).await?;
                self.wire.flush().await
            }
        }
    }

    /// Waits for a message.
    async fn next(&mut self) -> Result<Frame, Trouble> {
        let (idle, over) = match self.status {
            TransactionStatus::Idle => (
                self.bounds.idle,
                SqlError::new(IDLE, "the session asked nothing for too long"),
            ),
            _ => (
                self.bounds.idle_in_transaction,
                SqlError::new(IDLE_IN_TRANSACTION, "the transaction asked nothing for too long"),
            ),
        };
        let begun = Instant::now();
        loop {
            let end = begun + idle;
            let wanted = self.portals.wanted_first();
            let until = wanted.map_or(end, |wanted| (wanted + self.bounds.takes_nothing).min(end));
            // All arms are cancel-safe.
            let read = tokio::select! {
                biased;
                () = self.ending.cancelled() => return Err(Trouble::Fatal(ended())),
                () = sleep_until(self.expires) => return Err(Trouble::Fatal(ended())),
                read = self.wire.message(self.bounds.message_bytes) => read,
                () = sleep_until(until) => {
                    match wanted {
                        Some(wanted) if until < end => self.portals.leave_those_of(wanted),
                        _ => return Err(Trouble::Fatal(over)),
                    }
                    continue;
                }
                () = sleep(PAUSE_AFTER), if wanted.is_some() => {
                    let readings = self.portals.open().filter_map(|(_, portal)| portal.reading());
                    readings.for_each(Reading::pause);
                    continue;
                }
            };
            let (kind, body) = read.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => Trouble::Fatal(
                    SqlError::new(TOO_MANY, "the message is none, or too long").hint(format!(
                        "a message has at most {} bytes",
                        self.bounds.message_bytes
                    )),
                ),
                _ => Trouble::Io(error),
            })?;
            let frame = frame::decode(kind, body);
            return frame.map_err(|error| Trouble::Fatal(SqlError::new(PROTOCOL, error.to_string())));
        }
    }

    async fn answer(&mut self, frame: Frame) -> Result<(), Trouble> {
        if let Frame::Sync = frame {
            self.skips = false;
            if self.status == TransactionStatus::Idle {
                self.portals.end_transaction(true);
            }
            return Ok(self.ready().await?);
        }
        if self.skips && !matches!(frame, Frame::Query(_)) {
            return Ok(());
        }
        match frame {
            Frame::Query(query) => {
                self.skips = false;
                self.portals.remove("");
                // Others live until the transaction ends.
                if self.status == TransactionStatus::Idle {
                    self.portals.end_transaction(true);
                }
                self.simple(&query.query).await?;
                Ok(self.ready().await?)
            }
            Frame::Parse(parse) => {
                self.prepare(parse.name.unwrap_or_default(), parse.query, parse.type_oids)?;
                Ok(self.wire.put(Out::ParseComplete(ParseComplete::new())).await?)
            }
            Frame::Bind(bind) => {
                self.bind(bind)?;
                Ok(self.wire.put(Out::BindComplete(BindComplete::new())).await?)
            }
            Frame::Describe(describe) => {
                let name = describe.name.unwrap_or_default();
                match describe.target_type {
                    b'S' => self.describe_statement(&name).await,
                    b'P' => self.describe_portal(&name).await,
                    _ => Err(SqlError::new(PROTOCOL, "statements and portals alone are described").into()),
                }
            }
            Frame::Execute(execute) => {
                let most = u64::try_from(execute.max_rows).unwrap_or(0);
                self.execute(&execute.name.unwrap_or_default(), most).await
            }
            Frame::Close(close) => {
                let name = close.name.unwrap_or_default();
                match close.target_type {
                    b'S' => drop(self.statements.remove(&name)),
                    _ => drop(self.portals.remove(&name)),
                }
                Ok(self.wire.put(Out::CloseComplete(CloseComplete::new())).await?)
            }
            Frame::Flush => Ok(self.wire.flush().await?),
            Frame::Sync | Frame::Terminate => Ok(()),
        }
    }

    /// Runs the statements of a message in their order, up to the first that fails.
    async fn simple(&mut self, text: &str) -> Result<(), Trouble> {
        let all = statements(text);
        if all.is_empty() {
            let empty = EmptyQueryResponse::new();
            return self.put(Out::EmptyQueryResponse(empty)).await;
        }
        for sql in &all {
            let asked = ask(sql)?;
            self.check_status(&asked)?;
            match asked {
                Ask::Rows => {}
                Ask::Copy(copy) => {
                    self.copy(copy).await?;
                    continue;
                }
                asked => {
                    self.settle(asked, None).await?;
                    continue;
                }
            }
            let watch = self.set_aside("").await?;
            // Of one statement alone the places are those of the message.
            let (sql, told) = match all.len() {
                1 => (text.to_owned(), Some(text)),
                _ => ((*sql).to_owned(), None),
            };
            let session = &*self.session;
            let mut reading = Reading::begin(session, &mut self.wire, &watch, (sql, told), &[]).await?;
            self.wire.put(reading.shape().description(&[])?).await?;
            reading.send(&mut self.wire, &watch, (0, true)).await?;
            let tag = rows(reading.taken());
            self.complete(tag).await?;
        }
        Ok(())
    }

    /// Sends the rows of a statement as lines.
    async fn copy(&mut self, copy: Copy) -> Result<(), Trouble> {
        let watch = self.set_aside("").await?;
        let (session, asked) = (&*self.session, (copy.sql, None));
        let mut reading = Reading::begin(session, &mut self.wire, &watch, asked, &[]).await?;
        let sent = reading.copy(&mut self.wire, &watch, &copy.lines).await?;
        self.complete(format!("{COPIED} {sent}")).await
    }

    /// Does what asks for no rows of the project but those of a cursor. A statement of the simple protocol has no formats of
    /// columns, and is told the columns.
    async fn settle(&mut self, asked: Ask, formats: Option<&[i16]>) -> Result<(), Trouble> {
        let tag = match asked {
            Ask::Rows | Ask::Copy(_) => return Ok(()),
            Ask::Setting(name, value) => {
                let own = Some(&self.search_path).filter(|_| name == "search_path");
                let [columns, row] = reading::one_text(&name, own.map_or(value, String::as_str))?;
                if formats.is_none() {
                    self.wire.put(columns).await?;
                }
                self.wire.put(row).await?;
                "SHOW"
            }
            Ask::Look(schemas) => {
                self.search_path = schemas.join(", ");
                self.session.look_in(schemas);
                "SET"
            }
            Ask::Begin => {
                if self.status == TransactionStatus::Idle {
                    self.status = TransactionStatus::Transaction;
                    self.savepoints.begin(self.portals.made());
                }
                "BEGIN"
            }
            Ask::End(end) => {
                let has_failed = self.status == TransactionStatus::Error;
                self.status = TransactionStatus::Idle;
                let is_well = end == End::Commit && !has_failed;
                self.portals.end_transaction(is_well);
                if is_well { "COMMIT" } else { "ROLLBACK" }
            }
            Ask::Declare(declared) => {
                self.declare(declared).await?;
                "DECLARE CURSOR"
            }
            Ask::Fetch(fetch) => {
                let (taken, _) = self.fetch(&fetch, formats).await?;
                return self.complete(format!("{} {taken}", fetch.tag())).await;
            }
            Ask::Close(name) => self.close_cursors(name.as_deref())?,
            Ask::Savepoint(step) => self.savepoint(step)?,
            Ask::Nothing(tag) => tag,
            Ask::Forget(name) => {
                match name {
                    Some(name) => drop(self.statements.remove(&name)),
                    None => self.statements.clear(),
                }
                "DEALLOCATE"
            }
            Ask::Discard => {
                self.statements.clear();
                self.portals.clear();
                "DISCARD ALL"
            }
        };
        self.complete(tag.to_owned()).await
    }

    fn savepoint(&mut self, step: Step) -> Result<&'static str, SqlError> {
        if self.status == TransactionStatus::Idle {
            return Err(SqlError::new(NO_TRANSACTION, "savepoints are of a transaction"));
        }
        let is_back = matches!(step, Step::Back(_));
        let tag = self.savepoints.take(step, self.portals.made())?;
        if is_back {
            self.status = TransactionStatus::Transaction;
            self.portals.end_those_after(self.savepoints.made_before());
        }
        Ok(tag)
    }

    fn check_status(&self, asked: &Ask) -> Result<(), SqlError> {
        match (self.status, asked) {
            (TransactionStatus::Error, Ask::End(_) | Ask::Savepoint(Step::Back(_))) => Ok(()),
            (TransactionStatus::Error, _) => Err(SqlError::new(
                FAILED,
                "a statement of this transaction has failed",
            )
            .hint("end it by ROLLBACK")),
            _ => Ok(()),
        }
    }

    /// Returns what ends the next statement, which cancel requests reach from now on.
    fn watch(&self) -> Watch {
        let statement = CancellationToken::new();
        *self.statement.lock().unpoisoned() = statement.clone();
        Watch {
            statement,
            session: self.ending.clone(),
        }
    }

    async fn put(&mut self, message: Out) -> Result<(), Trouble> {
        Ok(self.wire.put(message).await?)
    }

    async fn complete(&mut self, tag: String) -> Result<(), Trouble> {
        self.put(Out::CommandComplete(CommandComplete::new(tag))).await
    }

    async fn ready(&mut self) -> io::Result<()> {
        let ready = ReadyForQuery::new(self.status);
        self.wire.put(Out::ReadyForQuery(ready)).await?;
        // Clients that send ahead want the answer of each part all the same.
        self.wire.flush().await
    }
}

/// Returns the word that ends the answer of a statement with rows, and their number.
fn rows(number: u64) -> String {
    format!("{ROWS} {number}")
}
