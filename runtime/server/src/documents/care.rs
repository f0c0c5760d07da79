//! The documents of `doctor` and `gc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong with what a project keeps, and what was done about it.
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
    /// Whether a process runs the project and looked itself.
    pub live: bool,
    /// What was looked at.
    pub checks: Vec<DoctorCheck>,
    /// What was set aside (`--repair`).
    pub repaired: Vec<SetAside>,
    /// Things that were put right where they stand (`--repair`).
    #[serde(default)]
    pub mended: Vec<String>,
    /// What the program ends with.
    pub exit_code: u8,
}

impl DoctorDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.doctor/1";
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCheck {
    /// What it is.
    pub what: Checked,
    /// What is wrong with it.
    pub findings: Vec<String>,
}

/// What `doctor` looks at.
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
}

impl Checked {
    /// As people read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Folder => "state folder",
            Self::Catalog => "catalog",
            Self::Engine => "engine's file",
            Self::Trash => "trash",
        }
    }
}

/// A file that was given another name, so that it is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// What it is.
    pub what: Checked,
    /// Where it was.
    pub from: String,
    /// Where it is now.
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
    /// What the program ends with.
    pub exit_code: u8,
}

impl GcDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.gc/1";
}
