//! Statements: whatever names, values and expressions hold, their form is that of harmless ones.

use watershed_dialect::DuckDb;
use watershed_drivers::duckdb::{ByHand, Parser};
use watershed_drivers::olap::Value;
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{Bounds, plan};
use watershed_metrics::policy::{Effect, Layer, Rule, Truth};
use watershed_metrics::query::{Code, Filter, Literal, Operator};
use watershed_metrics::view::{Lookup, Selector, Source, Window};
use watershed_metrics::{DataType, Dimension, Measure, MeasureKind, Policy, Query, View};

use crate::queries::view as cases;

/// Texts that mean something to parsers, templates and shells.
const HOSTILE: [&str; 10] = [
    "it's",
    "a\" -- b",
    "'; DROP TABLE facts; --",
    "\"); DROP TABLE facts; --",
    "/* open",
    "line\nbreak",
    "{{ .user.email }}",
    "a\\'b",
    "$1 $$x$$",
    "\u{0}zero",
];

/// A text that means nothing to anybody.
const HARMLESS: &str = "zqzqzq";

pub(crate) fn dimension(name: &str, column: &str, kind: &str) -> Dimension {
    Dimension {
        name: name.to_owned(),
        data_type: DataType::of(kind),
        engine_type: kind.to_owned(),
        source: Source::Column(column.to_owned()),
        ..Dimension::default()
    }
}

/// A view whose names are all made of one text.
fn view(text: &str) -> View {
    let mut looked = dimension(&format!("looked {text}"), &format!("c {text}"), "VARCHAR");
    looked.lookup = Some(Lookup {
        table: vec![format!("s {text}"), format!("l {text}")],
        key: format!("k {text}"),
        value: format!("v {text}"),
        default: None,
    });
    let measure = |name: &str, kind| Measure {
        name: format!("{name} {text}"),
        data_type: DataType::Number,
        engine_type: "DOUBLE".to_owned(),
        kind,
        expression: "count(*) -- a comment".to_owned(),
        ..Measure::default()
    };
    let mut per = measure("per", MeasureKind::Per);
    per.requires = vec![format!("rows {text}")];
    let mut compared = measure("compared", MeasureKind::TimeComparison);
    compared.requires = vec![format!("rows {text}")];
    compared.expression = "1".to_owned();
    View {
        table: vec![format!("t {text}")],
        time_dimension: format!("at {text}"),
        dimensions: vec![
            dimension(&format!("d {text}"), &format!("c {text}"), "VARCHAR"),
            dimension(&format!("at {text}"), &format!("at {text}"), "TIMESTAMP"),
            looked,
        ],
        measures: vec![measure("rows", MeasureKind::Simple), per, compared],
        ..View::default()
    }
}

fn query(names: &str, value: &str) -> Query {
    let mut query: Query = r#"{"metrics_view": "v", "time_range": {"start": "2024-01-01T00:00:00Z",
        "end": "2024-02-01T00:00:00Z"}, "comparison_time_range": {"offset": "-1P"}, "time_zone": "America/New_York",
        "totals": true, "limit": 5}"#
        .parse()
        .expect("a query");
    let named = |name: &str| watershed_metrics::query::Dimension::named(&format!("{name} {names}"));
    query.dimensions = vec![named("d"), named("looked")];
    let measure = |name: &str| watershed_metrics::query::Measure::named(&format!("{name} {names}"));
    query.measures = vec![measure("rows"), measure("per"), measure("compared")];
    let text = || Filter::Value(Literal::Text(value.to_owned()));
    let condition = |op, name: &str, value| Filter::Condition {
        op,
        operands: vec![Filter::Name(format!("{name} {names}")), value],
    };
    query.r#where = Some(Filter::Condition {
        op: Operator::Or,
        operands: vec![
            condition(Operator::Eq, "d", text()),
            condition(Operator::Nilike, "looked", text()),
            condition(
                Operator::Nin,
                "d",
                Filter::Value(Literal::List(vec![Literal::Text(value.to_owned())])),
            ),
        ],
    });
    query
}

fn statement(names: &str, value: &str) -> String {
    let rule = |effect| Rule {
        condition: Truth::True,
        effect,
    };
    let policy = Policy::of(&[Layer {
        rules: vec![
            rule(Effect::AllowAccess),
            rule(Effect::FilterRows("secret IS NULL -- all".to_owned())),
        ],
    }]);
    let bounds = Bounds::at(Timestamp::UNIX_EPOCH);
    let plan = plan(&view(names), &policy, &query(names, value), &bounds).expect("a plan");
    plan.statement(&DuckDb)
}

