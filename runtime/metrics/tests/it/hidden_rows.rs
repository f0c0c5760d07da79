//! Rows that a viewer may not see: nothing tells of them, not even whether a query fails.

use watershed_dialect::DuckDb;
use watershed_drivers::duckdb::ByHand;
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{Bounds, plan};
use watershed_metrics::policy::{Effect, Layer, Rule, Truth};
use watershed_metrics::view::Source;
use watershed_metrics::{Measure, Policy, Query, View};

use crate::statements::{count, dimension};

/// The policy of somebody who sees the rows that meet a condition.
fn only(condition: &str) -> Policy {
    let rule = |effect| Rule {
        condition: Truth::True,
        effect,
    };
    Policy::of(&[Layer {
        rules: vec![
            rule(Effect::AllowAccess),
            rule(Effect::FilterRows(condition.to_owned())),
        ],
    }])
}

/// Q18: an expression that fails on hidden rows does not tell that they are there.
#[test]
fn conditions_are_evaluated_on_visible_rows_alone() {
    let engine = ByHand::in_memory();
    engine.run(
        "CREATE TABLE facts AS SELECT i AS id, i % 2 = 1 AS secret, CASE WHEN i % 2 = 1 THEN 'x' ELSE '7' END AS code
         FROM range(5000) AS r(i)",
    );
    let mut view = View {
        table: vec!["facts".to_owned()],
        dimensions: vec![dimension("number", "", "INTEGER")],
        measures: vec![count()],
        ..View::default()
    };
    view.dimensions[0].source = Source::Expression("CAST(code AS INTEGER)".to_owned());
    let policy = only("NOT secret AND id < 4000");
    let query: Query = r#"{"metrics_view": "v", "dimensions": ["number"], "measures": ["n"], "where":
        {"cond": {"op": "gt", "exprs": [{"name": "number"}, {"val": 3}]}}}"#
        .parse()
        .expect("a query");
    let plan = plan(&view, &policy, &query, &Bounds::at(Timestamp::UNIX_EPOCH)).expect("a plan");
    let statement = plan.statement(&DuckDb);
    for _ in 0..20 {
        assert_eq!(engine.lines(&statement), ["7|2000"]);
    }
    // The engine changes the order of conditions when it has seen many rows: the filter stands before this one as well.
    assert_eq!(
        statement.matches("NOT secret AND id < 4000").count(),
        2,
        "{statement}"
    );
}

/// Q18: whether a condition fails on a visible row is no matter of the rows that are hidden. The engine knows of a column
/// with one value that the row filter holds; it drops the filter then, and stops at the first part of an OR that holds.
#[test]
fn conditions_end_alike_whatever_is_hidden() {
    let engine = ByHand::in_memory();
    engine.run(
        "CREATE TABLE facts AS SELECT i AS id, CASE WHEN i % 2 = 1 THEN 'x' ELSE '7' END AS code FROM range(50) AS r(i);
         CREATE TABLE visible AS SELECT * FROM facts WHERE code = 'x'",
    );
    let mut number = dimension("number", "", "INTEGER");
    number.source = Source::Expression("CAST(code AS INTEGER)".to_owned());
    let view = |table: &str| View {
        table: vec![table.to_owned()],
        dimensions: vec![dimension("id", "id", "BIGINT"), number.clone()],
        measures: vec![count()],
        ..View::default()
    };
    let policy = only("code IN (NULL, 'x') OR code = 'x'");
    // What ids are between is known to the engine; that none of those that are visible is this one is not.
    for (op, first, found) in [("or", "neq", "25"), ("and", "eq", "0")] {
        let query: Query = format!(
            r#"{{"metrics_view": "v", "measures": ["n"], "where": {{"cond": {{"op": "{op}", "exprs": [
            {{"cond": {{"op": "{first}", "exprs": [{{"name": "id"}}, {{"val": 24}}]}}}},
            {{"cond": {{"op": "gt", "exprs": [{{"name": "number"}}, {{"val": 3}}]}}}}]}}}}}}"#
        )
        .parse()
        .expect("a query");
        for table in ["facts", "visible"] {
            let plan = plan(&view(table), &policy, &query, &Bounds::at(Timestamp::UNIX_EPOCH));
            let statement = plan.expect("a plan").statement(&DuckDb);
            assert_eq!(
                engine.lines(&statement),
                [found],
                "{op} over {table}: {statement}"
            );
        }
    }
}

