//! A project of twelve models that changes at random, and what it must come to: an independent reference.
//!
//! The reference knows no resources, builds or fingerprints. It holds each model's query as a value, and computes
//! all rows anew in an engine of its own.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::olap::Value;

use crate::sandbox::Sandbox;

/// The number of models at the beginning.
const MODELS: usize = 12;
/// Rows of the source.
const ROWS: u64 = 200;
/// The file with the source's rows.
const DATA: &str = "data/raw.csv";

/// One model: a query over the source or over models before it.
#[derive(Clone)]
struct Model {
    name: String,
    /// Places of what it reads; none for the source.
    reads: Vec<usize>,
    constant: u64,
    through: Through,
    table: bool,
    comment: u64,
    broken: bool,
    gone: bool,
}

/// The models of a world at one time.
#[derive(Clone)]
pub(crate) struct Branch(Vec<Model>);

/// A use of what the migration makes, besides what a model reads.
#[derive(Clone, Copy)]
enum Through {
    Nothing,
    /// A macro that uses a macro.
    Macro,
    /// A table.
    Table,
    /// A macro that reads a file.
    File,
    /// A statement in a text that reads the same file.
    Query,
}

/// A project as it should be.
pub(crate) struct ProjectModel {
    rng: SmallRng,
    models: Vec<Model>,
    rows: u64,
    /// The number that the inner macro adds.
    shift: u64,
    /// The number that the migration's table holds.
    factor: u64,
    /// The number in the file that is read through a macro.
    extra: u64,
    files: BTreeMap<String, String>,
    fresh_names: u64,
    /// True in a lake, whose views read no files.
    in_lake: bool,
}

