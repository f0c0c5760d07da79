//! Updates of rows: checks for a real difference, and the columns that they overwrite.

use std::sync::Arc;

use crate::batch::plan::Step;
use crate::graph::Graph;
use crate::{Row, Update};

/// Returns true if a step changes anything. A step that doesn't raises no version and requests nothing.
pub(super) fn changes_anything(graph: &Graph, step: &Step) -> bool {
    let Step::Change {
        slot,
        update,
        name,
        take_up: false,
    } = step
    else {
        return true;
    };
    let row = graph[*slot].row();
    name.as_ref().is_some_and(|name| !name.same_case(&row.name)) || !update_is_idle(row, update)
}

fn update_is_idle(row: &Row, update: &Update) -> bool {
    fn same<T: PartialEq>(new: &Option<T>, old: &T) -> bool {
        new.as_ref().is_none_or(|new| new == old)
    }
    update
        .spec
        .as_ref()
        .is_none_or(|(spec, format)| *spec == row.spec && *format == row.spec_format)
        && same(&update.refs, &row.refs)
        && same(&update.paths, &row.paths)
        && same(&update.labels, &row.labels)
        && same(&update.owner, &row.owner)
        && same(&update.hidden, &row.hidden)
        && update
            .retry
            .is_none_or(|retry| retry.as_ref() == row.retry.as_deref())
}

/// Overwrites the columns that an update names.
pub(super) fn overwrite(row: &mut Row, update: Update) {
    if let Some((spec, format)) = update.spec {
        (row.spec, row.spec_format) = (spec, format);
    }
    row.refs = update.refs.unwrap_or_else(|| row.refs.clone());
    row.paths = update.paths.unwrap_or_else(|| row.paths.clone());
    row.labels = update.labels.unwrap_or_else(|| row.labels.clone());
    row.owner = update.owner.unwrap_or(row.owner);
    row.hidden = update.hidden.unwrap_or(row.hidden);
    if let Some(retry) = update.retry {
        row.retry = retry.map(Arc::new);
    }
}
