//! Findings that repeat at several places: the first is drawn, the other places are listed in one line.

use std::collections::{BTreeMap, BTreeSet};

use watershed_api::documents::{Diagnostic, Severity};

use super::units::{count, some_of};

/// Most places in one line.
const MOST_PLACES: usize = 5;

/// The findings that repeat at several places, of which the first is drawn.
///
/// Errors are each drawn in full: each is to be fixed.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    said: BTreeSet<Line>,
    /// Places of each repeated finding that were not listed yet.
    waiting: BTreeMap<Line, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    severity: Severity,
    code: String,
    message: String,
}

impl Repeats {
    /// Returns true if a finding must be drawn. Otherwise its place is listed by [`rest`](Self::rest).
    pub(crate) fn is_first(&mut self, finding: &Diagnostic) -> bool {
        let said = Line {
            severity: finding.severity,
            code: finding.code.clone(),
            message: finding.message.clone(),
        };
        if finding.severity == Severity::Error || self.said.insert(said.clone()) {
            return true;
        }
        let place = format!("{}:{}", finding.path, finding.line);
        self.waiting.entry(said).or_default().push(place);
        false
    }

    /// Renders a line of places for each repeated finding; empty if there are none.
    pub(crate) fn rest(&mut self) -> String {
        let line = |(said, places): (Line, Vec<String>)| {
            let (word, style) = match said.severity {
                Severity::Error => ("error", super::palette::BAD),
                Severity::Warning => ("warning", super::palette::WARN),
                Severity::Hint => ("note", super::palette::STRONG),
            };
            let number = count(places.len() as u64, "other place");
            let places = some_of(&places, MOST_PLACES);
            let (code, message) = (said.code, said.message);
            format!("{style}{word}[{code}]{style:#}: {message}, in {number}: {places}\n\n")
        };
        std::mem::take(&mut self.waiting).into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity, path: &str) -> Diagnostic {
        Diagnostic {
            severity,
            code: "schedule-not-in-dev".into(),
            path: path.into(),
            line: 3,
            column: 1,
            end_line: 3,
            end_column: 2,
            message: "the schedule does not count".into(),
            hint: None,
            notes: Vec::new(),
            details: None,
            resource: None,
            related: Vec::new(),
        }
    }

    #[test]
    fn the_first_is_drawn_and_the_places_of_the_others_are_told_in_one_bounded_line() {
        let mut repeats = Repeats::default();
        let names: Vec<String> = (0..12).map(|n| format!("models/m{n}.yaml")).collect();
        let drawn = names
            .iter()
            .filter(|name| repeats.is_first(&finding(Severity::Hint, name)));
        assert_eq!(drawn.count(), 1);
        let said = anstream::adapter::strip_str(&repeats.rest()).to_string();
        assert_eq!(
            said,
            "note[schedule-not-in-dev]: the schedule does not count, in 11 other places: models/m1.yaml:3, \
             models/m2.yaml:3, models/m3.yaml:3, models/m4.yaml:3, models/m5.yaml:3 and 6 more\n\n"
        );
        assert_eq!(repeats.rest(), "");
        assert!(!repeats.is_first(&finding(Severity::Hint, "models/late.yaml")));
        assert!(repeats.rest().contains("in 1 other place: models/late.yaml:3"));
    }

    #[test]
    fn each_error_is_drawn() {
        let mut repeats = Repeats::default();
        assert!(
            repeats.is_first(&finding(Severity::Error, "a"))
                && repeats.is_first(&finding(Severity::Error, "b"))
        );
        assert_eq!(repeats.rest(), "");
    }
}
