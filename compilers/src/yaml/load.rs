//! Loading of YAML text to nodes.

use std::collections::{BTreeMap, btree_map};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};

use super::{
    joined,
    node::{Data, Entry, Map, Node, Style},
    scalar::resolve,
    template::Masked,
};
use crate::{
    diagnostics::{At, Code, Finding, Nearby, Role},
    text::{Span, Text, narrow},
};

/// The largest nesting depth; specs of that depth still decode within the limit of protobuf messages.
const MAX_DEPTH: usize = 24;
/// The largest number of nodes that aliases of one file may expand to.
const MAX_ALIASED_NODES: usize = 10_000;
/// The largest number of times a file is parsed again because of unquoted templates.
const MAX_MASKING_PASSES: usize = 64;

/// A loaded YAML file.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The root node of the first document.
    pub(crate) root: Node,
    /// Findings that do not prevent the use of the file.
    pub(crate) findings: Vec<Finding>,
}

/// Loads the first document of a text.
///
/// # Errors
/// The finding that says why it can't be read.
pub(crate) fn load(text: &Text<'_>, role: Role) -> Result<Loaded, Box<Finding>> {
    let mut masked = Masked::new(text.str());
    let mut passes = 0;
    loop {
        let source = masked.text();
        let mut loader = Loader::new(&source, role, &masked);
        let outcome = loader.document();
        let found = std::mem::take(&mut loader.templates);
        let failure = outcome.as_ref().err().map(|problem| problem.at.index());
        let mut again = found
            .into_iter()
            .fold(false, |any, (at, flow)| masked.mask(at, flow) || any);
        if !again && let Some(at) = failure.and_then(|at| masked.first_on_line(at)) {
            again = masked.mask(at, false);
        }
        passes += 1;
        if again && passes < MAX_MASKING_PASSES {
            continue;
        }
        return match outcome {
            Ok((root, findings)) => Ok(Loaded { root, findings }),
            Err(problem) => Err(Box::new(problem.finding(text, role))),
        };
    }
}

/// The reason why a text can't be loaded.
struct Problem {
    at: Marker,
    end: Marker,
    code: Code,
    message: String,
    hint: Option<String>,
    /// The place of the first occurrence, if something is repeated.
    first: Option<Span>,
}

impl Problem {
    fn new(at: Marker, code: Code, message: impl Into<String>) -> Self {
        Self {
            at,
            end: at,
            code,
            message: message.into(),
            hint: None,
            first: None,
        }
    }

    fn finding(self, text: &Text<'_>, role: Role) -> Finding {
        let mut span = span_of(self.at, self.end);
        if self.code == Code::YamlSyntax
            && let Some(tab) = tab_near(text, span.line)
        {
            let at = At { role, span: tab };
            let (message, hint) = (
                "a tab indents this line".into(),
                Some("indent with spaces".into()),
            );
            return Finding {
                at,
                code: Code::YamlTab,
                message,
                hint,
                related: Vec::new(),
            };
        }
        if (span.line, span.column) == (span.end_line, span.end_column) {
            span = text.last_if_ended(span);
            span.end_column += 1;
        }
        Finding {
            at: At { role, span },
            code: self.code,
            message: self.message,
            hint: self.hint,
            related: self
                .first
                .map(|span| Nearby::first(At { role, span }))
                .into_iter()
                .collect(),
        }
    }
}

impl From<ScanError> for Problem {
    fn from(error: ScanError) -> Self {
        let message = error.info().replace('`', "'").to_lowercase();
        let code = if message.contains("recursion") {
            Code::YamlLimit
        } else {
            Code::YamlSyntax
        };
        Problem::new(*error.marker(), code, message)
    }
}

/// Returns the place of a tab in the indentation of a line or the next one, where the parser stopped.
fn tab_near(text: &Text<'_>, line: u32) -> Option<Span> {
    (line..=line + 1).find_map(|line| {
        let shown = text.line(line);
        let blanks = shown.chars().take_while(|c| matches!(c, ' ' | '\t'));
        let column = narrow(blanks.into_iter().position(|c| c == '\t')? + 1);
        (!shown.trim().is_empty()).then_some(Span {
            line,
            column,
            end_line: line,
            end_column: column + 1,
        })
    })
}

fn span_of(start: Marker, end: Marker) -> Span {
    Span {
        line: narrow(start.line()).max(1),
        column: narrow(start.col() + 1),
        end_line: narrow(end.line()).max(1),
        end_column: narrow(end.col() + 1),
    }
}

