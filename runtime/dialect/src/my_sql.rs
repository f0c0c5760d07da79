//! Quotes of MySQL and MariaDB, which databases that a model reads take its query in.

use crate::quoting::put_quoted;
use crate::{Quoting, backslashed};

/// MySQL's quotes.
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
