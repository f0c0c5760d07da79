//! `Core` takes its components one by one and holds nothing back from them: its own code stays small.

use crate::code::{closing, code_of, without_tests};
use crate::{files, read, root};

/// The most lines of `impl Core`, brace to brace, tests left out. `scripts/sizes` prints them.
const LINES_MAX: usize = 1_000;

#[test]
fn the_core_leaves_the_work_to_its_components() {
    let mut lines = 0;
    for path in files("rs") {
        if path.starts_with(root().join("runtime/core/src")) {
            lines += lines_of_core(&read(&path));
        }
    }
    assert!(lines > 300, "`impl Core` was not found: {lines} lines");
    assert!(
        lines < LINES_MAX,
        "`impl Core` has {lines} lines: move what concerns one component into its folder"
    );
}

#[test]
fn blocks_are_counted_from_brace_to_brace() {
    let text = "struct Core;\nimpl Core {\n    fn a() {}\n}\n#[cfg(test)]\nimpl Core {\n    fn b() {}\n}\nimpl Core { fn c() {} }\n";
    assert_eq!(lines_of_core(text), 4);
}

fn lines_of_core(text: &str) -> usize {
    let code = without_tests(&code_of(text));
    let blocks = code.match_indices("impl Core {");
    let lines = blocks.map(|(at, opening)| {
        let end = closing(&code, at + opening.len() - 1);
        code[at..end].lines().count()
    });
    lines.sum()
}
