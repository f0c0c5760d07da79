//! Fields of the core are private to the folder that they stand in.
//!
//! A component's invariants hold because its own folder alone writes its fields. A field that the whole crate may see is
//! therefore an error, be it marked so or left to stand in the root of a folder, above which `pub(super)` reaches. Public
//! types are the vocabulary that callers share: their fields are theirs.

use std::path::Path;

use crate::code::{code_of, is_name, without_tests, words};
use crate::{files, read, root, shown};

/// The sources that the rule is for.
const SOURCES: &str = "runtime/core/src";

#[test]
fn no_field_of_the_core_is_seen_outside_its_folder() {
    let mut open = Vec::new();
    let mut fields = 0;
    for path in files("rs") {
        let Ok(inside) = path.strip_prefix(root().join(SOURCES)) else {
            continue;
        };
        // Tests and their harness belong to no component.
        if inside.starts_with("tests") || inside == Path::new("testing.rs") {
            continue;
        }
        let found = fields_of(&without_tests(&code_of(&read(&path))));
        fields += found.len();
        let seen = found.iter().filter(|field| field.is_seen_outside(inside));
        open.extend(seen.map(|field| format!("{}: {}.{}", shown(&path), field.of, field.name)));
    }
    assert!(fields > 100, "only {fields} fields were found");
    assert!(
        open.is_empty(),
        "give them accessors, or move the code that reads them\n{}",
        open.join("\n")
    );
}

#[test]
fn fields_are_found_with_who_may_see_them() {
    let seen = |path: &str, text: &str| -> Vec<String> {
        let fields = fields_of(&code_of(text)).into_iter();
        let seen = fields.filter(|field| field.is_seen_outside(Path::new(path)));
        seen.map(|field| field.name).collect()
    };
    let text = "pub(crate) struct A<'a, T: Fn(u8) -> u8> where T: Copy {\n    #[x(y = 1)]\n    pub(crate) a: &'a [u8; 2],\n    \
                b: Vec<(T, u8)>,\n    pub(super) c: T,\n    pub d: T,\n}\nstruct B;\nstruct C(pub(crate) u32, u8);\n\
                pub struct D { pub e: u8, pub(in crate::x) f: u8 }\nfn f(a: u8) { let g = A { a, b }; }";
    assert_eq!(seen("folder/file.rs", text), ["a", "d", "0", "f"]);
    assert_eq!(seen("folder/mod.rs", text), ["a", "c", "d", "0", "f"]);
    assert_eq!(seen("file.rs", text), ["a", "c", "d", "0", "f"]);
}

/// One field of a type.
struct Field {
    of: String,
    name: String,
    /// True if its type is part of the library's interface.
    is_public_type: bool,
    /// The words before its name: none, `pub`, or `pub` with the module up to which it is seen.
    visibility: Vec<String>,
}

impl Field {
    fn is_seen_outside(&self, file: &Path) -> bool {
        let visibility: Vec<&str> = self.visibility.iter().map(String::as_str).collect();
        match visibility[..] {
            [] => false,
            ["pub"] => !self.is_public_type,
            // The parent of a folder's root, or of a file beside the folders, is the crate.
            ["pub", "(", "super", ")"] => {
                file.components().count() == 1 || (file.ends_with("mod.rs") && file.components().count() == 2)
            }
            _ => true,
        }
    }
}

/// The fields of every `struct` in code.
fn fields_of(code: &str) -> Vec<Field> {
    let words = words(code);
    let mut fields = Vec::new();
    for at in 0..words.len() {
        if words[at] != "struct" || !words.get(at + 1).is_some_and(|word| is_name(word)) {
            continue;
        }
        let is_public_type = at > 0 && words[at - 1] == "pub";
        // A tuple's fields follow its generics at once; those in braces may have bounds before them.
        let behind = after_generics(&words, at + 2);
        let opening = match words.get(behind) {
            Some(&"(") => behind,
            _ => match (behind..words.len()).find(|next| matches!(words[*next], "{" | ";")) {
                Some(opening) if words[opening] == "{" => opening,
                _ => continue,
            },
        };
        for (index, part) in parts(&words[opening + 1..]).into_iter().enumerate() {
            let visibility = visibility(part);
            let name = match part.get(visibility.len()..) {
                Some([name, ":", ..]) => (*name).to_owned(),
                _ => index.to_string(),
            };
            fields.push(Field {
                of: words[at + 1].to_owned(),
                name,
                is_public_type,
                visibility: visibility.iter().map(|word| (*word).to_owned()).collect(),
            });
        }
    }
    fields
}

/// The place behind the generics that may begin at `at`.
fn after_generics(words: &[&str], at: usize) -> usize {
    if words.get(at) != Some(&"<") {
        return at;
    }
    let mut depth = 0;
    for (place, word) in words.iter().enumerate().skip(at) {
        match *word {
            "<" => depth += 1,
            ">" if words[place - 1] != "-" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return place + 1;
        }
    }
    words.len()
}

/// Splits a list at its commas, up to the bracket that closes it; leaves attributes out.
fn parts<'a>(words: &'a [&'a str]) -> Vec<&'a [&'a str]> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" if depth == 0 => {
                parts.push(&words[start..at]);
                break;
            }
            ">" if at > 0 && words[at - 1] == "-" => {}
            ")" | "]" | "}" | ">" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&words[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    let parts = parts.into_iter().map(without_attributes);
    parts.filter(|part| !part.is_empty()).collect()
}

fn without_attributes<'a>(mut part: &'a [&'a str]) -> &'a [&'a str] {
    while let ["#", "[", rest @ ..] = part {
        let mut depth = 1;
        let end = rest.iter().position(|word| {
            match *word {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        part = end.map_or(&[], |end| &rest[end + 1..]);
    }
    part
}

/// The words of a visibility that a field begins with.
fn visibility<'a>(part: &'a [&'a str]) -> &'a [&'a str] {
    match part {
        ["pub", "(", ..] => {
            let end = part.iter().position(|word| *word == ")");
            &part[..end.map_or(part.len(), |end| end + 1)]
        }
        ["pub", ..] => &part[..1],
        _ => &[],
    }
}
