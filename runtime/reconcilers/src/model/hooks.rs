//! The SQL hooks that run before and after a model's builds, and the row order of its table.

use std::sync::Arc;

use watershed_compilers::{Dialect, Scope, render_sql};
use watershed_core::{Error, SourcePosition};
use watershed_drivers::olap::{HookError, Hooks, SqlError, sole_statement};
use watershed_proto::{ModelSpec, SqlSource, Value, value::Kind};

use super::failure;
use crate::places::{self, source as place};

/// The error code for a failed statement before a build.
const BEFORE_CODE: &str = "pre-exec-failed";
/// The error code for a failed statement after a build.
pub(super) const AFTER_CODE: &str = "post-exec-failed";
/// The error code for an invalid row order.
const ORDER_CODE: &str = "bad-order";

/// Returns the statements that run before and after a build, with templates executed.
///
/// # Errors
/// When a template can't be executed.
pub(super) fn hooks(spec: &ModelSpec, scope: &Scope, paths: &[Arc<str>]) -> Result<Hooks, Error> {
    let rendered = |source: &SqlSource| {
        if !source.templated {
            return Ok(source.text.clone());
        }
        render_sql(&source.text, scope, Dialect::Engine).map_err(|error| Error {
            place: place_of(source, paths, &source.text, None),
            ..failure::from_render(&error)
        })
    };
    Ok(Hooks {
        before: before(spec)
            .map(|(_, source)| rendered(source))
            .collect::<Result<_, _>>()?,
        after: spec.post_exec.iter().map(rendered).collect::<Result<_, _>>()?,
    })
}

/// Returns the statements that run before a build, each with its key.
fn before(spec: &ModelSpec) -> impl Iterator<Item = (&'static str, &SqlSource)> {
    let init = spec.init_queries.iter().map(|source| ("init_queries", source));
    init.chain(spec.pre_exec.iter().map(|source| ("pre_exec", source)))
}

/// Returns the error for a failed statement before a build.
pub(super) fn before_failed(spec: &ModelSpec, paths: &[Arc<str>], hooks: &Hooks, hook: &HookError) -> Error {
    let (key, source) = before(spec).nth(hook.text).unzip();
    let sent = hooks.before.get(hook.text).map_or("", String::as_str);
    let message = format!("`{}` failed: {}", key.unwrap_or("pre_exec"), hook.error.message);
    Error {
        message: message.into(),
        ..hook_failed(BEFORE_CODE, source, paths, sent, &hook.error)
    }
}

/// Returns the error for a failed statement after a successful build.
pub(super) fn after_failed(spec: &ModelSpec, paths: &[Arc<str>], hooks: &Hooks, hook: &HookError) -> Error {
    let source = spec.post_exec.get(hook.text);
    let sent = hooks.after.get(hook.text).map_or("", String::as_str);
    let error = hook_failed(AFTER_CODE, source, paths, sent, &hook.error);
    let stays = "the new rows are published and stay; the next run builds again";
    let hint = match &error.hint {
        Some(hint) => format!("{hint} ({stays})"),
        None => stays.to_owned(),
    };
    Error {
        message: format!("`post_exec` failed: {}", hook.error.message).into(),
        hint: Some(hint.into()),
        ..error
    }
}

/// Adds the error of a statement after a build to the error of the build.
pub(super) fn joined(build: Error, hook: &HookError) -> Error {
    Error {
        message: format!(
            "{}; and `post_exec` failed: {}",
            build.message, hook.error.message
        )
        .into(),
        ..build
    }
}

fn hook_failed(
    code: &str,
    source: Option<&SqlSource>,
    paths: &[Arc<str>],
    sent: &str,
    error: &SqlError,
) -> Error {
    let known = failure::from_sql(error);
    Error {
        place: source.and_then(|source| place_of(source, paths, sent, error.offset)),
        hint: known.hint,
        details: known.details,
        ..Error::permanent(code, error.message.as_str())
    }
}

/// Returns the position of an error in a hook, in the file's present path; none for hooks from the manifest's defaults.
fn place_of(
    source: &SqlSource,
    paths: &[Arc<str>],
    sent: &str,
    offset: Option<usize>,
) -> Option<SourcePosition> {
    if source.path.is_empty() {
        return None;
    }
    let extension = |path: &str| path.rsplit_once('.').map(|(_, extension)| extension.to_owned());
    let same = paths.iter().find(|path| ***path == *source.path);
    let alike = || {
        paths
            .iter()
            .find(|path| extension(path) == extension(&source.path))
    };
    let path = same.or_else(alike).map_or(source.path.as_str(), AsRef::as_ref);
    Some(place::in_file(source, path, sent, offset))
}

/// Returns the order in which rows are written to a table, if one is set.
///
/// # Errors
/// When it is no list of expressions.
pub(super) fn order_by(spec: &ModelSpec, scope: &Scope, paths: &[Arc<str>]) -> Result<Option<String>, Error> {
    let said = spec
        .output_properties
        .as_ref()
        .and_then(|all| all.get("order_by"));
    let text = |value: &Value| match &value.kind {
        Some(Kind::String(text)) => Some(text.clone()),
        Some(Kind::Int(column)) => Some(column.to_string()),
        _ => None,
    };
    let texts: Vec<String> = match said {
        None => return Ok(None),
        Some(said) => match said.as_list() {
            Some(list) => list.iter().filter_map(text).collect(),
            None => text(said).into_iter().collect(),
        },
    };
    let text = texts.join(", ");
    if text.trim().is_empty() {
        return Ok(None);
    }
    let text = render_sql(&text, scope, Dialect::Engine).map_err(|error| Error {
        place: Some(places::from_spot(paths, spec.order_by_at.as_ref())),
        ..failure::from_render(&error)
    })?;
    match sole_statement(&text) {
        Ok(order) => Ok(Some(order.to_owned())),
        Err(error) => Err(order_failed(
            spec,
            paths,
            &SqlError {
                message: error.to_string(),
                ..SqlError::default()
            },
        )),
    }
}

/// Returns the error for rows that can't be ordered as set.
pub(super) fn order_failed(spec: &ModelSpec, paths: &[Arc<str>], error: &SqlError) -> Error {
    Error {
        place: Some(places::from_spot(paths, spec.order_by_at.as_ref())),
        hint: error.hint.as_deref().map(Arc::from),
        ..Error::permanent(
            ORDER_CODE,
            format!(
                "the rows can't be ordered by `output.order_by`: {}",
                error.message
            ),
        )
    }
}
