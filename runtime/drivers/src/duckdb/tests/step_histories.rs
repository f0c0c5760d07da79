//! Random histories of insertions into tables, with changing types, a column `rowid` and NULL keys, compared with a
//! reference model without SQL: values are preserved, and refused insertions change nothing.
//!
//! `WATERSHED_HISTORIES` says how many, `WATERSHED_SEED` the first.

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

use super::partitions::{published, step as staged};
use super::*;
use crate::olap::{NewColumns, Over, Partitions as _, StageEnd, StageStep};

/// Number of steps in a history.
const STEPS: usize = 8;
/// Default number of histories; `WATERSHED_HISTORIES` sets another.
const HISTORIES: u64 = 12;
/// Default first seed; `WATERSHED_SEED` sets another.
const SEED: u64 = 1;

/// A value in the reference model.
#[derive(Debug, Clone, PartialEq)]
enum Meant {
    Null,
    /// A number with all its digits.
    Number(&'static str),
    Text(&'static str),
    Day(&'static str),
    Moment(&'static str),
}

impl Meant {
    /// Returns true if the text of a value in the table equals this value.
    fn is(&self, found: &str) -> bool {
        match self {
            Self::Null => found == "-",
            Self::Number(text) => shortest(found) == shortest(text),
            Self::Text(text) | Self::Moment(text) => found == *text,
            Self::Day(text) => found.strip_suffix(" 00:00:00").unwrap_or(found) == *text,
        }
    }

    /// Returns true if a key in the table equals this one.
    fn is_same_key(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Null, _) | (_, Self::Null) => false,
            (Self::Number(a), Self::Number(b)) => shortest(a) == shortest(b),
            (Self::Number(a) | Self::Text(a), Self::Number(b) | Self::Text(b)) => a == b,
            (Self::Day(a) | Self::Moment(a), Self::Day(b) | Self::Moment(b)) => {
                let moment = |text: &str| text.replace(" 00:00:00", "");
                moment(a) == moment(b)
            }
            _ => false,
        }
    }
}

/// Removes redundant zeros from a number.
fn shortest(number: &str) -> &str {
    match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    }
}

/// A column type with its possible values in this test.
struct Kind {
    name: &'static str,
    values: &'static [Meant],
}

use Meant::{Day, Moment, Null, Number, Text};

const KINDS: [Kind; 13] = [
    Kind {
        name: "TINYINT",
        values: &[Number("1"), Number("2"), Null],
    },
    Kind {
        name: "INTEGER",
        values: &[Number("1"), Number("3"), Number("40000"), Null],
    },
    Kind {
        name: "BIGINT",
        values: &[
            Number("1"),
            Number("7"),
            Number("3000000000"),
            Number("9007199254740993"),
        ],
    },
    Kind {
        name: "HUGEINT",
        values: &[Number("7"), Number("170141183460469231731687303715884105727")],
    },
    Kind {
        name: "DOUBLE",
        values: &[Number("1"), Number("1.5"), Number("2.25"), Null],
    },
    Kind {
        name: "DECIMAL(3,1)",
        values: &[Number("1.5"), Number("7"), Null],
    },
    Kind {
        name: "DECIMAL(6,3)",
        values: &[Number("1.125"), Number("2.5")],
    },
    Kind {
        name: "VARCHAR",
        values: &[Text("07"), Text("7"), Text("x"), Text("1.50"), Null],
    },
    Kind {
        name: "VARCHAR",
        values: &[Null],
    },
    Kind {
        name: "DATE",
        values: &[Day("2024-01-01"), Day("2024-02-29"), Null],
    },
    Kind {
        name: "TIMESTAMP",
        values: &[
            Moment("2024-01-01 10:30:00"),
            Moment("2024-01-01 10:30:00.000001"),
        ],
    },
    Kind {
        name: "TIMESTAMP_S",
        values: &[Moment("2024-01-01 10:30:01")],
    },
    Kind {
        name: "TIMESTAMP",
        values: &[Moment("2024-02-29 12:00:00"), Null],
    },
];

/// Kinds of numbers with decimal places. Not used as keys, since equal values may have different texts.
const FRACTIONS: std::ops::Range<usize> = 4..7;

fn random_kind(rng: &mut SmallRng, column: usize) -> usize {
    loop {
        let kind = rng.random_range(0..KINDS.len());
        if COLUMNS[column] == "v" || !FRACTIONS.contains(&kind) {
            return kind;
        }
    }
}

fn random_kinds(rng: &mut SmallRng) -> [usize; 3] {
    [0, 1, 2].map(|column| random_kind(rng, column))
}

fn change_one(rng: &mut SmallRng, kinds: &mut [usize; 3]) {
    let column = rng.random_range(0..3);
    kinds[column] = random_kind(rng, column);
}

/// Columns of the tables: the key, one named like the engine's hidden column, and a value.
const COLUMNS: [&str; 3] = ["k", "rowid", "v"];

type Row = [Meant; 3];

/// New rows of three types, as SQL and in the reference model.
struct Batch {
    sql: String,
    rows: Vec<Row>,
    kinds: [&'static str; 3],
}

impl Batch {
    fn random(rng: &mut SmallRng, kinds: &[usize; 3]) -> Self {
        let kinds = kinds.map(|kind| &KINDS[kind]);
        let mut rows: Vec<Row> = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            let row = kinds.map(|kind| kind.values.choose(rng).unwrap().clone());
            if !rows.iter().any(|other| other[0].is_same_key(&row[0])) {
                rows.push(row);
            }
        }
        let literal = |(value, kind): (&Meant, &Kind)| match value {
            Null => format!("NULL::{}", kind.name),
            Number(text) | Text(text) | Day(text) | Moment(text) => format!("'{text}'::{}", kind.name),
        };
        let line = |row: &Row| {
            let values = row.iter().zip(kinds).zip(COLUMNS);
            let values = values.map(|((value, kind), name)| format!("{} AS {name}", literal((value, kind))));
            format!("SELECT {}", values.collect::<Vec<_>>().join(", "))
        };
        let lines: Vec<String> = rows.iter().map(line).collect();
        Self {
            sql: lines.join(" UNION ALL "),
            rows,
            kinds: kinds.map(|kind| kind.name),
        }
    }
}

/// The rows of the reference model.
#[derive(Default)]
struct Reference(Vec<Row>);

impl Reference {
    fn take(&mut self, over: &Over, rows: &[Row]) {
        let column = match over {
            Over::SameKey => Some(0),
            Over::SameValue(name) => COLUMNS.iter().position(|column| column == name),
            Over::Nothing | Over::Partitions => None,
        };
        if let Some(at) = column {
            self.0
                .retain(|old| !rows.iter().any(|new| new[at].is_same_key(&old[at])));
        }
        self.0.extend(rows.iter().cloned());
    }

