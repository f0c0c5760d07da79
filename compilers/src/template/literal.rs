//! SQL rendered with values that no author wrote: those of a viewer, of a call and of a run. Each is a value, never SQL.
//!
//! Each action that reads one is executed to its value, for which a mark stands in the text. When all branches are taken the
//! text is read once, as the engine would, and each mark becomes what fits its place: within single quotes the escaped text,
//! elsewhere a literal or a list. An argument that is a number or a word stays as it is outside quotes, since authors let
//! callers choose columns and directions; other text is refused there. A value of a run stays as it is there as well if it is
//! a number or a name, since partitions are of tables and columns, and is a literal otherwise. What is missing makes the whole
//! literal NULL in which it stands.

mod place;
mod run;
mod value;
mod viewer;

use std::sync::{Arc, Mutex, PoisonError};

use gotmpl::parse::{CommandNode, Expr, PipeNode};
use gotmpl::{MissingKey, TemplateError, Value};

use super::execute::{data, explain, project_functions};
use super::functions::pure;
use super::scope::{RenderError, Scope};
use super::{Facts, Template, execute::execute as execute_text, values};
use place::Reader;

pub use place::Dialect;
pub(super) use viewer::has_fallback;

/// Begins and ends a mark. A character of private use, which no text with marks may hold.
const MARK: char = '\u{F8FF}';
/// The function that writes a value as it is, for what is not about the viewer.
const TEXT: &str = "_watershed_text";
/// The name that the template itself is called by.
const BODY: &str = "_watershed_rule";
/// The steps that all loops of one rule may take together.
const MAX_RULE_STEPS: u64 = 10_000;
/// The steps that all loops of one text of a model may take together.
const MAX_STEPS: u64 = 1_000_000;

/// The one who gave a value, which decides the forms that it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Giver {
    Viewer,
    /// The caller of an API.
    Caller,
    /// A partition or a state.
    Run,
    /// The same: the items of a list, one by one.
    Items,
}

/// A value that a mark stands for, and the one who gave it.
struct Given {
    value: Value,
    giver: Giver,
}

/// The functions that put a value aside and write its mark: their names, the givers, and the quotes around the mark.
const ASIDE: [(&str, Giver, &str); 5] = [
    (viewer::ATTRIBUTE, Giver::Viewer, ""),
    (viewer::ARGUMENT, Giver::Caller, ""),
    (run::VALUE, Giver::Run, ""),
    (run::QUOTED, Giver::Run, "'"),
    (run::NAMED, Giver::Run, "\""),
];

/// Renders SQL for the viewer and the arguments of `scope`. Neither can change how it is read, whatever they hold.
///
/// # Errors
/// When the text is no template, can't be executed, or has an attribute where no value can stand, such as a comment or
/// a name in double quotes.
pub fn render_rule(text: &str, scope: &Scope) -> Result<String, RenderError> {
    if !super::is_template(text) {
        return Ok(text.to_owned());
    }
    if text.contains(MARK) {
        return Err(refused("the rule holds a character of private use"));
    }
    let template = read(text)?;
    for name in Facts::from_template(&template).variables.keys() {
        if !scope
            .variables
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            return Err(refused(&format!("variable \"{name}\" is not set")));
        }
    }
    let marked = viewer::marked(&template, scope);
    let (marked, found) = execute(marked, scope, MissingKey::Invalid, MAX_RULE_STEPS)
        .map_err(|error| refused(&error.to_string()))?;
    Reader::of_rules().place(&marked, &found)
}

/// Renders SQL of a model. The values of its partition and its state can't change how it is read, whatever they hold.
///
/// # Errors
/// When the text is no template, can't be executed, or has such a value where none can stand, as a piece of a word.
pub fn render_sql(text: &str, scope: &Scope, dialect: Dialect) -> Result<String, RenderError> {
    if !super::is_template(text) {
        return Ok(text.to_owned());
    }
    let template = read(text)?;
    let Some(marked) = run::marked(&template) else {
        return execute_text(text, scope);
    };
    if text.contains(MARK) {
        return Err(refused("the text holds a character of private use"));
    }
    let executed = execute(marked, scope, MissingKey::Error, MAX_STEPS);
    let (marked, found) = executed.map_err(|error| explain(text, &error))?;
    Reader::of_models(dialect).place(&marked, &found)
}

