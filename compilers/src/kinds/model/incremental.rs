//! Incremental models: the settings that merge new rows into the table.

use watershed_proto::{IncrementalOutput, IncrementalStrategy, ModelChangeMode, ModelSpec, OnSchemaChange};

use super::keys::{OUTPUT, SCHEMA_CHANGES, STRATEGIES};
use crate::{
    diagnostics::{At, Code},
    kinds::reader::Reader,
    yaml::{Entry, Fields, Map, word},
};

/// Settings of an output that only incremental models have.
const ONLY_INCREMENTAL: [&str; 4] = [
    "incremental_strategy",
    "unique_key",
    "partition_by",
    "on_schema_change",
];

impl Reader<'_, '_> {
    /// Reads how new rows are merged into the table, and leaves the settings in place.
    pub(super) fn incremental_output(&mut self, spec: &mut ModelSpec, settings: &Map) {
        if !spec.incremental {
            self.tell_not_incremental(settings);
            return;
        }
        let has_partitions = self.fields.has("partitions") || self.fields.has("splits");
        let mine = settings.iter().filter(|(key, _)| OUTPUT.key(key).is_some());
        let mine: Map = mine.map(|(key, entry)| (key.clone(), entry.clone())).collect();
        let strategy_at = mine.get("incremental_strategy").map(|entry| entry.value.at);
        let at = strategy_at.unwrap_or(self.fields.at());
        let mut fields = Fields::new(mine, at, self.fields.findings());
        let strategy = word(&mut fields, "incremental_strategy", &STRATEGIES);
        let schema_change = word(&mut fields, "on_schema_change", &SCHEMA_CHANGES);
        let unique_key = fields.texts("unique_key").unwrap_or_default();
        let partition_by = fields.text("partition_by").unwrap_or_default();
        let strategy = match strategy.as_deref() {
            Some("append") => IncrementalStrategy::Append,
            Some("merge") => IncrementalStrategy::Merge,
            Some("overwrite") => IncrementalStrategy::Overwrite,
            Some("partition_overwrite") => IncrementalStrategy::PartitionOverwrite,
            _ if !unique_key.is_empty() => IncrementalStrategy::Merge,
            _ if !partition_by.is_empty() || has_partitions => IncrementalStrategy::PartitionOverwrite,
            _ => IncrementalStrategy::Append,
        };
        let on_schema_change = match schema_change.as_deref() {
            Some("ignore") => OnSchemaChange::Ignore,
            Some("append_new_columns") => OnSchemaChange::AppendNewColumns,
            _ => OnSchemaChange::Fail,
        };
        if strategy == IncrementalStrategy::Merge && unique_key.is_empty() {
            self.needs(at, "merge", "unique_key", "`unique_key: [id]`");
        }
        let needs_groups = strategy == IncrementalStrategy::PartitionOverwrite && partition_by.is_empty();
        if needs_groups && !has_partitions {
            self.needs(at, "partition_overwrite", "partition_by", "`partition_by: day`");
        }
        spec.incremental_output = Some(IncrementalOutput {
            strategy: strategy.into(),
            unique_key,
            partition_by,
            on_schema_change: on_schema_change.into(),
        });
    }

    fn needs(&mut self, at: At, strategy: &str, key: &str, example: &str) {
        let message = format!("the strategy `{strategy}` needs `output.{key}`");
        let hint = format!("add it under `output:`, as in {example}");
        self.fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }

    fn tell_not_incremental(&mut self, settings: &Map) {
        for key in ONLY_INCREMENTAL {
            let Some(Entry { key_at, .. }) = settings.get(key) else {
                continue;
            };
            let message = format!("`output.{key}` has no effect: the model is not incremental");
            let hint = "add `incremental: true`, or remove the key";
            self.fields
                .findings()
                .add_with_hint(*key_at, Code::NoEffectYet, message, hint);
        }
    }

    /// Reports a change mode that only incremental models can have.
    pub(super) fn check_change_mode(&mut self, spec: &ModelSpec, at: Option<At>) {
        if spec.change_mode() == ModelChangeMode::Patch && !spec.incremental {
            let at = at.unwrap_or(self.fields.at());
            let message = "`change_mode: patch` keeps the rows of an incremental model, and this one is not";
            let hint = "add `incremental: true`, or take `reset` or `manual`";
            self.fields
                .findings()
                .add_with_hint(at, Code::ConflictingKeys, message, hint);
        }
    }
}
