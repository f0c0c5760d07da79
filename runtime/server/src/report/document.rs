//! The result document of a command.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use watershed_api::Exit;
use watershed_api::documents::{
    Command, Diagnostic, Edge, GraphDocument, Health, HistoryDocument, HistoryRun, HistoryTransition, Node,
    Outcome, ResourceError, ResourceName, RunDocument, Severity, ShowDocument, Summary, TestCounts, Time,
    Work,
};
use watershed_core::{Row, Uid};

use super::copies::Copies;
use super::difference::Declarations;
use super::health::HealthReport;
use super::kinds::managed::Parts;
use super::kinds::programs::show_copies;
use super::summary::{Done, outcomes};
use super::{Entry, Hidden, kinds, made, resource};

/// The project that a document is about.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Name of the project's folder.
    pub(crate) name: String,
    /// Path of the project's folder.
    pub(crate) root: PathBuf,
    /// Name of the environment.
    pub(crate) environment: String,
}

/// A run of a command, with its time.
#[derive(Debug, Clone)]
pub(crate) struct Occasion {
    pub(crate) command: Command,
    pub(crate) run_id: String,
    pub(crate) started_at: Time,
}

impl Occasion {
    /// Returns the run of a command that begins now.
    pub(crate) fn begin(command: Command) -> Self {
        Self {
            command,
            run_id: uuid::Uuid::now_v7().to_string(),
            started_at: Time::now(),
        }
    }
}

/// The input of a command's result document.
pub(crate) struct Account<'a> {
    pub(crate) project: &'a Project,
    pub(crate) occasion: &'a Occasion,
    /// All resources, hidden and deleted ones included.
    pub(crate) entries: &'a [Entry],
    pub(crate) hidden: Hidden,
    pub(crate) findings: Vec<Diagnostic>,
    pub(crate) done: &'a Done,
    /// The declarations when the command began.
    pub(crate) before: &'a Declarations,
    /// The effect of warnings on the exit code.
    pub(crate) warnings: Warnings,
    /// The resources that the command applies to; none if it applies to all.
    pub(crate) selected: Option<&'a BTreeSet<Uid>>,
    /// The exit code of a command that was stopped; none if it ran to its end.
    pub(crate) stopped: Option<Exit>,
}

/// The file to which an error without a file is attributed.
const MANIFEST: &str = "watershed.yaml";

/// The effect of warnings on the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warnings {
    /// Warnings are shown and don't count.
    Said,
    /// Warnings count as errors (`--warn-error`).
    AreErrors,
}

