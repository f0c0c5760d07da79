//! Safe rendering of SQL with values from viewers, callers and runs, which become literals and never SQL.
//!
//! Each action that reads one is executed to its value, for which a mark stands in the text. When all branches are taken the
//! text is read once, as the engine would, and each mark becomes what fits its place: within single quotes the escaped text,
//! elsewhere a literal or a list. An argument that is a number or a word stays as it is outside quotes, since authors let
//! callers choose columns and directions; other text is refused there. A value of a run stays as it is there as well if it is
//! a number or a name, since partitions are of tables and columns, and is a literal otherwise. What is missing makes the whole
//! literal NULL in which it stands.

mod place;
mod run;
mod value;
mod viewer;

use std::sync::{Arc, Mutex, PoisonError};

use gotmpl::parse::{CommandNode, Expr, PipeNode};
use gotmpl::{MissingKey, TemplateError, Value};

use super::execute::{data, explain, project_functions};
use super::functions::pure;
use super::scope::{RenderError, Scope};
use super::{Facts, Template, execute::execute as execute_text, values};
use place::Reader;

pub use place::Dialect;
pub(super) use viewer::has_fallback;

/// The character that begins and ends a mark, from the private use area; rejected in texts with marks.
const MARK: char = '\u{F8FF}';
/// The name of the function that writes a trusted value as it is.
const TEXT: &str = "_watershed_text";
/// The name of the main template.
const BODY: &str = "_watershed_rule";
/// The largest number of loop iterations in a rule.
const MAX_RULE_STEPS: u64 = 10_000;
/// The largest number of loop iterations in a model's SQL.
const MAX_STEPS: u64 = 1_000_000;

/// The source of a value, which decides the forms that it may take in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Giver {
    Viewer,
    /// The client that calls an API, with its arguments.
    Caller,
    /// A run, with its partition or state.
    Run,
    /// A run, with a list that is written item by item.
    Items,
}

/// A value that a mark stands for, with its source.
struct Given {
    value: Value,
    giver: Giver,
}

/// The functions that store a value and write a mark: names, sources of the values, and quotes around the mark.
const ASIDE: [(&str, Giver, &str); 5] = [
    (viewer::ATTRIBUTE, Giver::Viewer, ""),
    (viewer::ARGUMENT, Giver::Caller, ""),
    (run::VALUE, Giver::Run, ""),
    (run::QUOTED, Giver::Run, "'"),
    (run::NAMED, Giver::Run, "\""),
];

/// Renders SQL with the viewer and the arguments of `scope`, whose values can't change how the SQL is parsed.
///
/// # Errors
/// When the text is no template, can't be executed, or has an attribute where no value can stand, such as a comment or
/// a name in double quotes.
pub fn render_rule(text: &str, scope: &Scope) -> Result<String, RenderError> {
    if !super::is_template(text) {
        return Ok(text.to_owned());
    }
    if text.contains(MARK) {
        return Err(refused("the rule holds a character of private use"));
    }
    let template = read(text)?;
    for name in Facts::from_template(&template).variables.keys() {
        if !scope
            .variables
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            return Err(refused(&format!("variable \"{name}\" is not set")));
        }
    }
    let marked = viewer::marked(&template, scope);
    let (marked, found) = execute(marked, scope, MissingKey::Invalid, MAX_RULE_STEPS)
        .map_err(|error| refused(&error.to_string()))?;
    Reader::of_rules().place(&marked, &found)
}

/// Renders a model's SQL; the values of its partition and state can't change how the SQL is parsed.
///
/// # Errors
/// When the text is no template, can't be executed, or has such a value where none can stand, as a piece of a word.
pub fn render_sql(text: &str, scope: &Scope, dialect: Dialect) -> Result<String, RenderError> {
    if !super::is_template(text) {
        return Ok(text.to_owned());
    }
    let template = read(text)?;
    let Some(marked) = run::marked(&template) else {
        return execute_text(text, scope);
    };
    if text.contains(MARK) {
        return Err(refused("the text holds a character of private use"));
    }
    let executed = execute(marked, scope, MissingKey::Error, MAX_STEPS);
    let (marked, found) = executed.map_err(|error| explain(text, &error))?;
    Reader::of_models(dialect).place(&marked, &found)
}

