//! Functions that templates can call, besides the built-in ones.
//!
//! Project functions are bound to a run when it is rendered. The others are those of Sprig,
//! but for its access to the environment of the process.

use std::{collections::BTreeMap, sync::Arc};

use gotmpl::{FuncMap, TemplateError, Value};

use watershed_dialect::{ENGINE, Quoting as _};

use super::sprig;
use super::values::{Function, integer, text};

/// The functions built into the template language.
const BUILTIN: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print",
    "printf", "println", "slice", "urlquery",
];

/// Functions specific to projects.
const PROJECT: [&str; 9] = [
    "configure",
    "dependency",
    "ref",
    "lookup",
    "env",
    "dev",
    "prod",
    "incremental",
    "as_sql_list",
];

/// Returns true if templates have a function of this name, including functions that are refused with a reason.
pub(super) fn is_known(name: &str) -> bool {
    BUILTIN.contains(&name)
        || PROJECT.contains(&name)
        || SPRIG
            .iter()
            .chain(sprig::FUNCTIONS)
            .any(|(known, _)| *known == name)
        || sprig::REFUSED.contains(&name)
}

/// Returns the functions that don't depend on the project.
pub(super) fn pure() -> FuncMap {
    let mut functions = FuncMap::new();
    for name in sprig::REFUSED {
        let refuse = move |_: &[Value]| Err(TemplateError::Exec(format!("\"{name}\" can't be called here")));
        functions.insert((*name).to_owned(), Arc::new(refuse));
    }
    for (name, function) in SPRIG.iter().chain(sprig::FUNCTIONS) {
        functions.insert(
            (*name).to_owned(),
            Arc::new(move |arguments: &[Value]| function(arguments).ok_or_else(|| wrong_arguments(name))),
        );
    }
    functions.insert("as_sql_list".to_owned(), Arc::new(as_sql_list));
    functions
}

fn wrong_arguments(name: &str) -> TemplateError {
    TemplateError::Exec(format!("wrong arguments for \"{name}\""))
}

