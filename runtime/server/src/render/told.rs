//! One line for each resource whose run has ended, as it happens.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::columns::{Cell, fitting};
use super::palette::{BAD, DIM, GOOD, WARN};
use super::summary::first_line;
use super::units::{count, duration, grouped};
use crate::documents::{Ended, Event, LastRun, Outcome, ResourceError, ResourceName, Work};

/// Columns of kinds and names before any was told: later lines stand below the widest so far.
const KIND: usize = 6;
const NAME: usize = 12;
/// Wider names stand out of line.
const WIDEST_NAME: usize = 32;
/// The longest word for what was done.
const WORD: usize = 9;
/// The kind is left out on narrower terminals.
const NARROW: u16 = 60;

/// The beginning of each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The progress of the command: `12 of 40`.
    Progress,
    /// The time of day.
    Clock,
}

/// Draws lines below one another.
#[derive(Debug)]
pub(crate) struct Lines {
    begin: Begin,
    kind: usize,
    name: usize,
}

impl Lines {
    pub(crate) fn new(begin: Begin) -> Self {
        Self {
            begin,
            kind: KIND,
            name: NAME,
        }
    }

    /// The line of an event; none for those that are no end of a run.
    pub(crate) fn line(&mut self, event: &Event, width: Option<u16>) -> Option<String> {
        let Event::ResourceFinished {
            at,
            resource,
            work,
            run,
            error,
            about,
        } = event
        else {
            return None;
        };
        let begin = match self.begin {
            Begin::Progress => progress(about),
            Begin::Clock => super::units::clock(*at),
        };
        let (word, style) = word(*work, run, about);
        let (kind, name) = (kind_of(resource, about), name_of(resource, about));
        self.kind = self.kind.max(kind.width());
        self.name = self.name.max(name.width().min(WIDEST_NAME));
        let mut cells = vec![Cell::left(begin, DIM), Cell::left(word, style).least(WORD)];
        if width.is_none_or(|width| width >= NARROW) {
            cells.push(Cell::left(kind, DIM).least(self.kind));
        }
        cells.push(Cell::name(&name).least(self.name));
        match error {
            Some(error) => cells.push(reason(error)),
            None => cells.extend(made(run, about)),
        }
        Some(fitting("  ", &[cells], width))
    }
}

/// Returns true if the end of a run is told to everybody: something was done, found or fixed.
pub(crate) fn is_news(event: &Event) -> bool {
    let Event::ResourceFinished { work, run, about, .. } = event else {
        return false;
    };
    match run.outcome {
        Outcome::Done | Outcome::Failed => true,
        Outcome::Unchanged => about.fixed || *work == Work::Checked,
        Outcome::Skipped | Outcome::Cancelled | Outcome::NotSelected => false,
    }
}

/// ` 3 of 40`: as wide whatever the number.
fn progress(about: &Ended) -> String {
    let all = grouped(about.resources);
    format!("{:>1$} of {all}", grouped(about.ended), all.len())
}

fn word(work: Work, run: &LastRun, about: &Ended) -> (&'static str, Style) {
    match (run.outcome, work) {
        (Outcome::Failed, _) => ("failed", BAD),
        (Outcome::Skipped, _) => ("skipped", WARN),
        (Outcome::Cancelled, _) => ("cancelled", WARN),
        (_, Work::Built) => ("built", GOOD),
        (_, Work::Restored) => ("restored", GOOD),
        (_, Work::Renamed) => ("renamed", GOOD),
        (_, Work::Dropped) => ("removed", GOOD),
        (_, Work::Checked | Work::None) if about.fixed => ("fixed", GOOD),
        (_, Work::Checked) => ("checked", DIM),
        (_, Work::None) => ("unchanged", DIM),
    }
}

/// The word of the file: a source is one, although its kind is that of models.
fn kind_of(resource: &ResourceName, about: &Ended) -> String {
    about.declared_as.clone().unwrap_or_else(|| resource.kind.clone())
}

fn name_of(resource: &ResourceName, about: &Ended) -> String {
    match &about.was {
        Some(was) => format!("{was} → {}", resource.name),
        None => resource.name.clone(),
    }
}

fn reason(error: &ResourceError) -> Cell {
    Cell::left(first_line(&error.message), Style::new())
}

/// Rows or sort of what there is now, and how long it took.
fn made(run: &LastRun, about: &Ended) -> Vec<Cell> {
    let field = |name: &str| about.result.as_ref().and_then(|result| result.get(name));
    let rows = field("rows").and_then(serde_json::Value::as_u64);
    let sort = field("type")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    let what = rows.map_or_else(|| sort.to_owned(), |rows| count(rows, "row"));
    vec![
        Cell::right(what, Style::new()).least(12),
        Cell::left(duration(run.duration_ms), DIM),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{Reason, Time};

    fn ended(name: &str, outcome: Outcome, work: Work, about: Ended) -> Event {
        Event::ResourceFinished {
            at: Time::from_millis(0),
            resource: ResourceName {
                kind: "model".into(),
                name: name.into(),
            },
            work,
            run: LastRun {
                id: "1-1".into(),
                reason: Reason(watershed_core::Trigger::Edited),
                cause: Vec::new(),
                chain: Vec::new(),
                started_at: Time::from_millis(0),
                duration_ms: 13,
                outcome,
            },
            error: None,
            about,
        }
    }

    fn plain(lines: &mut Lines, event: &Event, width: Option<u16>) -> String {
        anstream::adapter::strip_str(&lines.line(event, width).unwrap()).to_string()
    }

    #[test]
    fn a_line_says_how_far_the_command_is_what_was_done_and_what_there_is_now() {
        let mut lines = Lines::new(Begin::Progress);
        let result = Some(serde_json::json!({"type": "table", "rows": 365}));
        let about = Ended {
            result,
            ended: 9,
            resources: 40,
            ..Ended::default()
        };
        let event = ended("daily", Outcome::Done, Work::Built, about.clone());
        let line = " 9 of 40  built      model   daily             365 rows  13ms\n";
        assert_eq!(plain(&mut lines, &event, None), format!("  {line}"));
        let was = Some("weekly".to_owned());
        let source = Some("source".to_owned());
        let event = ended(
            "d",
            Outcome::Done,
            Work::Renamed,
            Ended {
                was,
                declared_as: source,
                ..about
            },
        );
        let line = plain(&mut lines, &event, None);
        assert!(
            line.starts_with("   9 of 40  renamed    source  weekly → d "),
            "{line}"
        );
        assert!(plain(&mut lines, &event, Some(40)).width() <= 40);
    }

    #[test]
    fn what_was_fixed_is_news_and_what_was_not_touched_is_none() {
        let of = |work, fixed| {
            ended(
                "a",
                Outcome::Unchanged,
                work,
                Ended {
                    fixed,
                    ..Ended::default()
                },
            )
        };
        assert!(!is_news(&of(Work::None, false)));
        assert!(is_news(&of(Work::None, true)) && is_news(&of(Work::Checked, false)));
        assert!(plain(&mut Lines::new(Begin::Progress), &of(Work::None, true), None).contains("fixed"));
        assert!(!is_news(&ended(
            "a",
            Outcome::Skipped,
            Work::None,
            Ended::default()
        )));
    }
}