impl ProjectModel {
    /// The world of a seed; equal seeds give equal worlds.
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let models = (0..MODELS)
            .map(|place| Model {
                name: format!("m{place}"),
                reads: reads(&mut rng, place),
                constant: 0,
                through: through(&mut rng),
                table: rng.random_bool(0.5),
                comment: 0,
                broken: false,
                gone: false,
            })
            .collect();
        Self {
            rng,
            models,
            rows: ROWS,
            shift: 1,
            factor: 2,
            extra: 3,
            files: BTreeMap::new(),
            fresh_names: 0,
            in_lake: false,
        }
    }

    /// The same world, which is built in a lake.
    pub(crate) fn in_lake(self) -> Self {
        Self {
            in_lake: true,
            ..self
        }
    }

    /// Returns whether a model is to be a table.
    fn is_to_be_table(&self, model: &Model) -> bool {
        model.table || (self.in_lake && matches!(model.through, Through::File | Through::Query))
    }

    /// Changes one thing or a few, and says what.
    pub(crate) fn change(&mut self, sandbox: &Sandbox) -> String {
        let place = self.any();
        match self.rng.random_range(0..12) {
            9..12 => self.change_made(),
            0 => self.with(place, "edit", |model| model.constant += 1),
            1 => self.with(place, "comment", |model| model.comment += 1),
            2 => self.with(place, "turn view and table", |model| model.table = !model.table),
            3 => self.rename(place),
            4 => self.swap(place),
            5 => self.delete(place),
            6 => self.drop_by_hand(place, sandbox),
            7 => {
                self.rows += 1;
                "change the data".to_owned()
            }
            _ => self.with(place, "break or mend", |model| model.broken = !model.broken),
        }
    }

    /// As [`change`](Self::change), by files alone: a running program holds the engine's file.
    pub(crate) fn change_files(&mut self) -> String {
        let place = self.any();
        match self.rng.random_range(0..11) {
            8..11 => self.change_made(),
            0 | 1 => self.with(place, "edit", |model| model.constant += 1),
            2 => self.with(place, "comment", |model| model.comment += 1),
            3 => self.with(place, "turn view and table", |model| model.table = !model.table),
            4 => self.rename(place),
            5 => self.swap(place),
            6 => self.delete(place),
            _ => self.with(place, "break or mend", |model| model.broken = !model.broken),
        }
    }

    /// Changes a model by its file alone, in a way that a branch would: nothing that others made changes.
    pub(crate) fn change_a_model(&mut self) -> String {
        let place = self.any();
        match self.rng.random_range(0..6) {
            0..3 => self.with(place, "edit", |model| model.constant += 1),
            3 => self.with(place, "turn view and table", |model| model.table = !model.table),
            _ => self.delete(place),
        }
    }

    /// The models as they are now.
    pub(crate) fn branch(&self) -> Branch {
        Branch(self.models.clone())
    }

    /// Makes the models those of a branch.
    pub(crate) fn checkout(&mut self, branch: &Branch) {
        self.models.clone_from(&branch.0);
    }

    /// Returns whether a model is a table.
    pub(crate) fn is_table(&self, name: &str) -> bool {
        self.models
            .iter()
            .any(|model| self.is_to_be_table(model) && !model.gone && model.name == name)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.rng.random_range(0..bound)
    }

    /// Changes what is read by way of the migration.
    fn change_made(&mut self) -> String {
        let (what, value) = match self.rng.random_range(0..3) {
            0 => ("the inner macro", &mut self.shift),
            1 => ("the migration's table", &mut self.factor),
            _ => ("the file behind a macro", &mut self.extra),
        };
        *value += 1;
        format!("change {what}")
    }

    /// Changes the query of the first model, so that most of the project has to be built.
    pub(crate) fn change_the_root(&mut self) {
        self.models[0].constant += 1;
    }

    /// Mends all that is broken.
    pub(crate) fn mend(&mut self) {
        self.models.iter_mut().for_each(|model| model.broken = false);
    }

    /// The names of the models.
    pub(crate) fn names(&self) -> Vec<String> {
        let there = self.models.iter().filter(|model| !model.gone);
        there.map(|model| model.name.clone()).collect()
    }

    /// Returns true if something is broken.
    pub(crate) fn is_broken(&self) -> bool {
        self.models.iter().any(|model| model.broken && !model.gone)
    }

    /// Makes the sandbox's files those of this world, touching only what differs.
    pub(crate) fn write(&mut self, sandbox: &Sandbox) {
        let wanted = self.wanted_files();
        for file in self.files.keys().filter(|file| !wanted.contains_key(*file)) {
            sandbox.remove(file);
        }
        for (file, text) in wanted
            .iter()
            .filter(|(file, text)| self.files.get(*file) != Some(*text))
        {
            sandbox.write(file, text);
        }
        self.files = wanted;
    }

    /// Compares all rows and kinds of outputs in the engine with what they must be. What is broken, or below
    /// something that is, only has to be there if it ever was.
    pub(crate) fn assert_built(&self, sandbox: &Sandbox, story: &str) {
        let engine = sandbox.engine();
        // Views read files below the project's folder.
        let root = sandbox.path().display();
        engine.run(&format!("SET file_search_path = '{root}'"));
        let reference = self.reference();
        let mut expected = BTreeMap::from([("raw".to_owned(), true)]);
        for (place, model) in self.models.iter().enumerate().filter(|(_, model)| !model.gone) {
            if !self.fails(place) {
                let (actual, wanted) = (rows(&engine, &model.name), rows(&reference, &model.name));
                assert_eq!(actual, wanted, "{} after {story}", model.name);
                expected.insert(model.name.clone(), self.is_to_be_table(model));
            }
        }
        let found = outputs(&engine);
        let names: BTreeSet<_> = self
            .models
            .iter()
            .filter(|model| !model.gone)
            .map(|model| &model.name)
            .collect();
        for (name, table) in &expected {
            assert_eq!(
                found.get(name),
                Some(table),
                "`{name}` is a table: {table}, after {story}"
            );
        }
        for name in found
            .keys()
            .filter(|name| !["raw", "factors"].contains(&name.as_str()))
        {
            assert!(names.contains(name), "`{name}` was left behind after {story}");
        }
    }

    fn with(&mut self, place: usize, what: &str, change: impl FnOnce(&mut Model)) -> String {
        let model = &mut self.models[place];
        change(model);
        format!("{what} {}", model.name)
    }

    /// Gives a model a name that was never there; its readers follow.
    fn rename(&mut self, place: usize) -> String {
        self.fresh_names += 1;
        let name = format!("n{}", self.fresh_names);
        self.with(place, &format!("to {name} rename"), |model| {
            model.name.clone_from(&name)
        })
    }

    /// Swaps the names of two models; their readers follow.
    fn swap(&mut self, place: usize) -> String {
        let other = self.any();
        let (one, two) = (self.models[place].name.clone(), self.models[other].name.clone());
        self.models[place].name.clone_from(&two);
        self.models[other].name.clone_from(&one);
        format!("swap {one} {two}")
    }

    /// Deletes a model that nothing reads, while some are left.
    fn delete(&mut self, place: usize) -> String {
        let left = self.models.iter().filter(|model| !model.gone).count();
        let read = self
            .models
            .iter()
            .any(|model| !model.gone && model.reads.contains(&place));
        if read || left <= MODELS / 2 {
            return self.with(place, "edit", |model| model.constant += 1);
        }
        self.with(place, "delete", |model| model.gone = true)
    }

    /// Drops an output behind the program's back.
    fn drop_by_hand(&mut self, place: usize, sandbox: &Sandbox) -> String {
        let name = self.models[place].name.clone();
        let engine = sandbox.engine();
        if let Some(table) = outputs(&engine).get(&name) {
            let kind = if *table { "TABLE" } else { "VIEW" };
            engine.run(&format!("DROP {kind} {name}"));
        }
        format!("drop {name}")
    }

    /// The place of a model that is there.
    fn any(&mut self) -> usize {
        let there: Vec<_> = (0..self.models.len())
            .filter(|place| !self.models[*place].gone)
            .collect();
        *there.choose(&mut self.rng).expect("some models are left")
    }

    /// Returns true if a model is broken, or reads one that fails.
    fn fails(&self, place: usize) -> bool {
        let model = &self.models[place];
        model.broken || model.reads.iter().any(|read| self.fails(*read))
    }

    fn wanted_files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::from([
            ("watershed.yaml".to_owned(), String::new()),
            (
                "sources/raw.yaml".to_owned(),
                format!("type: source\nconnector: local_file\npath: {DATA}\n"),
            ),
            (DATA.to_owned(), self.csv()),
            (
                "init.sql".to_owned(),
                self.migration("FROM read_csv('data/extra.csv')"),
            ),
            ("data/extra.csv".to_owned(), format!("plus\n{}\n", self.extra)),
        ]);
        for (place, model) in self.models.iter().enumerate().filter(|(_, model)| !model.gone) {
            let annotation = if self.is_to_be_table(model) {
                "-- @materialize: true\n"
            } else {
                ""
            };
            let query = if model.broken {
                "SELECT k, no_such_column".to_owned()
            } else {
                self.query(place, "query('FROM ''data/extra.csv''')")
            };
            let from = if model.broken { " FROM raw" } else { "" };
            let text = format!(
                "{annotation}-- Version {} of this comment.\n{query}{from}\n",
                model.comment
            );
            files.insert(format!("models/{}.sql", model.name), text);
        }
        files
    }

    fn csv(&self) -> String {
        let rows = (0..self.rows).map(|row| format!("{},{}\n", row % 7, row * 31 % 101));
        std::iter::once("k,v\n".to_owned()).chain(rows).collect()
    }

    /// The migration; `file` yields the rows of the file that a macro reads.
    fn migration(&self, file: &str) -> String {
        let (shift, factor) = (self.shift, self.factor);
        format!(
            "CREATE OR REPLACE MACRO shifted(x) AS x + {shift};\n\
             CREATE OR REPLACE MACRO twice(x) AS shifted(x) * 2;\n\
             CREATE OR REPLACE TABLE factors AS SELECT range AS k, {factor} AS f FROM range(7);\n\
             CREATE OR REPLACE MACRO extra() AS TABLE {file};\n"
        )
    }

    /// A model's query: one row a key, whatever it reads. `text` stands for the call that reads the file by a text.
    fn query(&self, place: usize, text: &str) -> String {
        let query = self.plain_query(place);
        let plus = |from: &str| {
            format!(
                "SELECT q.k, (q.v + e.plus)::BIGINT AS v FROM ({query}) AS q, (SELECT sum(plus) AS plus FROM {from}) AS e"
            )
        };
        match self.models[place].through {
            Through::Nothing => query,
            Through::Macro => format!("SELECT k, twice(v)::BIGINT AS v FROM ({query}) AS q"),
            Through::Table => {
                format!(
                    "SELECT q.k, (q.v * f.f)::BIGINT AS v FROM ({query}) AS q JOIN factors AS f USING (k)"
                )
            }
            Through::File => plus("extra()"),
            Through::Query => plus(text),
        }
    }

    fn plain_query(&self, place: usize) -> String {
        let model = &self.models[place];
        let names: Vec<_> = model
            .reads
            .iter()
            .map(|read| self.models[*read].name.as_str())
            .collect();
        let constant = model.constant;
        match names.as_slice() {
            [] => format!("SELECT k, (sum(v) + {place} + {constant})::BIGINT AS v FROM raw GROUP BY k"),
            [one] => format!("SELECT k, ({one}.v * 3 + {place} + {constant}) % 1000003 AS v FROM {one}"),
            [one, two, ..] => format!(
                "SELECT a.k, (a.v + 2 * b.v + {place} + {constant}) % 1000003 AS v FROM {one} AS a JOIN {two} AS b USING (k)"
            ),
        }
    }

    /// All models that do not fail, as tables of an engine of its own.
    fn reference(&self) -> ByHand {
        let engine = ByHand::in_memory();
        let raw = (0..self.rows).map(|row| format!("({}, {})", row % 7, row * 31 % 101));
        let raw = raw.collect::<Vec<_>>().join(", ");
        let mut script = format!("CREATE TABLE raw AS SELECT * FROM (VALUES {raw}) AS raw(k, v);\n");
        let rows = format!("SELECT {} AS plus", self.extra);
        script += &self.migration(&rows);
        for (place, model) in self.models.iter().enumerate() {
            // What was deleted is read by nothing, and may read what is no longer there.
            if !model.gone && !self.fails(place) {
                script += &format!(
                    "CREATE TABLE {} AS {};\n",
                    model.name,
                    self.query(place, "extra()")
                );
            }
        }
        engine.run(&script);
        engine
    }
}

