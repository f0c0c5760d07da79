//! Changes of meaning, and changes that are none.

use watershed_compilers::{Kind, Meanings, Project, ResourceKey, Spec, fingerprint};

use crate::{case::Case, engine::Engine};

/// Both fingerprints of the model `m` in a project.
fn meanings(files: &str) -> Meanings {
    let engine = Engine::new();
    let case = Case::read(files);
    let mut project = Project::new(case.options.clone());
    project.apply(case.events(), &engine);
    let resource = project.resource(&ResourceKey::new(Kind::Model, "m"));
    let resource = resource.unwrap_or_else(|| panic!("no model m in {files}"));
    let Spec::Model(spec) = &resource.spec else {
        panic!("{files}: {:?}", project.diagnostics())
    };
    let made = fingerprint("m", spec, &engine);
    assert_eq!(
        made.whole, resource.meaning,
        "fingerprinting a spec anew yields the same"
    );
    assert_eq!(spec.output_meaning.as_ref(), Some(&made.output.to_proto()));
    made
}

fn of_sql(sql: &str) -> Meanings {
    meanings(&format!(
        "//- rill.yaml\n//- models/a.sql\nSELECT 1 AS x\n//- models/b.sql\nSELECT 1 AS x\n//- models/m.sql\n{sql}\n"
    ))
}

fn of_yaml(yaml: &str) -> Meanings {
    meanings(&format!("//- rill.yaml\n//- models/m.yaml\n{yaml}\n"))
}

#[test]
fn comments_blanks_and_spelling_of_keywords_are_no_change() {
    let plain = of_sql("SELECT x, 'A  b' AS y FROM a WHERE x > 1");
    assert_eq!(
        plain,
        of_sql("select x,   'A  b' as y -- why\n\nfrom a\nwhere (x > 1) /* c */;")
    );
    assert_ne!(
        plain.output,
        of_sql("SELECT x, 'A b' AS y FROM a WHERE x > 1").output
    );
    assert_ne!(
        plain.output,
        of_sql("SELECT X AS X, 'A  b' AS y FROM a WHERE x > 1").output
    );
    assert_ne!(
        plain.output,
        of_sql("SELECT x, 'A  b' AS y FROM a WHERE x > 2").output
    );
}

#[test]
fn what_has_no_tree_is_compared_by_tokens() {
    let plain = of_sql("PIVOT a ON x USING count(*)");
    assert_eq!(plain, of_sql("PIVOT   a -- c\nON x\nUSING count(*)"));
    assert_ne!(plain.output, of_sql("PIVOT a ON x USING sum(x)").output);
}

#[test]
fn order_of_keys_and_comments_in_yaml_are_no_change() {
    let plain = of_yaml("materialize: true\nargs: {a: 1, b: 2}\nsql: SELECT 1");
    assert_eq!(
        plain,
        of_yaml("# c\nsql: |\n  SELECT 1 -- one\nargs:\n  b: 2\n  a: 1\nmaterialize: true")
    );
    assert_ne!(
        plain.output,
        of_yaml("materialize: true\nargs: {a: 1, b: 2.0}\nsql: SELECT 1").output
    );
}

#[test]
fn a_rename_upstream_leaves_what_the_output_depends_on() {
    let pairs = [
        ("SELECT * FROM a", "SELECT * FROM b"),
        (
            "SELECT a.x FROM a WHERE a.x > 1 ORDER BY a.x",
            "SELECT b.x FROM b WHERE b.x > 1 ORDER BY b.x",
        ),
        ("SELECT a.* FROM a", "SELECT b.* FROM b"),
        (
            "WITH t AS (SELECT * FROM a) SELECT * FROM t",
            "WITH t AS (SELECT * FROM b) SELECT * FROM t",
        ),
        ("PIVOT a ON x USING count(*)", "PIVOT b ON x USING count(*)"),
        (
            "SELECT * FROM {{ ref \"a\" }} WHERE {{ .state.x }}",
            "SELECT * FROM {{ ref \"b\" }} WHERE {{ .state.x }}",
        ),
        (
            "SELECT 1 FROM a {{ if dev }}LIMIT 1{{ end }}",
            "SELECT 1 FROM b {{ if dev }}LIMIT 1{{ end }}",
        ),
    ];
    for (before, after) in pairs {
        let (before_meaning, after_meaning) = (of_sql(before), of_sql(after));
        assert_eq!(before_meaning.output, after_meaning.output, "{before}");
        assert_ne!(before_meaning.whole, after_meaning.whole, "{before}");
    }
}

