//! The interface to the server's surroundings: a project's files, the engine's parser and facts about its tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use async_lsp::lsp_types::Url;
use watershed_compilers::{FileEvent, Options, Project, ResourceKey, SqlParser};

use crate::handle::Handle;

/// The function that opens the project of a file or folder; returns none if there is no project. The handle tells the
/// server later that files have changed.
pub type Opener = Box<dyn Fn(&Path, Handle) -> Option<Box<dyn Host>> + Send>;

/// The function that removes the values of secret variables from a text.
pub type Redactor = Box<dyn Fn(&str) -> String>;

/// The server's access to a project and to the facts about it.
pub trait Host: Send {
    /// Returns the project's folder.
    fn root(&self) -> &Path;

    /// Returns the path within the project for an address; none if it lies outside the project.
    ///
    /// Where addresses are not those of files, no part of the path may be empty or lead up.
    fn path(&self, uri: &Url) -> Option<String> {
        let (file, root) = (uri.to_file_path().ok()?, self.root());
        let below = match file.strip_prefix(root) {
            Ok(below) => below.to_owned(),
            // The editor came through a link.
            Err(_) => {
                let folder = file.parent()?.canonicalize().ok()?;
                folder.join(file.file_name()?).strip_prefix(root).ok()?.to_owned()
            }
        };
        let parts = below.components().map(|part| part.as_os_str().to_string_lossy());
        Some(parts.collect::<Vec<_>>().join("/")).filter(|path| !path.is_empty())
    }

    /// Returns the address of a file; none if its path makes no address.
    fn uri(&self, path: &str) -> Option<Url> {
        Url::from_file_path(self.root().join(path)).ok()
    }

    /// Returns the bounds of what an editor may have open.
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }

    /// Returns the options with which the project is compiled.
    fn options(&self) -> Options;

    /// Looks at the files with these paths, or at all files without paths. Returns their changes since the last look.
    ///
    /// # Errors
    /// When the folder can't be listed, as a message for people. Then nothing is known anew.
    fn look(&mut self, paths: Option<&BTreeSet<String>>) -> Result<Vec<FileEvent>, String>;

    /// Returns the results of the engine's parser that an earlier process stored, if there are any.
    fn learned(&self) -> Option<Vec<u8>>;

    /// Returns the function that removes the values of the project's secret variables from texts for the editor.
    fn redactor(&self, project: &Project) -> Redactor;

    /// Returns the engine's parser of SQL.
    fn parser(&self) -> &dyn SqlParser;

    /// Returns the facts about the project's outputs, which may be slightly out of date. Does not block.
    fn facts(&self) -> Arc<Facts>;
}

/// The bounds of the open documents that replace their files. Documents beyond them are compiled as saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The largest number of documents.
    pub documents: usize,
    /// The largest number of bytes of all documents.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            documents: 2_000,
            bytes: 1 << 30,
        }
    }
}

/// The known facts about a project's outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The status of each resource, as the runtime last reported it.
    pub statuses: BTreeMap<ResourceKey, ResourceStatus>,
    /// The columns of tables, by the table's name in lower case.
    pub columns: BTreeMap<String, Vec<Column>>,
}

/// The status of a resource for hover texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceStatus {
    /// The word for the resource's condition, such as `ok`, `failed` or `stale`.
    pub health: String,
    /// The time and outcome of the last run, as a text for people; none before the first run.
    pub last_run: Option<String>,
    /// The error of the resource, if there is one.
    pub error: Option<String>,
}

/// A column of a table in the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name of the column, as the engine writes it.
    pub name: String,
    /// The type of the column, as the engine writes it.
    pub data_type: String,
}
