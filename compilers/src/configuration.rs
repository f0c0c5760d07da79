//! The configuration of a service: its address, and the projects that it serves.
//!
//! [`read`] finds every mistake that the file itself has, each with its place. Whether folders and files of secrets are as they
//! should be is looked at by whoever opens them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::{
    diagnostics::{At, Code, Diagnostic, Findings, Role, Span},
    read::env_file,
    text::{Text, names},
    yaml::{self, Block, Data, Entry, Fields, Map, keys::blocks, unknown_key},
};

/// The longest name of an instance, in bytes.
const LONGEST_NAME: usize = 63;

blocks! {
    /// Top-level keys of a configuration.
    pub(crate) static CONFIGURATION = "configuration" Refused {
        "listen": Text, "The address of this machine and the port at which the service answers; `127.0.0.1:7437` unless set.";
        "hosts": Texts, "Names under which the service is reached, besides those of this machine itself.";
        "base": Text, "The path below which everything stands, as behind a proxy.";
        "instances": Map(&Block(&INSTANCE)), "The projects, each under the name that it has in paths.";
    }

    /// Keys of an instance.
    pub(crate) static INSTANCE = "instance" Refused {
        "project": Text, "The project's folder; a relative path starts from the folder of this file.";
        "environment": Text, "The environment; `dev` unless set.";
        "env_file": Text, "A file of `NAME=value` lines, which win over those of the project. Only its owner may read it.";
        "trust": Word(&["full"]), "What the project's files may do: `full` is whatever the service's user may.";
    }
}

/// Top-level keys that are reserved for later versions.
const LATER: [&str; 9] = [
    "auth", "egress", "embed", "limits", "mcp", "proxies", "sql", "state", "tls",
];
/// Keys of an instance that are reserved for later versions.
const LATER_OF_INSTANCE: [&str; 5] = ["extensions", "git", "reach", "remote_edit", "weight"];

/// The readable part of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Address and port of the service; none if not set.
    pub listen: Option<SocketAddr>,
    /// Host names under which the service is reached, besides loopback.
    pub hosts: Vec<String>,
    /// Path prefix of the service, without a slash at its end.
    pub base: String,
    /// Instances by name.
    pub instances: BTreeMap<String, Instance>,
}

/// An instance as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// Path of the project's folder.
    pub project: Placed,
    /// Name of the environment; none if not set.
    pub environment: Option<Placed>,
    /// Path of the instance's file of variables; none if not set.
    pub env_file: Option<Placed>,
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
    let configuration = Configuration {
        listen: listen(&mut fields),
        hosts: hosts(&mut fields),
        base: base(&mut fields),
        instances: instances(&mut fields),
    };
    finish(fields, &CONFIGURATION, &LATER);
    configuration
}

/// Reports the keys that no part of the parser has taken: reserved or unknown.
fn finish(mut fields: Fields<'_>, block: &Block, later: &[&str]) {
    for (key, entry) in fields.take_rest() {
        if later.contains(&key.as_str()) {
            let message = format!("`{key}` is not there yet");
            let hint = "a service answers on this machine, for the user who started it; remove the key";
            fields
                .findings()
                .add_with_hint(entry.key_at, Code::UnknownKey, message, hint);
        } else {
            unknown_key(fields.findings(), &key, entry.key_at, block);
        }
    }
}

fn listen(fields: &mut Fields<'_>) -> Option<SocketAddr> {
    let node = fields.text_node("listen")?;
    let text = node.scalar_text().unwrap_or_default();
    let (message, hint) = match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => return Some(address),
        Ok(_) => (
            format!("`{text}` can be reached from other machines, and nobody would be asked who they are"),
            "listen on 127.0.0.1, and put a proxy that signs people in before it",
        ),
        Err(_) if text.starts_with("unix:") => (
            "a socket in a file is not there yet".to_owned(),
            "listen on an address such as `127.0.0.1:7437`",
        ),
        Err(_) => (
            format!("\"{text}\" is no address with a port"),
            "write one such as `127.0.0.1:7437`",
        ),
    };
    fields
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
}

fn hosts(fields: &mut Fields<'_>) -> Vec<String> {
    let named = fields.placed_texts("hosts");
    for (host, at) in &named {
        if !is_host(host) {
            let message = format!("\"{host}\" is no name of a host");
            let hint = "write a name such as `data.example.org`, without `https://`, a path or a pattern";
            fields
                .findings()
                .add_with_hint(*at, Code::InvalidValue, message, hint);
        }
    }
    named.into_iter().map(|(host, _)| host).collect()
}

/// Returns true if the text is a valid host name, with or without a port.
pub fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
    };
    name.len() <= 253 && name.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn base(fields: &mut Fields<'_>) -> String {
    let Some(node) = fields.text_node("base") else {
        return String::new();
    };
    let text = node.scalar_text().unwrap_or_default();
    match plain_base(&text) {
        Some(base) => base.to_owned(),
        None => {
            let message = format!("\"{text}\" is no path to stand below");
            let hint = "write a slash and plain names, such as `/data`";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            String::new()
        }
    }
}

