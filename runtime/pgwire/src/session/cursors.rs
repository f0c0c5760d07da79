//! Cursors of a session: portals that statements declare and fetch from.

use pgwire::messages::response::TransactionStatus;

use super::Talk;
use crate::cursor::{Declare, Fetch};
use crate::portal::{Life, Portal};
use crate::reading::Trouble;
use crate::state::{NO_PORTAL, NO_TRANSACTION, SqlError};
use crate::statement::Ask;

impl Talk {
    /// Declares a cursor, and begins its statement.
    pub(super) async fn declare(&mut self, declared: Declare) -> Result<(), Trouble> {
        let Declare {
            name,
            sql,
            is_binary,
            is_held,
        } = declared;
        let life = match (is_held, self.status) {
            (false, TransactionStatus::Idle) => {
                let error = SqlError::new(NO_TRANSACTION, "a cursor lives within a transaction");
                return Err(error.hint("BEGIN first, or declare the cursor WITH HOLD").into());
            }
            (false, _) => Life::Transaction,
            (true, TransactionStatus::Idle) => Life::Held,
            (true, _) => Life::Declared,
        };
        if self.portals.has(&name) {
            return Err(SqlError::new("42P03", format!("there is a cursor \"{name}\" already")).into());
        }
        let formats = Vec::from_iter(is_binary.then_some(1));
        let portal = Portal::new(sql, Some(Ask::Rows), formats, life);
        self.portals.add(name.clone(), portal)?;
        let begun = self.start(&name).await;
        if begun.is_err() {
            self.portals.remove(&name);
        }
        begun
    }

    /// Sends rows of a cursor, or passes over them; returns their number, and true if there is none left. A statement of the
    /// simple protocol has no formats, and is told the columns.
    pub(super) async fn fetch(
        &mut self,
        fetch: &Fetch,
        formats: Option<&[i16]>,
    ) -> Result<(u64, bool), Trouble> {
        let name = &fetch.name;
        self.start(name).await?;
        let own = self.portals.get(name)?.formats.clone();
        if formats.is_none() && fetch.is_shown {
            let columns = self.described(name, &own)?;
            self.wire.put(columns).await?;
        }
        if let Some(reading) = self.portals.get(name)?.reading() {
            reading.set_formats(formats.unwrap_or(&own))?;
        }
        self.advance(name, fetch.most, fetch.is_shown).await
    }

    /// Closes a cursor, or all of them; returns the word that answers.
    pub(super) fn close_cursors(&mut self, name: Option<&str>) -> Result<&'static str, SqlError> {
        match name {
            Some(name) if self.portals.remove(name) => Ok("CLOSE CURSOR"),
            Some(name) => Err(SqlError::new(NO_PORTAL, format!("there is no cursor \"{name}\""))),
            None => {
                self.portals.clear();
                Ok("CLOSE CURSOR ALL")
            }
        }
    }
}
