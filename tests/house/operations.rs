//! Operations keep to their home: handlers know no command line, and no type grows over many files again.

use std::collections::BTreeSet;

use crate::code::{closing, code_of, is_name, without_tests, words};
use crate::{of_program, read, root, sources};

/// The crates that know the command line.
const COMMAND_LINE: &[&str] = &["runtime/api", "runtime/cli", "runtime/shim"];

/// Files of the library that name exit codes, because a document that they make says with which one its command ends.
const ENDS: &[&str] = &[
    "runtime/server/src/instance/conform.rs",
    "runtime/server/src/instance/converge.rs",
    "runtime/server/src/instance/stop.rs",
    "runtime/server/src/report/document.rs",
    "runtime/server/src/service/ops/alert_test.rs",
    "runtime/server/src/service/ops/care.rs",
    "runtime/server/src/service/ops/check.rs",
    "runtime/server/src/service/ops/plan.rs",
    "runtime/server/src/service/ops/test.rs",
];

/// Operations that no command asks for, by their types: they are for embedders and the API.
const WITHOUT_COMMAND: &[&str] = &[];

/// The most lines of a function, brace to brace.
const LINES_OF_A_FUNCTION: usize = 100;
/// Functions that are longer, each with its reason.
const LONG_FUNCTIONS: &[(&str, &str)] = &[
    (
        "runtime/core/src/core/calls.rs: take",
        "a table: one arm for each call",
    ),
    (
        "runtime/reconcilers/src/forecast.rs: model",
        "the order in which a model is foreseen, each step once",
    ),
    (
        "runtime/reconcilers/src/model/forecast.rs: foresee",
        "a table: one arm for each thing that a run may find",
    ),
    (
        "runtime/reconcilers/src/model/run/build.rs: build_from",
        "the order of a build, each step once",
    ),
    (
        "runtime/reconcilers/src/model/run/take_back.rs: restore",
        "the order in which a table comes back, each step once",
    ),
];

/// The most files in which an instance has methods.
const FILES_OF_AN_INSTANCE: usize = 6;

#[test]
fn exit_codes_are_named_where_documents_say_how_a_command_ends() {
    let named: Vec<String> = sources(&["runtime/server/src"], &[])
        .into_iter()
        .filter(|(_, text)| words(&without_tests(&code_of(text))).contains(&"Exit"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(
        named, ENDS,
        "problems have codes instead, and their table knows the exit codes"
    );
}

#[test]
fn each_operation_has_a_command_or_is_listed_as_one_without() {
    let table = read(&root().join("runtime/api/src/operations.rs"));
    let lines = table
        .lines()
        .filter(|line| line.starts_with("            ") && line.ends_with(';'));
    let types: Vec<&str> = lines
        .filter(|line| line.matches(',').count() == 6)
        .filter_map(|line| line.trim().split(',').next())
        .collect();
    assert!(types.len() > 40, "only {types:?} were found");
    let commands = sources(&["runtime/cli/src"], &[]);
    let begins = |rest: &str| !rest.starts_with(|sign: char| sign.is_alphanumeric());
    let is_asked = |name: &str| {
        let asked = format!("ops::{name}");
        let in_text = |text: &str| text.split(&asked).skip(1).any(begins);
        commands.iter().any(|(_, text)| in_text(text))
    };
    let without: Vec<&str> = types.into_iter().filter(|name| !is_asked(name)).collect();
    assert_eq!(without, WITHOUT_COMMAND);
}

#[test]
fn no_text_below_the_command_line_has_an_option() {
    let mut found = Vec::new();
    for (path, text) in sources(&["runtime"], COMMAND_LINE) {
        let said = of_program(&text)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        found.extend(
            said.filter(|line| has_option(line))
                .map(|line| format!("{path}: {}", line.trim())),
        );
    }
    assert!(
        found.is_empty(),
        "hints say options as values: `watershed_api::hint::option`\n{}",
        found.join("\n")
    );
}

/// Returns true if a line has an option of the program in a string.
fn has_option(line: &str) -> bool {
    line.split("--")
        .skip(1)
        .zip(line.split("--"))
        .any(|(after, before)| {
            let begins = before.ends_with(['`', '"', ' ', '(']);
            begins && after.starts_with(|sign: char| sign.is_ascii_lowercase()) && before.contains(['"', '`'])
        })
}

#[test]
fn options_are_found_in_texts_and_nowhere_else() {
    let lines = [
        ("hint(\"raise `--memory-limit`, or wait\")", true),
        ("\"`watershed run --full` does\"", true),
        ("let left = count --other;", false),
        ("\"SELECT 1 -- a remark\"", false),
        ("\"one--two\"", false),
    ];
    for (line, expected) in lines {
        assert_eq!(has_option(line), expected, "{line}");
    }
}

#[test]
fn an_instance_has_methods_in_few_files() {
    let own = |text: &str| {
        let code = without_tests(&code_of(text));
        let words = words(&code);
        words.windows(3).any(|three| three == ["impl", "Instance", "{"])
    };
    let has: BTreeSet<String> = sources(&["runtime/server/src"], &[])
        .into_iter()
        .filter(|(_, text)| own(text))
        .map(|(path, _)| path)
        .collect();
    assert!(!has.is_empty(), "nothing was found");
    assert!(has.len() <= FILES_OF_AN_INSTANCE, "{has:?}");
}

#[test]
fn a_function_fits_a_screen_or_two_but_for_tables_that_are_listed() {
    let mut long = Vec::new();
    let mut count = 0;
    for (path, text) in sources(&["compilers", "runtime"], &[]) {
        for (name, lines) in functions(&without_tests(&code_of(&text))) {
            count += 1;
            if lines > LINES_OF_A_FUNCTION {
                long.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(count > 5_000, "only {count} functions were found");
    let listed: Vec<String> = LONG_FUNCTIONS
        .iter()
        .map(|(place, _)| (*place).to_owned())
        .collect();
    assert_eq!(long, listed, "a function is cut, or listed with its reason");
}

/// Returns the functions of code with their lines, from the name to the closing brace.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("fn ").map(|at| from + at) {
        from = at + 3;
        let is_word = code[..at].ends_with(|sign: char| sign.is_alphanumeric() || sign == '_');
        let name = words(&code[from..code.len().min(from + 80)]).first().copied();
        let Some(name) = name.filter(|name| is_name(name) && !is_word) else {
            continue;
        };
        let Some(end) = code[from..].find(['{', ';']).map(|end| from + end) else {
            break;
        };
        if code[end..].starts_with('{') {
            found.push((name, code[at..closing(code, end)].lines().count()));
        }
    }
    found
}

#[test]
fn functions_are_measured_from_their_names_to_their_closing_braces() {
    let code =
        "fn a() {\n  b();\n}\ntrait T { fn c(); }\npub fn d(e: fn (u8)) -> u8 {\n  if x {\n  }\n  1\n}\n";
    assert_eq!(functions(code), [("a", 3), ("d", 5)]);
}
