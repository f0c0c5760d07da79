//! The answer of a path as a tool's result: the document as it is, within bounds.
//!
//! What is cut says `truncated`, how much there is, and how to ask for less or for the rest.

use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use watershed_api::hint::{Hint, Part};
use watershed_api::http::calls::Answered;
use watershed_api::http::routes::Own;
use watershed_api::http::{Does, ProblemDocument};
use watershed_api::{Problem, hint};

use super::catalogue::{Offered, is_file};
use super::words::Asked;

/// The largest result, in bytes: an assistant's context is small and dear.
pub(super) const LARGEST: usize = 64 << 10;
/// Bytes of the largest result that are left for what says that it was cut.
const ROOM: usize = 2 << 10;
/// The most cuts of one result; each takes at least a third of what is too much.
const MOST_CUTS: usize = 64;

/// Returns the result of a tool that was refused: the problem, by which an assistant can mend its call.
pub(super) fn refused(problem: Problem) -> CallToolResult {
    let document = ProblemDocument::new(problem, "");
    let mut document = serde_json::to_value(document).unwrap_or_default();
    speak_of_tools(&mut document);
    CallToolResult::structured_error(document)
}

/// Operations that hints name, each with the tool that does the same.
const TOOLS: [(&str, &str); 13] = [
    ("explain", "explain"),
    ("history", "history"),
    ("logs", "logs"),
    ("metrics", "query_metrics"),
    ("plan", "plan"),
    ("query", "query_sql"),
    ("reconcile", "reconcile"),
    ("refresh", "refresh"),
    ("retry", "retry"),
    ("run", "run"),
    ("show", "show_rows"),
    ("status", "describe_resource"),
    ("validate", "diagnostics"),
];

/// Puts tools and their arguments in the place of the commands and options that a problem's hint names.
fn speak_of_tools(problem: &mut Value) {
    let Some(hint) = problem["hint"].as_str().map(Hint::from) else {
        return;
    };
    let told = |part: Part<'_>| match part {
        Part::Text(text) => text.to_owned(),
        Part::Option { name: "timeout", .. } => "`timeout_ms`".to_owned(),
        Part::Option { name, .. } => format!("`{}`", name.replace('-', "_")),
        Part::Operation { name, arguments } => {
            let tool = TOOLS.iter().find(|(own, _)| *own == name);
            match (tool, arguments.as_slice()) {
                (None, _) => hint::operation(name, arguments.iter().copied()),
                (Some(_), []) if name == "status" => "`list_resources`".to_owned(),
                (Some((_, tool)), []) => format!("`{tool}`"),
                (Some((_, tool)), given) => format!("`{tool}` of `{}`", given.join(" ")),
            }
        }
    };
    problem["hint"] = hint.parts().into_iter().map(told).collect::<String>().into();
}

/// Returns the document of an answer with what is the tool's own. The second value is true for a problem.
pub(super) fn document(offered: &Offered, asked: &Asked, answered: &Answered) -> (Value, bool) {
    let is_problem = answered.status >= 400;
    if is_problem || !is_file(offered.route) {
        let mut document = serde_json::from_str(&answered.body).unwrap_or(Value::Null);
        if !is_problem && matches!(offered.route.does, Does::Starts(_) | Does::Own(Own::Request)) {
            tell_failures(&mut document);
        }
        if is_problem {
            speak_of_tools(&mut document);
        }
        return (document, is_problem);
    }
    let first = usize::try_from(asked.from_line - 1).unwrap_or(usize::MAX);
    let lines = answered.body.lines().count();
    let text: String = answered.body.split_inclusive('\n').skip(first).collect();
    let path = percent_decoded(asked.called.path.trim_start_matches("/files/"));
    let document = json!({ "path": path, "etag": answered.etag, "text": text, "from_line": asked.from_line, "lines": lines });
    (document, false)
}

