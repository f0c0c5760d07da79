//! Viewers, and security rules evaluated for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_compilers::{Scope, render_rule};
use watershed_drivers::olap::{Conditions, Failure, QueryError};
use watershed_metrics::policy::{Layer, Truth};
use watershed_proto::{SecurityRule, Value};

use super::error::MetricsError;
use crate::view;

/// The person or owner on whose behalf a query runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Viewer {
    /// The project's owner, to whom no rule applies.
    Owner,
    /// A user, whose attributes the rules compare.
    User(BTreeMap<String, Value>),
}

impl Viewer {
    /// Creates a user from attributes. Adds `name`, `email`, `domain` (of the e-mail address) and `groups`, empty if
    /// missing, and `admin`, false if missing.
    pub fn user(attributes: serde_json::Map<String, serde_json::Value>) -> Self {
        let named = |(name, value)| (name, Value::from(value));
        let mut user: BTreeMap<String, Value> = attributes.into_iter().map(named).collect();
        let email = match user.get("email").map(serde_json::Value::from) {
            Some(serde_json::Value::String(email)) => email,
            _ => String::new(),
        };
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain).to_owned();
        for (name, value) in [
            ("name", Value::from("")),
            ("email", Value::from("")),
            ("domain", Value::from(domain)),
            ("groups", Value::from(Vec::<Value>::new())),
            ("admin", Value::from(false)),
        ] {
            user.entry(name.to_owned()).or_insert(value);
        }
        Self::User(user)
    }

    /// Returns the attributes for templates.
    pub fn attributes(&self) -> BTreeMap<String, Value> {
        match self {
            Self::Owner => BTreeMap::new(),
            Self::User(user) => user.clone(),
        }
    }

    /// Replaces the engine's message in an error, since it may quote rows that a user may not see.
    pub fn unspoken(&self, error: MetricsError) -> MetricsError {
        let is_of_rows = |error: &QueryError| {
            !matches!(
                error,
                QueryError::Timeout(_) | QueryError::Failed(Failure::Open(_) | Failure::Interrupted)
            )
        };
        match (self, error) {
            (Self::User(_), MetricsError::Engine(error)) if is_of_rows(&error) => {
                MetricsError::Unspoken(error)
            }
            (_, error) => error,
        }
    }
}

/// Rules of several layers, rendered for a user.
pub(super) struct Rules {
    /// Rendered conditions, by template.
    conditions: BTreeMap<String, String>,
    /// Rendered row filters, by template.
    filters: BTreeMap<String, String>,
}

impl Rules {
    /// Evaluates layers of rules for a viewer. No rule applies to the owner.
    ///
    /// # Errors
    /// The first template that can't be executed or has an attribute where no value can stand, and conditions that the
    /// engine can't evaluate.
    pub(super) async fn evaluated(
        layers: &[&[SecurityRule]],
        viewer: &Viewer,
        scope: &Scope,
        conditions: &Arc<dyn Conditions>,
    ) -> Result<Vec<Layer>, String> {
        let Viewer::User(user) = viewer else {
            return Ok(Vec::new());
        };
        let scope = Scope {
            user: user.clone(),
            ..scope.clone()
        };
        let rules = Self::rendered(layers, &scope)?;
        let (conditions, texts) = (Arc::clone(conditions), rules.conditions());
        let filters: Vec<String> = rules.filters.values().cloned().collect();
        let evaluated = tokio::task::spawn_blocking(move || {
            // One that closed the brackets around it would open what other layers close.
            match conditions.are_expressions(&filters) {
                Ok(true) => {}
                _ => return Err("one of its row filters is not one expression alone"),
            }
            let values = conditions.evaluate(&texts);
            values.map_err(|_| "one of its conditions is no condition on the viewer")
        });
        let values = evaluated
            .await
            .map_err(|panic| format!("the evaluation ended by a defect: {panic}"))??;
        Ok(rules.layers(layers, &values))
    }

    fn rendered(layers: &[&[SecurityRule]], scope: &Scope) -> Result<Self, String> {
        let rendered = |text: &str| render_rule(text, scope).map_err(|error| error.message);
        let mut rules = Self {
            conditions: BTreeMap::new(),
            filters: BTreeMap::new(),
        };
        for rule in layers.iter().copied().flatten() {
            if !rule.condition.is_empty() {
                let text = rendered(&rule.condition)?;
                rules.conditions.insert(rule.condition.clone(), text);
            }
            if !rule.sql.is_empty() {
                rules.filters.insert(rule.sql.clone(), rendered(&rule.sql)?);
            }
        }
        Ok(rules)
    }

    /// Returns the rendered conditions that are to be evaluated.
    fn conditions(&self) -> Vec<String> {
        self.conditions.values().cloned().collect()
    }