/// Returns a path prefix without a slash at its end; none if the text is not a plain path.
pub fn plain_base(text: &str) -> Option<&str> {
    let base = text.trim_end_matches('/');
    let is_plain = |segment: &str| {
        let is_of_a_path = |sign: char| sign.is_ascii_alphanumeric() || "-_.~".contains(sign);
        !segment.is_empty() && segment.chars().all(is_of_a_path) && !segment.trim_matches('.').is_empty()
    };
    let is_path = base
        .strip_prefix('/')
        .is_some_and(|path| path.split('/').all(is_plain));
    (base.is_empty() || is_path).then_some(base)
}

fn instances(fields: &mut Fields<'_>) -> BTreeMap<String, Instance> {
    let (at, has_key) = (fields.at(), fields.has("instances"));
    let (map, at) = match fields.map("instances") {
        Some(found) => found,
        None if has_key => return BTreeMap::new(),
        None => (Map::new(), at),
    };
    if map.is_empty() {
        let message = "a service needs projects to serve under `instances`";
        let hint = "name one: `instances: {shop: {project: /srv/shop, trust: full}}`";
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    let mut found = BTreeMap::new();
    for (name, entry) in map {
        if !is_instance_name(&name) {
            let message = format!("\"{name}\" can't be the name of an instance");
            let hint = "names stand in paths: use letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
            fields
                .findings()
                .add_with_hint(entry.key_at, Code::InvalidName, message, hint);
        }
        if let Some(instance) = instance(&name, entry, fields.findings()) {
            found.insert(name, instance);
        }
    }
    found
}

fn is_instance_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.starts_with(|sign: char| sign.is_ascii_alphanumeric())
        && name.len() <= LONGEST_NAME
        && name.bytes().all(plain)
}

fn instance(name: &str, entry: Entry, findings: &mut Findings) -> Option<Instance> {
    let map = match entry.value.data {
        Data::Map(map) => map,
        Data::Null => Map::new(),
        other => {
            let message = format!("an instance is a mapping, not {}", other.type_name());
            findings.add(entry.value.at, Code::WrongType, message);
            return None;
        }
    };
    let mut fields = Fields::new(map, entry.key_at, findings);
    let project = placed(&mut fields, "project");
    let is_from_git = fields.has("git");
    if project.is_none() && !is_from_git {
        let message = format!("the instance \"{name}\" names no folder");
        let hint = "write `project:` with the folder of a project";
        fields
            .findings()
            .add_with_hint(entry.key_at, Code::MissingKey, message, hint);
    }
    trust(name, &mut fields);
    let (environment, env_file) = (
        placed(&mut fields, "environment"),
        placed(&mut fields, "env_file"),
    );
    finish(fields, &INSTANCE, &LATER_OF_INSTANCE);
    Some(Instance {
        project: project?,
        environment,
        env_file,
    })
}

/// Checks the key `trust`. An explicit value is required, so that a later sandbox does not change the meaning of a
/// file.
fn trust(name: &str, fields: &mut Fields<'_>) {
    let at = fields.at();
    let hint = "`trust: full` lets the project's files do whatever the service's user may";
    if !fields.has("trust") {
        let message = format!("the instance \"{name}\" does not say how far its files are trusted");
        return fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    if let Some(node) = fields.text_node("trust") {
        let text = node.scalar_text().unwrap_or_default();
        if text == "sandbox" {
            let message = "`trust: sandbox` is not there yet";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        } else if text != "full" {
            let message = format!("\"trust\" can't be \"{text}\"");
            let near = names::nearest(&text, ["full"]);
            let hint = near.map_or(hint.to_owned(), |near| format!("did you mean `{near}`?"));
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
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
            (read.listen.map(|it| it.port()), read.base.as_str(), read.hosts),
            (Some(80), "/data", vec!["data.example.org".to_owned()])
        );
        let shop = &read.instances["shop"];
        assert_eq!(
            (shop.project.text.as_str(), shop.project.span.column),
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

    #[test]
    fn a_path_to_stand_below_has_plain_names() {
        for (base, taken) in [("", ""), ("/", ""), ("/data", "/data"), ("/a/b-1/", "/a/b-1")] {
            assert_eq!(plain_base(base), Some(taken), "{base}");
        }
        for base in ["data", "/{x}", "/:x", "/a b", "/da?ta", "//x", "/a/../b", "/."] {
            assert!(plain_base(base).is_none(), "{base}");
        }
    }

    #[test]
    fn names_of_hosts_have_no_scheme_path_or_pattern() {
        for host in ["data.example.org", "data", "data.example.org:8443", "10.0.0.1"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "*", "https://x", "x/y", "*.example.org", "a..b", "x:y", "a b"] {
            assert!(!is_host(host), "{host}");
        }
    }
}
