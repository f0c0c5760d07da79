//! Typed access to the fields of a mapping, with findings about values of wrong types.

use std::collections::BTreeMap;

use watershed_proto::MapValue;

use super::{
    keys::{Block, Rest},
    node::{Data, Entry, Map, Node, Style},
};
use crate::{
    diagnostics::{At, Code, Findings},
    text::{duration, names},
};

/// The fields of a mapping, taken one by one; fields left at the end are unknown.
#[derive(Debug)]
pub(crate) struct Fields<'f> {
    map: Map,
    at: At,
    findings: &'f mut Findings,
}

impl<'f> Fields<'f> {
    pub(crate) fn new(map: Map, at: At, findings: &'f mut Findings) -> Self {
        Self { map, at, findings }
    }

    /// Returns the place of the mapping.
    pub(crate) fn at(&self) -> At {
        self.at
    }

    pub(crate) fn findings(&mut self) -> &mut Findings {
        self.findings
    }

    /// Takes a field; null counts as missing.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry> {
        self.map.remove(key).filter(|entry| !entry.value.is_null())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|entry| !entry.value.is_null())
    }

    pub(crate) fn key_at(&self, key: &str) -> Option<At> {
        self.map.get(key).map(|entry| entry.key_at)
    }

    /// Returns the place of a field's value.
    pub(crate) fn value_at(&self, key: &str) -> Option<At> {
        self.map.get(key).map(|entry| entry.value.at)
    }

    /// Returns the places of the texts in a list, or of a single text.
    pub(crate) fn texts_at(&self, key: &str) -> Vec<At> {
        let Some(entry) = self.map.get(key) else {
            return Vec::new();
        };
        match entry.value.as_list() {
            Some(items) => items.iter().map(|item| item.at).collect(),
            None => vec![entry.value.at],
        }
    }

    /// Returns the places of the keys in a mapping.
    pub(crate) fn keys_at(&self, key: &str) -> BTreeMap<String, At> {
        match self.map.get(key).map(|entry| &entry.value.data) {
            Some(Data::Map(map)) => map
                .iter()
                .map(|(name, entry)| (name.clone(), entry.key_at))
                .collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Returns a field that was taken only to look at it.
    pub(crate) fn put_back(&mut self, key: &str, entry: Entry) {
        self.map.insert(key.to_owned(), entry);
    }

    fn wrong(&mut self, key: &str, node: &Node, expected: &str) {
        let message = format!("\"{key}\" takes {expected}, not {}", node.data.type_name());
        self.findings.add(node.at, Code::WrongType, message);
    }

    /// Takes a text; other scalars are taken as written.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        self.text_node(key).and_then(|node| node.scalar_text())
    }

    /// Takes a text as a node with its place.
    pub(crate) fn text_node(&mut self, key: &str) -> Option<Node> {
        let node = self.take(key)?.value;
        if node.scalar_text().is_none() {
            self.wrong(key, &node, "text");
            return None;
        }
        Some(node)
    }

    pub(crate) fn bool(&mut self, key: &str) -> Option<bool> {
        let entry = self.take(key)?;
        match read_bool(&entry.value) {
            Ok(value) => {
                if entry.value.style == Style::Annotation && entry.value.as_str() == Some("") {
                    let message = format!("annotation \"@{key}\" has no value and reads as false");
                    let hint = format!("write `-- @{key}: true`");
                    self.findings
                        .add_with_hint(entry.key_at, Code::EmptyAnnotation, message, hint);
                }
                Some(value)
            }
            Err(()) => {
                self.wrong(key, &entry.value, "true or false");
                None
            }
        }
    }

    /// Takes an integer of at least 0.
    pub(crate) fn count(&mut self, key: &str) -> Option<u32> {
        let node = self.take(key)?.value;
        let read = match &node.data {
            Data::Int(value) => u32::try_from(*value).ok(),
            Data::String(text) if node.style == Style::Annotation => text.trim().parse().ok(),
            _ => None,
        };
        if read.is_none() {
            let said = node
                .scalar_text()
                .unwrap_or_else(|| node.data.type_name().to_owned());
            let message = format!("\"{key}\" takes a whole number from 0 up, not {said}");
            self.findings.add(node.at, Code::WrongType, message);
        }
        read
    }

    /// Takes a duration in seconds, from a number or a duration.
    pub(crate) fn seconds(&mut self, key: &str) -> Option<u32> {
        let node = self.text_node(key)?;
        let text = node.scalar_text().unwrap_or_default();
        let read = duration::seconds(&text);
        if read.is_none() {
            let message = format!("\"{text}\" is not a duration");
            let hint = "write seconds, or a duration such as `90s`, `1h30m` or `PT1H30M`";
            self.findings
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        }
        read
    }

    /// Takes a duration in milliseconds, which needs a unit.
    pub(crate) fn milliseconds(&mut self, key: &str) -> Option<u64> {
        let node = self.text_node(key)?;
        let text = node.scalar_text().unwrap_or_default();
        let read = duration::milliseconds(&text);
        if read.is_none() {
            let message = format!("\"{text}\" is not a duration with its unit");
            let hint = "write one such as `500ms`, `90s` or `1h30m`";
            self.findings
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        }
        read
    }

    /// Takes a list of texts; a single text is a list of one.
    pub(crate) fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        let node = self.take(key)?.value;
        let Some(items) = node.as_list() else {
            let text = node.scalar_text();
            if text.is_none() {
                self.wrong(key, &node, "a list of texts");
            }
            return text.map(|text| vec![text]);
        };
        let mut texts = Vec::new();
        for item in items {
            match item.scalar_text() {
                Some(text) => texts.push(text),
                None => self.wrong(key, item, "a list of texts"),
            }
        }
        Some(texts)
    }

    /// Takes regular expressions, one or a list; reports invalid ones.
    pub(crate) fn patterns(&mut self, key: &str) -> Vec<String> {
        let at = |node: &Node| node.scalar_text().map(|text| (text, node.at));
        let places: Vec<(String, At)> = match self.map.get(key).map(|entry| &entry.value) {
            Some(node) => match node.as_list() {
                Some(items) => items.iter().filter_map(at).collect(),
                None => at(node).into_iter().collect(),
            },
            None => Vec::new(),
        };
        for (pattern, at) in places {
            if let Err(error) = regex::Regex::new(&pattern) {
                let why = match error {
                    regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().to_owned(),
                    other => other.to_string(),
                };
                let message = format!(
                    "\"{pattern}\" is no pattern: {}",
                    why.trim_start_matches("error: ")
                );
                let hint = "a regular expression that is searched for in an error's message";
                self.findings.add_with_hint(at, Code::InvalidValue, message, hint);
            }
        }
        self.texts(key).unwrap_or_default()
    }

    pub(crate) fn list(&mut self, key: &str) -> Option<Vec<Node>> {
        let node = self.take(key)?.value;
        match node.data {
            Data::List(list) => Some(list),
            _ => {
                self.wrong(key, &node, "a list");
                None
            }
        }
    }

    /// Takes a mapping with its place.
    pub(crate) fn map(&mut self, key: &str) -> Option<(Map, At)> {
        let entry = self.take(key)?;
        match entry.value.data {
            Data::Map(map) => Some((map, entry.key_at)),
            _ => {
                self.wrong(key, &entry.value, "a mapping");
                None
            }
        }
    }

    /// Returns the fields that were not taken.
    pub(crate) fn rest(self) -> Map {
        self.map
    }

    /// Takes all remaining fields.
    pub(crate) fn take_rest(&mut self) -> Map {
        std::mem::take(&mut self.map)
    }

    /// Reports a deprecated key, if it is used, with the key to use instead.
    pub(crate) fn deprecated(&mut self, old: &str, new: &str) {
        if let Some(entry) = self.map.get(old) {
            let message = format!("key \"{old}\" is deprecated");
            let hint = format!("use `{new}`");
            self.findings
                .add_with_hint(entry.key_at, Code::DeprecatedKey, message, hint);
        }
    }

    /// Reports all deprecated keys of a block that are used.
    pub(crate) fn deprecations(&mut self, block: &Block) {
        for key in block.keys() {
            if let Some(instead) = key.instead {
                self.deprecated(key.name, instead);
            }
        }
    }

    /// Takes a list of texts with their places; a single text is a list of one.
    pub(crate) fn placed_texts(&mut self, key: &str) -> Vec<(String, At)> {
        let Some(node) = self.take(key).map(|entry| entry.value) else {
            return Vec::new();
        };
        let items = match node.data {
            Data::List(items) => items,
            _ => vec![node],
        };
        let mut found = Vec::new();
        for item in items {
            match item.scalar_text() {
                Some(text) => found.push((text, item.at)),
                None => self.wrong(key, &item, "a list of texts"),
            }
        }
        found
    }

    /// Takes a mapping as plain values.
    pub(crate) fn value_map(&mut self, key: &str) -> Option<MapValue> {
        let (map, _) = self.map(key)?;
        let fields = map.into_iter().map(|(key, entry)| (key, entry.value.to_value()));
        Some(MapValue {
            fields: fields.collect(),
        })
    }

    /// Takes a mapping of texts; null is an empty text.
    pub(crate) fn text_map(&mut self, key: &str) -> BTreeMap<String, String> {
        let map = self.map(key).map(|(map, _)| map).unwrap_or_default();
        let mut found = BTreeMap::new();
        for (name, entry) in map {
            match entry.value.scalar_text() {
                Some(text) => drop(found.insert(name, text)),
                None if entry.value.is_null() => drop(found.insert(name, String::new())),
                None => self.wrong(&name, &entry.value, "text"),
            }
        }
        found
    }

    /// Reports the remaining fields: all of them if the block refuses others, otherwise those that resemble a known
    /// key.
    pub(crate) fn finish(self, block: &Block) {
        for (key, entry) in self.map {
            match block.rest {
                Rest::Refused => unknown_key(self.findings, &key, entry.key_at, block),
                Rest::Kept => misspelled(self.findings, &key, entry.key_at, block),
            }
        }
    }
}

