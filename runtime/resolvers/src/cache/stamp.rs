//! The builds behind a statement's tables, as in the current catalog.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;
use watershed_compilers::Kind;
use watershed_core::{Key, Row};
use watershed_outputs::{Outputs, traces::Version};
use watershed_proto::{Message as _, ModelSpec, ModelState, OutputKind};

use super::facts::{Facts, Reader, tells_the_time};
use crate::resources::Resources;

/// The kind of resource whose outputs statements read.
const MODEL: &str = Kind::Model.as_str();

/// All inputs of an answer beside its statement. Equal stamps mean equal rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    /// Models with the versions of their states, which increase with each build.
    builds: BTreeSet<(Uuid, u64)>,
    /// Fingerprint of objects that migrations and connectors left in the engine; none if there are none.
    made: Option<Version>,
    /// Counters of changes by other processes and by people's statements.
    meddled: (u64, u64),
    /// Value of the author's key query; none without one.
    key: Option<String>,
    /// The row limit of the query.
    most: u64,
}

/// Returns the stamp of a statement; none if its rows may change without a build in this project.
pub(super) fn of(
    facts: &Facts,
    reader: &Reader,
    outputs: &Outputs,
    resources: &dyn Resources,
    key: Option<String>,
    most: u64,
) -> Option<Stamp> {
    let tables = facts.tables.as_ref()?;
    if is_made_here(outputs, &facts.names) {
        return None;
    }
    // Before the builds are looked up: what happens in between makes another stamp.
    let mut stamp = Stamp {
        builds: BTreeSet::new(),
        made: outputs.made().version(),
        meddled: outputs.meddled(),
        key,
        most,
    };
    let mut models = Models {
        reader,
        outputs,
        resources,
        builds: BTreeSet::new(),
    };
    for table in tables {
        let is_built = models.table(table);
        if !is_built && stamp.key.is_none() {
            return None;
        }
    }
    stamp.builds = models.builds;
    Some(stamp)
}

/// Returns true if a migration or connector defined one of these names.
fn is_made_here(outputs: &Outputs, names: &[String]) -> bool {
    let reads = outputs.made().read_by_names(names.iter().map(String::as_str));
    !reads.inputs.is_empty() || !reads.files.is_empty()
}

/// A collector that finds the builds behind tables and views.
struct Models<'a> {
    reader: &'a Reader,
    outputs: &'a Outputs,
    resources: &'a dyn Resources,
    builds: BTreeSet<(Uuid, u64)>,
}

impl Models<'_> {
    /// Adds the builds behind a table; false if other data may change its rows.
    fn table(&mut self, table: &str) -> bool {
        let of_name = self.resources.find(&Key::new(MODEL, table));
        let of_name = of_name.and_then(|row| makes(row, table));
        let found = of_name.or_else(|| {
            // A model whose table is called otherwise. The name stands in its state, as it is written.
            let rows = self.resources.rows().into_iter();
            rows.filter(|row| row.kind.as_str() == MODEL && mentions(row, table))
                .find_map(|row| makes(row, table))
        });
        found.is_some_and(|(row, state)| self.model(&row, &state))
    }

    fn model(&mut self, row: &Row, state: &ModelState) -> bool {
        let build = (row.uid.0, row.state_version.0);
        if !self.builds.insert(build) || state.result_kind() != OutputKind::View {
            return true;
        }
        self.view(row, state)
    }

    /// Adds the builds that a view reads; false if its SQL reads anything but models.
    fn view(&mut self, row: &Row, state: &ModelState) -> bool {
        let Ok(spec) = ModelSpec::decode(row.spec.as_ref()) else {
            return false;
        };
        let Some(sql) = &spec.sql else { return false };
        // After an edit that is not built yet the engine has another view.
        let is_built = spec.output_meaning == state.output_meaning;
        let reads_files = !spec.local_files.is_empty() || !state.made_files.is_empty();
        let is_steady = self.reader.is_consistent(spec.uses.iter().map(String::as_str));
        if !is_built
            || reads_files
            || !is_steady
            || tells_the_time(&sql.text)
            || is_made_here(self.outputs, &spec.uses)
        {
            return false;
        }
        spec.inputs.iter().all(|input| {
            let row = self.resources.find(&Key::new(MODEL, input.as_str()));
            let built = row.and_then(|row| state_of(&row).map(|state| (row, state)));
            built.is_some_and(|(row, state)| self.model(&row, &state))
        })
    }
}

fn state_of(row: &Row) -> Option<ModelState> {
    ModelState::decode(row.state.as_ref()?.as_ref()).ok()
}

/// Returns a model with its state if the table is its output.
fn makes(row: Arc<Row>, table: &str) -> Option<(Arc<Row>, ModelState)> {
    let state = state_of(&row)?;
    state
        .result_table
        .eq_ignore_ascii_case(table)
        .then_some((row, state))
}

fn mentions(row: &Row, table: &str) -> bool {
    let state = row.state.as_ref().map(|state| state.as_ref()).unwrap_or_default();
    let name = table.as_bytes();
    !name.is_empty()
        && state
            .windows(name.len())
            .any(|part| part.eq_ignore_ascii_case(name))
}
