//! Drafts: the declaration of a group of files, before the rest of the project is known.

pub(crate) mod block;
mod context;
pub(crate) mod habits;
mod place;
mod uses;

pub use context::is_driver;

pub(crate) use context::{Context, DRIVERS, Manifest};
pub(crate) use place::{TextPlace, source};
pub(crate) use uses::{Uses, reads};

use crate::{
    diagnostics::{At, Findings, Role},
    resource::{Kind, Requirement, Spec},
    template::Variant,
};

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
    /// Its SQL.
    pub(crate) blocks: Vec<SqlBlock>,
    pub(crate) body: Body,
    /// It came with another resource; an explicit one of its name wins, quietly.
    pub(crate) implicit: bool,
    /// The place where a model says its table.
    pub(crate) table_at: Option<At>,
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
            blocks: Vec::new(),
            body: Body::Unsupported,
            implicit: false,
            table_at: None,
        }
    }

    /// The place that decides which table a model writes.
    pub(crate) fn output_at(&self) -> At {
        let said = self.table_at.filter(|at| at.role != Role::Manifest);
        said.unwrap_or(self.name_at)
    }

    /// It can't be compiled: only who it is stays known.
    pub(crate) fn break_off(&mut self) {
        self.body = Body::Broken;
        self.blocks.clear();
        self.refs.clear();
        self.connectors.clear();
    }
}

/// The body of a draft.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// The spec without what depends on the rest of the project: meanings, a model's inputs.
    Spec(Box<Spec>),
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
    /// Its place; none for one that a default gives.
    pub(crate) at: Option<At>,
    /// It stands in the list `refs`: a bare name is that of a model, a job or a service.
    pub(crate) listed: bool,
    /// The condition that it says.
    pub(crate) required: Option<Requirement>,
}

/// A ref to a resource whose kind is known.
pub(crate) fn ref_to(kind: Kind, name: &str, at: Option<At>) -> RawRef {
    RawRef {
        kind: Some(kind),
        name: name.to_owned(),
        own_look: false,
        expected: true,
        at,
        listed: false,
        required: None,
    }
}

/// A ref that binds to a model, if there is one.
pub(crate) fn ref_to_table(name: &str, at: Option<At>) -> RawRef {
    RawRef {
        kind: None,
        name: name.to_owned(),
        own_look: false,
        expected: false,
        at,
        listed: false,
        required: None,
    }
}

/// SQL with its place.
#[derive(Debug, Clone)]
pub(crate) struct SqlText {
    pub(crate) text: String,
    pub(crate) place: TextPlace,
    pub(crate) templating: bool,
    /// Blanks stand before the text on its first line, so that nothing there begins the line.
    pub(crate) is_indented: bool,
}

/// The purpose of a piece of SQL.
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
    /// A check of its query, over rows that are given.
    UnitTest,
    /// Statements around a build.
    Around,
    /// A query of an API, an alert or a report.
    Query,
    /// A condition of a security rule.
    Condition,
}

/// A piece of SQL in a resource.
#[derive(Debug, Clone)]
pub(crate) struct SqlBlock {
    pub(crate) purpose: Purpose,
    pub(crate) text: String,
    pub(crate) place: TextPlace,
    /// The kind of resources that its tables are.
    pub(crate) tables: Kind,
    /// The text before it in its statements, so that the engine's parser can read them.
    pub(crate) prefix: &'static str,
    /// The statements to be parsed: the text or, for a template, its variants.
    pub(crate) statements: Vec<Statement>,
}

/// A text for the engine's parser.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) variant: Option<Variant>,
}

/// A compiled group of files.
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
