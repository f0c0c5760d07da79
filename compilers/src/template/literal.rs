//! SQL rendered for a viewer and a call: what either gives is a value, never SQL.
//!
//! Each action that reads the viewer's attributes or arguments is executed to its value, for which a mark stands in the text. When
//! all branches are taken the text is read once, as the engine would, and each mark becomes what fits its place: within
//! single quotes the escaped text, elsewhere a literal or a list. An argument that is a number or a word stays as it is
//! outside quotes, since authors let callers choose columns and directions; other text is refused there. What is missing
//! makes the whole literal NULL in which it stands.

mod value;

use std::sync::{Arc, Mutex, PoisonError};

use gotmpl::parse::{CommandNode, Expr, ListNode, Node, PipeNode};
use gotmpl::{TemplateError, Value};

use super::execute::{data, project_functions};
use super::functions::pure;
use super::scope::{RenderError, Scope};
use super::{Facts, Template, values};
use value::{argument, literal};

/// Begins and ends a mark. A character of private use, which no text of a rule may hold.
const MARK: char = '\u{F8FF}';
/// The function that puts a value aside and writes its mark.
const VALUE: &str = "_watershed_literal";
/// The same for an argument of a call.
const ARGUMENT: &str = "_watershed_argument";
/// The function that writes a value as it is, for what is not about the viewer.
const TEXT: &str = "_watershed_text";
/// A value that stands for a mark, and the one who gave it.
struct Given {
    value: Value,
    is_argument: bool,
}

/// The name that the template itself is called by.
const BODY: &str = "_watershed_rule";
/// The steps that all loops of one rule may take together.
const MAX_STEPS: u64 = 10_000;

/// Renders SQL for the viewer and the arguments of `scope`. Neither can change how it is read, whatever they hold.
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
    let template = Template::read(text).map_err(|error| RenderError {
        message: error.message,
        hint: None,
        line: error.line,
    })?;
    for name in Facts::from_template(&template).variables.keys() {
        if !scope
            .variables
            .keys()
            .any(|known| known.eq_ignore_ascii_case(name))
        {
            return Err(refused(&format!("variable \"{name}\" is not set")));
        }
    }
    let (marked, found) = execute(&template, scope).map_err(|error| refused(&error.to_string()))?;
    place(&marked, &found)
}

fn refused(message: &str) -> RenderError {
    RenderError {
        message: message.to_owned(),
        hint: None,
        line: 1,
    }
}

/// Executes a template whose actions write marks. Returns the text and the values that its marks number.
fn execute(template: &Template, scope: &Scope) -> Result<(String, Vec<Given>), TemplateError> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let mut functions = project_functions(scope);
    for (name, is_argument) in [(VALUE, false), (ARGUMENT, true)] {
        let kept = Arc::clone(&found);
        let put_aside = move |arguments: &[Value]| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let value = arguments.last().cloned().unwrap_or(Value::Nil);
            kept.push(Given { value, is_argument });
            Ok(format!("{MARK}{}{MARK}", kept.len() - 1).into())
        };
        functions.insert(name.to_owned(), Arc::new(put_aside));
    }
    functions.insert(TEXT.to_owned(), Arc::new(written));
    let caller = format!("{{{{ template \"{BODY}\" . }}}}");
    let mut executed = gotmpl::Template::new("rule")
        .max_range_iters(MAX_STEPS)
        .funcs(pure())
        .funcs(functions)
        .parse(&caller)?;
    executed = executed.add_parse_tree(BODY, marking(&template.body, scope, false));
    for (name, body) in &template.defines {
        // What is passed to a template may be the viewer or one of the attributes.
        executed = executed.add_parse_tree(name, marking(body, scope, true));
    }
    let text = executed.execute_to_string(&data(scope))?;
    drop(executed);
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((text, std::mem::take(&mut *found)))
}

/// Writes a value of the project's. Marks in it would be taken for the viewer's.
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

/// Returns a list of nodes whose actions write marks; `inner` where the dot is not the whole scope.
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

/// Ends a pipeline with the function that writes its value.
fn mark(pipe: &mut PipeNode, scope: &Scope, inner: bool) {
    let pos = pipe.pos;
    let call = |name: &str| CommandNode {
        pos,
        args: vec![Expr::Identifier(pos, name.into())],
    };
    if !reads_viewer(pipe, inner) || writes_literals(pipe) {
        pipe.commands.push(call(TEXT));
        return;
    }
    let mut call = call(match reads_arguments_alone(pipe) {
        true => ARGUMENT,
        false => VALUE,
    });
    if reads_missing(pipe, scope) && !has_fallback(pipe) {
        call.args.push(Expr::Nil(pos));
        pipe.commands = vec![call];
        return;
    }
    pipe.commands.push(call);
}

