//! Hints: suggested fixes for people, in which operations and options are marked.
//!
//! A hint is a text in which [`operation`] and [`option`] have written down what they mean in one fixed form: the command
//! line shows it as it is, for it is a command there; a browser asks for [`Hint::parts`] and makes a button of it. Catalogs and
//! documents keep the text alone, so a hint that an older version stored is read in the same way.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name of the program, as commands in hints begin with it.
const PROGRAM: &str = "watershed";

/// A suggested fix for a problem.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hint(String);

/// A piece of a hint: words, an operation or an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Words that are shown as they are.
    Text(&'a str),
    /// An operation with its arguments.
    Operation {
        /// Name of the operation.
        name: &'a str,
        /// Arguments of the operation; a word in capitals is a placeholder.
        arguments: Vec<&'a str>,
    },
    /// An option with its value.
    Option {
        /// Name of the option, without dashes.
        name: &'a str,
        /// Value of the option; empty if it takes none.
        value: &'a str,
    },
}

/// Returns an operation in the form in which a hint's text holds it: a command in backticks.
pub fn operation<'a>(name: &str, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = format!("`{PROGRAM} {name}");
    for argument in arguments {
        text.push(' ');
        text.push_str(argument);
    }
    text.push('`');
    text
}

/// Returns an operation with options in the form in which a hint's text holds it. The value of an option may be empty.
pub fn operation_with<'a>(
    name: &str,
    arguments: impl IntoIterator<Item = &'a str>,
    options: &[(&str, &str)],
) -> String {
    let mut text = operation(name, arguments);
    text.pop();
    for (name, value) in options {
        text.push_str(" --");
        text.push_str(name);
        text.push_str(if value.is_empty() { "" } else { " " });
        text.push_str(value);
    }
    text.push('`');
    text
}

/// Returns an option in the form in which a hint's text holds it. `value` is empty if it takes none.
pub fn option(name: &str, value: &str) -> String {
    match value {
        "" => format!("`--{name}`"),
        value => format!("`--{name} {value}`"),
    }
}

/// Returns the hint for a project that needs something outside its sandbox.
pub fn without_sandbox() -> String {
    format!("run a project that you trust without {}", option("sandbox", ""))
}

impl Hint {
    /// Returns the text of the hint, in which operations and options are commands of the program.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Splits the text into words, operations and options.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let text = self.as_str();
        let find = |from: usize| text[from..].find('`').map(|index| from + index);
        let (mut parts, mut plain, mut next) = (Vec::new(), 0, 0);
        while let Some(open) = find(next)
            && let Some(close) = find(open + 1)
        {
            if let Some(part) = quoted(&text[open + 1..close]) {
                push_text(&mut parts, &text[plain..open]);
                parts.push(part);
                plain = close + 1;
            }
            next = close + 1;
        }
        push_text(&mut parts, &text[plain..]);
        parts
    }
}

fn push_text<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

/// Parses the text between backticks; none if it is neither an operation nor an option.
fn quoted(piece: &str) -> Option<Part<'_>> {
    if let Some(option) = piece.strip_prefix("--") {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        return Some(Part::Option { name, value });
    }
    let mut words = piece.strip_prefix(PROGRAM)?.strip_prefix(' ')?.split(' ');
    Some(Part::Operation {
        name: words.next()?,
        arguments: words.collect(),
    })
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_options_are_told_from_the_words_around_them() {
        let hint = Hint::from(format!(
            "make room; {} gives some back, {} keeps `state` elsewhere",
            operation("gc", []),
            option("state-dir", "DIR")
        ));
        let expected = vec![
            Part::Text("make room; "),
            Part::Operation {
                name: "gc",
                arguments: Vec::new(),
            },
            Part::Text(" gives some back, "),
            Part::Option {
                name: "state-dir",
                value: "DIR",
            },
            Part::Text(" keeps `state` elsewhere"),
        ];
        assert_eq!(hint.parts(), expected);
        let alone = Hint::from(operation_with("refresh", ["daily"], &[("full", "")]));
        let Part::Operation { name, arguments } = &alone.parts()[0] else {
            panic!("{alone}");
        };
        assert_eq!(
            (*name, arguments.as_slice()),
            ("refresh", ["daily", "--full"].as_slice())
        );
    }

    #[test]
    fn a_text_without_them_is_words_and_nothing_is_lost() {
        for text in [
            "",
            "`",
            "``",
            "a `b` c",
            "an odd ` one",
            "`watershed",
            "`--full",
            "é `watershedding` `é`",
        ] {
            let hint = Hint::from(text);
            let told: String = hint
                .parts()
                .iter()
                .map(|part| match part {
                    Part::Text(text) => (*text).to_owned(),
                    other => panic!("{other:?} in {text:?}"),
                })
                .collect();
            assert_eq!(told, text);
        }
    }
}
