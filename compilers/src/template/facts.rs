//! Facts about a template, from all its branches: refs, settings, variables.

use std::collections::{BTreeMap, BTreeSet};

use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode};

use super::{SyntaxError, Template, functions};
use crate::{sql::action_length, text::Text};

/// A resource that a template names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TemplateRef {
    /// The kind, if the template gives one.
    pub(crate) kind: Option<String>,
    pub(crate) name: String,
    /// The byte offset of the call.
    pub(crate) offset: usize,
    /// True if only incremental runs reach the ref.
    pub(crate) incremental: bool,
    /// True if every run reaches the ref, as it is in no branch.
    pub(crate) sure: bool,
}

/// A setting made by a `configure` call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// The key of the setting; empty if the value is a YAML mapping of settings.
    pub(crate) key: String,
    pub(crate) value: String,
    /// The byte offset of the call.
    pub(crate) offset: usize,
}

/// The refs, settings and variables of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) refs: Vec<TemplateRef>,
    pub(crate) configs: Vec<Config>,
    /// Variables by name, with the byte offset of the first use.
    pub(crate) variables: BTreeMap<String, usize>,
    /// Variables that have a default where they are read.
    pub(crate) defaulted: BTreeSet<String>,
    /// True if variables are read in a way that does not show their names.
    pub(crate) any_variable: bool,
    /// True if the output depends on the environment's name.
    pub(crate) environment: bool,
}

impl Facts {
    pub(crate) fn from_template(template: &Template) -> Self {
        let mut facts = Facts::default();
        let mut walk = Walk {
            facts: &mut facts,
            incremental: false,
            depth: 0,
        };
        walk.list(&template.body);
        template.defines.values().for_each(|body| walk.aside(body));
        facts
    }
}

/// Reports mistakes that the template parser accepts: unclosed blocks and unknown functions.
pub(super) fn check(template: &Template, text: &str) -> Result<(), SyntaxError> {
    check_blocks(text)?;
    let mut unknown = None;
    each_expression(template, &mut |expression| {
        if let Expr::Identifier(at, name) = expression
            && unknown.is_none()
            && !functions::is_known(name)
        {
            unknown = Some((at.offset, name.to_string()));
        }
    });
    if let Some((offset, name)) = unknown {
        return Err(at(text, offset, &format!("function \"{name}\" is not defined")));
    }
    // A letter in single quotes is a number to a template.
    let mut calls = actions(text);
    match calls.find(|(_, words)| words.concat().starts_with("ref('")) {
        Some((offset, _)) => Err(at(text, offset, "a name stands in double quotes")),
        None => Ok(()),
    }
}

fn check_blocks(text: &str) -> Result<(), SyntaxError> {
    let mut open = Vec::new();
    for (offset, words) in actions(text) {
        match words.as_slice() {
            ["if" | "with" | "range" | "define" | "block", ..] => open.push((offset, words)),
            ["else", ..] if open.is_empty() => return Err(at(text, offset, "`else` without an `if`")),
            ["end"] if open.pop().is_none() => {
                return Err(at(text, offset, "`end` without a block that it ends"));
            }
            _ => {}
        }
    }
    match open.first() {
        Some((offset, words)) => {
            let keyword = words.first().copied().unwrap_or_default();
            Err(at(text, *offset, &format!("`{keyword}` has no `end`")))
        }
        None => Ok(()),
    }
}

/// Returns the actions of a text, each as the byte offset of its first word and its words.
fn actions(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let mut rest_at = 0;
    std::iter::from_fn(move || {
        let start = rest_at + text.get(rest_at..)?.find("{{")?;
        let action = text.get(start..)?;
        let action = action.get(..action_length(action))?;
        rest_at = start + action.len().max(2);
        let inner = action.strip_prefix("{{")?.trim_end_matches("}}");
        let inner = inner.strip_prefix("- ").unwrap_or(inner);
        let inner = inner.strip_suffix(" -").unwrap_or(inner);
        let word = start + 2 + action.get(2..)?.find(|c: char| c.is_alphanumeric()).unwrap_or(0);
        Some((word, inner.split_whitespace().collect()))
    })
}

fn at(text: &str, offset: usize, message: &str) -> SyntaxError {
    let (line, column) = Text::new(text).position(offset);
    SyntaxError {
        message: message.to_owned(),
        line,
        column,
    }
}

struct Walk<'a> {
    facts: &'a mut Facts,
    incremental: bool,
    /// The number of branches around the current node.
    depth: usize,
}

