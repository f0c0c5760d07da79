//! The cases show every code and every key of the format.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use watershed_compilers::{Code, Project, schema};

use crate::{case::Case, engine::Engine};

/// The texts of all cases.
fn texts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/compilers");
    let folders = ["ok", "err"].map(|folder| root.join(folder));
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let cases = paths.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    cases
        .map(|path| fs::read_to_string(path).expect("a case"))
        .collect()
}

/// Codes that no case of files can show, with the tests that do.
const SHOWN_ELSEWHERE: [(Code, &str); 1] = [(
    Code::EngineLacks,
    "`needs`: files alone name no engine that lacks something",
)];

#[test]
fn every_code_is_shown_by_a_case() {
    let engine = Engine::new();
    let mut shown = BTreeSet::new();
    for text in texts() {
        let case = Case::read(&text);
        let mut project = Project::new(case.options.clone());
        project.apply(case.events(), &engine);
        shown.extend(project.diagnostics().iter().map(|one| one.code));
    }
    shown.extend(SHOWN_ELSEWHERE.map(|(code, _)| code));
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !shown.contains(code)).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
}

#[test]
fn every_key_stands_in_a_case() {
    let texts = texts().concat();
    let mut missing = BTreeSet::new();
    for name in schema::names() {
        let schema = schema::schema(name).expect(name);
        let blocks = schema["$defs"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.values());
        for block in std::iter::once(&schema).chain(blocks) {
            let keys = block["properties"]
                .as_object()
                .into_iter()
                .flat_map(|all| all.keys());
            let is_written = |key: &&String| {
                [format!("{key}:"), format!("@{key}"), format!("{key}.")]
                    .iter()
                    .any(|written| texts.contains(written))
            };
            missing.extend(
                keys.filter(|key| !is_written(key))
                    .map(|key| format!("{name}: {key}")),
            );
        }
    }
    assert!(missing.is_empty(), "no case has {missing:?}");
}

#[test]
fn schemas_refer_only_to_what_they_define() {
    fn refs<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| refs(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| refs(item, found)),
            _ => {}
        }
    }
    for name in schema::names() {
        let schema = schema::schema(name).expect(name);
        let mut found = Vec::new();
        refs(&schema, &mut found);
        for to in found {
            assert!(
                schema.pointer(to.trim_start_matches('#')).is_some(),
                "{name}: {to}"
            );
        }
    }
}