struct Loader<'a> {
    source: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    role: Role,
    masked: &'a Masked,
    anchors: BTreeMap<usize, (Node, usize)>,
    aliased: usize,
    findings: Vec<Finding>,
    /// Unquoted templates found: their position, and true if inside a flow collection.
    templates: Vec<(usize, bool)>,
    flow: usize,
}

type Step<'a> = (Event<'a>, saphyr_parser::Span);

impl<'a> Loader<'a> {
    fn new(source: &'a str, role: Role, masked: &'a Masked) -> Self {
        Self {
            source,
            parser: Parser::new_from_str(source),
            role,
            masked,
            anchors: BTreeMap::new(),
            aliased: 0,
            findings: Vec::new(),
            templates: Vec::new(),
            flow: 0,
        }
    }

    fn next(&mut self) -> Result<Step<'a>, Problem> {
        match self.parser.next_event() {
            Some(Ok(step)) => Ok(step),
            Some(Err(error)) => Err(error.into()),
            None => Ok((Event::StreamEnd, saphyr_parser::Span::default())),
        }
    }

    fn document(&mut self) -> Result<(Node, Vec<Finding>), Problem> {
        let empty = Node::new(At::start(self.role), Data::Null);
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok((empty, Vec::new())),
                (Event::DocumentStart(_), _) => break,
                _ => {}
            }
        }
        let step = self.next()?;
        let (root, _) = self.node(step, 0)?;
        self.look_for_more();
        Ok((root, std::mem::take(&mut self.findings)))
    }

    /// Reports a second document, which is not read, unless it is empty.
    fn look_for_more(&mut self) {
        while let Ok((event, span)) = self.next() {
            match event {
                Event::StreamEnd => return,
                Event::DocumentStart(_) | Event::DocumentEnd => {}
                Event::Scalar(text, ScalarStyle::Plain, _, _) if text.is_empty() => {}
                _ => {
                    let span = span_of(span.start, span.end);
                    self.findings.push(Finding {
                        at: At {
                            role: self.role,
                            span,
                        },
                        code: Code::SeveralDocuments,
                        message: "a second document begins here; only the first is read".into(),
                        hint: Some("put it into a file of its own".into()),
                        related: Vec::new(),
                    });
                    return;
                }
            }
        }
    }

    /// Returns the node that an event begins, and the number of nodes in it.
    fn node(&mut self, (event, span): Step<'a>, depth: usize) -> Result<(Node, usize), Problem> {
        if depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(Problem::new(span.start, Code::YamlLimit, message));
        }
        let (anchor, (node, size)) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag
                    .as_ref()
                    .filter(|tag| tag.is_yaml_core_schema())
                    .map(|tag| tag.suffix.to_string());
                (anchor, (self.scalar(&text, style, tag.as_deref(), span), 1))
            }
            Event::SequenceStart(anchor, _) => (anchor, self.sequence(span, depth)?),
            Event::MappingStart(anchor, _) => {
                if self.masked.opens_at(span.start.index()) {
                    self.templates.push((span.start.index(), self.flow > 0));
                }
                (anchor, self.mapping(span, depth)?)
            }
            Event::Alias(id) => (0, self.alias(id, span)?),
            _ => {
                return Err(Problem::new(
                    span.start,
                    Code::YamlSyntax,
                    "a value was expected here",
                ));
            }
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok((node, size))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&str>,
        span: saphyr_parser::Span,
    ) -> Node {
        let at = At {
            role: self.role,
            span: span_of(span.start, span.end),
        };
        if let Some(original) = self.masked.original(span.start.index()) {
            self.findings.push(Finding {
                at,
                code: Code::UnquotedTemplate,
                message: "a template without quotes is read as text".into(),
                hint: Some(format!("quote it: '{}'", original.replace('\'', "''"))),
                related: Vec::new(),
            });
            return Node::new(at, Data::String(original.to_owned()));
        }
        let (style, data) = match style {
            ScalarStyle::Plain if tag != Some("str") => (Style::Plain, resolve(text)),
            ScalarStyle::Plain => (Style::Plain, Data::String(text.to_owned())),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                (Style::Quoted, Data::String(text.to_owned()))
            }
            ScalarStyle::Literal => (Style::Literal, Data::String(text.to_owned())),
            ScalarStyle::Folded => (Style::Folded, Data::String(text.to_owned())),
        };
        let raw = (!matches!(data, Data::String(_) | Data::Null)).then(|| text.into());
        Node { at, style, raw, data }
    }

    fn sequence(&mut self, start: saphyr_parser::Span, depth: usize) -> Result<(Node, usize), Problem> {
        let flow = usize::from(!start.is_empty());
        self.flow += flow;
        let mut items = Vec::new();
        let mut size = 1;
        loop {
            let step = self.next()?;
            if let (Event::SequenceEnd, end) = step {
                self.flow -= flow;
                return Ok((self.collection(start, end, Data::List(items)), size));
            }
            let (item, nodes) = self.node(step, depth + 1)?;
            size += nodes;
            items.push(item);
        }
    }

    fn mapping(&mut self, start: saphyr_parser::Span, depth: usize) -> Result<(Node, usize), Problem> {
        let flow = usize::from(!start.is_empty());
        self.flow += flow;
        let mut map = Map::new();
        let mut merged = Map::new();
        let mut size = 1;
        loop {
            let step = self.next()?;
            if let (Event::MappingEnd, end) = step {
                self.flow -= flow;
                if !merged.is_empty() {
                    overlay_missing(&mut map, merged);
                }
                return Ok((self.collection(start, end, Data::Map(map)), size));
            }
            let span = step.1;
            let is_merge =
                matches!(&step.0, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let (key, _) = self.node(step, depth + 1)?;
            let value = self.next()?;
            let (value, nodes) = self.node(value, depth + 1)?;
            size += nodes + 1;
            self.findings.extend(joined::comment(self.source, &key, &value));
            if is_merge {
                merge(&mut merged, value, span)?;
            } else {
                insert(&mut map, key, value, span)?;
            }
        }
    }

    fn alias(&mut self, id: usize, span: saphyr_parser::Span) -> Result<(Node, usize), Problem> {
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(Problem::new(
                span.start,
                Code::YamlSyntax,
                "the alias is used inside its own anchor",
            ));
        };
        self.aliased += size;
        if self.aliased > MAX_ALIASED_NODES {
            let message = format!("aliases stand for more than {MAX_ALIASED_NODES} values");
            return Err(Problem::new(span.start, Code::YamlLimit, message));
        }
        Ok((node.clone(), *size))
    }

    /// Returns the node of a collection, with the span of its brackets or, if indented, of its first entry.
    fn collection(&self, start: saphyr_parser::Span, end: saphyr_parser::Span, data: Data) -> Node {
        let mut span = span_of(start.start, end.end);
        if start.is_empty() {
            let first = match &data {
                Data::Map(map) => map.values().map(|entry| entry.key_at.span).min(),
                Data::List(items) => items.first().map(|item| item.at.span),
                _ => None,
            };
            let same_line = first.filter(|first| first.line == span.line && first.end_line == span.line);
            span.end_line = span.line;
            span.end_column = same_line.map_or(span.column + 1, |first| first.end_column);
        }
        Node::new(
            At {
                role: self.role,
                span,
            },
            data,
        )
    }
}

