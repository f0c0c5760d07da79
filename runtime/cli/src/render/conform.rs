//! `debug conform` for people.

use anstyle::Style;
use watershed_api::documents::{ConformCase, ConformDocument, ConformEnd, ConformGuarantee};

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::units::count;

/// Renders the guarantees with their numbers, the cases that did not pass, and the verdict.
pub(crate) fn conform(document: &ConformDocument, width: Option<u16>) -> String {
    let guarantees: Vec<_> = document.guarantees.iter().map(guarantee).collect();
    let cases: Vec<_> = document.cases.iter().map(case).collect();
    let number = |end: ConformEnd| document.cases.iter().filter(|case| case.end == end).count() as u64;
    let (mark, style) = match (document.exit_code, number(ConformEnd::Passed)) {
        (0, 0) => ("?", WARN),
        (0, _) => ("✓", GOOD),
        _ => ("✗", BAD),
    };
    let ends = format!(
        "{} passed, {} failed, {} left out, {} not tried here",
        count(number(ConformEnd::Passed), "case"),
        number(ConformEnd::Failed),
        number(ConformEnd::Weaker),
        number(ConformEnd::NotTried)
    );
    let left = document.left.iter();
    let left: String = left.map(|left| format!("{WARN}left{WARN:#}: {left}\n")).collect();
    format!(
        "{}\n{}\n{left}{style}{mark}{style:#} {STRONG}{}{STRONG:#}: {ends}\n",
        fitting("", &guarantees, width),
        fitting("", &cases, width),
        document.driver
    )
}

fn guarantee(guarantee: &ConformGuarantee) -> Vec<Cell> {
    let (mark, style) = match guarantee {
        ConformGuarantee { failed: 1.., .. } => ("failed", BAD),
        ConformGuarantee { weaker: true, .. } => ("weaker", WARN),
        ConformGuarantee { passed: 0, .. } => ("not tried", WARN),
        _ => ("kept", GOOD),
    };
    let all = guarantee.passed + guarantee.failed + guarantee.untried;
    vec![
        Cell::left(mark, style),
        Cell::left(guarantee.title.as_str(), Style::new()),
        Cell::left(format!("{} of {}", guarantee.passed, count(all, "case")), DIM),
    ]
}

fn case(case: &ConformCase) -> Vec<Cell> {
    let (mark, style) = match case.end {
        ConformEnd::Passed => ("passed", GOOD),
        ConformEnd::Failed => ("failed", BAD),
        ConformEnd::Weaker => ("left out", WARN),
        ConformEnd::NotTried => ("not tried", WARN),
    };
    let told = case.message.as_deref().unwrap_or_default();
    vec![
        Cell::left(mark, style),
        Cell::left(case.name.replace('_', " "), Style::new()),
        Cell::left(told, DIM),
    ]
}
