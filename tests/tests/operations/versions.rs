//! The API's first version as it began: what stands in its document stays, under its name and no stricter.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use watershed::api::http::openapi;

/// The OpenAPI document with which the first version began. Additions need no change of it.
const BEGAN: &str = include_str!("openapi-v1.json");

/// The direction in which a value travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// From the client: nothing that was accepted may be refused.
    In,
    /// To the client: nothing that was told may be missing, and nothing may be of a type that was not.
    Out,
}

/// The comparison of two documents, with what breaks clients of the first.
struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    broken: Vec<String>,
    /// Pairs of named schemas that were compared already; schemas may name themselves.
    seen: BTreeSet<(String, String, bool)>,
}

/// Returns what breaks a client of the old document.
fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = Comparison {
        old,
        new,
        broken: Vec::new(),
        seen: BTreeSet::new(),
    };
    for (path, methods) in old["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let at = format!("{method} {path}");
            match new["paths"][path].get(method) {
                Some(now) => comparison.operation(&at, operation, now),
                None => comparison.broken.push(format!("{at} is gone")),
            }
        }
    }
    comparison.broken
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value[key].as_object().into_iter().flatten()
}

/// The types of a schema; none if it takes any.
fn types(schema: &Value) -> Option<BTreeSet<&str>> {
    match &schema["type"] {
        Value::String(one) => Some(BTreeSet::from([one.as_str()])),
        Value::Array(several) => Some(several.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Alternatives of a schema, nullable ones for example.
fn branches(schema: &Value) -> &[Value] {
    let any = list(schema, "anyOf");
    if any.is_empty() {
        list(schema, "oneOf")
    } else {
        any
    }
}

impl Comparison<'_> {
    fn tell(&mut self, is_broken: bool, text: impl FnOnce() -> String) {
        if is_broken {
            self.broken.push(text());
        }
    }

    fn operation(&mut self, at: &str, old: &Value, new: &Value) {
        self.tell(old["operationId"] != new["operationId"], || {
            format!("{at} has another operationId")
        });
        let place = |it: &Value| (it["name"].clone(), it["in"].clone());
        for parameter in list(old, "parameters") {
            let name = &parameter["name"];
            match list(new, "parameters")
                .iter()
                .find(|now| place(now) == place(parameter))
            {
                Some(now) => {
                    let is_new_duty = now["required"] == true && parameter["required"] != true;
                    self.tell(is_new_duty, || format!("{at} needs {name} now"));
                    self.schema(
                        &format!("{at} {name}"),
                        Way::In,
                        &parameter["schema"],
                        &now["schema"],
                    );
                }
                None => self.broken.push(format!("{at} takes {name} no more")),
            }
        }
        for now in list(new, "parameters") {
            let is_new = !list(old, "parameters").iter().any(|it| place(it) == place(now));
            self.tell(is_new && now["required"] == true, || {
                format!("{at} needs {} now", now["name"])
            });
        }
        let is_new_duty = new["requestBody"]["required"] == true && old["requestBody"]["required"] != true;
        self.tell(is_new_duty, || format!("{at} needs a body now"));
        self.contents(at, Way::In, &old["requestBody"], &new["requestBody"]);
        for (status, response) in entries(old, "responses") {
            match new["responses"].get(status) {
                Some(now) => self.contents(&format!("{at} {status}"), Way::Out, response, now),
                None => self.broken.push(format!("{at} has no answer {status} any more")),
            }
        }
    }

    fn contents(&mut self, at: &str, way: Way, old: &Value, new: &Value) {
        for (media, content) in entries(old, "content") {
            match new["content"].get(media) {
                Some(now) => self.schema(at, way, &content["schema"], &now["schema"]),
                None => self.broken.push(format!("{at} has no {media} any more")),
            }
        }
    }

    fn schema(&mut self, at: &str, way: Way, old: &Value, new: &Value) {
        let names = (old["$ref"].as_str(), new["$ref"].as_str());
        let pair = (
            names.0.unwrap_or_default().to_owned(),
            names.1.unwrap_or_default().to_owned(),
            way == Way::In,
        );
        if names.0.is_some() && !self.seen.insert(pair) {
            return;
        }
        let (old, new) = (found(self.old, old), found(self.new, new));
        self.shape(at, way, old, new);
        for (key, property) in entries(old, "properties") {
            match new["properties"].get(key) {
                Some(now) => self.schema(&format!("{at}.{key}"), way, property, now),
                None => self.broken.push(format!("{at}.{key} is gone")),
            }
        }
        if old.get("items").is_some() {
            self.schema(&format!("{at}[]"), way, &old["items"], &new["items"]);
        }
        for branch in branches(old) {
            let fits = branches(new).iter().any(|now| {
                let mut inner = Comparison {
                    broken: Vec::new(),
                    seen: self.seen.clone(),
                    ..*self
                };
                inner.schema(at, way, branch, now);
                inner.broken.is_empty()
            });
            self.tell(!fits, || format!("{at} has lost one of its forms: {branch}"));
        }
    }

    /// Compares what a schema says itself, without its parts.
    fn shape(&mut self, at: &str, way: Way, old: &Value, new: &Value) {
        let (narrower, wider) = match way {
            Way::In => (old, new),
            Way::Out => (new, old),
        };
        let fits = match (types(narrower), types(wider)) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(narrower), Some(wider)) => {
                // Whole numbers are numbers.
                let is_wide =
                    |one: &&str| wider.contains(*one) || *one == "integer" && wider.contains("number");
                narrower.iter().all(is_wide)
            }
        };
        self.tell(!fits, || {
            format!("{at} has another type: {} was {}", new["type"], old["type"])
        });
        let values = |schema: &Value| -> BTreeSet<String> {
            let one = schema.get("const").into_iter();
            one.chain(list(schema, "enum")).map(Value::to_string).collect()
        };
        let (before, now) = (values(old), values(new));
        let is_lost = !now.is_empty() && !before.is_subset(&now)
            || way == Way::In && before.is_empty() && !now.is_empty();
        self.tell(is_lost, || {
            format!("{at} has lost values: {now:?} were {before:?}")
        });
        let required = |schema| -> BTreeSet<&str> {
            list(schema, "required")
                .iter()
                .filter_map(Value::as_str)
                .collect()
        };
        let (before, now) = (required(old), required(new));
        let (more, less) = match way {
            Way::In => (before, now),
            Way::Out => (now, before),
        };
        let wrong: Vec<&&str> = less.difference(&more).collect();
        self.tell(!wrong.is_empty(), || match way {
            Way::In => format!("{at} needs {wrong:?} now"),
            Way::Out => format!("{at} does not always have {wrong:?} any more"),
        });
        if way == Way::In {
            let is_closed = new["additionalProperties"] == false && old["additionalProperties"] != false;
            self.tell(
                is_closed && types(old).is_none_or(|types| types.contains("object")),
                || format!("{at} takes no other keys any more"),
            );
            for (key, is_upper) in [
                ("maximum", true),
                ("maxLength", true),
                ("maxItems", true),
                ("minimum", false),
                ("minLength", false),
            ] {
                let bound = |schema: &Value| schema[key].as_f64();
                let is_stricter = match (bound(old), bound(new)) {
                    (_, None) => false,
                    (None, Some(_)) => true,
                    (Some(old), Some(new)) if is_upper => new < old,
                    (Some(old), Some(new)) => new > old,
                };
                self.tell(is_stricter, || format!("{at} has a stricter {key}"));
            }
        }
    }
}

