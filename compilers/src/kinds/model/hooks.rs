//! The SQL hooks of a model, and the row order of its table.

use watershed_proto::{ModelSpec, OutputKind, SqlSource, Value, value::Kind};

use super::keys::HOOKS;
use crate::{
    diagnostics::{At, Code, spot},
    draft::{Purpose, TextPlace},
    engine::Need,
    kinds::reader::Reader,
    sql::is_blank,
    template::is_template,
    yaml::{Entry, Map, Node},
};

impl Reader<'_, '_> {
    /// Reads the statements that run around a build. They also remain in the input's settings, which are part of the
    /// fingerprint.
    pub(super) fn hooks(&mut self, spec: &mut ModelSpec, settings: &Map) {
        let lists = [&mut spec.init_queries, &mut spec.pre_exec, &mut spec.post_exec];
        for (key, list) in HOOKS.into_iter().zip(lists) {
            if let Some(Entry { value, key_at }) = settings.get(key) {
                self.context.needs(Need::Hooks, *key_at, self.fields.findings());
                *list = self.texts_of_sql(key, value);
            }
        }
    }

    fn texts_of_sql(&mut self, key: &str, value: &Node) -> Vec<SqlSource> {
        let nodes = match value.as_list() {
            Some(list) => list.iter().collect(),
            None if value.is_null() => Vec::new(),
            None => vec![value],
        };
        let mut sources = Vec::new();
        for node in nodes {
            let Some(text) = node.as_str() else {
                let type_name = node.data.type_name();
                let message = format!("\"{key}\" takes SQL or a list of SQL, not {type_name}");
                self.fields.findings().add(node.at, Code::WrongType, message);
                continue;
            };
            let text = text.trim();
            if is_blank(text) {
                continue;
            }
            let place = TextPlace::from_node(node);
            let templated = self.about.templating && is_template(text);
            sources.push(place.source(text, templated, false));
            self.add_block(Purpose::Around, text, place, false);
        }
        sources
    }

    /// Checks the order in which a table's rows are written.
    pub(super) fn order_by(&mut self, spec: &mut ModelSpec, at: Option<At>) {
        let Some(at) = at else { return };
        let said = spec
            .output_properties
            .as_ref()
            .and_then(|all| all.get("order_by"));
        let is_one = |value: &Value| match &value.kind {
            Some(Kind::String(text)) => !text.trim().is_empty(),
            // The number of a column.
            Some(Kind::Int(_)) => true,
            _ => false,
        };
        let is_good = said.is_some_and(|said| match said.as_list() {
            Some(list) => !list.is_empty() && list.iter().all(is_one),
            None => is_one(said),
        });
        let findings = self.fields.findings();
        if !is_good {
            let message = "\"order_by\" takes an expression, or a list of them";
            findings.add_with_hint(
                at,
                Code::WrongType,
                message,
                "for example `order_by: day DESC, origin`",
            );
        } else if spec.output_kind() != OutputKind::Table {
            let message = "`output.order_by` has no effect: the model is a view";
            let hint = "add `materialize: true`, or write ORDER BY into the query";
            findings.add_with_hint(at, Code::NoEffectYet, message, hint);
        } else {
            spec.order_by_at = spot(at);
        }
    }
}
