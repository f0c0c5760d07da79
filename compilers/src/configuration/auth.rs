//! Keys of authentication, and the file of tokens.

use super::network::Network;
use super::people::{self, People};
use super::{Placed, finish, in_file, placed};
use crate::{
    diagnostics::{Code, Diagnostic, Findings, Role},
    yaml::{self, Data, Fields, Map, Node, keys::blocks},
};

blocks! {
    /// Keys of authentication.
    pub(crate) static AUTH = "auth" Refused {
        "tokens": Text, "The file of tokens that the operator gives. Only its owner may read it.";
        "oidc": Block(&people::OIDC), "The identity provider at which people sign in.";
        "header": Block(&people::HEADER), "The header in which a declared proxy names people.";
        "attributes": Map(&Text), "The claim that each attribute of a viewer comes from, where the names differ.";
        "roles": List(&Block(&people::ROLE_RULE)), "Rules that give roles to people by their claims.";
    }

    /// Keys of a token in the file of tokens.
    pub(crate) static TOKEN = "token" Refused {
        "id": Text, "The public id of the token.";
        "name": Text, "A name for people; the id unless set.";
        "roles": Map(&Text), "The role on each instance, such as `operate+query`; `*` stands for all instances.";
        "operations": Texts, "The only operations that the token allows; all that its roles allow unless set.";
        "select": Texts, "The only resources that the token is for, in the language of `--select`; all unless set.";
        "expires": Text, "The time, or the day in UTC, at which the token ends.";
        "sha256": Text, "The SHA-256 of the token's secret, in hexadecimal digits.";
        "scram": Text, "The SCRAM verifier of the token's secret, for SQL clients.";
    }
}

/// The ways in which callers are recognised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auth {
    /// Path of the file of tokens.
    pub tokens: Option<Placed>,
    /// People and what they may do.
    pub people: People,
}

/// A token in the file of tokens, as it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenToken {
    /// Public id of the token.
    pub id: Placed,
    /// Name for people; none if not set.
    pub name: Option<Placed>,
    /// Instances, each with its role.
    pub roles: Vec<(Placed, Placed)>,
    /// Names of the only operations; none if not set.
    pub operations: Option<Vec<Placed>>,
    /// Terms of the selection.
    pub select: Vec<Placed>,
    /// Time of expiry.
    pub expires: Placed,
    /// SHA-256 of the secret.
    pub sha256: Placed,
    /// SCRAM verifier of the secret; none if not set.
    pub scram: Option<Placed>,
}

/// Reads the keys of authentication; none if nobody is asked who they are.
pub(super) fn auth(fields: &mut Fields<'_>, network: &Network) -> Option<Auth> {
    let key_at = fields.key_at("auth")?;
    let map = match fields.map("auth") {
        Some((map, _)) => map,
        None => Map::new(),
    };
    let lets_in = |key: &&str| map.get(*key).is_some_and(|entry| !entry.value.is_null());
    if !["tokens", "oidc", "header"].iter().any(lets_in) {
        let hint = "name a file of tokens: `auth: {tokens: tokens.yaml}`; `watershed token create --file tokens.yaml` makes one";
        fields
            .findings()
            .add_with_hint(key_at, Code::MissingKey, "`auth` lets nobody in", hint);
    }
    let mut fields = Fields::new(map, key_at, fields.findings());
    let auth = Auth {
        tokens: placed(&mut fields, "tokens"),
        people: People::read(&mut fields, network),
    };
    finish(fields, &AUTH, &[]);
    Some(auth)
}

/// Reads the folder of the service's state; none if not set.
pub(super) fn state(fields: &mut Fields<'_>) -> Option<Placed> {
    let entry = fields.take("state")?;
    let key_at = entry.key_at;
    if entry.value.as_map().is_none() {
        fields.put_back("state", entry);
        return placed(fields, "state");
    }
    let hint = "name a folder, in which one process keeps the state";
    let message = "a state in Postgres is not there yet";
    fields
        .findings()
        .add_with_hint(key_at, Code::InvalidValue, message, hint);
    None
}

/// Parses a file of tokens.
pub fn read_tokens(path: &str, bytes: &[u8]) -> (Vec<GivenToken>, Vec<Diagnostic>) {
    in_file(path, bytes, |text, findings| match yaml::load(text, Role::Yaml) {
        Ok(loaded) => {
            loaded.findings.into_iter().for_each(|found| findings.push(found));
            tokens(loaded.root, findings)
        }
        Err(found) => {
            findings.push(*found);
            Vec::new()
        }
    })
}

