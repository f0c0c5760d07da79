//! Input and output schemas of tools, made from the forms and documents of their paths.
//!
//! Schemas of inputs refuse unknown words. Those of outputs say what may be there and require nothing, since a role sees less of a
//! document than another one; their texts are left out, for every conversation pays for them.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::offers::{ApisDocument, MetricsViewDocument, MetricsViewsDocument};
use super::openapi::own_parameters;
use super::own::{
    DiagnosticsDocument, FileChange, FileRename, FileTexts, FilesDocument, Page, RequestDocument,
};
use super::routes::{Does, Own, Route, Words};
use crate::documents::ResourceDocument;

/// The most rows that a tool returns.
pub const MOST_ROWS: u64 = 1_000;
/// The rows that a tool returns unless it is asked for another number.
pub const USUAL_ROWS: u64 = 100;

/// The place of a tool's argument in the call of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The name of an instance.
    Instance,
    /// A segment of the path.
    Path,
    /// A word of the query or body, as the path takes it.
    Word,
    /// The words of an API, as one object.
    Arguments,
    /// The text of a file.
    Text,
    /// The ETag of the version that is replaced.
    Version,
    /// The tool's own: how much of an answer is returned, and from where.
    Answer,
}

/// An argument of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// Name of the argument.
    pub name: String,
    /// Place of the argument in the call.
    pub place: Place,
    /// True if the tool can't be called without the argument.
    pub is_required: bool,
    /// JSON Schema of the argument.
    pub schema: Value,
}

/// Returns the arguments of the tool that a path is.
pub fn arguments(route: &Route) -> Vec<Argument> {
    let mut list = Vec::new();
    let mut add = |name: &str, place, is_required, schema: Value| {
        list.push(Argument {
            name: name.to_owned(),
            place,
            is_required,
            schema,
        });
    };
    let text = |about: &str| json!({ "type": "string", "description": about });
    for name in path_words(route) {
        add(name, Place::Path, true, text(about(name)));
    }
    match (&route.does, route.words()) {
        (Does::Own(own), _) => of_own(*own, &mut add),
        (Does::Answers(_), Words::Body) if route.path == "/api/{name}" => {
            let schema = json!({ "type": "object", "description": "Arguments of the API, by name." });
            add("arguments", Place::Arguments, false, schema);
            add("limit", Place::Answer, false, limit());
        }
        (
            Does::Answers(offer)
            | Does::Starts(offer)
            | Does::Follows(offer)
            | Does::Rows(offer)
            | Does::Selected(offer),
            _,
        ) => {
            let (properties, required) = properties_of(offer.form);
            for (name, schema) in properties {
                // A tool answers once.
                let is_left_out = name == "follow";
                let schema = if name == "limit" && is_of_rows(route) {
                    limit()
                } else {
                    schema
                };
                if !is_left_out {
                    let is_required = required.contains(&name);
                    add(&name, Place::Word, is_required, schema);
                }
            }
        }
    }
    add(
        "instance",
        Place::Instance,
        false,
        text("Name of the project; needed only where you may see several."),
    );
    list
}

/// Returns true if the answer of a path has rows of data, which have bounds of their own.
pub fn is_of_rows(route: &Route) -> bool {
    matches!(route.does, Does::Rows(_)) || route.path.ends_with("/query") || route.path == "/api/{name}"
}

fn of_own(own: Own, add: &mut impl FnMut(&str, Place, bool, Value)) {
    let version =
        || json!({ "type": "string", "description": "The `etag` that `read_file` returned, as it is." });
    for parameter in own_parameters(own) {
        let name = parameter["name"].as_str().unwrap_or_default();
        let mut schema = parameter["schema"].clone();
        schema["description"] = parameter["description"].clone();
        if !matches!(name, "fields" | "include") {
            add(name, Place::Word, false, schema);
        }
    }
    match own {
        Own::File => {
            let schema = json!({ "type": "integer", "minimum": 1, "description": "First line that is returned; 1 unless set." });
            add("from_line", Place::Answer, false, schema);
        }
        Own::WriteFile => {
            let text = json!({ "type": "string", "description": "The whole new text of the file." });
            add("text", Place::Text, true, text);
            add("etag", Place::Version, false, version());
        }
        Own::DeleteFile => add("etag", Place::Version, true, version()),
        Own::RenameFile => {
            body_of(|generator| generator.subschema_for::<FileRename>(), add);
            add("etag", Place::Version, true, version());
        }
        Own::CheckFiles => body_of(|generator| generator.subschema_for::<FileTexts>(), add),
        _ => {}
    }
}

