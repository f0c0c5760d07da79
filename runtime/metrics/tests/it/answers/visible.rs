//! Random policies, users and queries: an answer is that over a table with the visible rows alone, byte for byte, and so is
//! an error.
//!
//! Errors are compared under the same policy, which all rows of that table pass: without one a condition stands alone, where
//! the engine stops at the first part of an OR that holds, while within a CASE it evaluates each part. So a visible row may fail
//! one way and not the other, and tells of nothing that is hidden.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use watershed_drivers::olap::Value;
use watershed_metrics::policy::{Effect, Fields, Layer, Rule, Truth};
use watershed_metrics::query::{Filter, Literal, Operator, Spine};
use watershed_metrics::view::Source;
use watershed_metrics::{DataType, Dimension, Policy, Query, View};

use super::ask::{Ask, on_table};
use super::draw::Draw;
use super::world::{DIMENSIONS, Row, World};
use super::{planned, play, run, try_run};

/// Row filters as authors write them: some have comments, some an OR at their outermost.
const FILTERS: [&str; 14] = [
    "seats > 0 OR flag -- or",
    "code IS NULL OR code < 4",
    "name = 'a'",
    "price < 1",
    "FALSE",
    "NULL",
    "flag",
    "name IN (NULL, 'a')",
    "name NOT IN (NULL)",
    "/* ; */ seats <> 1 -- ) OR TRUE",
    "list_contains(tags, 'a')",
    "EXISTS (SELECT 1 FROM codes c WHERE c.code = code)",
    "name <> 'it''s; --'",
    "TRUE OR 1 = 1",
];

/// The dimension whose expression fails on some rows.
const RISKY: &str = "risky";

fn filter(draw: &mut Draw<'_>, depth: usize) -> String {
    if depth == 0 || !draw.one_in(2) {
        return draw.pick(&FILTERS).to_owned();
    }
    let one = filter(draw, depth - 1);
    match draw.below(3) {
        0 => format!("{one}\nOR {}", filter(draw, depth - 1)),
        1 => format!("{one}\nAND {}", filter(draw, depth - 1)),
        _ => format!("NOT (\n{one}\n)"),
    }
}

fn fields(draw: &mut Draw<'_>, world: &World) -> Fields {
    if draw.one_in(5) {
        return Fields::All;
    }
    let measures = world.view.measures.iter().map(|measure| measure.name.as_str());
    let all: Vec<&str> = DIMENSIONS
        .iter()
        .copied()
        .chain([RISKY])
        .chain(measures)
        .collect();
    let some = all.iter().filter(|_| draw.below(3) > 0);
    Fields::Named(some.map(|name| name.to_uppercase()).collect())
}

/// Draws the rules of a block, as they were evaluated for somebody.
fn layer(draw: &mut Draw<'_>, world: &World) -> Layer {
    let rule = |condition, effect| Rule { condition, effect };
    let truth = |draw: &mut Draw<'_>| draw.pick(&[Truth::True, Truth::True, Truth::Null, Truth::False]);
    let access = if draw.one_in(20) { Truth::Null } else { Truth::True };
    let mut rules = vec![rule(access, Effect::AllowAccess)];
    for _ in 0..draw.below(3) {
        let condition = truth(draw);
        rules.push(rule(condition, Effect::FilterRows(filter(draw, 2))));
    }
    if draw.one_in(3) {
        let condition = truth(draw);
        rules.push(rule(condition, Effect::AllowFields(fields(draw, world))));
    }
    if draw.one_in(4) {
        rules.push(rule(Truth::True, Effect::AllowFields(Fields::All)));
        let condition = truth(draw);
        rules.push(rule(condition, Effect::DenyFields(fields(draw, world))));
    }
    Layer { rules }
}

/// Returns the same layers without their row filters.
fn without_filters(layers: &[Layer]) -> Vec<Layer> {
    let is_other = |rule: &&Rule| !matches!(rule.effect, Effect::FilterRows(_));
    let same = |layer: &Layer| Layer {
        rules: layer.rules.iter().filter(is_other).cloned().collect(),
    };
    layers.iter().map(same).collect()
}

/// Adds a dimension that texts and large numbers make fail.
fn with_risk(view: &View) -> View {
    let mut view = view.clone();
    view.dimensions.push(Dimension {
        name: RISKY.to_owned(),
        data_type: DataType::Number,
        engine_type: "INTEGER".to_owned(),
        source: Source::Expression(
            "CASE WHEN seats > 0 THEN CAST(name AS INTEGER) ELSE seats END".to_owned(),
        ),
        ..Dimension::default()
    });
    view
}

/// Puts the dimension that may fail into some queries.
fn take_risks(draw: &mut Draw<'_>, query: &mut Query) {
    let is_large = Filter::Condition {
        op: draw.pick(&[Operator::Gt, Operator::Nin, Operator::Like]),
        operands: vec![
            Filter::Name(RISKY.to_owned()),
            Filter::Value(Literal::Number(draw.below(3).into())),
        ],
    };
    let is_large = match &is_large {
        Filter::Condition { op, operands } if op.is_pattern() => Filter::Condition {
            op: *op,
            operands: vec![
                operands[0].clone(),
                Filter::Value(Literal::Text("%1%".to_owned())),
            ],
        },
        _ => is_large,
    };
    match draw.below(8) {
        0 => {
            let before = query.r#where.take();
            query.r#where = Some(match before {
                None => is_large,
                Some(before) => Filter::Condition {
                    op: draw.pick(&[Operator::Or, Operator::And]),
                    operands: vec![before, is_large],
                },
            });
        }
        1 if !query.rows => {
            query
                .dimensions
                .push(watershed_metrics::query::Dimension::named(RISKY));
        }
        2 if !query.rows && query.spine.is_none() && !query.dimensions.is_empty() => {
            query.spine = Some(Spine::Where(is_large));
        }
        _ => {}
    }
}