/// A model's use of the migration: most of them use something.
fn through(rng: &mut SmallRng) -> Through {
    match rng.random_range(0..6) {
        0 | 1 => Through::Nothing,
        2 => Through::Macro,
        3 => Through::Table,
        4 => Through::File,
        _ => Through::Query,
    }
}

/// Draws the inputs of a model: nothing but the source, or one or two models before it.
fn reads(rng: &mut SmallRng, place: usize) -> Vec<usize> {
    if place == 0 {
        return Vec::new();
    }
    let one = rng.random_range(0..place);
    let two = rng.random_range(0..place);
    match rng.random_range(0..5) {
        0 => Vec::new(),
        1 | 2 => vec![one],
        _ if one == two => vec![one],
        _ => vec![one, two],
    }
}

fn rows(engine: &ByHand, name: &str) -> Vec<String> {
    engine.lines(&format!("SELECT k::BIGINT, v::BIGINT FROM {name} ORDER BY ALL"))
}

/// The outputs of the engine: name, and whether it is a table.
fn outputs(engine: &ByHand) -> BTreeMap<String, bool> {
    let sql = "SELECT table_name, table_type = 'BASE TABLE' FROM information_schema.tables \
               WHERE table_schema = 'main' AND table_catalog = current_database() \
               AND NOT starts_with(table_name, '_watershed_trash_')";
    let rows = engine.run(sql).into_iter();
    rows.map(|row| (row[0].to_string(), row[1] == Value::Boolean(true)))
        .collect()
}
