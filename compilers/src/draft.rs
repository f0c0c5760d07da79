//! What a group of files declares, before it is known what else the project holds.

use std::{collections::BTreeMap, ops::Range};

use watershed_proto::{ModelSpec, SqlSource};

use crate::{
    diagnostics::Span,
    finding::{At, Findings, Role},
    resource::{Kind, Spec},
    sql::tokens,
    template::Variant,
    text::{Text, narrow},
    yaml::{Node, Style},
};

/// What a group's compilation depends on beside its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) environment: &'a str,
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// The connector that models run on when they say none.
    pub(crate) olap: &'a str,
    /// Drivers by connector name.
    pub(crate) drivers: &'a BTreeMap<String, String>,
    pub(crate) manifest: &'a crate::manifest::Manifest,
}

/// Names of drivers: connectors of these names need no declaration.
pub(crate) const DRIVERS: [&str; 22] = [
    "athena",
    "azure",
    "bigquery",
    "clickhouse",
    "druid",
    "duckdb",
    "ducklake",
    "file",
    "gcs",
    "https",
    "local_file",
    "motherduck",
    "mysql",
    "pinot",
    "postgres",
    "redshift",
    "s3",
    "salesforce",
    "snowflake",
    "sqlite",
    "starrocks",
    "supabase",
];

/// Whether a connector of this name needs no declaration.
pub fn is_driver(name: &str) -> bool {
    DRIVERS.contains(&name)
}

impl Context<'_> {
    /// The driver of a connector, if there is such a connector.
    pub(crate) fn driver<'a>(&'a self, connector: &'a str) -> Option<&'a str> {
        self.drivers
            .get(connector)
            .map(String::as_str)
            .or_else(|| DRIVERS.contains(&connector).then_some(connector))
    }

    /// Whether a connector's SQL is in the dialect that the engine's parser reads.
    pub(crate) fn speaks_engine_sql(&self, connector: &str) -> bool {
        matches!(self.driver(connector), Some("duckdb" | "motherduck" | "ducklake"))
    }
}

/// A declared resource.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) name_at: At,
    pub(crate) tags: Vec<String>,
    pub(crate) refs: Vec<RawRef>,
    /// Connectors that it uses, if it is no model; they count where they are declared.
    pub(crate) connectors: Vec<String>,
    pub(crate) body: Body,
    /// It came with another resource; an explicit one of its name wins, quietly.
    pub(crate) implicit: bool,
}

impl Draft {
    /// One that says nothing yet.
    pub(crate) fn new(kind: Kind, name: String, name_at: At) -> Self {
        Self {
            kind,
            name,
            name_at,
            tags: Vec::new(),
            refs: Vec::new(),
            connectors: Vec::new(),
            body: Body::Unsupported,
            implicit: false,
        }
    }

    /// It can't be compiled: only who it is stays known.
    pub(crate) fn break_off(&mut self) {
        self.body = Body::Broken;
        self.refs.clear();
        self.connectors.clear();
    }
}

/// What a draft says.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Model(Box<ModelDraft>),
    /// Any other kind that is supported; the spec without its meaning.
    Declared(Box<Spec>),
    Broken,
    Unsupported,
}

/// A ref as files write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawRef {
    /// Not said: binds to a model of the name, if there is one.
    pub(crate) kind: Option<Kind>,
    pub(crate) name: String,
    /// Its own name here is a look at its own last result, and no ref.
    pub(crate) own_look: bool,
    /// It names a resource and nothing else: where there is none, that is a mistake.
    pub(crate) expected: bool,
    /// Where it stands; none for one that a default gives.
    pub(crate) at: Option<At>,
}

/// A model or source.
#[derive(Debug, Clone)]
pub(crate) struct ModelDraft {
    /// The spec without what depends on the rest of the project: meanings, inputs.
    pub(crate) spec: ModelSpec,
    pub(crate) blocks: Vec<SqlBlock>,
}

/// What a piece of SQL is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The model's rows.
    Main,
    /// Its partitions.
    Partitions,
    /// The state that incremental runs see.
    State,
    /// A check of its rows.
    Test,
    /// Statements around a build.
    Around,
}

