//! Everything that the server is handed: a project's files, the engine's parser, and what is known of its tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use watershed_compilers::{FileEvent, Options, Project, ResourceKey, SqlParser};

use crate::handle::Handle;

/// Opens the project that a file or folder belongs to; none if it belongs to none. The handle tells the server later that
/// files have changed.
pub type Opener = Box<dyn Fn(&Path, Handle) -> Option<Box<dyn Host>> + Send>;

/// Takes the values of secret variables out of a text.
pub type Redactor = Box<dyn Fn(&str) -> String>;

/// A project as its surroundings know it.
pub trait Host: Send {
    /// Returns the project's folder.
    fn root(&self) -> &Path;

    /// Returns what the compilation depends on beside the files.
    fn options(&self) -> Options;

    /// Looks at files: at these, or at all. Returns what happened to them since the last look.
    ///
    /// # Errors
    /// When the folder can't be listed, as a message for people. Then nothing is known anew.
    fn look(&mut self, paths: Option<&BTreeSet<String>>) -> Result<Vec<FileEvent>, String>;

    /// Returns what an earlier process learned from the engine's parser, if that was kept.
    fn learned(&self) -> Option<Vec<u8>>;

    /// Returns what takes the values of secret variables out of texts that the editor is told.
    fn redactor(&self, project: &Project) -> Redactor;

    /// Returns the engine's parser.
    fn parser(&self) -> &dyn SqlParser;

    /// Returns what is known of the project's outputs, as of a short while ago. Waits for nothing.
    fn facts(&self) -> Arc<Facts>;
}

/// The known facts about a project's outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The status of resources.
    pub statuses: BTreeMap<ResourceKey, ResourceStatus>,
    /// The columns of tables, by the table's name in lower case.
    pub columns: BTreeMap<String, Vec<Column>>,
}

/// The status of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// The word for it: `ok`, `failed`, `stale`.
    pub health: String,
    /// Its last run, with the time and the outcome, for people.
    pub last_run: Option<String>,
    /// Its error, if it has one.
    pub error: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, in the engine's words.
    pub data_type: String,
}
