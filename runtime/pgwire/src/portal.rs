//! Prepared statements, and portals of a session, which cursors are too.

use std::collections::HashMap;

use tokio::time::Instant;

use crate::reading::{Reading, Shape};
use crate::state::{NO_PORTAL, SqlError, TOO_MANY};
use crate::statement::Ask;

/// The most portals of a session.
const MOST: usize = 64;

/// A prepared statement.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) sql: String,
    /// The wish of the statement; none for a statement without words.
    pub(crate) ask: Option<Ask>,
    /// Types of the parameters that the client said; 0 for those that it left open.
    pub(crate) declared: Vec<u32>,
    /// Types with those that were found for the client; 0 for those that nobody knows.
    pub(crate) types: Vec<u32>,
    /// True once types were looked for that the client did not say.
    pub(crate) is_typed: bool,
}

/// The rows of a portal that are still to come.
pub(crate) enum Rest {
    /// All: the statement has not begun.
    Whole,
    /// Those that were not sent yet.
    Open(Box<Reading>),
    /// None.
    Over,
    /// None, as the rest was left: from its beginning the statement would send some of them twice.
    Left,
}

/// The end of a portal's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// With its transaction.
    Transaction,
    /// With the session, if its transaction ends well.
    Declared,
    /// With the session.
    Held,
}

/// A statement with its values.
pub(crate) struct Portal {
    pub(crate) sql: String,
    /// True if the text is that which the client sent, so that places in it mean something there.
    pub(crate) is_own: bool,
    pub(crate) ask: Option<Ask>,
    pub(crate) formats: Vec<i16>,
    pub(crate) rest: Rest,
    /// The number of rows that a portal of a `FETCH` has sent.
    pub(crate) fetched: u64,
    /// The columns, once the statement has begun.
    pub(crate) shape: Option<Shape>,
    pub(crate) life: Life,
}

impl Portal {
    /// Creates the portal of a statement that has not begun.
    pub(crate) fn new(sql: String, ask: Option<Ask>, formats: Vec<i16>, life: Life) -> Self {
        Self {
            sql,
            is_own: false,
            ask,
            formats,
            rest: Rest::Whole,
            fetched: 0,
            shape: None,
            life,
        }
    }

    /// Returns the statement under way, if the portal is half read.
    pub(crate) fn reading(&mut self) -> Option<&mut Reading> {
        match &mut self.rest {
            Rest::Open(reading) => Some(reading),
            _ => None,
        }
    }
}

/// The portals of a session, by their names, each with its number.
#[derive(Default)]
pub(crate) struct Portals {
    all: HashMap<String, (u64, Portal)>,
    made: u64,
}

impl Portals {
    /// Adds a portal, in the place of the one of its name.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn add(&mut self, name: String, portal: Portal) -> Result<(), SqlError> {
        if self.all.len() >= MOST && !self.all.contains_key(&name) {
            let message = format!("a session has at most {MOST} portals");
            return Err(SqlError::new(TOO_MANY, message).hint("close some of them"));
        }
        self.made += 1;
        self.all.insert(name, (self.made, portal));
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Returns the number of portals that were made so far.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Returns the portal of a name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&mut self, name: &str) -> Result<&mut Portal, SqlError> {
        let found = self.all.get_mut(name).map(|(_, portal)| portal);
        found.ok_or_else(|| SqlError::new(NO_PORTAL, format!("there is no portal \"{name}\"")))
    }

    /// Removes a portal; returns false if there is none.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.all.remove(name).is_some()
    }

    /// Returns the portals that are half read, with their names.
    pub(crate) fn open(&mut self) -> impl Iterator<Item = (&String, &mut Portal)> {
        let all = self.all.iter_mut().map(|(name, (_, portal))| (name, portal));
        all.filter(|(_, portal)| matches!(portal.rest, Rest::Open(_)))
    }

    /// Returns the moment at which rows were last wanted of the portal that has waited longest; none if none is half read.
    pub(crate) fn wanted_first(&mut self) -> Option<Instant> {
        let readings = self.open().filter_map(|(_, portal)| portal.reading());
        readings.map(|reading| reading.wanted()).min()
    }

    /// Leaves the rest of the portals of which no rows were wanted since a moment.
    pub(crate) fn leave_those_of(&mut self, moment: Instant) {
        for (_, portal) in self.open() {
            if portal.reading().is_some_and(|reading| reading.wanted() <= moment) {
                portal.rest = Rest::Left;
            }
        }
    }

    /// Removes all portals, also those that outlive transactions.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Removes the portals that were made after a number of others.
    pub(crate) fn end_those_after(&mut self, made: u64) {
        self.all.retain(|_, (number, _)| *number <= made);
    }

    /// Removes the portals that end with a transaction.
    pub(crate) fn end_transaction(&mut self, is_well: bool) {
        self.all.retain(|_, (_, portal)| {
            if portal.life == Life::Declared && is_well {
                portal.life = Life::Held;
            }
            portal.life == Life::Held
        });
    }
}

/// Returns the error of a portal whose rest was left.
pub(crate) fn left(name: &str) -> SqlError {
    let message = format!(
        "the rest of portal \"{name}\" was left: its rows were not wanted for 30 s, or too many answers are half read"
    );
    SqlError::new(NO_PORTAL, message).hint("ask again, and read all rows before the next statement")
}
