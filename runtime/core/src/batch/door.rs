//! Refusals of kinds and names that no resource may get.

use crate::graph::Graph;
use crate::{Batch, Change, Kind, NameProblem, NewResource, Refusal};

/// Checks the kinds and names that a batch brings into the catalog. Stored names are not checked again.
pub(crate) fn check(graph: &Graph, batch: &Batch, may_be_unregistered: bool) -> Result<(), Refusal> {
    for edit in &batch.edits {
        match &edit.change {
            Change::Create(new) | Change::Apply(new) => {
                check_new(new)?;
                if !may_be_unregistered && !is_registered(graph, &new.kind) {
                    return Err(Refusal::UnregisteredKind(new.kind.clone()));
                }
            }
            Change::Rename(name) => refuse(name.as_str(), name.problem())?,
            Change::Update(_) | Change::Delete | Change::ForceDelete => {}
        }
    }
    Ok(())
}

fn check_new(new: &NewResource) -> Result<(), Refusal> {
    refuse(new.kind.as_str(), new.kind.problem())?;
    refuse(new.name.as_str(), new.name.problem())
}

fn refuse(text: &str, problem: Option<NameProblem>) -> Result<(), Refusal> {
    problem.map_or(Ok(()), |problem| {
        Err(Refusal::InvalidName {
            text: text.to_owned(),
            problem,
        })
    })
}

fn is_registered(graph: &Graph, kind: &Kind) -> bool {
    let kinds = graph.kinds();
    let found = kinds.find(kind);
    found.is_some_and(|kind| kinds[kind].is_registered())
}
