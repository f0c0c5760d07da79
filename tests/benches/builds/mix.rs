//! A generated project: models in layers over one source, each of which reads one to three of the layer above; four of ten
//! are tables. All numbers are whole, so that two correct builds have equal rows.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rand::{Rng as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _, seq::SliceRandom as _};

const LAYERS: usize = 6;
/// Rows of the source.
const EVENTS: u32 = 10_000;
/// The share of tables among the models, in percent.
const TABLES: u32 = 40;
/// The source's table.
pub(crate) const SOURCE: &str = "raw_events";

/// A model.
#[derive(Clone)]
pub(crate) struct Model {
    pub(crate) name: String,
    /// The tables that it reads.
    pub(crate) reads: Vec<String>,
    pub(crate) is_table: bool,
    layer: usize,
    /// Its query, with `{n}` in place of the constant that edits change.
    query: String,
    constant: u64,
}

impl Model {
    /// Returns its query.
    pub(crate) fn sql(&self) -> String {
        self.query.replace("{n}", &self.constant.to_string())
    }

    /// Changes its rows.
    pub(crate) fn edit(&mut self) {
        self.constant += 1;
    }
}

/// The models of a project, each after those that it reads.
#[derive(Clone)]
pub(crate) struct Mix(pub(crate) Vec<Model>);

impl Mix {
    pub(crate) fn new(count: usize) -> Self {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut models = Vec::with_capacity(count);
        let mut above = vec![SOURCE.to_owned()];
        for layer in 0..LAYERS {
            let size = count / LAYERS + usize::from(layer < count % LAYERS);
            let names: Vec<_> = (0..size)
                .map(|place| format!("m{layer}_{:04}", models.len() + place))
                .collect();
            for name in &names {
                let mut reads = above.clone();
                let chosen = rng.random_range(1..=3.min(reads.len()));
                let (reads, _) = reads.partial_shuffle(&mut rng, chosen);
                models.push(Model {
                    name: name.clone(),
                    query: query(reads, &mut rng),
                    reads: reads.to_vec(),
                    is_table: rng.random_ratio(TABLES, 100),
                    layer,
                    constant: 0,
                });
            }
            above = names;
        }
        Self(models)
    }

    /// Writes the whole project.
    pub(crate) fn write(&self, folder: &Path) {
        write(
            folder,
            "rill.yaml",
            "display_name: Generated\nolap_connector: duckdb\n",
        );
        let source = "type: source\nconnector: local_file\npath: data/events.csv\n";
        write(folder, &format!("sources/{SOURCE}.yaml"), source);
        write(folder, "data/events.csv", &events());
        (0..self.0.len()).for_each(|place| self.write_model(folder, place));
    }

    /// Writes one model's file.
    pub(crate) fn write_model(&self, folder: &Path, place: usize) {
        let model = &self.0[place];
        let head = if model.is_table {
            "-- @materialize: true\n"
        } else {
            ""
        };
        write(
            folder,
            &format!("models/{}.sql", model.name),
            &format!("{head}{}\n", model.sql()),
        );
    }

    /// Returns the place of a table that nothing reads.
    pub(crate) fn leaf(&self) -> usize {
        let is_leaf = |place: &usize| self.0[*place].is_table && self.below(*place).len() == 1;
        (0..self.0.len())
            .rev()
            .find(is_leaf)
            .expect("the last layer has tables")
    }

    /// Returns the place of a table of the middle layer with a typical number of descendants.
    pub(crate) fn mid(&self) -> usize {
        let is_mid = |place: &usize| self.0[*place].is_table && self.0[*place].layer == LAYERS / 2 - 1;
        let mut all: Vec<_> = (0..self.0.len()).filter(is_mid).collect();
        all.sort_by_key(|place| self.below(*place).len());
        all[all.len() / 2]
    }

    /// Returns the places of a model and of all that reads it, however far below.
    pub(crate) fn below(&self, place: usize) -> Vec<usize> {
        let mut names = BTreeSet::from([self.0[place].name.as_str()]);
        let mut found = vec![place];
        for (other, model) in self.0.iter().enumerate().skip(place + 1) {
            if model.reads.iter().any(|read| names.contains(read.as_str())) {
                names.insert(&model.name);
                found.push(other);
            }
        }
        found
    }
}

/// Writes a file, and the folders that it stands in.
pub(crate) fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder is made");
    fs::write(path, text).expect("a file is written");
}

fn events() -> String {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut text = "event_id,day,user_id,kind,amount\n".to_owned();
    for event in 0..EVENTS {
        let kind = ["buy", "click", "return", "view"]
            .choose(&mut rng)
            .expect("one of four");
        let (day, user, amount) = (
            rng.random_range(1..=30),
            rng.random_range(0..400),
            rng.random_range(1..=5_000),
        );
        let _ = writeln!(text, "{event},2024-01-{day:02},{user},{kind},{amount}");
    }
    text
}

/// A query over some tables. Its columns are `bucket, day, amount, events`.
fn query(reads: &[String], rng: &mut SmallRng) -> String {
    match reads {
        [source] if source == SOURCE => format!(
            "SELECT user_id % 20 AS bucket, day, (sum(amount) + {{n}})::BIGINT AS amount, count(*) AS events\n\
             FROM {source} WHERE kind <> '{}' GROUP BY ALL",
            ["buy", "click", "view"].choose(rng).expect("one of three")
        ),
        [one] if rng.random_bool(0.5) => format!(
            "SELECT bucket, day, (sum(amount) OVER (PARTITION BY bucket ORDER BY day) % 1000003 + {{n}})::BIGINT AS amount,\n\
             events FROM {one}"
        ),
        [one] => format!(
            "SELECT bucket, date_trunc('week', day)::DATE AS day, (sum(amount) % 1000003 + {{n}})::BIGINT AS amount,\n\
             sum(events)::BIGINT AS events FROM {one} GROUP BY ALL"
        ),
        [one, two] => format!(
            "SELECT a.bucket, a.day, (coalesce(a.amount - b.total, a.amount) % 1000003 + {{n}})::BIGINT AS amount, a.events\n\
             FROM {one} AS a LEFT JOIN (SELECT bucket, max(amount) AS total FROM {two} GROUP BY bucket) AS b USING (bucket)"
        ),
        several => {
            let parts = several
                .iter()
                .map(|name| format!("SELECT bucket, day, amount, events FROM {name}"));
            format!(
                "SELECT bucket, day, (sum(amount) % 1000003 + {{n}})::BIGINT AS amount, max(events) AS events\n\
                 FROM ({}) GROUP BY bucket, day",
                parts.collect::<Vec<_>>().join(" UNION ALL ")
            )
        }
    }
}