/// The file whose tables have groups of as few rows as the engine allows.
const SMALL: &str = "small";

/// Returns the statements that put rows of `facts` so far apart that the engine keeps each in a group of its own, among
/// hidden ones with values around theirs. It leaves out whole groups by their smallest and largest values.
fn far_apart(directory: &Path) -> String {
    let file = directory.join("rows.db");
    format!(
        "ATTACH IF NOT EXISTS '{}' AS {SMALL} (ROW_GROUP_SIZE 2048);
         CREATE OR REPLACE TABLE {SMALL}.facts AS SELECT r.* EXCLUDE (place, number) FROM (
             SELECT * REPLACE (
                 CASE WHEN number = 0 THEN name ELSE chr(CAST(64 + number % 60 AS INTEGER)) END AS name,
                 code + number % 5 - 2 AS code, seats + number % 9 - 4 AS seats, price - number % 7 AS price,
                 \"at\" + to_days(CAST(number % 5 - 2 AS INTEGER)) AS \"at\"),
             number > 0 AS hidden FROM (SELECT *, rowid AS place FROM facts), range(2048) AS n(number)
         ) AS r ORDER BY place, number",
        file.display()
    )
}

/// The outcome of a query: its rows, the reason why it is refused, or that the engine failed, in no words.
type Outcome = Result<Result<Vec<Vec<Value>>, ()>, String>;

fn asked(view: &View, policy: &Policy, query: &Query) -> (Outcome, String) {
    match planned(view, policy, query) {
        Err(refused) => (Err(refused), String::new()),
        Ok(sql) => (Ok(try_run(&sql).map_err(drop)), sql),
    }
}

fn round(
    directory: &Path,
    world: &[u16],
    query: &[u16],
    seen: &mut BTreeMap<&'static str, usize>,
) -> Result<(), String> {
    let world = World::draw(&mut Draw::new(world));
    let mut draw = Draw::new(query);
    let mut layers: Vec<Layer> = (0..=draw.below(3)).map(|_| layer(&mut draw, &world)).collect();
    let mut ask = Ask::draw(&mut draw, &world);
    take_risks(&mut draw, &mut ask.query);
    let all: Vec<&Row> = world.rows.iter().collect();
    run(&world.tables(&all, "facts"));
    let mut view = with_risk(&world.view);
    let is_large = draw.one_in(6) && !all.is_empty();
    if is_large {
        run(&far_apart(directory));
        view.table = vec![SMALL.to_owned(), "main".to_owned(), "facts".to_owned()];
        layers[0].rules.push(Rule {
            condition: Truth::True,
            effect: Effect::FilterRows("NOT hidden".to_owned()),
        });
    }
    let policy = Policy::of(&layers);
    let filters = policy.row_filters().iter();
    let condition: String = filters.map(|filter| format!(" AND (\n{filter}\n)")).collect();
    run(&format!(
        "CREATE OR REPLACE TABLE visible AS SELECT * FROM {} WHERE TRUE{condition}",
        view.table.join(".")
    ));
    let (bound, sql) = asked(&view, &policy, &ask.query);
    let alone = on_table(&view, "visible");
    let (closed, _) = asked(&alone, &policy, &ask.query);
    let (open, _) = asked(&alone, &Policy::of(&without_filters(&layers)), &ask.query);
    let mut add = |part, has: bool| *seen.entry(part).or_default() += usize::from(has);
    add("rows", matches!(&bound, Ok(Ok(rows)) if !rows.is_empty()));
    add("failed", matches!(&bound, Ok(Err(()))));
    add("refused", bound.is_err());
    add(
        "hidden rows",
        !run("SELECT 1 FROM facts EXCEPT ALL SELECT 1 FROM visible").is_empty(),
    );
    add("groups of rows", is_large);
    add("layers", layers.len() > 1);
    let is_same = format!("{bound:?}") == format!("{closed:?}");
    let (failed, failed_open) = (matches!(bound, Ok(Err(()))), matches!(open, Ok(Err(()))));
    match is_same && (failed || failed_open || format!("{bound:?}") == format!("{open:?}")) {
        true => Ok(()),
        false => Err(format!(
            "over the visible rows alone: {open:?}\nand with the policy: {closed:?}\nover all rows: {bound:?}\n\
             {layers:#?}\n{:#?}\n{sql}",
            ask.query
        )),
    }
}

/// Numbers for the table and the view, and numbers for policy and query.
fn numbers() -> impl Strategy<Value = (Vec<u16>, Vec<u16>)> {
    let some = |least, most| prop::collection::vec(any::<u16>(), least..most);
    (some(150, 260), some(100, 220))
}

/// Q14 to Q17: changing any row that the viewer may not see changes no byte of the answer.
#[test]
fn answers_depend_on_visible_rows_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let round = |world: &[u16], query: &[u16], seen: &mut _| round(directory.path(), world, query, seen);
    let (cases, seen) = play(file!(), &numbers(), round);
    println!("{seen:?}");
    if cases >= 200 {
        assert!(
            seen.len() == 6 && seen.values().all(|count| *count > 0),
            "{seen:?}"
        );
    }
}
