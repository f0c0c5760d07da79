//! The documents of `doctor` and `gc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Faults of a project's stored data, and their repairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorDocument {
    /// Name and version of this form: `watershed.doctor/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// True if a process runs the project and looked itself.
    pub live: bool,
    /// The checks.
    pub checks: Vec<DoctorCheck>,
    /// Files that were set aside (`--repair`).
    pub repaired: Vec<SetAside>,
    /// Things that were put right where they stand (`--repair`).
    #[serde(default)]
    pub mended: Vec<String>,
    /// The exit code of the program.
    pub exit_code: u8,
}

impl DoctorDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.doctor/1";
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCheck {
    /// The checked thing.
    pub what: Checked,
    /// Its faults.
    pub findings: Vec<String>,
}

/// A subject of `doctor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Checked {
    /// The state folder: whose it is, and the room on its disk.
    Folder,
    /// The catalog, as `debug check` does.
    Catalog,
    /// The engine's file: every value of every table is read.
    Engine,
    /// The trash: whether its tables and what is known of them agree.
    Trash,
    /// The files that models' rows were written to: whether they stand there as they were written.
    Files,
}

impl Checked {
    /// As people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "state folder",
            Self::Catalog => "catalog",
            Self::Engine => "engine's file",
            Self::Trash => "trash",
            Self::Files => "files of models",
        }
    }
}

/// A file that was given another name, so that it is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// The sort of thing that it is.
    pub what: Checked,
    /// Its former path.
    pub from: String,
    /// Its present path.
    pub to: String,
}

/// Room that was given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcDocument {
    /// Name and version of this form: `watershed.gc/1`.
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Folder of the project.
    pub root: String,
    /// The environment.
    pub environment: String,
    /// Bytes of the engine's file before.
    pub engine_bytes_before: u64,
    /// Bytes of the engine's file after.
    pub engine_bytes_after: u64,
    /// The exit code of the program.
    pub exit_code: u8,
}

impl GcDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.gc/1";
}
