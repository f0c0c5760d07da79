//! Dimensions of a metrics view.

use watershed_proto::{MetricsViewDimension, MetricsViewSpec};

use super::{UsedNames, keys::DIMENSION};
use crate::{
    blocks::time_range::grain,
    diagnostics::{At, Code, spot},
    draft::{RawRef, ref_to_table, source},
    kinds::reader::Reader,
    yaml::{Fields, Map, Node, item, unknown_key, word},
};

/// Reads the dimensions; the time column is added even if it is not listed.
pub(super) fn read(
    reader: &mut Reader<'_, '_>,
    spec: &mut MetricsViewSpec,
    taken: &mut UsedNames,
    refs: &mut Vec<RawRef>,
) {
    let items = reader.fields.list("dimensions").unwrap_or_default();
    for (index, node) in items.into_iter().enumerate() {
        let Some((map, at)) = item(node, "a dimension", reader.findings()) else {
            continue;
        };
        let mut fields = Fields::new(map, at, reader.fields.findings());
        if let Some(dimension) = dimension(&mut fields, index, at, taken, refs) {
            spec.dimensions.push(dimension);
        }
    }
    let time = spec.time_dimension.clone();
    let listed = spec
        .dimensions
        .iter()
        .find(|one| one.name.eq_ignore_ascii_case(&time));
    match listed {
        Some(listed) if listed.name != time => {
            let message = format!("dimension \"{}\" is the time column \"{time}\"", listed.name);
            let at = reader.fields.at();
            reader
                .findings()
                .add_with_hint(at, Code::InvalidValue, message, "write both in the same case");
        }
        Some(_) => {}
        None if time.is_empty() => {}
        None => {
            let at = reader.fields.at();
            taken.take(&time, at, &mut reader.fields);
            spec.dimensions.insert(
                0,
                MetricsViewDimension {
                    name: time.clone(),
                    column: time,
                    r#type: "time".to_owned(),
                    at: spec.time_at,
                    ..MetricsViewDimension::default()
                },
            );
        }
    }
}

fn dimension(
    fields: &mut Fields<'_>,
    index: usize,
    at: At,
    taken: &mut UsedNames,
    refs: &mut Vec<RawRef>,
) -> Option<MetricsViewDimension> {
    fields.deprecations(&DIMENSION);
    if fields.bool("ignore").unwrap_or_default() {
        return None;
    }
    let property = fields.text_node("property");
    let column = fields.text_node("column").or(property);
    let expression = fields.text_node("expression");
    let made_of = column.as_ref().or(expression.as_ref()).map(|node| node.at);
    if column.is_some() == expression.is_some() {
        let (code, message) = match made_of {
            None => (
                Code::MissingKey,
                "a dimension needs a `column` or an `expression`",
            ),
            Some(_) => (
                Code::ConflictingKeys,
                "a dimension has a `column` or an `expression`, not both",
            ),
        };
        fields.findings().add(at, code, message);
    }
    let column = column.as_ref().and_then(Node::scalar_text).unwrap_or_default();
    let name_node = fields.text_node("name");
    let name = name_node.as_ref().and_then(Node::scalar_text);
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| {
        if column.is_empty() {
            format!("dimension_{index}")
        } else {
            column.clone()
        }
    });
    taken.take(&name, name_node.map_or(at, |node| node.at), fields);
    let label = fields.text("label").or_else(|| fields.text("title"));
    let mut dimension = MetricsViewDimension {
        name,
        display_name: fields.text("display_name").or(label).unwrap_or_default(),
        description: fields.text("description").unwrap_or_default(),
        column,
        expression: expression.as_ref().map(source),
        unnest: fields.bool("unnest").unwrap_or_default(),
        uri: fields
            .text("uri")
            .filter(|uri| uri != "false")
            .unwrap_or_default(),
        smallest_time_grain: grain(fields, "smallest_time_grain").unwrap_or_default(),
        r#type: word(fields, "type", &["geo", "time", "categorical"]).unwrap_or_default(),
        tags: fields.texts("tags").unwrap_or_default(),
        at: spot(made_of.unwrap_or(at)),
        ..MetricsViewDimension::default()
    };
    fields.take("data_type");
    lookup(fields, &mut dimension, at, refs);
    let rest: Map = fields.take_rest();
    for (key, entry) in rest {
        unknown_key(fields.findings(), &key, entry.key_at, &DIMENSION);
    }
    Some(dimension)
}

/// Reads the lookup table that translates a dimension's values, and adds a ref if its name may be a model's.
fn lookup(fields: &mut Fields<'_>, dimension: &mut MetricsViewDimension, at: At, refs: &mut Vec<RawRef>) {
    let table = fields.text_node("lookup_table");
    dimension.lookup_at = table.as_ref().and_then(|node| spot(node.at));
    dimension.lookup_table = table.as_ref().and_then(Node::scalar_text).unwrap_or_default();
    dimension.lookup_key_column = fields.text("lookup_key_column").unwrap_or_default();
    dimension.lookup_value_column = fields.text("lookup_value_column").unwrap_or_default();
    dimension.lookup_default_expression = fields.text("lookup_default_expression").unwrap_or_default();
    let Some(node) = table else { return };
    if dimension.lookup_key_column.is_empty() || dimension.lookup_value_column.is_empty() {
        let message = "a `lookup_table` needs a `lookup_key_column` and a `lookup_value_column`";
        fields.findings().add(node.at, Code::MissingKey, message);
    }
    if dimension.unnest {
        let message = "`unnest` and a `lookup_table` can't stand together";
        fields.findings().add(at, Code::ConflictingKeys, message);
    }
    let last = dimension.lookup_table.rsplit('.').next().unwrap_or_default();
    refs.push(ref_to_table(last.trim_matches('"'), Some(node.at)));
}