impl Account<'_> {
    /// Returns the document of the resources that `keep` accepts.
    pub(crate) fn document(mut self, keep: impl Fn(&Row) -> bool) -> RunDocument {
        let not_applied = self.not_applied();
        self.leave_out_findings();
        let health_report = HealthReport::from_entries(self.entries);
        let mut resources = Vec::new();
        let mut ended = Vec::new();
        let mut tests = TestCounts::default();
        let mut fixed = 0;
        let listed = self.entries.iter();
        let listed = listed.filter(|entry| entry.is_listed(self.hidden) && keep(&entry.row));
        let about = listed.clone().filter(|entry| self.is_selected(&entry.row));
        let found: Vec<Diagnostic> = about.flat_map(|entry| kinds::problems(&entry.row)).collect();
        self.findings.extend(found);
        let (copies, parts) = (Copies::of(self.entries), Parts::of(self.entries));
        for entry in listed {
            let row = &entry.row;
            let Some(resource_health) = health_report.get(row) else {
                continue;
            };
            let warnings = resource::warnings(&self.findings, row);
            let mut told = resource::document(row, resource_health, self.done.work(row.uid), warnings);
            resource::say_as_found(&mut told, &self.findings);
            show_copies(&copies, &mut told.result, row);
            parts.show_in(&mut told.result, row);
            told.selected = self.is_selected(row);
            // Names are followed all the same.
            if !told.selected && matches!(told.work, Work::None | Work::Checked) {
                told.work = Work::None;
                resources.push(told);
                ended.push(Outcome::NotSelected);
                continue;
            }
            told.tests.iter().for_each(|test| tests.add(test));
            let is_fixed = self.before.had_failed(row.uid) && told.error.is_none();
            // What was built or renamed is counted as that.
            fixed += u64::from(is_fixed && matches!(told.work, Work::None | Work::Checked));
            resources.push(told);
            ended.push(
                match (
                    self.done.outcome(row.uid, resource_health.health),
                    resource_health.health,
                ) {
                    // What only waits is no failure of this command.
                    (Outcome::Skipped, Health::Unready) => Outcome::Unchanged,
                    // Its copies have failed, whatever became of its own runs.
                    (Outcome::Done | Outcome::Unchanged, Health::Failed)
                        if resource_health.trouble.is_some() =>
                    {
                        Outcome::Failed
                    }
                    (outcome, _) => outcome,
                },
            );
        }
        let after = Declarations::from_entries(self.entries, self.hidden);
        let (changes, removed) = self.before.changes_to(&after);
        let number = resources.len() as u64;
        let paused = resources.iter().filter(|told| told.health == Health::Paused);
        let summary = Summary {
            paused: paused
                .map(watershed_api::documents::ResourceDocument::id)
                .collect(),
            resources: number,
            outcomes: outcomes(ended.into_iter()),
            changes,
            removed,
            tests,
            fixed,
        };
        // A receiver that refuses a message is no mistake of the project.
        let mut counted = resources
            .iter()
            .filter(|r| r.selected && r.kind != watershed_delivery::KIND);
        let failed = counted.any(|r| matches!(r.health, Health::Failed | Health::Blocked));
        let exit = self.stopped.unwrap_or_else(|| self.exit(failed));
        RunDocument {
            schema: RunDocument::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.occasion.command,
            project: self.project.name.clone(),
            root: self.project.root.display().to_string(),
            environment: self.project.environment.clone(),
            run_id: self.occasion.run_id.clone(),
            started_at: self.occasion.started_at,
            duration_ms: Time::now().since_ms(self.occasion.started_at),
            exit_code: exit.code(),
            resources,
            not_applied,
            diagnostics: self.findings,
            summary,
        }
    }

    fn is_selected(&self, row: &Row) -> bool {
        row.hidden || self.selected.is_none_or(|selected| selected.contains(&row.uid))
    }

    /// Drops the findings in files that declare nothing but unselected resources.
    fn leave_out_findings(&mut self) {
        let Some(selected) = self.selected else { return };
        let live = self
            .entries
            .iter()
            .filter(|entry| !entry.row.intents.is_deleted());
        let (inside, outside): (Vec<&Entry>, Vec<&Entry>) =
            live.partition(|entry| selected.contains(&entry.row.uid));
        let paths = |entries: &[&Entry]| -> BTreeSet<String> {
            let paths = entries.iter().flat_map(|entry| entry.row.paths.iter());
            paths.map(ToString::to_string).collect()
        };
        let (inside, outside) = (paths(&inside), paths(&outside));
        self.findings
            .retain(|found| inside.contains(&found.path) || !outside.contains(&found.path));
    }

    /// Returns the reason why the project parser applied nothing, and adds it as a finding in the manifest unless a
    /// file has it.
    fn not_applied(&mut self) -> Option<ResourceError> {
        let is_parser = |entry: &&Entry| entry.row.kind.as_str() == kinds::PROJECT_PARSER;
        let parser = self.entries.iter().find(is_parser)?;
        let error = resource::failure(super::health::own_error(&parser.row)?);
        let told = |finding: &Diagnostic| finding.code == error.code && finding.message == error.message;
        if !self.findings.iter().any(told) {
            let at = error.at.clone();
            let (path, line, column) =
                at.map_or((MANIFEST.to_owned(), 1, 1), |at| (at.path, at.line, at.column));
            self.findings.push(Diagnostic {
                severity: Severity::Error,
                code: error.code.clone(),
                path,
                line,
                column,
                end_line: line,
                end_column: column,
                message: error.message.clone(),
                hint: error.hint.clone(),
                notes: Vec::new(),
                details: error.details.clone(),
                resource: None,
                related: Vec::new(),
            });
        }
        Some(error)
    }

    fn exit(&self, failed: bool) -> Exit {
        let found = |severity| self.findings.iter().any(|finding| finding.severity == severity);
        let warned = self.warnings == Warnings::AreErrors && found(Severity::Warning);
        // Hidden resources fail too: a project that can't be listed, for instance. A receiver that refuses a message is no
        // mistake of the project, and a service tells of its copies.
        let counts =
            |row: &Row| row.hidden && !kinds::is_alert_or_message(row) && !kinds::programs::is_copy(row);
        let hidden = self
            .entries
            .iter()
            .any(|e| counts(&e.row) && super::health::own_error(&e.row).is_some());
        if failed || hidden || warned || found(Severity::Error) {
            Exit::ProjectError
        } else {
            Exit::Converged
        }
    }
}

/// Returns the findings of the last parse, from the catalog.
pub(crate) fn findings(entries: &[Entry]) -> Vec<Diagnostic> {
    entries
        .iter()
        .filter_map(|entry| kinds::findings(&entry.row))
        .flatten()
        .collect()
}

/// The part of a graph that is shown.
#[derive(Debug)]
pub(crate) enum About<'a> {
    /// The whole graph.
    All,
    /// One resource with its transitive dependencies and dependents.
    Around(&'a Row),
    /// Some resources, with the edges between them.
    Only(BTreeSet<Uid>),
}