    /// Returns true if the found rows are the expected ones, in any order.
    fn is(&self, mut found: Vec<Vec<String>>) -> bool {
        // Texts first: a number may look like one of them.
        let mut rows: Vec<&Row> = self.0.iter().collect();
        rows.sort_by_key(|row| row.iter().filter(|meant| !matches!(meant, Text(_))).count());
        rows.len() == found.len()
            && rows.into_iter().all(|row| {
                let is_it = |found: &Vec<String>| row.iter().zip(found).all(|(meant, text)| meant.is(text));
                let at = found.iter().position(is_it);
                at.map(|at| found.swap_remove(at)).is_some()
            })
    }
}

/// Plays a random history. Returns the numbers of accepted and refused steps.
async fn play(bench: &Bench, seed: u64) -> (u32, u32) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut kinds, mut reference) = (random_kinds(&mut rng), Reference::default());
    let (owner, name) = (u128::from(seed), format!("t{seed}"));
    let first = Batch::random(&mut rng, &kinds);
    bench.build(table(owner, &name, &first.sql)).await.unwrap();
    reference.take(&Over::Nothing, &first.rows);
    let mut story = format!("seed {seed}: {}", first.sql);
    let (mut taken, mut refused) = (0, 0);
    for number in 0..STEPS {
        if rng.random_bool(0.7) {
            change_one(&mut rng, &mut kinds);
        }
        let batch = Batch::random(&mut rng, &kinds);
        let over = match rng.random_range(0..4) {
            0 => Over::SameKey,
            1 => Over::SameValue("rowid".into()),
            2 => Over::SameValue("k".into()),
            _ => Over::Nothing,
        };
        let policies = [NewColumns::Refuse, NewColumns::Leave, NewColumns::Add];
        let columns = *policies.choose(&mut rng).unwrap();
        story = format!(
            "{story}\n {over:?}, {columns:?}, {:?}: {}",
            batch.kinds, batch.sql
        );
        let mut step = table(owner, &name, &batch.sql);
        step.tag.build = Uuid::from_u128(owner << 32 | number as u128);
        step.step = Step::Into {
            over: over.clone(),
            columns,
        };
        step.key = match over {
            Over::SameKey => vec!["k".into()],
            _ => Vec::new(),
        };
        match bench.build(step).await {
            Ok(_) => {
                reference.take(&over, &batch.rows);
                taken += 1;
            }
            Err(BuildError::Columns(_)) => refused += 1,
            Err(error) => panic!("{error}\n{story}"),
        }
        let found = found(bench, &name).await;
        assert!(
            reference.is(found.clone()),
            "found {found:?}\nmeant {:?}\n{story}",
            reference.0
        );
    }
    (taken, refused)
}

