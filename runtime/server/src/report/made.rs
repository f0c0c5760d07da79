//! Dependencies of models on migrations, which no ref declares.

use watershed_core::{Row, Uid};
use watershed_outputs::traces::Made;
use watershed_proto::{Message as _, MigrationState, ModelSpec};
use watershed_reconcilers::{migration, model};

/// Returns pairs of a migration and a model that reads an object made by it.
pub(crate) fn readers<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> Vec<(Uid, Uid)> {
    let made = Made::default();
    let mut is_empty = true;
    for row in rows.clone().filter(|row| row.kind.as_str() == migration::KIND) {
        if let Some(Ok(state)) = row.state.as_deref().map(MigrationState::decode) {
            made.learn(row.uid.0, &state);
            is_empty = false;
        }
    }
    if is_empty {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for row in rows.filter(|row| row.kind.as_str() == model::KIND) {
        if let Ok(spec) = ModelSpec::decode(row.spec.as_ref()) {
            let behind = made.behind(&spec.uses).into_iter();
            pairs.extend(behind.map(|migration| (Uid(migration), row.uid)));
        }
    }
    pairs
}
