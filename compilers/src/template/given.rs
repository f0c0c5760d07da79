//! Data flow in a template: whether a value is the author's or comes from a run.
//!
//! Partitions and states are rows of queries and names of files: nobody who writes the project has seen them. A value is
//! followed through variables, moved dots and templates that are called, without regard to the order of things: where it can
//! come from a run on one way, it counts as of a run.

use std::collections::BTreeMap;

use gotmpl::parse::{Expr, ListNode, Node, PipeNode};

use super::Template;

/// Fields of the scope that hold values of a run, such as partitions and state. In `self`, the name is the author's.
const OF_RUNS: [&str; 4] = ["partition", "split", "state", "self"];

/// The possible origins of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// True if the value may be the whole scope.
    is_scope: bool,
    /// True if the value may come from a run, or contain such a value.
    is_given: bool,
}

impl Origin {
    /// The origin of the initial dot of a template.
    pub(super) const SCOPE: Self = Self {
        is_scope: true,
        is_given: false,
    };
    const GIVEN: Self = Self {
        is_scope: false,
        is_given: true,
    };
    const AUTHOR: Self = Self {
        is_scope: false,
        is_given: false,
    };

    fn or(self, other: Self) -> Self {
        Self {
            is_scope: self.is_scope || other.is_scope,
            is_given: self.is_given || other.is_given,
        }
    }

    /// Returns true if a result computed from the value may contain a value of a run.
    pub(super) fn may_be_given(self) -> bool {
        self.is_scope || self.is_given
    }

    /// Returns the origin of an item of the value.
    fn of_item(self) -> Self {
        match self.may_be_given() {
            true => Self::GIVEN,
            false => Self::AUTHOR,
        }
    }

    /// Returns the origin of a field of the value.
    fn of_field(self, path: &[&str]) -> Self {
        let of_scope = match path {
            [] => return self,
            ["self", below, ..] => *below == "state",
            [first, ..] => OF_RUNS.contains(first),
        };
        match self.is_given || self.is_scope && of_scope {
            true => Self::GIVEN,
            false => Self::AUTHOR,
        }
    }
}

/// The origins of a template's variables, and of the dots of the templates it calls.
#[derive(Debug, Default)]
pub(super) struct Origins {
    variables: BTreeMap<String, Origin>,
    called: BTreeMap<String, Origin>,
}

/// The origins of `.` and `$` at a place of a template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dots {
    /// The origin of the value of `.`.
    pub(super) here: Origin,
    /// The origin of the value of `$`.
    pub(super) root: Origin,
}

impl Dots {
    pub(super) fn both(origin: Origin) -> Self {
        Self {
            here: origin,
            root: origin,
        }
    }
}

impl Origins {
    /// Follows the values of a template until a fixed point is reached.
    pub(super) fn of(template: &Template) -> Self {
        let mut origins = Self::default();
        loop {
            let before = (origins.variables.clone(), origins.called.clone());
            origins.list(&template.body, Dots::both(Origin::SCOPE));
            for (name, body) in &template.defines {
                let dots = Dots::both(origins.of_called(name));
                origins.list(body, dots);
            }
            if before == (origins.variables.clone(), origins.called.clone()) {
                return origins;
            }
        }
    }

    /// Returns the origin of the dot in a called template.
    pub(super) fn of_called(&self, name: &str) -> Origin {
        self.called.get(name).copied().unwrap_or_default()
    }

    /// Returns the origins of the dots inside a branch of `with` or `range`.
    pub(super) fn inside(&self, node: &Node, dots: Dots) -> Dots {
        let here = match node {
            Node::With(branch) => self.of_pipe(&branch.pipe, dots),
            Node::Range(branch) => self.of_pipe(&branch.pipe, dots).of_item(),
            _ => dots.here,
        };
        Dots { here, ..dots }
    }

