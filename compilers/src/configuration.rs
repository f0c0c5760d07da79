//! The configuration of a service: its address, and the projects that it serves.
//!
//! [`read`] finds every mistake that the file itself has, each with its place. Whether folders and files of secrets are as they
//! should be is looked at by whoever opens them.

mod address;
mod auth;
mod egress;
mod git;
mod instances;
mod limits;
mod network;
mod people;
mod sql;
mod trust;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::{
    diagnostics::{At, Code, Diagnostic, Findings, Role, Span},
    read::env_file,
    text::Text,
    yaml::{self, Block, Data, Fields, Map, keys::blocks, unknown_key},
};

pub use address::{is_host, plain_base};
pub use auth::{Auth, GivenToken, read_tokens};
pub use egress::Destination;
pub use git::Git;
pub use instances::{Files, Instance};
pub use limits::Limits;
pub use network::{Listen, Network, Tls};
pub use people::{Header, Oidc, People, RoleRule};
pub use trust::Trust;

blocks! {
    /// Top-level keys of a configuration.
    pub(crate) static CONFIGURATION = "configuration" Refused {
        "listen": Text, "The address and port at which the service answers, `127.0.0.1:7437` unless set; or `unix:` and the path of a socket, for a proxy.";
        "hosts": Texts, "Names under which the service is reached, besides those of this machine itself.";
        "base": Text, "The path below which everything stands, as behind a proxy.";
        "state": Text, "The folder of the service's own state: tokens, the audit log, answers to calls with an idempotency key. With `auth` and without this key, a folder beside this file.";
        "auth": Block(&auth::AUTH), "Who may ask. Without it the user who started the service, and nobody else.";
        "tls": Block(&network::TLS), "The certificate with which the service encrypts.";
        "proxies": Texts, "Addresses and networks of the proxies before the service, whose reports about clients are believed.";
        "limits": Block(&limits::LIMITS), "What callers of the service may use.";
        "mcp": Bool, "True if assistants are let in at `/mcp`, with the roles of their tokens; false unless set.";
        "sql": Block(&sql::SQL), "SQL clients, by the protocol of Postgres, with the roles of their tokens. Without it they are not let in.";
        "egress": Block(&egress::EGRESS), "Connections of the projects to other machines, beside encrypted ones to the public internet.";
        "instances": Map(&Block(&INSTANCE)), "The projects, each under the name that it has in paths.";
    }

    /// Keys of an instance.
    pub(crate) static INSTANCE = "instance" Refused {
        "project": Text, "The project's folder; a relative path starts from the folder of this file.";
        "git": Block(&git::GIT), "The repository whose files are fetched, in the place of a folder.";
        "environment": Text, "The environment; `dev` unless set.";
        "env_file": Text, "A file of `NAME=value` lines, which win over those of the project. Only its owner may read it.";
        "remote_edit": Bool, "True if callers with the role `edit` may change the files of an instance with `trust: full`, which is worth a shell of the service's user; false unless set.";
        "weight": Count, "The instance's share in the jobs of the service, in proportion to the weights of the other instances that want some; 1 unless set.";
        "reach": Texts, "Addresses of stores and web servers such as `s3://lake/raw/` and `https://rates.example.org/`, which sources and exports of an instance with `trust: sandbox` may ask; the endpoint of a store that a connector names has to be among them.";
        "extensions": Texts, "Extensions of the engine that are loaded for an instance with `trust: sandbox`, of those that read files by the engine alone.";
        "trust": Word(&Trust::WORDS), "What the project's files may do: `sandbox` (unless set) reads and writes the project's own folder and starts nothing, `full` is whatever the service's user may.";
    }
}

/// Top-level keys that are reserved for later versions.
const LATER: [&str; 1] = ["embed"];

/// The readable part of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Network of the service.
    pub network: Network,
    /// Host names under which the service is reached, besides loopback.
    pub hosts: Vec<String>,
    /// Path prefix of the service, without a slash at its end.
    pub base: String,
    /// Folder of the service's state; none if not set.
    pub state: Option<Placed>,
    /// Ways in which callers are recognised; none if only the user who started the service is let in.
    pub auth: Option<Auth>,
    /// Limits of what callers of the service may use.
    pub limits: Limits,
    /// True if assistants are let in.
    pub mcp: bool,
    /// Address at which SQL clients connect; none if they are not let in.
    pub sql: Option<SocketAddr>,
    /// Destinations that projects may connect to beside the public internet.
    pub egress: Vec<Destination>,
    /// Instances by name.
    pub instances: BTreeMap<String, Instance>,
}

/// A text of the file, with its place for diagnostics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The value of the key.
    pub text: String,
    /// Place of the value in the file.
    pub span: Span,
}

