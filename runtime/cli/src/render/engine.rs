//! `status --engine` for people.

use anstyle::Style;
use watershed_api::documents::{EngineDocument, EnginePart, EnginePromise};

use super::columns::{Cell, fitting};
use super::palette::{DIM, GOOD, STRONG, WARN};

/// Renders the table of guarantees, with weaker ones marked, and the capabilities that the engine lacks.
pub(crate) fn engine(document: &EngineDocument, width: Option<u16>) -> String {
    let rows: Vec<_> = document.promises.iter().map(line).collect();
    let table = fitting("", &rows, width);
    let weaker = document.promises.iter().filter(|promise| promise.weaker).count();
    let promises = match weaker {
        0 => "it keeps all that is asked for".to_owned(),
        number => format!("{number} of its promises are weaker"),
    };
    let lacks = |present: bool| {
        let parts = document.parts.iter().filter(|part| part.present == present);
        parts
            .map(|part: &EnginePart| part.title.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let lacking = match lacks(false) {
        none if none.is_empty() => String::new(),
        some => format!("it lacks {some}\n"),
    };
    format!(
        "{table}{STRONG}{}{STRONG:#}: {promises}\n{lacking}",
        document.driver
    )
}

fn line(promise: &EnginePromise) -> Vec<Cell> {
    let (mark, style) = match promise.weaker {
        true => ("weaker", WARN),
        false => ("kept", GOOD),
    };
    vec![
        Cell::left(mark, style),
        Cell::left(promise.title.as_str(), Style::new()),
        Cell::left(promise.how.as_str(), DIM),
    ]
}
