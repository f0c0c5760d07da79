//! Options of the compiler.

use std::collections::BTreeMap;

use crate::engine::Engine;

/// The inputs of a compilation other than files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The name of the environment, which selects overrides and `.NAME.env` files; empty for none.
    pub environment: String,
    /// Variables given from outside; they override those of the manifest and of `.env` files.
    pub variables: BTreeMap<String, String>,
    /// The connector that models run on unless they or the manifest name another.
    pub olap_connector: String,
    /// The known engines, by driver. Nothing is reported about others.
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
