//! Navigation: definitions and references.

use async_lsp::lsp_types::{Location, Position};
use watershed_compilers::{self as compilers, ResourceKey};

use crate::{position::Lines, workspace::Workspace};

/// The largest number of references that the editor is sent.
const MOST: usize = 10_000;

/// Returns the declaration of the resource that is named at a position; none if there is no such resource.
pub(crate) fn definition(workspace: &Workspace, path: &str, position: Position) -> Option<Location> {
    let key = named(workspace, path, position)?;
    location(workspace, &workspace.project().definition(&key)?)
}

/// Returns the places that name a resource. The resource is the one named at the position, or otherwise the first that
/// the file declares.
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

/// Returns the resource that is named or declared at a position, if there is one.
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
