//! Ways through the project: definitions and references.

use async_lsp::lsp_types::{Location, Position};
use watershed_compilers::{self as compilers, ResourceKey};

use crate::{position::Lines, workspace::Workspace};

/// References that an editor is sent: a list of more is not read.
const MOST: usize = 10_000;

/// Returns where the resource is declared that is named at a place.
pub(crate) fn definition(workspace: &Workspace, path: &str, position: Position) -> Option<Location> {
    let key = named(workspace, path, position)?;
    location(workspace, &workspace.project().definition(&key)?)
}

/// Returns where a resource is named: the one at a place, or else the one that the file declares.
pub(crate) fn references(
    workspace: &Workspace,
    path: &str,
    position: Position,
    with_declaration: bool,
) -> Vec<Location> {
    let project = workspace.project();
    let key = named(workspace, path, position).or_else(|| project.declared_in(path).into_iter().next());
    let Some(key) = key else { return Vec::new() };
    let declaration = project.definition(&key).filter(|_| with_declaration);
    let places = project.references_to(&key);
    let all = declaration.iter().chain(&places).take(MOST);
    all.filter_map(|place| location(workspace, place)).collect()
}

/// The resource that is named, or declared, at a place.
fn named(workspace: &Workspace, path: &str, position: Position) -> Option<ResourceKey> {
    let text = workspace.text(path);
    let (line, column) = Lines::new(&text).place(position);
    let project = workspace.project();
    let named = project.reference_at(path, line, column);
    named
        .map(|named| named.target)
        .or_else(|| project.declared_at(path, line, column))
}

fn location(workspace: &Workspace, place: &compilers::Location) -> Option<Location> {
    let text = workspace.text(&place.path);
    let range = Lines::new(&text).range(place.span);
    Some(Location::new(workspace.uri(&place.path)?, range))
}
