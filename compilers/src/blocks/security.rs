//! Security policies: ordered rules about access, fields and rows.

use watershed_proto::SecurityRule;

use crate::{
    diagnostics::{At, Code, spot},
    yaml::{Data, Fields, Map, Node, item, keys::blocks, word},
};

blocks! {
    /// Keys of the block `security` of a metrics view.
    pub(crate) static SECURITY = "security" Refused {
        "access": Any, "Who may see it: true, false, or a template that makes a condition.";
        "row_filter": Sql, "The rows that may be seen, as a condition.";
        "include": List(&Block(&FIELDS_RULE)), "Fields that may be seen.";
        "exclude": List(&Block(&FIELDS_RULE)), "Fields that may not be seen.";
        "rules": List(&Block(&RULE)), "Rules, applied in order.";
    }

    /// Keys of the block `security` where only access can be ruled.
    pub(crate) static ACCESS = "access" Refused {
        "access": Any, "Who may see it: true, false, or a template that makes a condition.";
    }

    /// Keys of an entry of `include` and `exclude`.
    pub(crate) static FIELDS_RULE = "fields_rule" Refused {
        "if": Text, "When the entry counts: a template that makes a condition.";
        "names": Texts, "The fields; `'*'` for all.";
    }

    /// Keys that each security rule accepts.
    pub(crate) static RULE = "security_rule" Refused {
        "type": Word(&["access", "field_access", "row_filter"]), "What the rule is about.";
        "action": Word(&["allow", "deny"]), "What it does.";
        "if": Text, "When it counts: a template that makes a condition.";
        "names": Texts, "The fields that it is about; `'*'` for all.";
        "all": Bool, "Whether it is about all fields.";
        "sql": Sql, "The rows that may be seen, as a condition.";
    }
}

/// The sorts of rules that a kind allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Rules about access, fields and rows.
    All,
    /// Rules about access alone.
    Access,
}

/// The rules of a `security` block and the fields that they name.
#[derive(Debug, Default)]
pub(crate) struct Security {
    pub(crate) rules: Vec<SecurityRule>,
    pub(crate) named: Vec<(String, At)>,
    /// Conditions that the engine's parser has yet to check.
    pub(crate) conditions: Vec<Node>,
}

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
        block.fields.finish(&SECURITY);
    } else {
        block.fields.finish(&ACCESS);
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

    /// Adds the rule about access: without `access` and `rules`, nobody has access.
    fn access(&mut self) {
        match self.condition("access") {
            Some(condition) => {
                self.add("access", "allow", condition);
            }
            None if self.fields.has("rules") => {}
            None => {
                self.add("access", "deny", String::new());
            }
        }
    }

    /// Takes a condition and keeps a copy for the engine's parser.
    fn condition(&mut self, key: &str) -> Option<String> {
        let node = self.fields.text_node(key)?;
        let text = node.scalar_text();
        self.security.conditions.push(node);
        text
    }

    fn row_filter(&mut self) {
        if let Some(node) = self.fields.text_node("row_filter") {
            let rule = self.add("row_filter", "", String::new());
            rule.sql = node.scalar_text().unwrap_or_default().trim().to_owned();
            rule.at = spot(node.at);
            self.security.conditions.push(node);
        }
    }

    fn fields(&mut self, key: &str, action: &str) {
        let mut items = self.fields.list(key).unwrap_or_default();
        // An entry that is left empty says nothing.
        items.retain(|item| !item.is_null());
        if key == "exclude" && !items.is_empty() && !self.has_field_rules() {
            self.add("field_access", "allow", String::new()).all_fields = true;
        }
        for node in items {
            let Some((map, at)) = item(node, "an entry", self.fields.findings()) else {
                continue;
            };
            let mut entry = Fields::new(map, at, self.fields.findings());
            let condition = entry.text_node("if");
            let names = names(&mut entry, "names");
            if names.is_none() {
                entry
                    .findings()
                    .add(at, Code::MissingKey, "an entry needs `names`");
            }
            entry.finish(&FIELDS_RULE);
            let text = condition.as_ref().and_then(Node::scalar_text);
            self.security.conditions.extend(condition);
            self.field_rule(action, text.unwrap_or_default(), names.unwrap_or_default());
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
        let condition_node = rule.text_node("if");
        let condition = condition_node
            .as_ref()
            .and_then(Node::scalar_text)
            .unwrap_or_default();
        let names = names(&mut rule, "names").unwrap_or_default();
        let all = rule.bool("all").unwrap_or_default();
        let sql_node = rule.text_node("sql");
        let sql = sql_node.as_ref().and_then(Node::scalar_text).unwrap_or_default();
        rule.finish(&RULE);
        let Some(r#type) = r#type else {
            let message = "a rule needs a `type`";
            let hint = "one of `access`, `field_access`, `row_filter`";
            self.fields
                .findings()
                .add_with_hint(at, Code::MissingKey, message, hint);
            return;
        };
        let has_action = action.is_some();
        let action = action.unwrap_or_else(|| "allow".to_owned());
        let missing = match r#type.as_str() {
            "row_filter" if sql.trim().is_empty() => Some("a rule of the type `row_filter` needs its `sql`"),
            "access" if condition.trim().is_empty() && !has_action => {
                Some("a rule of the type `access` says nothing without an `action` or an `if`")
            }
            "field_access" if !all && !names.all && names.named.is_empty() => {
                Some("a rule of the type `field_access` needs `names`, or `all: true`")
            }
            _ => None,
        };
        if let Some(message) = missing {
            self.fields.findings().add(at, Code::MissingKey, message);
        }
        self.security.conditions.extend(condition_node);
        self.security.conditions.extend(sql_node.clone());
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

/// Takes a list of names, or `'*'` for all names.
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
