//! Models and sources: from settings and SQL to a spec.

mod inputs;
mod queries;

use std::collections::BTreeMap;

use watershed_proto::{MapValue, ModelChangeMode, ModelSpec, Retry, Value};

use crate::{
    blocks::{connector, schedule},
    diagnostics::{At, Code, Findings},
    draft::{Context, ModelDraft, SqlBlock, SqlText, TextPlace, Uses, block::read_template},
    resource::FileKind,
    template::{Facts, is_template},
    yaml::{Data, Fields, Map, Node},
};

/// Keys that models and sources take beside those that all resources take.
const KEYS: [&str; 17] = [
    "refresh",
    "timeout",
    "incremental",
    "change_mode",
    "state",
    "partitions",
    "splits",
    "partitions_watermark",
    "partitions_concurrency",
    "stage",
    "retry",
    "output",
    "tests",
    "materialize",
    "defined_as_source",
    "sql",
    "connector",
];

/// Keys that all resources take; they are taken before a model is read.
pub(crate) const COMMON_KEYS: [&str; 15] = [
    "version",
    "type",
    "kind",
    "name",
    "namespace",
    "refs",
    "parser",
    "connector",
    "sql",
    "environment_overrides",
    "env",
    "dev",
    "prod",
    "tags",
    "display_name",
];

/// Keys that inputs are known to take: others are passed on all the same.
const INPUT_KEYS: [&str; 21] = [
    "path",
    "uri",
    "format",
    "args",
    "pre_exec",
    "post_exec",
    "init_queries",
    "create_secrets_from_connectors",
    "db",
    "dsn",
    "duckdb",
    "description",
    "invalidate_on_change",
    "database_url",
    "glob",
    "extract",
    "batch_size",
    "region",
    "endpoint",
    "project_id",
    "table",
];

/// Keys of inputs whose values are SQL.
const SQL_KEYS: [&str; 3] = ["pre_exec", "post_exec", "init_queries"];

/// A model while it is read.
pub(crate) struct Reader<'a, 'f> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) fields: Fields<'f>,
    pub(crate) uses: Uses,
    pub(crate) blocks: Vec<SqlBlock>,
    pub(crate) templating: bool,
    /// Where it says whether it is a table.
    pub(crate) materialize_at: Option<At>,
}

/// How a model is declared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    /// As a model or as a source.
    pub(crate) kind: FileKind,
    /// Templates and annotations are read.
    pub(crate) templating: bool,
    pub(crate) name: &'a str,
}

/// Reads settings of a kind on their own, for their findings.
pub(crate) fn try_defaults(map: Map, at: At, kind: FileKind, findings: &mut Findings) {
    let context = Context {
        environment: "",
        variables: &BTreeMap::new(),
        olap: "duckdb",
        drivers: &BTreeMap::new(),
        manifest: &crate::draft::Manifest::default(),
    };
    read(
        Fields::new(map, at, findings),
        &How {
            kind,
            templating: true,
            name: "",
        },
        None,
        &context,
    );
}

/// Reads a model or source from its settings, all layers merged.
pub(crate) fn read(
    fields: Fields<'_>,
    how: &How<'_>,
    sql: Option<SqlText>,
    context: &Context<'_>,
) -> (ModelDraft, Uses) {
    let templating = how.templating;
    let mut reader = Reader {
        context,
        fields,
        uses: Uses::default(),
        blocks: Vec::new(),
        templating,
        materialize_at: None,
    };
    let spec = reader.spec(how.kind, sql, how.name);
    (
        ModelDraft {
            spec,
            blocks: reader.blocks,
        },
        reader.uses,
    )
}

impl Reader<'_, '_> {
    fn spec(&mut self, kind: FileKind, sql: Option<SqlText>, name: &str) -> ModelSpec {
        let is_source = kind == FileKind::Source;
        let input_connector = self.input_connector(is_source);
        let mut spec = ModelSpec {
            refresh_schedule: Some(self.refresh()),
            timeout_seconds: self.fields.seconds("timeout").unwrap_or_default(),
            incremental: self.fields.bool("incremental").unwrap_or_default(),
            change_mode: self.change_mode().into(),
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
        self.output(&mut spec, is_source);
        self.stage(&mut spec);
        self.main_sql(&mut spec, sql);
        self.state(&mut spec);
        self.partitions(&mut spec);
        self.tests(&mut spec, name);
        self.input_properties(&mut spec);
        self.output_kind(&mut spec);
        spec
    }

    fn refresh(&mut self) -> watershed_proto::Schedule {
        let block = self.fields.map("refresh");
        schedule::read(block, self.context.environment, self.fields.findings())
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

    fn retry(&mut self) -> Option<Retry> {
        let (map, at) = self.fields.map("retry")?;
        let mut fields = Fields::new(map, at, self.fields.findings());
        let retry = Retry {
            attempts: fields.count("attempts"),
            delay_seconds: fields.seconds("delay"),
            exponential_backoff: fields.bool("exponential_backoff"),
            if_error_matches: fields.patterns("if_error_matches"),
        };
        fields.finish(&["attempts", "delay", "exponential_backoff", "if_error_matches"]);
        Some(retry)
    }

    /// A connector by name, or a mapping with `connector` and its settings.
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
            Some(node) => self.connector_name(&node),
            None if is_source => {
                let at = self.fields.at();
                let message = "a source must say its connector";
                self.fields.findings().add_with_hint(
                    at,
                    Code::MissingKey,
                    message,
                    "add `connector: local_file`, say",
                );
                String::new()
            }
            None => self.context.olap.to_owned(),
        }
    }

    fn output(&mut self, spec: &mut ModelSpec, is_source: bool) {
        let (connector, settings) = self.connector_and_settings("output").unwrap_or_default();
        spec.output_connector = match connector {
            Some(node) => self.connector_name(&node),
            None => self.context.olap.to_owned(),
        };
        let mut properties = self.properties(settings);
        self.materialize_at = self.fields.key_at("materialize");
        if let Some(materialize) = self.fields.bool("materialize") {
            properties.insert("materialize".to_owned(), Value::from(materialize));
        } else if is_source {
            properties
                .entry("materialize".to_owned())
                .or_insert_with(|| Value::from(true));
        }
        spec.output_properties = Some(MapValue { fields: properties });
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

    /// Settings as values; templates in them are read for what they use.
    fn properties(&mut self, map: Map) -> BTreeMap<String, Value> {
        for entry in map.values() {
            self.templates_in(&entry.value);
        }
        map.into_iter()
            .map(|(key, entry)| (key, entry.value.to_value()))
            .collect()
    }

    fn templates_in(&mut self, node: &Node) {
        match &node.data {
            Data::List(items) => items.iter().for_each(|item| self.templates_in(item)),
            Data::Map(map) => map.values().for_each(|entry| self.templates_in(&entry.value)),
            Data::String(text) if self.templating && is_template(text) => {
                let place = TextPlace::of_node(node);
                if let Some(template) = read_template(text, &place, self.fields.findings()) {
                    let facts = Facts::of(&template);
                    self.uses
                        .add(&facts, text, &place, false, self.context, self.fields.findings());
                }
            }
            _ => {}
        }
    }
}
