//! The instances of a configuration.

use std::{collections::BTreeMap, num::NonZeroU32};

use super::git::{Git, git};
use super::{INSTANCE, Placed, finish, placed, trust, trust::Trust};
use crate::{
    diagnostics::{At, Code, Findings, Role},
    text::names,
    yaml::{
        Data, Entry, Fields, Map,
        bounds::{Counts, count},
    },
};

/// The longest name of an instance, in bytes.
const LONGEST_NAME: usize = 63;
/// The bounds of weights.
const WEIGHTS: Counts = Counts {
    least: 1,
    most: 1_000,
};

/// Extensions of the engine that open files by the engine alone, which holds them to the sandbox. Others connect to servers,
/// run programs, read files by a library of their own, or show variables of the service's environment.
const CONFINED_EXTENSIONS: [&str; 7] = ["avro", "excel", "fts", "inet", "tpcds", "tpch", "vss"];

/// An instance as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// The project's folder or repository.
    pub files: Files,
    /// Name of the environment; none if not set.
    pub environment: Option<Placed>,
    /// Path of the instance's file of variables; none if not set.
    pub env_file: Option<Placed>,
    /// The share in the jobs of the service, in proportion to the other instances.
    pub weight: NonZeroU32,
    /// The rights of the project's files.
    pub trust: Trust,
    /// Prefixes of addresses that a confined project may ask.
    pub reach: Vec<Placed>,
    /// Extensions of the engine that are loaded for a confined project.
    pub extensions: Vec<String>,
    /// True if callers may change the files of an instance with the trust `full`.
    pub remote_edit: bool,
}

/// The place that an instance's files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// Path of the project's folder.
    Folder(Placed),
    /// A repository, whose files are fetched.
    Git(Git),
}

impl Instance {
    /// Returns the path of the folder or the address of the repository, for findings about the instance's files.
    pub fn place(&self) -> &Placed {
        match &self.files {
            Files::Folder(folder) => folder,
            Files::Git(git) => &git.url,
        }
    }
}

pub(super) fn instances(fields: &mut Fields<'_>) -> BTreeMap<String, Instance> {
    let (at, has_key) = (fields.at(), fields.has("instances"));
    let (map, at) = match fields.map("instances") {
        Some(found) => found,
        None if has_key => return BTreeMap::new(),
        None => (Map::new(), at),
    };
    if map.is_empty() {
        let message = "a service needs projects to serve under `instances`";
        let hint = "name one: `instances: {shop: {project: /srv/shop}}`";
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
    let git_at = fields.key_at("git").filter(|_| is_from_git);
    let git = git(&mut fields);
    if let (Some(_), Some(at)) = (&project, git_at) {
        let message = "an instance has a folder or a repository, not both";
        let hint = "remove `project` or `git`";
        fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    if project.is_none() && !is_from_git {
        let message = format!("the instance \"{name}\" names no folder");
        let hint = "write `project:` with the folder of a project";
        fields
            .findings()
            .add_with_hint(entry.key_at, Code::MissingKey, message, hint);
    }
    let weight = count(&mut fields, "weight", WEIGHTS).and_then(NonZeroU32::new);
    let trust = trust::trust(&mut fields);
    let remote_edit = remote_edit(&mut fields, trust);
    let reach = of_confined(&mut fields, "reach", trust);
    let extensions = extensions(&mut fields, trust);
    let (environment, env_file) = (
        placed(&mut fields, "environment"),
        placed(&mut fields, "env_file"),
    );
    finish(fields, &INSTANCE, &[]);
    Some(Instance {
        files: project.map(Files::Folder).or(git.map(Files::Git))?,
        environment,
        env_file,
        weight: weight.unwrap_or(NonZeroU32::MIN),
        trust,
        reach,
        extensions,
        remote_edit,
    })
}

/// Takes the texts of a key that opens the sandbox of an instance, and says nothing without one.
fn of_confined(fields: &mut Fields<'_>, key: &str, trust: Trust) -> Vec<Placed> {
    let at = fields.key_at(key);
    let texts = fields.placed_texts(key);
    if let (Some(at), Trust::Full) = (at, trust) {
        let message = format!("`{key}` is for instances with `trust: sandbox`");
        let hint = "remove the key: files of a trusted project may reach whatever the service's user may";
        fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    let placed = |(text, at): (String, At)| Placed { text, span: at.span };
    texts.into_iter().map(placed).collect()
}

/// Takes the key `extensions`.
fn extensions(fields: &mut Fields<'_>, trust: Trust) -> Vec<String> {
    let mut found = Vec::new();
    for Placed { text, span } in of_confined(fields, "extensions", trust) {
        if CONFINED_EXTENSIONS.contains(&text.as_str()) {
            found.push(text);
            continue;
        }
        let message = format!("the extension \"{text}\" is not loaded for a confined project");
        let hint = match names::nearest(&text, CONFINED_EXTENSIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "those that read files by the engine alone are: `{}`; stores and web servers are read by `reach`",
                CONFINED_EXTENSIONS.join("`, `")
            ),
        };
        let at = At {
            role: Role::Yaml,
            span,
        };
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
    found
}

/// Takes the key `remote_edit`, which says nothing under the trust `sandbox`.
fn remote_edit(fields: &mut Fields<'_>, trust: Trust) -> bool {
    let at = fields.key_at("remote_edit");
    let set = fields.bool("remote_edit");
    if let (Some(_), Some(at), Trust::Sandbox) = (set, at, trust) {
        let message = "`remote_edit` is for instances with `trust: full`";
        let hint = "remove the key: whoever has the role `edit` may change files of a confined project";
        fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    set.unwrap_or(false)
}
