//! Hover texts: the kind, columns and last run of a resource, and the meaning of a key.

use std::fmt::Write as _;

use async_lsp::lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};
use watershed_compilers::{Health, ResourceKey, diagnostics::Span, editor};

use crate::{position::Lines, workspace::Workspace};

/// The largest number of columns that a hover text lists.
const MOST_COLUMNS: usize = 40;

/// Returns the hover text for a position in a file, if there is any.
pub(crate) fn at(workspace: &Workspace, path: &str, position: Position) -> Option<Hover> {
    let project = workspace.project();
    let text = workspace.text(path);
    let lines = Lines::new(&text);
    let (line, column) = lines.place(position);
    let named = project.reference_at(path, line, column);
    let (text, span) = match named {
        Some(named) => (resource(workspace, &named.target), Some(named.span)),
        None => match project.declared_at(path, line, column) {
            Some(key) => (resource(workspace, &key), None),
            None => {
                let told = editor::meaning(project, path, &text, line, column)?;
                (key(&told), Some(told.span))
            }
        },
    };
    let range = span.map(|span: Span| lines.range(span));
    let contents = HoverContents::Markup(MarkupContent {
        kind: MarkupKind::Markdown,
        value: text,
    });
    Some(Hover { contents, range })
}

fn key(told: &editor::Meaning) -> String {
    let instead = told.instead.map(|key| format!("\n\nAn old name: use `{key}`."));
    format!("`{}`: {}{}", told.key, told.text, instead.unwrap_or_default())
}

fn resource(workspace: &Workspace, key: &ResourceKey) -> String {
    let Some(resource) = workspace.project().resource(key) else {
        return format!("{} `{}` does not exist", key.kind, key.name);
    };
    let mut text = format!("**{}** `{}`", resource.kind, resource.name);
    if !resource.paths.is_empty() {
        let _ = write!(text, "\n\n{}", resource.paths.join(", "));
    }
    match resource.health {
        Health::Ok => {}
        Health::Broken => text.push_str("\n\nIts files do not compile."),
        Health::Unsupported => text.push_str("\n\nIts kind is stored but has no effect."),
    }
    let facts = workspace.host().facts();
    if let Some(status) = facts.statuses.get(key) {
        let _ = write!(text, "\n\n{}", status.health);
        if let Some(run) = &status.last_run {
            let _ = write!(text, "; last run {run}");
        }
        if let Some(error) = &status.error {
            let _ = write!(text, "\n\n{error}");
        }
    }
    if let Some(columns) = facts.columns.get(&key.name).filter(|_| has_rows(key)) {
        text.push_str("\n\n| column | type |\n|---|---|\n");
        for column in columns.iter().take(MOST_COLUMNS) {
            let _ = writeln!(text, "| {} | {} |", cell(&column.name), cell(&column.data_type));
        }
        if columns.len() > MOST_COLUMNS {
            let _ = writeln!(text, "\nand {} more", columns.len() - MOST_COLUMNS);
        }
    }
    text
}

/// Returns true if the resource has a table of the same name.
fn has_rows(key: &ResourceKey) -> bool {
    key.kind == watershed_compilers::Kind::Model
}

/// Returns the text in the form for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
