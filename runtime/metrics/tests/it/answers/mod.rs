//! Answers of plans, run by the engine, against a naive evaluator that knows no SQL.

mod ask;
mod cell;
mod draw;
mod naive;
mod visible;
mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use watershed_dialect::DuckDb;
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::olap::Value;
use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{Bounds, Extent, extents, plan, times};
use watershed_metrics::policy::{Effect, Layer, Rule, Truth};
use watershed_metrics::query::Spine;
use watershed_metrics::{Policy, Query, View};

use ask::{Ask, on_table};
use cell::{Cell, Clock};
use draw::Draw;
use naive::Naive;
use world::{CODE, FLAG, NAME, PRICE, Row, SEATS, World};

thread_local! {
    static ENGINE: RefCell<Option<ByHand>> = const { RefCell::new(None) };
}

/// Runs statements in an engine without a file; gives back the rows of the last.
fn run(sql: &str) -> Vec<Vec<Value>> {
    try_run(sql).unwrap_or_else(|message| panic!("{message}\nin: {sql}"))
}

/// Runs statements as [`run`] does, or gives back the engine's words against them.
fn try_run(sql: &str) -> Result<Vec<Vec<Value>>, String> {
    ENGINE.with_borrow_mut(|engine| {
        let engine = engine.get_or_insert_with(|| {
            let engine = ByHand::in_memory();
            engine.run("SET threads = 1; SET TimeZone = 'Asia/Kathmandu'");
            engine
        });
        engine.try_run(sql)
    })
}

fn now() -> Timestamp {
    "2024-06-01T00:00:00Z".parse().expect("a time")
}

/// Plans a query with the ends of time dimensions that the engine finds.
fn planned(view: &View, policy: &Policy, query: &Query) -> Result<String, String> {
    let names = times(view, query);
    let ends = extents(view, policy, &names, now()).map_err(|error| error.to_string())?;
    let row = ends
        .map(|ends| run(&ends.statement(&DuckDb)).remove(0))
        .unwrap_or_default();
    let pairs = names.iter().zip(row.chunks(2)).map(|(name, ends)| {
        let extent = Extent {
            earliest: ends[0].instant(),
            latest: ends[1].instant(),
            watermark: None,
        };
        (name.to_lowercase(), extent)
    });
    let bounds = Bounds {
        times: pairs.collect::<BTreeMap<_, _>>(),
        ..Bounds::at(now())
    };
    let plan = plan(view, policy, query, &bounds).map_err(|error| error.to_string())?;
    Ok(plan.statement(&DuckDb))
}

/// Returns true if the engine's value is the expected one; of numbers, their first twelve digits.
fn agrees(cell: &Cell, value: &Value) -> bool {
    let near = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    match (cell, value) {
        (Cell::Null, Value::Null) => true,
        (Cell::Bool(a), Value::Boolean(b)) => a == b,
        (Cell::Number(a), Value::Double(b)) => near(*a, *b) || (a.is_nan() && b.is_nan()),
        (Cell::Number(a), Value::Integer(b)) => *a == *b as f64,
        (Cell::Number(a), Value::Decimal { .. }) => value.number().is_some_and(|b| near(*a, b)),
        (Cell::Text(a), Value::Text(b)) => a == b,
        (Cell::Day(_), Value::Date { .. }) => cell.shown() == value.to_string(),
        (Cell::Time(_), Value::Timestamp { .. }) => cell.shown() == value.to_string().trim_end_matches("+00"),
        (Cell::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agrees(a, b)),
        _ => false,
    }
}

