//! Places of declarations and of references to resources, for editors.
//!
//! Nothing of this is kept: it is looked for when an editor asks, in the files that may hold it.

use std::{collections::BTreeSet, ops::Range};

use super::{Group, Project};
use crate::{
    diagnostics::{At, Role},
    draft::SqlBlock,
    file::{Part, part},
    resource::{Kind, ResourceKey},
    sql::{TokenKind, table_places, tokens},
    text::{Span, Text, narrow},
};

/// A place in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The path of the file, without a leading slash.
    pub path: String,
    /// The place in the file.
    pub span: Span,
}

/// A name in a file that refers to a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The place of the name.
    pub span: Span,
    /// The resource that the name refers to, which may not exist.
    pub target: ResourceKey,
}

impl Project {
    /// Returns the place where a resource is declared: its name, or the start of the file that is named after it.
    pub fn definition(&self, key: &ResourceKey) -> Option<Location> {
        let claim = self.claims.winner(key)?;
        let group = self.groups.get(&claim.group)?;
        let draft = group.compiled.drafts.get(claim.draft)?;
        let path = group.path(draft.name_at.role)?.clone();
        let span = draft.name_at.span;
        Some(Location { path, span })
    }

    /// Returns the resource whose declared name is at a place of a file.
    pub fn declared_at(&self, path: &str, line: u32, column: u32) -> Option<ResourceKey> {
        let group = self.groups.get(&group_of(path)?)?;
        let found = group.compiled.drafts.iter().find(|draft| {
            let here = group.path(draft.name_at.role).is_some_and(|own| own == path);
            here && draft.name_at.span != Span::START && holds(draft.name_at.span, line, column)
        });
        found.map(|draft| ResourceKey::new(draft.kind, &draft.name))
    }

    /// Returns the resources that a file declares, explicit ones first.
    pub fn declared_in(&self, path: &str) -> Vec<ResourceKey> {
        let group = group_of(path).and_then(|key| self.groups.get(&key));
        let drafts = group.into_iter().flat_map(|group| &group.compiled.drafts);
        drafts
            .map(|draft| ResourceKey::new(draft.kind, &draft.name))
            .collect()
    }

