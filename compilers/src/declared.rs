//! Kinds other than models: what they share while they are read.

use std::collections::{BTreeMap, BTreeSet};

use watershed_proto::{Spot, SqlSource};

use crate::{
    block::{Uses, read_template},
    canvas, component, connector,
    decode::{Fields, unknown_key},
    diagnostics::Code,
    draft::{Body, Context, Draft, RawRef, TextPlace},
    explore,
    finding::{At, Findings, Role},
    metrics_view, migration,
    model::SqlText,
    names,
    resource::{Kind, Spec},
    template::{Facts, is_template},
    theme,
    yaml::{Data, Map, Node},
};

/// A resource of a kind other than models while it is read.
pub(crate) struct Reader<'a, 'f> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) fields: Fields<'f>,
    pub(crate) about: About<'a>,
    pub(crate) uses: Uses,
}

/// What all resources say, and what is known of one before its settings are read.
pub(crate) struct About<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: u32,
    pub(crate) display_name: String,
    pub(crate) sql: Option<SqlText>,
    pub(crate) templating: bool,
    /// Keys of the file itself: others come from defaults or overrides, where more is let pass.
    pub(crate) own_keys: BTreeSet<String>,
}

/// What the settings came to.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) spec: Spec,
    pub(crate) refs: Vec<RawRef>,
    /// Connectors that it uses; they count where they are declared.
    pub(crate) connectors: Vec<String>,
    /// Resources that come with it.
    pub(crate) implied: Vec<Implied>,
}

/// A resource that comes with another one.
#[derive(Debug)]
pub(crate) struct Implied {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) at: Option<At>,
    pub(crate) spec: Spec,
    pub(crate) refs: Vec<RawRef>,
}

impl Declared {
    pub(crate) fn new(spec: Spec) -> Self {
        Self {
            spec,
            refs: Vec::new(),
            connectors: Vec::new(),
            implied: Vec::new(),
        }
    }
}

/// Reads a resource of a kind, and what comes with it.
pub(crate) fn read(kind: Kind, mut draft: Draft, mut reader: Reader<'_, '_>) -> (Vec<Draft>, Uses) {
    let declared = match kind {
        Kind::MetricsView => metrics_view::read(&mut reader),
        Kind::Explore => explore::read(&mut reader),
        Kind::Canvas => canvas::read(&mut reader),
        Kind::Component => component::read(&mut reader),
        Kind::Theme => theme::read(&mut reader),
        Kind::Connector => connector::read(&mut reader),
        Kind::Migration => migration::read(&mut reader),
        _ => Declared::new(Spec::None),
    };
    let mut uses = reader.uses;
    let mut spec = declared.spec;
    spec.set_variables(uses.values(reader.context));
    draft.refs.extend(declared.refs);
    draft.refs.append(&mut uses.refs);
    draft.connectors = declared.connectors;
    let implied = declared.implied.into_iter().map(|implied| Draft {
        kind: implied.kind,
        name: implied.name,
        name_at: implied.at.unwrap_or(draft.name_at),
        tags: draft.tags.clone(),
        refs: implied.refs,
        connectors: Vec::new(),
        body: Body::Declared(Box::new(implied.spec)),
        implicit: true,
    });
    let implied: Vec<_> = implied.collect();
    draft.body = Body::Declared(Box::new(spec));
    (std::iter::once(draft).chain(implied).collect(), uses)
}

/// Reads a kind's defaults on their own, for their findings.
pub(crate) fn try_defaults(map: Map, at: At, kind: Kind, findings: &mut Findings) {
    let context = Context {
        environment: "",
        variables: &BTreeMap::new(),
        olap: "duckdb",
        drivers: &BTreeMap::new(),
        manifest: &crate::manifest::Manifest::default(),
    };
    let draft = Draft::new(kind, String::new(), at);
    let reader = Reader {
        context: &context,
        fields: Fields::new(map, at, findings),
        about: About {
            name: "",
            version: 1,
            display_name: String::new(),
            sql: None,
            templating: true,
            own_keys: BTreeSet::new(),
        },
        uses: Uses::default(),
    };
    read(kind, draft, reader);
}

