//! Statements that are answered by rows, which go from the engine's chunks to the client.

use std::io;

use bytes::{BufMut as _, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::data::{DataRow, FieldDescription, RowDescription};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watershed_drivers::olap::{Column, QueryError, Value};

use crate::backend::{Answer, Session};
use crate::copy::Lines;
use crate::state::{CALLED_OFF, ENDED, PROTOCOL, SqlError, TOO_MANY};
use crate::types::{self, Type};
use crate::wire::Wire;
use crate::{binary, text};

/// The most columns of an answer, as in Postgres.
const MOST_COLUMNS: usize = 1_664;

/// The end of a statement or a session.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The connection is gone.
    Io(io::Error),
    /// The client is told, and the session goes on.
    Told(SqlError),
    /// The client is told, and the session ends.
    Fatal(SqlError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<SqlError> for Trouble {
    fn from(error: SqlError) -> Self {
        Self::Told(error)
    }
}

/// The tokens that end a statement from outside.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    /// Cancelled by a cancel request.
    pub(crate) statement: CancellationToken,
    /// Cancelled when access is revoked, or the service stops.
    pub(crate) session: CancellationToken,
}

impl Watch {
    /// Waits for a future, unless the statement is called off or the client leaves.
    pub(crate) async fn attend<T>(
        &self,
        wire: &mut Wire,
        future: impl Future<Output = T>,
    ) -> Result<T, Trouble> {
        // All arms are cancel-safe, or end the statement whose part they are.
        tokio::select! {
            biased;
            // Before what the engine says of its interruption.
            () = self.session.cancelled() => Err(Trouble::Fatal(ended())),
            () = self.statement.cancelled() => {
                Err(SqlError::new(CALLED_OFF, "the statement was called off by its client").into())
            }
            done = future => Ok(done),
            () = wire.gone() => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }
}

pub(crate) fn ended() -> SqlError {
    SqlError::new(
        ENDED,
        "the session ends: access was revoked or has expired, or the service stops",
    )
}

/// The columns of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    columns: Vec<Column>,
    types: Vec<Type>,
}

impl Shape {
    fn of(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            types: columns.iter().map(|it| types::of(&it.data_type)).collect(),
        }
    }

    /// Returns the message that describes the columns in the formats that were asked for.
    ///
    /// # Errors
    /// Formats that are none, or not as many as columns.
    pub(crate) fn description(&self, formats: &[i16]) -> Result<PgWireBackendMessage, SqlError> {
        let formats = formats_of(formats, self.types.len())?;
        let columns = self.columns.iter().zip(&self.types).zip(formats);
        let fields = columns.map(|((column, own), format)| {
            // NUL would end the name early.
            let name = column.name.replace('\0', " ");
            FieldDescription::new(name, 0, 0, own.oid, own.size, own.modifier, format)
        });
        Ok(PgWireBackendMessage::RowDescription(RowDescription::new(
            fields.collect(),
        )))
    }
}

/// A statement under way, with the rows that are not sent yet.
pub(crate) struct Reading {
    answer: Answer,
    shape: Shape,
    formats: Vec<i16>,
    rows: std::vec::IntoIter<Vec<Value>>,
    /// The next answer of the engine, if taken before rows were wanted.
    ahead: Option<Next>,
    is_over: bool,
    taken: u64,
    /// The moment at which rows were wanted last.
    wanted: Instant,
}

/// The next rows of the engine, or how they end.
type Next = Option<Result<Vec<Vec<Value>>, QueryError>>;

