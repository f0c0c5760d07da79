//! People: their names, attributes and access, from a provider's claims or a proxy's header.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grants::{Grant, Grants};
use crate::jwt::Claims;

/// The most values of an attribute that are kept, for example of groups.
pub const VALUES_MAX: usize = 1_000;
/// The longest text that is kept as an attribute's value, in bytes.
pub const VALUE_MAX: usize = 1_024;

/// Attributes for policies by name: `email`, `domain`, `groups`, `name`, `admin`, and further names from the
/// configuration. Absent attributes never match everything.
pub type Attributes = BTreeMap<String, Value>;

/// A rule that grants access to everybody with a certain claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRule {
    /// Name of the claim.
    pub claim: String,
    /// Expected value, compared exactly; of a list, any element may match.
    pub value: String,
    /// Name of the instance, or [`ALL_INSTANCES`](crate::grants::ALL_INSTANCES).
    pub instance: String,
    /// Access granted on the instance.
    pub role: Grant,
}

/// The operator's configuration of the attributes and access that claims give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Claims by the attribute that each provides, where the names differ.
    pub attributes: BTreeMap<String, String>,
    /// Rules that grant access; the grants of all matching rules are united.
    pub roles: Vec<RoleRule>,
}

/// An authenticated person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Name in histories: the verified e-mail address, or else the provider's name for the person.
    pub name: String,
    /// Access by instance; empty if no rule matches.
    pub roles: Grants,
    /// Attributes for policies.
    pub attributes: Attributes,
}

/// Attributes that are read from the claim of the same name.
const KNOWN: [&str; 3] = ["groups", "name", "admin"];

impl Mapping {
    /// Returns the person that the claims of a verified token describe. `email` and `domain` are set only if the
    /// provider has verified the address.
    pub fn person(&self, claims: &Claims) -> Person {
        let is_verified = claims.get("email_verified") == Some(&Value::Bool(true));
        let email = claims
            .get("email")
            .and_then(Value::as_str)
            .filter(|_| is_verified);
        let mut attributes = Attributes::new();
        if let Some(email) = email.filter(|email| email.len() <= VALUE_MAX) {
            attributes.insert("email".into(), email.into());
            if let Some((_, domain)) = email.rsplit_once('@') {
                attributes.insert("domain".into(), domain.into());
            }
        }
        let own = KNOWN.map(|name| (name, name));
        let listed = self
            .attributes
            .iter()
            .map(|(attribute, claim)| (attribute.as_str(), claim.as_str()));
        for (attribute, claim) in own.into_iter().chain(listed) {
            if self.is_address(attribute, claim) {
                continue;
            }
            if let Some(value) = claims.get(claim).and_then(bounded) {
                attributes.insert(attribute.to_owned(), value);
            } else if self.attributes.contains_key(attribute) {
                attributes.remove(attribute);
            }
        }
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        Person {
            name: email.unwrap_or(subject).chars().take(VALUE_MAX).collect(),
            roles: self.roles_of(claims, email),
            attributes,
        }
    }

    /// Returns the person with an e-mail address that a configured proxy has authenticated.
    pub fn named_by_proxy(&self, email: &str) -> Person {
        let claims = Claims::from_iter([
            ("email".to_owned(), Value::from(email)),
            ("email_verified".to_owned(), Value::Bool(true)),
        ]);
        self.person(&claims)
    }

    /// Returns true if an attribute or claim concerns the e-mail address, which the configuration can't remap.
    fn is_address(&self, attribute: &str, claim: &str) -> bool {
        ["email", "domain"].contains(&attribute) || claim == "email"
    }

    fn roles_of(&self, claims: &Claims, email: Option<&str>) -> Grants {
        let mut roles = Grants::default();
        for rule in &self.roles {
            let holds = match rule.claim.as_str() {
                "email" => email == Some(rule.value.as_str()),
                claim => claims.get(claim).is_some_and(|value| has(value, &rule.value)),
            };
            if holds {
                roles.add(rule.instance.clone(), rule.role);
            }
        }
        roles
    }
}

/// Returns true if a claim equals the value or is a list that contains the value.
fn has(claim: &Value, wanted: &str) -> bool {
    match claim {
        Value::String(text) => text == wanted,
        Value::Bool(is) => wanted == if *is { "true" } else { "false" },
        Value::Array(values) => values.iter().any(|value| value.as_str() == Some(wanted)),
        _ => false,
    }
}