/// The parse tree with each text that holds the names or the value replaced, and without places.
fn tree(sql: &str, texts: &[&str]) -> serde_json::Value {
    let document = Parser::new().documents(&[sql]).expect("a document").remove(0);
    let mut tree: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(tree["error"], serde_json::Value::Bool(false), "{document}\n{sql}");
    neutral(&mut tree, texts);
    tree
}

fn neutral(tree: &mut serde_json::Value, texts: &[&str]) {
    match tree {
        serde_json::Value::String(text) => {
            for hostile in texts {
                *text = text.replace(hostile, "?");
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| neutral(item, texts)),
        serde_json::Value::Object(fields) => {
            fields.remove("query_location");
            let old = std::mem::take(fields);
            for (key, mut value) in old {
                neutral(&mut value, texts);
                fields.insert(texts.iter().fold(key, |key, text| key.replace(text, "?")), value);
            }
        }
        _ => {}
    }
}

/// Q18: hostile names of tables, columns, fields and lookups leave the statement's form as it is.
#[test]
fn hostile_names_change_no_form() {
    let harmless = tree(&statement(HARMLESS, "v"), &[HARMLESS]).to_string();
    for hostile in HOSTILE.iter().filter(|text| !text.contains('\0')) {
        let sql = statement(hostile, "v");
        let found = tree(&sql, &[hostile]).to_string();
        assert_eq!(found, harmless, "{sql}");
    }
}

/// Q16, Q18: hostile values leave the statement's form as it is.
#[test]
fn hostile_values_change_no_form() {
    let harmless = tree(&statement("n", HARMLESS), &[HARMLESS]).to_string();
    for hostile in HOSTILE.iter().filter(|text| !text.contains('\0')) {
        let sql = statement("n", hostile);
        assert_eq!(tree(&sql, &[hostile]).to_string(), harmless, "{sql}");
    }
    // A zero byte ends statements on their way into the engine: the text is put together from parts.
    let sql = statement("n", "\u{0}zero");
    assert!(!sql.contains('\0') && sql.contains("chr(0)"));
    tree(&sql, &[]);
}

/// Q6: a bound between two integers is compared as the one that lies on its side.
#[test]
fn a_bound_between_two_integers_leaves_out_neither() {
    let engine = ByHand::in_memory();
    engine.run("CREATE TABLE facts AS SELECT CAST(i AS INTEGER) AS i FROM range(6) AS r(i)");
    let view = View {
        table: vec!["facts".to_owned()],
        dimensions: vec![dimension("number", "i", "INTEGER")],
        ..View::default()
    };
    for (op, expected) in [
        ("lt", 3),
        ("lte", 3),
        ("gt", 3),
        ("gte", 3),
        ("eq", 0),
        ("neq", 6),
    ] {
        let text = format!(
            r#"{{"metrics_view": "v", "dimensions": ["number"], "where":
            {{"cond": {{"op": "{op}", "exprs": [{{"name": "number"}}, {{"val": 2.5}}]}}}}}}"#
        );
        let query: Query = text.parse().expect("a query");
        let bounds = Bounds::at(Timestamp::UNIX_EPOCH);
        let plan = plan(&view, &Policy::open(), &query, &bounds).expect("a plan");
        assert_eq!(engine.run(&plan.statement(&DuckDb)).len(), expected, "{op}");
    }
}

/// The number of rows.
pub(crate) fn count() -> Measure {
    Measure {
        name: "n".to_owned(),
        data_type: DataType::Number,
        engine_type: "BIGINT".to_owned(),
        expression: "count(*)".to_owned(),
        ..Measure::default()
    }
}

/// The lines of the answer to a query that everybody may ask.
fn answer(engine: &ByHand, view: &View, query: &str) -> Vec<String> {
    let query: Query = query.parse().expect("a query");
    let bounds = Bounds::at(Timestamp::UNIX_EPOCH);
    let plan = plan(view, &Policy::open(), &query, &bounds).expect("a plan");
    engine.lines(&plan.statement(&DuckDb))
}