/// A piece of SQL in a resource.
#[derive(Debug, Clone)]
pub(crate) struct SqlBlock {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
    pub(crate) place: TextPlace,
    /// What is to be parsed: the text or, for a template, its variants.
    pub(crate) statements: Vec<Statement>,
}

/// A text for the engine's parser.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) variant: Option<Variant>,
}

/// Where a text stands in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextPlace {
    role: Role,
    /// Of the first character.
    line: u32,
    column: u32,
    /// Columns before the text's own on each further line.
    indent: u32,
    /// Places inside are not known: all are this.
    whole: Option<Span>,
}

impl TextPlace {
    /// The text of a SQL file, which begins at a byte.
    pub(crate) fn of_file(file: &Text<'_>, start: usize) -> Self {
        let (line, column) = file.position(start);
        Self {
            role: Role::Sql,
            line,
            column,
            indent: 0,
            whole: None,
        }
    }

    /// The text of a YAML scalar, blank space before it trimmed.
    pub(crate) fn of_node(node: &Node) -> Self {
        let value = node.as_str().unwrap_or_default();
        let blank = value
            .get(..value.len() - value.trim_start().len())
            .unwrap_or_default();
        let lines = narrow(blank.matches('\n').count());
        let last = narrow(blank.rsplit('\n').next().unwrap_or_default().chars().count());
        let span = node.at.span;
        let several = value.trim().contains('\n');
        let plain = |column| Self {
            role: node.at.role,
            line: span.line,
            column,
            indent: 0,
            whole: None,
        };
        match node.style {
            Style::Literal => Self {
                role: node.at.role,
                line: span.line + lines,
                column: span.column + last,
                indent: span.column - 1,
                whole: None,
            },
            Style::Plain if !several => plain(span.column),
            Style::Quoted if !several && is_verbatim(value, span) => plain(span.column + 1 + last),
            _ => Self {
                whole: Some(span),
                ..plain(span.column)
            },
        }
    }

    /// A span of the text as a place in the file.
    pub(crate) fn at(&self, span: Span) -> At {
        if let Some(span) = self.whole {
            return At {
                role: self.role,
                span,
            };
        }
        let column = |line, column| {
            if line == 1 {
                self.column + column - 1
            } else {
                self.indent + column
            }
        };
        let span = Span {
            line: self.line + span.line - 1,
            column: column(span.line, span.column),
            end_line: self.line + span.end_line - 1,
            end_column: column(span.end_line, span.end_column),
        };
        At {
            role: self.role,
            span,
        }
    }

    /// A range of the text's bytes as a place in the file.
    pub(crate) fn range(&self, text: &str, range: Range<usize>) -> At {
        self.at(Text::new(text).span(range))
    }

    /// The token at a byte of the text as a place in the file; one column where there is none.
    pub(crate) fn token(&self, text: &str, byte: usize) -> At {
        let token = tokens(text).into_iter().find(|token| token.range.contains(&byte));
        let mut at = self.range(text, token.map_or(byte..byte, |token| byte..token.range.end));
        if (at.span.line, at.span.column) == (at.span.end_line, at.span.end_column) {
            at.span.end_column += 1;
        }
        at
    }

    /// What a spec holds of it; the path is filled in by who knows it.
    pub(crate) fn source(&self, text: &str, templated: bool, engine: bool) -> SqlSource {
        SqlSource {
            path: String::new(),
            text: text.to_owned(),
            line: self.line,
            column: self.column,
            indent: self.indent,
            templated,
            engine,
        }
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }
}

/// Whether a quoted text stands in its file as it is: one line, nothing escaped.
fn is_verbatim(value: &str, span: Span) -> bool {
    span.line == span.end_line && (span.end_column - span.column) as usize == value.chars().count() + 2
}

/// What a group of files came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compiled {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) findings: Findings,
    /// Variables that it read, by name in lower case.
    pub(crate) variables: std::collections::BTreeSet<String>,
    pub(crate) any_variable: bool,
    /// Of a connector: its name and driver.
    pub(crate) connector: Option<(String, String)>,
}
