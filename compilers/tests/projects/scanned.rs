//! Statements that have a tree against the same statements where they have none: both read the same.

use std::collections::BTreeSet;

use watershed_compilers::{Kind, Project, ResourceKey, Severity, Spec};

use crate::{case::Case, engine::Engine};

/// Statements, unless `WATERSHED_QUERIES` says otherwise.
const QUERIES: u64 = 400;
/// The seed of the first, unless `WATERSHED_SEED` says otherwise.
const SEED: u64 = 1;
/// Queries within queries, and brackets around them.
const DEEPEST: u32 = 3;

/// Names of models, as they may be written; CTEs have the same.
const NAMES: [&str; 7] = ["a", "A", "\"a\"", "b", "\"C d\"", "\"c D\"", "e"];

/// A source of choices that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.roll(NAMES.len())]
    }

    fn query(&mut self, depth: u32) -> String {
        let mut text = String::new();
        if depth > 0 && self.roll(3) > 0 {
            text.push_str(["WITH ", "WITH RECURSIVE "][self.roll(2)]);
            let mut ctes = BTreeSet::new();
            for _ in 0..=self.roll(2) {
                let name = self.name();
                // Two of one name are a mistake.
                if ctes.insert(name.trim_matches('"').to_lowercase()) {
                    let comma = if ctes.len() > 1 { ", " } else { "" };
                    let how = ["", "MATERIALIZED ", "NOT MATERIALIZED "][self.roll(3)];
                    let columns = ["", "(x)"][self.roll(2)];
                    let body = self.query(depth - 1);
                    text.push_str(&format!("{comma}{name}{columns} AS {how}({body})"));
                }
            }
            text.push(' ');
        }
        text.push_str(&self.body(depth));
        text
    }

    fn body(&mut self, depth: u32) -> String {
        let mut text = format!("SELECT x FROM {}", self.relation(depth));
        match self.roll(4) {
            0 => text.push_str(&format!(", {}", self.relation(depth))),
            1 => text.push_str(&format!(" JOIN {} USING (x)", self.relation(depth))),
            _ => {}
        }
        if depth > 0 && self.roll(4) == 0 {
            text.push_str(&format!(" WHERE x IN ({})", self.query(depth - 1)));
        }
        if self.roll(3) == 0 {
            text.push_str(&format!(" UNION ALL {}", self.body(depth.saturating_sub(1))));
        }
        text
    }

    fn relation(&mut self, depth: u32) -> String {
        match self.roll(8) {
            0 if depth > 0 => format!("({}) AS q{}", self.query(depth - 1), self.roll(1000)),
            1 => format!("main.{}", self.name()),
            2 => format!("{} AS q{}", self.name(), self.roll(1000)),
            3 => format!("q{}: {}", self.roll(1000), self.name()),
            4 => format!(
                "read_csv({}) AS q{}",
                ["'a.csv'", "\"b.csv\"", "['c.csv', \"d.csv\"]"][self.roll(3)],
                self.roll(1000)
            ),
            5 if depth > 0 => format!("(SUMMARIZE {}) AS q{}", self.name(), self.roll(1000)),
            _ => self.name().to_owned(),
        }
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    let said = std::env::var(variable).ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(usual)
}

/// A PIVOT without IN has no tree, whatever stands in it.
#[test]
fn statements_without_a_tree_read_what_the_same_ones_with_a_tree_read() {
    let engine = Engine::new();
    let first = number("WATERSHED_SEED", SEED);
    let mut compared = 0;
    for seed in first..first + number("WATERSHED_QUERIES", QUERIES) {
        let query = Dice(seed).query(DEEPEST);
        let case = Case::read(&format!(
            "//- watershed.yaml\n//- models/a.sql\nSELECT 1 AS x\n//- models/b.sql\nSELECT 1 AS x\n\
             //- models/C d.sql\nSELECT 1 AS x\n//- models/e.sql\nSELECT 1 AS x\n\
             //- models/parsed.sql\n{query}\n//- models/scanned.sql\nPIVOT ({query}) ON x USING count(*)\n"
        ));
        let mut project = Project::new(case.options.clone());
        project.apply(case.events(), &engine);
        let errors = project.diagnostics();
        if errors.iter().any(|one| one.severity == Severity::Error) {
            continue;
        }
        let read = |name: &str| {
            let resource = project.resource(&ResourceKey::new(Kind::Model, name));
            let resource = resource.unwrap_or_else(|| panic!("no model {name} of {query}"));
            let refs: BTreeSet<String> = resource.refs.iter().map(|to| format!("{to:?}")).collect();
            let Spec::Model(spec) = &resource.spec else {
                panic!("{name} is a model")
            };
            let files: BTreeSet<String> = spec
                .local_files
                .iter()
                .map(|files| files.pattern.clone())
                .collect();
            (refs, files)
        };
        assert_eq!(read("parsed"), read("scanned"), "seed {seed}: {query}");
        compared += 1;
    }
    assert!(compared > 0, "no statement can be parsed");
}
