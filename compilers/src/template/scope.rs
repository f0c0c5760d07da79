//! The scope of a template in a run, and its errors there.

use std::collections::BTreeMap;

use watershed_proto::Value;

/// The values that a template sees when it is rendered for a run.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The environment's name.
    pub environment: String,
    /// All variables, as [`Project::variables`](crate::Project::variables) has them.
    pub variables: BTreeMap<String, String>,
    /// The model's own name.
    pub name: String,
    /// The run adds to what is there.
    pub incremental: bool,
    /// The result of the last run's state resolver.
    pub state: BTreeMap<String, Value>,
    /// The partition that the run is for.
    pub partition: BTreeMap<String, Value>,
    /// The query that stands for a list of files, to be read from.
    pub table: String,
    /// The user in whose name rows are read.
    pub user: BTreeMap<String, Value>,
    /// The arguments of a call.
    pub args: BTreeMap<String, Value>,
    /// The rows go into a file.
    pub export: bool,
    /// The data that are known of a managed resource.
    pub data: BTreeMap<String, Value>,
    /// The version that a migration is run for.
    pub version: Option<u32>,
}

impl Scope {
    /// Returns the attributes of a user that nobody is: what conditions are tried with.
    pub(crate) fn made_up_user() -> BTreeMap<String, Value> {
        let text = |key: &str, value: &str| (key.to_owned(), Value::from(value));
        BTreeMap::from([
            text("name", "dummy"),
            text("email", "mock@example.org"),
            text("domain", "example.org"),
            ("groups".to_owned(), Value::from(vec![Value::from("all")])),
            ("admin".to_owned(), Value::from(false)),
        ])
    }
}

/// The reason why a template can't be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    /// A description.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
    /// 1-based line of the text.
    pub line: u32,
}
