//! Execution of templates for a run.

use std::{collections::BTreeMap, sync::Arc};

use gotmpl::{MissingKey, TemplateError, Value};
use watershed_dialect::{ENGINE, Quoting as _};
use watershed_proto::value::Kind;

use super::{
    Facts, Template, functions,
    scope::{RenderError, Scope},
};
use crate::text::{Text, narrow};

/// The largest number of loop iterations in one template.
const MAX_STEPS: u64 = 1_000_000;

/// Executes a template with the values of a scope.
///
/// # Errors
/// When it reads what is not there, or calls a function with the wrong arguments.
pub(crate) fn execute(text: &str, scope: &Scope) -> Result<String, RenderError> {
    let template = gotmpl::Template::new("sql")
        .missing_key(MissingKey::Error)
        .max_range_iters(MAX_STEPS)
        .funcs(functions::pure())
        .funcs(project_functions(scope))
        .parse(text);
    template
        .and_then(|template| template.execute_to_string(&data(scope)))
        .map_err(|error| explain(text, &error))
}

/// Returns an error as a [`RenderError`], at the line of a missing value.
pub(super) fn explain(text: &str, error: &TemplateError) -> RenderError {
    let TemplateError::MissingKey { key } = error else {
        let line = match error {
            TemplateError::Parse { line, .. } | TemplateError::Lex { line, .. } => narrow(*line),
            _ => 1,
        };
        return RenderError {
            message: error.to_string(),
            hint: None,
            line,
        };
    };
    let facts = Template::read(text)
        .map(|template| Facts::from_template(&template))
        .unwrap_or_default();
    let named = facts
        .variables
        .iter()
        .find(|(name, _)| name.split('.').any(|part| part == key));
    match named {
        Some((name, offset)) => RenderError {
            message: format!("variable \"{name}\" is not set"),
            hint: Some("set it in `.env`, in the manifest under `env:`, or with `--env NAME=VALUE`".into()),
            line: Text::new(text).position(*offset).0,
        },
        None => RenderError {
            message: format!("the template uses \"{key}\", which is not defined"),
            hint: [".partition", ".split"]
                .iter()
                .any(|name| text.contains(name))
                .then(|| {
                    "the values of a partition are those that its list yields, and are known in a run alone"
                        .into()
                }),
            line: 1,
        },
    }
}

pub(super) fn project_functions(scope: &Scope) -> gotmpl::FuncMap {
    let mut functions = gotmpl::FuncMap::new();
    let mut add = |name: &str, function: gotmpl::ValueFunc| {
        functions.insert(name.to_owned(), function);
    };
    let environment = scope.environment.clone();
    let incremental = scope.incremental;
    let variables = scope.variables.clone();
    add("configure", Arc::new(|_| Ok("".into())));
    add("dependency", Arc::new(|_| Ok("".into())));
    add(
        "ref",
        Arc::new(|arguments| Ok(ENGINE.name(&last_text("ref", arguments)?).into())),
    );
    add(
        "lookup",
        Arc::new(|arguments| {
            let name = Value::from(last_text("lookup", arguments)?);
            let meta = BTreeMap::from([("name".to_owned(), name)]);
            Ok(BTreeMap::from([("meta".to_owned(), Value::from(meta))]).into())
        }),
    );
    add(
        "env",
        Arc::new(move |arguments| match arguments {
            [Value::String(name), default] => variable(&variables, name).or_else(|_| Ok(default.clone())),
            _ => variable(&variables, &last_text("env", arguments)?),
        }),
    );
    let in_dev = environment == "dev";
    add("dev", Arc::new(move |_| Ok(Value::Bool(in_dev))));
    let in_prod = environment == "prod";
    add("prod", Arc::new(move |_| Ok(Value::Bool(in_prod))));
    add("incremental", Arc::new(move |_| Ok(Value::Bool(incremental))));
    functions
}

fn last_text(function: &str, arguments: &[Value]) -> Result<String, TemplateError> {
    match arguments.last() {
        Some(Value::String(text)) if arguments.len() <= 2 => Ok(text.to_string()),
        _ => Err(TemplateError::Exec(format!(
            "\"{function}\" takes a name, or a kind and a name"
        ))),
    }
}

fn variable(variables: &BTreeMap<String, String>, name: &str) -> Result<Value, TemplateError> {
    let exact = variables.get(name);
    let found = exact.or_else(|| {
        variables
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    });
    match found {
        Some(value) => Ok(value.as_str().into()),
        None => Err(TemplateError::MissingKey { key: name.to_owned() }),
    }
}

