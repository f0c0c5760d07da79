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
