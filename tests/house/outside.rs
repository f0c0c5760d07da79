//! Crates from outside are those that `deny.toml` lets in: their licences, their sources, and none that is banned.
//!
//! `cargo deny check` says the same of more systems, from the texts of licences, and takes minutes to install; this reads the
//! same file and what crates say of themselves, on the system of this machine.

use std::iter::Peekable;
use std::str::SplitWhitespace;

use serde_json::{Value, json};

use crate::imports::host;
use crate::{list, metadata, read, root, text};

/// The words of an expression that are not read yet.
type Words<'a> = Peekable<SplitWhitespace<'a>>;

/// The rules of `deny.toml`.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
    registries: Vec<String>,
}

impl Rules {
    fn read() -> Self {
        let file = read(&root().join("deny.toml"));
        for rule in ["wildcards", "unknown-registry", "unknown-git"] {
            assert!(
                file.contains(&format!("\n{rule} = \"deny\"\n")),
                "deny.toml: {rule}"
            );
        }
        let quoted = |list: &str| list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
        Self {
            licences: quoted(array(&file, "licenses", "allow")),
            banned: array(&file, "bans", "deny")
                .split("name = \"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next().map(str::to_owned))
                .collect(),
            registries: quoted(array(&file, "sources", "allow-registry")),
        }
    }

    /// Returns what is wrong with the packages that cargo lists, one text for each mistake.
    fn broken_by(&self, metadata: &Value) -> Vec<String> {
        let packages = list(metadata, "packages").iter();
        packages
            .flat_map(|package| self.broken_by_package(package))
            .collect()
    }

    fn broken_by_package(&self, package: &Value) -> Vec<String> {
        let name = text(package, "name");
        let Some(source) = package["source"].as_str() else {
            let dependencies = list(package, "dependencies").iter();
            let wild = dependencies.filter(|it| it["req"] == "*" && it["path"].is_null());
            return wild
                .map(|it| format!("{name}: any version of `{}`", text(it, "name")))
                .collect();
        };
        let mut wrong = Vec::new();
        if !source
            .strip_prefix("registry+")
            .is_some_and(|registry| self.registries.iter().any(|it| it == registry))
        {
            wrong.push(format!("{name}: comes from {source}"));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        if !self.allow(licence) {
            wrong.push(format!("{name}: its licence is \"{licence}\""));
        }
        if self.banned.iter().any(|it| it == name) {
            wrong.push(format!("{name}: is banned"));
        }
        wrong
    }

    /// Returns true if a crate under an SPDX expression can be used under allowed licences alone.
    fn allow(&self, expression: &str) -> bool {
        // Older manifests separate choices by a slash.
        let spaced = expression
            .replace('/', " OR ")
            .replace('(', " ( ")
            .replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        let is_allowed = self.any(&mut words);
        is_allowed && words.next().is_none()
    }

    fn any(&self, words: &mut Words<'_>) -> bool {
        let mut is_allowed = self.all(words);
        while words.next_if_eq(&"OR").is_some() {
            is_allowed |= self.all(words);
        }
        is_allowed
    }

    fn all(&self, words: &mut Words<'_>) -> bool {
        let mut is_allowed = self.one(words);
        while words.next_if_eq(&"AND").is_some() {
            is_allowed &= self.one(words);
        }
        is_allowed
    }

    fn one(&self, words: &mut Words<'_>) -> bool {
        if words.next_if_eq(&"(").is_some() {
            let is_allowed = self.any(words);
            return words.next_if_eq(&")").is_some() && is_allowed;
        }
        let mut licence = words.next().unwrap_or_default().to_owned();
        if words.next_if_eq(&"WITH").is_some() {
            licence = format!("{licence} WITH {}", words.next().unwrap_or_default());
        }
        self.licences.contains(&licence)
    }
}

/// The text between the brackets of an array of a section.
fn array<'a>(file: &'a str, section: &str, key: &str) -> &'a str {
    let (_, rest) = file
        .split_once(&format!("\n[{section}]"))
        .unwrap_or_else(|| panic!("deny.toml has no [{section}]"));
    let section = rest.split("\n[").next().unwrap_or_default();
    let (_, rest) = section
        .split_once(&format!("\n{key} = ["))
        .unwrap_or_else(|| panic!("deny.toml has no `{key}`"));
    rest.split(']').next().unwrap_or_default()
}

#[test]
fn crates_from_outside_keep_to_the_rules() {
    let metadata = metadata(&["--filter-platform", &host()]);
    assert!(list(&metadata, "packages").len() > 100, "all crates are listed");
    let wrong = Rules::read().broken_by(&metadata);
    assert!(wrong.is_empty(), "against deny.toml:\n{}", wrong.join("\n"));
}

#[test]
fn a_foreign_licence_a_second_source_a_banned_crate_and_a_wild_version_are_found() {
    let registry = "registry+https://github.com/rust-lang/crates.io-index";
    let package =
        |name: &str, licence: &str, source: &str| json!({"name": name, "license": licence, "source": source});
    let planted = json!({"packages": [
        package("fine", "MIT/Apache-2.0", registry),
        package("copyleft", "GPL-3.0-only", registry),
        package("silent", "", registry),
        package("elsewhere", "MIT", "registry+https://crates.example/index"),
        package("cloned", "MIT", "git+https://git.example/cloned?branch=main#0a1b"),
        package("serde_yaml", "MIT", registry),
        {"name": "ours", "source": null, "dependencies": [
            {"name": "beside", "req": "*", "path": "/beside"},
            {"name": "whatever", "req": "*"},
        ]},
    ]});
    let wrong = Rules::read().broken_by(&planted);
    let expected = [
        "copyleft: its licence is \"GPL-3.0-only\"",
        "silent: its licence is \"\"",
        "elsewhere: comes from registry+https://crates.example/index",
        "cloned: comes from git+https://git.example/cloned?branch=main#0a1b",
        "serde_yaml: is banned",
        "ours: any version of `whatever`",
    ];
    assert_eq!(wrong, expected);
}

#[test]
fn expressions_of_licences_are_read_with_their_precedence() {
    let rules = Rules::read();
    let allowed = [
        "MIT",
        "GPL-2.0-only OR MIT",
        "MIT OR GPL-2.0-only AND GPL-3.0-only",
        "(MIT OR GPL-2.0-only) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
    ];
    for expression in allowed {
        assert!(rules.allow(expression), "{expression}");
    }
    let refused = [
        "",
        "GPL-3.0-only",
        "MIT AND GPL-3.0-only",
        "(MIT OR Apache-2.0) AND GPL-3.0-only",
        "GPL-2.0-only WITH Classpath-exception-2.0",
        "(MIT",
        "MIT Apache-2.0",
    ];
    for expression in refused {
        assert!(!rules.allow(expression), "{expression}");
    }
}
