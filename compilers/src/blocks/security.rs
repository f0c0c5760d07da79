//! Who may see what: a block of rules, in order.

use watershed_proto::SecurityRule;

use crate::{
    diagnostics::{At, Code, spot},
    yaml::{Data, Fields, Map, Node, item, word},
};

/// What the rules of a kind may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Access, fields and rows.
    All,
    /// Access alone.
    Access,
}

/// The rules of a block, and the fields that it names.
#[derive(Debug, Default)]
pub(crate) struct Security {
    pub(crate) rules: Vec<SecurityRule>,
    pub(crate) named: Vec<(String, At)>,
}

/// Keys of a block.
const KEYS: [&str; 5] = ["access", "row_filter", "include", "exclude", "rules"];

/// Takes the block `security`.
pub(crate) fn take(fields: &mut Fields<'_>, extent: Extent) -> Security {
    let Some((map, at)) = fields.map("security") else {
        return Security::default();
    };
    let mut block = Block {
        fields: Fields::new(map, at, fields.findings()),
        security: Security::default(),
    };
    block.access();
    if extent == Extent::All {
        block.row_filter();
        block.fields("include", "allow");
        block.fields("exclude", "deny");
        block.rules();
        block.fields.finish(&KEYS);
    } else {
        block.fields.finish(&KEYS[..1]);
    }
    block.security
}

struct Block<'f> {
    fields: Fields<'f>,
    security: Security,
}

impl Block<'_> {
    fn add(&mut self, r#type: &str, action: &str, condition: String) -> &mut SecurityRule {
        self.security.rules.push(SecurityRule {
            r#type: r#type.to_owned(),
            action: action.to_owned(),
            condition,
            ..SecurityRule::default()
        });
        let last = self.security.rules.len() - 1;
        &mut self.security.rules[last]
    }

    /// A block that does not say who has access gives it to nobody, unless one of its rules is about that.
    fn access(&mut self) {
        match self.fields.text("access") {
            Some(condition) => {
                self.add("access", "allow", condition);
            }
            None if self.fields.has("rules") => {}
            None => {
                self.add("access", "deny", String::new());
            }
        }
    }

    fn row_filter(&mut self) {
        if let Some(node) = self.fields.text_node("row_filter") {
            let rule = self.add("row_filter", "", String::new());
            rule.sql = node.scalar_text().unwrap_or_default().trim().to_owned();
            rule.at = spot(node.at);
        }
    }

    fn fields(&mut self, key: &str, action: &str) {
        let items = self.fields.list(key).unwrap_or_default();
        if key == "exclude" && !items.is_empty() && !self.has_field_rules() {
            self.add("field_access", "allow", String::new()).all_fields = true;
        }
        for node in items {
            let Some((map, at)) = item(node, "an entry", self.fields.findings()) else {
                continue;
            };
            let mut entry = Fields::new(map, at, self.fields.findings());
            let condition = entry.text("if").unwrap_or_default();
            let names = names(&mut entry, "names");
            if names.is_none() {
                entry
                    .findings()
                    .add(at, Code::MissingKey, "an entry needs `names`");
            }
            entry.finish(&["if", "names"]);
            self.field_rule(action, condition, names.unwrap_or_default());
        }
    }

    fn has_field_rules(&self) -> bool {
        self.security
            .rules
            .iter()
            .any(|rule| rule.r#type == "field_access")
    }

    fn field_rule(&mut self, action: &str, condition: String, names: Names) {
        let rule = self.add("field_access", action, condition);
        rule.all_fields = names.all;
        rule.fields = names.named.iter().map(|(name, _)| name.clone()).collect();
        self.security.named.extend(names.named);
    }

    fn rules(&mut self) {
        for node in self.fields.list("rules").unwrap_or_default() {
            if let Some((map, at)) = item(node, "a rule", self.fields.findings()) {
                self.rule(map, at);
            }
        }
    }

    fn rule(&mut self, map: Map, at: At) {
        let mut rule = Fields::new(map, at, self.fields.findings());
        let r#type = word(&mut rule, "type", &["access", "field_access", "row_filter"]);
        let action = word(&mut rule, "action", &["allow", "deny"]);
        let condition = rule.text("if").unwrap_or_default();
        let names = names(&mut rule, "names").unwrap_or_default();
        let all = rule.bool("all").unwrap_or_default();
        let sql_node = rule.text_node("sql");
        let sql = sql_node.as_ref().and_then(Node::scalar_text).unwrap_or_default();
        rule.finish(&["type", "action", "if", "names", "all", "sql"]);
        let Some(r#type) = r#type else {
            let message = "a rule needs a `type`";
            let hint = "one of `access`, `field_access`, `row_filter`";
            self.fields
                .findings()
                .add_with_hint(at, Code::MissingKey, message, hint);
            return;
        };
        let action = action.unwrap_or_else(|| "allow".to_owned());
        match r#type.as_str() {
            "row_filter" => {
                let rule = self.add("row_filter", "", condition);
                rule.sql = sql.trim().to_owned();
                rule.at = sql_node.and_then(|node| spot(node.at));
            }
            "field_access" => {
                let all = names.all | all;
                self.field_rule(&action, condition, Names { all, ..names });
            }
            _ => drop(self.add("access", &action, condition)),
        }
    }
}

#[derive(Debug, Default)]
struct Names {
    all: bool,
    named: Vec<(String, At)>,
}

/// A list of names, or `'*'` for all.
fn names(fields: &mut Fields<'_>, key: &str) -> Option<Names> {
    let node = fields.take(key)?.value;
    let single;
    let items: &[Node] = match &node.data {
        Data::List(items) => items,
        _ => {
            single = [node.clone()];
            &single
        }
    };
    let mut names = Names::default();
    for item in items {
        match item.scalar_text() {
            Some(text) if text == "*" => names.all = true,
            Some(text) => names.named.push((text, item.at)),
            None => {
                let message = format!("\"{key}\" takes names, not {}", item.data.type_name());
                fields.findings().add(item.at, Code::WrongType, message);
            }
        }
    }
    Some(names)
}