impl Walk<'_> {
    fn list(&mut self, list: &ListNode) {
        for node in &list.nodes {
            match node {
                Node::List(list) => self.list(list),
                Node::Action(action) => self.pipe(&action.pipe),
                Node::If(branch) => self.branch(branch, incremental_branch(&branch.pipe)),
                Node::Range(branch) | Node::With(branch) => self.branch(branch, None),
                Node::Template(call) => call.pipe.iter().for_each(|pipe| self.pipe(pipe)),
                Node::Define(define) => self.aside(&define.body),
                Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    /// Walks a part that runs only when called.
    fn aside(&mut self, list: &ListNode) {
        self.depth += 1;
        self.list(list);
        self.depth -= 1;
    }

    fn branch(&mut self, branch: &BranchNode, incremental: Option<Arm>) {
        self.pipe(&branch.pipe);
        self.depth += 1;
        let outside = self.incremental;
        self.incremental = outside || incremental == Some(Arm::Then);
        self.list(&branch.body);
        self.incremental = outside || incremental == Some(Arm::Else);
        branch.else_body.iter().for_each(|list| self.list(list));
        self.incremental = outside;
        self.depth -= 1;
    }

    fn pipe(&mut self, pipe: &PipeNode) {
        pipe.commands.iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: &CommandNode) {
        if let Some(Expr::Identifier(at, name)) = command.args.first() {
            self.call(name, at.offset, command.args.get(1..).unwrap_or_default());
        }
        let is_named = indexed(command)
            .is_some_and(|(path, _, below)| matches!(path[..], ["env" | "vars", ..]) && below.is_empty());
        let skip = usize::from(is_named) * 2;
        command
            .args
            .iter()
            .skip(skip)
            .for_each(|expression| self.expression(expression));
    }

    fn call(&mut self, function: &str, offset: usize, arguments: &[Expr]) {
        let texts: Vec<&str> = arguments
            .iter()
            .filter_map(|argument| match argument {
                Expr::String(_, text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        match (function, texts.as_slice()) {
            ("ref" | "lookup" | "dependency", [name]) => self.reference(None, name, offset),
            ("ref" | "lookup" | "dependency", [kind, name, ..]) => self.reference(Some(kind), name, offset),
            ("configure", [value]) => self.configure("", value, offset),
            ("configure", [key, value, ..]) => self.configure(key, value, offset),
            ("configure", []) => {}
            ("env", [name, ..]) if arguments.len() == 2 => {
                self.facts.defaulted.insert((*name).to_owned());
            }
            ("env", [name]) => self.variable(name, offset),
            ("index" | "get", [name, ..]) => self.variable(name, offset),
            ("dev" | "prod", _) => self.facts.environment = true,
            _ => {}
        }
        // `configure "key" true`: the value need not be a text.
        if let ("configure", [key], [_, value]) = (function, texts.as_slice(), arguments) {
            let value = match value {
                Expr::Bool(_, value) => value.to_string(),
                Expr::Number(_, gotmpl::parse::Number::Int(value)) => value.to_string(),
                _ => return,
            };
            self.facts.configs.pop();
            self.configure(key, &value, offset);
        }
    }

    fn reference(&mut self, kind: Option<&str>, name: &str, offset: usize) {
        let kind = kind.map(str::to_owned);
        let (incremental, sure) = (self.incremental, self.depth == 0);
        self.facts.refs.push(TemplateRef {
            kind,
            name: name.to_owned(),
            offset,
            incremental,
            sure,
        });
    }

    fn configure(&mut self, key: &str, value: &str, offset: usize) {
        self.facts.configs.push(Config {
            key: key.to_owned(),
            value: value.to_owned(),
            offset,
        });
    }

    fn variable(&mut self, name: &str, offset: usize) {
        self.facts.variables.entry(name.to_owned()).or_insert(offset);
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Field(at, fields) => {
                match fields.iter().map(AsRef::as_ref).collect::<Vec<&str>>().as_slice() {
                    ["env" | "vars"] => self.facts.any_variable = true,
                    ["env" | "vars", name @ ..] => self.variable(&name.join("."), at.offset),
                    ["environment"] => self.facts.environment = true,
                    _ => {}
                }
            }
            Expr::Pipe(_, pipe) => self.pipe(pipe),
            Expr::Chain(_, inner, _) => self.expression(inner),
            _ => {}
        }
    }
}

/// Returns the parts of a call such as `index .env "x"`: the path of the mapping, the key, and further keys.
pub(super) fn indexed(command: &CommandNode) -> Option<(Vec<&str>, &str, &[Expr])> {
    match command.args.as_slice() {
        [
            Expr::Identifier(_, function),
            Expr::Field(_, path),
            Expr::String(_, key),
            below @ ..,
        ] if matches!(function.as_str(), "index" | "get") => {
            Some((path.iter().map(AsRef::as_ref).collect(), key, below))
        }
        _ => None,
    }
}

/// A branch of an `if` action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arm {
    Then,
    Else,
}

/// Returns the branch that only incremental runs take, if the condition tests for that.
pub(super) fn incremental_branch(condition: &PipeNode) -> Option<Arm> {
    let mut about = false;
    let mut negated = false;
    pipe_expressions(condition, &mut |expression| match expression {
        Expr::Identifier(_, name) if name == "incremental" => about = true,
        Expr::Identifier(_, name) if name == "not" => negated = !negated,
        Expr::Field(_, fields) if fields.first().is_some_and(|field| field == "state") => about = true,
        _ => {}
    });
    match (about, negated) {
        (false, _) => None,
        (true, false) => Some(Arm::Then),
        (true, true) => Some(Arm::Else),
    }
}

fn each_expression(template: &Template, visit: &mut impl FnMut(&Expr)) {
    each_pipe(template, &mut |pipe, _| pipe_expressions(pipe, visit));
}

/// Visits the pipelines in all branches of a template, each with true if its value is written.
pub(super) fn each_pipe(template: &Template, visit: &mut impl FnMut(&PipeNode, bool)) {
    list_pipes(&template.body, visit);
    template.defines.values().for_each(|body| list_pipes(body, visit));
}

fn list_pipes(list: &ListNode, visit: &mut impl FnMut(&PipeNode, bool)) {
    for node in &list.nodes {
        match node {
            Node::List(list) => list_pipes(list, visit),
            Node::Action(action) => visit(&action.pipe, action.pipe.decl.is_empty()),
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
                visit(&branch.pipe, false);
                list_pipes(&branch.body, visit);
                branch.else_body.iter().for_each(|list| list_pipes(list, visit));
            }
            Node::Template(call) => call.pipe.iter().for_each(|pipe| visit(pipe, false)),
            Node::Define(define) => list_pipes(&define.body, visit),
            Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
        }
    }
}

fn pipe_expressions(pipe: &PipeNode, visit: &mut impl FnMut(&Expr)) {
    for expression in pipe.commands.iter().flat_map(|command| &command.args) {
        expression_tree(expression, visit);
    }
}

fn expression_tree(expression: &Expr, visit: &mut impl FnMut(&Expr)) {
    visit(expression);
    match expression {
        Expr::Pipe(_, pipe) => pipe_expressions(pipe, visit),
        Expr::Chain(_, inner, _) => expression_tree(inner, visit),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        Facts::from_template(&Template::read(text).unwrap_or_else(|error| panic!("{text}: {error:?}")))
    }

    fn refused(text: &str) -> (u32, u32) {
        let error = Template::read(text).expect_err(text);
        (error.line, error.column)
    }

    #[test]
    fn refs_variables_and_settings_are_found_in_every_branch() {
        let found = facts(
            "{{ configure \"materialize\" true }}{{ if dev }}{{ ref \"a\" }}{{ else }}{{ ref \"source\" \"b\" }}{{ end }}\
             {{ .env.limit }}{{ .vars.x.y }}{{ env \"z\" }}{{ index .env \"q\" }}{{ dependency \"c\" }}",
        );
        let refs: Vec<_> = found
            .refs
            .iter()
            .map(|r| (r.kind.as_deref(), r.name.as_str()))
            .collect();
        assert_eq!(refs, [(None, "a"), (Some("source"), "b"), (None, "c")]);
        assert_eq!(
            found.variables.keys().collect::<Vec<_>>(),
            ["limit", "q", "x.y", "z"]
        );
        let with_defaults = facts("{{ env \"a\" \"b\" }}{{ env \"c\" \"d\" }}{{ env \"c\" }}");
        assert_eq!(with_defaults.defaulted.iter().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(with_defaults.variables.keys().collect::<Vec<_>>(), ["c"]);
        assert_eq!(
            found
                .configs
                .iter()
                .map(|c| (&*c.key, &*c.value))
                .collect::<Vec<_>>(),
            [("materialize", "true")]
        );
        assert!(found.environment && !found.any_variable);
    }

    #[test]
    fn what_only_incremental_runs_read_is_marked() {
        let found = facts(
            "{{ if incremental }}{{ ref \"a\" }}{{ else }}{{ ref \"b\" }}{{ end }}\
             {{ if not incremental }}{{ ref \"c\" }}{{ else }}{{ ref \"d\" }}{{ end }}",
        );
        let marked: Vec<_> = found
            .refs
            .iter()
            .map(|r| (r.name.as_str(), r.incremental))
            .collect();
        assert_eq!(marked, [("a", true), ("b", false), ("c", false), ("d", true)]);
    }

    #[test]
    fn broken_templates_have_a_place() {
        assert_eq!(refused("a\n{{ end }}"), (2, 4));
        assert_eq!(refused("a {{ else }} b"), (1, 6));
        assert_eq!(refused("a {{ if .x }} b"), (1, 6));
        assert_eq!(refused("é {{ nope 1 }}"), (1, 6));
        assert_eq!(refused("a {{ .x").0, 1);
        assert_eq!(refused("FROM {{ ref('x') }}"), (1, 9));
        Template::read("{{ if .x }}{{ else if .y }}{{ else }}{{ end }}").expect("closes");
    }
}
