//! The OpenAPI 3.1 document, generated from the table of paths and the schemas of documents.

use schemars::generate::SchemaSettings;
use schemars::transform::{ReplaceBoolSchemas, transform_subschemas};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::access::{SERVICE_PATHS, ServicePath};
use super::boards::BoardDocument;
use super::forms::Selected;
use super::offers::{ApisDocument, MetricsViewDocument, MetricsViewsDocument};
use super::own::{
    Accepted, Checkout, DiagnosticsDocument, EventsTaken, FileChange, FileRename, FileTexts, FilesDocument,
    Page, ProblemDocument, RequestDocument, Touched, TreeDocument,
};
use super::routes::{Does, Method, Offer, Own, ROUTES, Route, Words};
use crate::documents::{ResourceDocument, RunDocument};
use crate::operations::Manner;

/// Path of an instance in the HTTP API.
pub const INSTANCE: &str = "/v1/instances/{instance}";

/// JSON pointer to the schemas in the OpenAPI document.
const SCHEMAS: &str = "/components/schemas";

/// Longest time that a caller may wait for the end of a request, in seconds. Proxies time out after longer waits.
pub const LONGEST_WAIT_S: u64 = 60;

/// Returns the OpenAPI document.
pub fn document() -> Value {
    let mut writer = Writer::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = format!("{INSTANCE}{}", route.path.replace("{*", "{"));
        let described = writer.route(route);
        add(&mut paths, path, route.method, described);
    }
    for path in SERVICE_PATHS {
        let described = writer.service_path(path);
        add(&mut paths, path.path.to_owned(), path.method, described);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Watershed",
            "version": "1",
            "description": "Projects that are kept converged: their resources, what ran and why, questions, and work.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": writer.schemas() },
    })
}

/// Returns the parameters of an operation's query or body, by name, each with its schema.
pub fn parameters(offer: &Offer) -> Vec<(String, Value)> {
    properties(offer.form)
}

/// Returns the properties of a form, by name, each with its schema.
pub(super) fn properties(form: fn(&mut SchemaGenerator) -> Schema) -> Vec<(String, Value)> {
    let mut writer = Writer::new();
    let schema = form(&mut writer.generator);
    writer.properties(&schema)
}

fn prefer() -> Value {
    header(
        "Prefer",
        "`wait=N` waits up to N seconds, at most 60, for the end of the work.",
    )
}

fn add(paths: &mut Map<String, Value>, path: String, method: Method, described: Value) {
    let entry = paths.entry(path).or_insert_with(|| json!({}));
    if let Value::Object(methods) = entry {
        methods.insert(method.name().to_lowercase(), described);
    }
}

fn content(media: &str, schema: Value) -> Value {
    json!({ media: { "schema": schema } })
}

/// Adds the problem that every path may answer with.
fn with_problem(mut responses: Value) -> Value {
    let schema = json!({ "$ref": format!("#{SCHEMAS}/ProblemDocument") });
    responses["default"] = json!({
        "description": "The reason why there is no answer.",
        "content": content(ProblemDocument::MEDIA_TYPE, schema),
    });
    responses
}

/// A writer of the OpenAPI document's parts, which collects the schemas in use.
struct Writer {
    generator: SchemaGenerator,
}

