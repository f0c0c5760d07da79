//! The results of `doctor` and `gc`, for people.

use watershed_api::documents::{Checked, DoctorDocument, GcDocument};
use watershed_drivers::volume::Bytes;

use super::palette::{BAD, DIM, GOOD, HINT, STRONG};
use super::units::count;

/// Renders the result of `doctor`: a line for each check, its findings, the files set aside, and the verdict.
pub(crate) fn doctor(document: &DoctorDocument) -> String {
    let mut out = String::new();
    for check in &document.checks {
        let what = check.what.as_str();
        let mark = match check.findings.is_empty() {
            true => format!("{GOOD}✓{GOOD:#}"),
            false => format!("{BAD}✗{BAD:#}"),
        };
        out.push_str(&format!("{mark} {what}\n"));
        for finding in &check.findings {
            out.push_str(&format!("    {finding}\n"));
        }
    }
    for mended in &document.mended {
        out.push_str(&format!("  mended {mended}\n"));
    }
    for file in &document.repaired {
        out.push_str(&format!("  set aside {DIM}as{DIM:#} {}\n", file.to));
    }
    let name = format!(
        "{STRONG}{}{STRONG:#} ({})",
        document.project, document.environment
    );
    let number: usize = document.checks.iter().map(|check| check.findings.len()).sum();
    if number == 0 {
        out.push_str(&format!("\n{GOOD}✓{GOOD:#} {name} is sound\n"));
        return out;
    }
    let number = count(number as u64, "finding");
    if document.repaired.is_empty() && document.mended.is_empty() {
        out.push_str(&format!("\n{BAD}✗{BAD:#} {name}: {number}\n"));
        let has = |what: Checked| {
            let mut checks = document.checks.iter();
            checks.any(|check| check.what == what && !check.findings.is_empty())
        };
        if [Checked::Catalog, Checked::Engine, Checked::Trash]
            .into_iter()
            .any(has)
        {
            out.push_str(&format!(
                " {HINT}hint{HINT:#}: `watershed doctor --repair` sets a damaged file aside and mends the trash; nothing is deleted\n"
            ));
        }
        if has(Checked::Files) {
            out.push_str(&format!(
                " {HINT}hint{HINT:#}: `watershed run` writes missing files of models again; it leaves files that somebody changed\n"
            ));
        }
    } else {
        out.push_str(&format!("\n{GOOD}✓{GOOD:#} {name} is repaired: {number}\n"));
        if !document.repaired.is_empty() {
            out.push_str(&format!(
                " {HINT}hint{HINT:#}: `watershed run` makes anew what was set aside\n"
            ));
        }
    }
    out
}

/// Renders the result of `gc` in one line.
pub(crate) fn gc(document: &GcDocument) -> String {
    let (before, after) = (document.engine_bytes_before, document.engine_bytes_after);
    let name = format!("{STRONG}{}{STRONG:#}", document.project);
    match before.saturating_sub(after) {
        0 => format!(
            "{GOOD}✓{GOOD:#} {name}: the engine's file has {}; too little of it is free to be given back\n",
            Bytes(before)
        ),
        freed => {
            let (freed, after) = (Bytes(freed), Bytes(after));
            format!("{GOOD}✓{GOOD:#} {name}: {freed} given back, the engine's file has {after}\n")
        }
    }
}