fn compare(expected: &[Vec<Cell>], found: &[Vec<Value>]) -> Result<(), String> {
    let row_agrees = |(cells, values): (&Vec<Cell>, &Vec<Value>)| {
        cells.iter().zip(values).all(|(cell, value)| agrees(cell, value))
    };
    if expected.len() == found.len() && expected.iter().zip(found).all(row_agrees) {
        return Ok(());
    }
    let expected: Vec<String> = expected
        .iter()
        .map(|row| row.iter().map(Cell::shown).collect::<Vec<_>>().join(" | "))
        .collect();
    let found: Vec<String> = found
        .iter()
        .map(|row| {
            row.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect();
    Err(format!(
        "expected:\n{}\nfound:\n{}",
        expected.join("\n"),
        found.join("\n")
    ))
}

/// A row filter as its author writes it, and the rows that it leaves.
type RowFilter = (&'static str, fn(&Row) -> bool);

fn row_filter(draw: &mut Draw<'_>) -> Option<RowFilter> {
    let filters: [RowFilter; 5] = [
        ("seats > 0 OR flag -- or", |row| {
            row[SEATS].number().is_some_and(|seats| seats > 0.0) || row[FLAG] == Cell::Bool(true)
        }),
        ("code IS NULL OR code < 4", |row| {
            row[CODE].number().is_none_or(|code| code < 4.0)
        }),
        ("name = 'a'", |row| row[NAME] == Cell::text("a")),
        ("price < 1", |row| {
            row[PRICE].number().is_some_and(|price| price < 1.0)
        }),
        ("FALSE", |_| false),
    ];
    match draw.below(3) {
        0 | 1 => None,
        _ => Some(draw.pick(&filters)),
    }
}

fn policy(filter: Option<&str>) -> Policy {
    let rule = |effect| Rule {
        condition: Truth::True,
        effect,
    };
    match filter {
        None => Policy::open(),
        Some(filter) => Policy::of(&[Layer {
            rules: vec![
                rule(Effect::AllowAccess),
                rule(Effect::FilterRows(filter.to_owned())),
            ],
        }]),
    }
}

/// One round: a world, a viewer and a query.
fn round(world: &[u16], query: &[u16], seen: &mut BTreeMap<String, usize>) -> Result<(), String> {
    let world = World::draw(&mut Draw::new(world));
    let mut draw = Draw::new(query);
    let filter = row_filter(&mut draw);
    let ask = Ask::draw(&mut draw, &world);
    let all: Vec<&Row> = world.rows.iter().collect();
    let visible: Vec<&Row> = all
        .iter()
        .copied()
        .filter(|row| filter.is_none_or(|(_, sees)| sees(row)))
        .collect();
    run(&world.tables(&all, "facts"));
    let sql = planned(&world.view, &policy(filter.map(|(sql, _)| sql)), &ask.query)
        .map_err(|error| format!("{error}\n{:?}", ask.query))?;
    let found = run(&sql);
    note(seen, &world.view, &ask.query, found.len(), filter.is_some());
    let zone = ask.query.time_zone.name().unwrap_or("UTC").to_owned();
    let first = |number: u32, last: u32| {
        i8::try_from(if (1..=last).contains(&number) { number } else { 1 }).expect("small")
    };
    let naive = Naive {
        world: &world,
        rows: visible.clone(),
        query: &ask.query,
        clock: Clock {
            zone: watershed_metrics::jiff::tz::TimeZone::get(&zone).expect("a zone"),
            first_day_of_week: first(world.view.first_day_of_week, 7),
            first_month_of_year: first(world.view.first_month_of_year, 12),
        },
        base: ask.base,
        comparison: ask.comparison,
    };
    let said = |error: String| {
        let (view, tables) = (&world.view, world.tables(&all, "facts"));
        format!(
            "{error}\nview: {view:#?}\nquery: {:#?}\nsql: {sql}\ntables: {tables}",
            ask.query
        )
    };
    if ask.query.rows {
        let mut expected: Vec<Vec<Cell>> = naive.raw();
        expected.sort_by(|a, b| {
            let orders = a.iter().zip(b).map(|(a, b)| a.sort(b, false));
            orders
                .into_iter()
                .find(|order| order.is_ne())
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        // Lists have an order of the engine's own.
        if expected.iter().all(|row| row[3].is_null()) {
            compare(&expected, &found).map_err(said)?;
        } else if expected.len() != found.len() {
            return Err(said("another number of rows".to_owned()));
        }
    } else {
        compare(&naive.answer(), &found).map_err(said)?;
    }
    // Over the visible rows alone the answer is the same, byte for byte.
    if filter.is_some() {
        run(&world.tables(&visible, "visible"));
        let open = planned(&on_table(&world.view, "visible"), &Policy::open(), &ask.query)?;
        let alone = run(&open);
        if format!("{alone:?}") != format!("{found:?}") {
            return Err(said(format!(
                "over the visible rows alone: {alone:?}\nwith the policy: {found:?}"
            )));
        }
    }
    Ok(())
}

/// Numbers for the table and the view, and numbers for the query.
fn numbers() -> impl Strategy<Value = (Vec<u16>, Vec<u16>)> {
    let some = |least, most| prop::collection::vec(any::<u16>(), least..most);
    (some(150, 260), some(60, 130))
}

/// Plays rounds; failing ones are kept beside a file. Returns how many there were and how often each part occurred.
fn play<Part: Ord + Debug>(
    file: &'static str,
    numbers: &impl Strategy<Value = (Vec<u16>, Vec<u16>)>,
    round: impl Fn(&[u16], &[u16], &mut BTreeMap<Part, usize>) -> Result<(), String>,
) -> (u32, BTreeMap<Part, usize>) {
    let config = Config {
        source_file: Some(file),
        ..Config::default()
    };
    let cases = config.cases;
    let seen = RefCell::new(BTreeMap::new());
    let tested = TestRunner::new(config).run(numbers, |(world, query)| {
        round(&world, &query, &mut seen.borrow_mut()).map_err(TestCaseError::fail)
    });
    if let Err(error) = tested {
        panic!("{error}");
    }
    (cases, seen.into_inner())
}

/// Q2 to Q14, Q17: the answer is that of the rules, over the rows that the viewer may see.
#[test]
fn answers_are_those_of_the_rules() {
    let (cases, seen) = play(file!(), &numbers(), round);
    println!("{seen:?}");
    if cases >= 200 {
        for part in PARTS {
            assert!(seen.contains_key(part), "no round had {part}: {seen:?}");
        }
    }
}

/// Parts of views and queries that a run of some length meets.
const PARTS: [&str; 22] = [
    "rows of groups",
    "no rows",
    "range",
    "comparison",
    "where",
    "having",
    "subquery",
    "sort",
    "limit",
    "totals",
    "spine of times",
    "spine of groups",
    "rows",
    "row filter",
    "Simple",
    "Derived",
    "Per",
    "TimeComparison",
    "Window",
    "window by time",
    "computed",
    "unnested",
];

/// Notes the parts that a round has.
fn note(seen: &mut BTreeMap<String, usize>, view: &View, query: &Query, answer: usize, filtered: bool) {
    let written = format!("{query:?}");
    let mut add = |part: &str, has: bool| {
        if has {
            *seen.entry(part.to_owned()).or_default() += 1;
        }
    };
    add("rows of groups", answer > 0 && !query.rows);
    add("no rows", answer == 0);
    add("range", query.time_range.is_some());
    add("comparison", query.comparison_time_range.is_some());
    add("where", query.r#where.is_some());
    add("having", query.having.is_some());
    add("subquery", written.contains("Subquery"));
    add("sort", !query.sort.is_empty());
    add("limit", query.limit.is_some());
    add("totals", query.totals);
    add("spine of times", query.spine == Some(Spine::Time));
    add("spine of groups", matches!(query.spine, Some(Spine::Where(_))));
    add("rows", query.rows);
    add("row filter", filtered);
    add(
        "computed",
        query.measures.iter().any(|measure| measure.compute.is_some()),
    );
    add(
        "unnested",
        query.dimensions.iter().any(|dimension| dimension.of == "tag"),
    );
    for measure in &query.measures {
        if let Some(found) = view.measure(&measure.name) {
            add(&format!("{:?}", found.kind), true);
            let by_time = found.order.iter().any(|selector| selector.grain.is_none());
            add("window by time", by_time);
        }
    }
}
