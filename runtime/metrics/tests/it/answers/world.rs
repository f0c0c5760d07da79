//! Random tables and views. What is random in a view is kept twice: as the SQL that its author writes, and as the
//! operation that the naive evaluator does.

use watershed_metrics::jiff::civil::date;
use watershed_metrics::view::{Lookup, Source, Window};
use watershed_metrics::{DataType, Dimension, Grain, Measure, MeasureKind, Selector, View};

use super::cell::{Cell, days};
use super::draw::Draw;

/// Columns of the table, in the order of a row's cells.
pub(crate) const COLUMNS: [(&str, &str); 9] = [
    ("name", "VARCHAR"),
    ("code", "INTEGER"),
    ("seats", "INTEGER"),
    ("price", "DOUBLE"),
    ("flag", "BOOLEAN"),
    ("tags", "VARCHAR[]"),
    ("at", "TIMESTAMP"),
    ("seen", "TIMESTAMP WITH TIME ZONE"),
    ("day", "DATE"),
];

pub(crate) const NAME: usize = 0;
pub(crate) const CODE: usize = 1;
pub(crate) const SEATS: usize = 2;
pub(crate) const PRICE: usize = 3;
pub(crate) const FLAG: usize = 4;
pub(crate) const TAGS: usize = 5;
pub(crate) const AT: usize = 6;
pub(crate) const SEEN: usize = 7;
pub(crate) const DAY: usize = 8;

pub(crate) type Row = Vec<Cell>;

/// Aggregates of simple measures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Aggregate {
    Rows,
    Sum(usize),
    Min(usize),
    Mean(usize),
    Values(usize),
}

/// Operations on other measures.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Plus,
    Minus,
    Divided,
}

/// Functions over several values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    Sum,
    Max,
    Count,
    Rows,
}

/// The meaning of a measure's expression.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    Simple(Aggregate),
    /// Over measures by their places.
    Derived(Operation, usize, usize),
    Compared(Operation, usize, usize),
    Per(Function, usize),
    /// Two neighbours at most, or all up to the group.
    Window(Function, usize, Frame),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    Default,
    TwoRows,
}

/// A random table, its lookup table and a view on it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) rows: Vec<Row>,
    pub(crate) translations: Vec<(Cell, Cell)>,
    pub(crate) view: View,
    pub(crate) meanings: Vec<Meaning>,
}

impl World {
    pub(crate) fn draw(draw: &mut Draw<'_>) -> Self {
        // The view first: numbers that run out leave rows without values, not measures without windows.
        let mut view = view(draw);
        let meanings = measures(draw, &mut view);
        let translations = (0..draw.below(6)).map(|_| {
            let key = number(draw, &[1.0, 2.0, 3.0]);
            (key, text(draw, &["one", "two", "o'clock"]))
        });
        let translations = translations.collect();
        let rows = (0..draw.below(16)).map(|_| row(draw)).collect();
        Self {
            rows,
            translations,
            view,
            meanings,
        }
    }

    /// Returns the statements that make the tables.
    pub(crate) fn tables(&self, rows: &[&Row], table: &str) -> String {
        let columns: Vec<String> = COLUMNS
            .iter()
            .map(|(name, kind)| format!("\"{name}\" {kind}"))
            .collect();
        let mut sql = format!(
            "CREATE OR REPLACE TABLE {table} ({});\nCREATE OR REPLACE TABLE codes (code INTEGER, label VARCHAR);\n",
            columns.join(", ")
        );
        let mut add = |table: &str, rows: Vec<String>| {
            if !rows.is_empty() {
                sql += &format!("INSERT INTO {table} VALUES {};\n", rows.join(", "));
            }
        };
        let written = |cells: &mut dyn Iterator<Item = &Cell>| {
            let cells: Vec<String> = cells.map(Cell::sql).collect();
            format!("({})", cells.join(", "))
        };
        // The time zone of a session plays no part: instants are written with theirs.
        let instants = |row: &Row| {
            let mut cells: Vec<String> = row.iter().map(Cell::sql).collect();
            if !row[SEEN].is_null() {
                cells[SEEN] = format!("'{}+00'", row[SEEN].shown());
            }
            format!("({})", cells.join(", "))
        };
        add(table, rows.iter().map(|row| instants(row)).collect());
        add(
            "codes",
            self.translations
                .iter()
                .map(|(key, label)| written(&mut [key, label].into_iter()))
                .collect(),
        );
        sql
    }
}

fn text(draw: &mut Draw<'_>, texts: &[&str]) -> Cell {
    match draw.below(texts.len() + 1) {
        0 => Cell::Null,
        index => Cell::text(texts[index - 1]),
    }
}

fn number(draw: &mut Draw<'_>, numbers: &[f64]) -> Cell {
    match draw.below(numbers.len() + 1) {
        0 => Cell::Null,
        index => Cell::Number(numbers[index - 1]),
    }
}

