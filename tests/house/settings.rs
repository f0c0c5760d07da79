//! Settings of builds: no target is compiled for tests that it does not have, and none has tests that are never run.

use std::path::Path;

use crate::{files, list, metadata, read, text};

/// Words behind the fence of a block of documentation with which it is run or compiled as a test.
const RUN: [&str; 5] = ["", "rust", "no_run", "should_panic", "compile_fail"];

#[test]
fn libraries_and_programs_are_compiled_as_tests_where_they_have_some() {
    let sources: Vec<_> = files("rs")
        .iter()
        .map(|path| (path.clone(), read(path)))
        .collect();
    let metadata = metadata(&["--no-deps"]);
    let mut wrong = Vec::new();
    for package in list(&metadata, "packages") {
        for target in list(package, "targets") {
            let kind = target["kind"][0].as_str().unwrap_or_default();
            if !["lib", "bin"].contains(&kind) {
                continue;
            }
            let root = Path::new(text(target, "src_path"));
            let own = || {
                sources
                    .iter()
                    .filter(|(path, _)| belongs(path, root))
                    .map(|(_, text)| text.as_str())
            };
            let mut compare = |setting: &str, there: bool| {
                if target[setting] != there {
                    let place = format!("{}, {kind} {}", text(package, "name"), text(target, "name"));
                    wrong.push(format!("{place}: {setting} should be {there}"));
                }
            };
            compare("test", own().any(has_unit_test));
            compare("doctest", kind == "lib" && own().any(has_doctest));
        }
    }
    assert!(wrong.is_empty(), "in the manifests:\n{}", wrong.join("\n"));
}

#[test]
fn tests_and_examples_are_found_in_every_form() {
    assert!(has_unit_test("mod tests {\n    #[test]\n    fn a() {}\n}"));
    assert!(has_unit_test("    #[tokio::test(start_paused = true)]\n"));
    assert!(!has_unit_test("// #[test]\n#[cfg(test)]\n"));
    assert!(has_doctest("/// Adds.\n///\n/// ```\n/// add();\n/// ```\n"));
    assert!(has_doctest(
        "//! ```text\n//! a\n//! ```\n//! ```no_run\n//! b\n//! ```\n"
    ));
    assert!(has_doctest("#[doc = include_str!(\"page.md\")]\n"));
    assert!(!has_doctest("//! ```text\n//! a\n//! ```\n"));
    assert!(!has_doctest(
        "/// ```sh\n/// ls\n/// ```\nconst FENCE: &str = \"```\";\n"
    ));
}

#[test]
fn a_library_owns_its_folder_without_programs_and_a_program_its_own_file_or_folder() {
    let owns = |root: &str, path: &str| belongs(Path::new(path), Path::new(root));
    assert!(owns("/a/src/lib.rs", "/a/src/b/c.rs"));
    assert!(!owns("/a/src/lib.rs", "/a/src/bin/b.rs"));
    assert!(!owns("/a/src/lib.rs", "/a/src/main.rs"));
    assert!(!owns("/a/src/lib.rs", "/b/src/c.rs"));
    assert!(owns("/a/src/bin/b/main.rs", "/a/src/bin/b/c.rs"));
    assert!(owns("/a/src/bin/b.rs", "/a/src/bin/b.rs"));
    assert!(!owns("/a/src/bin/b.rs", "/a/src/bin/c.rs"));
}

/// The locks of that build are a checker's: no other program could run with them.
#[test]
fn no_ordinary_build_has_the_checker_of_interleavings() {
    let metadata = metadata(&["--filter-platform", &crate::imports::host()]);
    let nodes = list(&metadata["resolve"], "nodes").iter();
    let mut controllers = nodes.filter(|node| text(node, "id").contains("runtime/controller#"));
    let controller = controllers.next().expect("the workspace has a controller");
    let features = list(controller, "features");
    let has = |name: &str| features.iter().any(|feature| feature == name);
    assert!(
        has("sqlite") && !has("interleavings"),
        "features of the controller: {features:?}"
    );
}

/// Returns true if a source file is compiled into the target with a root file, as far as folders tell.
fn belongs(path: &Path, root: &Path) -> bool {
    let folder = root.with_file_name("");
    if root.ends_with("lib.rs") {
        let inside = path.strip_prefix(&folder);
        inside.is_ok_and(|inside| !inside.starts_with("bin") && inside != Path::new("main.rs"))
    } else if root.ends_with("main.rs") && !folder.join("lib.rs").is_file() {
        path.starts_with(&folder)
    } else {
        path == root
    }
}

fn has_unit_test(source: &str) -> bool {
    let mut lines = source.lines().map(str::trim_start);
    lines.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

fn has_doctest(source: &str) -> bool {
    let mut in_block = false;
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[doc = include_str!") {
            return true;
        }
        let documented = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(words) = documented.and_then(|line| line.trim_start().strip_prefix("```")) else {
            continue;
        };
        in_block = !in_block;
        if in_block && words.split([',', ' ']).all(|word| RUN.contains(&word)) {
            return true;
        }
    }
    false
}