pub(super) fn data(scope: &Scope) -> Value {
    let variables = variables(&scope.variables);
    let mut state = converted(&scope.state);
    state.insert("incremental".to_owned(), Value::Bool(scope.incremental));
    let own = BTreeMap::from([
        ("kind".to_owned(), Value::from("model")),
        ("name".to_owned(), scope.name.as_str().into()),
        ("state".to_owned(), state.clone().into()),
    ]);
    let known = converted(&scope.data);
    let partition = converted(&scope.partition);
    let user = converted(&scope.user);
    let args = converted(&scope.args);
    BTreeMap::from([
        ("environment".to_owned(), Value::from(scope.environment.as_str())),
        ("env".to_owned(), variables.clone()),
        ("vars".to_owned(), variables),
        ("state".to_owned(), state.into()),
        ("self".to_owned(), own.into()),
        ("partition".to_owned(), partition.clone().into()),
        ("split".to_owned(), partition.into()),
        (
            "version".to_owned(),
            scope
                .version
                .map_or(Value::Nil, |version| Value::Int(i64::from(version))),
        ),
        ("user".to_owned(), user.into()),
        ("args".to_owned(), args.into()),
        ("export".to_owned(), Value::Bool(scope.export)),
        ("data".to_owned(), known.into()),
        ("table".to_owned(), scope.table.as_str().into()),
    ])
    .into()
}

/// A node in the tree of dotted variable names.
#[derive(Default)]
struct Names {
    value: Option<String>,
    below: BTreeMap<String, Names>,
}

impl Names {
    fn value(&self) -> Value {
        match (&self.value, self.below.is_empty()) {
            (Some(text), true) => text.as_str().into(),
            _ => Value::from(
                self.below
                    .iter()
                    .map(|(key, below)| (key.clone(), below.value()))
                    .collect::<BTreeMap<_, _>>(),
            ),
        }
    }
}

/// Returns the variables as a template value, by full names and as nested mappings of dotted names.
fn variables(variables: &BTreeMap<String, String>) -> Value {
    let mut names = Names::default();
    // Names that begin with a dot are the compiler's own.
    let variables = || variables.iter().filter(|(name, _)| !name.starts_with('.'));
    for (name, value) in variables() {
        let leaf = name.split('.').fold(&mut names, |names, part| {
            names.below.entry(part.to_owned()).or_default()
        });
        leaf.value = Some(value.clone());
    }
    let mut all: BTreeMap<String, Value> = names
        .below
        .iter()
        .map(|(key, below)| (key.clone(), below.value()))
        .collect();
    for (name, value) in variables() {
        if name.contains('.') || !matches!(all.get(name), Some(Value::Map(_))) {
            all.insert(name.clone(), value.as_str().into());
        }
    }
    all.into()
}

fn converted(map: &BTreeMap<String, watershed_proto::Value>) -> BTreeMap<String, Value> {
    let entries = map.iter();
    entries
        .map(|(key, value)| (key.clone(), convert(value)))
        .collect()
}

fn convert(value: &watershed_proto::Value) -> Value {
    match &value.kind {
        None => Value::Nil,
        Some(Kind::Bool(value)) => Value::Bool(*value),
        Some(Kind::Int(value)) => Value::Int(*value),
        Some(Kind::Float(value)) => Value::Float(*value),
        Some(Kind::String(value)) => value.as_str().into(),
        Some(Kind::List(list)) => list.values.iter().map(convert).collect::<Vec<_>>().into(),
        Some(Kind::Map(map)) => Value::from(
            map.fields
                .iter()
                .map(|(key, value)| (key.clone(), convert(value)))
                .collect::<BTreeMap<_, _>>(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let variables = [("limit", "10"), ("a.b", "deep"), ("City", "Bergen")];
        Scope {
            environment: "dev".into(),
            variables: variables
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            name: "own".into(),
            state: BTreeMap::from([("max".to_owned(), watershed_proto::Value::from(7_i64))]),
            ..Scope::default()
        }
    }

    fn rendered(text: &str) -> String {
        execute(text, &scope()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn templates_see_the_project_and_the_run() {
        assert_eq!(
            rendered("{{ ref \"a\"\"b\" }}".replace("\"\"", "\\\"").as_str()),
            "\"a\"\"b\""
        );
        assert_eq!(
            rendered("{{ .env.limit }} {{ .vars.a.b }} {{ env \"city\" }}"),
            "10 deep Bergen"
        );
        assert_eq!(
            rendered("{{ if dev }}d{{ end }}{{ if prod }}p{{ end }}{{ .environment }}"),
            "ddev"
        );
        assert_eq!(
            rendered("{{ if incremental }}i{{ else }}f{{ end }} {{ .state.max }} {{ .self.name }}"),
            "f 7 own"
        );
        assert_eq!(rendered("{{ list 1 \"it's\" | as_sql_list }}"), "1, 'it''s'");
        assert_eq!(rendered("{{ .env.limit | default \"5\" | int | add 1 }}"), "11");
        assert_eq!(rendered("{{ configure \"a\" \"b\" }}x"), "x");
    }

    #[test]
    fn what_is_not_set_is_an_error_with_a_hint() {
        let error = execute("{{ .env.nope }}", &scope()).expect_err("not set");
        assert!(
            error.message.contains("nope") && error.hint.is_some(),
            "{error:?}"
        );
    }
}