    /// Returns the references to resources in a file, in order, without tables that no resource writes.
    pub fn references_in(&self, path: &str) -> Vec<Reference> {
        let group = group_of(path).and_then(|key| self.groups.get(&key));
        let (Some(group), Some(source)) = (group, self.source(path)) else {
            return Vec::new();
        };
        let source = source.strip_prefix('\u{feff}').unwrap_or(&source);
        let mut found = self.named(group, path, source);
        if group.compiled.findings.has_errors() && path.ends_with(".sql") {
            found.append(&mut self.named_in_ruins(source));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns the reference at a place of a file.
    pub fn reference_at(&self, path: &str, line: u32, column: u32) -> Option<Reference> {
        let mut found = self.references_in(path).into_iter();
        found.find(|one| holds(one.span, line, column))
    }

    /// Returns all places that refer to a resource, by path.
    pub fn references_to(&self, key: &ResourceKey) -> Vec<Location> {
        let groups = self.readers.get(key).into_iter().flatten();
        let paths = groups
            .filter_map(|group| self.groups.get(group))
            .flat_map(Group::paths);
        // What does not compile reads nothing, and names things all the same.
        let paths: BTreeSet<String> = paths.chain(self.broken_paths()).collect();
        let mut found = Vec::new();
        for path in paths {
            let here = self.references_in(&path).into_iter();
            let here = here.filter(|one| one.target == *key);
            found.extend(here.map(|one| Location {
                path: path.clone(),
                span: one.span,
            }));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Returns the references of a group's drafts that are in the given file.
    fn named(&self, group: &Group, path: &str, source: &str) -> Vec<Reference> {
        let is_here = |role: Role| group.path(role).is_some_and(|own| own == path);
        let text = Text::new(source);
        let mut found = Vec::new();
        for draft in &group.compiled.drafts {
            let refs = draft
                .refs
                .iter()
                .filter_map(|one| Some((one, one.at.filter(|at| is_here(at.role))?)));
            for (one, at) in refs {
                let target = ResourceKey::new(one.kind.unwrap_or(Kind::Model), &one.name);
                let known = one.expected || one.kind.is_some() || self.claims.exists(&target);
                if known && let Some(span) = name_in(&text, at.span, &one.name) {
                    found.push(Reference { span, target });
                }
            }
            let blocks = draft.blocks.iter().filter(|block| is_here(block.place.role()));
            // A statement around a build names tables and reads none of them.
            let tables = blocks.flat_map(|block| self.tables_of(block));
            found.extend(tables.filter(|one| group.reads.contains(&one.target)));
        }
        found
    }

    fn tables_of(&self, block: &SqlBlock) -> Vec<Reference> {
        let named = table_places(&block.text).into_iter();
        let text = Text::new(&block.text);
        let known = named.filter_map(|(range, name)| {
            let target = ResourceKey::new(block.tables, &name);
            let At { span, .. } = block.place.at(text.span(range));
            self.claims.exists(&target).then_some(Reference { span, target })
        });
        known.collect()
    }

    /// Returns the references in SQL that does not compile, such as while somebody types.
    fn named_in_ruins(&self, source: &str) -> Vec<Reference> {
        let text = Text::new(source);
        let called = tokens(source)
            .into_iter()
            .filter(|token| token.kind == TokenKind::Action)
            .filter_map(|token| called(source, token.range));
        let named = table_places(source).into_iter().chain(called);
        let known = named.filter_map(|(range, name)| {
            let target = ResourceKey::new(Kind::Model, &name);
            let span = text.span(range);
            self.claims.exists(&target).then_some(Reference { span, target })
        });
        known.collect()
    }
}

/// Returns the name that a template action passes to `ref`, with its byte range.
fn called(source: &str, action: Range<usize>) -> Option<(Range<usize>, String)> {
    let text = source.get(action.clone())?;
    let call = text.find("ref ")?;
    let open = call + text.get(call..)?.find('"')? + 1;
    let name = text.get(open..)?.split('"').next()?;
    let start = action.start + open;
    Some((start..start + name.len(), name.to_owned()))
}

/// Returns the key of the group that a file belongs to.
fn group_of(path: &str) -> Option<String> {
    match part(path)? {
        Part::Member { stem } => Some(stem),
        Part::Document { .. } => Some(path.to_owned()),
        Part::Manifest | Part::Env(_) => None,
    }
}

/// Returns true if a place is inside a span or directly behind it.
pub(crate) fn holds(span: Span, line: u32, column: u32) -> bool {
    (span.line, span.column) <= (line, column) && (line, column) <= (span.end_line, span.end_column)
}

/// Returns the span of the name inside a larger span, such as `ref "name" }}` or `model/name`. Only the first lines of
/// a long span are searched.
fn name_in(text: &Text<'_>, span: Span, name: &str) -> Option<Span> {
    /// The number of lines of a span to search.
    const MOST_LINES: u32 = 20;
    /// The number of columns of a line to search.
    const MOST_COLUMNS: usize = 1_000;
    if name.is_empty() {
        return None;
    }
    let wanted = name.to_lowercase();
    for line in span.line..=span.end_line.min(span.line.saturating_add(MOST_LINES)) {
        let shown = text.line(line);
        let from = if line == span.line { span.column } else { 1 };
        let start = byte_of(shown, from);
        let searched: String = shown
            .get(start..)
            .unwrap_or_default()
            .chars()
            .take(MOST_COLUMNS)
            .collect();
        let searched = searched.to_lowercase();
        if let Some(at) = searched.find(&wanted) {
            let before = searched.get(..at).unwrap_or_default().chars().count();
            let column = from + narrow(before);
            let end_column = column + narrow(name.chars().count());
            return Some(Span {
                line,
                column,
                end_line: line,
                end_column,
            });
        }
    }
    // An alias or an escape: the whole value stands for it.
    Some(span)
}

/// Returns the byte offset of a 1-based column; immediate for ASCII lines.
fn byte_of(line: &str, column: u32) -> usize {
    let before = (column as usize).saturating_sub(1);
    if line.is_ascii() {
        return before.min(line.len());
    }
    line.char_indices().nth(before).map_or(line.len(), |(at, _)| at)
}