#[test]
fn a_name_that_shows_in_the_output_is_part_of_its_meaning() {
    let pairs = [
        // The column of an expression without an alias is named after its text.
        ("SELECT a.x + 1 FROM a", "SELECT b.x + 1 FROM b"),
        ("SELECT (SELECT max(x) FROM a)", "SELECT (SELECT max(x) FROM b)"),
        // The row as a value is a column named after the table.
        ("SELECT a FROM a", "SELECT b FROM b"),
        // A table that is none of the project's.
        ("SELECT * FROM outside", "SELECT * FROM elsewhere"),
    ];
    for (before, after) in pairs {
        assert_ne!(of_sql(before).output, of_sql(after).output, "{before}");
    }
}

#[test]
fn which_table_stands_where_is_part_of_the_meaning() {
    assert_ne!(
        of_sql("SELECT * FROM a, b").whole,
        of_sql("SELECT * FROM b, a").whole
    );
    assert_ne!(
        of_sql("SELECT * FROM a, a AS c").output,
        of_sql("SELECT * FROM a, b AS c").output
    );
}

#[test]
fn settings_of_a_run_are_no_part_of_what_the_output_depends_on() {
    let plain = of_yaml("materialize: true\nsql: SELECT 1");
    for more in [
        "timeout: 60",
        "refresh: {every: 60, run_in_dev: true}",
        "retry: {attempts: 1}",
        "tests: [{name: t, assert: x > 1}]",
        "description: told",
        "change_mode: manual",
    ] {
        let other = of_yaml(&format!("materialize: true\nsql: SELECT 1\n{more}"));
        assert_eq!(plain.output, other.output, "{more}");
        assert_ne!(plain.whole, other.whole, "{more}");
    }
    for more in [
        "incremental: true",
        "output: {table: t}",
        "pre_exec: SET x = 1",
        "args: {x: 1}",
    ] {
        let other = of_yaml(&format!("materialize: true\nsql: SELECT 1\n{more}"));
        assert_ne!(plain.output, other.output, "{more}");
    }
}

#[test]
fn saying_what_is_so_anyway_is_no_change_of_the_output() {
    assert_eq!(
        of_yaml("sql: SELECT 1").output,
        of_yaml("sql: SELECT 1\nmaterialize: false").output
    );
    assert_ne!(
        of_yaml("sql: SELECT 1").output,
        of_yaml("sql: SELECT 1\nmaterialize: true").output
    );
}

#[test]
fn templates_are_compared_by_tokens_and_the_values_that_they_read() {
    let with = |value: &str, sql: &str| {
        meanings(&format!(
            "#! n={value} other=1\n//- rill.yaml\n//- models/m.sql\n{sql}\n"
        ))
    };
    let plain = with("1", "SELECT {{ .env.n }} AS n");
    assert_eq!(plain, with("1", "SELECT   {{.env.n}} AS n -- c"));
    assert_ne!(plain.output, with("2", "SELECT {{ .env.n }} AS n").output);
    assert_ne!(plain.output, with("1", "SELECT 1{{ .env.n }} AS n").output);
    // `x` and `y` that touch are one name, and apart are two.
    assert_ne!(
        with("y", "SELECT 1 x{{ .env.n }}").output,
        with("y", "SELECT x {{ .env.n }}").output
    );
}

#[test]
fn a_variable_that_is_not_read_changes_nothing() {
    let with = |value: &str| {
        meanings(&format!(
            "#! n=1 other={value}\n//- rill.yaml\n//- models/m.sql\nSELECT {{{{ .env.n }}}} AS n\n"
        ))
    };
    assert_eq!(with("1"), with("2"));
}
