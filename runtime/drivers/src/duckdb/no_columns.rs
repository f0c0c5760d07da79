//! Detection of files without content, for which the engine's readers invent a column without values.

use watershed_dialect::{DuckDb, Quoting as _};

use super::schema::count;
use super::transaction::Work;
use crate::data_file::Form;
use crate::olap::BuildError;

/// Refuses the rows that a reader made from a file without content. `output` is a quoted name of an object that holds
/// only the reader's rows.
///
/// # Errors
/// [`BuildError::NoColumns`].
pub(super) fn refuse(
    work: &Work<'_>,
    output: &str,
    form: Form,
    columns: &[(String, String)],
) -> Result<(), BuildError> {
    let Some(value) = made_up(form, columns) else {
        return Ok(());
    };
    let valued = format!("SELECT count(*) FROM (SELECT 1 FROM {output} WHERE {value} LIMIT 1)");
    match count(&work.run(&valued, &[])?) {
        Some(0) => Err(BuildError::NoColumns),
        _ => Ok(()),
    }
}

/// Returns the condition that finds rows with a value, if the reader invented all columns; none if the file names its
/// own. Columns about the file's path come after them.
fn made_up(form: Form, columns: &[(String, String)]) -> Option<String> {
    let own: Vec<&(String, String)> = columns
        .iter()
        .take_while(|(name, _)| is_named_by_reader(form, name))
        .collect();
    let is_text = |kind: &str| match form {
        Form::Csv => kind == "VARCHAR",
        _ => ["JSON", "MAP(VARCHAR, JSON)"].contains(&kind),
    };
    if own.is_empty() || !own.iter().all(|(_, kind)| is_text(kind)) {
        return None;
    }
    let has_value = |(name, _): &&(String, String)| {
        let name = DuckDb.name(name);
        match form {
            Form::Csv => format!("regexp_matches({name}, '[^\\s\\x00,;|\"'']')"),
            _ => format!("coalesce({name}::VARCHAR, 'null') NOT IN ('{{}}', '[]', 'null')"),
        }
    };
    Some(own.iter().map(has_value).collect::<Vec<_>>().join(" OR "))
}

fn is_named_by_reader(form: Form, name: &str) -> bool {
    match form {
        Form::Csv => {
            let number = name.strip_prefix("column").unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        Form::Json => name == "json",
        Form::Binary => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_suspect(form: Form, columns: &[(&str, &str)]) -> bool {
        let columns = columns
            .iter()
            .map(|(name, kind)| ((*name).into(), (*kind).into()));
        made_up(form, &columns.collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn columns_that_only_the_reader_named_are_suspect() {
        assert!(is_suspect(Form::Csv, &[("column0", "VARCHAR")]));
        assert!(is_suspect(
            Form::Csv,
            &[
                ("column0", "VARCHAR"),
                ("column1", "VARCHAR"),
                ("filename", "VARCHAR")
            ]
        ));
        assert!(is_suspect(Form::Json, &[("json", "JSON"), ("day", "DATE")]));
        for (form, columns) in [
            (Form::Csv, [("id", "BIGINT"), ("column0", "VARCHAR")].as_slice()),
            (Form::Csv, &[("column0", "BIGINT")]),
            (Form::Csv, &[("column0", "VARCHAR"), ("column1", "BIGINT")]),
            (Form::Csv, &[("columns", "VARCHAR")]),
            (Form::Json, &[("json", "BIGINT")]),
            (Form::Json, &[("id", "JSON")]),
            (Form::Binary, &[("column0", "VARCHAR")]),
        ] {
            assert!(!is_suspect(form, columns), "{form:?} {columns:?}");
        }
    }
}
