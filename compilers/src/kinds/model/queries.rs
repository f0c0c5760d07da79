//! The queries of a model, for its rows, its state and its partitions.

use watershed_proto::{DataResolver, LocalFiles, ModelSpec};

use super::{TEST, unused::FILE_OF_ENGINE};
use crate::{
    blocks::data::{self, DATA},
    diagnostics::{At, Code},
    draft::{
        Purpose, TextPlace,
        block::{block, first_line},
    },
    engine::Need,
    kinds::reader::{Declared, Reader},
    sql::{is_blank, is_local},
    template::is_template,
    yaml::{Fields, Map},
};

impl Reader<'_, '_> {
    pub(super) fn main_sql(&mut self, spec: &mut ModelSpec) {
        let engine = self.context.speaks_engine_sql(&spec.input_connector);
        let Some(sql) = self.about.sql.take() else {
            let reads_files = ["path", "uri"]
                .iter()
                .any(|key| self.fields.key_at(key).is_some());
            // A table of another file of the engine, which the connector that models are built on may name, too.
            let is_other = self.about.is_source
                || !spec.input_connector.eq_ignore_ascii_case(self.context.olap)
                || FILE_OF_ENGINE.iter().any(|key| self.fields.key_at(key).is_some());
            let reads_table = is_other && self.fields.key_at("table").is_some();
            if engine && !reads_files && !reads_table {
                let at = self.fields.at();
                let hint = "write it under `sql:` or in a `.sql` file of the same name";
                self.fields
                    .findings()
                    .add_with_hint(at, Code::MissingKey, "a model needs SQL", hint);
            }
            return;
        };
        if is_blank(&sql.text) {
            let at = first_line(&sql.text, &sql.place);
            self.fields
                .findings()
                .add(at, Code::MissingKey, "the SQL is empty");
            return;
        }
        let templated = sql.templating && is_template(&sql.text);
        spec.sql = Some(sql.place.source(&sql.text, templated, engine));
        self.add_block(Purpose::Main, &sql.text, sql.place, engine);
    }

    pub(super) fn add_block(&mut self, purpose: Purpose, text: &str, place: TextPlace, engine: bool) {
        let how = (engine, self.about.templating);
        let findings = self.fields.findings();
        if let Some(block) = block(purpose, text, place, how, self.context, &mut self.uses, findings) {
            self.blocks.push(block);
        }
    }

    pub(super) fn data_block(
        &mut self,
        map: Map,
        at: At,
        purpose: Purpose,
        default_connector: &str,
        declared: &mut Declared,
    ) -> Option<DataResolver> {
        let mut fields = Fields::new(map, at, self.fields.findings());
        let found = data::take(&mut fields, default_connector, None);
        fields.finish(match purpose {
            Purpose::Test | Purpose::UnitTest => &TEST,
            _ => &DATA,
        });
        let found = found?;
        self.read_sql(&found, purpose);
        declared.refs.extend(found.refs);
        Some(found.resolver)
    }

    pub(super) fn state(&mut self, spec: &mut ModelSpec, declared: &mut Declared) {
        if let Some((map, at)) = self.fields.map("state") {
            let connector = spec.output_connector.clone();
            spec.incremental_state = self.data_block(map, at, Purpose::State, &connector, declared);
        }
    }

    pub(super) fn partitions(&mut self, spec: &mut ModelSpec, declared: &mut Declared) {
        if let Some(at) = self.fields.key_at("partitions").or(self.fields.key_at("splits")) {
            self.context.needs(Need::Partitions, at, self.fields.findings());
        }
        if let (Some(_), Some(at)) = (self.fields.key_at("partitions"), self.fields.key_at("splits")) {
            let message = "\"splits\" is an old name of \"partitions\": use one of them";
            self.fields.findings().add(at, Code::ConflictingKeys, message);
        }
        let splits = self.fields.map("splits");
        if let Some((map, at)) = self.fields.map("partitions").or(splits) {
            let olap = self.context.olap;
            spec.partitions = self.data_block(map, at, Purpose::Partitions, olap, declared);
        }
        let is_glob = spec
            .partitions
            .as_ref()
            .is_some_and(|block| block.resolver == "glob");
        let watermark = self.fields.text("partitions_watermark");
        let default = if is_glob { "updated_on" } else { "" };
        spec.partitions_watermark_field = watermark.unwrap_or_else(|| default.to_owned());
    }

    /// Adds the pattern of local files that are partitions to the files that the model reads.
    pub(super) fn partition_files(&self, spec: &mut ModelSpec) {
        let block = spec.partitions.as_ref().filter(|block| block.resolver == "glob");
        let path = block
            .and_then(|block| block.properties.as_ref()?.str("path"))
            .and_then(|path| self.rendered(path))
            .filter(|path| is_local(path));
        if let Some(pattern) = path {
            spec.local_files.retain(|files| files.pattern != pattern);
            spec.local_files.push(LocalFiles {
                pattern,
                invalidate_on_change: true,
                partitions: true,
            });
        }
    }
}
