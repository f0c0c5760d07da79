//! Projects that need of their engine what it lacks: told at the place that needs it.

use watershed_compilers::engine::Engine as Offer;
use watershed_compilers::{FileEvent, Options, Project, Trust};

use crate::engine::Engine;

const FILES: [(&str, &str); 8] = [
    ("watershed.yaml", "olap_connector: small\ntrash: {size: 1GB}\n"),
    ("connectors/shop.yaml", "type: connector\ndriver: postgres\n"),
    (
        "models/days.yaml",
        "type: model\npartitions: {sql: SELECT 1 AS day}\nsql: SELECT 1 AS x\n",
    ),
    (
        "models/around.yaml",
        "type: model\nsql: SELECT 1 AS x\npre_exec: SET VARIABLE y = 1\n",
    ),
    (
        "models/written.yaml",
        "type: model\nsql: SELECT 1 AS x\noutput: {connector: shop, table: x}\n",
    ),
    (
        "models/read.yaml",
        "type: model\nconnector: shop\nsql: SELECT 1 AS x\n",
    ),
    (
        "migrations/made.yaml",
        "type: migration\nsql: CREATE TABLE y AS SELECT 1 AS x\n",
    ),
    ("models/plain.sql", "SELECT 1 AS x"),
];

/// Compiles the files for an engine with the parts for which `has` answers so. Returns `code path:line` of what is told, and
/// whether the parse is the whole truth.
fn told(has: fn(&str) -> bool) -> (Vec<String>, Trust) {
    let mut project = Project::new(Options {
        engines: vec![Offer::new("small", has)],
        ..Options::default()
    });
    let events = FILES.map(|(path, text)| FileEvent::Written {
        path: path.to_owned(),
        content: text.as_bytes().into(),
    });
    project.apply(events, &Engine::new());
    let told = project
        .diagnostics()
        .iter()
        .filter(|found| found.code.as_str() == "engine-lacks");
    let told = told.map(|found| format!("{}:{} {}", found.path, found.span.line, found.message));
    (told.collect(), project.trust())
}

#[test]
fn what_an_engine_lacks_is_told_where_it_is_needed() {
    let (told, trust) = told(|part| part == "builds");
    let expected = [
        "migrations/made.yaml:1 the engine `small` has no migrations",
        "models/around.yaml:3 the engine `small` has no statements around builds",
        "models/days.yaml:2 the engine `small` has no stages of partitions",
        "models/read.yaml:2 the engine `small` has no databases of other systems to read from",
        "models/written.yaml:3 the engine `small` has no outputs in files and other databases",
        "watershed.yaml:2 the engine `small` has no trash",
    ];
    assert_eq!(told, expected);
    assert_eq!(trust, Trust::Whole);
}

#[test]
fn an_engine_that_has_all_is_asked_for_anything() {
    assert_eq!(told(|_| true), (Vec::new(), Trust::Whole));
}

#[test]
fn an_engine_in_which_nothing_can_be_built_is_refused_at_the_key_that_chose_it() {
    let (told, trust) = told(|part| part != "builds");
    assert_eq!(
        told,
        ["watershed.yaml:1 the engine `small` has no builds of models"]
    );
    assert_eq!(trust, Trust::EngineUnfit);
}
