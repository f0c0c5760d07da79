//! Detection of CSV options from the starts of all files, where the engine would guess from a sample.
//!
//! The engine guesses from the first rows. Where none of these is quoted it takes that nothing is, and quotes further down
//! become a part of values. So where they tell nothing the usual quote is said, and rows that are written otherwise are refused.

use watershed_compilers::{
    Scope,
    sql::{is_pattern, literal_path},
};
use watershed_core::{Error, SourcePosition};
use watershed_drivers::data_file::{self, Beginning, Form, SAMPLE_ROWS};
use watershed_drivers::olap::{Guess, Value as Cell};
use watershed_proto::{ModelSpec, Value};

use super::subject::Subject;
use crate::{
    model::{
        contents::argument,
        failure,
        guesses::{self, DELIMITERS, NO_QUOTE},
        inputs,
        plan::is_list,
        source, statement,
    },
    places,
};

/// Options by which a source sets its quoting.
const SAYS_QUOTES: [&str; 2] = ["quote", "auto_detect"];

/// The largest number of files whose start is read; the engine itself reads all only if columns are united.
const MOST_BEGINNINGS: usize = 1_000;

/// Returns the spec of a CSV source with options that its files need, and that of a source of workbooks with the name of
/// each; other specs are unchanged. `files` are the known paths and addresses that the source reads.
pub(super) async fn with_dialect(
    subject: Subject<'_>,
    mut spec: ModelSpec,
    scope: &Scope,
    files: &[&str],
) -> Result<ModelSpec, Error> {
    if let Some(paths) = source::workbooks(&spec, scope) {
        name_workbooks(subject, &mut spec, paths, files).await?;
        return Ok(spec);
    }
    let says = |option: &str| source::option(&spec, option).is_some();
    if spec.sql.is_some()
        || SAYS_QUOTES.into_iter().any(says)
        || source::form(&spec, scope) != Some(Form::Csv)
    {
        return Ok(spec);
    }
    let beginning = match beginning(subject, &spec, scope, files).await? {
        Beginning::Unknown => sniffed(subject, &spec, scope, files).await?,
        beginning => beginning,
    };
    guesses::tell(&mut spec, beginning);
    Ok(spec)
}

/// Returns the place where an unsupported encoding is set, in the resource's file or in the statement; none for other
/// errors.
pub(super) fn place_of_encoding(subject: Subject<'_>, error: &Error, sent: &str) -> Option<SourcePosition> {
    if !failure::is_of_encoding(error) {
        return None;
    }
    let spec = subject.spec();
    match (&spec.encoding_at, &spec.sql) {
        (Some(spot), _) => Some(places::from_spot(subject.paths(), Some(spot))),
        (None, Some(_)) => {
            let at = argument(sent, "encoding")?;
            statement::place_of(spec, subject.paths(), sent, Some(at))
        }
        (None, None) => None,
    }
}

/// Puts the names of workbooks in the place of patterns, of which the engine would read the first match alone.
async fn name_workbooks(
    subject: Subject<'_>,
    spec: &mut ModelSpec,
    paths: Vec<String>,
    files: &[&str],
) -> Result<(), Error> {
    if !paths.iter().any(|path| is_pattern(path)) {
        return Ok(());
    }
    let (far, near): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.contains("://"));
    let sandbox = subject.outputs().sandbox().cloned();
    let found = inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
        inputs::look_within(root, sandbox.as_ref(), &near)
    })
    .await?;
    let objects = files
        .iter()
        .filter(|file| !far.is_empty() && file.contains("://"));
    let found: Vec<String> = found
        .into_iter()
        .map(|file| literal_path(&file.path).into_owned())
        .collect();
    source::put_paths(spec, found.iter().map(String::as_str).chain(objects.copied()));
    Ok(())
}

/// Inspects the starts of local files.
async fn beginning(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    files: &[&str],
) -> Result<Beginning, Error> {
    let local = files
        .iter()
        .filter(|path| !is_list(path) && !path.contains("://"))
        .map(|path| (*path).to_owned());
    let (mut paths, patterns) = (local.collect::<Vec<_>>(), source::local_paths(spec, scope));
    if patterns.len() > 1 {
        // Of several the engine takes the one that is said first.
        paths.clear();
    }
    if paths.is_empty() && patterns.is_empty() {
        return Ok(Beginning::Unknown);
    }
    let united = source::option(spec, "union_by_name").and_then(Value::as_bool) == Some(true);
    let most = if united { MOST_BEGINNINGS } else { 1 };
    let rows = match source::option(spec, "sample_size").map(Value::as_int) {
        Some(Some(rows)) => u64::try_from(rows).unwrap_or(u64::MAX),
        _ => SAMPLE_ROWS,
    };
    let delimiter = ["delim", "sep", "delimiter"]
        .into_iter()
        .find_map(|option| source::option(spec, option)?.as_str());
    let delimiters = delimiter.map_or(DELIMITERS, str::as_bytes).to_vec();
    let sandbox = subject.outputs().sandbox().cloned();
    inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
        if paths.is_empty() {
            let found = inputs::look_within(root, sandbox.as_ref(), &patterns)?;
            paths.extend(found.into_iter().map(|file| file.path));
        }
        let mut found = Beginning::Plain;
        for path in paths.iter().take(most) {
            // One that can't be read is told by the engine.
            let looked = data_file::beginning(&root.join(path), rows, &delimiters);
            found = looked.unwrap_or(Beginning::Unknown);
            if found != Beginning::Plain {
                break;
            }
        }
        Ok(found)
    })
    .await
}

/// Has the engine inspect the start of a file that can't be read locally.
async fn sniffed(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    files: &[&str],
) -> Result<Beginning, Error> {
    let Some(first) = files.iter().find(|path| !is_list(path)) else {
        return Ok(Beginning::Unknown);
    };
    let Ok(sql) = source::sniff(spec, scope, first, &[Guess::Quote]) else {
        return Ok(Beginning::Unknown);
    };
    let asking = subject.asking();
    let rows = asking.rows(sql).await;
    if subject.context.is_cancelled() {
        return Ok(Beginning::Unknown);
    }
    // What can't be looked at now is read by the build, or told by it.
    let rows = rows.ok().and_then(Result::ok).unwrap_or_default();
    Ok(match rows.first().and_then(|row| row.first()) {
        Some(Cell::Text(quote)) if quote == NO_QUOTE => Beginning::Plain,
        _ => Beginning::Quoted,
    })
}
