//! Answers to SQL clients beside those over HTTP.

use serde_json::{Value, json};

use super::{Holder, Host, PROJECT, has_psql};

/// A source of random numbers, the same for each seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below a bound.
    pub(super) fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % most
    }

    pub(super) fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Returns the seed and the number of statements that are asked, as the environment says them.
pub(super) fn share(usual: usize) -> (u64, usize) {
    let said = |name: &str| {
        std::env::var(name)
            .ok()
            .map(|number| number.parse::<u64>().expect("a number"))
    };
    let rounds = said("WATERSHED_STATEMENTS").and_then(|rounds| usize::try_from(rounds).ok());
    (said("WATERSHED_SEED").unwrap_or(1), rounds.unwrap_or(usual))
}

/// Returns the rows of a document as psql shows them.
pub(super) fn shown(rows: &Value) -> String {
    let cell = |cell: &Value| match cell {
        Value::Null => String::new(),
        Value::Bool(is_it) => if *is_it { "t" } else { "f" }.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let row = |row: &Value| {
        let cells: Vec<String> = row.as_array().into_iter().flatten().map(cell).collect();
        cells.join("|") + "\n"
    };
    rows.as_array().into_iter().flatten().map(row).collect()
}

impl Host {
    /// Sends a question over HTTP; returns the rows of its answer.
    pub(super) fn rows_of(&self, holder: &Holder, path: &str, body: &Value) -> Value {
        let head = format!(
            "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
            holder.whole
        );
        let (status, _, answer) = self.service.send("POST", path, &head, &body.to_string());
        assert_eq!(status, 200, "{body}: {answer}");
        let mut answer: Value = serde_json::from_str(&answer).expect("a document");
        answer["rows"].take()
    }
}

/// Returns a statement over the outputs of the project whose rows have one order.
fn select(random: &mut Random) -> String {
    const VALUES: &[&str] = &[
        "m.x",
        "m.x % 7",
        "-m.x",
        "m.x = 3",
        "m.x > 5 AND m.x < 9",
        "nullif(m.x % 3, 0)",
        "'word ' || m.x",
        "DATE '2024-02-28' + (m.x % 3)::INT",
        "CASE WHEN m.x % 2 = 0 THEN 'it''s' END",
        "(m.x * 1.5)::DECIMAL(18, 3)",
        "m.x::HUGEINT * 100000000000000000000",
        "f.x",
        "t.word",
        "t.yes",
        "t.small + 1",
        "t.nothing",
        "coalesce(t.nothing, 'none')",
    ];
    const AGGREGATES: &[&str] = &[
        "count(*)",
        "sum(m.x)",
        "min('w' || m.x)",
        "max(f.x)",
        "bool_or(m.x = 3)",
        "count(DISTINCT m.x % 5)",
    ];
    const CONDITIONS: &[&str] = &[
        "m.x < 12",
        "m.x IN (1, 2, 99999)",
        "m.x BETWEEN 40 AND 51",
        "m.x % 9000 = 7",
        "m.x IN (SELECT x FROM few)",
        "f.x IS NULL AND m.x < 9",
        "EXISTS (SELECT 1 FROM few WHERE few.x = m.x)",
        "m.x < 0",
    ];
    let from = "FROM many AS m LEFT JOIN few AS f ON f.x = m.x CROSS JOIN types AS t";
    let condition = random.one(CONDITIONS);
    let values: Vec<String> = (0..=random.below(3))
        .map(|at| format!("{} AS c{at}", random.one(VALUES)))
        .collect();
    if random.below(3) == 0 {
        let key = random.one(&["m.x % 4", "m.x > 5", "t.word"]);
        let aggregates: Vec<&str> = (0..=random.below(2)).map(|_| random.one(AGGREGATES)).collect();
        return format!(
            "SELECT {key} AS k, {} {from} WHERE {condition} GROUP BY ALL ORDER BY k LIMIT {}",
            aggregates.join(", "),
            random.below(6)
        );
    }
    let inner = format!(
        "SELECT {}, m.x AS place {from} WHERE {condition}",
        values.join(", ")
    );
    match random.below(3) {
        0 => format!("{inner} ORDER BY m.x DESC LIMIT 15"),
        1 => format!(
            "WITH part AS ({inner}) SELECT * FROM part ORDER BY place LIMIT 20 OFFSET {}",
            random.below(4)
        ),
        _ => format!(
            "SELECT *, row_number() OVER (ORDER BY place) AS number FROM ({inner}) AS part ORDER BY place LIMIT 12"
        ),
    }
}

#[test]
fn s_api28_statements_over_outputs_answer_as_over_http() {
    if !has_psql() {
        return;
    }
    let host = Host::with(PROJECT, &["one", "two"]);
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    let (seed, rounds) = share(40);
    let mut random = Random::of(seed);
    for round in 0..rounds {
        let statement = select(&mut random);
        let rows = host.rows_of(&reader, "/v1/instances/one/query", &json!({"sql": statement}));
        let (out, said) = host.ask(&reader, "one", &[&statement]);
        assert_eq!(
            out,
            shown(&rows),
            "WATERSHED_SEED={seed}, round {round}: {statement}: {said}"
        );
    }
}
