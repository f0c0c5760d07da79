//! One line below the engine: nothing above the drivers names it, and quoting has one home.

use std::path::Path;

use crate::code::{code_of, without_tests, words};
use crate::{of_program, sources};

/// The folders of the library and the program.
const OURS: &[&str] = &["compilers", "runtime"];

/// The one file above the drivers that names the engine's own types: it opens an engine from settings.
const NAMES_THE_ENGINE: &str = "runtime/server/src/instance/open.rs";

/// Files that put signs before signs for readers of other languages than an engine's.
const OTHER_LANGUAGES: &[(&str, &str)] = &[
    ("compilers/src/yaml/load.rs", "a hint of YAML"),
    ("runtime/cli/src/render/graph.rs", "Mermaid and DOT"),
    (
        "runtime/controller/src/metrics/prometheus.rs",
        "labels of Prometheus",
    ),
    (
        "runtime/controller/src/store/postgres/dialect.rs",
        "names in the catalog, given back as they were",
    ),
    ("runtime/drivers/src/duckdb/export.rs", "lines of CSV"),
    (
        "runtime/outputs/src/database.rs",
        "settings of Postgres' own clients",
    ),
    ("runtime/stategraph/src/export/dot.rs", "DOT"),
];

/// Ways in which a sign is doubled or escaped.
const ESCAPES: [&str; 6] = [
    r#"replace('\'', "''")"#,
    r#"replace('\'', "\\'")"#,
    r#"replace('"', "\"\"")"#,
    r#"replace('"', "\\\"")"#,
    r#"replace('`', "``")"#,
    r#"replace('\\', "\\\\")"#,
];

/// Returns true if code names the module of the engine, or the engine's dialect.
fn names_the_engine(code: &str) -> bool {
    let words = words(code);
    let module = words
        .windows(2)
        .any(|two| two == ["duckdb", "::"] || two == ["::", "duckdb"]);
    // A system whose files are attached is another thing of that name.
    let dialect = words
        .windows(3)
        .any(|three| three[2] == "DuckDb" && three[..2] != ["System", "::"]);
    module || dialect
}

/// Returns true if a source doubles or escapes a sign, or says that it quotes.
fn quotes(text: &str) -> bool {
    let says = [
        "fn quote_identifier",
        "fn quote_literal",
        "fn quote_text",
        "fn quote_name",
    ];
    let text = of_program(text);
    ESCAPES.iter().chain(&says).any(|sign| text.contains(sign))
}

#[test]
fn one_file_above_the_drivers_names_the_engine() {
    let named: Vec<String> = sources(OURS, &["runtime/dialect", "runtime/drivers"])
        .into_iter()
        .filter(|(_, text)| names_the_engine(&without_tests(&code_of(text))))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        named,
        [NAMES_THE_ENGINE],
        "what an engine does is asked through `Olap`, how it writes through `ENGINE`"
    );
}

#[test]
fn the_neutral_side_of_the_drivers_names_no_engine() {
    let neutral = ["runtime/drivers/src/olap", "runtime/drivers/src/olap.rs"];
    let all = sources(OURS, &[])
        .into_iter()
        .filter(|(path, _)| neutral.iter().any(|place| Path::new(path).starts_with(place)));
    let all: Vec<(String, String)> = all.collect();
    assert!(all.len() > 10, "only {} files were found", all.len());
    for (path, text) in all {
        let code = without_tests(&code_of(&text));
        let words = words(&code);
        let module = words.contains(&"duckdb") || words.windows(2).any(|two| two == ["dialect", "DuckDb"]);
        assert!(!module && !words.contains(&"ENGINE"), "{path} knows an engine");
    }
}

#[test]
fn quoting_is_implemented_in_the_dialect_alone() {
    let found: Vec<String> = sources(OURS, &["runtime/dialect"])
        .into_iter()
        .filter(|(_, text)| quotes(text))
        .map(|(path, _)| path)
        .collect();
    let listed: Vec<&str> = OTHER_LANGUAGES.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        found, listed,
        "names and texts of SQL are quoted by `watershed_dialect`"
    );
}

#[test]
fn engines_and_quotes_are_found_where_they_are_named() {
    assert!(names_the_engine("use watershed_drivers::duckdb::Engine;"));
    assert!(names_the_engine("use watershed_drivers::{duckdb::Engine, olap};"));
    assert!(names_the_engine("plan.statement(&DuckDb)"));
    assert!(!names_the_engine("System::DuckDb => None, let duckdb = 1;"));
    assert!(quotes(r#"format!("'{}'", text.replace('\'', "''"))"#));
    assert!(!quotes(r#"text.replace('a', "b")"#));
}