fn insert(map: &mut Map, key: Node, value: Node, span: saphyr_parser::Span) -> Result<(), Problem> {
    let name = match &key.data {
        Data::Null => "null".to_owned(),
        _ => key.scalar_text().ok_or_else(|| {
            Problem::new(
                span.start,
                Code::YamlSyntax,
                "a key is text, not a list or a mapping",
            )
        })?,
    };
    match map.entry(name) {
        btree_map::Entry::Vacant(free) => {
            free.insert(Entry {
                key_at: key.at,
                value,
            });
            Ok(())
        }
        btree_map::Entry::Occupied(taken) => {
            let first = taken.get().key_at.span.line;
            Err(Problem {
                at: span.start,
                end: span.end,
                code: Code::DuplicateKey,
                message: format!("key \"{}\" stands twice in one mapping", taken.key()),
                hint: Some(format!("the first one is on line {first}")),
                first: Some(taken.get().key_at.span),
            })
        }
    }
}

/// Collects the entries that `<<` merges in; of several mappings the first wins.
fn merge(merged: &mut Map, value: Node, span: saphyr_parser::Span) -> Result<(), Problem> {
    match value.data {
        Data::Map(map) => overlay_missing(merged, map),
        Data::List(list) => {
            for item in list {
                merge(merged, item, span)?;
            }
        }
        _ => {
            return Err(Problem::new(
                span.start,
                Code::YamlSyntax,
                "`<<` takes a mapping or a list of them",
            ));
        }
    }
    Ok(())
}

fn overlay_missing(map: &mut Map, below: Map) {
    for (key, entry) in below {
        map.entry(key).or_insert(entry);
    }
}

#[cfg(test)]
mod tests;