fn body_of(form: fn(&mut SchemaGenerator) -> Schema, add: &mut impl FnMut(&str, Place, bool, Value)) {
    for (name, schema) in properties_of(form).0 {
        add(&name, Place::Word, true, schema);
    }
}

fn limit() -> Value {
    json!({
        "type": "integer", "minimum": 1, "maximum": MOST_ROWS,
        "description": format!("The most rows that are returned; {USUAL_ROWS} unless set."),
    })
}

/// Returns the names of a path's parameters.
pub fn path_words(route: &Route) -> impl Iterator<Item = &'static str> {
    route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.trim_start_matches('*'))
}

fn about(name: &str) -> &'static str {
    match name {
        "kind" => "Kind of the resource, as listed, such as `model`.",
        "name" => "Name of the resource, as listed.",
        "view" => "Name of the metrics view.",
        "path" => "Path of the file, relative to the project.",
        "id" => "Id of the request.",
        _ => "A word of the path.",
    }
}

/// Returns the input schema of a tool.
pub fn input(route: &Route) -> Map<String, Value> {
    let arguments = arguments(route);
    let required: Vec<&str> = arguments
        .iter()
        .filter(|it| it.is_required)
        .map(|it| it.name.as_str())
        .collect();
    let properties: Map<String, Value> = arguments
        .iter()
        .map(|it| (it.name.clone(), it.schema.clone()))
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    object(schema)
}

/// Returns the output schema of a tool.
pub fn output(route: &Route) -> Map<String, Value> {
    let mut generator = generator(false);
    let document = match &route.does {
        Does::Starts(_) => generator.subschema_for::<RequestDocument>(),
        Does::Answers(offer) | Does::Follows(offer) | Does::Rows(offer) | Does::Selected(offer) => {
            (offer.document)(&mut generator)
        }
        Does::Own(own) => match own {
            Own::List => generator.subschema_for::<Page>(),
            Own::Resource => generator.subschema_for::<ResourceDocument>(),
            Own::MetricsViews => generator.subschema_for::<MetricsViewsDocument>(),
            Own::MetricsView => generator.subschema_for::<MetricsViewDocument>(),
            Own::Apis => generator.subschema_for::<ApisDocument>(),
            Own::Files => generator.subschema_for::<FilesDocument>(),
            Own::WriteFile | Own::DeleteFile | Own::RenameFile => generator.subschema_for::<FileChange>(),
            Own::Request => generator.subschema_for::<RequestDocument>(),
            Own::Diagnostics | Own::CheckFiles => generator.subschema_for::<DiagnosticsDocument>(),
            _ => Schema::from(Map::new()),
        },
    };
    let definitions = generator.take_definitions(true);
    let mut schema = document.to_value();
    let named = schema["$ref"]
        .as_str()
        .and_then(|to| to.strip_prefix("#/$defs/"))
        .map(str::to_owned);
    let mut definitions = definitions;
    if let Some(root) = named.and_then(|name| definitions.get(&name).cloned()) {
        // A root that is no reference, for clients that look for an object there.
        schema = root;
    }
    if !definitions.is_empty() {
        definitions.values_mut().for_each(plain);
    }
    if matches!(route.does, Does::Own(Own::Resource)) {
        // The tool asks for them, where a browser reads them with the rows.
        let column = json!({ "type": "object", "properties": { "name": { "type": "string" }, "type": { "type": "string" } } });
        schema["properties"]["columns"] = json!({ "type": ["array", "null"], "items": column });
    }
    plain(&mut schema);
    let mut schema = object(schema);
    schema.insert("type".to_owned(), "object".into());
    let used = serde_json::to_string(&schema).unwrap_or_default()
        + &serde_json::to_string(&definitions).unwrap_or_default();
    definitions.retain(|name, _| used.contains(&format!("#/$defs/{name}\"")));
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// Takes out what a smaller role's document lacks, and texts.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            for key in [
                "description",
                "title",
                "required",
                "additionalProperties",
                "format",
                "default",
            ] {
                // A property of that name is a schema, and a keyword is not.
                let is_keyword = keys.get(key).is_some_and(|it| !it.is_object());
                if is_keyword {
                    keys.remove(key);
                }
            }
            keys.values_mut().for_each(plain);
        }
        Value::Array(list) => list.iter_mut().for_each(plain),
        _ => {}
    }
}

fn generator(inline: bool) -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = inline;
    settings.into_generator()
}

/// Returns the properties of a form with the names of those that are required.
fn properties_of(form: fn(&mut SchemaGenerator) -> Schema) -> (Vec<(String, Value)>, Vec<String>) {
    let schema = form(&mut generator(true)).to_value();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let required = required
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    (properties.into_iter().collect(), required)
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}