/// A view of rows with tags, and a measure that adds up those of each tag.
fn tagged(engine: &ByHand) -> View {
    engine.run(
        "CREATE TABLE facts AS SELECT * FROM (VALUES (1, ['a', 'b']), (10, ['b']), (100, ['c', NULL])) AS r(n, tags)",
    );
    let measure = |name: &str, kind| Measure {
        name: name.to_owned(),
        data_type: DataType::Number,
        engine_type: "DOUBLE".to_owned(),
        expression: "sum(n)".to_owned(),
        kind,
        ..Measure::default()
    };
    View {
        table: vec!["facts".to_owned()],
        dimensions: vec![Dimension {
            unnest: true,
            ..dimension("tag", "tags", "VARCHAR")
        }],
        measures: vec![
            measure("n", MeasureKind::Simple),
            Measure {
                per: vec![Selector {
                    name: "tag".to_owned(),
                    grain: None,
                }],
                requires: vec!["n".to_owned()],
                ..measure("all", MeasureKind::Per)
            },
        ],
        ..View::default()
    }
}

/// The lines of an answer about tags.
fn about_tags(asked: &str, op: &str) -> Vec<String> {
    let engine = ByHand::in_memory();
    let view = tagged(&engine);
    let text = format!(
        r#"{{"metrics_view": "v", {asked}, "where":
        {{"cond": {{"op": "{op}", "exprs": [{{"name": "tag"}}, {{"val": "a"}}]}}}}}}"#
    );
    answer(&engine, &view, &text)
}

/// Q5: what a measure alone is grouped by is not in the query, so a row counts with all of its elements, or with none.
#[test]
fn a_filter_of_elements_that_a_measure_is_grouped_by_is_about_whole_rows() {
    let asked = r#""measures": ["all"]"#;
    assert_eq!(about_tags(asked, "eq"), ["2"]);
    assert_eq!(about_tags(asked, "nlike"), ["210"]);
}

/// Q5, Q12: elements that the filter leaves out of the query's groups are not in its totals either.
#[test]
fn totals_know_the_elements_of_the_query_alone() {
    let asked = r#""dimensions": ["tag"], "totals": true,
        "measures": ["n", "all", {"name": "tags", "compute": {"count_distinct": {"dimension": "tag"}}}]"#;
    assert_eq!(about_tags(asked, "eq"), ["a|1|1|1|false", "NULL|1|1|1|true"]);
    let others = [
        "b|11|11|1|false",
        "c|100|100|1|false",
        "NULL|100|100|0|false",
        "NULL|111|211|2|true",
    ];
    assert_eq!(about_tags(asked, "nlike"), others);
}

/// Q8: what is compared has the name of its partner's bucket.
#[test]
fn a_bucket_is_compared_with_the_one_at_its_place() {
    let engine = ByHand::in_memory();
    engine.run(
        "CREATE TABLE facts AS SELECT CAST(t AS TIMESTAMP) AS \"at\"
         FROM (VALUES ('2024-03-01 10:00'), ('2024-03-01 11:00'), ('2024-03-02 09:00')) AS r(t)",
    );
    let view = View {
        table: vec!["facts".to_owned()],
        time_dimension: "at".to_owned(),
        dimensions: vec![dimension("at", "at", "TIMESTAMP")],
        measures: vec![count()],
        ..View::default()
    };
    let query = r#"{"metrics_view": "v", "dimensions": [{"name": "at", "grain": "day"}],
        "measures": ["n", {"name": "before", "compute": {"comparison_value": {"measure": "n"}}}],
        "time_range": {"start": "2024-03-02T00:00:00Z", "end": "2024-03-03T00:00:00Z"},
        "comparison_time_range": {"offset": "-1P"}}"#;
    assert_eq!(answer(&engine, &view, query), ["2024-03-02 00:00:00|1|2"]);
}

