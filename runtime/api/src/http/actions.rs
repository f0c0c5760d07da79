//! Operations and HTTP calls that hints propose, for programs.

use serde_json::{Map, Value, json};

use super::at::encoded;
use super::routes::{Does, Method, ROUTES, Route};
use crate::documents::{Action, ActionCall, ResourceName};
use crate::hint::{Hint, Part};
use crate::operations::TABLE;

/// Names of options that take no value.
const FLAGS: [&str; 8] = [
    "all",
    "downstream",
    "engine",
    "errored",
    "full",
    "now",
    "previous",
    "repair",
];

/// Operations that HTTP offers under a different path, with the path for a single resource and the path without one.
const ELSEWHERE: [(&str, Option<&str>, Option<&str>); 2] = [
    ("status", Some("/resources/{kind}/{name}"), Some("/resources")),
    ("validate", None, Some("/diagnostics")),
];

/// Returns the operations that a hint proposes; `about` is the resource that the hint concerns.
pub fn actions(hint: &Hint, about: Option<&ResourceName>) -> Vec<Action> {
    let parts = hint.parts().into_iter();
    parts
        .filter_map(|part| match part {
            Part::Operation { name, arguments } => Command::read(name, &arguments, about)?.action(),
            Part::Text(_) | Part::Option { .. } => None,
        })
        .collect()
}

/// A command of a hint, as an operation with its arguments.
struct Command {
    operation: String,
    /// Resource name as the hint spells it; none if the command names no resource.
    name: Option<String>,
    resource: Option<ResourceName>,
    arguments: Map<String, Value>,
    /// True if the command has a placeholder that a person must fill in.
    is_open: bool,
}

impl Command {
    /// Parses a command of a hint; none if it is not in the table of operations.
    fn read(name: &str, words: &[&str], about: Option<&ResourceName>) -> Option<Self> {
        let (operation, words) = match (name, words.split_first()) {
            ("trash", Some((verb, rest))) => (format!("trash-{verb}"), rest),
            ("doctor", Some((&"--repair", _))) => ("repair".to_owned(), &[][..]),
            ("status", Some((&"--engine", _))) => ("engine".to_owned(), &[][..]),
            _ => (name.to_owned(), words),
        };
        TABLE.iter().find(|line| line.name == operation)?;
        let mut command = Self {
            operation,
            name: None,
            resource: None,
            arguments: Map::new(),
            is_open: false,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some(flag) if FLAGS.contains(&flag) => command.say(flag, json!(true)),
                Some(option) => command.fill(option, words.next().unwrap_or_default()),
                None => command.take(word, about),
            }
        }
        Some(command)
    }

    /// Adds a word that is not an option: a resource's name, or another argument.
    fn take(&mut self, word: &str, about: Option<&ResourceName>) {
        if let Some((key, value)) = word.split_once('=') {
            return self.fill(key, value);
        }
        if self.name.is_some() || self.resource.is_some() {
            return match (self.operation.as_str(), word) {
                ("scale", "file") => self.say("replicas", Value::Null),
                _ => self.is_open = true,
            };
        }
        let is_meant =
            |about: &&ResourceName| word == about.name || word == "NAME" || word == about.to_string();
        self.resource = match (about.filter(is_meant), word.split_once('/')) {
            (Some(about), _) => Some(about.clone()),
            (None, Some((kind, name))) => Some(ResourceName::new(kind, name)),
            (None, None) => None,
        };
        match self.resource.is_some() || !is_placeholder(word) {
            true => self.name = Some(word.to_owned()),
            false => self.is_open = true,
        }
    }

    fn fill(&mut self, key: &str, value: &str) {
        match is_placeholder(value) {
            true => self.is_open = true,
            false => {
                let number = value.parse::<u64>().map(Value::from);
                self.say(key, number.unwrap_or_else(|_| value.into()));
            }
        }
    }

    fn say(&mut self, key: &str, value: Value) {
        let key = match (self.operation.as_str(), key) {
            ("trash-restore", "as") => "to",
            (_, key) => key,
        };
        self.arguments.insert(key.to_owned(), value);
    }

    fn action(self) -> Option<Action> {
        let call = if self.is_open { None } else { self.call() };
        Some(Action {
            operation: self.operation,
            resource: self.resource,
            arguments: self.arguments,
            call,
        })
    }

    /// Returns the HTTP call that carries out the command; none if HTTP has no such call.
    fn call(&self) -> Option<ActionCall> {
        // Rows are no work: who asks for them has a form for them.
        let routes = ROUTES
            .iter()
            .filter(|route| self.is_of(route) && !matches!(route.does, Does::Rows(_)));
        // The output of a program has a path beside that of logs, which is known by its words.
        let is_output = ["replica", "previous"]
            .iter()
            .any(|key| self.arguments.contains_key(*key));
        let routes = routes.filter(|route| route.path.ends_with("/output") == is_output);
        let found = routes
            .filter_map(|route| Some((route.method, self.path(route)?)))
            .next();
        let (method, mut path) = found?;
        let mut body = self.arguments.clone();
        if path.contains(':') && self.resource.is_none() {
            body.insert("select".to_owned(), json!([self.name]));
        }
        if method == Method::Get && !body.is_empty() {
            let said = body.iter().map(|(key, value)| match value {
                Value::String(text) => format!("{key}={}", encoded(text)),
                value => format!("{key}={value}"),
            });
            path = format!("{path}?{}", said.collect::<Vec<_>>().join("&"));
        }
        Some(ActionCall {
            method: method.name().to_owned(),
            path,
            body: (method == Method::Post).then_some(body),
        })
    }

    fn is_of(&self, route: &Route) -> bool {
        let elsewhere = ELSEWHERE.iter().find(|(name, ..)| *name == self.operation);
        match elsewhere {
            Some((_, one, none)) => {
                let path = if self.name.is_some() { one } else { none };
                route.method == Method::Get && *path == Some(route.path)
            }
            None => route.operation().is_some_and(|info| info.name == self.operation),
        }
    }

    /// Returns a route's path, filled in with the command's names; none if the number of names does not match.
    fn path(&self, route: &Route) -> Option<String> {
        let has = |word: &str| route.path.contains(word);
        match (&self.resource, &self.name) {
            (Some(resource), _) if has("{kind}") => Some(
                route
                    .path
                    .replace("{kind}", &encoded(&resource.kind))
                    .replace("{name}", &encoded(&resource.name)),
            ),
            (None, Some(name)) if has("{id}") => Some(route.path.replace("{id}", &encoded(name))),
            (None, Some(_)) if has("/resources:") => Some(route.path.to_owned()),
            (None, None) if !has("{") && !has(":") => Some(route.path.to_owned()),
            _ => None,
        }
    }
}

