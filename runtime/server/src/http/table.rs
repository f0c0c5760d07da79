//! Answers of metrics views and APIs in the form that the caller accepts.

use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::Value;
use watershed_api::answers::{CallAnswer, MetricsAnswer, MetricsColumn};
use watershed_api::{Answer, Code, Problem, Request};

use super::answers::{Unanswered, of_type};
use super::form::{self, Chosen, Form, name_file, truncated};
use super::made_file::{MadeFile, Place};
use crate::forms::csv;
use crate::forms::lines::Keys;
use crate::state_folder::StateFolder;

/// Forms of these answers, whose rows may be made over by policies and pivots outside the engine.
const FORMS: [Form; 5] = [Form::Json, Form::Lines, Form::Csv, Form::Xlsx, Form::Parquet];

/// A form other than JSON that was chosen for an answer.
pub(super) struct Table {
    chosen: Chosen,
    name: String,
    /// Folder of the file that the operation writes; none for text.
    place: Option<Place>,
}

/// Chooses the form of an operation's answer, and lets the operation write a file if the form is one. Returns none for
/// JSON, and for operations without rows.
///
/// # Errors
/// 406 when the caller accepts none of the forms; `unavailable` when there is no place for a file.
pub(super) async fn choose(
    request: &mut Request,
    headers: &HeaderMap,
    state: &StateFolder,
) -> Result<Option<Table>, Unanswered> {
    let (name, options) = match request {
        Request::Metrics(asked) => {
            let view = asked.query.get("metrics_view").and_then(Value::as_str);
            (view.unwrap_or_default().to_owned(), &mut asked.options)
        }
        Request::Call(asked) => (asked.api.clone(), &mut asked.options),
        _ => return Ok(None),
    };
    // A statement instead of rows is a member of the document.
    let offered: &[Form] = if options.sql { &[Form::Json] } else { &FORMS };
    let chosen = form::choose(headers, offered)?;
    if chosen.form == Form::Json {
        return Ok(None);
    }
    let place = match chosen.form.file_format() {
        Some(_) => {
            let place = Place::new(&state.answers()).await?;
            options.file = Some(place.file(chosen.form.extension()));
            Some(place)
        }
        None => None,
    };
    Ok(Some(Table { chosen, name, place }))
}

/// Returns true if a limit has cut rows off that were written into a file.
fn is_cut(answer: &Answer) -> bool {
    match answer {
        Answer::Metrics(answer) => matches!(&**answer, MetricsAnswer::File(it) if it.truncated),
        Answer::Call(answer) => matches!(&**answer, CallAnswer::File(it) if it.truncated),
        _ => false,
    }
}

impl Table {
    /// Returns an answer in the chosen form.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(super) async fn response(self, answer: &Answer) -> Result<Response, Problem> {
        let form = self.chosen.form;
        let mut response = match &self.place {
            Some(place) => {
                let made = MadeFile::take(&place.file(form.extension()), is_cut(answer)).await?;
                made.response(self.chosen.media)
            }
            None => self.text(answer)?,
        };
        name_file(&mut response, &self.name, form);
        Ok(response)
    }

    fn text(&self, answer: &Answer) -> Result<Response, Problem> {
        let other = Err(Problem::new(Code::Defect, "the answer has no rows"));
        let (columns, rows, totals, for_people, is_cut) = match answer {
            Answer::Metrics(answer) => match &**answer {
                MetricsAnswer::Document(it) => (
                    &it.columns,
                    &it.rows,
                    &it.totals,
                    it.use_display_names,
                    it.truncated,
                ),
                MetricsAnswer::File(_) => return other,
            },
            Answer::Call(answer) => match &**answer {
                CallAnswer::Document(it) => (
                    &it.columns,
                    &it.rows,
                    &it.totals,
                    it.use_display_names,
                    it.truncated,
                ),
                CallAnswer::File(_) => return other,
            },
            _ => return other,
        };
        let totals = totals.as_slice();
        let mut out = Vec::new();
        if self.chosen.form == Form::Lines {
            let keys = Keys::of(columns.iter().map(|column| column.name.as_str()));
            keys.write(&mut out, rows);
            keys.write(&mut out, totals);
        } else {
            let heading = |column: &'_ MetricsColumn| match for_people {
                true => column.display_name.clone(),
                false => column.name.clone(),
            };
            let names: Vec<String> = columns.iter().map(heading).collect();
            let written = csv::write_header(&mut out, names.iter().map(String::as_str))
                .and_then(|()| csv::write_rows(&mut out, rows))
                .and_then(|()| csv::write_rows(&mut out, totals));
            written.map_err(|error| Problem::new(Code::Defect, error.to_string()))?;
        }
        let mut response = of_type(self.chosen.media, out);
        if is_cut {
            response.headers_mut().extend(truncated());
        }
        Ok(response)
    }
}
