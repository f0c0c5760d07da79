//! The process that owns a project's state folder.

use serde::{Deserialize, Serialize};

use crate::documents::Command;

/// The process that owns a project's state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Command that the process runs.
    pub command: Command,
    /// Process id of the owner.
    pub process: u32,
    /// True if the project may access only its own folder and its state.
    #[serde(default)]
    pub sandbox: bool,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`watershed {}` (process {})",
            self.command.as_str(),
            self.process
        )
    }
}