/// Returns true if the word is a placeholder that a person must fill in.
fn is_placeholder(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::{operation, operation_with};

    fn call(hint: &str, about: Option<&ResourceName>) -> Option<(String, String, Option<Value>)> {
        let found = actions(&Hint::from(hint), about);
        let call = found.into_iter().next()?.call?;
        Some((call.method, call.path, call.body.map(Value::Object)))
    }

    #[test]
    fn a_command_of_a_hint_is_a_call_of_its_path() {
        let late = ResourceName::new("model", "late");
        let post = |path: &str, body: Value| Some(("POST".to_owned(), path.to_owned(), Some(body)));
        let get = |path: &str| Some(("GET".to_owned(), path.to_owned(), None));
        let cases = [
            (operation("run", []), post("/run", json!({}))),
            (
                operation("retry", ["late"]),
                post("/resources/model/late/retry", json!({})),
            ),
            (
                operation("retry", ["other"]),
                post("/resources:retry", json!({"select": ["other"]})),
            ),
            (
                operation("resume", ["model/ä"]),
                post("/resources/model/%C3%A4/resume", json!({})),
            ),
            (
                operation_with("refresh", [], &[("full", "NAME")]),
                post("/resources/model/late/refresh", json!({"full": true})),
            ),
            (operation("gc", []), post("/gc", json!({}))),
            (
                operation_with("trash", ["restore", "daily"], &[("as", "again")]),
                post("/trash/daily/restore", json!({"to": "again"})),
            ),
            (
                operation("set", ["managed/thing", "desired=gone"]),
                post("/resources/managed/thing/set", json!({"desired": "gone"})),
            ),
            (
                operation("scale", ["service/web", "file"]),
                post("/resources/service/web/scale", json!({"replicas": null})),
            ),
            (
                operation("explain", ["late"]),
                get("/resources/model/late/explain"),
            ),
            (operation("logs", ["late"]), get("/resources/model/late/logs")),
            (
                operation_with("logs", ["service/web"], &[("replica", "2"), ("previous", "")]),
                get("/resources/service/web/output?previous=true&replica=2"),
            ),
            (
                operation_with("partitions", ["late"], &[("errored", "")]),
                get("/resources/model/late/partitions?errored=true"),
            ),
            (operation("status", ["late"]), get("/resources/model/late")),
            (operation("status", []), get("/resources")),
            (operation("history", []), get("/history")),
            (operation("validate", []), get("/diagnostics")),
        ];
        for (hint, expected) in cases {
            assert_eq!(call(&hint, Some(&late)), expected, "{hint}");
        }
    }

    #[test]
    fn what_has_to_be_filled_in_or_is_done_at_the_machine_is_no_call() {
        for hint in [
            operation("retry", ["NAME"]),
            operation("set", ["managed/thing", "desired=STAGE"]),
            operation_with("trash", ["restore", "daily"], &[("as", "NAME")]),
            operation_with("doctor", [], &[("repair", "")]),
            operation("query", []),
        ] {
            let found = actions(&Hint::from(hint.as_str()), None);
            assert_eq!(found.len(), 1, "{hint}");
            assert_eq!(found[0].call, None, "{hint}");
        }
        for hint in [
            "",
            "make room",
            "`--full`",
            "`watershed init`",
            "`watershed start`",
            "`watershed`",
        ] {
            assert_eq!(actions(&Hint::from(hint), None), [], "{hint}");
        }
    }
}
