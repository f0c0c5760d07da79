//! Doubtful guesses about a CSV file, reported after the build with the option that settles each.
//!
//! The log of the run holds what is told. Whoever says the option is told nothing.

use watershed_compilers::Scope;
use watershed_dialect::{ENGINE, Words as _};
use watershed_drivers::data_file::Form;
use watershed_drivers::olap::{Guess, Statement, Statements as _, Value as Cell};
use watershed_outputs::Asking;
use watershed_proto::ModelSpec;

use super::subject::Subject;
use crate::model::{
    plan::is_list,
    record::{FileSeen, Record, Shape},
    source,
};

/// Options that set the names of columns.
const SAYS_NAMES: [&str; 3] = ["header", "columns", "names"];

/// Options that set the format of dates, or rule dates out.
const SAYS_DATES: [&str; 7] = [
    "dateformat",
    "date_format",
    "timestampformat",
    "timestamp_format",
    "columns",
    "types",
    "all_varchar",
];

/// Reports doubtful guesses about a CSV source that was built as `table`. Guesses that can't be queried are not
/// reported.
pub(super) async fn tell_doubts(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    table: &str,
    files: &[FileSeen],
) {
    if spec.sql.is_some() || source::form(spec, scope) != Some(Form::Csv) {
        return;
    }
    let Some(first) = files.iter().find(|file| !is_list(&file.path)) else {
        return;
    };
    let says = |options: &[&str]| options.iter().any(|one| source::option(spec, one).is_some());
    let (names, dates) = (!says(&SAYS_NAMES), !says(&SAYS_DATES));
    if !names && !dates {
        return;
    }
    let asking = subject.asking();
    let all = ENGINE.write(&Statement::Empty(table));
    let Ok(Ok(columns)) = asking.describe(&all).await else {
        return;
    };
    if names && are_made_up(&columns) {
        tracing::warn!(
            file = first.path,
            "the first row was taken for values, not for the names of columns: `header: true` or `header: false` says \
                 what it is"
        );
    }
    let of_time: Vec<&str> = columns
        .iter()
        .filter(|(_, kind)| ENGINE.is_time_type(kind))
        .map(|(name, _)| name.as_str())
        .collect();
    if !dates
        || of_time.is_empty()
        || first_text(
            &asking,
            ENGINE.write(&Statement::Swappable {
                table,
                columns: &of_time,
            }),
        )
        .await
        .is_none()
    {
        return;
    }
    let Ok(sql) = source::sniff(spec, scope, &first.path, &[Guess::DatesOrTimes]) else {
        return;
    };
    let taken = first_text(&asking, sql).await.unwrap_or_default();
    if is_of_two_readings(&taken) {
        tracing::warn!(
            file = first.path,
            format = taken,
            "dates could be read with day and month in either order: `dateformat`, or `timestampformat`, says in which"
        );
    }
}

/// Options that state types of columns.
const SAYS_TYPES: [&str; 4] = ["columns", "types", "dtypes", "all_varchar"];

/// Returns names and types of the columns that the engine guessed for a source's table when it was last built; none if
/// there is no such table, its definition has changed since, or the types are stated.
pub(super) async fn guessed_columns(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    last: Option<&Record>,
) -> Vec<(String, String)> {
    let guesses = match source::form(spec, scope) {
        Some(Form::Csv | Form::Json) => true,
        _ => source::workbooks(spec, scope).is_some(),
    };
    let says = SAYS_TYPES.iter().any(|one| source::option(spec, one).is_some());
    if spec.sql.is_some() || !guesses || says {
        return Vec::new();
    }
    let meaning = subject.meaning().ok();
    let Some(last) =
        last.filter(|last| last.shape == Shape::Table && Some(&last.meaning) == meaning.as_ref())
    else {
        return Vec::new();
    };
    let all = ENGINE.write(&Statement::Empty(&last.location.name));
    let described = subject.asking().describe(&all).await;
    described.ok().and_then(Result::ok).unwrap_or_default()
}

/// Reports columns that the engine takes for texts since this build, each with a value that made the difference and the
/// option that would refuse such a value.
pub(super) async fn tell_changed_guesses(
    subject: Subject<'_>,
    form: Option<Form>,
    table: &str,
    guessed: &[(String, String)],
) {
    if guessed.is_empty() {
        return;
    }
    let asking = subject.asking();
    let all = ENGINE.write(&Statement::Empty(table));
    let Ok(Ok(columns)) = asking.describe(&all).await else {
        return;
    };
    for (column, kind) in columns {
        let before = guessed.iter().find(|(name, _)| *name == column);
        let Some((_, was)) =
            before.filter(|(_, was)| ENGINE.is_text_type(&kind) && !ENGINE.is_text_type(was))
        else {
            continue;
        };
        let unlike = Statement::Unlike {
            table,
            column: &column,
            data_type: was,
        };
        let value = first_text(&asking, ENGINE.write(&unlike)).await;
        let because = value
            .map(|value| format!(" because of \"{value}\""))
            .unwrap_or_default();
        let help = match form {
            Some(Form::Csv) => {
                format!("`types: {{{column}: {was}}}` refuses such a value, `nullstr` makes it null")
            }
            _ => "a model that reads it can cast its values".to_owned(),
        };
        let name = subject.name();
        tracing::warn!(
            target: "watershed::guesses",
            "column \"{column}\" of {name} is text now, and was {was}{because}: {help}"
        );
    }
}

/// Returns the first value of a query's answer, if it is a text.
async fn first_text(asking: &Asking<'_>, sql: String) -> Option<String> {
    let rows = asking.rows(sql).await.ok()?.ok()?;
    match rows.into_iter().next()?.into_iter().next()? {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns true if a date format begins with day and month, in either order.
fn is_of_two_readings(format: &str) -> bool {
    let parts = format.split('%').skip(1).filter_map(|part| part.chars().next());
    let first: Vec<char> = parts.take(2).collect();
    [['d', 'm'], ['m', 'd']].iter().any(|order| first == order)
}

/// Returns true if there are several columns, all texts with names made up by the reader.
fn are_made_up(columns: &[(String, String)]) -> bool {
    let is_made_up = |(name, kind): &(String, String)| {
        let number = name.strip_prefix("column").unwrap_or_default();
        ENGINE.is_text_type(kind) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    columns.len() > 1 && columns.iter().all(is_made_up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_with_the_year_first_or_a_name_of_the_month_have_one_reading() {
        for two in ["%d/%m/%Y", "%m-%d-%y", "%d.%m.%Y %H:%M:%S"] {
            assert!(is_of_two_readings(two), "{two}");
        }
        for one in ["%Y-%m-%d", "%d %b %Y", "", "%Y/%m/%d %H:%M"] {
            assert!(!is_of_two_readings(one), "{one}");
        }
    }

    #[test]
    fn columns_that_are_all_texts_under_made_up_names_are_doubtful() {
        let columns = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter()
                .map(|(name, kind)| ((*name).into(), (*kind).into()))
                .collect()
        };
        assert!(are_made_up(&columns(&[
            ("column0", "VARCHAR"),
            ("column1", "VARCHAR")
        ])));
        assert!(!are_made_up(&columns(&[
            ("column0", "VARCHAR"),
            ("column1", "BIGINT")
        ])));
        assert!(!are_made_up(&columns(&[("column0", "VARCHAR")])));
        assert!(!are_made_up(&columns(&[("id", "VARCHAR"), ("name", "VARCHAR")])));
    }
}
