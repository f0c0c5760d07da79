//! Messages of a client who has signed in.
//!
//! 1. A session reads at most one statement at a time: who asks another leaves the rest of an open portal, which answers no more.
//! 2. Behind an error of the extended protocol all is skipped until `Sync`.
//! 3. Portals live until their transaction ends, and until the client has asked nothing for the time of
//!    [`Bounds::takes_nothing`]: an open read keeps the engine's file from shrinking.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pgwire::messages::PgWireBackendMessage as Out;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{Bind, BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned as _;

use crate::backend::{Bounds, Session};
use crate::copy::Copy;
use crate::frame::{self, Frame};
use crate::parameters;
use crate::portal::{self, Portal, Prepared};
use crate::reading::{self, Reading, Trouble, Watch, ended};
use crate::savepoints::{Savepoints, Step};
use crate::state::{
    FAILED, IDLE, IDLE_IN_TRANSACTION, NO_PORTAL, NO_STATEMENT, NO_TRANSACTION, PROTOCOL, SYNTAX, SqlError,
    TOO_MANY,
};
use crate::statement::{Ask, End, ask};
use crate::tokens::statements;
use crate::wire::Wire;

/// The most prepared statements of a session, and bytes of them.
const STATEMENTS: (usize, usize) = (256, 4 << 20);
/// The most portals of a session.
const PORTALS: usize = 64;

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
    portals: HashMap<String, Portal>,
    /// The statement that is read, with the name of its portal.
    reading: Option<(String, Reading)>,
    /// The token of the statement that a cancel request reaches.
    statement: Arc<Mutex<CancellationToken>>,
    /// Cancelled when access is revoked or the service stops.
    ending: CancellationToken,
    expires: Instant,
    skips: bool,
    savepoints: Savepoints,
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
            portals: HashMap::new(),
            reading: None,
            statement,
            ending,
            skips: false,
            savepoints: Savepoints::default(),
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
                    self.leave_reading();
                    self.wire.put(error.message(false)).await?;
                    if self.status == TransactionStatus::Transaction {
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
            let until = match self.reading {
                Some(_) => (begun + self.bounds.takes_nothing).min(end),
                None => end,
            };
            // All arms are cancel-safe.
            let read = tokio::select! {
                biased;
                () = self.ending.cancelled() => return Err(Trouble::Fatal(ended())),
                () = sleep_until(self.expires) => return Err(Trouble::Fatal(ended())),
                read = self.wire.message(self.bounds.message_bytes) => read,
                () = sleep_until(until) => {
                    if !self.leave_reading() || until == end {
                        return Err(Trouble::Fatal(over));
                    }
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
                self.close_portals();
            }
            return Ok(self.ready().await?);
        }
        if self.skips && !matches!(frame, Frame::Query(_)) {
            return Ok(());
        }
        match frame {
            Frame::Query(query) => {
                self.skips = false;
                match self.status {
                    TransactionStatus::Idle => self.close_portals(),
                    // Those with a name live until the transaction ends.
                    _ => {
                        self.leave_reading();
                        self.close_portal("");
                    }
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
                    _ => self.close_portal(&name),
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
                    self.settle(asked, true).await?;
                    continue;
                }
            }
            let watch = self.watch();
            // Of one statement alone the places are those of the message.
            let (sql, told) = match all.len() {
                1 => (text.to_owned(), Some(text)),
                _ => ((*sql).to_owned(), None),
            };
            let session = &*self.session;
            let mut reading = Reading::begin(session, &mut self.wire, watch, (sql, told), &[]).await?;
            self.wire.put(reading.description()).await?;
            reading.send(&mut self.wire, 0).await?;
            let tag = rows(reading.sent());
            self.complete(tag).await?;
        }
        Ok(())
    }

    fn prepare(&mut self, name: String, sql: String, mut types: Vec<u32>) -> Result<(), SqlError> {
        let asked = match statements(&sql).len() {
            0 => None,
            1 => Some(ask(&sql)?),
            _ => {
                return Err(
                    SqlError::new(SYNTAX, "there is more than one statement").hint("send one at a time")
                );
            }
        };
        if let Some(asked) = &asked {
            self.check_status(asked)?;
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("there is a prepared statement \"{name}\" already");
            return Err(SqlError::new("42P05", message));
        }
        let number = parameters::number_in(&sql);
        if number > usize::from(u16::MAX) {
            return Err(SqlError::new(
                TOO_MANY,
                "a statement has at most 65,535 parameters",
            ));
        }
        types.resize(number.max(types.len()), 0);
        let held: usize = self.statements.values().map(|own| own.sql.len()).sum();
        if self.statements.len() >= STATEMENTS.0 || held + sql.len() > STATEMENTS.1 {
            let message = format!(
                "a session has at most {} prepared statements, of 4 MiB",
                STATEMENTS.0
            );
            return Err(SqlError::new(TOO_MANY, message).hint("close some of them"));
        }
        let prepared = Prepared {
            sql,
            ask: asked,
            types,
        };
        self.statements.insert(name, Arc::new(prepared));
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        let found = self.statements.get(name).cloned();
        found.ok_or_else(|| SqlError::new(NO_STATEMENT, format!("there is no prepared statement \"{name}\"")))
    }

    fn bind(&mut self, bind: Bind) -> Result<(), SqlError> {
        let prepared = self.prepared(&bind.statement_name.unwrap_or_default())?;
        if bind.parameters.len() != prepared.types.len() {
            let (given, needed) = (bind.parameters.len(), prepared.types.len());
            let message = format!("there are {given} values for {needed} parameters");
            return Err(SqlError::new(PROTOCOL, message));
        }
        let name = bind.portal_name.unwrap_or_default();
        self.close_portal(&name);
        if self.portals.len() >= PORTALS {
            let message = format!("a session has at most {PORTALS} portals");
            return Err(SqlError::new(TOO_MANY, message).hint("close some of them"));
        }
        let is_own = bind.parameters.is_empty();
        let sql = match is_own {
            true => prepared.sql.clone(),
            false => {
                let formats = &bind.parameter_format_codes;
                let constants = parameters::constants(&bind.parameters, formats, &prepared.types)?;
                parameters::put(&prepared.sql, &constants)?
            }
        };
        let portal = Portal {
            sql,
            is_own,
            ask: prepared.ask.clone(),
            formats: bind.result_column_format_codes,
            is_over: false,
            is_left: false,
        };
        self.portals.insert(name, portal);
        Ok(())
    }

    async fn describe_statement(&mut self, name: &str) -> Result<(), Trouble> {
        let prepared = self.prepared(name)?;
        // Whoever did not say sends texts.
        let types = prepared.types.iter().map(|oid| if *oid == 0 { 25 } else { *oid });
        let types = ParameterDescription::new(types.collect());
        self.wire.put(Out::ParameterDescription(types)).await?;
        let description = match &prepared.ask {
            Some(Ask::Rows) => {
                self.leave_reading();
                let constants = parameters::unknown(&prepared.types)?;
                let sql = parameters::put(&prepared.sql, &constants)?;
                let told = prepared.types.is_empty().then_some(prepared.sql.as_str());
                let watch = self.watch();
                reading::columns(&*self.session, &mut self.wire, watch, (sql, told)).await?
            }
            Some(Ask::Setting(name, value)) => reading::one_text(name, value)
                .into_iter()
                .next()
                .unwrap_or(no_data()),
            _ => no_data(),
        };
        Ok(self.wire.put(description).await?)
    }

    async fn describe_portal(&mut self, name: &str) -> Result<(), Trouble> {
        let description = match &self.portal(name)?.ask {
            Some(Ask::Rows) => self.start(name).await?.description(),
            Some(Ask::Setting(name, value)) => reading::one_text(name, value)
                .into_iter()
                .next()
                .unwrap_or(no_data()),
            _ => no_data(),
        };
        Ok(self.wire.put(description).await?)
    }

    fn portal(&mut self, name: &str) -> Result<&mut Portal, SqlError> {
        let found = self.portals.get_mut(name);
        found.ok_or_else(|| SqlError::new(NO_PORTAL, format!("there is no portal \"{name}\"")))
    }

    /// Ends the statement that is half read, and with it its portal, which could only begin again. Returns false if there is none.
    fn leave_reading(&mut self) -> bool {
        let Some((name, _)) = self.reading.take() else {
            return false;
        };
        if let Some(portal) = self.portals.get_mut(&name) {
            portal.is_left = true;
        }
        true
    }

    /// Returns the statement of a portal, which is begun if it has not been.
    async fn start(&mut self, name: &str) -> Result<&mut Reading, Trouble> {
        if self.reading.as_ref().is_none_or(|(own, _)| own != name) {
            self.leave_reading();
            let watch = self.watch();
            let portal = self.portals.get(name);
            let portal = portal.ok_or_else(|| SqlError::new(NO_PORTAL, "there is no such portal"))?;
            if portal.is_left {
                return Err(portal::left(name).into());
            }
            let told = portal.is_own.then_some(portal.sql.as_str());
            let asked = (portal.sql.clone(), told);
            let begun = Reading::begin(&*self.session, &mut self.wire, watch, asked, &portal.formats).await?;
            self.reading = Some((name.to_owned(), begun));
        }
        match &mut self.reading {
            Some((_, reading)) => Ok(reading),
            None => Err(SqlError::new(NO_PORTAL, "there is no such portal").into()),
        }
    }

    async fn execute(&mut self, name: &str, most: u64) -> Result<(), Trouble> {
        let portal = self.portal(name)?;
        let (asked, is_over) = (portal.ask.clone(), portal.is_over);
        let Some(asked) = asked else {
            let empty = EmptyQueryResponse::new();
            return self.put(Out::EmptyQueryResponse(empty)).await;
        };
        self.check_status(&asked)?;
        match asked {
            Ask::Rows => {}
            Ask::Copy(_) if is_over => return self.complete(format!("{COPIED} 0")).await,
            Ask::Copy(copy) => {
                self.portal(name)?.is_over = true;
                return self.copy(copy).await;
            }
            asked => return self.settle(asked, false).await,
        }
        if is_over {
            return self.complete(rows(0)).await;
        }
        self.start(name).await?;
        let Some((_, reading)) = &mut self.reading else {
            return Err(SqlError::new(NO_PORTAL, "there is no such portal").into());
        };
        let before = reading.sent();
        if !reading.send(&mut self.wire, most).await? {
            return self.put(Out::PortalSuspended(PortalSuspended::new())).await;
        }
        let tag = rows(reading.sent() - before);
        self.reading = None;
        self.portal(name)?.is_over = true;
        self.complete(tag).await
    }

    /// Sends the rows of a statement as lines.
    async fn copy(&mut self, copy: Copy) -> Result<(), Trouble> {
        let (session, watch) = (&*self.session, self.watch());
        let asked = (copy.sql, None);
        let mut reading = Reading::begin(session, &mut self.wire, watch, asked, &[]).await?;
        let sent = reading.copy(&mut self.wire, &copy.lines).await?;
        self.complete(format!("{COPIED} {sent}")).await
    }

    /// Does what asks for no rows of the project.
    async fn settle(&mut self, asked: Ask, with_columns: bool) -> Result<(), Trouble> {
        let tag = match asked {
            Ask::Rows | Ask::Copy(_) => return Ok(()),
            Ask::Setting(name, value) => {
                let [columns, row] = reading::one_text(&name, value);
                if with_columns {
                    self.wire.put(columns).await?;
                }
                self.wire.put(row).await?;
                "SHOW"
            }
            Ask::Begin => {
                if self.status == TransactionStatus::Idle {
                    self.status = TransactionStatus::Transaction;
                }
                "BEGIN"
            }
            Ask::End(end) => {
                let has_failed = self.status == TransactionStatus::Error;
                self.status = TransactionStatus::Idle;
                self.savepoints.clear();
                self.close_portals();
                match end {
                    End::Commit if !has_failed => "COMMIT",
                    _ => "ROLLBACK",
                }
            }
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
                self.close_portals();
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
        let tag = self.savepoints.take(step)?;
        if is_back {
            self.status = TransactionStatus::Transaction;
            self.close_portals();
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

    fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
        if self.reading.as_ref().is_some_and(|(own, _)| own == name) {
            self.reading = None;
        }
    }

    fn close_portals(&mut self) {
        self.portals.clear();
        self.reading = None;
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

fn no_data() -> Out {
    Out::NoData(NoData::new())
}

/// Returns the word that ends the answer of a statement with rows, and their number.
fn rows(number: u64) -> String {
    format!("{ROWS} {number}")
}