impl Writer {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = SCHEMAS.into();
        settings.meta_schema = None;
        // Some makers of clients know no schema that is `true`.
        let mut plain = ReplaceBoolSchemas::default();
        plain.skip_additional_properties = true;
        let settings = settings.with_transform(plain).with_transform(enumerate);
        Self {
            generator: settings.into_generator(),
        }
    }

    fn schema<T: schemars::JsonSchema>(&mut self) -> Value {
        self.generator.subschema_for::<T>().to_value()
    }

    fn service_path(&mut self, path: &ServicePath) -> Value {
        let document = (path.document)(&mut self.generator).to_value();
        let answer =
            json!({ "description": "The document.", "content": content("application/json", document) });
        let status = path.status.to_string();
        let mut described = json!({
            "operationId": path.id,
            "summary": path.summary,
            "responses": with_problem(json!({ status: answer })),
        });
        let mut parameters: Vec<Value> = named_in(path.path).map(of_path).collect();
        parameters.extend(path.query.iter().map(|(name, description)| {
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": "query", "description": description, "schema": schema })
        }));
        if path.method == Method::Post {
            parameters.push(idempotency_key());
        }
        if !parameters.is_empty() {
            described["parameters"] = Value::Array(parameters);
        }
        if let Some(form) = path.form {
            let schema = form(&mut self.generator).to_value();
            described["requestBody"] =
                json!({ "required": true, "content": content("application/json", schema) });
        }
        described
    }

    fn schemas(mut self) -> Value {
        self.schema::<ProblemDocument>();
        // The document in which most requests end.
        self.schema::<RunDocument>();
        let mut definitions = self.generator.take_definitions(true);
        definitions.values_mut().for_each(without_folder);
        Value::Object(definitions)
    }

    fn route(&mut self, route: &Route) -> Value {
        let mut parameters = path_parameters(route.path);
        let mut described = json!({
            "operationId": route.id(),
            "summary": route.summary,
            "x-role": route.role,
            "x-operation": route.name(),
        });
        if let Some(offer) = offer_of(&route.does) {
            match route.words() {
                Words::Query => parameters.extend(query_of(offer)),
                Words::Body => {
                    if let Some(body) = self.body(route, offer) {
                        described["requestBody"] = body;
                    }
                }
            }
        }
        if let Does::Own(own) = route.does {
            parameters.extend(own_parameters(own));
            if own == Own::Request {
                parameters.push(prefer());
            }
            if matches!(own, Own::Resource | Own::File | Own::Public | Own::Export) {
                parameters.push(header(
                    "If-None-Match",
                    "The ETag of the version that the caller has, which is answered with 304.",
                ));
            }
            if let Own::WriteFile | Own::DeleteFile = own {
                parameters.push(header(
                    "If-Match",
                    "The ETag of the version that is replaced or deleted.",
                ));
            }
            if let Own::WriteFile | Own::WriteVariables = own {
                parameters.push(header(
                    "If-None-Match",
                    "`*` writes only where there is no such file.",
                ));
            }
            if own == Own::Checkout {
                parameters.push(header(
                    "X-Hub-Signature-256",
                    "`sha256=` and the HMAC of the body under the configured secret, in the place of other authentication.",
                ));
            }
            if own == Own::RenameFile {
                parameters.push(header("If-Match", "The ETag of the version that is renamed."));
            }
            if let Some(content) = self.own_body(own) {
                described["requestBody"] = json!({ "required": true, "content": content });
            }
        }
        if matches!(route.does, Does::Starts(_)) {
            parameters.push(prefer());
        }
        if route.changes() {
            parameters.push(idempotency_key());
        }
        described["parameters"] = Value::Array(parameters);
        described["responses"] = with_problem(self.responses(route));
        described
    }

    /// Returns the properties of a form's schema, each by name with its own schema.
    fn properties(&self, schema: &Schema) -> Vec<(String, Value)> {
        let schema = schema.as_value();
        let name = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next());
        let schema = name
            .and_then(|name| self.generator.definitions().get(name))
            .unwrap_or(schema);
        let properties = schema["properties"].as_object();
        let resolved = |schema: &Value| match schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
            Some(name) => self
                .generator
                .definitions()
                .get(name)
                .cloned()
                .unwrap_or(Value::Null),
            None => schema.clone(),
        };
        let properties = properties.into_iter().flatten();
        properties
            .map(|(name, schema)| (name.clone(), resolved(schema)))
            .collect()
    }

    fn body(&mut self, route: &Route, offer: &Offer) -> Option<Value> {
        let form = (offer.form)(&mut self.generator);
        let has_keys = !self.properties(&form).is_empty() || form.as_value()["$ref"].is_null();
        let schema = match (&route.does, has_keys) {
            (Does::Selected(_), true) => {
                json!({ "allOf": [form.to_value(), self.schema::<Selected>()] })
            }
            (Does::Selected(_), false) => self.schema::<Selected>(),
            (_, true) => form.to_value(),
            (_, false) => return None,
        };
        Some(json!({ "content": content("application/json", schema) }))
    }

    fn responses(&mut self, route: &Route) -> Value {
        let document = |schema: Value| json!({ "description": "The document.", "content": content("application/json", schema) });
        match &route.does {
            Does::Answers(offer) => {
                let schema = (offer.document)(&mut self.generator).to_value();
                json!({ "200": document(schema) })
            }
            Does::Rows(offer) => {
                let schema = (offer.document)(&mut self.generator).to_value();
                let mut responses = json!({ "200": document(schema) });
                let file = json!({ "type": "string", "format": "binary" });
                for media in ROWS_MEDIA {
                    responses["200"]["content"][media] = json!({ "schema": file });
                }
                responses["406"] =
                    json!({ "description": "None of the accepted media types is a form of rows." });
                responses
            }
            Does::Follows(offer) => {
                let schema = (offer.document)(&mut self.generator).to_value();
                let mut answer = document(schema);
                answer["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
                json!({ "200": answer })
            }
            Does::Starts(_) => {
                let ended = document(self.schema::<RequestDocument>());
                json!({ "200": ended, "202": accepted(self.schema::<Accepted>()) })
            }
            Does::Selected(offer) => {
                let done = match offer.info.manner {
                    Manner::Streams => self.schema::<RequestDocument>(),
                    Manner::Reads | Manner::Works => (offer.document)(&mut self.generator).to_value(),
                };
                let touched = self.schema::<Touched>();
                json!({
                    "200": document(json!({ "anyOf": [done, touched] })),
                    "202": accepted(self.schema::<Accepted>()),
                })
            }
            Does::Own(own) => self.own_responses(*own),
        }
    }

    /// Returns the content of the body of a path without an operation; none if the path takes no body.
    fn own_body(&mut self, own: Own) -> Option<Value> {
        match own {
            Own::Events => Some(events()),
            Own::WriteFile | Own::WriteVariables => Some(content(
                "application/octet-stream",
                json!({ "type": "string", "format": "binary" }),
            )),
            Own::RenameFile => Some(content("application/json", self.schema::<FileRename>())),
            Own::CheckFiles => Some(content("application/json", self.schema::<FileTexts>())),
            _ => None,
        }
    }

    fn own_responses(&mut self, own: Own) -> Value {
        let document = |schema: Value| json!({ "200": { "description": "The document.", "content": content("application/json", schema) } });
        let bytes = |media: &str, what: &str| {
            let schema = json!({ "type": "string", "format": "binary" });
            json!({ "200": { "description": what, "content": content(media, schema) } })
        };
        match own {
            Own::List => document(self.schema::<Page>()),
            Own::Resource => unless_known(document(self.schema::<ResourceDocument>())),
            Own::Files => document(self.schema::<FilesDocument>()),
            Own::File => unless_known(bytes("text/plain", "The file as it is.")),
            Own::Public => unless_known(bytes("application/octet-stream", "The file as it is.")),
            Own::Export => unless_known(bytes("application/octet-stream", "The file as it is.")),
            Own::Revoke => json!({ "204": { "description": "The address leads nowhere." } }),
            Own::Tree => document(self.schema::<TreeDocument>()),
            Own::WriteFile | Own::DeleteFile | Own::RenameFile | Own::WriteVariables => {
                document(self.schema::<FileChange>())
            }
            Own::Checkout => document(self.schema::<Checkout>()),
            Own::Lsp => json!({ "101": { "description": "The connection is a WebSocket." } }),
            Own::Diagnostics | Own::CheckFiles => document(self.schema::<DiagnosticsDocument>()),
            Own::MetricsViews => document(self.schema::<MetricsViewsDocument>()),
            Own::MetricsView => document(self.schema::<MetricsViewDocument>()),
            Own::Board => document(self.schema::<BoardDocument>()),
            Own::Apis => document(self.schema::<ApisDocument>()),
            Own::Request => document(self.schema::<RequestDocument>()),
            Own::Watch => {
                let events = json!({ "type": "string" });
                json!({ "200": { "description": "Events.", "content": content("text/event-stream", events) } })
            }
            Own::Backup => bytes("application/octet-stream", "The archive."),
            Own::Events => {
                let schema = self.schema::<EventsTaken>();
                json!({ "202": { "description": "All events are stored.", "content": content("application/json", schema) } })
            }
        }
    }
}