/// Returns a claim's value as an attribute, within limits of size; none for objects and texts that are too long.
fn bounded(value: &Value) -> Option<Value> {
    let is_plain = |value: &Value| match value {
        Value::String(text) => text.len() <= VALUE_MAX,
        Value::Bool(_) | Value::Number(_) => true,
        _ => false,
    };
    match value {
        Value::Array(values) => {
            let kept = values.iter().filter(|value| is_plain(value)).take(VALUES_MAX);
            Some(Value::Array(kept.cloned().collect()))
        }
        value => is_plain(value).then(|| value.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Value) -> Claims {
        value.as_object().unwrap().clone()
    }

    fn rule(claim: &str, value: &str, instance: &str, role: &str) -> RoleRule {
        RoleRule {
            claim: claim.into(),
            value: value.into(),
            instance: instance.into(),
            role: role.parse().unwrap(),
        }
    }

    fn mapping() -> Mapping {
        Mapping {
            attributes: BTreeMap::from([
                ("groups".into(), "teams".into()),
                ("region".into(), "sales_region".into()),
            ]),
            roles: vec![
                rule("teams", "analysts", "shop", "read"),
                rule("teams", "engineers", "*", "operate+query"),
                rule("email", "night@example.org", "shop", "edit"),
            ],
        }
    }

    #[test]
    fn s_api18_claims_become_roles_and_attributes() {
        let person = mapping().person(&claims(json!({
            "sub": "7", "email": "ann@example.org", "email_verified": true, "name": "Ann",
            "teams": ["analysts", "engineers"], "groups": ["admins"], "sales_region": "north", "sales": 1,
        })));
        assert_eq!(person.name, "ann@example.org");
        assert_eq!(person.roles.on("shop").unwrap().to_string(), "operate+query");
        let expected = json!({
            "email": "ann@example.org", "domain": "example.org", "name": "Ann",
            "groups": ["analysts", "engineers"], "region": "north",
        });
        assert_eq!(json!(person.attributes), expected);
    }

    #[test]
    fn s_api18_an_address_counts_only_if_it_is_verified() {
        for said in [
            json!({}),
            json!({"email_verified": false}),
            json!({"email_verified": "true"}),
            json!({"email_verified": 1}),
        ] {
            let mut all = claims(json!({"sub": "7", "email": "night@example.org", "domain": "example.org"}));
            all.extend(claims(said.clone()));
            let person = mapping().person(&all);
            assert!(
                person.roles.is_empty() && person.attributes.is_empty(),
                "{said}: {person:?}"
            );
            assert_eq!(person.name, "7");
        }
        let mut sly = mapping();
        sly.attributes.insert("email".into(), "nickname".into());
        sly.attributes.insert("contact".into(), "email".into());
        let person = sly.person(&claims(
            json!({"sub": "7", "nickname": "night@example.org", "email": "x@example.org"}),
        ));
        assert!(person.attributes.is_empty(), "{person:?}");
    }

    #[test]
    fn s_api18_a_claim_that_is_missing_huge_or_of_another_type_matches_nothing() {
        for teams in [
            json!(null),
            json!({"analysts": true}),
            json!([["analysts"]]),
            json!("analysts,engineers"),
            json!("Analysts"),
            json!(["*"]),
            json!(7),
        ] {
            let person = mapping().person(&claims(
                json!({"sub": "7", "teams": teams, "groups": ["analysts"]}),
            ));
            assert!(person.roles.is_empty(), "{teams}");
            // The attribute comes from the claim that the operator names, or from nowhere.
            assert_ne!(
                person.attributes.get("groups"),
                Some(&json!(["analysts"])),
                "{teams}"
            );
        }
        let many: Vec<String> = (0..VALUES_MAX + 5).map(|team| format!("t{team}")).collect();
        let person = mapping().person(&claims(
            json!({"sub": "7", "teams": many, "name": "n".repeat(VALUE_MAX + 1)}),
        ));
        assert_eq!(person.attributes["groups"].as_array().unwrap().len(), VALUES_MAX);
        assert!(!person.attributes.contains_key("name"));
    }

    #[test]
    fn whom_a_proxy_names_has_an_address_and_its_roles() {
        let person = mapping().named_by_proxy("night@example.org");
        assert_eq!(person.roles.on("shop").unwrap().to_string(), "edit");
        assert_eq!(
            json!(person.attributes),
            json!({"email": "night@example.org", "domain": "example.org"})
        );
    }
}