    /// Returns the layers, with the values of [`Rules::conditions`] in that order.
    fn layers(&self, layers: &[&[SecurityRule]], values: &[Option<bool>]) -> Vec<Layer> {
        let values: BTreeMap<&str, Option<bool>> = self
            .conditions
            .keys()
            .map(String::as_str)
            .zip(values.iter().copied())
            .collect();
        let truth = |rule: &SecurityRule| match (rule.condition.as_str(), values.get(rule.condition.as_str()))
        {
            ("", _) | (_, Some(Some(true))) => Truth::True,
            (_, Some(Some(false))) => Truth::False,
            // What is not known opens nothing and closes.
            (_, Some(None) | None) => Truth::Null,
        };
        let filter = |rule: &SecurityRule| match self.filters.get(&rule.sql) {
            Some(sql) => sql.clone(),
            None => "false".to_owned(),
        };
        let layers = layers.iter();
        layers.map(|rules| view::layer(rules, truth, filter)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;
    use crate::condition::sole_node;

    /// Texts that would end a literal, statement or template if inserted without quoting.
    const HOSTILE: [&str; 18] = [
        "'",
        "''",
        "\\'",
        "a'; DROP TABLE orders; --",
        "') OR TRUE --",
        "--",
        "/*",
        "*/",
        ";",
        "\n",
        "\r\n--",
        "\"",
        "$$ OR TRUE $$",
        "{{ .user.name }}",
        "{{",
        "}}",
        "NULL",
        "1 OR 1=1",
    ];

    /// Returns the parse tree of a condition without positions, with `?` in place of a text.
    fn shape(condition: &str, text: &str) -> Json {
        let mut tree = sole_node(&format!("SELECT 1 WHERE (\n{condition}\n)")).expect(condition);
        neutral(&mut tree, text);
        tree
    }

    fn neutral(tree: &mut Json, text: &str) {
        match tree {
            Json::String(found) if found == text => *found = "?".to_owned(),
            Json::Array(items) => items.iter_mut().for_each(|item| neutral(item, text)),
            Json::Object(fields) => {
                fields.remove("query_location");
                fields.values_mut().for_each(|value| neutral(value, text));
            }
            _ => {}
        }
    }

    fn rendered(template: &str, text: &str) -> Result<String, String> {
        let scope = Scope {
            user: BTreeMap::from([
                ("one".to_owned(), Value::from(text)),
                (
                    "many".to_owned(),
                    Value::from(vec![Value::from(text), Value::from("b")]),
                ),
            ]),
            args: BTreeMap::from([("one".to_owned(), Value::from(text))]),
            ..Scope::default()
        };
        render_rule(template, &scope).map_err(|error| error.message)
    }

    /// Covers Q16: an attribute never changes the structure of a rule.
    #[test]
    fn hostile_attributes_change_constants_alone() {
        let rule = "a = {{ .user.one }} OR b IN ({{ .user.many }}) AND c LIKE '{{ .user.one }}' -- all";
        let harmless = shape(&rendered(rule, "plain").expect("a rule"), "plain");
        for hostile in HOSTILE {
            let written = rendered(rule, hostile).expect(hostile);
            assert_eq!(shape(&written, hostile), harmless, "{written}");
        }
    }

    /// Covers Q25: an argument inside quotes is inserted as text; outside of quotes only a word or number is allowed.
    #[test]
    fn hostile_arguments_change_constants_alone_or_are_refused() {
        let quoted = "a = '{{ .args.one }}' AND b";
        let harmless = shape(&rendered(quoted, "plain").expect("a condition"), "plain");
        let word = shape(
            &rendered("a = {{ .args.one }}", "plain").expect("a condition"),
            "plain",
        );
        for hostile in HOSTILE {
            let written = rendered(quoted, hostile).expect(hostile);
            assert_eq!(shape(&written, hostile), harmless, "{written}");
            match rendered("a = {{ .args.one }}", hostile) {
                Err(_) => {}
                Ok(written) if hostile == "NULL" => assert_eq!(written, "a = NULL"),
                Ok(written) => assert_eq!(shape(&written, hostile), word, "{written}"),
            }
        }
    }

    #[test]
    fn every_user_has_the_common_attributes() {
        let user = serde_json::json!({"email": "a@b@example.org", "tenant": 5});
        let serde_json::Value::Object(user) = user else {
            unreachable!("it is a mapping")
        };
        let Viewer::User(user) = Viewer::user(user) else {
            panic!("a user is not the owner")
        };
        let shown = serde_json::to_value(&user).expect("attributes are JSON");
        let expected = serde_json::json!({"name": "", "email": "a@b@example.org", "domain": "example.org",
            "groups": [], "admin": false, "tenant": 5});
        assert_eq!(shown, expected);
    }
}
