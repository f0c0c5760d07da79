//! Viewers, and the rules of views evaluated for them.

use std::collections::BTreeMap;

use watershed_compilers::{Scope, render_rule};
use watershed_metrics::Policy;
use watershed_metrics::policy::Truth;
use watershed_proto::{MetricsViewSpec, SecurityRule, Value};
use watershed_reconcilers::metrics_view::view;

use super::MetricsError;
use crate::exit::Exit;
use crate::socket::Refusal;

/// The one who asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Viewer {
    /// The project's owner, whom no policy binds.
    Owner,
    /// A user with attributes, which the rules of views compare.
    User(BTreeMap<String, Value>),
}

impl Viewer {
    /// Returns a user with attributes. Every user has `name`, `email`, `domain` (that of the e-mail), `groups` and `admin`:
    /// those that are missing are empty, and false.
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

    /// Returns an error without the engine's words, which may quote rows that a user may not see.
    pub(super) fn unspoken(&self, error: MetricsError) -> MetricsError {
        match (self, error) {
            (Self::User(_), MetricsError::Engine(refusal))
                if refusal.exit_code == Exit::ProjectError.code() =>
            {
                let message = "the query failed on the data that it reads";
                MetricsError::Engine(
                    Refusal::new(Exit::ProjectError, message)
                        .hint("the project's owner sees the reason, with the same query"),
                )
            }
            (_, error) => error,
        }
    }
}

/// The rules of a view and its parents, rendered for a user.
pub(super) struct Rules {
    /// Conditions by the text of their template.
    conditions: BTreeMap<String, String>,
    /// Row filters by the text of their template.
    filters: BTreeMap<String, String>,
}

impl Rules {
    /// Renders the rules of a view; nothing for the owner.
    ///
    /// # Errors
    /// The first template that can't be executed, or has an attribute where no value can stand.
    pub(super) fn rendered(
        spec: &MetricsViewSpec,
        viewer: &Viewer,
        scope: &Scope,
    ) -> Result<Option<Self>, String> {
        let Viewer::User(user) = viewer else {
            return Ok(None);
        };
        let scope = Scope {
            user: user.clone(),
            ..scope.clone()
        };
        let rendered = |text: &str| render_rule(text, &scope).map_err(|error| error.message);
        let mut rules = Self {
            conditions: BTreeMap::new(),
            filters: BTreeMap::new(),
        };
        for rule in view::layers(spec).into_iter().flatten() {
            if !rule.condition.is_empty() {
                let text = rendered(&rule.condition)?;
                rules.conditions.insert(rule.condition.clone(), text);
            }
            if !rule.sql.is_empty() {
                rules.filters.insert(rule.sql.clone(), rendered(&rule.sql)?);
            }
        }
        Ok(Some(rules))
    }

    /// Returns the conditions to be evaluated.
    pub(super) fn conditions(&self) -> Vec<String> {
        self.conditions.values().cloned().collect()
    }

    /// Returns the policy, given the values of [`Rules::conditions`] in their order.
    pub(super) fn policy(&self, spec: &MetricsViewSpec, values: &[Option<bool>]) -> Policy {
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
        let layers = view::layers(spec).into_iter();
        let layers: Vec<_> = layers.map(|rules| view::layer(rules, truth, filter)).collect();
        Policy::of(&layers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