fn tokens(root: Node, findings: &mut Findings) -> Vec<GivenToken> {
    let at = root.at;
    match root.data {
        Data::List(list) => list
            .into_iter()
            .filter_map(|node| token(node, findings))
            .collect(),
        Data::Null => Vec::new(),
        other => {
            let message = format!("a file of tokens is a list, not {}", other.type_name());
            findings.add(at, Code::WrongType, message);
            Vec::new()
        }
    }
}

fn token(node: Node, findings: &mut Findings) -> Option<GivenToken> {
    let (map, at) = yaml::item(node, "a token", findings)?;
    let mut fields = Fields::new(map, at, findings);
    let id = required(&mut fields, "id");
    let sha256 = required(&mut fields, "sha256");
    let expires = required(&mut fields, "expires");
    let has_roles = fields.has("roles");
    let named = fields.map("roles").map(|(map, _)| map).unwrap_or_default();
    let roles: Vec<(Placed, Placed)> = named
        .into_iter()
        .map(|(text, entry)| {
            let instance = Placed {
                text,
                span: entry.key_at.span,
            };
            let role = Placed {
                text: entry.value.scalar_text().unwrap_or_default(),
                span: entry.value.at.span,
            };
            (instance, role)
        })
        .collect();
    if roles.is_empty() {
        let message = if has_roles {
            "the token has no roles"
        } else {
            "the token needs `roles`"
        };
        let hint = "`roles: {shop: operate}`; `*` stands for all instances";
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    let has_operations = fields.has("operations");
    let operations = texts(&mut fields, "operations");
    let token = GivenToken {
        name: placed(&mut fields, "name"),
        operations: has_operations.then_some(operations),
        select: texts(&mut fields, "select"),
        scram: placed(&mut fields, "scram"),
        roles,
        id: id?,
        expires: expires?,
        sha256: sha256?,
    };
    fields.finish(&TOKEN);
    Some(token)
}

fn texts(fields: &mut Fields<'_>, key: &str) -> Vec<Placed> {
    let all = fields.placed_texts(key).into_iter();
    all.map(|(text, at)| Placed { text, span: at.span }).collect()
}

fn required(fields: &mut Fields<'_>, key: &str) -> Option<Placed> {
    if !fields.has(key) {
        let at = fields.at();
        fields
            .findings()
            .add(at, Code::MissingKey, format!("the token needs `{key}`"));
    }
    placed(fields, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let (_, found) = read_tokens("tokens.yaml", text.as_bytes());
        let found = found.iter();
        found
            .map(|it| format!("{}:{} {}", it.span.line, it.span.column, it.code.as_str()))
            .collect()
    }

    #[test]
    fn a_file_of_tokens_is_read_with_places() {
        let text = "- {id: a1, roles: {shop: read, '*': operate}, expires: 2027-01-01, sha256: ab, operations: run}\n\
                    - {\"id\": \"b2\", \"name\": \"job\", \"roles\": {\"shop\": \"edit\"}, \"expires\": \"2027-01-01T00:00:00Z\", \"sha256\": \"cd\", \"scram\": \"SCRAM\", \"select\": [\"+a\"]}\n";
        let (tokens, found) = read_tokens("tokens.yaml", text.as_bytes());
        assert_eq!(found, []);
        let [one, two] = &tokens[..] else {
            panic!("two tokens: {tokens:?}")
        };
        let roles: Vec<(&str, &str)> = one
            .roles
            .iter()
            .map(|(instance, role)| (instance.text.as_str(), role.text.as_str()))
            .collect();
        assert_eq!(roles, [("*", "operate"), ("shop", "read")]);
        assert_eq!(
            (one.expires.text.as_str(), one.name.as_ref()),
            ("2027-01-01", None)
        );
        assert_eq!(one.operations.as_ref().map(Vec::len), Some(1));
        assert_eq!((two.select[0].text.as_str(), two.id.span.line), ("+a", 2));
    }

    #[test]
    fn every_mistake_of_a_file_of_tokens_has_its_place() {
        assert_eq!(told(""), [""; 0]);
        assert_eq!(told("tokens: []"), ["1:1 wrong-type"]);
        assert_eq!(told("- wsd_a_b"), ["1:3 wrong-type"]);
        let found = told("- {id: a, rolls: {shop: read}}\n- {id: b, roles: {}, expires: x, sha256: y}\n");
        let codes: Vec<&str> = found.iter().map(|it| it.split(' ').nth(1).unwrap()).collect();
        assert_eq!(codes, ["missing-key"; 4], "{found:?}");
    }
}
