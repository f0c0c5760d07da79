//! Marks for the values of a run: partitions and states.

use gotmpl::parse::{CommandNode, Expr, ListNode, Node, PipeNode};

use super::call;
use crate::template::Template;
use crate::template::given::{Dots, Origin, Origins};

/// The name of the function that marks a value.
pub(super) const VALUE: &str = "_watershed_value_of_run";
/// The name of the function that marks a value in single quotes.
pub(super) const QUOTED: &str = "_watershed_quoted";
/// The name of the function that marks a value in double quotes.
pub(super) const NAMED: &str = "_watershed_named";
/// The name of the function that marks the items of a list.
pub(super) const ITEMS: &str = "_watershed_items";
/// The name of the function that marks the items of a list, joined by the author's separator.
pub(super) const JOINED: &str = "_watershed_joined";

/// Returns a template whose actions write marks for values of a run; none if no action yields one.
pub(super) fn marked(template: &Template) -> Option<Template> {
    let mut marking = Marking {
        origins: Origins::of(template),
        found: false,
    };
    let body = marking.list(&template.body, Dots::both(Origin::SCOPE));
    let defines = template.defines.iter().map(|(name, body)| {
        let dots = Dots::both(marking.origins.of_called(name));
        (name.clone(), marking.list(body, dots))
    });
    let defines = defines.collect();
    marking.found.then_some(Template { body, defines })
}

struct Marking {
    origins: Origins,
    found: bool,
}

impl Marking {
    fn list(&mut self, list: &ListNode, dots: Dots) -> ListNode {
        let nodes = list.nodes.iter().map(|node| self.node(node, dots));
        ListNode {
            nodes: nodes.collect(),
            pos: list.pos,
        }
    }

    fn node(&mut self, node: &Node, dots: Dots) -> Node {
        match node {
            Node::List(list) => Node::List(self.list(list, dots)),
            Node::Action(action)
                if action.pipe.decl.is_empty() && self.origins.of_pipe(&action.pipe, dots).may_be_given() =>
            {
                self.found = true;
                let mut action = action.clone();
                self.mark(&mut action.pipe, dots);
                Node::Action(action)
            }
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                let inside = self.origins.inside(node, dots);
                let mut marked = branch.clone();
                marked.body = self.list(&branch.body, inside);
                marked.else_body = branch.else_body.as_ref().map(|body| self.list(body, dots));
                match node {
                    Node::With(_) => Node::With(marked),
                    Node::Range(_) => Node::Range(marked),
                    _ => Node::If(marked),
                }
            }
            other => other.clone(),
        }
    }

    /// Makes a pipeline write a mark. Quoting functions at its end are replaced by those of marks.
    fn mark(&self, pipe: &mut PipeNode, dots: Dots) {
        leave_out_escapes(pipe);
        for (function, with_quotes) in [("squote", QUOTED), ("quote", NAMED), ("as_sql_list", ITEMS)] {
            if takes_last(pipe, function) {
                pipe.commands.push(call(pipe, with_quotes));
                return;
            }
        }
        let last = pipe.commands.last_mut();
        match last.map_or(&mut [][..], |last| last.args.as_mut_slice()) {
            [Expr::Identifier(_, name), Expr::String(..), ..] if name == "join" => *name = JOINED.into(),
            [Expr::Identifier(_, name), arguments @ ..] if only_joins_texts(name, arguments) => {
                self.mark_arguments(pipe, dots);
            }
            _ => pipe.commands.push(call(pipe, VALUE)),
        }
    }

    /// Makes the arguments of a pipeline's last call write marks, as the text between them is the author's.
    fn mark_arguments(&self, pipe: &mut PipeNode, dots: Dots) {
        let Some(mut last) = pipe.commands.pop() else {
            return;
        };
        if !pipe.commands.is_empty() {
            let before = std::mem::take(&mut pipe.commands);
            last.args.push(Expr::Pipe(pipe.pos, of_commands(pipe, before)));
        }
        for argument in last.args.iter_mut().skip(1) {
            if !self.origins.of_expression(argument, dots).may_be_given() {
                continue;
            }
            let mut inner = match std::mem::replace(argument, Expr::Nil(pipe.pos)) {
                Expr::Pipe(_, inner) => inner,
                value => {
                    let (pos, args) = (pipe.pos, vec![value]);
                    of_commands(pipe, vec![CommandNode { pos, args }])
                }
            };
            self.mark(&mut inner, dots);
            *argument = Expr::Pipe(pipe.pos, inner);
        }
        pipe.commands.push(last);
    }
}

/// Returns a pipeline of commands, at the position of another pipeline.
fn of_commands(at: &PipeNode, commands: Vec<CommandNode>) -> PipeNode {
    PipeNode {
        pos: at.pos,
        decl: Vec::new(),
        commands,
        is_assign: false,
    }
}

/// Returns true if a call concatenates its arguments unchanged.
fn only_joins_texts(function: &str, arguments: &[Expr]) -> bool {
    match (function, arguments) {
        ("printf", [Expr::String(_, format), ..]) => {
            let mut verbs = format.split('%').skip(1);
            // `%%` is an empty piece, and what comes after it is plain.
            let mut is_plain = true;
            while let Some(verb) = verbs.next() {
                match verb.chars().next() {
                    Some('s' | 'v') => {}
                    None => drop(verbs.next()),
                    Some(_) => is_plain = false,
                }
            }
            is_plain
        }
        // Between values that are no texts it writes blanks, between marks it does not.
        ("print", all) => all.iter().any(|one| matches!(one, Expr::String(..))),
        _ => false,
    }
}

/// Removes a function at the end of a pipeline if what precedes is its only argument; returns true if it did.
fn takes_last(pipe: &mut PipeNode, function: &str) -> bool {
    let alone = pipe.commands.len() == 1;
    let Some(last) = pipe.commands.last_mut() else {
        return false;
    };
    match (last.args.as_slice(), alone) {
        ([Expr::Identifier(_, name)], false) if name == function => {
            pipe.commands.pop();
            true
        }
        ([Expr::Identifier(_, name), _], true) if name == function => {
            last.args.remove(0);
            true
        }
        _ => false,
    }
}

/// Removes calls of `replace "'" "''"`, as quotes are doubled again when the value is inserted.
fn leave_out_escapes(pipe: &mut PipeNode) {
    let is_escape = |args: &[Expr]| match args {
        [
            Expr::Identifier(_, name),
            Expr::String(_, from),
            Expr::String(_, to),
            ..,
        ] => name == "replace" && **from == *"'" && **to == *"''",
        _ => false,
    };
    let mut index = 0;
    pipe.commands.retain(|command| {
        index += 1;
        index == 1 || command.args.len() != 3 || !is_escape(&command.args)
    });
    for command in &mut pipe.commands {
        if command.args.len() == 4 && is_escape(&command.args) {
            command.args.drain(..3);
        }
        for argument in &mut command.args {
            if let Expr::Pipe(_, inner) = argument {
                leave_out_escapes(inner);
            }
        }
    }
}
