//! Analysis of SQL by means of the engine's parser.

mod analysis;
mod answer;
mod cache;
mod definitions;
mod digest;
mod files;
mod guard;
mod paths;
mod scan;
mod scope;
mod token;
mod walk;
mod within;
mod words;

pub use analysis::{Outcome, SqlAnalysis, TableUse};
pub use definitions::{Definition, Statements, names_in, statements_digest};
pub use guard::{Allowed, Listing, Refused, guard, listing};
pub use paths::{is_pattern, literal_path, with_literal_paths};
pub use scan::files_in;
pub use within::within;

pub(crate) use cache::{Cache, CacheKey};
pub(crate) use digest::digest;
pub(crate) use files::{STORES, is_local, store_of};
pub(crate) use scan::{expects_table, table_places, template as scan_template};
pub(crate) use token::{Token, TokenKind, Tokens, action_length, is_blank, tokens};

use serde_json::Value;

/// The engine's parser. It is implemented outside, so that this crate links no engine.
pub trait SqlParser {
    /// Returns the engine's name and version, which decide how statements are parsed and are part of every fingerprint.
    fn version(&self) -> &str;

    /// Parses statements without executing them; the results have the order and number of the statements.
    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>>;
}

/// The tree of one statement: the text of the engine's `json_serialize_sql` document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree(String);

impl Tree {
    /// Reads a document of `json_serialize_sql`, which also holds the engine's refusals.
    ///
    /// # Errors
    /// [`SqlError::Syntax`] when the document says that the statement can't be parsed, [`SqlError::NotSerialisable`]
    /// when it says that it can, but has no tree, and when the document itself can't be read.
    pub fn from_document(document: String) -> Result<Self, SqlError> {
        // The error flag comes first in every document: most need no second look.
        if document.starts_with(r#"{"error":false"#) {
            return Ok(Self(document));
        }
        let Ok(read) = serde_json::from_str::<Value>(&document) else {
            return Err(SqlError::NotSerialisable {
                message: "unreadable answer of the parser".into(),
            });
        };
        if read.get("error").and_then(Value::as_bool) != Some(true) {
            return Ok(Self(document));
        }
        let text = |key: &str| {
            read.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        if text("error_type") != "parser" {
            return Err(SqlError::NotSerialisable {
                message: text("error_message"),
            });
        }
        let place = match text("position").parse() {
            Ok(offset) => SqlPlace::Char(offset),
            Err(_) => SqlPlace::Unknown,
        };
        Err(SqlError::Syntax {
            message: text("error_message"),
            place,
        })
    }

    /// Returns the tree as a document of JSON, in the engine's format.
    pub fn document(&self) -> &str {
        &self.0
    }
}

/// The reason why a statement has no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The engine can't parse the statement.
    #[error("{message}")]
    Syntax {
        /// The engine's error message.
        message: String,
        /// The place of the error in the statement.
        place: SqlPlace,
    },
    /// The engine has no tree for the statement, though it may be valid: not a SELECT, or a PIVOT without IN.
    #[error("no parse tree: {message}")]
    NotSerialisable {
        /// The engine's error message.
        message: String,
    },
    /// The parser failed for a reason outside the statement. The tokens are used instead, and the parser is asked again
    /// next time.
    #[error("the parser failed: {message}")]
    Failed {
        /// The engine's description of the error.
        message: String,
    },
}

/// A place in a statement, in the form that the engine reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlPlace {
    /// An offset from the statement's start, in Unicode scalar values, as `json_serialize_sql` counts.
    Char(usize),
    /// A 1-based line and column, the column in Unicode scalar values.
    Line {
        /// The line, counted from 1.
        line: u32,
        /// The 1-based column, in Unicode scalar values.
        column: u32,
    },
    /// A place that the engine did not give.
    Unknown,
}
