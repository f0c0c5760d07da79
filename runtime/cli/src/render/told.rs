//! Lines for ended runs, messages and steps of programs, as they happen.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;
use watershed_api::documents::{
    Diagnostic, Ended, Event, LastRun, Outcome, ResourceError, ResourceName, Time, Work,
};

use super::columns::{Cell, fitting, renamed, shortened};
use super::palette::{BAD, DIM, GOOD, WARN};
use super::summary::first_line;
use super::units::{ahead, count, duration, grouped};

/// First widths of kinds and names, in columns; later lines use the widest so far.
const KIND: usize = 6;
const NAME: usize = 12;
/// Widest name that is aligned, in columns.
const WIDEST_NAME: usize = 32;
/// Width of the longest word for the work done, in columns.
const WORD: usize = 9;
/// Narrowest terminal on which the kind is shown, in columns.
const NARROW: u16 = 72;
/// Widths of the longest kind, number of rows and duration, in columns, which all lines on a terminal reserve.
const LONGEST_KIND: usize = 12;
const ROWS: usize = 12;
const DURATION: usize = 6;
/// Least width of a name on any terminal, in columns.
const LEAST_NAME: usize = 12;

/// The first column of each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// The progress of the command: `12 of 40`.
    Progress,
    /// The time of day.
    Clock,
}

/// A renderer of lines whose columns are aligned with those of earlier lines.
#[derive(Debug)]
pub(crate) struct Lines {
    begin: Begin,
    kind: usize,
    name: usize,
    /// Width of the last progress text, in columns.
    begun: usize,
}

impl Lines {
    pub(crate) fn new(begin: Begin) -> Self {
        Self {
            begin,
            kind: KIND,
            name: NAME,
            begun: 0,
        }
    }

    /// Renders an ended run, a message or a step of a program; none for other events.
    pub(crate) fn line(&mut self, event: &Event, width: Option<u16>) -> Option<String> {
        let cells = match event {
            Event::ResourceFinished { .. } => self.end_of_run(event, width)?,
            Event::NotificationDelivered {
                at, title, receiver, ..
            } => self.message(*at, ("sent", GOOD), title, receiver, width),
            Event::NotificationDelayed {
                at,
                title,
                receiver,
                failure,
                next_attempt_at,
                ..
            } => {
                let next = ahead(*next_attempt_at, *at);
                let more = format!("{receiver}: {failure}; next attempt {next}");
                self.message(*at, ("delayed", WARN), title, &more, width)
            }
            Event::NotificationDead {
                at,
                title,
                receiver,
                failure,
                ..
            } => {
                let more = format!("{receiver}: {failure}");
                self.message(*at, ("not sent", BAD), title, &more, width)
            }
            Event::Transition {
                at,
                resource,
                reason,
                detail,
                ..
            } => {
                let word = story(event)?;
                self.step(*at, word, resource, &more_of(reason, detail), width)
            }
            _ => return None,
        };
        Some(fitting("  ", &[cells], width))
    }

    fn end_of_run(&mut self, event: &Event, width: Option<u16>) -> Option<Vec<Cell>> {
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
        self.begun = begin.width();
        let what = match (resource.kind.as_str(), word(*work, run, about)) {
            // It has come up, with another release or number of replicas, or once more.
            ("service", ("built", style)) => ("ready", style),
            (_, what) => what,
        };
        let most = width.map_or(usize::MAX, |width| {
            self.place(width);
            self.name
        });
        let (name, was) = renamed(about.was.as_deref(), &resource.name, most);
        let mut cells = self.begin(begin, what, kind_of(resource, about), &name, width);
        match error {
            Some(error) => cells.push(reason(error)),
            None => cells.extend(made(run, about)),
        }
        cells.extend(was.map(|was| Cell::left(was, DIM).below()));
        Some(cells)
    }

