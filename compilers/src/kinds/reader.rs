//! The state in which a resource is read from its settings.

use std::collections::BTreeSet;

use watershed_proto::DataResolver;

use crate::{
    blocks::data::{self, DATA, DataBlock},
    diagnostics::{At, Code, Findings},
    draft::{
        Context, Purpose, RawRef, Relation, SqlBlock, SqlText, TextPlace, Uses,
        block::{condition, first_line, read_template},
    },
    resource::{Kind, Spec},
    template::{Facts, is_template},
    yaml::{Block, Data, Fields, Node, misspelled, unknown_key},
};

/// A resource that is being read, with the settings not yet taken.
pub(crate) struct Reader<'a, 'f> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) fields: Fields<'f>,
    pub(crate) about: About<'a>,
    pub(crate) uses: Uses,
    /// The pieces of SQL to be parsed.
    pub(crate) blocks: Vec<SqlBlock>,
}

/// The settings that all kinds share, and facts known before a kind's own settings are read.
pub(crate) struct About<'a> {
    pub(crate) name: &'a str,
    /// True if the resource is declared as a source.
    pub(crate) is_source: bool,
    pub(crate) version: u32,
    pub(crate) display_name: String,
    pub(crate) sql: Option<SqlText>,
    /// The names in the resource's list `refs`.
    pub(crate) refs: Vec<String>,
    pub(crate) templating: bool,
    /// Keys that the file itself sets; unknown keys from defaults and overrides are tolerated.
    pub(crate) own_keys: BTreeSet<String>,
}

/// The result of reading a resource's settings.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) spec: Spec,
    pub(crate) refs: Vec<RawRef>,
    /// Connectors that the resource uses; only declared ones become refs.
    pub(crate) connectors: Vec<String>,
    /// Resources that this one implies.
    pub(crate) implied: Vec<Implied>,
    /// A model's `relationships` tests.
    pub(crate) relations: Vec<Relation>,
    /// The place where a model names its output table, if it does.
    pub(crate) table_at: Option<At>,
}

/// A resource that another one implies.
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
            relations: Vec::new(),
            connectors: Vec::new(),
            implied: Vec::new(),
            table_at: None,
        }
    }
}

impl Reader<'_, '_> {
    pub(crate) fn findings(&mut self) -> &mut Findings {
        self.fields.findings()
    }

    /// Takes the display name, from `display_name` or the deprecated `title`.
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

    /// Takes the items of a list as plain values.
    pub(crate) fn values(&mut self, key: &str) -> Vec<watershed_proto::Value> {
        let items = self.fields.list(key).unwrap_or_default();
        items.iter().map(Node::to_value).collect()
    }

    /// Reports SQL in a resource of a kind that takes none.
    pub(crate) fn refuse_sql(&mut self, kind: Kind) {
        if let Some(sql) = self.about.sql.take() {
            let at = first_line(&sql.text, &sql.place);
            self.findings()
                .add(at, Code::ConflictingKeys, format!("{} has no SQL", a_kind(kind)));
        }
    }

    /// Reports unknown keys that the file itself sets; of those from defaults and overrides, only keys that resemble a
    /// known one.
    pub(crate) fn finish(&mut self, known: &Block) {
        let own = std::mem::take(&mut self.about.own_keys);
        for (key, entry) in self.fields.take_rest() {
            if own.contains(&key) {
                unknown_key(self.fields.findings(), &key, entry.key_at, known);
            } else {
                misspelled(self.fields.findings(), &key, entry.key_at, known);
            }
        }
    }

    /// Records what the templates in a key's value use.
    pub(crate) fn templates_of(&mut self, key: &str) {
        if let Some(entry) = self.fields.take(key) {
            self.templates_in(&entry.value);
            self.fields.put_back(key, entry);
        }
    }

    /// Adds conditions to the statements that the engine's parser checks.
    pub(crate) fn conditions(&mut self, conditions: &[Node]) {
        let (templating, context) = (self.about.templating, self.context);
        let made = conditions
            .iter()
            .filter_map(|node| condition(node, templating, context));
        self.blocks.extend(made);
    }

    /// Adds the SQL of a data block to the statements that the engine's parser reads.
    pub(crate) fn read_sql(&mut self, found: &DataBlock, purpose: Purpose) {
        if let Some(sql) = &found.sql {
            let (templating, context) = (self.about.templating, self.context);
            let findings = self.fields.findings();
            let made = sql.block(purpose, templating, context, &mut self.uses, findings);
            self.blocks.extend(made);
        }
    }

    /// Takes the data block under a key.
    pub(crate) fn data(
        &mut self,
        key: &str,
        purpose: Purpose,
        declared: &mut Declared,
    ) -> Option<DataResolver> {
        self.templates_of(key);
        let (map, at) = self.fields.map(key)?;
        let mut fields = Fields::new(map, at, self.fields.findings());
        let found = data::take(&mut fields, self.context.olap, None);
        fields.finish(&DATA);
        let found = found?;
        self.read_sql(&found, purpose);
        declared.refs.extend(found.refs);
        Some(found.resolver)
    }

    /// Records what the templates in a value use.
    pub(crate) fn templates_in(&mut self, node: &Node) {
        match &node.data {
            Data::List(items) => items.iter().for_each(|item| self.templates_in(item)),
            Data::Map(map) => map.values().for_each(|entry| self.templates_in(&entry.value)),
            Data::String(text) if self.about.templating && is_template(text) => {
                let place = TextPlace::from_node(node);
                if let Some(template) = read_template(text, &place, self.fields.findings()) {
                    let facts = Facts::from_template(&template);
                    let findings = self.fields.findings();
                    self.uses.add(&facts, text, &place, false, self.context, findings);
                }
            }
            _ => {}
        }
    }
}

/// Returns the name of a kind with its article.
pub(crate) fn a_kind(kind: Kind) -> String {
    let article = if kind.as_str().starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    let noun = match kind {
        Kind::Managed => "managed resource".to_owned(),
        kind => kind.as_str().replace('_', " "),
    };
    format!("{article} {noun}")
}
