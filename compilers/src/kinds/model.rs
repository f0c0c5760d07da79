//! Models and sources, read from settings and SQL.

mod data_tests;
mod files;
mod hooks;
mod incremental;
mod inputs;
pub(crate) mod keys;
mod queries;
mod unit_tests;
mod unknown;
mod unused;

pub use files::{refused as refused_output, refused_object};
pub(crate) use inputs::is_known;
pub use inputs::{READER_OPTIONS, lakehouse_log};
pub(crate) use unit_tests::no_rows_of;
pub use unit_tests::with_all_columns;

use std::collections::BTreeMap;

use watershed_proto::{Freshness, MapValue, ModelChangeMode, ModelSpec, Retry, Value};

pub(crate) use keys::{FRESHNESS, MODEL, RETRY, TEST};

use super::reader::{Declared, Reader};
use crate::{
    blocks::{connector, schedule},
    diagnostics::{At, Code, spot},
    engine::Need,
    resource::Spec,
    yaml::{Data, Fields, Map, Node},
};

/// Reads a model or source from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&MODEL);
    let mut declared = Declared::new(Spec::None);
    let spec = reader.model(&mut declared);
    declared.spec = Spec::Model(Box::new(spec));
    declared
}

/// Drivers of databases that the engine attaches to read from them.
const ATTACHED: [&str; 4] = ["postgres", "mysql", "sqlite", "ducklake"];

/// The places of settings of an output, for findings.
struct OutputPlaces {
    table: Option<At>,
    order_by: Option<At>,
    materialize: Option<At>,
}

impl Reader<'_, '_> {
    fn model(&mut self, declared: &mut Declared) -> ModelSpec {
        let is_source = self.about.is_source;
        let input_connector = self.input_connector(is_source);
        let change_mode_at = self.fields.value_at("change_mode");
        let mut spec = ModelSpec {
            refresh_schedule: Some(self.refresh()),
            timeout_seconds: self.fields.seconds("timeout").unwrap_or_default(),
            incremental: self.fields.bool("incremental").unwrap_or_default(),
            change_mode: self.change_mode().into(),
            protect: self.fields.bool("protect"),
            freshness: self.freshness(),
            partitions_concurrency_limit: self.fields.count("partitions_concurrency").unwrap_or_default(),
            retry: self.retry(),
            defined_as_source: is_source | self.fields.bool("defined_as_source").unwrap_or_default(),
            input_connector,
            ..ModelSpec::default()
        };
        let driver = self.context.driver(&spec.input_connector).unwrap_or_default();
        if driver != "duckdb" && driver != spec.input_connector {
            spec.input_driver = driver.to_owned();
        }
        let places = self.output(&mut spec, is_source);
        declared.table_at = places.table;
        self.stage(&mut spec);
        self.main_sql(&mut spec);
        self.state(&mut spec, declared);
        self.partitions(&mut spec, declared);
        self.check_change_mode(&spec, change_mode_at);
        self.tests(&mut spec, declared);
        self.unit_tests(&mut spec, declared);
        self.input_properties(&mut spec);
        self.partition_files(&mut spec);
        self.output_kind(&mut spec, places.materialize);
        self.order_by(&mut spec, places.order_by);
        spec
    }

    fn refresh(&mut self) -> watershed_proto::Schedule {
        let block = self.fields.map("refresh");
        let at = block.as_ref().map(|(_, at)| *at);
        let schedule = schedule::read(block, self.context.environment, true, self.fields.findings());
        if let (true, Some(at)) = (schedule.has_times_elsewhere, at) {
            let environment = self.context.environment;
            let message = format!("the schedule does not count in the environment `{environment}`");
            let hint =
                "add `run_in_dev: true` under `refresh:` to have it count, or `watershed refresh NAME` once";
            self.fields
                .findings()
                .add_with_hint(at, Code::ScheduleNotInDev, message, hint);
        }
        schedule
    }

    fn change_mode(&mut self) -> ModelChangeMode {
        let Some(node) = self.fields.text_node("change_mode") else {
            return ModelChangeMode::Reset;
        };
        match node
            .scalar_text()
            .unwrap_or_default()
            .to_ascii_lowercase()
            .as_str()
        {
            "" | "reset" => ModelChangeMode::Reset,
            "manual" => ModelChangeMode::Manual,
            "patch" => ModelChangeMode::Patch,
            other => {
                let message = format!("unsupported change mode \"{other}\"");
                let hint = "one of `reset`, `manual`, `patch`";
                self.fields
                    .findings()
                    .add_with_hint(node.at, Code::InvalidValue, message, hint);
                ModelChangeMode::Reset
            }
        }
    }