/// Returns true if a pipeline reads nothing but arguments of the call by their names, and constants.
fn reads_arguments_alone(pipe: &PipeNode) -> bool {
    expressions(pipe).all(|expression| match expression {
        Expr::Field(_, path) => path.first().is_some_and(|name| name.as_str() == "args"),
        Expr::Dot(_) | Expr::Variable(..) | Expr::Chain(..) => false,
        _ => true,
    })
}

/// Returns true unless nothing in a pipeline can come from the viewer or the caller: variables and moved dots may.
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

/// Returns true if the last function writes literals itself.
fn writes_literals(pipe: &PipeNode) -> bool {
    let function = pipe.commands.last().and_then(|command| command.args.first());
    matches!(function, Some(Expr::Identifier(_, name)) if name.as_str() == "as_sql_list")
}

/// Returns true if a pipeline reads an attribute that the viewer does not have, or an argument that was not given.
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

/// Returns true if the author says what stands for a missing attribute.
pub(super) fn has_fallback(pipe: &PipeNode) -> bool {
    expressions(pipe).any(|expression| {
        matches!(expression, Expr::Identifier(_, name) if matches!(name.as_str(), "default" | "coalesce"))
    })
}

/// Lists the expressions of a pipeline, those of nested ones included.
fn expressions(pipe: &PipeNode) -> Box<dyn Iterator<Item = &Expr> + '_> {
    let arguments = pipe.commands.iter().flat_map(|command| &command.args);
    Box::new(arguments.flat_map(|expression| match expression {
        Expr::Pipe(_, nested) => expressions(nested),
        other => Box::new(std::iter::once(other)) as Box<dyn Iterator<Item = &Expr>>,
    }))
}

/// A stretch of SQL as the engine reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stretch {
    Plain,
    /// Within single quotes; the number of bytes of the result before the opening one.
    Quoted(usize),
    /// No value can stand there: a name in double quotes, a comment, a text with escapes or in dollars.
    Closed(Closed),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closed {
    Name,
    Escapes,
    Line,
    /// Comments nest: the number that are open.
    Block(u32),
    Dollars,
}

/// Puts values in the places of their marks.
fn place(marked: &str, found: &[Given]) -> Result<String, RenderError> {
    let mut out = String::with_capacity(marked.len());
    let mut stretch = Stretch::Plain;
    // The literal that is being read stands for NULL.
    let mut absent = false;
    let mut rest = marked;
    while let Some(c) = rest.chars().next() {
        if c == MARK {
            let (value, after) = taken(rest, found)?;
            rest = after;
            match stretch {
                Stretch::Plain if value.is_argument => argument(&mut out, &value.value, rest)?,
                Stretch::Plain => literal(&mut out, &value.value, rest)?,
                Stretch::Quoted(_) => match &value.value {
                    Value::Nil => absent = true,
                    Value::List(_) | Value::Map(_) | Value::Function(_) => {
                        return Err(refused(
                            "a list can't stand within quotes: write it without them, as in `x IN ({{ .user.groups }})`",
                        ));
                    }
                    value => out.push_str(&values::text(value).replace('\'', "''").replace('\0', "")),
                },
                Stretch::Closed(_) => {
                    return Err(refused(
                        "a value stands alone or within single quotes, not in a name, a comment or another form of text",
                    ));
                }
            }
            continue;
        }
        let (next, length) = step(stretch, rest, &out);
        let (read, after) = rest.split_at(length);
        out.push_str(read);
        rest = after;
        if let (Stretch::Quoted(begin), Stretch::Plain, true) = (stretch, next, absent) {
            out.truncate(begin);
            out.push_str("NULL");
            absent = false;
        }
        stretch = next;
    }
    Ok(out)
}

/// Takes a mark off a text that begins with it.
fn taken<'t, 'v>(text: &'t str, found: &'v [Given]) -> Result<(&'v Given, &'t str), RenderError> {
    let mut parts = text.splitn(3, MARK);
    let (_, number, after) = (parts.next(), parts.next(), parts.next());
    let value = number
        .and_then(|number| number.parse::<usize>().ok())
        .and_then(|number| found.get(number));
    match (value, after) {
        (Some(value), Some(after)) => Ok((value, after)),
        _ => Err(refused("a value was changed after it was written")),
    }
}

