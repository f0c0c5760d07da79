//! A tool's arguments as a call of its path.

use serde_json::{Map, Value, json};
use watershed_api::http::calls::Called;
use watershed_api::http::openapi::LONGEST_WAIT_S;
use watershed_api::http::routes::{Own, Words};
use watershed_api::http::tool_schema::{Argument, MOST_ROWS, Place, USUAL_ROWS, is_of_rows, path_words};
use watershed_api::http::{Does, encoded};
use watershed_api::{Code, Problem};

use super::catalogue::Offered;
use crate::report::hints::nearest;

/// A call of a tool, with what is the tool's own.
#[derive(Debug)]
pub(super) struct Asked {
    /// The call of the path.
    pub(super) called: Called,
    /// The most rows that are returned.
    pub(super) rows: u64,
    /// The first line of a file that is returned, from 1.
    pub(super) from_line: u64,
}

/// Converts a tool's arguments to a call of its path. `instances` are those that the caller may know.
///
/// # Errors
/// `bad-argument`, for an unknown argument with the nearest one, and for one that is missing or beyond its bounds.
pub(super) fn asked(
    offered: &Offered,
    given: &Map<String, Value>,
    instances: &[String],
) -> Result<Asked, Problem> {
    let arguments = &offered.arguments;
    refuse_unknown(arguments, given)?;
    let text = |name: &str| text_of(given, name);
    let rows = number(given, "limit")?.unwrap_or(USUAL_ROWS);
    if is_of_rows(offered.route) && !(1..=MOST_ROWS).contains(&rows) {
        let message = format!("`limit` takes 1 to {MOST_ROWS}, and {rows} is beyond that");
        return Err(Problem::new(Code::BadArgument, message).hint(offered.tool.more));
    }
    let mut called = Called {
        tool: offered.tool.name.to_owned(),
        instance: instance(text("instance")?, instances)?,
        method: offered.route.method.name().to_owned(),
        path: path(offered, given)?,
        ..Called::default()
    };
    let mut words = Map::new();
    for argument in arguments.iter().filter(|it| it.place == Place::Word) {
        if let Some(value) = given.get(&argument.name).filter(|value| !value.is_null()) {
            words.insert(argument.name.clone(), value.clone());
        } else if argument.name == "limit" && is_of_rows(offered.route) {
            words.insert("limit".to_owned(), json!(rows));
        }
    }
    if arguments.iter().any(|it| it.place == Place::Arguments) {
        words = match given.get("arguments") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(words)) => words.clone(),
            Some(_) => return Err(wrong("arguments", "an object")),
        };
    }
    match (&offered.route.does, offered.route.words()) {
        (Does::Own(Own::WriteFile), _) => {
            called.body = text("text")?.unwrap_or_default();
            called
                .headers
                .push(("content-type".to_owned(), "application/octet-stream".to_owned()));
            let absent = ("if-none-match".to_owned(), "*".to_owned());
            called
                .headers
                .push(text("etag")?.map_or(absent, |etag| ("if-match".to_owned(), quoted(etag))));
        }
        (_, Words::Query) => called.query = query(offered, &words)?,
        (_, Words::Body) => {
            called.body = Value::Object(words).to_string();
            called
                .headers
                .push(("content-type".to_owned(), "application/json".to_owned()));
        }
    }
    if matches!(offered.route.does, Does::Own(Own::DeleteFile | Own::RenameFile))
        && let Some(etag) = text("etag")?
    {
        called.headers.push(("if-match".to_owned(), quoted(etag)));
    }
    if matches!(offered.route.does, Does::Starts(_) | Does::Own(Own::Request)) {
        called
            .headers
            .push(("prefer".to_owned(), format!("wait={LONGEST_WAIT_S}")));
    }
    Ok(Asked {
        called,
        rows,
        from_line: number(given, "from_line")?.unwrap_or(1).max(1),
    })
}

/// Returns a version as headers have it: assistants leave quotes within quotes out.
fn quoted(etag: String) -> String {
    match etag.starts_with(['"', '*']) || etag.starts_with("W/") {
        true => etag,
        false => format!("\"{etag}\""),
    }
}

fn refuse_unknown(arguments: &[Argument], given: &Map<String, Value>) -> Result<(), Problem> {
    let known = || arguments.iter().map(|it| it.name.as_str());
    if let Some(name) = given
        .keys()
        .find(|name| !known().any(|known| known == name.as_str()))
    {
        let problem = Problem::new(Code::BadArgument, format!("the tool takes no `{}`", short(name)));
        let list = || {
            known()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(match nearest(name, known()) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!("it takes {}", list())),
        });
    }
    let is_there = |argument: &&Argument| given.get(&argument.name).is_some_and(|value| !value.is_null());
    match arguments
        .iter()
        .filter(|it| it.is_required)
        .find(|it| !is_there(it))
    {
        Some(missing) => Err(Problem::new(
            Code::BadArgument,
            format!("`{}` is missing", missing.name),
        )),
        None => Ok(()),
    }
}

/// Returns a name that a caller chose, cut.
fn short(name: &str) -> &str {
    &name[..name.floor_char_boundary(80)]
}

fn wrong(name: &str, wanted: &str) -> Problem {
    Problem::new(Code::BadArgument, format!("`{name}` takes {wanted}"))
}

fn text_of(given: &Map<String, Value>, name: &str) -> Result<Option<String>, Problem> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(name, "a text")),
    }
}

fn number(given: &Map<String, Value>, name: &str) -> Result<Option<u64>, Problem> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| wrong(name, "a whole number")),
    }
}

fn instance(named: Option<String>, instances: &[String]) -> Result<String, Problem> {
    match (named, instances) {
        (Some(named), _) => Ok(named),
        (None, [one]) => Ok(one.clone()),
        (None, []) => Err(Problem::new(Code::UnknownName, "you have a role on no project")),
        (None, several) => {
            let list = several
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
            Err(
                Problem::new(Code::BadArgument, "`instance` is missing, and there are several")
                    .hint(format!("it is one of {list}")),
            )
        }
    }
}

fn path(offered: &Offered, given: &Map<String, Value>) -> Result<String, Problem> {
    let mut path = offered.route.path.to_owned();
    for name in path_words(offered.route) {
        let word = text_of(given, name)?.unwrap_or_default();
        if word.is_empty() {
            return Err(wrong(name, "a text that is not empty"));
        }
        // A path of a file keeps its slashes, and no other word has any.
        let parts: Vec<String> = word.split('/').map(encoded).collect();
        path = path.replace(&format!("{{*{name}}}"), &parts.join("/"));
        path = path.replace(&format!("{{{name}}}"), &encoded(&word));
    }
    Ok(path)
}

fn query(offered: &Offered, words: &Map<String, Value>) -> Result<String, Problem> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in offered.tool.fixed {
        query.append_pair(name, value);
    }
    for (name, value) in words {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::String(text) => query.append_pair(name, text),
                Value::Bool(_) | Value::Number(_) => query.append_pair(name, &value.to_string()),
                _ => return Err(wrong(name, "a text, a number or a list of these")),
            };
        }
    }
    Ok(query.finish())
}