    /// Renders the end of a replica's failure, as its service runs again; none for a mistake in a file.
    pub(crate) fn recovered(&mut self, fixed: &Diagnostic, width: Option<u16>) -> Option<String> {
        let (replica, rest) = first_line(&fixed.message).split_once(" of service/")?;
        let number = replica.strip_prefix("replica ")?;
        let (service, what) = rest.split_once(' ')?;
        let service = ResourceName::new("service", service);
        let more = format!("replica {number} {what}");
        let cells = self.step(Time::now(), ("recovered", GOOD), &service, &more, width);
        Some(fitting("  ", &[cells], width))
    }

    /// Renders the line of a message, with blanks in place of the command's progress.
    fn message(
        &mut self,
        at: Time,
        what: (&'static str, Style),
        title: &str,
        more: &str,
        width: Option<u16>,
    ) -> Vec<Cell> {
        self.step(at, what, &ResourceName::new("message", title), more, width)
    }

    /// Renders a step of a program, which has no progress of the command.
    fn step(
        &mut self,
        at: Time,
        what: (&'static str, Style),
        resource: &ResourceName,
        more: &str,
        width: Option<u16>,
    ) -> Vec<Cell> {
        let begin = match self.begin {
            Begin::Progress => " ".repeat(self.begun),
            Begin::Clock => super::units::clock(at),
        };
        self.begun = begin.width();
        let mut cells = self.begin(begin, what, resource.kind.clone(), &resource.name, width);
        cells.push(Cell::left(first_line(more), Style::new()));
        cells
    }

    /// Returns the columns that all lines have: beginning, word, kind and name.
    fn begin(
        &mut self,
        begin: String,
        (word, style): (&'static str, Style),
        kind: String,
        name: &str,
        width: Option<u16>,
    ) -> Vec<Cell> {
        let mut cells = vec![
            Cell::left(begin, DIM).whole(),
            Cell::left(word, style).least(WORD).whole(),
        ];
        let has_kind = width.is_none_or(|width| width >= NARROW);
        match width {
            Some(width) => self.place(width),
            None => {
                self.kind = self.kind.max(kind.width());
                self.name = self.name.max(name.width().min(WIDEST_NAME));
            }
        }
        if has_kind {
            cells.push(Cell::left(kind, DIM).least(self.kind).whole());
        }
        let name = match width {
            Some(_) => shortened(name, self.name),
            None => name.to_owned(),
        };
        cells.push(Cell::name(&name).least(self.name));
        cells
    }

    /// Sets the width of names to the room that the other columns leave, so that all lines are aligned.
    fn place(&mut self, width: u16) {
        self.kind = LONGEST_KIND;
        let kind = if width >= NARROW { 2 + LONGEST_KIND } else { 0 };
        let others = 2 + self.begun + 2 + WORD + kind + 2 + 2 + ROWS + 2 + DURATION;
        let left = usize::from(width).saturating_sub(others + 1);
        self.name = left.clamp(LEAST_NAME, WIDEST_NAME);
    }
}

/// Returns the word and style for a step of a program that a person wants to see; none for other events.
fn story(event: &Event) -> Option<(&'static str, Style)> {
    let word = event.story()?;
    let style = match word {
        "rolled out" => GOOD,
        "failed" | "crashed" => BAD,
        "check" | "waits" => WARN,
        _ => DIM,
    };
    Some((word, style))
}

fn more_of(reason: &str, detail: &str) -> String {
    let reason = reason.replace('_', " ");
    match (reason.as_str(), detail) {
        (_, "") => reason,
        ("exited" | "rollout" | "rollout complete" | "restarted" | "check", detail) => detail.to_owned(),
        (reason, detail) => format!("{reason}: {detail}"),
    }
}

/// Renders the progress as ` 3 of 40`, padded to a constant width.
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

/// Returns the kind as the resource's file names it: `source` for some models.
fn kind_of(resource: &ResourceName, about: &Ended) -> String {
    about.declared_as.clone().unwrap_or_else(|| resource.kind.clone())
}

fn reason(error: &ResourceError) -> Cell {
    Cell::left(first_line(&error.message), Style::new())
}

/// Returns the cells for the result of a run, such as its rows or verdict, and its duration.
fn made(run: &LastRun, about: &Ended) -> Vec<Cell> {
    let result = about.result.as_ref();
    let field = |path: &str| result.and_then(|result| result.pointer(path));
    // A report says of each of its files how many rows it has.
    let rows = field("/rows").or_else(|| field("/history/0/rows").filter(|_| run.outcome == Outcome::Done));
    let sort = field("/type").or_else(|| field("/verdict"));
    let sort = sort.and_then(serde_json::Value::as_str).unwrap_or_default();
    let replicas = field("/replicas_wanted").and_then(serde_json::Value::as_u64);
    let what = match (rows.and_then(serde_json::Value::as_u64), replicas) {
        (Some(rows), _) => count(rows, "row"),
        (None, Some(replicas)) => count(replicas, "replica"),
        (None, None) => sort.to_owned(),
    };
    vec![
        Cell::right(what, Style::new()).least(ROWS),
        Cell::left(duration(run.duration_ms), DIM).whole(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::Reason;

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
                reason: Reason::Edited,
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
    fn a_rename_that_no_line_has_room_for_is_told_in_two() {
        let about = Ended {
            was: Some("orders_of_the_last_year_by_customer".to_owned()),
            result: Some(serde_json::json!({"type": "table", "rows": 365})),
            ended: 9,
            resources: 40,
            ..Ended::default()
        };
        let event = ended("orders_by_customer", Outcome::Done, Work::Renamed, about);
        let line = plain(&mut Lines::new(Begin::Progress), &event, Some(80));
        assert_eq!(
            line,
            "   9 of 40  renamed    model         orders_by_customer        365 rows  13ms\n      was orders_of_the_last_year_by_customer\n"
        );
    }

    #[test]
    fn a_service_that_came_up_is_ready_with_its_replicas() {
        let result = Some(serde_json::json!({"stage": "ready", "replicas_wanted": 3}));
        let about = Ended {
            result,
            ..Ended::default()
        };
        let mut event = ended("web", Outcome::Done, Work::Built, about);
        if let Event::ResourceFinished { resource, .. } = &mut event {
            resource.kind = "service".into();
        }
        let line = plain(&mut Lines::new(Begin::Progress), &event, None);
        let words: Vec<&str> = line.split_whitespace().skip(3).collect();
        assert_eq!(words, ["ready", "service", "web", "3", "replicas", "13ms"]);
    }

    #[test]
    fn a_service_that_is_back_is_told_by_its_name() {
        let fixed = |message: &str| Diagnostic {
            severity: watershed_api::documents::Severity::Error,
            code: "killed".into(),
            path: "programs/web.yaml".into(),
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            message: message.into(),
            hint: None,
            notes: Vec::new(),
            details: None,
            resource: None,
            related: Vec::new(),
        };
        let mut lines = Lines::new(Begin::Progress);
        let mut told = |message: &str| lines.recovered(&fixed(message), None);
        let line = told("replica 1 of service/web exited with signal 9 after 2.0 s").unwrap_or_default();
        assert_eq!(
            anstream::adapter::strip_str(&line).to_string().trim(),
            "recovered  service  web           replica 1 exited with signal 9 after 2.0 s"
        );
        assert_eq!(told("Table with name a does not exist!"), None);
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
        assert!(!Event::is_news(&of(Work::None, false)));
        assert!(Event::is_news(&of(Work::None, true)) && Event::is_news(&of(Work::Checked, false)));
        assert!(plain(&mut Lines::new(Begin::Progress), &of(Work::None, true), None).contains("fixed"));
        assert!(!Event::is_news(&ended(
            "a",
            Outcome::Skipped,
            Work::None,
            Ended::default()
        )));
    }
    #[test]
    fn crashes_checks_and_rollouts_are_told_in_a_line_each() {
        let mut lines = Lines::new(Begin::Progress);
        let step = |kind: &str, name: &str, to: &str, reason: &str, detail: &str| Event::Transition {
            at: Time::from_millis(0),
            resource: ResourceName::new(kind, name),
            from: "running".to_owned(),
            to: to.to_owned(),
            reason: reason.to_owned(),
            detail: detail.to_owned(),
        };
        for (event, line) in [
            (
                step("replica", "web.1", "backing_off", "exited", "code 9"),
                "crashed    replica  web.1         code 9",
            ),
            (
                step("replica", "web.1", "failed", "crash_loop_back_off", "code 9"),
                "crashed    replica  web.1         crash loop back off: code 9",
            ),
            (
                step("replica", "web.1", "stopping", "check", "http /health: restart"),
                "check      replica  web.1         http /health: restart",
            ),
            (
                step(
                    "replica",
                    "web.1",
                    "pending",
                    "insufficient_resources",
                    "there is no room",
                ),
                "waits      replica  web.1         insufficient resources: there is no room",
            ),
            (
                step("service", "web", "rolling_out", "rollout", "release 2"),
                "rollout    service  web           release 2",
            ),
            (
                step(
                    "service",
                    "web",
                    "running",
                    "rollout_failed",
                    "release 2 made no progress in time",
                ),
                "failed     service  web           rollout failed: release 2 made no progress in time",
            ),
        ] {
            assert!(Event::is_news(&event));
            assert_eq!(plain(&mut lines, &event, None).trim(), line);
        }
        for (kind, to, reason) in [
            ("replica", "running", "ready"),
            ("replica", "pending", "ended"),
            ("replica", "stopping", "restarted"),
            ("service", "running", "scaled"),
            ("job", "completed", "completed"),
        ] {
            assert!(
                !Event::is_news(&step(kind, "web", to, reason, "")),
                "{kind} {reason}"
            );
        }
    }

    #[test]
    fn messages_stand_below_what_sent_them() {
        let mut lines = Lines::new(Begin::Progress);
        let about = Ended {
            result: Some(serde_json::json!({"verdict": "fail"})),
            ended: 9,
            resources: 40,
            ..Ended::default()
        };
        let checked = ended("late", Outcome::Unchanged, Work::Checked, about);
        let line = plain(&mut lines, &checked, None);
        assert_eq!(
            line,
            "   9 of 40  checked    model   late                  fail  13ms\n"
        );
        let (at, resource) = (Time::from_millis(0), ResourceName::new("notification", "1e95"));
        let sent = Event::NotificationDelivered {
            at,
            resource: resource.clone(),
            title: "Late: 3 rows".to_owned(),
            receiver: "connector \"outbox\"".to_owned(),
            attempts: 1,
        };
        let dead = Event::NotificationDead {
            at,
            resource,
            title: "Late: 3 rows".to_owned(),
            receiver: "connector \"pager\"".to_owned(),
            attempts: 12,
            failure: "the receiver answered 410".to_owned(),
        };
        let delayed = Event::NotificationDelayed {
            at,
            resource: ResourceName::new("notification", "1e95"),
            title: "Late: 3 rows".to_owned(),
            receiver: "connector \"pager\"".to_owned(),
            attempts: 1,
            failure: "can't connect".to_owned(),
            next_attempt_at: Time::from_millis(10_000),
        };
        for (event, line) in [
            (
                delayed,
                "            delayed    message  Late: 3 rows  connector \"pager\": can't connect; next attempt in 10 s\n",
            ),
            (
                sent,
                "            sent       message  Late: 3 rows  connector \"outbox\"\n",
            ),
            (
                dead,
                "            not sent   message  Late: 3 rows  connector \"pager\": the receiver answered 410\n",
            ),
        ] {
            assert!(Event::is_news(&event));
            assert_eq!(plain(&mut lines, &event, None), line);
        }
    }
}