/// Returns the schema itself where another names it.
fn found<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(name) => document
            .pointer(name.trim_start_matches('#'))
            .expect("the schema is there"),
        None => schema,
    }
}

#[test]
fn s_api13_nothing_of_the_first_version_is_removed_renamed_or_made_stricter() {
    let began: Value = serde_json::from_str(BEGAN).expect("the document can be read");
    let broken = breaks(&began, &openapi::document());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn s_api13_each_way_of_breaking_a_client_is_found() {
    let began: Value = serde_json::from_str(BEGAN).expect("the document can be read");
    let page = "/paths/~1v1~1instances~1{instance}~1resources/get";
    let schema = "/components/schemas";
    assert!(began.pointer(page).is_some(), "the path is in the document");
    type Change = fn(&mut Value);
    let changes: [(&str, &str, Change); 9] = [
        ("/paths", "is gone", |it| {
            drop(
                it.as_object_mut()
                    .expect("paths")
                    .remove("/v1/instances/{instance}/graph"),
            )
        }),
        (page, "another operationId", |it| {
            it["operationId"] = json!("other")
        }),
        (page, "takes", |it| {
            it["parameters"]
                .as_array_mut()
                .expect("them")
                .retain(|it| it["name"] != "kind")
        }),
        (page, "needs", |it| {
            it["parameters"]
                .as_array_mut()
                .expect("them")
                .push(json!({"name": "x", "in": "query", "required": true, "schema": {}}))
        }),
        (page, "no answer", |it| {
            drop(it["responses"].as_object_mut().expect("them").remove("200"))
        }),
        (schema, "is gone", |it| {
            drop(
                it["ResourceDocument"]["properties"]
                    .as_object_mut()
                    .expect("them")
                    .remove("refs"),
            )
        }),
        (schema, "another type", |it| {
            it["ResourceDocument"]["properties"]["runs_total"] = json!({"type": "string"})
        }),
        (schema, "lost values", |it| {
            it["Phase"]["enum"]
                .as_array_mut()
                .expect("them")
                .retain(|it| it != "idle")
        }),
        (schema, "not always", |it| {
            it["ResourceDocument"]["required"]
                .as_array_mut()
                .expect("them")
                .retain(|it| it != "kind")
        }),
    ];
    for (place, told, change) in changes {
        let mut now = began.clone();
        change(now.pointer_mut(place).expect(place));
        let broken = breaks(&began, &now);
        assert!(
            broken.iter().any(|broken| broken.contains(told)),
            "{told}: {broken:?}"
        );
    }
    // What is added breaks nobody.
    let mut now = began.clone();
    now["paths"]["/v1/new"] = json!({"get": {"operationId": "get_new", "responses": {}}});
    now["components"]["schemas"]["ResourceDocument"]["properties"]["new"] = json!({"type": "string"});
    assert_eq!(breaks(&began, &now), Vec::<String>::new());
}