/// Returns the stretch after the next token of a text and the token's length in bytes. `before` is what came before it.
fn step(stretch: Stretch, text: &str, before: &str) -> (Stretch, usize) {
    let first = text.chars().next().map_or(1, char::len_utf8);
    let starts = |with: &str| text.starts_with(with);
    match stretch {
        Stretch::Plain if starts("'") => match before.ends_with(['e', 'E']) && is_prefix(before) {
            true => (Stretch::Closed(Closed::Escapes), 1),
            false => (Stretch::Quoted(before.len()), 1),
        },
        Stretch::Plain if starts("\"") => (Stretch::Closed(Closed::Name), 1),
        Stretch::Plain if starts("--") => (Stretch::Closed(Closed::Line), 2),
        Stretch::Plain if starts("/*") => (Stretch::Closed(Closed::Block(1)), 2),
        // Which tag ends it is not followed: nothing of the viewer's stands behind a dollar.
        Stretch::Plain if starts("$") => (Stretch::Closed(Closed::Dollars), 1),
        Stretch::Plain => (Stretch::Plain, first),
        Stretch::Quoted(_) if starts("''") => (stretch, 2),
        Stretch::Quoted(_) if starts("'") => (Stretch::Plain, 1),
        Stretch::Closed(Closed::Name) if starts("\"\"") => (stretch, 2),
        Stretch::Closed(Closed::Name) if starts("\"") => (Stretch::Plain, 1),
        Stretch::Closed(Closed::Escapes) if starts("\\") => {
            let second = text.chars().nth(1).map_or(0, char::len_utf8);
            (
                stretch,
                first
                    + if second == 0 || text[first..].starts_with(MARK) {
                        0
                    } else {
                        second
                    },
            )
        }
        Stretch::Closed(Closed::Escapes) if starts("''") => (stretch, 2),
        Stretch::Closed(Closed::Escapes) if starts("'") => (Stretch::Plain, 1),
        Stretch::Closed(Closed::Line) if starts("\n") => (Stretch::Plain, 1),
        Stretch::Closed(Closed::Block(open)) if starts("/*") => (Stretch::Closed(Closed::Block(open + 1)), 2),
        Stretch::Closed(Closed::Block(1)) if starts("*/") => (Stretch::Plain, 2),
        Stretch::Closed(Closed::Block(open)) if starts("*/") => (Stretch::Closed(Closed::Block(open - 1)), 2),
        Stretch::Quoted(_) | Stretch::Closed(_) => (stretch, first),
    }
}

