//! Statements in an engine's own words stand in drivers and dialects alone.
//!
//! Texts between quotes are looked at. One with a word of [`OWN`] is in the words of an engine; one that begins like a statement is
//! plain SQL, which every engine takes. Files with either are listed with a reason.

use crate::code::literals;
use crate::{of_program, sources};

/// The folders of the library and the program.
const OURS: &[&str] = &["compilers", "runtime"];

/// The homes of engines' words, and of the catalog's, which is another database.
const HOMES: &[&str] = &[
    "runtime/dialect",
    "runtime/drivers",
    "runtime/callers/src/state",
    "runtime/callers/src/state.rs",
    "runtime/controller/src/store",
];

/// Parts of texts that not every engine reads, or not in the same way.
const OWN: &[&str] = &[
    "(VALUES ",
    "::BIGINT",
    "::DATE",
    "::DOUBLE",
    "::INT",
    "::TIMESTAMP",
    "::VARCHAR",
    "ATTACH ",
    "BY NAME",
    "CHECKPOINT",
    "COPY ",
    "CREATE SECRET",
    "DESCRIBE",
    "EXCEPT ALL",
    "EXCLUDE (",
    "GROUP BY ALL",
    "INSTALL ",
    "LOAD ",
    "NOT MATERIALIZED",
    "ORDER BY ALL",
    "PIVOT",
    "PRAGMA ",
    "QUALIFY",
    "SET GLOBAL",
    "TRY(",
    "TRY_CAST",
    "_watershed.",
    "arg_max(",
    "cast_to_type",
    "current_database()",
    "duckdb_",
    "epoch_ms(",
    "epoch_us(",
    "from_json(",
    "json_serialize",
    "list_filter(",
    "make_timestamp(",
    "read_blob(",
    "read_csv(",
    "read_json(",
    "read_parquet(",
    "read_text(",
    "regexp_matches(",
    "sniff_csv",
    "starts_with(",
    "strftime(",
    "to_seconds(",
    "typeof(",
    "unnest(",
    "version()",
];

/// Words that a statement begins with.
const BEGINNINGS: &[&str] = &[
    "ALTER ",
    "CREATE ",
    "DELETE ",
    "DROP ",
    "INSERT ",
    "MERGE ",
    "SELECT ",
    "TRUNCATE ",
    "UPDATE ",
    "WITH ",
];

/// Files above the drivers with words of an engine, each with its reason.
const LISTED: &[(&str, &str)] = &[
    (
        "compilers/src/diagnostics/code.rs",
        "examples of mistakes, for people",
    ),
    (
        "compilers/src/kinds/inert.rs",
        "hints: what to write in `init_sql`",
    ),
    (
        "compilers/src/sql/guard/shapes.rs",
        "names of the engine's parse tree, and no statement",
    ),
    (
        "runtime/metrics/src/sql/write.rs",
        "the writer of planned trees, which asks the dialect for names, constants and types",
    ),
    (
        "runtime/outputs/src/failure/sql.rs",
        "messages of the engine, by which errors get their codes",
    ),
    (
        "runtime/reconcilers/src/model/failure.rs",
        "a hint: a query that keeps one row of each key",
    ),
    (
        "runtime/reconcilers/src/model/run/table.rs",
        "a hint: another type in the query",
    ),
    (
        "runtime/server/src/report/data_tests.rs",
        "a hint: the question that shows failed rows",
    ),
];

/// Files above the drivers with plain statements, each with what these ask.
const PLAIN: &[(&str, &str)] = &[
    (
        "compilers/src/diagnostics/code.rs",
        "examples of mistakes, for people",
    ),
    (
        "compilers/src/draft/block.rs",
        "a condition of an author, to be parsed",
    ),
    (
        "compilers/src/kinds/model/data_tests.rs",
        "rows that meet a condition, groups of several",
    ),
    (
        "compilers/src/kinds/model/unit_tests.rs",
        "a query over given rows",
    ),
    ("runtime/metrics/src/sql/write.rs", "planned trees"),
    ("runtime/pgwire/src/copy.rs", "all rows of a table"),
    ("runtime/pgwire/src/parameters.rs", "no alternative at all"),
    (
        "runtime/reconcilers/src/metrics_view/probe.rs",
        "the columns of an author's query",
    ),
    (
        "runtime/reconcilers/src/model/run/listing.rs",
        "the first rows of an author's query",
    ),
    (
        "runtime/reconcilers/src/model/sample.rs",
        "the first rows of an author's query",
    ),
    (
        "runtime/reconcilers/src/selector.rs",
        "the columns of an author's expression",
    ),
    (
        "runtime/resolvers/src/condition.rs",
        "a condition of a person, to be parsed",
    ),
    ("runtime/resolvers/src/files/grouping.rs", "all rows of a table"),
    ("runtime/resolvers/src/files.rs", "all rows of a table"),
    ("runtime/resolvers/src/status.rs", "all rows of a table"),
    ("runtime/server/src/service/reading.rs", "all rows of a table"),
];

/// Returns the first word of an engine's own in a text between quotes.
fn own_word(literal: &str) -> Option<&'static str> {
    OWN.iter().find(|word| literal.contains(**word)).copied()
}

/// Returns true if a text between quotes begins like a statement, within brackets or not.
fn is_statement(literal: &str) -> bool {
    let text = literal.trim_start_matches(['r', '#', '"', '(', ' ', '\\', 'n']);
    BEGINNINGS.iter().any(|word| text.starts_with(word))
}

/// Returns the files above the drivers with such a text.
fn found(is_it: impl Fn(&str) -> bool) -> Vec<String> {
    let has_it = |(_, text): &(String, String)| literals(of_program(text)).into_iter().any(&is_it);
    let all = sources(OURS, HOMES).into_iter().filter(has_it);
    all.map(|(path, _)| path).collect()
}

fn paths<'a>(listed: &[(&'a str, &str)]) -> Vec<&'a str> {
    listed.iter().map(|(path, _)| *path).collect()
}

#[test]
fn statements_in_an_engines_own_words_stand_in_drivers_and_dialects_alone() {
    assert_eq!(
        found(|literal| own_word(literal).is_some()),
        paths(LISTED),
        "an engine's words are written by `watershed_dialect` and drivers; a file without any leaves the list"
    );
}

#[test]
fn statements_elsewhere_are_plain() {
    let plain = found(|literal| is_statement(literal) && own_word(literal).is_none());
    assert_eq!(
        plain,
        paths(PLAIN),
        "a statement that differs between engines is a value that the driver writes; a file without any leaves the list"
    );
}

#[test]
fn statements_are_told_from_other_texts() {
    let of = |code: &str| -> Vec<(bool, Option<&'static str>)> {
        let literals = literals(code).into_iter();
        literals
            .map(|literal| (is_statement(literal), own_word(literal)))
            .collect()
    };
    assert_eq!(of(r#"format!("SELECT * FROM {table} LIMIT 0")"#), [(true, None)]);
    let sniffed = r##"x(r#"(SELECT Quote FROM sniff_csv('a'))"#, 'b', "TRY_CAST(a AS INT)")"##;
    assert_eq!(
        of(sniffed),
        [(true, Some("sniff_csv")), (false, Some("TRY_CAST"))]
    );
    assert_eq!(
        of("// \"SELECT version()\"\nlet a = \"a model must be a SELECT\";"),
        [(false, None)]
    );
    assert_eq!(of(r#"["with", "Dropped ", "a \" SELECT "]"#), [(false, None); 3]);
}
