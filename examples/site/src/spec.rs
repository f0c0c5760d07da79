//! The spec of a site, as people write it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use serde::{Deserialize, Serialize};
use watershed_controller::json_message;

/// All sites, by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    #[serde(default)]
    pub(crate) sites: BTreeMap<String, Site>,
}

impl Project {
    pub(crate) fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("can't read \"{}\": {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("\"{}\": {error}", path.display()))?)
    }
}

/// One site. Paths are relative to its root, which is made and removed with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Site {
    /// An absolute path; the folder around it must exist.
    pub(crate) root: String,
    #[serde(default)]
    pub(crate) folders: Vec<String>,
    /// The text of each file.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// The target of each symbolic link, relative to the link.
    #[serde(default)]
    pub(crate) links: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) server: Option<Server>,
}

/// A process that serves a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// The folder.
    pub(crate) serves: String,
    /// A file of the site whose first line is the title that is sent with each answer. The server reads it when
    /// it starts, and starts anew when it changes.
    pub(crate) settings: String,
}

json_message!(Site, format = 1);