impl Reader<'_, '_> {
    pub(crate) fn findings(&mut self) -> &mut Findings {
        self.fields.findings()
    }

    /// The name for people; `title` is its old name.
    pub(crate) fn display_name(&mut self) -> String {
        let title = self.fields.text("title").unwrap_or_default();
        if self.about.display_name.is_empty() {
            title
        } else {
            std::mem::take(&mut self.about.display_name)
        }
    }

    pub(crate) fn text(&mut self, key: &str) -> String {
        self.fields.text(key).unwrap_or_default()
    }

    /// Values of a list as they are.
    pub(crate) fn values(&mut self, key: &str) -> Vec<watershed_proto::Value> {
        let items = self.fields.list(key).unwrap_or_default();
        items.iter().map(Node::to_value).collect()
    }

    /// Says that a kind has no SQL, if there is some.
    pub(crate) fn refuse_sql(&mut self, kind: Kind) {
        if let Some(sql) = self.about.sql.take() {
            let at = crate::block::first_line(&sql.text, &sql.place);
            self.findings()
                .add(at, Code::ConflictingKeys, format!("{} has no SQL", a_kind(kind)));
        }
    }

    /// Refuses what was not taken, if the file itself says it; of defaults and overrides nearly known keys are told.
    pub(crate) fn finish(&mut self, known: &[&str]) {
        let own = std::mem::take(&mut self.about.own_keys);
        for (key, entry) in self.fields.take_rest() {
            if own.contains(&key) {
                unknown_key(self.fields.findings(), &key, entry.key_at, known);
            } else {
                misspelled(self.fields.findings(), &key, entry.key_at, known);
            }
        }
    }

    /// What of templates in a value is to be known.
    pub(crate) fn templates_in(&mut self, node: &Node) {
        match &node.data {
            Data::List(items) => items.iter().for_each(|item| self.templates_in(item)),
            Data::Map(map) => map.values().for_each(|entry| self.templates_in(&entry.value)),
            Data::String(text) if self.about.templating && is_template(text) => {
                let place = TextPlace::of_node(node);
                if let Some(template) = read_template(text, &place, self.fields.findings()) {
                    let facts = Facts::of(&template);
                    let findings = self.fields.findings();
                    self.uses.add(&facts, text, &place, false, self.context, findings);
                }
            }
            _ => {}
        }
    }
}

/// Tells a key that is passed over and much like a known one.
pub(crate) fn misspelled(findings: &mut Findings, key: &str, at: At, known: &[&str]) {
    if let Some(near) = names::nearest(key, known.iter().copied()) {
        let message = format!("unknown key \"{key}\" is passed over");
        findings.add_with_hint(
            at,
            Code::MisspelledKey,
            message,
            format!("did you mean `{near}`?"),
        );
    }
}

/// A ref to a resource whose kind is known.
pub(crate) fn ref_to(kind: Kind, name: &str, at: Option<At>) -> RawRef {
    RawRef {
        kind: Some(kind),
        name: name.to_owned(),
        own_look: false,
        expected: true,
        at,
    }
}

/// A ref that binds to a model, if there is one.
pub(crate) fn ref_to_table(name: &str) -> RawRef {
    RawRef {
        kind: None,
        name: name.to_owned(),
        own_look: false,
        expected: false,
        at: None,
    }
}

/// A place as specs hold it; none for one in another file than the resource's YAML.
pub(crate) fn spot(at: At) -> Option<Spot> {
    (at.role == Role::Yaml).then_some(Spot {
        line: at.span.line,
        column: at.span.column,
    })
}

/// The text of a value with its place.
pub(crate) fn source(node: &Node) -> SqlSource {
    let text = node.scalar_text().unwrap_or_default();
    TextPlace::of_node(node).source(text.trim(), is_template(&text), true)
}

/// Takes one of a few words.
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

/// A mapping in a list; a finding where it is something else.
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

/// A kind with its article.
pub(crate) fn a_kind(kind: Kind) -> String {
    let article = if kind.as_str().starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {}", kind.as_str().replace('_', " "))
}