    fn list(&mut self, list: &ListNode, dots: Dots) {
        for node in &list.nodes {
            match node {
                Node::List(list) => self.list(list, dots),
                Node::Action(action) => {
                    let origin = self.of_pipe(&action.pipe, dots);
                    self.declare(&action.pipe, origin);
                }
                Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                    let origin = self.of_pipe(&branch.pipe, dots);
                    let declared = match node {
                        Node::Range(_) => origin.of_item(),
                        _ => origin,
                    };
                    self.declare(&branch.pipe, declared);
                    let inside = self.inside(node, dots);
                    self.list(&branch.body, inside);
                    if let Some(body) = &branch.else_body {
                        self.list(body, dots);
                    }
                }
                Node::Template(call) => {
                    let passed = call.pipe.as_ref().map(|pipe| self.of_pipe(pipe, dots));
                    let known = self.called.entry(call.name.to_string()).or_default();
                    *known = known.or(passed.unwrap_or_default());
                }
                Node::Define(_) | Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    fn declare(&mut self, pipe: &PipeNode, origin: Origin) {
        for name in &pipe.decl {
            let known = self.variables.entry(name.to_string()).or_default();
            *known = known.or(origin);
        }
    }

    /// Returns the origin of a pipeline's value.
    pub(super) fn of_pipe(&self, pipe: &PipeNode, dots: Dots) -> Origin {
        let commands = pipe.commands.iter();
        let last = commands.fold(None, |piped, command| {
            let expressions = command.args.iter();
            let inputs = expressions.map(|expression| self.of_expression(expression, dots));
            let inputs: Vec<Origin> = inputs.chain(piped).collect();
            Some(match (command.args.first(), inputs.as_slice()) {
                (Some(Expr::Identifier(_, function)), [_, inputs @ ..]) => of_call(function, inputs),
                (_, [alone]) => *alone,
                (_, inputs) => made_of(inputs),
            })
        });
        last.unwrap_or_default()
    }

    /// Returns the origin of an expression's value.
    pub(super) fn of_expression(&self, expression: &Expr, dots: Dots) -> Origin {
        let (origin, path) = match expression {
            Expr::Dot(_) => return dots.here,
            Expr::Pipe(_, pipe) => return self.of_pipe(pipe, dots),
            Expr::Field(_, path) => (dots.here, path),
            Expr::Variable(_, name, path) if name == "$" => (dots.root, path),
            Expr::Variable(_, name, path) => {
                let known = self.variables.get(name.as_str());
                (known.copied().unwrap_or_default(), path)
            }
            Expr::Chain(_, inner, path) => (self.of_expression(inner, dots), path),
            _ => return Origin::AUTHOR,
        };
        let path: Vec<&str> = path.iter().map(AsRef::as_ref).collect();
        origin.of_field(&path)
    }
}

/// Functions whose result tells about their arguments without containing them.
const TELL: [&str; 16] = [
    "contains",
    "empty",
    "eq",
    "ge",
    "gt",
    "has",
    "hasKey",
    "hasPrefix",
    "hasSuffix",
    "kindIs",
    "le",
    "len",
    "lt",
    "ne",
    "not",
    "typeIs",
];

/// Returns the origin of the result of a call.
fn of_call(function: &str, inputs: &[Origin]) -> Origin {
    match function {
        told if TELL.contains(&told) => Origin::AUTHOR,
        // The others choose among these.
        "ternary" => made_of(inputs.get(..2).unwrap_or(inputs)),
        "get" | "index" => made_of(inputs.get(..1).unwrap_or(inputs)),
        _ => made_of(inputs),
    }
}

/// Returns the origin of a result that is computed from values. If any value may come from a run, so may the result.
fn made_of(inputs: &[Origin]) -> Origin {
    match inputs.iter().any(|input| input.may_be_given()) {
        true => Origin::GIVEN,
        false => Origin::AUTHOR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether each action of a template may yield a value of a run: true for each that may.
    fn given(text: &str) -> Vec<bool> {
        let template = Template::read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let origins = Origins::of(&template);
        let actions = template.body.nodes.iter().filter_map(|node| match node {
            Node::Action(action) if action.pipe.decl.is_empty() => Some(&action.pipe),
            _ => None,
        });
        let dots = Dots::both(Origin::SCOPE);
        actions
            .map(|pipe| origins.of_pipe(pipe, dots).may_be_given())
            .collect()
    }

    #[test]
    fn values_of_runs_are_followed_and_the_authors_are_told_apart() {
        for (text, expected) in [
            (
                "{{ .partition.a }}{{ .split.a }}{{ .state.a }}{{ .self.state.a }}",
                vec![true; 4],
            ),
            (
                "{{ .env.a }}{{ ref \"a\" }}{{ .self.name }}{{ .table }}{{ .version }}",
                vec![false; 5],
            ),
            (
                "{{ $a := .partition }}{{ $b := .env.b }}{{ $a.x }}{{ $b }}",
                vec![true, false],
            ),
            (
                "{{ $a := . }}{{ $a.partition.x }}{{ $a.env.x }}",
                vec![true, false],
            ),
            (
                "{{ $.state.x }}{{ (index . \"state\").x }}{{ (index .env \"x\") }}",
                vec![true, true, false],
            ),
            (
                "{{ upper .partition.a }}{{ .env.a | upper }}{{ .state.a | default .env.b }}",
                vec![true, false, true],
            ),
            (
                "{{ eq .partition.a \"x\" }}{{ ternary \"a\" \"b\" (eq .partition.a \"x\") }}",
                vec![false; 2],
            ),
            (
                "{{ .partition.a | eq \"x\" | ternary \"a\" .state.b }}",
                vec![true],
            ),
            (
                "{{ $a := 1 }}{{ if dev }}{{ $a = .partition.x }}{{ end }}{{ $a }}",
                vec![true],
            ),
        ] {
            assert_eq!(given(text), expected, "{text}");
        }
    }

    #[test]
    fn dots_are_followed_into_branches_and_templates() {
        for (text, expected) in [
            (
                "{{ define \"t\" }}{{ . }}{{ end }}{{ template \"t\" .partition.x }}",
                true,
            ),
            (
                "{{ define \"t\" }}{{ .partition.x }}{{ end }}{{ template \"t\" . }}",
                true,
            ),
            (
                "{{ define \"t\" }}{{ . }}{{ end }}{{ template \"t\" .env.x }}",
                false,
            ),
            ("{{ range .partition.files }}{{ . }}{{ end }}", true),
            ("{{ range $k, $v := .partition }}{{ $k }}{{ end }}", true),
            ("{{ range list \"a\" \"b\" }}{{ . }}{{ end }}", false),
            ("{{ range list \"a\" \"b\" }}{{ $.partition.x }}{{ end }}", true),
            ("{{ with .state }}{{ .x }}{{ else }}{{ .env.y }}{{ end }}", true),
            ("{{ with .env }}{{ .partition }}{{ end }}", false),
        ] {
            let template = Template::read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
            let marked = super::super::literal::marks_values_of_runs(&template);
            assert_eq!(marked, expected, "{text}");
        }
    }
}
