//! Drafts: resources declared by a group of files, before the rest of the project is known.

pub(crate) mod block;
mod context;
pub(crate) mod habits;
mod place;
mod uses;

pub use context::is_driver;

pub(crate) use context::{Context, DRIVERS, Manifest};
pub(crate) use place::{TextPlace, source};
pub(crate) use uses::{Uses, reads};

use watershed_proto::ModelSpec;

use crate::{
    diagnostics::{At, Findings, Role},
    resource::{Kind, Requirement, Spec},
    template::Variant,
};

/// A declared resource, not yet linked to the rest of the project.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) name_at: At,
    pub(crate) tags: Vec<String>,
    pub(crate) refs: Vec<RawRef>,
    /// Connectors that a resource other than a model uses; only declared ones become refs.
    pub(crate) connectors: Vec<String>,
    /// The resource's pieces of SQL.
    pub(crate) blocks: Vec<SqlBlock>,
    /// A model's `relationships` tests.
    pub(crate) relations: Vec<Relation>,
    pub(crate) body: Body,
    /// True if the resource is implied by another one; an explicit resource of the same name replaces it silently.
    pub(crate) implicit: bool,
    /// The place where a model names its output table, if it does.
    pub(crate) table_at: Option<At>,
}

impl Draft {
    /// Creates a draft without refs, SQL or a spec.
    pub(crate) fn new(kind: Kind, name: String, name_at: At) -> Self {
        Self {
            kind,
            name,
            name_at,
            tags: Vec::new(),
            refs: Vec::new(),
            connectors: Vec::new(),
            blocks: Vec::new(),
            relations: Vec::new(),
            body: Body::Unsupported,
            implicit: false,
            table_at: None,
        }
    }

    /// Returns the spec of a model; none for other kinds and broken drafts.
    pub(crate) fn model(&self) -> Option<&ModelSpec> {
        match &self.body {
            Body::Spec(spec) => match spec.as_ref() {
                Spec::Model(spec) => Some(spec),
                _ => None,
            },
            Body::Broken | Body::Unsupported => None,
        }
    }

    /// Returns the place that decides which table a model writes: its output setting, else its name.
    pub(crate) fn output_at(&self) -> At {
        let said = self.table_at.filter(|at| at.role != Role::Manifest);
        said.unwrap_or(self.name_at)
    }

    /// Marks the draft as broken and drops everything but its kind and name.
    pub(crate) fn break_off(&mut self) {
        self.body = Body::Broken;
        self.blocks.clear();
        self.relations.clear();
        self.refs.clear();
        self.connectors.clear();
    }
}

/// A `relationships` test of a model.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    /// The index among the tests of its spec.
    pub(crate) test: usize,
    /// The index among the blocks of its draft.
    pub(crate) block: usize,
    /// The name of the other model.
    pub(crate) to: String,
}

/// The content of a draft: its spec, or a mark that it is broken or unsupported.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// The spec, still without the parts that depend on the rest of the project, such as a model's inputs.
    Spec(Box<Spec>),
    Broken,
    Unsupported,
}

/// A ref as files write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawRef {
    /// The kind of the target; if none is given, the ref binds to a model of the name, if there is one.
    pub(crate) kind: Option<Kind>,
    pub(crate) name: String,
    /// True if the resource's own name here means a look at its last result, not a ref.
    pub(crate) own_look: bool,
    /// True if the text can only name a resource, so that a missing one is a mistake.
    pub(crate) expected: bool,
    /// The place of the ref; none if a default gives it.
    pub(crate) at: Option<At>,
    /// True if the ref stands in the list `refs`, where a bare name means a model, a job or a service.
    pub(crate) listed: bool,
    /// The requirement that the ref states, if any.
    pub(crate) required: Option<Requirement>,
}

/// Returns a ref to a resource whose kind is known.
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

/// Returns a ref that binds to a model of the name, if there is one.
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

/// A text of SQL with its place in a file.
#[derive(Debug, Clone)]
pub(crate) struct SqlText {
    pub(crate) text: String,
    pub(crate) place: TextPlace,
    pub(crate) templating: bool,
    /// True if blanks precede the text on its first line, so that nothing there begins the line.
    pub(crate) is_indented: bool,
}

/// The purpose of a piece of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The query for a model's rows.
    Main,
    /// The query for a model's partitions.
    Partitions,
    /// The query for the state that incremental runs see.
    State,
    /// A check of a model's rows.
    Test,
    /// A check of a model's query over given rows.
    UnitTest,
    /// Statements that run before or after a build.
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
    /// The kind of resources that table names in the SQL refer to.
    pub(crate) tables: Kind,
    /// The text put before the SQL to make it a statement that the engine's parser can read.
    pub(crate) prefix: &'static str,
    /// The statements to be parsed: the text or, for a template, its variants.
    pub(crate) statements: Vec<Statement>,
}

/// A statement for the engine's parser.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) variant: Option<Variant>,
}

/// The result of compiling a group of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compiled {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) findings: Findings,
    /// Variables that the group reads, by name in lower case.
    pub(crate) variables: std::collections::BTreeSet<String>,
    pub(crate) any_variable: bool,
    /// The name and driver of the connector that the group declares, if it does.
    pub(crate) connector: Option<(String, String)>,
}
