//! Modules import one another in one direction: no circle but that of a parent and its children.
//!
//! The graph is read from paths (`crate::`, `super::`, `self::`) in declarations of use and in code; a name that a module
//! passes on with `pub use` leads to the module that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::code::{code_of, is_name, without_tests, words};
use crate::{files, list, metadata, read, text};

/// A module's path within its crate; the root's is empty.
type Module = Vec<String>;

#[test]
fn modules_import_one_another_in_one_direction() {
    let mut found = Vec::new();
    for package in list(&metadata(&["--no-deps"]), "packages") {
        let folder = Path::new(text(package, "manifest_path")).with_file_name("src");
        for circle in circles(&Source::of_crate(&folder)) {
            let modules: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            found.push(format!("{}: {}", text(package, "name"), modules.join(" ")));
        }
    }
    assert!(
        found.is_empty(),
        "modules import one another in a circle\n{}",
        found.join("\n")
    );
}

#[test]
fn circles_are_found_through_groups_parents_and_names_that_are_passed_on() {
    let source = |files: &[(&str, &str)]| {
        let parse = |(path, text): &(&str, &str)| (module_of(Path::new(path)), Source::parse(text));
        Source(files.iter().map(parse).collect())
    };
    let found = |files: &[(&str, &str)]| -> Vec<String> {
        let circles = circles(&source(files));
        let names = |circle: &BTreeSet<Module>| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            names.join(" ")
        };
        circles.iter().map(names).collect()
    };
    let lib = ("lib.rs", "mod a; mod b; pub use b::{Deep, Other as Thing};");
    assert_eq!(
        found(&[
            lib,
            ("a.rs", "use crate::Thing;"),
            ("b.rs", "use crate::a::{self, X};")
        ]),
        ["a b"]
    );
    assert_eq!(
        found(&[
            lib,
            ("a.rs", "fn f() { crate::b::g() }"),
            ("b.rs", "fn g() { super::a::f() }")
        ]),
        ["a b"]
    );
    let one_way = [
        lib,
        ("a.rs", "use crate::Thing;"),
        ("b.rs", "// crate::a\nconst S: &str = \"crate::a\";"),
    ];
    assert!(found(&one_way).is_empty());
    let family = [("p/mod.rs", "mod c;\nuse c::X;"), ("p/c.rs", "use super::Y;")];
    assert!(found(&family).is_empty());
    // What stands below a module counts as the module's.
    let cousins = [
        ("p/mod.rs", ""),
        ("p/c.rs", "use crate::q::X;"),
        ("q/mod.rs", ""),
        ("q/d.rs", "use crate::p::Y;"),
    ];
    assert_eq!(found(&cousins), ["p q"]);
    let tests = [
        lib,
        ("a.rs", "use crate::b::X;"),
        ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::Y;\n}\n"),
    ];
    assert!(found(&tests).is_empty());
}

/// The paths that one module names.
#[derive(Default)]
struct Paths {
    /// As they are written, without the item's own name where that is another module's.
    used: Vec<Vec<String>>,
    /// Names that it passes on, with their paths.
    passed_on: BTreeMap<String, Vec<String>>,
}

/// The modules of a crate with the paths that each names.
struct Source(BTreeMap<Module, Paths>);

impl Source {
    /// Reads every file of a crate but its tests.
    fn of_crate(folder: &Path) -> Self {
        let mut modules = BTreeMap::new();
        for path in files("rs") {
            let Ok(inside) = path.strip_prefix(folder) else {
                continue;
            };
            let is_test =
                |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs" || part == "testing.rs";
            if !inside.iter().any(is_test) && !inside.starts_with("bin") {
                modules.insert(module_of(inside), Self::parse(&read(&path)));
            }
        }
        Self(modules)
    }

    fn parse(text: &str) -> Paths {
        let code = without_tests(&code_of(text));
        let words = words(&code);
        let mut paths = Paths::default();
        let mut at = 0;
        while at < words.len() {
            if words[at] == "use" {
                let is_public = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
                let mut tree = Vec::new();
                at = use_tree(&words, at + 1, &[], &mut tree);
                for (path, name) in tree {
                    if is_public {
                        paths.passed_on.insert(name, path.clone());
                    }
                    paths.used.push(path);
                }
            } else if matches!(words[at], "crate" | "super" | "self") {
                let mut path = vec![words[at].to_owned()];
                while words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some_and(|word| is_name(word))
                {
                    path.push(words[at + 2].to_owned());
                    at += 2;
                }
                if path.len() > 1 {
                    paths.used.push(path);
                }
                at += 1;
            } else {
                at += 1;
            }
        }
        paths
    }