/// Times around both changes of the clock of 2024 in the zones of the queries.
fn time(draw: &mut Draw<'_>) -> Cell {
    const ANCHORS: [&str; 7] = [
        "2024-03-10T04:30:00Z",
        "2024-03-10T07:00:00Z",
        "2024-03-09T12:00:00Z",
        "2024-04-06T15:00:00Z",
        "2024-10-05T15:30:00Z",
        "2024-11-03T05:00:00Z",
        "2024-12-31T23:50:00Z",
    ];
    if draw.one_in(8) {
        return Cell::Null;
    }
    let anchor: watershed_metrics::jiff::Timestamp = draw.pick(&ANCHORS).parse().expect("a time");
    let minutes = i64::try_from(draw.below(60 * 72)).expect("a small number") - 60 * 36;
    Cell::Time(
        anchor.as_microsecond()
            + minutes * 60_000_000
            + i64::try_from(draw.below(3)).expect("small") * 1_500_000,
    )
}

fn row(draw: &mut Draw<'_>) -> Row {
    let tags = match draw.below(5) {
        0 => Cell::Null,
        1 => Cell::List(Vec::new()),
        count => Cell::List((2..=count).map(|_| text(draw, &["a", "b", "c"])).collect()),
    };
    let day = match draw.below(9) {
        0 => Cell::Null,
        _ => Cell::Day(days(
            date(2024, 3, 8),
            i64::try_from(draw.below(5)).expect("small"),
        )),
    };
    vec![
        text(draw, &["a", "B", "it's", "%"]),
        number(draw, &[1.0, 2.0, 3.0, 4.0]),
        number(draw, &[0.0, 1.0, 2.0, 5.0, -3.0]),
        number(
            draw,
            &[0.25, -1.5, 8.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
        ),
        match draw.below(3) {
            0 => Cell::Null,
            other => Cell::Bool(other == 1),
        },
        tags,
        time(draw),
        time(draw),
        day,
    ]
}

pub(crate) const DIMENSIONS: [&str; 9] = [
    "name", "Label", "seats", "tag", "flag", "at", "seen", "day", "later d0",
];

fn view(draw: &mut Draw<'_>) -> View {
    let dimension = |name: &str, kind: &str, source: Source| Dimension {
        name: name.to_owned(),
        data_type: DataType::of(kind),
        engine_type: kind.to_owned(),
        source,
        ..Dimension::default()
    };
    let column = |name: &str| Source::Column(name.to_owned());
    let default = match draw.below(3) {
        0 => None,
        1 => Some("'none' -- nothing found".to_owned()),
        _ => Some("\"name\"".to_owned()),
    };
    let mut dimensions = vec![
        dimension("name", "VARCHAR", column("name")),
        dimension("Label", "VARCHAR", column("code")),
        dimension("seats", "INTEGER", column("seats")),
        dimension("tag", "VARCHAR", column("tags")),
        dimension(
            "flag",
            "BOOLEAN",
            Source::Expression("flag -- a comment".to_owned()),
        ),
        dimension("at", "TIMESTAMP", column("at")),
        dimension("seen", "TIMESTAMP WITH TIME ZONE", column("seen")),
        dimension("day", "DATE", column("day")),
        dimension(
            "later d0",
            "TIMESTAMP",
            Source::Expression("\"at\" + INTERVAL 90 MINUTE".to_owned()),
        ),
    ];
    dimensions[1].lookup = Some(Lookup {
        table: vec!["codes".to_owned()],
        key: "code".to_owned(),
        value: "label".to_owned(),
        default,
    });
    dimensions[3].unnest = true;
    View {
        name: "view".to_owned(),
        table: vec!["facts".to_owned()],
        columns: COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        time_dimension: "at".to_owned(),
        first_day_of_week: u32::try_from(draw.below(8)).expect("small"),
        first_month_of_year: u32::try_from(draw.below(13)).expect("small"),
        dimensions,
        ..View::default()
    }
}

/// Names of measures: such that take part in SQL, too.
const NAMES: [&str; 8] = [
    "m0",
    "Sum \"of\" it",
    "base",
    "select",
    "x'y",
    "comparison",
    "_m1",
    "total; --",
];

fn measures(draw: &mut Draw<'_>, view: &mut View) -> Vec<Meaning> {
    let mut meanings: Vec<Meaning> = Vec::new();
    for (place, name) in NAMES.iter().enumerate().take(4 + draw.below(5)) {
        let kind = if place < 2 { 0 } else { draw.below(7) };
        let other = |draw: &mut Draw<'_>| draw.below(place.max(1));
        let meaning = match kind {
            0 => Meaning::Simple(aggregate(draw)),
            1 | 5 => Meaning::Derived(operation(draw), other(draw), other(draw)),
            2 | 6 => Meaning::Per(function(draw), other(draw)),
            3 => Meaning::Window(function(draw), other(draw), Frame::Default),
            _ => Meaning::Compared(operation(draw), other(draw), other(draw)),
        };
        let mut measure = Measure {
            name: (*name).to_owned(),
            data_type: DataType::Number,
            engine_type: "DOUBLE".to_owned(),
            treat_nulls_as: draw.one_in(4).then(|| "-0.5".to_owned()),
            ..Measure::default()
        };
        let required = |index: &usize| view.measures[*index].name.clone();
        let quoted = |index: &usize| format!("\"{}\"", view.measures[*index].name.replace('"', "\"\""));
        let meaning = match meaning {
            Meaning::Simple(aggregate) => {
                measure.expression = simple_sql(aggregate);
                if matches!(aggregate, Aggregate::Rows | Aggregate::Values(_)) {
                    measure.engine_type = "BIGINT".to_owned();
                }
                Meaning::Simple(aggregate)
            }
            Meaning::Derived(operation, a, b) => {
                measure.kind = MeasureKind::Derived;
                measure.requires = vec![required(&a), required(&b)];
                measure.expression = operation_sql(operation, &quoted(&a), &quoted(&b));
                Meaning::Derived(operation, a, b)
            }
            Meaning::Compared(operation, a, b) => {
                measure.kind = MeasureKind::TimeComparison;
                measure.requires = vec![required(&a), required(&b)];
                let (a_sql, b_sql) = (
                    format!("base.{}", quoted(&a)),
                    format!("comparison.{}", quoted(&b)),
                );
                measure.expression = operation_sql(operation, &a_sql, &b_sql);
                Meaning::Compared(operation, a, b)
            }
            Meaning::Per(function, a) => {
                measure.kind = MeasureKind::Per;
                measure.requires = vec![required(&a)];
                measure.per = per(draw);
                measure.expression = format!("CAST({} AS DOUBLE)", function_sql(function, &quoted(&a)));
                Meaning::Per(function, a)
            }
            Meaning::Window(function, a, _) => {
                measure.kind = MeasureKind::Window;
                measure.requires = vec![required(&a)];
                // `window: time` takes the times of the query as they are cut there.
                let grain = draw.pick(&[None, Some(Grain::Day), None]);
                let by_time = draw.one_in(2);
                let partition = draw.one_in(2);
                if by_time {
                    measure.order = vec![Selector {
                        name: "at".to_owned(),
                        grain,
                    }];
                }
                // Without partitions several groups share a place in the order, and rows among them have none.
                let frame = if by_time && partition && draw.one_in(2) {
                    Frame::TwoRows
                } else {
                    Frame::Default
                };
                let rows = if frame == Frame::TwoRows {
                    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
                } else {
                    ""
                };
                measure.window = Some(Window {
                    partition,
                    frame: rows.to_owned(),
                });
                measure.expression = function_sql(function, &quoted(&a));
                if matches!(function, Function::Count | Function::Rows) {
                    measure.engine_type = "BIGINT".to_owned();
                }
                Meaning::Window(function, a, frame)
            }
        };
        view.measures.push(measure);
        meanings.push(meaning);
    }
    meanings
}

fn per(draw: &mut Draw<'_>) -> Vec<Selector> {
    let choices: [(&str, Option<Grain>); 5] = [
        ("name", None),
        ("at", Some(Grain::Day)),
        ("tag", None),
        ("Label", None),
        ("seen", Some(Grain::Hour)),
    ];
    let mut found: Vec<Selector> = Vec::new();
    for _ in 0..=draw.below(2) {
        let (name, grain) = draw.pick(&choices);
        if found.iter().all(|other| other.name != name) {
            found.push(Selector {
                name: name.to_owned(),
                grain,
            });
        }
    }
    found
}

fn aggregate(draw: &mut Draw<'_>) -> Aggregate {
    let column = draw.pick(&[SEATS, PRICE]);
    match draw.below(5) {
        0 => Aggregate::Rows,
        1 => Aggregate::Sum(column),
        2 => Aggregate::Min(SEATS),
        3 => Aggregate::Mean(column),
        _ => Aggregate::Values(NAME),
    }
}

fn operation(draw: &mut Draw<'_>) -> Operation {
    draw.pick(&[Operation::Minus, Operation::Divided, Operation::Plus])
}

fn function(draw: &mut Draw<'_>) -> Function {
    draw.pick(&[Function::Sum, Function::Max, Function::Count, Function::Rows])
}

fn simple_sql(aggregate: Aggregate) -> String {
    let name = |column: usize| COLUMNS[column].0;
    match aggregate {
        Aggregate::Rows => "count(*)".to_owned(),
        Aggregate::Sum(column) => format!("CAST(sum({}) AS DOUBLE)", name(column)),
        Aggregate::Min(column) => format!("CAST(min({}) AS DOUBLE) -- the least", name(column)),
        Aggregate::Mean(column) => format!("avg({})", name(column)),
        Aggregate::Values(column) => format!("count(DISTINCT {})", name(column)),
    }
}

fn operation_sql(operation: Operation, a: &str, b: &str) -> String {
    let sign = match operation {
        Operation::Plus => '+',
        Operation::Minus => '-',
        Operation::Divided => '/',
    };
    format!("CAST({a} AS DOUBLE) {sign} CAST({b} AS DOUBLE)")
}

fn function_sql(function: Function, a: &str) -> String {
    match function {
        Function::Sum => format!("sum(CAST({a} AS DOUBLE))"),
        Function::Max => format!("max(CAST({a} AS DOUBLE))"),
        Function::Count => format!("count({a})"),
        Function::Rows => "count(*)".to_owned(),
    }
}