/// Returns the graph, with edges from each dependency to its dependents.
pub(crate) fn graph(entries: &[Entry], hidden: Hidden, about: &About<'_>) -> GraphDocument {
    let health_report = HealthReport::from_entries(entries);
    let listed: Vec<&Entry> = entries.iter().filter(|entry| entry.is_listed(hidden)).collect();
    let known: std::collections::BTreeMap<_, _> =
        listed.iter().map(|entry| (entry.row.key(), *entry)).collect();
    let mut edges: Vec<Edge> = Vec::new();
    for entry in &listed {
        let to = name_of(&entry.row);
        let parents = entry.row.refs.iter().filter_map(|r| known.get(&r.key()));
        edges.extend(parents.map(|parent| Edge {
            from: name_of(&parent.row),
            to: to.clone(),
        }));
    }
    edges.extend(made_edges(&listed));
    edges.sort();
    edges.dedup();
    let kept = match about {
        About::All => None,
        About::Around(row) => Some(neighbourhood(&edges, name_of(row))),
        About::Only(chosen) => {
            let chosen = listed.iter().filter(|entry| chosen.contains(&entry.row.uid));
            Some(chosen.map(|entry| name_of(&entry.row)).collect())
        }
    };
    let keeps = |name: &ResourceName| kept.as_ref().is_none_or(|kept| kept.contains(name));
    edges.retain(|edge| keeps(&edge.from) && keeps(&edge.to));
    let nodes = listed
        .iter()
        .filter(|entry| keeps(&name_of(&entry.row)))
        .filter_map(|entry| {
            let health = health_report.get(&entry.row)?.health;
            Some(Node {
                kind: entry.row.kind.to_string(),
                name: entry.row.name.to_string(),
                health,
            })
        });
    GraphDocument {
        schema: GraphDocument::SCHEMA.to_owned(),
        nodes: nodes.collect(),
        edges,
    }
}

/// Returns the edges from migrations to the models that read the objects they made, which no ref declares.
fn made_edges(entries: &[&Entry]) -> Vec<Edge> {
    let rows = entries.iter().map(|entry| &*entry.row);
    let pairs = made::readers(rows.clone());
    let names: HashMap<Uid, ResourceName> = match pairs.is_empty() {
        true => HashMap::new(),
        false => rows.map(|row| (row.uid, name_of(row))).collect(),
    };
    let edge = |(from, to): (Uid, Uid)| {
        Some(Edge {
            from: names.get(&from)?.clone(),
            to: names.get(&to)?.clone(),
        })
    };
    pairs.into_iter().filter_map(edge).collect()
}

fn name_of(row: &Row) -> ResourceName {
    ResourceName::new(row.kind.as_str(), row.name.as_str())
}

/// Returns a resource with its ancestors and descendants.
fn neighbourhood(edges: &[Edge], centre: ResourceName) -> std::collections::BTreeSet<ResourceName> {
    let mut kept = reached(edges.iter().map(|edge| (&edge.from, &edge.to)), &centre);
    kept.extend(reached(edges.iter().map(|edge| (&edge.to, &edge.from)), &centre));
    kept.insert(centre);
    kept
}

fn reached<'a>(
    steps: impl Iterator<Item = (&'a ResourceName, &'a ResourceName)>,
    start: &'a ResourceName,
) -> std::collections::BTreeSet<ResourceName> {
    let mut next: std::collections::BTreeMap<_, Vec<_>> = Default::default();
    steps.for_each(|(from, to)| next.entry(from).or_default().push(to));
    let mut seen = std::collections::BTreeSet::new();
    let mut stack = vec![start];
    while let Some(name) = stack.pop() {
        for step in next.get(name).map(Vec::as_slice).unwrap_or_default() {
            if seen.insert((*step).clone()) {
                stack.push(step);
            }
        }
    }
    seen
}

/// Returns past runs and transitions as a document.
pub(crate) fn history(
    project: &Project,
    runs: Vec<HistoryRun>,
    transitions: Vec<HistoryTransition>,
) -> HistoryDocument {
    HistoryDocument {
        schema: HistoryDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        runs,
        transitions,
        next: None,
        searched_since: None,
        ended_early: None,
    }
}

/// Returns a resource with its spec and state, as a document.
pub(crate) fn show(entries: &[Entry], row: &Row) -> Option<ShowDocument> {
    let health_report = HealthReport::from_entries(entries);
    let warnings = resource::warnings(&findings(entries), row);
    let document = resource::document(
        row,
        health_report.get(row)?,
        watershed_api::documents::Work::None,
        warnings,
    );
    Some(ShowDocument {
        schema: ShowDocument::SCHEMA.to_owned(),
        resource: document,
        spec: kinds::spec(row),
        state: kinds::state(row),
    })
}
