//! Completion: the proposals for a position in a file.

use async_lsp::lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionList, CompletionResponse,
    CompletionTextEdit, Documentation, Position, Range, TextEdit,
};
use watershed_compilers::{
    diagnostics::Span,
    editor::{self, Suggested, Suggestion},
};

use watershed_dialect::{ENGINE, Quoting as _};

use crate::{position::Lines, workspace::Workspace};

/// The largest number of columns that the editor is sent at once.
const MOST_COLUMNS: usize = 1_000;

/// Returns the proposals for a position in a file.
pub(crate) fn at(workspace: &Workspace, path: &str, position: Position) -> CompletionResponse {
    let text = workspace.text(path);
    let lines = Lines::new(&text);
    let (line, column) = lines.place(position);
    let found = editor::complete(workspace.project(), path, &text, line, column);
    let start = lines.range(Span {
        line,
        column: found.from,
        end_line: line,
        end_column: column,
    });
    let range = Range::new(start.start, start.end);
    let mut items: Vec<CompletionItem> = found.items.iter().map(|one| item(one, range)).collect();
    let is_cut = columns(workspace, &found.columns_of, range, &mut items);
    CompletionResponse::List(CompletionList {
        is_incomplete: found.is_incomplete || is_cut,
        items,
    })
}

fn item(suggestion: &Suggestion, range: Range) -> CompletionItem {
    let (kind, what) = match suggestion.what {
        Suggested::Key => (CompletionItemKind::PROPERTY, None),
        Suggested::Value => (CompletionItemKind::VALUE, None),
        Suggested::Resource(kind) => (CompletionItemKind::REFERENCE, Some(kind.as_str().to_owned())),
        Suggested::Field => (CompletionItemKind::FIELD, None),
        Suggested::Variable => (CompletionItemKind::VARIABLE, None),
        Suggested::Function => (CompletionItemKind::FUNCTION, None),
    };
    let text = suggestion.insert.as_ref().unwrap_or(&suggestion.label);
    CompletionItem {
        label: suggestion.label.clone(),
        kind: Some(kind),
        label_details: details(what),
        documentation: suggestion.meaning.clone().map(Documentation::String),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(range, text.clone()))),
        ..CompletionItem::default()
    }
}

/// Adds proposals for the columns of tables. Returns true if some were left out.
fn columns(workspace: &Workspace, tables: &[String], range: Range, items: &mut Vec<CompletionItem>) -> bool {
    let facts = workspace.host().facts();
    let known = tables
        .iter()
        .filter_map(|table| Some((table, facts.columns.get(&table.to_lowercase())?)));
    let all = known.flat_map(|(table, columns)| columns.iter().map(move |one| (table, one)));
    for (count, (table, column)) in all.enumerate() {
        if count == MOST_COLUMNS {
            return true;
        }
        items.push(CompletionItem {
            label: column.name.clone(),
            kind: Some(CompletionItemKind::FIELD),
            label_details: details(Some(table.clone())),
            detail: Some(column.data_type.clone()),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit::new(
                range,
                written(&column.name),
            ))),
            ..CompletionItem::default()
        });
    }
    false
}

/// Returns the column's name as SQL writes it, quoted if necessary.
fn written(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_plain {
        true => name.to_owned(),
        false => ENGINE.name(name),
    }
}

fn details(description: Option<String>) -> Option<CompletionItemLabelDetails> {
    description.map(|description| CompletionItemLabelDetails {
        detail: None,
        description: Some(description),
    })
}