/// Q8, Q10: buckets of the range are added to the groups of both sides; none of these is lost.
#[test]
fn buckets_without_rows_are_added_and_take_no_group_away() {
    let engine = ByHand::in_memory();
    engine.run(
        "CREATE TABLE facts AS SELECT CAST(d AS DATE) AS \"day\", CAST(s AS TIMESTAMP) AS \"seen\"
         FROM (VALUES ('2024-03-02', '2024-01-01'), ('2024-03-09', '2024-02-01')) AS r(d, s)",
    );
    let view = View {
        table: vec!["facts".to_owned()],
        time_dimension: "day".to_owned(),
        dimensions: vec![
            dimension("day", "day", "DATE"),
            dimension("seen", "seen", "TIMESTAMP"),
        ],
        measures: vec![count()],
        ..View::default()
    };
    let query = r#"{"metrics_view": "v", "dimensions": [{"name": "day", "grain": "day"}],
        "measures": ["n", {"name": "before", "compute": {"comparison_value": {"measure": "n"}}}],
        "time_range": {"start": "2024-03-01T00:00:00Z", "end": "2024-03-04T00:00:00Z"},
        "comparison_time_range": {"time_dimension": "seen", "start": "2024-02-01T00:00:00Z", "end": "2024-02-02T00:00:00Z"},
        "spine": {"time": true}}"#;
    let expected = [
        "2024-03-01|NULL|NULL",
        "2024-03-02|1|NULL",
        "2024-03-03|NULL|NULL",
        "2024-03-09|NULL|1",
    ];
    assert_eq!(answer(&engine, &view, query), expected);
}

