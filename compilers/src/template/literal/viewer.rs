//! Marks for the values of a viewer and of an API's call.

use gotmpl::parse::{Expr, ListNode, Node, PipeNode};

use super::{TEXT, call};
use crate::template::{Scope, Template};

/// The name of the function that marks an attribute of the viewer.
pub(super) const ATTRIBUTE: &str = "_watershed_literal";
/// The name of the function that marks an argument of a call.
pub(super) const ARGUMENT: &str = "_watershed_argument";

/// Returns a template whose actions write marks where they may read the viewer or the arguments.
pub(super) fn marked(template: &Template, scope: &Scope) -> Template {
    let defines = template.defines.iter();
    Template {
        body: marking(&template.body, scope, false),
        // What is passed to a template may be the viewer or one of the attributes.
        defines: defines
            .map(|(name, body)| (name.clone(), marking(body, scope, true)))
            .collect(),
    }
}

/// Returns nodes whose actions write marks; `inner` is true if the dot is not the whole scope.
fn marking(list: &ListNode, scope: &Scope, inner: bool) -> ListNode {
    let node = |node: &Node| match node {
        Node::List(list) => Node::List(marking(list, scope, inner)),
        Node::Action(action) if action.pipe.decl.is_empty() => {
            let mut action = action.clone();
            mark(&mut action.pipe, scope, inner);
            Node::Action(action)
        }
        Node::If(branch) | Node::Range(branch) | Node::With(branch) => {
            let inner = inner || !matches!(node, Node::If(_));
            let mut branch = branch.clone();
            branch.body = marking(&branch.body, scope, inner);
            branch.else_body = branch.else_body.map(|body| marking(&body, scope, inner));
            match node {
                Node::If(_) => Node::If(branch),
                Node::Range(_) => Node::Range(branch),
                _ => Node::With(branch),
            }
        }
        other => other.clone(),
    };
    ListNode {
        pos: list.pos,
        nodes: list.nodes.iter().map(node).collect(),
    }
}

/// Ends a pipeline with the function that writes or marks its value.
fn mark(pipe: &mut PipeNode, scope: &Scope, inner: bool) {
    if !reads_viewer(pipe, inner) || writes_literals(pipe) {
        pipe.commands.push(call(pipe, TEXT));
        return;
    }
    let function = match reads_arguments_alone(pipe) {
        true => ARGUMENT,
        false => ATTRIBUTE,
    };
    let mut call = call(pipe, function);
    if reads_missing(pipe, scope) && !has_fallback(pipe) {
        call.args.push(Expr::Nil(pipe.pos));
        pipe.commands = vec![call];
        return;
    }
    pipe.commands.push(call);
}

/// Returns true if a pipeline reads only constants and named arguments of the call.
fn reads_arguments_alone(pipe: &PipeNode) -> bool {
    expressions(pipe).all(|expression| match expression {
        Expr::Field(_, path) => path.first().is_some_and(|name| name.as_str() == "args"),
        Expr::Dot(_) | Expr::Variable(..) | Expr::Chain(..) => false,
        _ => true,
    })
}

/// Returns true if a value in a pipeline may come from the viewer or the caller, as variables and moved dots may.
fn reads_viewer(pipe: &PipeNode, inner: bool) -> bool {
    expressions(pipe).any(|expression| match expression {
        Expr::Field(_, path) => {
            inner
                || path
                    .first()
                    .is_none_or(|name| matches!(name.as_str(), "user" | "args"))
        }
        Expr::Dot(_) | Expr::Variable(..) | Expr::Chain(..) => true,
        _ => false,
    })
}

/// Returns true if the last function of a pipeline writes literals itself.
fn writes_literals(pipe: &PipeNode) -> bool {
    let function = pipe.commands.last().and_then(|command| command.args.first());
    matches!(function, Some(Expr::Identifier(_, name)) if name.as_str() == "as_sql_list")
}

/// Returns true if a pipeline reads an attribute that the viewer lacks, or an argument that was not given.
fn reads_missing(pipe: &PipeNode, scope: &Scope) -> bool {
    expressions(pipe).any(|expression| match expression {
        Expr::Field(_, path) => match path.as_slice() {
            [of, name, ..] => match of.as_str() {
                "user" => !scope.user.contains_key(name.as_str()),
                "args" => !scope.args.contains_key(name.as_str()),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    })
}

/// Returns true if a pipeline has a fallback for a missing value (`default` or `coalesce`).
pub(in crate::template) fn has_fallback(pipe: &PipeNode) -> bool {
    expressions(pipe).any(|expression| {
        matches!(expression, Expr::Identifier(_, name) if matches!(name.as_str(), "default" | "coalesce"))
    })
}

/// Lists the expressions of a pipeline, including nested ones.
fn expressions(pipe: &PipeNode) -> Box<dyn Iterator<Item = &Expr> + '_> {
    let arguments = pipe.commands.iter().flat_map(|command| &command.args);
    Box::new(arguments.flat_map(|expression| match expression {
        Expr::Pipe(_, nested) => expressions(nested),
        other => Box::new(std::iter::once(other)) as Box<dyn Iterator<Item = &Expr>>,
    }))
}