/// Returns true if an action of a template yields a value of a run.
#[cfg(test)]
pub(super) fn marks_values_of_runs(template: &Template) -> bool {
    run::marked(template).is_some()
}

fn read(text: &str) -> Result<Template, RenderError> {
    Template::read(text).map_err(|error| RenderError {
        message: error.message,
        hint: None,
        line: error.line,
    })
}

fn refused(message: &str) -> RenderError {
    RenderError {
        message: message.to_owned(),
        hint: None,
        line: 1,
    }
}

/// Executes a template whose actions write marks. Returns the text and the values that its marks number.
fn execute(
    template: Template,
    scope: &Scope,
    missing: MissingKey,
    steps: u64,
) -> Result<(String, Vec<Given>), TemplateError> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut functions = project_functions(scope);
    for (name, giver, quote) in ASIDE {
        let kept = Arc::clone(&found);
        let aside = move |arguments: &[Value]| {
            let value = arguments.last().cloned().unwrap_or(Value::Nil);
            Ok(format!("{quote}{}{quote}", put_aside(&kept, value, giver)).into())
        };
        functions.insert(name.to_owned(), Arc::new(aside));
    }
    let kept = Arc::clone(&found);
    let items = move |arguments: &[Value]| match arguments {
        [list @ Value::List(_)] => Ok(put_aside(&kept, list.clone(), Giver::Items).into()),
        _ => Err(TemplateError::Exec(
            "wrong arguments for \"as_sql_list\"".to_owned(),
        )),
    };
    functions.insert(run::ITEMS.to_owned(), Arc::new(items));
    let kept = Arc::clone(&found);
    let joined = move |arguments: &[Value]| match arguments {
        [separator, Value::List(items)] => {
            let marks = items
                .iter()
                .map(|item| put_aside(&kept, item.clone(), Giver::Run));
            let marks: Vec<String> = marks.collect();
            Ok(marks.join(&values::text(separator)).into())
        }
        _ => Err(TemplateError::Exec("wrong arguments for \"join\"".to_owned())),
    };
    functions.insert(run::JOINED.to_owned(), Arc::new(joined));
    functions.insert(TEXT.to_owned(), Arc::new(written));
    let caller = format!("{{{{ template \"{BODY}\" . }}}}");
    let mut executed = gotmpl::Template::new("sql")
        .missing_key(missing)
        .max_range_iters(steps)
        .funcs(pure())
        .funcs(functions)
        .parse(&caller)?;
    executed = executed.add_parse_tree(BODY, template.body);
    for (name, body) in template.defines {
        executed = executed.add_parse_tree(&name, body);
    }
    let text = executed.execute_to_string(&data(scope))?;
    drop(executed);
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((text, std::mem::take(&mut *found)))
}

/// Keeps a value and returns the mark that stands for it.
fn put_aside(kept: &Mutex<Vec<Given>>, value: Value, giver: Giver) -> String {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(Given { value, giver });
    format!("{MARK}{}{MARK}", kept.len() - 1)
}

/// Writes a value of the project's. Marks in it would be taken for the viewer's.
fn written(arguments: &[Value]) -> Result<Value, TemplateError> {
    match arguments.last() {
        None | Some(Value::Nil) => Err(TemplateError::Exec("a value is not set".to_owned())),
        Some(value) => {
            let text = values::text(value);
            match text.contains(MARK) {
                true => Err(TemplateError::Exec(
                    "a value holds a character of private use".to_owned(),
                )),
                false => Ok(text.into()),
            }
        }
    }
}

