//! Answers of APIs for people.

use crate::cli::args::Format;
use crate::cli::failure::Failure;
use crate::cli::present::{Present, Presenter};
use watershed_api::Exit;
use watershed_api::documents::CallDocument;
use watershed_api::reply::CallAnswer;

/// Advice where an answer has no rows: an argument that was not given is NULL, and nothing equals that.
pub(crate) fn advice(document: &CallDocument) -> Vec<String> {
    let is_empty = document.rows.is_empty() && document.sql.is_none();
    let missing = document.missing_arguments.iter().filter(|_| is_empty);
    let advice = missing.map(|name| format!("it reads `{name}`, which was not given: `--arg {name}=VALUE`"));
    advice.collect()
}

impl Present for CallAnswer {
    fn present(self, mut presenter: Presenter<'_>) -> Result<Exit, Failure> {
        match self {
            Self::File(written) => written.present(presenter),
            Self::Document(document) if presenter.format() == Format::Json => presenter.written(&*document),
            Self::Document(document) => {
                presenter.advice.extend(advice(&document));
                presenter.metrics(&document.as_metrics())
            }
        }
    }
}
