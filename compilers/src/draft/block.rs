//! Blocks of SQL: the statements to be parsed, with their templates expanded.

use super::{Purpose, SqlBlock, Statement, context::Context, habits, place::TextPlace, uses::Uses};
use crate::{
    diagnostics::{At, Code, Finding, Findings},
    resource::Kind,
    template::{Facts, Scope, Template, Variant, is_template, render_rule, variants},
    text::{Span, Text},
    yaml::Node,
};

/// Parses a template; reports a syntax error and returns none.
pub(crate) fn read_template(text: &str, place: &TextPlace, findings: &mut Findings) -> Option<Template> {
    match Template::read(text) {
        Ok(template) => Some(template),
        Err(error) => {
            let (line, column) = (error.line, error.column);
            let span = Span {
                line,
                column,
                end_line: line,
                end_column: column + 1,
            };
            findings.push(Finding {
                at: place.at(span),
                code: Code::TemplateSyntax,
                message: format!("template: {}", error.message),
                hint: habits::hint(text).or_else(|| habits::hint_for_braces(&error.message)),
                related: Vec::new(),
            });
            None
        }
    }
}

/// Makes a block of SQL from a text; facts about its template are added to `uses`.
pub(crate) fn block(
    purpose: Purpose,
    text: &str,
    place: TextPlace,
    (engine, templating): (bool, bool),
    context: &Context<'_>,
    uses: &mut Uses,
    findings: &mut Findings,
) -> Option<SqlBlock> {
    let engine = engine && purpose != Purpose::Around;
    if !(templating && is_template(text)) {
        let statements = if engine {
            vec![Statement {
                text: text.to_owned(),
                variant: None,
            }]
        } else {
            Vec::new()
        };
        return Some(SqlBlock {
            purpose,
            text: text.to_owned(),
            place,
            tables: Kind::Model,
            prefix: "",
            statements,
        });
    }
    let template = read_template(text, &place, findings)?;
    let facts = Facts::from_template(&template);
    let looks_at_itself = matches!(purpose, Purpose::State | Purpose::Test | Purpose::UnitTest);
    uses.add(&facts, text, &place, looks_at_itself, context, findings);
    let statements = if engine {
        let variants = variants(&template, text, context.variables);
        let blank = |variant: &Variant| variant.text.trim().is_empty();
        variants
            .into_iter()
            .filter(|variant| !blank(variant))
            .map(|variant| Statement {
                text: variant.text.clone(),
                variant: Some(variant),
            })
            .collect()
    } else {
        Vec::new()
    };
    Some(SqlBlock {
        purpose,
        text: text.to_owned(),
        place,
        tables: Kind::Model,
        prefix: "",
        statements,
    })
}

/// Makes a statement from a condition, for the engine's parser. A template is rendered for a made-up user; none if it
/// needs values that only a run knows.
pub(crate) fn condition(node: &Node, templating: bool, context: &Context<'_>) -> Option<SqlBlock> {
    const PREFIX: &str = "SELECT 1 WHERE ";
    let text = node.scalar_text()?.trim().to_owned();
    let is_template = templating && is_template(&text);
    let rendered = if is_template {
        let scope = Scope {
            environment: context.environment.to_owned(),
            variables: context.variables.clone(),
            user: Scope::made_up_user(),
            ..Scope::default()
        };
        render_rule(&text, &scope).ok()?
    } else {
        text.clone()
    };
    if rendered.trim().is_empty() {
        return None;
    }
    let place = TextPlace::from_node(node);
    Some(SqlBlock {
        purpose: Purpose::Condition,
        place: if is_template { place.whole(node) } else { place },
        text,
        tables: Kind::Model,
        prefix: PREFIX,
        statements: vec![Statement {
            text: format!("{PREFIX}{rendered}"),
            variant: None,
        }],
    })
}

/// Returns the span of a text's first line, for findings about the text as a whole.
pub(crate) fn first_line(text: &str, place: &TextPlace) -> At {
    let line = text.lines().next().unwrap_or_default();
    place.at(Text::new(text).span(0..line.len()))
}
