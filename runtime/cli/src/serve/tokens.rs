//! The file of tokens, validated as a whole.

use std::collections::BTreeSet;

use watershed_api::http::ROUTES;
use watershed_callers::grants::ALL_INSTANCES;
use watershed_callers::token::{NAME_MAX, Token};
use watershed_callers::{Digest, Grant, Grants, Verifier};
use watershed_compilers::configuration::{GivenToken, Placed, read_tokens};
use watershed_compilers::{Code, Diagnostic};

/// Reads a file of tokens. `instances` are the names to which a role may belong. Findings show no value that may be a secret.
pub(crate) fn read(path: &str, bytes: &[u8], instances: &BTreeSet<&str>) -> (Vec<Token>, Vec<Diagnostic>) {
    let (given, found) = read_tokens(path, bytes);
    let mut reading = Reading {
        path,
        instances,
        found,
    };
    let mut ids = BTreeSet::new();
    let tokens: Vec<Token> = given
        .iter()
        .filter_map(|given| {
            if !ids.insert(given.id.text.as_str()) {
                reading.mistake(
                    &given.id,
                    Code::DuplicateKey,
                    "the id stands twice",
                    "each token has its own",
                );
            }
            reading.token(given)
        })
        .collect();
    reading.found.sort();
    (tokens, reading.found)
}

struct Reading<'f> {
    path: &'f str,
    instances: &'f BTreeSet<&'f str>,
    found: Vec<Diagnostic>,
}

impl Reading<'_> {
    fn mistake(&mut self, place: &Placed, code: Code, message: impl Into<String>, hint: &str) {
        self.found.push(Diagnostic {
            path: self.path.to_owned(),
            span: place.span,
            severity: code.severity(),
            code,
            message: message.into(),
            hint: Some(hint.to_owned()),
            resource: None,
            related: Vec::new(),
        });
    }

    fn wrong(&mut self, place: &Placed, message: impl Into<String>, hint: &str) {
        self.mistake(place, Code::InvalidValue, message, hint);
    }

    fn token(&mut self, given: &GivenToken) -> Option<Token> {
        const MADE: &str = "`watershed token create --file FILE` writes such a line";
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let id = &given.id;
        if id.text.len() != 16 || !is_hex(&id.text) {
            self.wrong(id, "the id is not 16 hexadecimal digits", MADE);
        }
        if Digest::from_hex(&given.sha256.text).is_none() {
            self.wrong(&given.sha256, "`sha256` is not 64 hexadecimal digits", MADE);
        }
        let scram = given.scram.as_ref().and_then(|text| {
            let read = Verifier::try_from(text.text.clone()).ok();
            if read.is_none() {
                self.wrong(text, "`scram` is no SCRAM-SHA-256 verifier", MADE);
            }
            read
        });
        let name = given.name.as_ref().unwrap_or(id);
        if name.text.len() > NAME_MAX {
            self.wrong(
                name,
                format!("a name has at most {NAME_MAX} bytes"),
                "shorten the name",
            );
        }
        let expires = expiry_ms(&given.expires.text);
        if expires.is_none() {
            let hint = "write a day or a time, such as `2027-01-31` or `2027-01-31T06:00:00Z`";
            self.wrong(&given.expires, "the end of the token is no time", hint);
        }
        for operation in given.operations.iter().flatten() {
            if !ROUTES.iter().any(|route| route.name() == operation.text) {
                let message = format!("there is no operation `{}`", operation.text.escape_debug());
                self.wrong(
                    operation,
                    message,
                    "docs/openapi.json has them as `x-operation` of each path",
                );
            }
        }
        if given.operations.as_ref().is_some_and(Vec::is_empty) {
            self.wrong(
                id,
                "the token is for no operation",
                "remove `operations`, or name some",
            );
        }
        let roles = self.roles(given);
        let texts = |all: &[Placed]| all.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
        Some(Token {
            id: id.text.clone(),
            name: name.text.clone(),
            roles,
            operations: given.operations.as_deref().map(texts),
            select: texts(&given.select),
            expires_ms: expires?,
            sha256: given.sha256.text.clone(),
            scram,
        })
    }

    fn roles(&mut self, given: &GivenToken) -> Grants {
        let mut roles = Grants::default();
        for (instance, role) in &given.roles {
            let name = instance.text.as_str();
            if name != ALL_INSTANCES && !self.instances.contains(name) {
                let message = format!("there is no instance `{}`", name.escape_debug());
                self.wrong(instance, message, "name one of the configuration, or `*` for all");
            }
            match role.text.parse::<Grant>() {
                Ok(grant) => roles.add(name, grant),
                Err(error) => self.wrong(role, error.to_string(), "for example `operate+query`"),
            }
        }
        roles
    }
}

/// Returns a time, or the beginning of a day in UTC, in milliseconds since 1970.
fn expiry_ms(text: &str) -> Option<i64> {
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond());
    }
    let day: jiff::civil::Date = text.parse().ok()?;
    let begin = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(begin.timestamp().as_millisecond())
}

#[cfg(test)]
mod tests {
    use watershed_callers::token::Wanted;

    use super::*;

    #[test]
    fn s_api17_a_file_of_tokens_is_read_whole_or_told_with_places_and_without_secrets() {
        let instances = BTreeSet::from(["shop"]);
        let minted = Token::mint(Wanted {
            name: "job".into(),
            roles: Grants::one("shop", "operate+query".parse().unwrap()),
            operations: Some(vec!["run".into()]),
            select: vec!["+a".into()],
            expires_ms: 1_767_225_600_000,
        });
        let mut line = serde_json::to_value(&minted.token).unwrap();
        line["expires"] = "2026-01-01".into();
        line.as_object_mut().unwrap().remove("expires_ms");
        let (tokens, found) = read("tokens.yaml", format!("- {line}\n").as_bytes(), &instances);
        assert_eq!((tokens, found), (vec![minted.token], Vec::new()));
        let secret = minted.text.rsplit('_').next().unwrap();
        let wrong = format!(
            "- {{id: {secret}, roles: {{depot: read, shop: reader}}, expires: soon, sha256: {secret}, scram: {secret}, operations: [walk]}}\n\
             - {{id: {secret}, roles: {{shop: read}}, expires: 2027-01-01, sha256: {secret}, operations: []}}\n",
        );
        let (_, found) = read("tokens.yaml", wrong.as_bytes(), &instances);
        assert_eq!(found.len(), 11, "{found:#?}");
        for found in &found {
            assert!(found.span.line == 1 || found.span.line == 2);
            assert!(
                !format!("{} {:?}", found.message, found.hint).contains(&secret[..12]),
                "{found:?}"
            );
        }
    }
}