/// Q13: a pivot's columns are the values in their order, and its limit counts rows of the pivot.
#[test]
fn a_pivot_makes_columns_of_values_in_their_order() {
    let engine = ByHand::in_memory();
    engine.run("CREATE TABLE facts AS FROM (VALUES ('x', 2, 5), ('x', 1, 7), ('y', 1, 1), (NULL, NULL, 3)) AS t(a, b, c)");
    let view = View {
        table: vec!["facts".to_owned()],
        dimensions: vec![dimension("a", "a", "VARCHAR"), dimension("b", "b", "INTEGER")],
        measures: vec![Measure {
            name: "c".to_owned(),
            data_type: DataType::Number,
            engine_type: "HUGEINT".to_owned(),
            expression: "sum(c)".to_owned(),
            ..Measure::default()
        }],
        ..View::default()
    };
    let answer = |rest: &str| {
        let text = format!(
            r#"{{"metrics_view": "v", "dimensions": ["a", "b"], "measures": ["c"], "pivot_on": ["b"]{rest}}}"#
        );
        let query: Query = text.parse().expect("a query");
        let plan = plan(&view, &Policy::open(), &query, &Bounds::at(Timestamp::UNIX_EPOCH))?;
        assert!(plan.is_pivot());
        let rows = engine.run(&plan.statement(&DuckDb));
        let place = |value: &Value| value.to_string().parse().unwrap_or_default();
        let pivoted = plan
            .pivot(&rows, &Value::Null, ToString::to_string, place)
            .expect("few columns");
        let names: Vec<String> = pivoted.columns.into_iter().map(|column| column.name).collect();
        let mut lines = vec![names.join("|")];
        for row in pivoted.rows {
            lines.push(row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"));
        }
        Ok::<_, watershed_metrics::plan::PlanError>(lines)
    };
    assert_eq!(
        answer("").expect("an answer"),
        [
            "a|1_c|2_c|NULL_c",
            "x|7|5|NULL",
            "y|1|NULL|NULL",
            "NULL|NULL|NULL|3"
        ]
    );
    assert_eq!(
        answer(r#", "limit": 1, "offset": 1, "sort": [{"name": "a", "desc": true}]"#).expect("an answer"),
        ["a|1_c|2_c", "x|7|5"]
    );
    assert!(answer(r#", "sort": ["c"]"#).is_err());
    assert!(answer(r#", "totals": true"#).is_err());
}

/// Q13: with a field rule in force only visible dimensions are columns; without one the table's others are, too.
#[test]
fn rows_show_what_the_viewer_may_see() {
    let view = View {
        table: vec!["facts".to_owned()],
        columns: ["a", "b", "c"].map(str::to_owned).to_vec(),
        dimensions: vec![dimension("a", "a", "VARCHAR"), dimension("b", "b", "INTEGER")],
        ..View::default()
    };
    let query: Query = r#"{"metrics_view": "v", "rows": true}"#.parse().expect("a query");
    let columns = |policy: &Policy| -> Vec<String> {
        let plan = plan(&view, policy, &query, &Bounds::at(Timestamp::UNIX_EPOCH)).expect("a plan");
        plan.columns().iter().map(|column| column.name.clone()).collect()
    };
    assert_eq!(columns(&Policy::open()), ["a", "b", "c"]);
    let rule = |effect| Rule {
        condition: Truth::True,
        effect,
    };
    let fields = watershed_metrics::policy::Fields::Named(vec!["b".to_owned()]);
    let policy = Policy::of(&[Layer {
        rules: vec![rule(Effect::AllowAccess), rule(Effect::AllowFields(fields))],
    }]);
    assert_eq!(columns(&policy), ["b"]);
}

/// Q14: who may not see a view is told that alone.
#[test]
fn a_closed_view_answers_nothing() {
    let policy = Policy::of(&[Layer {
        rules: vec![Rule {
            condition: Truth::False,
            effect: Effect::AllowAccess,
        }],
    }]);
    let query: Query = r#"{"metrics_view": "departures", "measures": ["no such"]}"#
        .parse()
        .expect("a query");
    let refused = plan(&cases(), &policy, &query, &Bounds::at(Timestamp::UNIX_EPOCH));
    let Err(watershed_metrics::plan::PlanError::Refused(error)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(error.code, Code::NotAllowed);
}

/// A view of days and the measure of their number up to each, as `window: time` has it.
fn running(engine: &ByHand, rows: &str) -> View {
    engine.run(&format!(
        "CREATE TABLE facts AS SELECT CAST(d AS DATE) AS \"day\", n FROM (VALUES {rows}) AS r(d, n)"
    ));
    View {
        table: vec!["facts".to_owned()],
        time_dimension: "day".to_owned(),
        dimensions: vec![dimension("day", "day", "DATE")],
        measures: vec![
            count(),
            Measure {
                name: "running".to_owned(),
                kind: MeasureKind::Window,
                expression: "sum(n)".to_owned(),
                requires: vec!["n".to_owned()],
                order: vec![Selector {
                    name: "day".to_owned(),
                    grain: None,
                }],
                window: Some(Window {
                    partition: true,
                    frame: String::new(),
                }),
                ..count()
            },
        ],
        ..View::default()
    }
}

/// Q3: a time that is cut in two ways is one time, by which a window goes on.
#[test]
fn a_window_over_time_goes_on_over_all_cuts_of_the_time() {
    let engine = ByHand::in_memory();
    let view = running(&engine, "('2024-01-31', 1), ('2024-02-01', 2), ('2024-02-02', 4)");
    let query = r#"{"metrics_view": "v", "measures": ["running"], "dimensions": [{"name": "day", "grain": "day"},
        {"name": "month", "compute": {"time_floor": {"dimension": "day", "grain": "month"}}}]}"#;
    let expected = [
        "2024-01-31|2024-01-01|1",
        "2024-02-01|2024-02-01|2",
        "2024-02-02|2024-02-01|3",
    ];
    assert_eq!(answer(&engine, &view, query), expected);
    let query: Query = r#"{"metrics_view": "v", "measures": ["running"]}"#
        .parse()
        .expect("a query");
    let refused = watershed_metrics::query::check(&query, &view);
    assert_eq!(refused.map_err(|error| error.code), Err(Code::DimensionRequired));
}

/// Q7: who sees no row with a time gets the answer of a range without rows.
#[test]
fn ranges_of_the_data_are_empty_where_no_row_is_seen() {
    let engine = ByHand::in_memory();
    let view = running(&engine, "(NULL, 1)");
    for range in ["P7D", "inf", "7D as of latest/D", "earliest to watermark"] {
        let query = format!(
            r#"{{"metrics_view": "v", "dimensions": ["day"], "measures": ["n"], "time_range": "{range}"}}"#
        );
        assert_eq!(answer(&engine, &view, &query), Vec::<String>::new(), "{range}");
    }
    let compared = r#"{"metrics_view": "v", "measures": ["n"], "time_range": "P7D", "comparison_time_range": {"offset": "-1P"}}"#;
    assert_eq!(answer(&engine, &view, compared), ["0"]);
}

/// Q2.
#[test]
fn an_element_that_a_list_holds_twice_counts_its_row_once() {
    let engine = ByHand::in_memory();
    let mut view = tagged(&engine);
    engine.run(
        "CREATE OR REPLACE TABLE facts AS SELECT * FROM (VALUES (1, ['a', 'a', NULL, NULL, 'b']), (10, ['b', 'b']),
         (100, []), (1000, NULL)) AS r(n, tags)",
    );
    view.measures.push(count());
    view.measures[2].name = "rows".to_owned();
    let query = r#"{"metrics_view": "v", "dimensions": ["tag"], "measures": ["n", "rows"]}"#;
    assert_eq!(answer(&engine, &view, query), ["a|1|1", "b|11|2", "NULL|1101|3"]);
}
