//! Variants of SQL, rendered from a template with neutral values so that the engine can parse it.

use std::collections::BTreeMap;

use gotmpl::parse::{BranchNode, CommandNode, Expr, ListNode, Node, PipeNode};

use watershed_dialect::{ENGINE, Quoting as _};

use super::{
    Template,
    facts::{Arm, incremental_branch},
};

/// The largest number of variants of a template; branches beyond that are not covered.
const MAX_VARIANTS: usize = 32;
/// The largest depth of nested template calls.
const MAX_CALLS: usize = 16;

/// The placeholder for a value that is unknown before the run; valid as a name and as a value.
pub(crate) const NEUTRAL: &str = "_watershed_value";

/// A rendering of a template with neutral values, along one choice of branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) text: String,
    /// True if the variant includes a branch that only incremental runs take.
    pub(crate) incremental: bool,
    /// True if the text is exactly what a run would render, so that the engine's errors are real.
    pub(crate) exact: bool,
    /// The start of each stretch of the text, in characters, with its byte offset in the template.
    origins: Vec<(usize, usize)>,
}

impl Variant {
    /// Returns the byte offset in the template that a character of the text comes from.
    pub(crate) fn origin(&self, source: &str, char_offset: usize) -> usize {
        let after = self.origins.partition_point(|(start, _)| *start <= char_offset);
        let Some((start, byte)) = after.checked_sub(1).and_then(|at| self.origins.get(at)) else {
            return 0;
        };
        let stretch = source.get(*byte..).unwrap_or_default();
        byte + stretch
            .char_indices()
            .nth(char_offset - start)
            .map_or(stretch.len(), |(at, _)| at)
    }
}

/// Renders a template repeatedly, until every branch was taken once.
pub(crate) fn variants(
    template: &Template,
    source: &str,
    variables: &BTreeMap<String, String>,
) -> Vec<Variant> {
    let mut taken = BTreeMap::new();
    let mut found: Vec<Variant> = Vec::new();
    while found.len() < MAX_VARIANTS {
        let mut render = Render::new(template, source, variables, &mut taken);
        render.list(&template.body);
        let (variant, news) = (render.variant, render.news);
        if !found.is_empty() && !news {
            break;
        }
        found.push(variant);
    }
    found
}

/// Branches already taken (then, else), by the byte offset of their keyword.
type Branches = BTreeMap<usize, (bool, bool)>;

struct Render<'a> {
    template: &'a Template,
    source: &'a str,
    variables: &'a BTreeMap<String, String>,
    taken: &'a mut Branches,
    locals: BTreeMap<String, Option<String>>,
    calls: usize,
    /// True if the rendering took a branch not taken before.
    news: bool,
    /// The length of the rendered text, in characters.
    length: usize,
    variant: Variant,
}

/// The text that an action yields in a variant.
enum Put {
    Text(String),
    Nothing,
    Unknown,
}

impl<'a> Render<'a> {
    fn new(
        template: &'a Template,
        source: &'a str,
        variables: &'a BTreeMap<String, String>,
        taken: &'a mut Branches,
    ) -> Self {
        let variant = Variant {
            text: String::new(),
            incremental: false,
            exact: true,
            origins: Vec::new(),
        };
        let locals = BTreeMap::new();
        Self {
            template,
            source,
            variables,
            taken,
            locals,
            calls: 0,
            news: false,
            length: 0,
            variant,
        }
    }

    fn push(&mut self, text: &str, byte: usize) {
        self.variant.origins.push((self.length, byte));
        self.variant.text.push_str(text);
        self.length += text.chars().count();
    }

    fn list(&mut self, list: &ListNode) {
        for node in &list.nodes {
            match node {
                Node::List(list) => self.list(list),
                Node::Text(text) => {
                    let rest = self.source.get(text.pos.offset..).unwrap_or_default();
                    let trimmed = rest.find(text.text.as_ref()).unwrap_or(0);
                    self.push(&text.text, text.pos.offset + trimmed);
                }
                Node::Action(action) => self.action(&action.pipe),
                Node::If(branch) => {
                    let incremental = incremental_branch(&branch.pipe);
                    self.branch(branch, incremental);
                }
                Node::Range(branch) | Node::With(branch) => self.branch(branch, None),
                Node::Template(call) => self.call(&call.name),
                Node::Define(_) | Node::Break(_) | Node::Continue(_) => {}
            }
        }
    }

    fn action(&mut self, pipe: &PipeNode) {
        let put = self.pipe(pipe);
        if let [name] = pipe.decl.as_slice() {
            let value = match put {
                Put::Text(text) => Some(text),
                Put::Nothing | Put::Unknown => None,
            };
            self.locals.insert(name.to_string(), value);
            return;
        }
        match put {
            Put::Text(text) => self.push(&text, pipe.pos.offset),
            Put::Nothing => {}
            Put::Unknown => {
                self.variant.exact = false;
                self.push(NEUTRAL, pipe.pos.offset);
            }
        }
    }