fn percent_decoded(path: &str) -> String {
    let as_query = format!("p={}", path.replace('+', "%2B"));
    form_urlencoded::parse(as_query.as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

/// Leaves of a run the resources that did not come out well, those that block others first.
fn tell_failures(request: &mut Value) {
    let Some(Value::Array(resources)) = request
        .get_mut("document")
        .and_then(|run| run.get_mut("resources"))
    else {
        return;
    };
    let is_blocked = |one: &Value| one["blocked_by"].as_array().is_some_and(|by| !by.is_empty());
    resources.retain(|one| !one["error"].is_null() || is_blocked(one));
    resources.sort_by_key(is_blocked);
}

/// Returns a result within the bounds of rows and bytes.
pub(super) fn bounded(
    offered: &Offered,
    asked: &Asked,
    mut document: Value,
    is_problem: bool,
) -> CallToolResult {
    let most_rows = usize::try_from(asked.rows).unwrap_or(usize::MAX);
    let mut cut = None;
    if let Some(Value::Array(rows)) = document.get_mut("rows")
        && rows.len() > most_rows
    {
        cut = Some(("rows".to_owned(), most_rows, rows.len()));
        rows.truncate(most_rows);
    }
    cut = cut.or_else(|| fit(&mut document));
    let is_cut_there = document["truncated"] == true;
    if let Value::Object(keys) = &mut document {
        if let Some((what, shown, of)) = cut {
            keys.insert("truncated".to_owned(), true.into());
            let told = json!({ "what": what, "shown": shown, "of": of, "hint": offered.tool.more });
            keys.insert("cut".to_owned(), told);
        } else if is_cut_there || keys.get("next").is_some_and(Value::is_string) {
            keys.insert("cut".to_owned(), json!({ "hint": offered.tool.more }));
        }
    }
    // Rows within their number may be too large all the same.
    while document.to_string().len() > LARGEST && fit(&mut document).is_some() {}
    match is_problem {
        true => CallToolResult::structured_error(document),
        false => CallToolResult::structured(document),
    }
}

/// Cuts the largest lists and texts until a document fits. Returns what was cut first: its name, what is left and what there was.
fn fit(document: &mut Value) -> Option<(String, usize, usize)> {
    let mut first = None;
    for _ in 0..MOST_CUTS {
        let size = document.to_string().len();
        if size <= LARGEST - ROOM {
            break;
        }
        let cut = cut_largest(document, "document", size + ROOM - LARGEST)?;
        first.get_or_insert(cut);
    }
    first
}

/// Takes at least a third of `surplus` bytes from the largest list or text below a value, if there is one.
fn cut_largest(value: &mut Value, name: &str, surplus: usize) -> Option<(String, usize, usize)> {
    match value {
        Value::String(text) if !text.is_empty() => {
            let of = text.len();
            // An escaped character has up to six bytes.
            let left = text.floor_char_boundary(of.saturating_sub((surplus / 3).max(1)));
            text.truncate(left);
            Some((name.to_owned(), left, of))
        }
        Value::Array(list) if !list.is_empty() => {
            let sizes: Vec<usize> = list.iter().map(|one| one.to_string().len() + 1).collect();
            let (largest, size) = sizes.iter().copied().enumerate().max_by_key(|(_, size)| *size)?;
            if size > sizes.iter().sum::<usize>() / 2 && list[largest].is_object() {
                return cut_largest(&mut list[largest], name, surplus);
            }
            let (of, mut taken) = (list.len(), 0);
            while taken < surplus && !list.is_empty() {
                list.pop();
                taken += sizes[list.len()];
            }
            Some((name.to_owned(), list.len(), of))
        }
        Value::Object(keys) => {
            let (name, largest) = keys.iter_mut().max_by_key(|(_, value)| value.to_string().len())?;
            cut_largest(largest, &name.clone(), surplus)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api41_hints_name_tools_and_not_commands() {
        for (hint, told) in [
            (
                "`watershed status metrics_view/sales` says what is wrong with it",
                "`describe_resource` of `metrics_view/sales` says what is wrong with it",
            ),
            (
                "`watershed status` lists the resources",
                "`list_resources` lists the resources",
            ),
            (
                "`--timeout D` gives it more time",
                "`timeout_ms` gives it more time",
            ),
            (
                "`--as-of DAY`, or `watershed doctor`",
                "`as_of`, or `watershed doctor`",
            ),
            ("did you mean `sales`?", "did you mean `sales`?"),
        ] {
            let mut problem = json!({ "hint": hint });
            speak_of_tools(&mut problem);
            assert_eq!(problem["hint"], told);
        }
    }

    #[test]
    fn s_api41_what_is_too_large_is_cut_until_it_fits_and_says_how_much_there_is() {
        let rows: Vec<Value> = (0..5_000)
            .map(|row| json!([row, "a text of some length"]))
            .collect();
        let texts = json!({ "text": "\u{1}ü".repeat(100_000) });
        let nested =
            json!({ "document": { "resources": [{ "error": { "message": "x".repeat(200_000) } }] } });
        for mut document in [json!({ "rows": rows }), texts, nested] {
            let (_, shown, of) = fit(&mut document).unwrap();
            assert!(shown < of, "{shown} {of}");
            assert!(document.to_string().len() <= LARGEST);
        }
        let mut small = json!({ "rows": [[1]] });
        assert_eq!(fit(&mut small), None);
    }
}
