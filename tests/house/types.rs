//! No type grows over many files: one that does hides several that want a file each.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{code_of, is_name, without_tests, words};
use crate::sources;

/// The crates around an engine, where it was most tempting.
const CRATES: &[&str] = &[
    "runtime/drivers",
    "runtime/outputs",
    "runtime/reconcilers",
    "runtime/resolvers",
];

/// The most files beside its own in which a type may have methods. A trait that it implements is a part that it plays, and not
/// counted.
const MOST_FILES: usize = 5;

#[test]
fn no_type_has_methods_in_many_files() {
    for folder in CRATES {
        let all = sources(&[folder], &[]);
        let types = files_by_type(&all);
        assert!(
            types.len() > 10,
            "only {} types were found in {folder}",
            types.len()
        );
        for (name, files) in types {
            assert!(
                files.len() <= MOST_FILES,
                "`{name}` has methods in {} more files: {files:?}",
                files.len()
            );
        }
    }
}

#[test]
fn methods_are_found_in_all_files_of_a_type_and_of_no_other_type_of_its_name() {
    let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let all = [
        source("a.rs", "struct A<T>(T); impl<T: Into<u8>> A<T> { }"),
        source(
            "b.rs",
            "impl A<u8> where u8: Copy {} impl Copy for A<u8> {} impl super::A<i8> {}",
        ),
        source("c.rs", "enum A { B } impl A {}"),
        source(
            "d.rs",
            "impl Into<u8> for A<u8> {} fn a(a: impl A) -> impl A { a }",
        ),
    ];
    let found = files_by_type(&all);
    let files: Vec<&str> = found["A"].iter().map(String::as_str).collect();
    assert_eq!(
        files,
        ["b.rs"],
        "those that define a type of the name have one of their own"
    );
}

/// Returns the files in which each type has methods, without those that define it.
fn files_by_type(all: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in all {
        let code = without_tests(&code_of(text));
        let words = words(&code);
        let defines = |name: &str| {
            words
                .windows(2)
                .any(|two| matches!(two[0], "struct" | "enum") && two[1] == name)
        };
        // One in a signature stands behind another sign.
        let begins = |at: usize| at == 0 || matches!(words[at - 1], "}" | "{" | ";" | "]");
        for name in (0..words.len())
            .filter(|at| words[*at] == "impl" && begins(*at))
            .filter_map(|at| own_type(&words[at + 1..]))
        {
            let files = found.entry(name.to_owned()).or_default();
            if !defines(name) {
                files.insert(path.clone());
            }
        }
    }
    found
}

/// Returns the type that a block of methods is for, from behind its `impl`; none for one of a trait's.
fn own_type<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (mut depth, mut name) = (0, None);
    for word in words {
        match *word {
            "<" => depth += 1,
            ">" => depth -= 1,
            "for" if depth == 0 => return None,
            "{" | "where" if depth == 0 => return name,
            word if depth == 0 && is_name(word) => name = Some(word),
            _ => {}
        }
    }
    None
}