    /// Renders the branch not taken yet; if both were taken, the one that contains a new branch.
    fn branch(&mut self, branch: &BranchNode, incremental: Option<Arm>) {
        self.variant.exact = false;
        let (then, other) = self.taken.get(&branch.pos.offset).copied().unwrap_or_default();
        let take = match (then, other) {
            (true, false) => Arm::Else,
            // Deeper branches may still be new: look where something new is left.
            (true, true) if !self.has_news(&branch.body) => Arm::Else,
            _ => Arm::Then,
        };
        let body = match take {
            Arm::Then => Some(&branch.body),
            Arm::Else => branch.else_body.as_ref(),
        };
        self.news |= (take == Arm::Then && !then) || (take == Arm::Else && !other);
        let entry = self.taken.entry(branch.pos.offset).or_default();
        match take {
            Arm::Then => entry.0 = true,
            Arm::Else => entry.1 = true,
        }
        self.variant.incremental |= incremental == Some(take);
        if let Some(body) = body {
            self.list(body);
        }
    }

    /// Returns true if a nested branch was not taken yet.
    fn has_news(&self, list: &ListNode) -> bool {
        list.nodes.iter().any(|node| match node {
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
                self.taken
                    .get(&branch.pos.offset)
                    .is_none_or(|(then, other)| !then || !other)
                    || self.has_news(&branch.body)
                    || branch.else_body.as_ref().is_some_and(|list| self.has_news(list))
            }
            Node::List(list) => self.has_news(list),
            _ => false,
        })
    }

    fn call(&mut self, name: &str) {
        let template = self.template;
        if let Some(body) = template.defines.get(name)
            && self.calls < MAX_CALLS
        {
            self.calls += 1;
            self.list(body);
        }
    }

    fn pipe(&self, pipe: &PipeNode) -> Put {
        match pipe.commands.as_slice() {
            [command] => self.command(command),
            _ => Put::Unknown,
        }
    }

    fn command(&self, command: &CommandNode) -> Put {
        match command.args.as_slice() {
            [Expr::Identifier(_, function), arguments @ ..] => self.function(function, arguments),
            [Expr::String(_, text)] => Put::Text(text.to_string()),
            [Expr::Number(_, gotmpl::parse::Number::Int(number))] => Put::Text(number.to_string()),
            [Expr::Pipe(_, pipe)] => self.pipe(pipe),
            [Expr::Variable(_, name, fields)] if fields.is_empty() => {
                match self.locals.get(name.as_str()).cloned().flatten() {
                    Some(text) => Put::Text(text),
                    None => Put::Unknown,
                }
            }
            [Expr::Field(_, fields)] => {
                match fields.iter().map(AsRef::as_ref).collect::<Vec<&str>>().as_slice() {
                    ["env" | "vars", name @ ..] => self.variable(&name.join(".")),
                    _ => Put::Unknown,
                }
            }
            _ => Put::Unknown,
        }
    }

    fn function(&self, function: &str, arguments: &[Expr]) -> Put {
        match (function, arguments) {
            ("configure" | "dependency", _) => Put::Nothing,
            ("ref", [.., Expr::String(_, name)]) => Put::Text(ENGINE.name(name)),
            ("env", [Expr::String(_, name)]) => self.variable(name),
            ("env", [Expr::String(_, name), Expr::String(_, default)]) => match self.variable(name) {
                Put::Unknown => Put::Text(default.to_string()),
                known => known,
            },
            _ => Put::Unknown,
        }
    }

    fn variable(&self, name: &str) -> Put {
        let exact = self.variables.get(name);
        let found = exact.or_else(|| {
            self.variables
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        });
        found.map_or(Put::Unknown, |value| Put::Text(value.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Vec<Variant> {
        let variables = BTreeMap::from([("n".to_owned(), "5".to_owned())]);
        variants(&Template::read(text).expect("a template"), text, &variables)
    }

    fn texts(text: &str) -> Vec<String> {
        rendered(text).into_iter().map(|variant| variant.text).collect()
    }

    #[test]
    fn known_values_are_put_in_and_others_are_neutral() {
        assert_eq!(
            texts("a {{ ref \"b c\" }} {{ .env.n }}{{ configure \"x\" \"y\" }} {{ .state.z }}"),
            ["a \"b c\" 5 _watershed_value"]
        );
        assert_eq!(texts("{{ $t := ref \"b\" }}FROM {{ $t }}"), ["FROM \"b\""]);
        assert!(rendered("{{ ref \"b\" }}").iter().all(|variant| variant.exact));
        assert!(!rendered("{{ .state.z }}").iter().any(|variant| variant.exact));
    }

    #[test]
    fn every_branch_is_taken_once() {
        assert_eq!(
            texts("{{ if dev }}a{{ else }}b{{ end }}{{ if prod }}c{{ end }}"),
            ["ac", "b"]
        );
        assert_eq!(
            texts("{{ if .a }}1{{ else if .b }}2{{ else if .c }}3{{ else }}4{{ end }}"),
            ["1", "2", "3", "4"]
        );
        assert_eq!(
            texts("{{ if .a }}{{ if .b }}1{{ else }}2{{ end }}{{ else }}3{{ end }}"),
            ["1", "3", "2"]
        );
    }

    #[test]
    fn variants_with_an_incremental_branch_are_marked() {
        let marks: Vec<_> = rendered("{{ if incremental }}a{{ end }}")
            .into_iter()
            .map(|v| (v.text, v.incremental))
            .collect();
        assert_eq!(marks, [("a".to_owned(), true), (String::new(), false)]);
    }

    #[test]
    fn a_place_in_the_rendering_is_a_place_in_the_template() {
        let text = "é {{ ref \"b\" -}}  x = = y";
        let variants = rendered(text);
        let variant = variants.first().expect("one");
        let at = variant.text.chars().position(|c| c == '=').expect("a sign");
        assert_eq!(text.get(variant.origin(text, at)..), Some("= = y"));
    }
}
