//! Unknown keys of models whose input is SQL.
//!
//! A model hands keys that are not its own to its input, whatever they are. One whose input is its own SQL has nobody to hand
//! them to: each of them is a mistake.

use watershed_proto::ModelSpec;

use crate::{
    diagnostics::{At, Code, Role},
    kinds::reader::Reader,
    yaml::{Data, Map, Node},
};

/// The key `columns`, an option of readers, and in a model with SQL a habit from dbt.
pub(super) const COLUMNS: &str = "columns";

/// Top-level keys of dbt models, each with what to write instead.
const HABITS: [(&str, &str); 8] = [
    (
        COLUMNS,
        "a column has no settings here; what should hold for one is among the `tests:` of the model",
    ),
    ("data_tests", TESTS),
    (
        "config",
        "its settings are keys of the model itself, as `materialize: true`",
    ),
    (
        "contract",
        "a test holds columns to what they should be: `tests: [{not_null: id}]`",
    ),
    ("docs", "`description:` says what the model is about"),
    (
        "grants",
        "rights to tables are not given here; `security:` of a metrics view says who sees what",
    ),
    (
        "meta",
        "`tags:` are words by which models are chosen, a comment is for people",
    ),
    (
        "models",
        "each model has a file of its own, with its keys at the top",
    ),
];

const TESTS: &str = "write `tests:` of the model, as in `tests: [{unique: id}, {not_null: [id, day]}]`";

impl Reader<'_, '_> {
    /// Reports remaining keys that have no effect, except those from the manifest's defaults, which apply to several
    /// models.
    pub(super) fn unknown_keys(&mut self, spec: &ModelSpec, rest: &Map, is_told: impl Fn(&str) -> bool) {
        let driver = self.context.driver(&spec.input_connector);
        if spec.sql.is_none() || driver != Some("duckdb") {
            return;
        }
        for (key, entry) in rest {
            // `x-` is how files name what their own aliases stand for.
            if is_told(key) || key.starts_with("x-") || entry.key_at.role == Role::Manifest {
                continue;
            }
            self.unknown_key(key, entry.key_at);
            if key == COLUMNS {
                for (place, inner) in tests_of_columns(&entry.value) {
                    let message = format!("`columns[].{inner}` is not known, and nothing takes it");
                    let findings = self.fields.findings();
                    findings.add_with_hint(place, Code::UnusedKey, message, TESTS);
                }
            }
        }
    }

    fn unknown_key(&mut self, key: &str, at: At) {
        let message = format!("unknown key \"{key}\": the model's input is its SQL, and nothing takes it");
        let habit = HABITS.iter().find(|(known, _)| *known == key);
        let findings = self.fields.findings();
        match habit {
            Some((_, hint)) => findings.add_with_hint(at, Code::UnusedKey, message, *hint),
            None => findings.add(at, Code::UnusedKey, message),
        }
    }
}

/// Returns the tests in dbt's settings of columns, by place.
fn tests_of_columns(columns: &Node) -> Vec<(At, String)> {
    let Data::List(columns) = &columns.data else {
        return Vec::new();
    };
    let maps = columns.iter().filter_map(|column| match &column.data {
        Data::Map(map) => Some(map),
        _ => None,
    });
    let entries = maps.flat_map(Map::iter);
    let tests = entries.filter(|(key, _)| matches!(key.as_str(), "tests" | "data_tests"));
    tests.map(|(key, entry)| (entry.key_at, key.clone())).collect()
}
