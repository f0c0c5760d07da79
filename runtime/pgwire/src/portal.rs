//! Prepared statements, and portals of a session, which cursors are too.

use std::collections::HashMap;

use crate::reading::Shape;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// All: the statement has not begun.
    Whole,
    /// Those that were not sent yet.
    Open,
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
    /// The columns, once the statement has begun.
    pub(crate) shape: Option<Shape>,
    pub(crate) life: Life,
}

/// The portals of a session, by their names.
#[derive(Default)]
pub(crate) struct Portals(HashMap<String, Portal>);

impl Portals {
    /// Adds a portal, in the place of the one of its name.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn add(&mut self, name: String, portal: Portal) -> Result<(), SqlError> {
        if self.0.len() >= MOST && !self.0.contains_key(&name) {
            let message = format!("a session has at most {MOST} portals");
            return Err(SqlError::new(TOO_MANY, message).hint("close some of them"));
        }
        self.0.insert(name, portal);
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the portal of a name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn get(&mut self, name: &str) -> Result<&mut Portal, SqlError> {
        let found = self.0.get_mut(name);
        found.ok_or_else(|| SqlError::new(NO_PORTAL, format!("there is no portal \"{name}\"")))
    }

    /// Removes a portal; returns false if there is none.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Removes all portals, also those that outlive transactions.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes the portals that end with a transaction.
    pub(crate) fn end_transaction(&mut self, is_well: bool) {
        self.0.retain(|_, portal| {
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
        "the rest of portal \"{name}\" was left: a session reads one statement at a time, and takes rows within 30 s"
    );
    SqlError::new(NO_PORTAL, message)
        .hint("read all rows before the next statement, or ask that over a second connection")
}