/// Media types of rows other than JSON.
const ROWS_MEDIA: [&str; 6] = [
    "application/x-ndjson",
    "application/jsonl",
    "text/csv",
    "application/vnd.apache.arrow.stream",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.apache.parquet",
];

/// Removes the project's folder from a schema, since HTTP answers leave it out.
fn without_folder(schema: &mut Value) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove("root");
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|key| key != "root");
    }
}

/// Rewrites a choice among constants as an enumeration, which client generators support better.
fn enumerate(schema: &mut Schema) {
    let words_of = |choice: &Value| match (&choice["const"], &choice["enum"]) {
        (Value::String(word), _) => Some(vec![word.clone().into()]),
        (_, Value::Array(words)) => Some(words.clone()),
        _ => None,
    };
    let choices = schema.get("oneOf").and_then(Value::as_array);
    let words = choices.and_then(|choices| choices.iter().map(words_of).collect::<Option<Vec<_>>>());
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), Value::Array(words.concat()));
    }
    transform_subschemas(&mut enumerate, schema);
}

/// Adds the answer for a caller that already has the current document (304).
fn unless_known(mut responses: Value) -> Value {
    responses["200"]["headers"] =
        json!({ "ETag": { "description": "The version.", "schema": { "type": "string" } } });
    responses["304"] = json!({ "description": "The version is the one of `If-None-Match`." });
    responses
}

