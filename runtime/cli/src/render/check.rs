//! The result of the consistency check, for people.

use watershed_api::documents::{CheckDocument, Compared};

use super::palette::{BAD, DIM, GOOD, HINT, STRONG};
use super::units::count;

/// Renders the findings by rule, then the verdict.
pub(crate) fn check(document: &CheckDocument) -> String {
    let mut out = String::new();
    let mut rule = "";
    for finding in &document.findings {
        if finding.rule != rule {
            rule = &finding.rule;
            out.push_str(&format!("{BAD}{rule}{BAD:#}\n"));
        }
        let about = finding.resource.as_ref().map(|name| format!("{name} "));
        out.push_str(&format!("  {}{}\n", about.unwrap_or_default(), finding.message));
    }
    let looked = format!(
        "{} at revision {}, {} checked",
        count(document.resources, "resource"),
        document.revision,
        count(document.rules.len() as u64, "rule")
    );
    let compared = match (document.compared, document.live) {
        (Compared::Whole, true) => "the stored catalog is the loaded one",
        (Compared::Partly, _) => "the stored catalog is the loaded one as far as neither moved on",
        (Compared::Not, _) => "the stored catalog was not looked at",
        (Compared::Whole, false) => "the stored catalog was loaded and compared",
    };
    let name = format!(
        "{STRONG}{}{STRONG:#} ({})",
        document.project, document.environment
    );
    if document.findings.is_empty() {
        return format!("{GOOD}✓{GOOD:#} {name} consistent: {looked}\n  {DIM}{compared}{DIM:#}\n");
    }
    let number = count(document.findings.len() as u64, "finding");
    out.push_str(&format!("\n{BAD}✗{BAD:#} {name}: {number} in {looked}\n"));
    let next = match document.live {
        true => {
            "please tell the maintainers, with this text; a process that is started anew loads what is stored"
        }
        false => "nothing was touched; move the folder away and run again to build everything anew",
    };
    out.push_str(&format!(" {HINT}hint{HINT:#}: {next}\n"));
    out
}
