//! Quoting of MySQL and MariaDB, for queries that a model sends to such databases.

use crate::quoting::put_quoted;
use crate::{Quoting, backslashed};

/// The quoting of MySQL and MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MySql;

impl Quoting for MySql {
    fn put_name(&self, name: &str, out: &mut String) {
        put_quoted(name, '`', out);
    }

    fn put_text(&self, text: &str, out: &mut String) {
        put_quoted(&backslashed(text), '\'', out);
    }
}
