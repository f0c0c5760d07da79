//! Templates in SQL and in the values of YAML: Go's syntax, with the project's functions.
//!
//! A template is read once ([`Template`]). What it refers to is found by walking it ([`Facts`]), every branch
//! included. To find the tables in the SQL around its actions it is rendered with neutral values, in as many
//! [`Variant`]s as it takes to see every branch. For a run it is executed with real ones ([`execute`]).

mod arguments;
mod execute;
mod facts;
mod functions;
mod given;
mod literal;
pub mod render;
mod scope;
mod sprig;
mod values;
mod variants;

use std::collections::BTreeMap;

use gotmpl::{
    TemplateError,
    parse::{DefineNode, ListNode, Parser},
};

pub use arguments::Arguments;
pub use literal::{Dialect, render_rule, render_sql};
pub(crate) use render::render_text;
pub use scope::{RenderError, Scope};

pub(crate) use facts::{Config, Facts};
pub(crate) use variants::{NEUTRAL, Variant, variants};

/// A parsed template: its own nodes, and those of its named templates.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) body: ListNode,
    pub(crate) defines: BTreeMap<String, ListNode>,
}

/// The reason why a text does not parse as a template. Line and column are 1-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) message: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Returns true if a text contains template actions.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

impl Template {
    /// Parses a text as a template.
    ///
    /// # Errors
    /// Where it is no template.
    pub(crate) fn read(text: &str) -> Result<Self, SyntaxError> {
        let (body, defines) = Parser::new(text, "{{", "}}")
            .and_then(Parser::parse)
            .map_err(|error| syntax_error(&error))?;
        let template = Self {
            body,
            defines: defines
                .into_iter()
                .map(|DefineNode { name, body, .. }| (name.to_string(), body))
                .collect(),
        };
        facts::check(&template, text)?;
        Ok(template)
    }
}

fn syntax_error(error: &TemplateError) -> SyntaxError {
    let (message, line, column) = match error {
        TemplateError::Parse {
            message, line, col, ..
        }
        | TemplateError::Lex {
            message, line, col, ..
        } => (message.clone(), *line, *col),
        other => (other.to_string(), 1, 1),
    };
    SyntaxError {
        message,
        line: crate::text::narrow(line.max(1)),
        column: crate::text::narrow(column.max(1)),
    }
}