/// Q18: the same of what is computed of groups, where statistics of the visible rows say that no group is left, and those of
/// all rows do not.
#[test]
fn groups_are_made_whatever_is_hidden() {
    let engine = ByHand::in_memory();
    engine.run(
        "CREATE TABLE facts AS SELECT CAST(i AS BIGINT) AS id, i >= 0 AS seen, CASE WHEN i > 3 THEN 'x' ELSE '7' END AS code,
             TIMESTAMP '2024-03-31' + to_days(CAST(least(i, 0) AS INTEGER)) AS \"at\"
         FROM range(-40, 10) AS r(i);
         CREATE TABLE visible AS SELECT * FROM facts WHERE seen",
    );
    let mut number = dimension("number", "", "INTEGER");
    number.source = Source::Expression("CAST(code AS INTEGER)".to_owned());
    let measure = |name: &str, expression: &str| Measure {
        name: name.to_owned(),
        expression: expression.to_owned(),
        ..count()
    };
    let view = |table: &str| View {
        table: vec![table.to_owned()],
        time_dimension: "at".to_owned(),
        dimensions: vec![
            dimension("id", "id", "BIGINT"),
            dimension("seen", "seen", "BOOLEAN"),
            dimension("at", "at", "TIMESTAMP"),
            number.clone(),
        ],
        measures: vec![
            measure("lowest", "min(id)"),
            measure("sum", "sum(CAST(code AS INTEGER))"),
        ],
        ..View::default()
    };
    let below =
        |name: &str| format!(r#"{{"cond": {{"op": "lt", "exprs": [{{"name": "{name}"}}, {{"val": -3}}]}}}}"#);
    let (low_id, lowest) = (below("id"), below("lowest"));
    let risky = r#"{"cond": {"op": "gt", "exprs": [{"name": "number"}, {"val": 0}]}}"#;
    let queries = [
        // Groups that a spine adds.
        format!(
            r#""dimensions": ["id"], "measures": ["lowest"], "having": {low_id}, "spine": {{"where": {risky}}}"#
        ),
        // Measures of groups.
        format!(r#""dimensions": ["seen"], "measures": ["sum"], "having": {lowest}"#),
        // Groups of a subquery.
        format!(
            r#""measures": ["lowest"], "where": {{"cond": {{"op": "in", "exprs": [{{"name": "id"}}, {{"subquery":
            {{"dimension": "id", "where": {risky}, "having": {low_id}}}}}]}}}}"#
        ),
        // Buckets of a comparison that have no partner.
        r#""dimensions": [{"name": "at", "grain": "day"}], "measures": [{"name": "before", "compute":
            {"comparison_value": {"measure": "sum"}}}],
            "time_range": {"start": "2024-04-01T00:00:00Z", "end": "2024-04-03T00:00:00Z"},
            "comparison_time_range": {"start": "2024-03-01T00:00:00Z", "end": "2024-04-01T00:00:00Z"}"#
            .to_owned(),
    ];
    for text in queries {
        let query: Query = format!(r#"{{"metrics_view": "v", {text}}}"#)
            .parse()
            .expect("a query");
        let failed = ["facts", "visible"].map(|table| {
            let plan = plan(
                &view(table),
                &only("seen"),
                &query,
                &Bounds::at(Timestamp::UNIX_EPOCH),
            );
            engine.try_run(&plan.expect("a plan").statement(&DuckDb)).is_err()
        });
        assert_eq!(
            failed,
            [true, true],
            "over all rows, and over those that are visible: {text}"
        );
    }
}

/// Q18: the same of single rows beyond a limit. Once the engine has as many rows as are asked for, it leaves out those behind
/// them before it evaluates anything, a batch at a time, and hidden rows move visible ones to other batches.
#[test]
fn rows_beyond_a_limit_fail_whatever_is_hidden() {
    let engine = ByHand::in_memory();
    engine.run(
        "SET threads = 1;
         CREATE TABLE facts AS SELECT CAST(i AS BIGINT) AS id, i < 10 OR i = 450000 AS seen,
             CASE WHEN i = 450000 THEN 'x' ELSE '7' END AS code FROM range(500000) AS r(i);
         CREATE TABLE visible AS SELECT * FROM facts WHERE seen",
    );
    let mut number = dimension("number", "", "INTEGER");
    number.source = Source::Expression("CAST(code AS INTEGER)".to_owned());
    let view = |table: &str, shown: bool| {
        let mut view = View {
            table: vec![table.to_owned()],
            dimensions: vec![dimension("id", "id", "BIGINT"), number.clone()],
            measures: vec![count()],
            ..View::default()
        };
        view.dimensions[1].hidden = !shown;
        view
    };
    let large = r#", "where": {"cond": {"op": "gt", "exprs": [{"name": "number"}, {"val": 0}]}}"#;
    let rows = [(large, false), ("", true), (large, true)];
    // An export has a limit of its own, around the statement.
    let cases = rows.iter().flat_map(|row| [(row, true), (row, false)]);
    for ((filter, shown), is_own) in cases {
        let limit = if is_own { r#", "limit": 3"# } else { "" };
        let query: Query =
            format!(r#"{{"metrics_view": "v", "rows": true, "sort": [{{"name": "id"}}]{limit}{filter}}}"#)
                .parse()
                .expect("a query");
        let failed = ["facts", "visible"].map(|table| {
            let view = view(table, *shown);
            let bounds = Bounds::at(Timestamp::UNIX_EPOCH);
            let plan = plan(&view, &only("seen"), &query, &bounds);
            let statement = plan.expect("a plan").statement(&DuckDb);
            let limited = match is_own {
                true => statement,
                false => format!("SELECT * FROM (\n{statement}\n) LIMIT 3"),
            };
            engine.try_run(&limited).is_err()
        });
        assert_eq!(
            failed,
            [true, true],
            "over all rows, and over those that are visible: {query:?}"
        );
    }
}
