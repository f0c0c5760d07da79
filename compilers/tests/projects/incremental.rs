//! An incremental parse equals a fresh one, whatever happened to the files on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use crate::{case::event, engine::Engine};
use proptest::prelude::*;
use watershed_compilers::{FileEvent, FileProblem, Options, Project, Resource, ResourceKey};

const MANIFESTS: [&str; 9] = [
    "",
    "theme: a\nexplores: {lock_time_zone: true}\nmetrics_views: {first_day_of_week: 1}\n",
    "display_name: x\n",
    "models: {materialize: true}\n",
    "# moved\nmodels: {materialize: true, timeout: 60}\nenv: {x: manifest}\n",
    "env: {x: a, y: b}\nolap_connector: warehouse\nconnectors: [{type: duckdb, name: warehouse}]\n",
    "ignore_paths: [/models/nested, /sub]\n",
    "broken: [",
    "models: {connector: nowhere}\n",
];
const ENVS: [&str; 4] = ["x=1\n", "x=2\ny=3\n", "nonsense\n", ""];
const SQL: [&str; 16] = [
    "SELECT 1 AS x",
    "SELECT 1 AS x -- comment",
    "SELECT * FROM a",
    "SELECT * FROM b, c",
    "SELECT * FROM a JOIN s USING (x)",
    "SELECT FROM FROM",
    "-- @materialize: true\nSELECT * FROM B",
    "-- @name: a\nSELECT 2",
    "-- @connector: shop\nSELECT * FROM a",
    "SELECT '{{ .env.x }}' FROM {{ ref \"b\" }}",
    "SELECT 1 {{ if dev }} FROM a {{ else }} FROM c {{ end }}",
    "SELECT {{ if }}",
    "-- @type: source\n-- @connector: duckdb\nSELECT * FROM 'x.csv'",
    "",
    "PIVOT a ON x USING count(*)",
    "-- @type: theme\nSELECT 1",
];
const YAML: [&str; 34] = [
    "sql: SELECT 1",
    "sql: SELECT * FROM a",
    "materialize: true",
    "materialize: perhaps",
    "a: 1\na: 2",
    "name: c\nsql: SELECT * FROM b",
    "refs: [a, report/r]\nsql: SELECT 1",
    "connector: local_file\npath: '{{ .env.x }}.csv'",
    "driver: postgres",
    "driver: duckdb\nname: warehouse",
    "type: explore",
    "type: metrics_view\nversion: 0",
    "type: metrics_view\nversion: 0\nmodel: a\nmeasures: [{expression: count(*)}]",
    "type: metrics_view\nversion: 1\ntable: b\nmeasures: [{expression: '{{ .env.x }}'}]\nexplore: {name: c, theme: s}",
    "type: metrics_view\nversion: 1\nparent: a\nannotations: [{model: c}]",
    "type: explore\nmetrics_view: a\ndimensions: x",
    "type: canvas\nrows: [{items: [{kpi: {metrics_view: a}}, {component: b}]}]",
    "type: component\nname: a--component-0-0\nmarkdown: {content: x}",
    "type: theme\nlight: {primary: teal}",
    "type: theme\nlight: {primary: teel}",
    "type: migration\nsql: SELECT '{{ .env.x }}'",
    "driver: duckdb\nname: duckdb\npath: '{{ .env.x }}'",
    "type: model\nenv: {dev: {sql: SELECT * FROM c}}\nsql: SELECT 1",
    "- list",
    "type: api\nsql: SELECT * FROM a",
    "type: api\nmetrics_sql: SELECT x FROM a",
    "type: api\napi: c",
    "type: alert\ndata: {sql: SELECT '{{ .env.x }}' FROM b}",
    "type: alert\ndata: {api: a}",
    "type: report\ndata: {metrics: {metrics_view: a}}\nexport: {format: csv}\nnotify: {slack: {channels: [x]}}",
    "type: metrics_view\nversion: 1\nmodel: a\nmeasures: [{expression: count(*)}]\nsecurity: {access: true, row_filter: x IN (SELECT x FROM c)}",
    "type: model\nsql: SELECT 1 AS x\ntests: [{relationships: {column: x, to: b}}]",
    "type: model\nsql: SELECT * FROM c\ntests: [{relationships: {column: x, to: a}}, {relationships: {column: x, to: b}}]",
    "type: model\ntests: [{relationships: {column: x, to: c}, severity: warn}]",
];
const PATHS: [&str; 22] = [
    "rill.yaml",
    "watershed.yaml",
    ".env",
    ".dev.env",
    "sub/.env",
    "models/a.sql",
    "models/a.yaml",
    "models/a.yml",
    "models/A.sql",
    "models/b.sql",
    "models/b.yaml",
    "models/c.sql",
    "models/nested/a.sql",
    "models/nested/c.yaml",
    "sources/a.yaml",
    "sources/s.yaml",
    "connectors/shop.yaml",
    "connectors/z/shop.yaml",
    "dashboards/a.yaml",
    "explores/a.yaml",
    "skills/x/SKILL.md",
    "loose.yaml",
];