/// Reports an unknown key, with the nearest known one.
pub(crate) fn unknown_key(findings: &mut Findings, key: &str, at: At, known: &Block) {
    let message = format!("unknown key \"{key}\"");
    match names::nearest(key, known.names()) {
        Some(near) => {
            findings.add_with_hint(at, Code::UnknownKey, message, format!("did you mean `{near}`?"))
        }
        None => findings.add(at, Code::UnknownKey, message),
    }
}

/// Reports an ignored key if it resembles a known one.
pub(crate) fn misspelled(findings: &mut Findings, key: &str, at: At, known: &Block) {
    if let Some(near) = names::nearest(key, known.names()) {
        let message = format!("unknown key \"{key}\" is passed over");
        findings.add_with_hint(
            at,
            Code::MisspelledKey,
            message,
            format!("did you mean `{near}`?"),
        );
    }
}

/// Takes a text that must be one of the known words.
pub(crate) fn word(fields: &mut Fields<'_>, key: &str, known: &[&str]) -> Option<String> {
    let node = fields.text_node(key)?;
    let text = node.scalar_text()?.trim().to_lowercase();
    if text.is_empty() {
        return None;
    }
    if known.contains(&text.as_str()) {
        return Some(text);
    }
    let message = format!("\"{key}\" can't be \"{text}\"");
    let hint = match names::nearest(&text, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of `{}`", known.join("`, `")),
    };
    fields
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
}

/// Returns an item of a list as a mapping with its place; reports any other value.
pub(crate) fn item(node: Node, what: &str, findings: &mut Findings) -> Option<(Map, At)> {
    match node.data {
        Data::Map(map) => Some((map, node.at)),
        other => {
            let message = format!("{what} is a mapping, not {}", other.type_name());
            findings.add(node.at, Code::WrongType, message);
            None
        }
    }
}

fn read_bool(node: &Node) -> Result<bool, ()> {
    match &node.data {
        Data::Bool(value) => Ok(*value),
        Data::String(text) if node.style == Style::Annotation => match text.trim() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            _ => Err(()),
        },
        Data::String(text) if node.style == Style::Plain => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" => Ok(true),
            "no" | "off" | "n" => Ok(false),
            _ => Err(()),
        },
        _ => Err(()),
    }
}