/// Parses a configuration; `path` is the file's name in diagnostics. The result must not be used if a diagnostic is an
/// error.
pub fn read(path: &str, bytes: &[u8]) -> (Configuration, Vec<Diagnostic>) {
    in_file(path, bytes, |text, findings| match yaml::load(text, Role::Yaml) {
        Ok(loaded) => {
            loaded.findings.into_iter().for_each(|found| findings.push(found));
            decode(loaded.root, findings)
        }
        Err(found) => {
            findings.push(*found);
            Configuration::default()
        }
    })
}

/// Parses a file of variables, with `NAME=value` lines.
pub fn read_variables(path: &str, bytes: &[u8]) -> (BTreeMap<String, String>, Vec<Diagnostic>) {
    in_file(path, bytes, env_file::read)
}

fn in_file<T: Default>(
    path: &str,
    bytes: &[u8],
    read: impl FnOnce(&Text<'_>, &mut Findings) -> T,
) -> (T, Vec<Diagnostic>) {
    let mut findings = Findings::default();
    let value = match Text::read(bytes) {
        Ok(text) => read(&text, &mut findings),
        Err(span) => {
            let at = At {
                role: Role::Yaml,
                span,
            };
            findings.add(at, Code::NotUtf8, "the file is not UTF-8 text");
            T::default()
        }
    };
    let mut found: Vec<Diagnostic> = findings.iter().map(|found| found.in_file(path, None)).collect();
    found.sort();
    (value, found)
}

fn decode(root: yaml::Node, findings: &mut Findings) -> Configuration {
    let at = root.at;
    let map = match root.data {
        Data::Map(map) => map,
        Data::Null => Map::new(),
        other => {
            let message = format!("a configuration is a mapping, not {}", other.type_name());
            findings.add(at, Code::WrongType, message);
            return Configuration::default();
        }
    };
    let mut fields = Fields::new(map, at, findings);
    let has_auth = fields.has("auth");
    let network = network::network(&mut fields);
    let protected = sql::Protected {
        has_auth,
        is_encrypted: network.tls.is_some() || !network.proxies.is_empty(),
    };
    let configuration = Configuration {
        hosts: address::hosts(&mut fields),
        base: address::base(&mut fields),
        state: auth::state(&mut fields),
        auth: auth::auth(&mut fields, &network),
        sql: sql::sql(&mut fields, &protected),
        network,
        limits: limits::limits(&mut fields),
        mcp: fields.bool("mcp").unwrap_or(false),
        egress: egress::egress(&mut fields),
        instances: instances::instances(&mut fields),
    };
    finish(fields, &CONFIGURATION, &LATER);
    configuration
}

/// Reports the keys that no part of the parser has taken: reserved or unknown.
fn finish(mut fields: Fields<'_>, block: &Block, later: &[&str]) {
    for (key, entry) in fields.take_rest() {
        if later.contains(&key.as_str()) {
            let message = format!("`{key}` is not there yet");
            let hint = "remove the key";
            fields
                .findings()
                .add_with_hint(entry.key_at, Code::UnknownKey, message, hint);
        } else {
            unknown_key(fields.findings(), &key, entry.key_at, block);
        }
    }
}

/// Takes the non-empty text of a key with its place.
fn placed(fields: &mut Fields<'_>, key: &str) -> Option<Placed> {
    let node = fields.text_node(key)?;
    let text = node.scalar_text()?;
    if text.is_empty() || text.contains('\0') {
        let message = format!("\"{key}\" can't be \"{}\"", text.escape_default());
        fields.findings().add(node.at, Code::InvalidValue, message);
        return None;
    }
    Some(Placed {
        text,
        span: node.at.span,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let (_, found) = read("server.yaml", text.as_bytes());
        let found = found.iter();
        found
            .map(|it| format!("{}:{} {}", it.span.line, it.span.column, it.code.as_str()))
            .collect()
    }

    #[test]
    fn a_configuration_is_read_with_the_places_of_its_paths() {
        let text = "listen: 127.0.0.1:80\nhosts: data.example.org\nbase: /data/\ninstances:\n  shop: {project: /srv/shop, environment: prod, trust: full}\n";
        let (read, found) = read("server.yaml", text.as_bytes());
        assert_eq!(found, []);
        assert_eq!(
            (read.network.listen, read.base.as_str(), read.hosts),
            (
                Some(Listen::Address(([127, 0, 0, 1], 80).into())),
                "/data",
                vec!["data.example.org".to_owned()]
            )
        );
        let shop = &read.instances["shop"];
        assert_eq!(
            (shop.place().text.as_str(), shop.place().span.column),
            ("/srv/shop", 19)
        );
    }

    #[test]
    fn files_that_are_no_configuration_are_refused_at_their_beginning() {
        for text in ["", "instances: {}", "instances:"] {
            assert_eq!(told(text).len(), 1, "{text:?}: {:?}", told(text));
        }
        assert_eq!(told("- a"), ["1:1 wrong-type"]);
        assert!(told("instances: [").iter().any(|it| it.ends_with("yaml-syntax")));
        assert_eq!(
            read("a", b"\xff").1.iter().map(|it| it.code).collect::<Vec<_>>(),
            [Code::NotUtf8]
        );
    }
}
