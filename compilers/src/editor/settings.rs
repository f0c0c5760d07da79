//! Proposals in YAML: keys, values and names.

use super::{
    Meaning, is_manifest,
    keys::{self, Level},
    outline::{Cursor, Part},
    query,
    suggestion::{Suggested, Suggestions},
};
use crate::{
    draft::DRIVERS,
    kinds::{COMMON, words_of},
    project::Project,
    resource::{FileKind, Kind, ResourceKey, Spec},
    text::{Span, narrow},
    yaml::{Key, Takes},
};

/// Keys whose values are columns of the file's own table.
const COLUMNS: [&str; 9] = [
    "column",
    "field",
    "not_null",
    "order_by",
    "partition_by",
    "property",
    "timeseries",
    "unique",
    "unique_key",
];
/// Keys whose values are names of connectors.
const CONNECTORS: [&str; 3] = ["connector", "olap_connector", "create_secrets_from_connectors"];
/// Keys whose values are names of fields of a metrics view.
const FIELDS: [&str; 7] = [
    "comparison_dimension",
    "default_dimensions",
    "default_measures",
    "dimensions",
    "measures",
    "parent_dimensions",
    "parent_measures",
];

/// Adds proposals for a place in YAML.
pub(super) fn complete(project: &Project, path: &str, cursor: &Cursor<'_>, found: &mut Suggestions) {
    // What a template names stands between its braces, wherever the template stands.
    if query::in_action(project, cursor.before(), found) {
        return;
    }
    let kind = kind(project, path, cursor);
    if kind.is_none() && !is_manifest(path) {
        // Until a file says its kind, that is what it needs.
        keys_at(&[&COMMON], cursor, found);
        if cursor.spot().path.as_slice() == ["type"] {
            words(&crate::resource::WORDS, found);
        }
        return;
    }
    let spot = cursor.spot();
    let level = keys::follow(kind, &spot.path);
    if let Part::Text(before) = &spot.part {
        if level.values().iter().any(|takes| is_sql(takes)) {
            let whole = cursor.whole_text().unwrap_or_else(|| before.clone());
            statement(project, path, kind, cursor, (before, &whole), found);
        }
        return;
    }
    if spot.part == Part::Key {
        for key in level.keys() {
            if key.instead.is_none() && !spot.siblings.contains(key.name) {
                found.insert(key.name, Suggested::Key, Some(key.meaning), Some(written(key)));
            }
        }
    }
    for takes in level.values() {
        value(project, takes, found);
    }
    named(project, kind, &spot.path, cursor, found);
    if matches!(spot.part, Part::Value) && level.values().iter().any(|takes| is_sql(takes)) {
        let before = cursor
            .before()
            .split_once(": ")
            .map_or("", |(_, value)| value)
            .trim_start_matches(['"', '\'']);
        statement(project, path, kind, cursor, (before, before), found);
    }
    let last = spot.path.last().copied().unwrap_or_default();
    if COLUMNS.contains(&last) {
        found.columns_of = own_tables(project, path, kind, cursor);
    }
    // Lists of names are of all kinds.
    if spot.path.first() == Some(&"refs") {
        for resource in project.resources() {
            found.add(&resource.name, Suggested::Resource(resource.kind), None);
        }
    }
}

/// Returns the meaning of the key at a place.
pub(super) fn meaning(project: &Project, path: &str, cursor: &Cursor<'_>) -> Option<Meaning> {
    let kind = kind(project, path, cursor);
    if kind.is_none() && !is_manifest(path) {
        return None;
    }
    let spot = cursor.spot();
    if matches!(spot.part, Part::Text(_)) {
        return None;
    }
    let line = cursor.line();
    let content = line.trim_start_matches([' ', '-']);
    let start = line.len() - content.len();
    let name = content.split(':').next().unwrap_or_default();
    let end = start + name.len();
    if !(start..=end).contains(&cursor.before().len()) || !content.get(name.len()..)?.starts_with(':') {
        return None;
    }
    // Right behind the colon the way already holds the key.
    let holder: Vec<&str> = match spot.part {
        Part::Value => spot.path.split_last()?.1.to_vec(),
        _ => spot.path,
    };
    let key = keys::follow(kind, &holder)
        .keys()
        .into_iter()
        .find(|key| key.name == name.trim())?;
    let column = |byte: usize| narrow(line.get(..byte).unwrap_or_default().chars().count() + 1);
    Some(Meaning {
        span: Span {
            line: cursor.line_number(),
            column: column(start),
            end_line: cursor.line_number(),
            end_column: column(end),
        },
        key: key.name,
        text: key.meaning,
        instead: key.instead,
    })
}