    /// The path from the root of the crate; none for what another crate has.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Module> {
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => {
                let above = path.iter().take_while(|part| *part == "super").count();
                let kept = module.len().checked_sub(above)?;
                Some([&module[..kept], &path[above..]].concat())
            }
            first => {
                let child = [module, &[first.to_owned()]].concat();
                self.0.contains_key(&child).then(|| [module, path].concat())
            }
        }
    }

    /// The module that defines what a path from the root leads to.
    fn defining(&self, path: &[String], depth: usize) -> Module {
        let mut module = Module::new();
        for (index, part) in path.iter().enumerate() {
            let child = [&module[..], std::slice::from_ref(part)].concat();
            if self.0.contains_key(&child) {
                module = child;
                continue;
            }
            let passed_on = self.0.get(&module).and_then(|paths| paths.passed_on.get(part));
            let leads_to = passed_on.and_then(|to| self.absolute(&module, to));
            return match leads_to.filter(|to| to != path && depth < 8) {
                Some(to) => self.defining(&[&to[..], &path[index + 1..]].concat(), depth + 1),
                None => module,
            };
        }
        module
    }

    /// The modules that one imports from, its parents and children left out.
    fn imports(&self, module: &Module) -> BTreeSet<Module> {
        let paths = self.0[module].used.iter();
        let targets = paths.filter_map(|path| Some(self.defining(&self.absolute(module, path)?, 0)));
        targets
            .filter(|target| !target.starts_with(module) && !module.starts_with(target))
            .collect()
    }
}

/// The groups of siblings of which each reaches every other, with what stands below them counted as theirs: a picture of one
/// folder.
fn circles(source: &Source) -> Vec<BTreeSet<Module>> {
    let mut folders: BTreeMap<Module, BTreeMap<Module, BTreeSet<Module>>> = BTreeMap::new();
    for module in source.0.keys() {
        for target in source.imports(module) {
            let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            let sibling = |of: &Module| of[..=shared].to_vec();
            let folder = folders.entry(module[..shared].to_vec()).or_default();
            folder
                .entry(sibling(module))
                .or_default()
                .insert(sibling(&target));
        }
    }
    folders.values().flat_map(circles_of).collect()
}

/// The circles of one picture.
fn circles_of(imports: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let reached_from = |module: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![module]);
        while let Some(next) = open.pop() {
            for target in imports.get(next).into_iter().flatten() {
                if reached.insert(target.clone()) {
                    open.push(target);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = imports
        .keys()
        .map(|module| (module, reached_from(module)))
        .collect();
    let in_circles = reached
        .iter()
        .filter(|(module, targets)| targets.contains(**module));
    in_circles
        .map(|(module, targets)| {
            let back = |target: &&Module| reached.get(target).is_some_and(|from| from.contains(*module));
            targets.iter().filter(back).cloned().collect()
        })
        .collect()
}

/// The module of a file, by its path below `src`.
fn module_of(path: &Path) -> Module {
    let path = path.with_extension("");
    let mut parts: Module = path
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if matches!(parts.last().map(String::as_str), Some("lib" | "main" | "mod")) {
        parts.pop();
    }
    parts
}

/// Reads a tree of use from `at` on; returns where it ends. Each of its paths comes with the name that it gets.
fn use_tree(
    words: &[&str],
    mut at: usize,
    prefix: &[String],
    into: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match words.get(at).copied() {
            Some("::") => at += 1,
            Some("{") => {
                at += 1;
                while let Some(word) = words.get(at).copied() {
                    match word {
                        "}" => return at + 1,
                        "," => at += 1,
                        _ => at = use_tree(words, at, &path, into),
                    }
                }
                return at;
            }
            Some("as") => {
                let name = words.get(at + 1).copied().unwrap_or_default();
                into.push((path, name.to_owned()));
                return at + 2;
            }
            Some("self") if !path.is_empty() => at += 1,
            Some(word) if is_name(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            Some("*") => at += 1,
            _ => {
                let name = path.last().cloned().unwrap_or_default();
                into.push((path, name));
                return at;
            }
        }
    }
}
