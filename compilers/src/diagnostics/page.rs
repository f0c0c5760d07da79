//! The documentation page of codes, generated from their entries.

use std::fmt::Write as _;

use super::Code;

/// The line before the generated part.
pub const BEGIN: &str = "<!-- codes of the compiler: generated, see compilers/src/diagnostics/code.rs -->";
/// The line after the generated part.
pub const END: &str = "<!-- end of the codes of the compiler -->";

/// Returns the generated part of `docs/diagnostics.md`: a table of all codes and a section for each.
pub fn page() -> String {
    let mut page = format!("{BEGIN}\n\n| code | severity | meaning |\n|---|---|---|\n");
    for code in Code::ALL {
        let (name, severity, meaning) = (code.as_str(), code.severity().as_str(), code.meaning());
        // Writing to a text can't fail.
        let _ = writeln!(page, "| [`{name}`](#{name}) | {severity} | {meaning} |");
    }
    for code in Code::ALL {
        page.push('\n');
        page.push_str(&section(*code));
    }
    let _ = write!(page, "\n{END}\n");
    page
}

/// Returns the section of the page about one code: its meaning, an example and a fix, in Markdown.
pub fn section(code: Code) -> String {
    let (name, meaning, example, fix) = (code.as_str(), code.meaning(), code.example(), code.fix());
    format!("### {name}\n\n{meaning}\n\n```text\n{example}\n```\n\n{fix}\n")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_page_of_codes_holds_a_section_for_every_code_and_no_other() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/diagnostics.md");
        let written = fs::read_to_string(&path).expect("the page");
        let (before, rest) = written.split_once(BEGIN).expect("the generated part begins");
        let (_, after) = rest.split_once(END).expect("the generated part ends");
        let expected = format!("{before}{}{}", page().trim_end(), after);
        if std::env::var_os("WATERSHED_BLESS").is_some() {
            fs::write(&path, &expected).expect("writes");
        } else {
            assert_eq!(
                written, expected,
                "WATERSHED_BLESS=1 writes docs/diagnostics.md anew"
            );
        }
    }
}