const SPRIG: &[(&str, Function)] = &[
    ("default", |a| match a {
        [fallback, value] => Some(if value.is_truthy() {
            value.clone()
        } else {
            fallback.clone()
        }),
        [fallback] => Some(fallback.clone()),
        _ => None,
    }),
    ("coalesce", |a| {
        Some(
            a.iter()
                .find(|value| value.is_truthy())
                .cloned()
                .unwrap_or(Value::Nil),
        )
    }),
    ("empty", |a| Some(Value::Bool(!a.first()?.is_truthy()))),
    ("ternary", |a| match a {
        [yes, no, test] => Some(if test.is_truthy() { yes.clone() } else { no.clone() }),
        _ => None,
    }),
    ("upper", |a| Some(text(a.first()?).to_uppercase().into())),
    ("lower", |a| Some(text(a.first()?).to_lowercase().into())),
    ("title", |a| Some(title(&text(a.first()?)).into())),
    ("trim", |a| Some(text(a.first()?).trim().into())),
    ("trimPrefix", |a| {
        two(a, |prefix, value| {
            value.strip_prefix(prefix).unwrap_or(value).into()
        })
    }),
    ("trimSuffix", |a| {
        two(a, |suffix, value| {
            value.strip_suffix(suffix).unwrap_or(value).into()
        })
    }),
    ("trimAll", |a| {
        two(a, |set, value| value.trim_matches(|c| set.contains(c)).into())
    }),
    ("hasPrefix", |a| {
        two(a, |prefix, value| Value::Bool(value.starts_with(prefix)))
    }),
    ("hasSuffix", |a| {
        two(a, |suffix, value| Value::Bool(value.ends_with(suffix)))
    }),
    ("contains", |a| {
        two(a, |part, value| Value::Bool(value.contains(part)))
    }),
    ("replace", |a| match a {
        [from, to, value] => Some(text(value).replace(&text(from), &text(to)).into()),
        _ => None,
    }),
    ("quote", |a| Some(joined(a, |value| format!("{:?}", text(value))))),
    ("squote", |a| {
        Some(joined(a, |value| format!("'{}'", text(value))))
    }),
    ("cat", |a| Some(joined(a, text))),
    ("nospace", |a| {
        Some(text(a.first()?).split_whitespace().collect::<String>().into())
    }),
    ("join", |a| match a {
        [separator, Value::List(items)] => Some(
            items
                .iter()
                .map(text)
                .collect::<Vec<_>>()
                .join(&text(separator))
                .into(),
        ),
        _ => None,
    }),
    ("splitList", |a| {
        two(a, |separator, value| {
            value
                .split(separator)
                .map(|part| Value::from(part.to_owned()))
                .collect::<Vec<_>>()
                .into()
        })
    }),
    ("list", |a| Some(a.to_vec().into())),
    ("first", |a| match a {
        [Value::List(items)] => Some(items.first().cloned().unwrap_or(Value::Nil)),
        _ => None,
    }),
    ("last", |a| match a {
        [Value::List(items)] => Some(items.last().cloned().unwrap_or(Value::Nil)),
        _ => None,
    }),
    ("has", |a| match a {
        [wanted, Value::List(items)] => {
            Some(Value::Bool(items.iter().any(|item| text(item) == text(wanted))))
        }
        _ => None,
    }),
    ("dict", |a| {
        let pairs = a
            .chunks(2)
            .map(|pair| (text(&pair[0]), pair.get(1).cloned().unwrap_or(Value::Nil)));
        Some(pairs.collect::<BTreeMap<String, Value>>().into())
    }),
    ("get", |a| match a {
        [Value::Map(map), key] => Some(map.get(text(key).as_str()).cloned().unwrap_or_else(|| "".into())),
        _ => None,
    }),
    ("hasKey", |a| match a {
        [Value::Map(map), key] => Some(Value::Bool(map.contains_key(text(key).as_str()))),
        _ => None,
    }),
    ("add", |a| integers(a, i64::checked_add)),
    ("sub", |a| integers(a, i64::checked_sub)),
    ("mul", |a| integers(a, i64::checked_mul)),
    ("div", |a| integers(a, i64::checked_div)),
    ("mod", |a| integers(a, i64::checked_rem)),
    ("max", |a| integers(a, |a, b| Some(a.max(b)))),
    ("min", |a| integers(a, |a, b| Some(a.min(b)))),
    ("int", |a| Some(Value::Int(integer(a.first()?).unwrap_or(0)))),
    ("int64", |a| Some(Value::Int(integer(a.first()?).unwrap_or(0)))),
    ("float64", |a| {
        Some(Value::Float(text(a.first()?).parse().unwrap_or(0.0)))
    }),
    ("toString", |a| Some(text(a.first()?).into())),
    ("fail", |_| None),
];

fn title(text: &str) -> String {
    let mut before = ' ';
    let raised = text.chars().flat_map(|c| {
        let starts = before.is_whitespace();
        before = c;
        if starts {
            c.to_uppercase().collect::<Vec<_>>()
        } else {
            vec![c]
        }
    });
    raised.collect()
}

fn two(arguments: &[Value], function: impl Fn(&str, &str) -> Value) -> Option<Value> {
    match arguments {
        [first, second] => Some(function(&text(first), &text(second))),
        _ => None,
    }
}

fn joined(arguments: &[Value], piece: impl Fn(&Value) -> String) -> Value {
    arguments.iter().map(piece).collect::<Vec<_>>().join(" ").into()
}

fn integers(arguments: &[Value], step: impl Fn(i64, i64) -> Option<i64>) -> Option<Value> {
    let mut numbers = arguments.iter().map(integer);
    let first = numbers.next()??;
    numbers
        .try_fold(first, |sum, next| step(sum, next?))
        .map(Value::Int)
}

fn as_sql_list(arguments: &[Value]) -> Result<Value, TemplateError> {
    let [Value::List(items)] = arguments else {
        return Err(wrong_arguments("as_sql_list"));
    };
    let literals = items.iter().map(|item| match item {
        Value::Int(_) | Value::Uint(_) | Value::Float(_) | Value::Bool(_) => item.to_string(),
        Value::Nil => "NULL".to_owned(),
        other => ENGINE.text(&text(other)),
    });
    Ok(literals.collect::<Vec<_>>().join(", ").into())
}