async fn found(bench: &Bench, table: &str) -> Vec<Vec<String>> {
    let columns = COLUMNS
        .map(|name| format!("coalesce(\"{name}\"::VARCHAR, '-')"))
        .join(", ");
    let rows = bench
        .rows(&format!("SELECT {columns} FROM {table}"))
        .await
        .unwrap();
    rows.iter()
        .map(|row| row.split('|').map(str::to_owned).collect())
        .collect()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("WATERSHED_SEED").unwrap_or(SEED);
    first..first + number("WATERSHED_HISTORIES").unwrap_or(HISTORIES)
}

#[tokio::test]
async fn no_history_of_types_makes_a_value_another() {
    let bench = bench();
    let (mut taken, mut refused) = (0, 0);
    for seed in seeds() {
        let (more, fewer) = play(&bench, seed).await;
        (taken, refused) = (taken + more, refused + fewer);
        bench.drop_output(u128::from(seed)).await.unwrap();
    }
    println!("{taken} steps taken, {refused} refused");
    assert!(taken > 0 && refused > 0, "{taken} steps taken, {refused} refused");
}

/// Stages random partitions and publishes them. Returns the numbers of accepted and refused ones.
async fn play_partitions(bench: &Bench, seed: u64) -> (u32, u32) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (owner, name) = (u128::from(seed), format!("t{seed}"));
    let mut kinds = random_kinds(&mut rng);
    let policies = [NewColumns::Refuse, NewColumns::Leave, NewColumns::Add];
    let columns = *policies.choose(&mut rng).unwrap();
    // The rows of each partition in the table.
    let mut held: std::collections::BTreeMap<String, Vec<Row>> = Default::default();
    let mut story = format!("seed {seed}, {columns:?}");
    let (mut taken, mut refused, mut number) = (0, 0, 0);
    for round in 0..3 {
        let mut coming = Vec::new();
        for _ in 0..rng.random_range(1..4) {
            if rng.random_bool(0.5) {
                change_one(&mut rng, &mut kinds);
            }
            let batch = Batch::random(&mut rng, &kinds);
            let key = ["a", "b", "c"].choose(&mut rng).unwrap().to_string();
            story = format!("{story}\n round {round}, {key}: {}", batch.sql);
            let step = StageStep {
                columns,
                again: coming.iter().any(|(other, _)| *other == key),
                ..staged(owner, &key, &batch.sql, number)
            };
            number += 1;
            match bench
                .engine
                .stage(std::slice::from_ref(&step), &bench.cancel)
                .await
            {
                Ok(_) => {
                    coming.retain(|(other, _)| *other != key);
                    coming.push((key, batch.rows));
                    taken += 1;
                }
                Err(BuildError::Columns(_)) => refused += 1,
                Err(error) => panic!("{error}\n{story}"),
            }
        }
        let mut build = published(owner, &name);
        build.tag.build = Uuid::from_u128(owner << 32 | round);
        if round > 0 {
            build.step = Step::Into {
                over: Over::Partitions,
                columns,
            };
            build.stage = build.stage.map(|end| StageEnd { whole: false, ..end });
        }
        match bench.build(build).await {
            Ok(_) => held.extend(coming),
            Err(BuildError::Columns(_)) => {
                refused += 1;
                bench.engine.give_up(uid(owner), &bench.cancel).await.unwrap();
            }
            Err(error) => panic!("{error}\n{story}"),
        }
        let reference = Reference(held.values().flatten().cloned().collect());
        let found = found(bench, &name).await;
        assert!(
            reference.is(found.clone()),
            "found {found:?}\nmeant {held:?}\n{story}"
        );
    }
    (taken, refused)
}

#[tokio::test]
async fn no_history_of_partitions_makes_a_value_another() {
    let bench = bench();
    let (mut taken, mut refused) = (0, 0);
    for seed in seeds() {
        let (more, fewer) = play_partitions(&bench, seed).await;
        (taken, refused) = (taken + more, refused + fewer);
        bench.drop_output(u128::from(seed)).await.unwrap();
    }
    println!("{taken} partitions taken, {refused} refused");
    assert!(
        taken > 0 && refused > 0,
        "{taken} partitions taken, {refused} refused"
    );
}