/// Returns the parameters of an operation's query, without adding the form's schema to the document.
fn query_of(offer: &Offer) -> Vec<Value> {
    let parameter = |(name, mut schema): (String, Value)| {
        let description = schema
            .as_object_mut()
            .and_then(|schema| schema.remove("description"));
        json!({
            "name": name,
            "in": "query",
            "description": description,
            "schema": schema,
        })
    };
    parameters(offer).into_iter().map(parameter).collect()
}

fn offer_of(does: &Does) -> Option<&Offer> {
    match does {
        Does::Answers(offer)
        | Does::Starts(offer)
        | Does::Selected(offer)
        | Does::Follows(offer)
        | Does::Rows(offer) => Some(offer),
        Does::Own(_) => None,
    }
}

fn accepted(schema: Value) -> Value {
    json!({
        "description": "The request is stored, and the work goes on.",
        "headers": { "Location": { "description": "The path of the request.", "schema": { "type": "string" } } },
        "content": content("application/json", schema),
    })
}

fn events() -> Value {
    json!({
        "application/cloudevents+json": { "schema": { "type": "object" } },
        "application/cloudevents-batch+json": { "schema": { "type": "array", "items": { "type": "object" } } },
        "application/json": { "schema": {} },
    })
}

fn header(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": { "type": "string" } })
}

fn idempotency_key() -> Value {
    header(
        "Idempotency-Key",
        "A text of the caller's: the first answer to it is given again for 24 hours, and nothing is done twice.",
    )
}

fn path_parameters(path: &str) -> Vec<Value> {
    std::iter::once("instance")
        .chain(named_in(path))
        .map(of_path)
        .collect()
}

/// Returns the names of the parameters in a path.
fn named_in(path: &str) -> impl Iterator<Item = &str> {
    let named = path
        .split('/')
        .filter_map(|piece| piece.strip_prefix('{')?.strip_suffix('}'));
    named.map(|name| name.trim_start_matches('*'))
}

fn of_path(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

/// Returns the query parameters of a path that has no operation behind it.
pub fn own_parameters(own: Own) -> Vec<Value> {
    let one = |name: &str, schema: Value, description: &str| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let filters = || {
        vec![
            one(
                "select",
                texts(),
                "The resources that are meant, in the language of the command line; all if there is none.",
            ),
            one("exclude", texts(), "The ones that are left out of those."),
            one("kind", texts(), "The kinds that are meant; all if there is none."),
            one(
                "health",
                texts(),
                "The healths that are meant; all if there is none.",
            ),
            one(
                "phase",
                texts(),
                "The phases that are meant; all if there is none.",
            ),
            one(
                "all",
                json!({ "type": "boolean" }),
                "True to list hidden resources too.",
            ),
            one(
                "fields",
                texts(),
                "The keys of resources that are wanted; all if there is none.",
            ),
        ]
    };
    match own {
        Own::List => {
            let mut list = filters();
            let limit = json!({ "type": "integer", "minimum": 1, "maximum": 1000 });
            list.push(one(
                "limit",
                limit,
                "The most resources of the page; 100 unless said.",
            ));
            list.push(one(
                "page",
                text(),
                "The token of the page, as the page before gave it.",
            ));
            list
        }
        Own::Watch => {
            let mut list = filters();
            list.push(one("from", text(), "The token to watch from: that of a page, or the id of the last event. Without one all that there is comes first."));
            list.push(one(
                "tree",
                text(),
                "The managed resource whose tree is followed.",
            ));
            list
        }
        Own::Resource => vec![
            one(
                "include",
                texts(),
                "What is added: `spec`, `state`, `checks` (results of a service's checks), `columns` (of the table, with the engine's types).",
            ),
            one(
                "fields",
                texts(),
                "The keys that are wanted; all if there is none.",
            ),
        ],
        Own::Board => vec![one(
            "variables",
            text(),
            "Values of the canvas's variables, as a JSON object; those of the file where there is none.",
        )],
        Own::Export => vec![one(
            "signature",
            text(),
            "The signature of the file's address, which lets its holder in without a role.",
        )],
        _ => Vec::new(),
    }
}
