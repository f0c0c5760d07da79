//! JSON Schemas of project files, generated from the tables of keys by which the files are read.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    configuration::CONFIGURATION,
    kinds::{self, COMMON},
    read::manifest::MANIFEST,
    resource::{FileKind, WORDS},
    yaml::{Block, Rest, Takes},
};

/// The name by which callers ask for the schema of `rill.yaml`.
pub const MANIFEST_NAME: &str = "manifest";

/// The name of the schema of a service's configuration.
pub const CONFIGURATION_NAME: &str = "configuration";

/// Returns the names of all schemas of project files: the kinds that files declare, and `manifest`.
pub fn names() -> Vec<&'static str> {
    let kinds = WORDS.into_iter().filter(|word| keys(word).is_some());
    kinds.chain([MANIFEST_NAME]).collect()
}

/// Returns the JSON Schema of a kind's files, of the manifest, or of a service's configuration.
pub fn schema(name: &str) -> Option<Value> {
    let mut found = Schema::default();
    let is_kind = name != MANIFEST_NAME && name != CONFIGURATION_NAME;
    let (mut properties, rest) = if name == MANIFEST_NAME {
        (found.properties(&MANIFEST), Rest::Refused)
    } else if name == CONFIGURATION_NAME {
        (found.properties(&CONFIGURATION), Rest::Refused)
    } else {
        let keys = keys(name)?;
        let mut properties = found.properties(&COMMON);
        properties.append(&mut found.properties(keys));
        (properties, keys.rest)
    };
    if is_kind {
        properties.insert(
            "type".to_owned(),
            json!({"type": "string", "description": "The kind of the resource."}),
        );
    }
    Some(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": rest == Rest::Kept,
        "$defs": found.blocks,
    }))
}

/// Returns the meaning of a key of a kind or of the manifest, and the key to use instead, if it is deprecated.
pub fn key(name: &str, key: &str) -> Option<(&'static str, Option<&'static str>)> {
    let block = if name == MANIFEST_NAME {
        Some(&MANIFEST)
    } else {
        keys(name)
    };
    let found = block
        .and_then(|block| block.key(key))
        .or_else(|| COMMON.key(key))?;
    Some((found.meaning, found.instead))
}

/// Returns the keys of a kind or of the manifest that are not deprecated.
pub fn current_keys(name: &str) -> Vec<&'static str> {
    match keys(name) {
        _ if name == MANIFEST_NAME => MANIFEST.current().collect(),
        Some(block) => COMMON.current().chain(block.current()).collect(),
        None => Vec::new(),
    }
}

fn keys(kind: &str) -> Option<&'static Block> {
    kinds::keys(FileKind::read(kind)?.kind())
}

#[derive(Default)]
struct Schema {
    blocks: BTreeMap<&'static str, Value>,
}

impl Schema {
    fn properties(&mut self, block: &'static Block) -> Map<String, Value> {
        let mut properties = Map::new();
        for key in block.keys() {
            let mut value = self.value(&key.takes);
            if let Value::Object(value) = &mut value {
                let meaning = match key.instead {
                    Some(instead) => format!("{} An old name: use `{instead}`.", key.meaning),
                    None => key.meaning.to_owned(),
                };
                value.insert("description".to_owned(), meaning.into());
                if key.instead.is_some() {
                    value.insert("deprecated".to_owned(), true.into());
                }
            }
            properties.insert(key.name.to_owned(), value);
        }
        properties
    }

    fn value(&mut self, takes: &'static Takes) -> Value {
        match takes {
            Takes::Any => json!({}),
            Takes::Text => json!({"type": ["string", "number", "boolean", "null"]}),
            Takes::Name(kind) => json!({"type": ["string", "number", "null"], "x-names": kind}),
            Takes::Bool => json!({"type": ["boolean", "null"]}),
            Takes::Count => json!({"type": ["integer", "null"], "minimum": 0}),
            Takes::Duration => json!({"type": ["integer", "string", "null"]}),
            Takes::Sql => json!({"type": ["string", "null"]}),
            Takes::Word(words) => json!({"enum": words}),
            Takes::Texts => {
                let text = json!({"type": ["string", "number", "boolean", "null"]});
                json!({"anyOf": [text, {"type": "array", "items": text}]})
            }
            Takes::Map(inner) => {
                json!({"type": ["object", "null"], "additionalProperties": self.value(inner)})
            }
            Takes::List(inner) => json!({"type": ["array", "null"], "items": self.value(inner)}),
            Takes::Either(ways) => {
                let ways: Vec<Value> = ways.iter().map(|way| self.value(way)).collect();
                json!({"anyOf": ways})
            }
            Takes::Block(block) => {
                self.block(block);
                json!({"$ref": format!("#/$defs/{}", block.name)})
            }
        }
    }

    /// Adds a block of keys to the definitions.
    fn block(&mut self, block: &'static Block) {
        if self.blocks.contains_key(block.name) {
            return;
        }
        // Entered first: a block may hold itself.
        self.blocks.insert(block.name, Value::Null);
        let properties = self.properties(block);
        let schema = json!({
            "type": ["object", "null"],
            "properties": properties,
            "additionalProperties": block.rest == Rest::Kept,
        });
        self.blocks.insert(block.name, schema);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_schemas_of_the_repository_are_those_of_the_tables() {
        let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas");
        let bless = std::env::var_os("WATERSHED_BLESS").is_some();
        let kinds = names()
            .into_iter()
            .map(|name| (name, schemas.join(format!("project/{name}.json"))));
        let of_services = schemas.join(format!("{CONFIGURATION_NAME}.json"));
        for (name, path) in kinds.chain([(CONFIGURATION_NAME, of_services)]) {
            let expected = format!("{:#}\n", schema(name).expect(name));
            if bless {
                fs::write(&path, expected).expect("writes");
            } else {
                let written = fs::read_to_string(&path).unwrap_or_default();
                assert_eq!(
                    written,
                    expected,
                    "WATERSHED_BLESS=1 writes {} anew",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn every_old_name_of_a_key_names_one_that_exists() {
        for name in names() {
            let block = if name == MANIFEST_NAME {
                &MANIFEST
            } else {
                keys(name).expect(name)
            };
            for (key, instead) in block.keys().filter_map(|key| Some((key.name, key.instead?))) {
                let first = instead.split('.').next().unwrap_or_default();
                let exists = block.key(first).is_some() || COMMON.key(first).is_some();
                assert!(exists, "{name}: {key} -> {instead}");
            }
        }
    }
}
