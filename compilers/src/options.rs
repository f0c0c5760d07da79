//! Options of a parse.

use std::collections::BTreeMap;

use crate::engine::Engine;

/// The inputs of a parse beside the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The environment's name; decides which overrides and which `.NAME.env` files apply. Empty for none.
    pub environment: String,
    /// Variables given from outside; they win over the manifest's and those of `.env` files.
    pub variables: BTreeMap<String, String>,
    /// The connector that models run on when neither they nor the manifest say one.
    pub olap_connector: String,
    /// The engines that are known, by driver. Of others nothing is said.
    pub engines: Vec<Engine>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: "dev".into(),
            variables: BTreeMap::new(),
            olap_connector: "duckdb".into(),
            engines: Vec::new(),
        }
    }
}