/// Returns a call of a function, to end a pipeline with.
fn call(pipe: &PipeNode, name: &str) -> CommandNode {
    CommandNode {
        pos: pipe.pos,
        args: vec![Expr::Identifier(pipe.pos, name.into())],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::Value;

    use super::*;

    fn scope() -> Scope {
        let groups = Value::from(vec![Value::from("a'b"), Value::from("c")]);
        let user = [
            ("email", Value::from("o'neil@example.org")),
            ("domain", Value::from("example.org")),
            ("groups", groups),
            ("none", Value::from(Vec::<Value>::new())),
            ("admin", Value::from(false)),
            ("tenant", Value::from(-5_i64)),
            ("hostile", Value::from("' OR true --")),
            ("escape", Value::from("\\' OR true --")),
        ];
        let args = [
            ("limit", Value::from("10")),
            ("column", Value::from("carrier")),
            ("day", Value::from("2024-01-01' OR true --")),
            ("codes", Value::from(vec![Value::from("a'b"), Value::from("c")])),
            ("count", Value::from(3_i64)),
        ];
        Scope {
            variables: BTreeMap::from([("table".to_owned(), "t".to_owned())]),
            args: args.map(|(name, value)| (name.to_owned(), value)).into(),
            user: user.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Scope::default()
        }
    }

    fn rendered(text: &str) -> String {
        render_rule(text, &scope()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn arguments_are_values_but_for_words_and_numbers_alone() {
        for (text, written) in [
            ("x LIMIT {{ .args.limit }}", "x LIMIT 10"),
            ("ORDER BY {{ .args.column }} DESC", "ORDER BY carrier DESC"),
            ("d = '{{ .args.day }}'", "d = '2024-01-01'' OR true --'"),
            ("c IN ({{ .args.codes }})", "c IN ('a''b', 'c')"),
            ("n = {{ .args.count }}", "n = 3"),
            ("n = {{ .args.gone }}", "n = NULL"),
            ("n = '{{ .args.gone }}'", "n = NULL"),
            ("n = {{ .args.gone | default 5 }}", "n = 5"),
            ("{{ if .args.limit }}LIMIT {{ .args.limit }}{{ end }}", "LIMIT 10"),
            ("{{ with .args.column }}x = {{ . }}{{ end }}", "x = 'carrier'"),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
        for text in [
            "d = {{ .args.day }}",
            "d = \"{{ .args.column }}\"",
            "-- {{ .args.limit }}",
        ] {
            assert!(render_rule(text, &scope()).is_err(), "{text}");
        }
    }

    #[test]
    fn attributes_are_written_as_their_places_ask() {
        for (text, written) in [
            ("'{{ .user.email }}' = x", "'o''neil@example.org' = x"),
            ("x = {{ .user.email }}", "x = 'o''neil@example.org'"),
            ("x LIKE '%@{{ .user.domain }}'", "x LIKE '%@example.org'"),
            ("x IN ({{ .user.groups }})", "x IN ('a''b', 'c')"),
            ("x NOT IN ( {{ .user.none }} )", "x NOT IN ( NULL )"),
            (
                "list_contains({{ .user.groups }}, x)",
                "list_contains(['a''b', 'c'], x)",
            ),
            ("x in ({{ as_sql_list .user.groups }})", "x in ('a''b', 'c')"),
            ("{{ .user.admin }}", "false"),
            ("3{{ .user.tenant }}", "3 (-5)"),
            ("a = {{ .env.table }}.a", "a = t.a"),
            (
                "{{ if .user.admin }}true{{ else }}d = '{{ .user.domain }}'{{ end }}",
                "d = 'example.org'",
            ),
            ("{{ with .user }}d = {{ .domain }}{{ end }}", "d = 'example.org'"),
            (
                "{{ $d := .user.domain }}d = {{ $d | upper }}",
                "d = 'EXAMPLE.ORG'",
            ),
            (
                "false{{ range .user.groups }} OR g = '{{ . }}'{{ end }}",
                "false OR g = 'a''b' OR g = 'c'",
            ),
            (
                "{{ define \"d\" }}'{{ . }}'{{ end }}x = {{ template \"d\" .user.domain }}",
                "x = 'example.org'",
            ),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn a_missing_attribute_makes_its_literal_null() {
        for (text, written) in [
            ("x = {{ .user.nope }}", "x = NULL"),
            ("x = 'a-{{ .user.nope }}-b'", "x = NULL"),
            (
                "x = '{{ .user.nope | upper }}' AND y = 'it''s'",
                "x = NULL AND y = 'it''s'",
            ),
            ("x = {{ .user.nope | default \"d\" }}", "x = 'd'"),
            ("x IN ({{ .user.nope }})", "x IN (NULL)"),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn hostile_attributes_stay_values() {
        for (text, written) in [
            ("x = '{{ .user.hostile }}'", "x = ''' OR true --'"),
            ("x = {{ .user.hostile }}", "x = ''' OR true --'"),
            ("x = e{{ .user.escape }}", "x = e '\\'' OR true --'"),
            ("x = {{ .user.hostile }}--", "x = ''' OR true --'--"),
            ("x = {{ .user.hostile }}y", "x = ''' OR true --' y"),
            ("x = 'a'{{ .user.hostile }}", "x = 'a' ''' OR true --'"),
            (
                "x = {{ .user.domain }}{{ .user.hostile }}",
                "x = 'example.org' ''' OR true --'",
            ),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn attributes_stand_only_where_a_value_can() {
        for text in [
            "x = e'{{ .user.escape }}'",
            "x = E'\\{{ .user.escape }}'",
            "\"{{ .user.hostile }}\" = 1",
            "1 = 1 -- {{ .user.hostile }}",
            "1 /* {{ .user.hostile }} */ = 1",
            "1 /* /* */ {{ .user.hostile }} */ = 1",
            "x = $${{ .user.hostile }}$$",
            "x = '{{ .user.groups }}'",
            "x = {{ .user }}",
            "x = {{ .env.nope }}",
            "x = {{ .user.hostile | nope }}",
            "\u{F8FF}0\u{F8FF} = {{ .user.admin }}",
        ] {
            assert!(render_rule(text, &scope()).is_err(), "{text}");
        }
    }

    fn of_run(text: &str, value: Value) -> Result<String, RenderError> {
        in_dialect(text, value, Dialect::Engine)
    }

    fn in_dialect(text: &str, value: Value, dialect: Dialect) -> Result<String, RenderError> {
        let many = Value::from(vec![value.clone(), Value::from("b")]);
        let row = BTreeMap::from([("x".to_owned(), value), ("many".to_owned(), many)]);
        let scope = Scope {
            variables: BTreeMap::from([("table".to_owned(), "t".to_owned())]),
            partition: row.clone(),
            state: row,
            table: "(SELECT 1)".to_owned(),
            ..Scope::default()
        };
        render_sql(text, &scope, dialect)
    }

    fn check_of_run(template: &str, value: impl Into<Value>, written: &str) {
        let found = of_run(template, value.into()).unwrap_or_else(|error| panic!("{template}: {error:?}"));
        assert_eq!(found, written, "{template}");
    }

    #[test]
    fn values_of_a_run_are_written_as_their_places_ask() {
        for (template, value, written) in [
            ("d = '{{ .partition.x }}'", "O'Brien", "d = 'O''Brien'"),
            ("d = '{{ .split.x }}'", "O'Brien", "d = 'O''Brien'"),
            ("d > '{{ .self.state.x }}'", "O'Brien", "d > 'O''Brien'"),
            (
                "read_csv('{{ .partition.x }}')",
                "a'b.csv",
                "read_csv('a''b.csv')",
            ),
            ("d = {{ .partition.x }}", "2024-03-01", "d = '2024-03-01'"),
            ("FROM {{ .partition.x }}", "main.orders", "FROM main.orders"),
            ("FROM orders_{{ .partition.x }}", "2024_03", "FROM orders_2024_03"),
            ("FROM \"{{ .partition.x }}\"", "a\"b", "FROM \"a\"\"b\""),
            ("n > {{ .state.x }}", "-1.50", "n > (-1.50)"),
            ("n IN ({{ .state.many }})", "a'", "n IN ('a''', 'b')"),
            ("read_csv({{ .partition.many }})", "a'", "read_csv(['a''', 'b'])"),
            ("n = e'{{ .partition.x }}'", "a\\'b", "n = e'a\\\\''b'"),
            (
                "n = e'a' -- c\n'{{ .partition.x }}'",
                "\\'",
                "n = e'a' -- c\n'\\\\'''",
            ),
            ("n = e'a', '{{ .partition.x }}'", "\\'", "n = e'a', '\\'''"),
            ("1 -- it's\r+ '{{ .partition.x }}'", "'", "1 -- it's\r+ ''''"),
            (
                "n = $q${{ .partition.x }}$q$ || '{{ .partition.x }}'",
                "a'b",
                "n = $q$a'b$q$ || 'a''b'",
            ),
            ("1 -- of {{ .partition.x }}\n+ 1", "a\n; b", "1 -- of a___b\n+ 1"),
            ("1 /* {{ .partition.x }} */", "*/ ;", "1 /* ____ */"),
            ("a$b = '{{ .partition.x }}'", "'", "a$b = ''''"),
            ("'$.a' = {{ .partition.x }}", "'", "'$.a' = ''''"),
        ] {
            check_of_run(template, value, written);
        }
        for (template, value, written) in [
            ("FROM orders_{{ .partition.x }}", 3, "FROM orders_3"),
            ("n > {{ .state.x }}", 7, "n > 7"),
            ("n > {{ .state.x }}", -7, "n > (-7)"),
            ("n > '{{ .state.x }}'", -7, "n > '-7'"),
        ] {
            check_of_run(template, i64::from(value), written);
        }
        for (template, written) in [
            ("n > {{ .state.x }}", "n > NULL"),
            ("n > '{{ .state.x }}'", "n > NULL"),
            ("n > DATE '{{ .state.x }}'", "n > CAST(NULL AS DATE)"),
            ("n > e'{{ .state.x }}'", "n > NULL"),
        ] {
            check_of_run(template, Value::default(), written);
        }
    }

    #[test]
    fn functions_of_the_author_keep_their_meaning() {
        for (template, value, written) in [
            ("n IN ({{ as_sql_list .state.many }})", "a'", "n IN ('a''', 'b')"),
            (
                "n IN ('{{ join \"','\" .state.many }}')",
                "a'",
                "n IN ('a''','b')",
            ),
            (
                "n IN ('{{ .state.many | join \"','\" }}')",
                "a'",
                "n IN ('a''','b')",
            ),
            ("n = {{ .partition.x | squote }}", "a'b", "n = 'a''b'"),
            ("n = {{ squote .partition.x }}", "7", "n = '7'"),
            ("FROM {{ .partition.x | quote }}", "a\"b", "FROM \"a\"\"b\""),
            ("n = {{ printf \"'%s%%'\" .partition.x }}", "a'b", "n = 'a''b%'"),
            ("n = {{ .partition.x | printf \"'%s'\" }}", "a'b", "n = 'a''b'"),
            ("n = {{ print \"'\" .partition.x \"'\" }}", "a'b", "n = 'a''b'"),
            (
                "n = '{{ replace \"'\" \"''\" .partition.x }}'",
                "a'b",
                "n = 'a''b'",
            ),
            (
                "n = '{{ .partition.x | replace \"'\" \"''\" | upper }}'",
                "a'b",
                "n = 'A''B'",
            ),
            (
                "{{ if eq .partition.x \"a\" }}n = 1{{ else }}m{{ end }}",
                "a",
                "n = 1",
            ),
            (
                "{{ ternary \"n = 1\" \"m\" (eq .partition.x \"a\") }}",
                "a",
                "n = 1",
            ),
            (
                "{{ range list \"a b\" }}{{ . }}{{ end }} {{ .partition.x }}",
                "c d",
                "a b 'c d'",
            ),
            ("{{ range .state.many }}'{{ . }}',{{ end }}", "a'", "'a''','b',"),
            ("{{ $x := .partition.x }}n = '{{ $x }}'", "a'b", "n = 'a''b'"),
            (
                "{{ define \"d\" }}'{{ . }}'{{ end }}n = {{ template \"d\" .partition.x }}",
                "a'b",
                "n = 'a''b'",
            ),
            (
                "FROM {{ .env.table }}, {{ .table }}, {{ ref \"b\" }} {{ .partition.x }}",
                "c",
                "FROM t, (SELECT 1), \"b\" c",
            ),
        ] {
            check_of_run(template, value, written);
        }
    }

    #[test]
    fn a_value_of_a_run_that_can_stand_nowhere_is_an_error() {
        for (template, value) in [
            ("FROM orders_{{ .partition.x }}", "a; b"),
            ("FROM {{ .partition.x }}_orders", "a b"),
            ("'{{ .partition.x }}'", "a\0b"),
            ("{{ .partition.x }}", "a\0b"),
            ("'{{ .partition.many }}'", "a"),
            ("\"{{ .partition.many }}\"", "a"),
            ("$${{ .partition.x }}$$", "a$$ b"),
            ("'{{ .partition.gone }}'", "a"),
            ("'{{ .env.gone }}' {{ .partition.x }}", "a"),
            ("e'\\{{ .partition.x }}'", "'"),
        ] {
            assert!(of_run(template, Value::from(value)).is_err(), "{template}");
        }
    }

    #[test]
    fn a_backslash_ends_no_text_of_mysql() {
        for (template, written) in [
            ("a = '{{ .state.x }}'", "a = '\\\\'' OR true -- '"),
            ("a = \"{{ .state.x }}\"", "a = \"\\\\' OR true -- \""),
            ("a = {{ .state.x }}", "a = '\\\\'' OR true -- '"),
            ("a IN ({{ .state.many }})", "a IN ('\\\\'' OR true -- ', 'b')"),
            ("a = 1--'{{ .state.x }}'", "a = 1--'\\\\'' OR true -- '"),
            ("a -- {{ .state.x }}", "a -- ___OR_true____"),
            (
                "# it's {{ .state.x }}\n'{{ .state.x }}'",
                "# it's ___OR_true____\n'\\\\'' OR true -- '",
            ),
        ] {
            let value = Value::from("\\' OR true -- ");
            let found = in_dialect(template, value, Dialect::Mysql);
            assert_eq!(found.expect(template), written, "{template}");
        }
    }

    /// Pieces of which texts are made that end a literal, a statement, a comment or a template.
    const PIECES: [&str; 30] = [
        "'",
        "''",
        "\"",
        "\\",
        "\\'",
        "$$",
        "$q$",
        "--",
        "/*",
        "*/",
        ";",
        "\n",
        "\r\n",
        "\t",
        "{{",
        "}}",
        "{{ .partition.x }}",
        "é",
        "\u{2019}",
        "\u{F8FF}0\u{F8FF}",
        "\u{202E}",
        " OR TRUE ",
        ") UNION ALL SELECT 666 ",
        "(",
        ",",
        "%",
        "a",
        "1",
        ":",
        "`",
    ];

    /// Statements with places where a value of a run may stand.
    const PLACES: [&str; 9] = [
        "SELECT a FROM t WHERE a = '{{ .partition.x }}' AND b",
        "SELECT a FROM t WHERE a = {{ .partition.x }} AND b",
        "SELECT a FROM t WHERE a IN ({{ .state.many }}) AND b",
        "SELECT a FROM t WHERE a IN ('{{ join \"','\" .state.many }}') AND b",
        "SELECT a FROM \"{{ .partition.x }}\" AND b",
        "SELECT a FROM t WHERE a = {{ squote .state.x }} AND b",
        "SELECT a FROM t WHERE a = {{ printf \"'%s'\" .state.x }} AND b",
        "SELECT a FROM t -- {{ .partition.x }}\nWHERE a = e'{{ .state.x }}' AND b",
        "SELECT a FROM t /* {{ .partition.x }} */ WHERE a = $r${{ .state.x }}$r$ AND b",
    ];

    /// The kinds of a statement's tokens; a name or a number may stand where a text may.
    fn shape(sql: &str) -> Vec<String> {
        use crate::sql::{TokenKind, tokens};
        let written = ["SELECT", "FROM", "WHERE", "AND", "IN", "b", "t"];
        let shown = |kind: TokenKind, text: &str| match kind {
            TokenKind::Word if written.contains(&text) => text.to_owned(),
            TokenKind::Word | TokenKind::Number | TokenKind::Text => "?".to_owned(),
            TokenKind::Sign => text.to_owned(),
            kind => format!("{kind:?}"),
        };
        let tokens = tokens(sql);
        tokens.iter().map(|token| shown(token.kind, token.text)).collect()
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig {
            failure_persistence: None,
            cases: 500,
            ..Default::default()
        })]
        #[test]
        fn no_value_of_a_run_changes_the_form_of_a_statement(
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..6),
            place in proptest::sample::select(&PLACES[..]),
        ) {
            let value = pieces.concat();
            match of_run(place, Value::from(value.as_str())) {
                Ok(written) => {
                    let harmless = of_run(place, Value::from("x y")).expect("a plain text");
                    proptest::prop_assert_eq!(shape(&written), shape(&harmless), "{}", written);
                }
                Err(error) => proptest::prop_assert!(value.contains('$'), "{:?} {:?}", error, value),
            }
        }
    }
}