/// Returns true if an action of a template yields a value of a run.
#[cfg(test)]
pub(super) fn marks_values_of_runs(template: &Template) -> bool {
    run::marked(template).is_some()
}

fn read(text: &str) -> Result<Template, RenderError> {
    Template::read(text).map_err(|error| RenderError {
        message: error.message,
        hint: None,
        line: error.line,
    })
}

fn refused(message: &str) -> RenderError {
    RenderError {
        message: message.to_owned(),
        hint: None,
        line: 1,
    }
}

/// Executes a template whose actions write marks. Returns the text, and the values by the numbers in the marks.
fn execute(
    template: Template,
    scope: &Scope,
    missing: MissingKey,
    steps: u64,
) -> Result<(String, Vec<Given>), TemplateError> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut functions = project_functions(scope);
    for (name, giver, quote) in ASIDE {
        let kept = Arc::clone(&found);
        let aside = move |arguments: &[Value]| {
            let value = arguments.last().cloned().unwrap_or(Value::Nil);
            Ok(format!("{quote}{}{quote}", put_aside(&kept, value, giver)).into())
        };
        functions.insert(name.to_owned(), Arc::new(aside));
    }
    let kept = Arc::clone(&found);
    let items = move |arguments: &[Value]| match arguments {
        [list @ Value::List(_)] => Ok(put_aside(&kept, list.clone(), Giver::Items).into()),
        _ => Err(TemplateError::Exec(
            "wrong arguments for \"as_sql_list\"".to_owned(),
        )),
    };
    functions.insert(run::ITEMS.to_owned(), Arc::new(items));
    let kept = Arc::clone(&found);
    let joined = move |arguments: &[Value]| match arguments {
        [separator, Value::List(items)] => {
            let marks = items
                .iter()
                .map(|item| put_aside(&kept, item.clone(), Giver::Run));
            let marks: Vec<String> = marks.collect();
            Ok(marks.join(&values::text(separator)).into())
        }
        _ => Err(TemplateError::Exec("wrong arguments for \"join\"".to_owned())),
    };
    functions.insert(run::JOINED.to_owned(), Arc::new(joined));
    functions.insert(TEXT.to_owned(), Arc::new(written));
    let caller = format!("{{{{ template \"{BODY}\" . }}}}");
    let mut executed = gotmpl::Template::new("sql")
        .missing_key(missing)
        .max_range_iters(steps)
        .funcs(pure())
        .funcs(functions)
        .parse(&caller)?;
    executed = executed.add_parse_tree(BODY, template.body);
    for (name, body) in template.defines {
        executed = executed.add_parse_tree(&name, body);
    }
    let text = executed.execute_to_string(&data(scope))?;
    drop(executed);
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((text, std::mem::take(&mut *found)))
}

/// Stores a value and returns the mark that stands for it.
fn put_aside(kept: &Mutex<Vec<Given>>, value: Value, giver: Giver) -> String {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(Given { value, giver });
    format!("{MARK}{}{MARK}", kept.len() - 1)
}

/// Writes a trusted value; rejects one that contains the character of marks.
fn written(arguments: &[Value]) -> Result<Value, TemplateError> {
    match arguments.last() {
        None | Some(Value::Nil) => Err(TemplateError::Exec("a value is not set".to_owned())),
        Some(value) => {
            let text = values::text(value);
            match text.contains(MARK) {
                true => Err(TemplateError::Exec(
                    "a value holds a character of private use".to_owned(),
                )),
                false => Ok(text.into()),
            }
        }
    }
}

/// Returns a call of a function, for the end of a pipeline.
fn call(pipe: &PipeNode, name: &str) -> CommandNode {
    CommandNode {
        pos: pipe.pos,
        args: vec![Expr::Identifier(pipe.pos, name.into())],
    }
}

#[cfg(test)]
mod tests;