    fn freshness(&mut self) -> Option<Freshness> {
        let at = self.fields.key_at("freshness")?;
        let (map, _) = self.fields.map("freshness")?;
        let mut fields = Fields::new(map, at, self.fields.findings());
        let is_said = fields.has("warn") || fields.has("error");
        let (warn, error) = (fields.seconds("warn"), fields.seconds("error"));
        fields.finish(&FRESHNESS);
        match (warn, error) {
            (None, None) if !is_said => {
                let message = "\"freshness\" needs `warn` or `error`, an age such as `12h`";
                self.fields.findings().add(at, Code::MissingKey, message);
            }
            (Some(warn), Some(error)) if warn > error => {
                let message = "the age to warn from is above that of the error";
                self.fields.findings().add(at, Code::InvalidValue, message);
            }
            _ => {}
        }
        Some(Freshness {
            warn_seconds: warn,
            error_seconds: error,
            at: spot(at),
        })
    }

    fn retry(&mut self) -> Option<Retry> {
        let (map, at) = self.fields.map("retry")?;
        let mut fields = Fields::new(map, at, self.fields.findings());
        let retry = Retry {
            attempts: fields.count("attempts"),
            delay_seconds: fields.seconds("delay"),
            exponential_backoff: fields.bool("exponential_backoff"),
            if_error_matches: fields.patterns("if_error_matches"),
        };
        fields.finish(&RETRY);
        Some(retry)
    }

    /// Takes a connector by name, or a mapping of `connector` and settings.
    fn connector_and_settings(&mut self, key: &str) -> Option<(Option<Node>, Map)> {
        let node = self.fields.take(key)?.value;
        match node.data {
            Data::Map(mut map) => {
                let connector = map
                    .remove("connector")
                    .map(|entry| entry.value)
                    .filter(|node| !node.is_null());
                Some((connector, map))
            }
            _ if node.scalar_text().is_some() => Some((Some(node), Map::new())),
            other => {
                let message = format!(
                    "\"{key}\" takes a connector's name or a mapping, not {}",
                    other.type_name()
                );
                self.fields.findings().add(node.at, Code::WrongType, message);
                None
            }
        }
    }

    fn connector_name(&mut self, node: &Node) -> String {
        connector::name(node, self.context, self.fields.findings())
    }

    fn input_connector(&mut self, is_source: bool) -> String {
        match self.fields.text_node("connector") {
            Some(node) => {
                let name = self.connector_name(&node);
                let driver = self.context.driver(&name).unwrap_or_default();
                if ATTACHED.contains(&driver)
                    || driver == "duckdb" && name != driver && name != self.context.olap
                {
                    self.context
                        .needs(Need::Databases, node.at, self.fields.findings());
                }
                name
            }
            None if is_source => {
                let at = self.fields.at();
                let message = "a source must say its connector";
                self.fields.findings().add_with_hint(
                    at,
                    Code::MissingKey,
                    message,
                    "for example, add `connector: local_file`",
                );
                String::new()
            }
            None => self.context.olap.to_owned(),
        }
    }

    /// Reads the `output` block of a model into its spec.
    fn output(&mut self, spec: &mut ModelSpec, is_source: bool) -> OutputPlaces {
        let output_at = self.fields.key_at("output").unwrap_or(self.fields.at());
        let (connector, settings) = self.connector_and_settings("output").unwrap_or_default();
        spec.output_connector = match connector {
            Some(node) => self.connector_name(&node),
            None => self.context.olap.to_owned(),
        };
        let settings = self.output_files(spec, settings, output_at);
        self.incremental_output(spec, &settings);
        let at = |key: &str| {
            let said = settings.get(key).filter(|entry| !entry.value.is_null());
            said.map(|entry| entry.value.at)
        };
        let places = OutputPlaces {
            table: at("table"),
            order_by: at("order_by"),
            materialize: self.fields.key_at("materialize"),
        };
        let mut properties = self.properties(settings);
        if let Some(materialize) = self.fields.bool("materialize") {
            properties.insert("materialize".to_owned(), Value::from(materialize));
        } else if is_source {
            properties
                .entry("materialize".to_owned())
                .or_insert_with(|| Value::from(true));
        }
        spec.output_properties = Some(MapValue { fields: properties });
        places
    }

    fn stage(&mut self, spec: &mut ModelSpec) {
        let Some((connector, settings)) = self.connector_and_settings("stage") else {
            return;
        };
        match connector {
            Some(node) => spec.stage_connector = self.connector_name(&node),
            None => {
                let at = self.fields.at();
                self.fields
                    .findings()
                    .add(at, Code::MissingKey, "\"stage\" needs a `connector`");
            }
        }
        spec.stage_properties = Some(MapValue {
            fields: self.properties(settings),
        });
    }

    /// Returns settings as plain values, and records what their templates use.
    fn properties(&mut self, map: Map) -> BTreeMap<String, Value> {
        for entry in map.values() {
            self.templates_in(&entry.value);
        }
        map.into_iter()
            .map(|(key, entry)| (key, entry.value.to_value()))
            .collect()
    }
}