/// Returns the kind that a file declares; none for the manifest or if it is unknown.
fn kind(project: &Project, path: &str, cursor: &Cursor<'_>) -> Option<Kind> {
    if is_manifest(path) {
        return None;
    }
    let said = ["type", "kind"].iter().find_map(|key| cursor.top_value(key));
    let said = said.and_then(FileKind::read).map(FileKind::kind);
    said.or_else(|| {
        let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
        let has_sql = project.source(&format!("{stem}.sql")).is_some();
        FileKind::infer(path, has_sql).map(FileKind::kind)
    })
}

fn keys_at(blocks: &[&'static crate::yaml::Block], cursor: &Cursor<'_>, found: &mut Suggestions) {
    let spot = cursor.spot();
    if !spot.path.is_empty() || spot.part != Part::Key {
        return;
    }
    for key in Level::Blocks(blocks.to_vec()).keys() {
        if key.instead.is_none() && !spot.siblings.contains(key.name) {
            found.insert(key.name, Suggested::Key, Some(key.meaning), Some(written(key)));
        }
    }
}

/// Returns a key with its colon, and a blank if the value follows on the same line.
fn written(key: &Key) -> String {
    match &key.takes {
        Takes::Block(_) | Takes::Map(_) | Takes::List(_) => format!("{}:", key.name),
        _ => format!("{}: ", key.name),
    }
}

fn is_sql(takes: &Takes) -> bool {
    matches!(takes, Takes::Sql)
}

fn words(words: &[&str], found: &mut Suggestions) {
    for word in words {
        found.add(word, Suggested::Value, None);
    }
}

fn value(project: &Project, takes: &Takes, found: &mut Suggestions) {
    match takes {
        Takes::Bool => words(&["true", "false"], found),
        Takes::Word(known) => words(known, found),
        Takes::Name(kind) => {
            if let Some(kind) = FileKind::read(kind) {
                found.resources(project, kind.kind());
            }
        }
        _ => {}
    }
}

/// Adds values that are names, which the tables of keys don't list: connectors, drivers, fields.
fn named(project: &Project, kind: Option<Kind>, path: &[&str], cursor: &Cursor<'_>, found: &mut Suggestions) {
    let Some(last) = path.last() else { return };
    if CONNECTORS.contains(last) {
        found.resources(project, Kind::Connector);
        words(&DRIVERS, found);
    }
    if kind == Some(Kind::Connector) && path == ["driver"] {
        words(&DRIVERS, found);
    }
    if let (Some(Kind::Connector), [setting], Some(driver)) = (kind, path, cursor.top_value("driver")) {
        words(words_of(driver, setting), found);
        if *setting == "store" {
            found.resources(project, Kind::Connector);
        }
    }
    let is_field =
        FIELDS.contains(last) && !matches!(kind, Some(Kind::MetricsView)) || last.starts_with("parent_");
    let view = ["metrics_view", "parent"]
        .iter()
        .find_map(|key| cursor.top_value(key));
    if let (true, Some(view)) = (is_field, view) {
        fields(project, view, last, found);
    }
}

fn fields(project: &Project, view: &str, key: &str, found: &mut Suggestions) {
    let resource = project.resource(&ResourceKey::new(Kind::MetricsView, view));
    let Some(Spec::MetricsView(spec)) = resource.map(|resource| &resource.spec) else {
        return;
    };
    if key.contains("dimension") {
        for one in &spec.dimensions {
            found.add(&one.name, Suggested::Field, Some(&one.description));
        }
    }
    if key.contains("measure") {
        for one in &spec.measures {
            found.add(&one.name, Suggested::Field, Some(&one.description));
        }
    }
}

/// Returns the tables whose columns a YAML file refers to.
fn own_tables(project: &Project, path: &str, kind: Option<Kind>, cursor: &Cursor<'_>) -> Vec<String> {
    match kind {
        Some(Kind::MetricsView) => {
            let named = ["model", "table"].iter().find_map(|key| cursor.top_value(key));
            named.map(str::to_owned).into_iter().collect()
        }
        Some(Kind::Model) => {
            let own = project.declared_in(path).into_iter();
            own.filter(|key| key.kind == Kind::Model)
                .map(|key| key.name)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Adds proposals for SQL in a YAML file: for a whole statement, or for an expression over the file's own table.
fn statement(
    project: &Project,
    path: &str,
    kind: Option<Kind>,
    cursor: &Cursor<'_>,
    (before, whole): (&str, &str),
    found: &mut Suggestions,
) {
    query::statement(project, before, whole, found);
    if found.columns_of.is_empty() {
        found.columns_of = own_tables(project, path, kind, cursor);
    }
}