type Files = BTreeMap<String, Result<Arc<[u8]>, FileProblem>>;

/// One thing that happens to the files.
#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Remove(usize),
    Rename(usize, usize),
    Swap(usize, usize),
    Spoil(usize),
}

fn content(path: usize, choice: usize) -> &'static str {
    let pick = |from: &'static [&'static str]| from[choice % from.len()];
    match PATHS[path] {
        "rill.yaml" | "watershed.yaml" => pick(&MANIFESTS),
        path if path.ends_with(".env") => pick(&ENVS),
        path if path.ends_with(".sql") => pick(&SQL),
        _ => pick(&YAML),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS.len();
    prop_oneof![
        8 => (path.clone(), 0..34_usize).prop_map(|(path, choice)| Step::Write(path, choice)),
        3 => path.clone().prop_map(Step::Remove),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (path.clone(), path.clone()).prop_map(|(one, other)| Step::Swap(one, other)),
        1 => path.prop_map(Step::Spoil),
    ]
}

/// Does a step to the files; answers what is to be told of it.
fn perform(files: &mut Files, step: &Step) -> Vec<FileEvent> {
    let mut touched = Vec::new();
    let mut set = |files: &mut Files, path: usize, content: Option<Result<Arc<[u8]>, FileProblem>>| {
        match content {
            Some(content) => drop(files.insert(PATHS[path].to_owned(), content)),
            None => drop(files.remove(PATHS[path])),
        }
        touched.push(path);
    };
    match *step {
        Step::Write(path, choice) => set(files, path, Some(Ok(content(path, choice).as_bytes().into()))),
        Step::Remove(path) => set(files, path, None),
        Step::Rename(from, to) => {
            let moved = files.get(PATHS[from]).cloned();
            set(files, from, None);
            set(files, to, moved);
        }
        Step::Swap(one, other) => {
            let (first, second) = (files.get(PATHS[one]).cloned(), files.get(PATHS[other]).cloned());
            set(files, one, second);
            set(files, other, first);
        }
        Step::Spoil(path) => set(files, path, Some(Err(FileProblem::Io("gone away".into())))),
    }
    touched
        .into_iter()
        .map(|path| event(PATHS[path], files.get(PATHS[path])))
        .collect()
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

fn resources(project: &Project) -> BTreeMap<ResourceKey, Resource> {
    project
        .resources()
        .map(|resource| (resource.key(), resource.clone()))
        .collect()
}

fn assert_equal(incremental: &Project, files: &Files) {
    let mut fresh = Project::new(incremental.options().clone());
    fresh.apply(
        files.iter().map(|(path, content)| event(path, Some(content))),
        engine(),
    );
    assert_eq!(resources(incremental), resources(&fresh));
    assert_eq!(incremental.diagnostics(), fresh.diagnostics());
    assert_eq!(incremental.trust(), fresh.trust());
    assert_eq!(incremental.broken_paths(), fresh.broken_paths());
    assert_eq!(incremental.variables(), fresh.variables());
    assert_eq!(incremental.file_count(), fresh.file_count());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_incremental_parse_equals_a_fresh_one(
        batches in prop::collection::vec(prop::collection::vec(step(), 1..4), 1..14),
        environment in prop_oneof![Just("dev"), Just("prod")],
    ) {
        let options = Options { environment: environment.to_owned(), ..Options::default() };
        let mut project = Project::new(options);
        let mut files = Files::new();
        files.insert("rill.yaml".into(), Ok(b""[..].into()));
        project.apply([event("rill.yaml", files.get("rill.yaml"))], engine());
        for batch in &batches {
            let before = resources(&project);
            let events: Vec<_> = batch.iter().flat_map(|step| perform(&mut files, step)).collect();
            let changes = project.apply(events.clone(), engine());
            assert_equal(&project, &files);

            let after = resources(&project);
            let keys = |wanted: fn(&Option<&Resource>, &Option<&Resource>) -> bool| -> Vec<ResourceKey> {
                let all: BTreeSet<_> = before.keys().chain(after.keys()).collect();
                all.into_iter().filter(|key| wanted(&before.get(key), &after.get(key))).cloned().collect()
            };
            prop_assert_eq!(&changes.added, &keys(|before, after| before.is_none() && after.is_some()));
            prop_assert_eq!(&changes.removed, &keys(|before, after| before.is_some() && after.is_none()));
            let both = |before: &Option<&Resource>, after: &Option<&Resource>| {
                before.is_some() && after.is_some() && before != after
            };
            prop_assert_eq!(&changes.changed, &keys(both));

            let again = project.apply(
                files.iter().map(|(path, content)| event(path, Some(content))), engine());
            prop_assert!(again.is_empty(), "equal bytes are no change: {:?}", again);
        }
    }
}