/// Returns true if the last letter of a text is a word of its own: the prefix of a text with escapes.
fn is_prefix(text: &str) -> bool {
    let before = text.chars().rev().nth(1);
    before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use watershed_proto::Value;

    use super::*;

    fn scope() -> Scope {
        let groups = Value::from(vec![Value::from("a'b"), Value::from("c")]);
        let user = [
            ("email", Value::from("o'neil@example.org")),
            ("domain", Value::from("example.org")),
            ("groups", groups),
            ("none", Value::from(Vec::<Value>::new())),
            ("admin", Value::from(false)),
            ("tenant", Value::from(-5_i64)),
            ("hostile", Value::from("' OR true --")),
            ("escape", Value::from("\\' OR true --")),
        ];
        let args = [
            ("limit", Value::from("10")),
            ("column", Value::from("carrier")),
            ("day", Value::from("2024-01-01' OR true --")),
            ("codes", Value::from(vec![Value::from("a'b"), Value::from("c")])),
            ("count", Value::from(3_i64)),
        ];
        Scope {
            variables: BTreeMap::from([("table".to_owned(), "t".to_owned())]),
            args: args.map(|(name, value)| (name.to_owned(), value)).into(),
            user: user.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Scope::default()
        }
    }

    fn rendered(text: &str) -> String {
        render_rule(text, &scope()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    #[test]
    fn arguments_are_values_but_for_words_and_numbers_alone() {
        for (text, written) in [
            ("x LIMIT {{ .args.limit }}", "x LIMIT 10"),
            ("ORDER BY {{ .args.column }} DESC", "ORDER BY carrier DESC"),
            ("d = '{{ .args.day }}'", "d = '2024-01-01'' OR true --'"),
            ("c IN ({{ .args.codes }})", "c IN ('a''b', 'c')"),
            ("n = {{ .args.count }}", "n = 3"),
            ("n = {{ .args.gone }}", "n = NULL"),
            ("n = '{{ .args.gone }}'", "n = NULL"),
            ("n = {{ .args.gone | default 5 }}", "n = 5"),
            ("{{ if .args.limit }}LIMIT {{ .args.limit }}{{ end }}", "LIMIT 10"),
            ("{{ with .args.column }}x = {{ . }}{{ end }}", "x = 'carrier'"),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
        for text in [
            "d = {{ .args.day }}",
            "d = \"{{ .args.column }}\"",
            "-- {{ .args.limit }}",
        ] {
            assert!(render_rule(text, &scope()).is_err(), "{text}");
        }
    }

    #[test]
    fn attributes_are_written_as_their_places_ask() {
        for (text, written) in [
            ("'{{ .user.email }}' = x", "'o''neil@example.org' = x"),
            ("x = {{ .user.email }}", "x = 'o''neil@example.org'"),
            ("x LIKE '%@{{ .user.domain }}'", "x LIKE '%@example.org'"),
            ("x IN ({{ .user.groups }})", "x IN ('a''b', 'c')"),
            ("x NOT IN ( {{ .user.none }} )", "x NOT IN ( NULL )"),
            (
                "list_contains({{ .user.groups }}, x)",
                "list_contains(['a''b', 'c'], x)",
            ),
            ("x in ({{ as_sql_list .user.groups }})", "x in ('a''b', 'c')"),
            ("{{ .user.admin }}", "false"),
            ("3{{ .user.tenant }}", "3 (-5)"),
            ("a = {{ .env.table }}.a", "a = t.a"),
            (
                "{{ if .user.admin }}true{{ else }}d = '{{ .user.domain }}'{{ end }}",
                "d = 'example.org'",
            ),
            ("{{ with .user }}d = {{ .domain }}{{ end }}", "d = 'example.org'"),
            (
                "{{ $d := .user.domain }}d = {{ $d | upper }}",
                "d = 'EXAMPLE.ORG'",
            ),
            (
                "false{{ range .user.groups }} OR g = '{{ . }}'{{ end }}",
                "false OR g = 'a''b' OR g = 'c'",
            ),
            (
                "{{ define \"d\" }}'{{ . }}'{{ end }}x = {{ template \"d\" .user.domain }}",
                "x = 'example.org'",
            ),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn a_missing_attribute_makes_its_literal_null() {
        for (text, written) in [
            ("x = {{ .user.nope }}", "x = NULL"),
            ("x = 'a-{{ .user.nope }}-b'", "x = NULL"),
            (
                "x = '{{ .user.nope | upper }}' AND y = 'it''s'",
                "x = NULL AND y = 'it''s'",
            ),
            ("x = {{ .user.nope | default \"d\" }}", "x = 'd'"),
            ("x IN ({{ .user.nope }})", "x IN (NULL)"),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn hostile_attributes_stay_values() {
        for (text, written) in [
            ("x = '{{ .user.hostile }}'", "x = ''' OR true --'"),
            ("x = {{ .user.hostile }}", "x = ''' OR true --'"),
            ("x = e{{ .user.escape }}", "x = e '\\'' OR true --'"),
            ("x = {{ .user.hostile }}--", "x = ''' OR true --'--"),
            ("x = {{ .user.hostile }}y", "x = ''' OR true --' y"),
            ("x = 'a'{{ .user.hostile }}", "x = 'a' ''' OR true --'"),
            (
                "x = {{ .user.domain }}{{ .user.hostile }}",
                "x = 'example.org' ''' OR true --'",
            ),
        ] {
            assert_eq!(rendered(text), written, "{text}");
        }
    }

    #[test]
    fn attributes_stand_only_where_a_value_can() {
        for text in [
            "x = e'{{ .user.escape }}'",
            "x = E'\\{{ .user.escape }}'",
            "\"{{ .user.hostile }}\" = 1",
            "1 = 1 -- {{ .user.hostile }}",
            "1 /* {{ .user.hostile }} */ = 1",
            "1 /* /* */ {{ .user.hostile }} */ = 1",
            "x = $${{ .user.hostile }}$$",
            "x = '{{ .user.groups }}'",
            "x = {{ .user }}",
            "x = {{ .env.nope }}",
            "x = {{ .user.hostile | nope }}",
            "\u{F8FF}0\u{F8FF} = {{ .user.admin }}",
        ] {
            assert!(render_rule(text, &scope()).is_err(), "{text}");
        }
    }
}
