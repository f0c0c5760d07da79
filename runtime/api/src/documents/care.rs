//! The documents of `doctor` and `gc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The faults of a project's stored data, and their repairs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorDocument {
    /// Name and version of this form: `watershed.doctor/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// True if the process that runs the project did the checks.
    pub live: bool,
    /// Checks of the stored data, each with its findings.
    pub checks: Vec<DoctorCheck>,
    /// Damaged files that were renamed, to be created anew; empty without `--repair`.
    pub repaired: Vec<SetAside>,
    /// Descriptions of faults that were repaired in place; empty without `--repair`.
    #[serde(default)]
    pub mended: Vec<String>,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl DoctorDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.doctor/1";
}

/// A check of one part of the stored data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorCheck {
    /// Part of the stored data that was checked.
    pub what: Checked,
    /// Descriptions of the faults that were found; empty if there are none.
    pub findings: Vec<String>,
}

/// A part of the stored data that `doctor` checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Checked {
    /// The state folder: its owner, and the free space on its disk.
    Folder,
    /// The catalog, checked as by `debug check`.
    Catalog,
    /// The engine's file, of which every value of every table is read.
    Engine,
    /// The trash: the consistency of its tables and their records.
    Trash,
    /// The files that models wrote, compared with what was written.
    Files,
}

impl Checked {
    /// Returns the name for people, such as `state folder`.
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

/// A damaged file that was renamed, so that it is created anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetAside {
    /// Part of the stored data that the file belongs to.
    pub what: Checked,
    /// Former path of the file.
    pub from: String,
    /// New path of the file.
    pub to: String,
}

/// The space that `gc` freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GcDocument {
    /// Name and version of this form: `watershed.gc/1`.
    pub schema: String,
    /// Version of the program that wrote the document.
    pub version: String,
    /// Name of the project.
    pub project: String,
    /// Path of the project's folder.
    pub root: String,
    /// Name of the project's environment.
    pub environment: String,
    /// Size of the engine's file before the command, in bytes.
    pub engine_bytes_before: u64,
    /// Size of the engine's file after the command, in bytes.
    pub engine_bytes_after: u64,
    /// Exit code of the command.
    pub exit_code: u8,
}

impl GcDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.gc/1";
}
