//! The extended protocol: prepared statements, and the portals that hold their rows.

use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage as Out;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{Bind, PortalSuspended};
use pgwire::messages::response::EmptyQueryResponse;

use super::{COPIED, Talk, rows};
use crate::cursor::Fetch;
use crate::parameters::{self, Values};
use crate::portal::{self, Life, Portal, Prepared, Rest};
use crate::reading::{self, Reading, Trouble, Watch};
use crate::state::{NO_STATEMENT, PROTOCOL, SYNTAX, SqlError, TOO_MANY};
use crate::statement::{Ask, ask};
use crate::tokens::statements;
use crate::{types, typing};

/// The most prepared statements of a session, and bytes of them.
const STATEMENTS: (usize, usize) = (256, 4 << 20);

impl Talk {
    pub(super) fn prepare(&mut self, name: String, sql: String, mut types: Vec<u32>) -> Result<(), SqlError> {
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
        let number = typing::number_in(&sql);
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
            declared: types.clone(),
            types,
            is_typed: false,
        };
        self.statements.insert(name, Arc::new(prepared));
        Ok(())
    }

    fn prepared(&self, name: &str) -> Result<Arc<Prepared>, SqlError> {
        let found = self.statements.get(name).cloned();
        found.ok_or_else(|| SqlError::new(NO_STATEMENT, format!("there is no prepared statement \"{name}\"")))
    }

    /// Returns a prepared statement with the types of those parameters of which the client said none, as far as they follow from
    /// the statement.
    async fn typed(&mut self, name: &str) -> Result<Arc<Prepared>, Trouble> {
        let prepared = self.prepared(name)?;
        let sql = match &prepared.ask {
            Some(Ask::Rows) => &prepared.sql,
            Some(Ask::Declare(declared)) => &declared.sql,
            _ => return Ok(prepared),
        };
        if prepared.is_typed || !prepared.types.contains(&0) {
            return Ok(prepared);
        }
        let casts = typing::casts(sql);
        let (sql, arrays) = typing::elements(sql);
        let watch = self.set_aside("").await?;
        let finding = self.session.parameters(typing::forms(sql), &watch.statement);
        let found = watch.attend(&mut self.wire, finding).await?;
        let found = found.map_err(|problem| SqlError::of(&problem, None))?;
        let mut typed = Prepared {
            is_typed: true,
            ..(*prepared).clone()
        };
        for (own, number) in typed.types.iter_mut().zip(1..).filter(|(own, _)| **own == 0) {
            let known = found
                .get(&number)
                .and_then(|engine| match arrays.contains(&number) {
                    true => types::of_parameter(&format!("{engine}[]")),
                    false => types::of_parameter(engine),
                });
            *own = known.or(casts.get(&number).copied()).unwrap_or(0);
        }
        let typed = Arc::new(typed);
        self.statements.insert(name.to_owned(), Arc::clone(&typed));
        Ok(typed)
    }

    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), SqlError> {
        let prepared = self.prepared(&bind.statement_name.unwrap_or_default())?;
        if bind.parameters.len() != prepared.types.len() {
            let (given, needed) = (bind.parameters.len(), prepared.types.len());
            let message = format!("there are {given} values for {needed} parameters");
            return Err(SqlError::new(PROTOCOL, message));
        }
        let name = bind.portal_name.unwrap_or_default();
        self.portals.remove(&name);
        let is_own = bind.parameters.is_empty();
        let sql = match is_own {
            true => prepared.sql.clone(),
            false => {
                let values = Values {
                    values: &bind.parameters,
                    formats: &bind.parameter_format_codes,
                    declared: &prepared.declared,
                    types: &prepared.types,
                };
                parameters::bound(&prepared.sql, &values)?
            }
        };
        // These hold a statement of their own, which has the parameters.
        let asked = match &prepared.ask {
            Some(Ask::Declare(_) | Ask::Copy(_)) if !is_own => Some(ask(&sql)?),
            asked => asked.clone(),
        };
        let formats = bind.result_column_format_codes;
        let portal = Portal::new(sql, asked, formats, Life::Transaction);
        self.portals.add(name, Portal { is_own, ..portal })
    }

    pub(super) async fn describe_statement(&mut self, name: &str) -> Result<(), Trouble> {
        let prepared = self.typed(name).await?;
        // Whoever did not say sends texts.
        let types = prepared.types.iter().map(|oid| if *oid == 0 { 25 } else { *oid });
        let types = ParameterDescription::new(types.collect());
        self.wire.put(Out::ParameterDescription(types)).await?;
        let description = match &prepared.ask {
            Some(Ask::Rows) => {
                let sql = parameters::described(&prepared.sql, &prepared.types)?;
                let told = prepared.types.is_empty().then_some(prepared.sql.as_str());
                let watch = self.set_aside("").await?;
                let shape = reading::columns(&*self.session, &mut self.wire, watch, (sql, told)).await?;
                shape.description(&[])?
            }
            asked => self.description(asked.as_ref(), &[]).await?,
        };
        Ok(self.wire.put(description).await?)
    }

    pub(super) async fn describe_portal(&mut self, name: &str) -> Result<(), Trouble> {
        let portal = self.portals.get(name)?;
        let (asked, formats) = (portal.ask.clone(), portal.formats.clone());
        let description = match asked {
            Some(Ask::Rows) => {
                if portal.shape.is_none() {
                    self.start(name).await?;
                }
                self.described(name, &formats)?
            }
            asked => self.description(asked.as_ref(), &formats).await?,
        };
        Ok(self.wire.put(description).await?)
    }

    /// Returns the description of what a statement answers that asks the session.
    async fn description(&mut self, asked: Option<&Ask>, formats: &[i16]) -> Result<Out, Trouble> {
        match asked {
            Some(Ask::Setting(name, value)) => {
                let [columns, _] = reading::one_text(name, value)?;
                Ok(columns)
            }
            Some(Ask::Fetch(fetch)) if fetch.is_shown => {
                self.start(&fetch.name).await?;
                Ok(self.described(&fetch.name, formats)?)
            }
            _ => Ok(Out::NoData(NoData::new())),
        }
    }

    /// Returns the description of a portal's columns, once its statement has begun.
    pub(super) fn described(&mut self, name: &str, formats: &[i16]) -> Result<Out, SqlError> {
        match &self.portals.get(name)?.shape {
            Some(shape) => shape.description(formats),
            None => Ok(Out::NoData(NoData::new())),
        }
    }

    /// Gives the places of portals that are half read back, but for one, before rows are wanted. Returns what ends the next
    /// statement.
    pub(super) async fn set_aside(&mut self, but: &str) -> Result<Watch, Trouble> {
        let watch = self.watch();
        for (_, portal) in self.portals.open().filter(|(name, _)| *name != but) {
            if let Some(reading) = portal.reading()
                && !reading.set_aside(&mut self.wire, &watch).await?
            {
                portal.rest = Rest::Left;
            }
        }
        Ok(watch)
    }

    /// Begins the statement of a portal, if that has not begun.
    pub(super) async fn start(&mut self, name: &str) -> Result<(), Trouble> {
        match self.portals.get(name)?.rest {
            Rest::Open(_) | Rest::Over => return Ok(()),
            Rest::Left => return Err(portal::left(name).into()),
            Rest::Whole => {}
        };
        let watch = self.set_aside(name).await?;
        let portal = self.portals.get(name)?;
        let told = portal.is_own.then_some(portal.sql.as_str());
        let asked = (portal.sql.clone(), told);
        let begun = Reading::begin(&*self.session, &mut self.wire, &watch, asked, &portal.formats).await?;
        (portal.shape, portal.rest) = (Some(begun.shape().clone()), Rest::Open(Box::new(begun)));
        Ok(())
    }

    pub(super) async fn execute(&mut self, name: &str, most: u64) -> Result<(), Trouble> {
        let portal = self.portals.get(name)?;
        let (asked, formats) = (portal.ask.clone(), portal.formats.clone());
        let is_over = matches!(portal.rest, Rest::Over);
        let Some(asked) = asked else {
            let empty = EmptyQueryResponse::new();
            return self.put(Out::EmptyQueryResponse(empty)).await;
        };
        self.check_status(&asked)?;
        match asked {
            Ask::Rows => {}
            Ask::Copy(_) if is_over => return self.complete(format!("{COPIED} 0")).await,
            Ask::Copy(copy) => {
                self.portals.get(name)?.rest = Rest::Over;
                return self.copy(copy).await;
            }
            Ask::Fetch(fetch) => return self.execute_fetch(name, &fetch, most, &formats).await,
            asked => return self.settle(asked, Some(&formats)).await,
        }
        self.start(name).await?;
        // Somebody may have fetched from the portal in other formats.
        if let Some(reading) = self.portals.get(name)?.reading() {
            reading.set_formats(&formats)?;
        }
        let (sent, is_over) = self.advance(name, most, true).await?;
        match is_over {
            true => self.complete(rows(sent)).await,
            false => self.put(Out::PortalSuspended(PortalSuspended::new())).await,
        }
    }

    /// Sends up to a number of the rows that a `FETCH` wants, 0 for all of them.
    async fn execute_fetch(
        &mut self,
        name: &str,
        fetch: &Fetch,
        most: u64,
        formats: &[i16],
    ) -> Result<(), Trouble> {
        let portal = self.portals.get(name)?;
        if matches!(portal.rest, Rest::Over) {
            return self.complete(format!("{} 0", fetch.tag())).await;
        }
        let sent = portal.fetched;
        // Nothing is left of a number that all was sent of, while 0 would be all rows.
        let left = (fetch.most > 0).then(|| fetch.most - sent);
        let is_part = most > 0 && fetch.is_shown && left.is_none_or(|left| most < left);
        let part = Fetch {
            most: if is_part { most } else { left.unwrap_or(0) },
            ..fetch.clone()
        };
        let (taken, is_over) = self.fetch(&part, Some(formats)).await?;
        let portal = self.portals.get(name)?;
        portal.fetched = sent + taken;
        if is_part && !is_over {
            return self.put(Out::PortalSuspended(PortalSuspended::new())).await;
        }
        portal.rest = Rest::Over;
        let all = portal.fetched;
        self.complete(format!("{} {all}", fetch.tag())).await
    }

    /// Sends up to a number of rows of a portal that has begun, 0 for all, or passes over them. Returns their number, and true if
    /// there is none left.
    pub(super) async fn advance(
        &mut self,
        name: &str,
        most: u64,
        is_shown: bool,
    ) -> Result<(u64, bool), Trouble> {
        let watch = self.set_aside(name).await?;
        let portal = self.portals.get(name)?;
        let Some(reading) = portal.reading() else {
            return Ok((0, true));
        };
        let before = reading.taken();
        let sent = reading.send(&mut self.wire, &watch, (most, is_shown)).await;
        let taken = reading.taken() - before;
        match sent {
            Ok(false) => {}
            Ok(true) => portal.rest = Rest::Over,
            Err(_) => portal.rest = Rest::Left,
        }
        Ok((taken, sent?))
    }
}
