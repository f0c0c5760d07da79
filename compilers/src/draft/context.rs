//! The context in which a group of files is compiled.

use std::collections::BTreeMap;

use watershed_proto::MapValue;

use crate::{
    diagnostics::{At, Findings},
    engine::{Engine, Need},
    resource::Kind,
    settings::{managers::ManagerSettings, trash::Trash, workloads::WorkloadSettings},
    yaml::Map,
};

/// The inputs for compiling a group, other than its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) environment: &'a str,
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// True if the set of variables is complete; without a readable manifest there may be others.
    pub(crate) are_variables_known: bool,
    /// The connector that models run on unless they name another.
    pub(crate) olap: &'a str,
    /// Drivers, by the name of the connector.
    pub(crate) drivers: &'a BTreeMap<String, String>,
    pub(crate) manifest: &'a Manifest,
    /// The engine that models are built in, if known.
    pub(crate) engine: Option<&'a Engine>,
}

/// Names of drivers; a connector of such a name needs no declaration.
pub(crate) const DRIVERS: [&str; 29] = [
    "athena",
    "azure",
    "bigquery",
    "claude",
    "clickhouse",
    "command",
    "druid",
    "duckdb",
    "ducklake",
    "file",
    "gcs",
    "gemini",
    "https",
    "local_file",
    "motherduck",
    "mysql",
    "openai",
    "pinot",
    "postgres",
    "redshift",
    "s3",
    "salesforce",
    "slack",
    "smtp",
    "snowflake",
    "sqlite",
    "starrocks",
    "supabase",
    "webhook",
];

/// Returns true if a connector of this name needs no declaration.
pub fn is_driver(name: &str) -> bool {
    DRIVERS.contains(&name)
}

impl Context<'_> {
    /// Returns the driver of a connector; none if there is no such connector.
    pub(crate) fn driver<'a>(&'a self, connector: &'a str) -> Option<&'a str> {
        let declared = self.drivers.get(connector).map(String::as_str);
        // What lies in the lake that models are built in is the engine's own.
        if declared == Some("ducklake") && connector == self.olap {
            return Some("duckdb");
        }
        declared.or_else(|| DRIVERS.contains(&connector).then_some(connector))
    }

    /// Reports a place that needs a part which the engine lacks.
    pub(crate) fn needs(&self, need: Need, at: At, findings: &mut Findings) {
        if let Some(engine) = self.engine {
            engine.refuse(need, at, findings);
        }
    }

    /// Returns true if a connector's SQL is in the dialect that the engine's parser reads.
    pub(crate) fn speaks_engine_sql(&self, connector: &str) -> bool {
        matches!(self.driver(connector), Some("duckdb" | "motherduck"))
    }
}

/// The settings of a project's manifest.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) display_name: String,
    pub(crate) olap_connector: Option<String>,
    /// The place of `olap_connector`, if it is set.
    pub(crate) olap_connector_at: Option<At>,
    pub(crate) trash_at: Option<At>,
    /// Drivers, by the name of the connector.
    pub(crate) connectors: BTreeMap<String, String>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Defaults for the settings of models.
    pub(crate) models: Map,
    pub(crate) sources: Map,
    /// Defaults for other kinds than models, by kind.
    pub(crate) declared: BTreeMap<Kind, Map>,
    /// The theme of dashboards that name none.
    pub(crate) theme: String,
    /// Folders and files to ignore, without a leading slash.
    pub(crate) ignore_paths: Vec<String>,
    /// Folders and files that are served to everybody, without a leading slash.
    pub(crate) public_paths: Vec<String>,
    pub(crate) trash: Trash,
    /// True if the engine must not install extensions.
    pub(crate) no_installs: bool,
    /// Mock users whose view of the data can be tried out, with their attributes.
    pub(crate) mock_users: Vec<MapValue>,
    pub(crate) workloads: WorkloadSettings,
    pub(crate) managers: ManagerSettings,
}

impl Manifest {
    /// Returns the defaults for a kind other than models.
    pub(crate) fn defaults_of(&self, kind: Kind) -> Map {
        self.declared.get(&kind).cloned().unwrap_or_default()
    }
}