impl Reading {
    /// Begins a statement. `told` is the text whose places clients know, if it is theirs.
    pub(crate) async fn begin(
        session: &dyn Session,
        wire: &mut Wire,
        watch: &Watch,
        (sql, told): (String, Option<&str>),
        formats: &[i16],
    ) -> Result<Self, Trouble> {
        // A cancel request ends what is waited for, and no portal between two waits: its rows end when they are dropped.
        let cancel = CancellationToken::new();
        let running = session.run(sql, None, &cancel);
        let answer = watch.attend(wire, running).await?;
        let answer = answer.map_err(|problem| SqlError::of(&problem, told))?;
        let shape = Shape::of(answer.rows.columns());
        let formats = formats_of(formats, shape.types.len())?;
        Ok(Self {
            answer,
            shape,
            formats,
            rows: Vec::new().into_iter(),
            ahead: None,
            is_over: false,
            taken: 0,
            wanted: Instant::now(),
        })
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Sets the formats in which the next rows are sent.
    pub(crate) fn set_formats(&mut self, formats: &[i16]) -> Result<(), SqlError> {
        self.formats = formats_of(formats, self.shape.types.len())?;
        Ok(())
    }

    /// Returns the number of rows that were sent or passed over.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the moment at which rows were wanted last.
    pub(crate) fn wanted(&self) -> Instant {
        self.wanted
    }

    /// Sends up to a number of rows, 0 for all, or passes over them; returns true if there is none left.
    pub(crate) async fn send(
        &mut self,
        wire: &mut Wire,
        watch: &Watch,
        (most, is_shown): (u64, bool),
    ) -> Result<bool, Trouble> {
        let sent = self.send_wanted(wire, watch, (most, is_shown)).await;
        self.wanted = Instant::now();
        sent
    }

    async fn send_wanted(
        &mut self,
        wire: &mut Wire,
        watch: &Watch,
        (most, is_shown): (u64, bool),
    ) -> Result<bool, Trouble> {
        watch.attend(wire, self.answer.place.enter()).await?;
        let mut left = if most == 0 { u64::MAX } else { most };
        loop {
            while let Some(row) = self.rows.next() {
                if left == 0 {
                    // It was taken to see whether there is one.
                    let rest: Vec<_> = std::iter::once(row).chain(self.rows.by_ref()).collect();
                    self.rows = rest.into_iter();
                    return Ok(false);
                }
                if is_shown {
                    wire.write_row(|out| self.write(&row, out))?;
                    wire.flush_enough().await?;
                }
                left -= 1;
                self.taken += 1;
            }
            if !self.fetch(wire, watch).await? {
                return Ok(true);
            }
        }
    }

    /// Gives the place among the readers back before another statement begins, once the engine has rows for this one. Returns
    /// false if the place can't be left, so that the rest of the rows has to be.
    pub(crate) async fn set_aside(&mut self, wire: &mut Wire, watch: &Watch) -> Result<bool, Trouble> {
        if self.rows.as_slice().is_empty() && self.ahead.is_none() && !self.is_over {
            self.ahead = Some(watch.attend(wire, self.answer.rows.next()).await?);
        }
        Ok(self.answer.place.leave())
    }

    /// Gives the place among the readers back until rows are wanted again, once the engine waits for the client.
    pub(crate) fn pause(&mut self) {
        if self.answer.rows.are_waiting() {
            self.answer.place.leave();
        }
    }

    /// Takes the next rows from the engine; returns false behind the last ones.
    async fn fetch(&mut self, wire: &mut Wire, watch: &Watch) -> Result<bool, Trouble> {
        if self.is_over {
            return Ok(false);
        }
        if watch.session.is_cancelled() {
            return Err(Trouble::Fatal(ended()));
        }
        let next = match self.ahead.take() {
            Some(next) => next,
            None => watch.attend(wire, self.answer.rows.next()).await?,
        };
        match next {
            Some(Ok(rows)) => self.rows = rows.into_iter(),
            Some(Err(error)) => return Err(SqlError::of(&(self.answer.words)(&error), None).into()),
            None => self.is_over = true,
        }
        Ok(!self.is_over)
    }

    /// Sends all rows as lines; returns their number.
    pub(crate) async fn copy(
        &mut self,
        wire: &mut Wire,
        watch: &Watch,
        lines: &Lines,
    ) -> Result<u64, Trouble> {
        let columns = self.shape.types.len();
        let begin = CopyOutResponse::new(0, count(columns), vec![0; columns]);
        wire.put(PgWireBackendMessage::CopyOutResponse(begin)).await?;
        let names = self.shape.columns.iter().map(|column| column.name.as_str());
        if let Some(header) = lines.header(names) {
            let header = CopyData::new(header.freeze());
            wire.put(PgWireBackendMessage::CopyData(header)).await?;
        }
        loop {
            for row in std::mem::take(&mut self.rows) {
                let line = CopyData::new(lines.line(&row, &self.shape.types).freeze());
                wire.put(PgWireBackendMessage::CopyData(line)).await?;
                self.taken += 1;
            }
            if !self.fetch(wire, watch).await? {
                wire.put(PgWireBackendMessage::CopyDone(CopyDone::new())).await?;
                return Ok(self.taken);
            }
        }
    }

    fn write(&self, row: &[Value], data: &mut BytesMut) -> Result<(), SqlError> {
        data.put_i16(count(row.len()));
        for ((value, own), format) in row.iter().zip(&self.shape.types).zip(&self.formats) {
            if *value == Value::Null {
                data.put_i32(-1);
                continue;
            }
            let at = data.len();
            data.put_i32(0);
            match format {
                0 => text::write(value, own.form, data),
                _ => binary::write(value, own.form, data)
                    .map_err(|message| SqlError::new("22003", message).hint("ask for it as a text"))?,
            }
            let length = i32::try_from(data.len() - at - 4)
                .map_err(|_| SqlError::new("54000", "a value is too long to be sent"))?;
            data[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

/// Returns the columns of a statement without its rows.
pub(crate) async fn columns(
    session: &dyn Session,
    wire: &mut Wire,
    watch: Watch,
    (sql, told): (String, Option<&str>),
) -> Result<Shape, Trouble> {
    let running = session.run(sql, Some(0), &watch.statement);
    let answer = watch.attend(wire, running).await?;
    let answer = answer.map_err(|problem| SqlError::of(&problem, told))?;
    Ok(Shape::of(answer.rows.columns()))
}

/// Returns the description and the row of a text with a name, as settings are told.
pub(crate) fn one_text(name: &str, value: &str) -> Result<[PgWireBackendMessage; 2], SqlError> {
    let column = Column {
        name: name.to_owned(),
        data_type: "VARCHAR".to_owned(),
    };
    let mut data = BytesMut::new();
    data.put_i32(i32::try_from(value.len()).unwrap_or(0));
    data.put_slice(value.as_bytes());
    Ok([
        Shape::of(&[column]).description(&[])?,
        PgWireBackendMessage::DataRow(DataRow::new(data, 1)),
    ])
}

fn formats_of(asked: &[i16], columns: usize) -> Result<Vec<i16>, SqlError> {
    if asked.iter().any(|format| !(0..=1).contains(format)) {
        return Err(SqlError::new(PROTOCOL, "values have the format 0 or 1"));
    }
    if columns > MOST_COLUMNS {
        return Err(SqlError::new(
            TOO_MANY,
            format!("there are more than {MOST_COLUMNS} columns"),
        ));
    }
    match asked {
        [] => Ok(vec![0; columns]),
        [all] => Ok(vec![*all; columns]),
        each if each.len() == columns => Ok(each.to_vec()),
        _ => Err(SqlError::new(
            PROTOCOL,
            "there are not as many formats as columns",
        )),
    }
}

fn count(number: usize) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}
