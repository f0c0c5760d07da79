//! The values that a template sees in a run, and its errors there.

use std::collections::BTreeMap;

use watershed_proto::Value;

/// The values that a template sees when rendered for a run.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The environment that the project runs in, such as `dev` or `prod`.
    pub environment: String,
    /// All variables by name, as [`Project::variables`](crate::Project::variables) returns them.
    pub variables: BTreeMap<String, String>,
    /// The name of the model itself.
    pub name: String,
    /// True if the run adds rows to existing ones.
    pub incremental: bool,
    /// The result of the last run's state query.
    pub state: BTreeMap<String, Value>,
    /// The partition that the run builds; empty for none.
    pub partition: BTreeMap<String, Value>,
    /// The query that reads the current list of files.
    pub table: String,
    /// The attributes of the user on whose behalf rows are read.
    pub user: BTreeMap<String, Value>,
    /// The arguments of an API's call.
    pub args: BTreeMap<String, Value>,
    /// True if the rows are exported to a file.
    pub export: bool,
    /// Known data of a managed resource.
    pub data: BTreeMap<String, Value>,
    /// The version to which a migration is run, if any.
    pub version: Option<u32>,
}

impl Scope {
    /// Returns the attributes of a fictitious user, with which conditions are checked.
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
    /// The description of the error.
    pub message: String,
    /// Advice on how to fix the error, if there is any.
    pub hint: Option<String>,
    /// The 1-based line of the error in the text.
    pub line: u32,
}
