//! The people of a configuration: files read, roles and names checked.

use std::collections::BTreeSet;

use axum::http::HeaderName;
use watershed_callers::grants::ALL_INSTANCES;
use watershed_callers::jwt::{Believer, Issuer};
use watershed_callers::people::{Mapping, RoleRule};
use watershed_callers::{Digest, Grant};
use watershed_compilers::Code;
use watershed_compilers::configuration::{self, Placed};

use super::configuration::Reading;
use super::people::{Checked, Header, Https, Provider};

/// The shortest secret of a proxy, in bytes.
const SECRET_MIN: usize = 16;

impl Reading<'_> {
    /// Reads the files that the keys about people name. The result must not be used after a mistake.
    pub(super) fn people(&mut self, read: &configuration::People, instances: &BTreeSet<&str>) -> Checked {
        Checked {
            provider: read.oidc.as_ref().and_then(|oidc| self.provider(oidc)),
            header: read.header.as_ref().and_then(|header| self.header(header)),
            mapping: Mapping {
                attributes: read.attributes.clone(),
                roles: read
                    .roles
                    .iter()
                    .filter_map(|rule| self.rule(rule, instances))
                    .collect(),
            },
        }
    }

    fn provider(&mut self, oidc: &configuration::Oidc) -> Option<(Provider, Believer)> {
        let secret = match &oidc.client_secret_file {
            Some(file) => Some(self.secret(file)?),
            None => None,
        };
        let authorities = oidc.ca_cert_file.as_ref();
        let https = match (Https::new(authorities.map(|named| self.path(named))), authorities) {
            (Ok(https), _) => https,
            (Err(error), Some(named)) => {
                let hint = "write certificates in PEM form into the file";
                self.mistake(named, Code::Unreadable, error.to_string(), hint);
                return None;
            }
            (Err(error), None) => {
                tracing::error!(%error, "no client of the identity provider");
                return None;
            }
        };
        let issuer = Issuer {
            issuer: oidc.issuer.clone(),
            audience: oidc.client_id.clone(),
        };
        let believer = Believer::new(issuer, https.clone());
        let provider = Provider::new(https, oidc.issuer.clone(), oidc.client_id.clone(), secret);
        Some((provider, believer))
    }

    /// Reads a secret from a file of its own.
    pub(super) fn secret(&mut self, file: &Placed) -> Option<String> {
        let text = String::from_utf8(self.private_file(file)?).unwrap_or_default();
        let text = text.trim();
        if text.len() < SECRET_MIN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!("the secret has to be a line of {SECRET_MIN} letters and signs, or more");
            let hint = "make one with `openssl rand -hex 32`";
            self.mistake(file, Code::InvalidValue, message, hint);
        }
        Some(text.to_owned())
    }

    fn header(&mut self, read: &configuration::Header) -> Option<Header> {
        let secret = match &read.secret {
            Some((name, file)) => {
                let secret = self.secret(file)?;
                Some((HeaderName::try_from(name).ok()?, Digest::of(&secret)))
            }
            None => None,
        };
        let name = HeaderName::try_from(&read.name).ok()?;
        Some(Header { name, secret })
    }

    fn rule(&mut self, read: &configuration::RoleRule, instances: &BTreeSet<&str>) -> Option<RoleRule> {
        let instance = &read.instance;
        if instance.text != ALL_INSTANCES && !instances.contains(instance.text.as_str()) {
            let message = format!("there is no instance `{}`", instance.text);
            let hint = "name one of `instances`, or `*` for all";
            self.mistake(instance, Code::InvalidValue, message, hint);
        }
        match read.role.text.parse::<Grant>() {
            Ok(role) => Some(RoleRule {
                claim: read.claim.clone(),
                value: read.value.clone(),
                instance: instance.text.clone(),
                role,
            }),
            Err(error) => {
                let hint = "such as `read`, or `operate+query`";
                self.mistake(&read.role, Code::InvalidValue, error.to_string(), hint);
                None
            }
        }
    }
}
