//! Plans, for people.

use anstyle::Style;
use similar::{ChangeTag, TextDiff};
use watershed_api::documents::{PlanDocument, PlanEdit, PlanStep, PlanSummary, PlanWork, SqlChange};

use super::columns::{Cell, fitting, renamed};
use super::palette::{BAD, DIM, GOOD, STRONG, WARN};
use super::paragraph::folded;
use super::units::{chosen_of, count, duration, kept_for};

/// Most changed lines of SQL that are shown of one resource; documents have all.
const MOST_LINES: usize = 12;

/// Largest width of two names with an arrow between them, in columns: the least that names are cut to at first.
const SHORT_NAMES: usize = 24;

/// Renders a line for each step, with the changed lines of SQL below it, and a line of counts.
pub(crate) fn plan(document: &PlanDocument, width: Option<u16>) -> String {
    let rows: Vec<Vec<Cell>> = document.steps.iter().map(line).collect();
    let table = fitting("  ", &rows, width);
    let mut out = String::new();
    for (line, step) in table.lines().zip(&document.steps) {
        out.push_str(line.trim_end());
        out.push('\n');
        if let Some(sql) = &step.sql {
            out.push_str(&changed_lines(sql));
        }
    }
    if !document.steps.is_empty() {
        out.push('\n');
    }
    out.push_str(&folded(&last_line(document), 2, width));
    out
}

fn line(step: &PlanStep) -> Vec<Cell> {
    let (word, style) = word(step);
    let (name, was) = renamed(step.renamed_from.as_deref(), &step.name, SHORT_NAMES);
    let why = match (&step.error, &step.reason) {
        (Some(error), _) => error.message.clone(),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    };
    let why = match (step.destructive, step.kept_ms) {
        (true, Some(kept)) => format!("{why}; the trash keeps its rows for {}", kept_for(kept)),
        (true, None) => format!("{why}; its rows are lost"),
        (false, _) => why,
    };
    let why = match was {
        Some(was) => format!("{was}; {why}"),
        None => why,
    };
    let took = step.estimate_ms.map(|ms| format!("~{}", duration(ms)));
    vec![
        Cell::left(word, style),
        Cell::left(step.kind.clone(), DIM),
        Cell::name(&name).styled(STRONG),
        Cell::left(why, if step.error.is_some() { style } else { Style::new() }),
        Cell::left(took.unwrap_or_default(), DIM).whole(),
    ]
}

fn word(step: &PlanStep) -> (&'static str, Style) {
    match (step.work, step.edit) {
        (PlanWork::Build, _) => ("build", GOOD),
        (PlanWork::Restore, _) => ("restore", GOOD),
        (PlanWork::Add, _) => ("add rows", GOOD),
        (PlanWork::Rename, _) => ("rename", GOOD),
        (PlanWork::Drop, _) if step.destructive => ("drop", BAD),
        (PlanWork::Drop, _) => ("drop", WARN),
        (PlanWork::Check, _) => ("check", DIM),
        (PlanWork::Blocked, _) => ("blocked", WARN),
        (PlanWork::Failed, _) => ("fail", BAD),
        (PlanWork::None, PlanEdit::Deleted) => ("forget", DIM),
        (PlanWork::None, _) => ("note", DIM),
    }
}

fn changed_lines(sql: &SqlChange) -> String {
    let diff = TextDiff::from_lines(&sql.before, &sql.after);
    let changes = diff.iter_all_changes().filter_map(|change| {
        let line = change.value().trim_end();
        match change.tag() {
            ChangeTag::Delete => Some(format!("      {BAD}- {line}{BAD:#}\n")),
            ChangeTag::Insert => Some(format!("      {GOOD}+ {line}{GOOD:#}\n")),
            ChangeTag::Equal => None,
        }
    });
    let changes: Vec<String> = changes.collect();
    let left = changes.len().saturating_sub(MOST_LINES);
    let mut out: String = changes.into_iter().take(MOST_LINES).collect();
    if left > 0 {
        let lines = count(left as u64, "further line");
        out.push_str(&format!("      {DIM}{lines} (`--json` has all){DIM:#}\n"));
    }
    out
}

fn last_line(document: &PlanDocument) -> String {
    let PlanSummary {
        resources,
        selected,
        builds,
        restores,
        renames,
        drops,
        checks,
        failures,
        estimate_ms,
    } = document.summary;
    let numbers = [
        (builds, "to build"),
        (restores, "to restore"),
        (renames, "to rename"),
        (drops, "to drop"),
        (checks, "to check"),
        (failures, "that would fail or wait"),
    ];
    let numbers = numbers.iter().filter(|(number, _)| *number > 0);
    let mut said: Vec<String> = numbers.map(|(number, what)| format!("{number} {what}")).collect();
    if said.is_empty() {
        said.push("nothing to do".to_owned());
    }
    let about = match estimate_ms {
        0 => String::new(),
        ms => format!(" (about {} by past builds)", duration(ms)),
    };
    format!(
        "{STRONG}{}{STRONG:#}: {}, {}{about}\n",
        document.project,
        chosen_of(selected, resources),
        said.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_shows_each_step_its_reason_and_what_its_sql_loses_and_gains() {
        let step = |name: &str, work, edit| PlanStep {
            kind: "model".into(),
            name: name.into(),
            renamed_from: None,
            edit,
            work,
            reason: Some("its definition changed".into()),
            kept_ms: None,
            destructive: false,
            estimate_ms: None,
            error: None,
            sql: None,
        };
        let mut edited = step("days", PlanWork::Build, PlanEdit::Edited);
        edited.estimate_ms = Some(1_500);
        edited.sql = Some(SqlChange {
            before: "SELECT a\nFROM b".into(),
            after: "SELECT a\nFROM c".into(),
        });
        let mut gone = step("old", PlanWork::Drop, PlanEdit::Deleted);
        gone.destructive = true;
        gone.reason = Some("its file is gone".into());
        let steps = vec![edited, gone];
        let summary = PlanSummary {
            resources: 9,
            builds: 1,
            drops: 1,
            estimate_ms: 1_500,
            ..PlanSummary::default()
        };
        let document = PlanDocument {
            schema: PlanDocument::SCHEMA.into(),
            project: "shop".into(),
            environment: "dev".into(),
            exit_code: 0,
            steps,
            summary,
        };
        let text = anstream::adapter::strip_str(&plan(&document, None)).to_string();
        let expected = "  build  model  days  its definition changed               ~1.5s
      - FROM b
      + FROM c
  drop   model  old   its file is gone; its rows are lost

shop: 9 resources, 1 to build, 1 to drop (about 1.5s by past builds)
";
        assert_eq!(text, expected);
        let narrow = anstream::adapter::strip_str(&plan(&document, Some(50))).to_string();
        assert!(
            narrow.starts_with("  build  model  days  its definition chan…  ~1.5s\n"),
            "{narrow}"
        );
    }
}
