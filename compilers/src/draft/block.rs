//! Pieces of SQL: what is to be parsed, and what templates in them mean.

use super::{Purpose, SqlBlock, Statement, context::Context, place::TextPlace, uses::Uses};
use crate::{
    diagnostics::{At, Code, Findings},
    template::{Facts, Template, Variant, is_template, variants},
    text::{Span, Text},
};

/// Reads a template; a finding where it is none.
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
            findings.add(
                place.at(span),
                Code::TemplateSyntax,
                format!("template: {}", error.message),
            );
            None
        }
    }
}

/// Makes a block of a text; a template's facts are added to `uses`.
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
            statements,
        });
    }
    let template = read_template(text, &place, findings)?;
    let facts = Facts::of(&template);
    let looks_at_itself = matches!(purpose, Purpose::State | Purpose::Test);
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
        statements,
    })
}

/// The 1-based line span of a whole text's first line, for findings about the text as such.
pub(crate) fn first_line(text: &str, place: &TextPlace) -> At {
    let line = text.lines().next().unwrap_or_default();
    place.at(Text::new(text).span(0..line.len()))
}
