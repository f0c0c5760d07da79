//! Documents made from one listing: status, graph, history.

use std::collections::BTreeSet;

use watershed_api::documents::{
    Command, Diagnostic, GraphDocument, HistoryDocument, HistoryRun, HistoryTransition, Repeats,
    ResourceDocument, ResourceName, RunDocument, ShowDocument, Time,
};
use watershed_api::request::{HistoryRequest, Selection};
use watershed_api::{Code, Problem};
use watershed_controller::Uid;
use watershed_controller::history::HistoryRow;
use watershed_controller::resource::Row;
use watershed_dialect::{ENGINE, Quoting as _};

use super::guesses::Source;
use super::span::Span;
use crate::report::difference::Declarations;
use crate::report::document::{self, About, Account, Occasion, Project, Warnings};
use crate::report::kinds::alerts::past_questions;
use crate::report::kinds::managed::past_changes;
use crate::report::kinds::programs::past_transitions;
use crate::report::summary::Done;
use crate::report::{Entry, Hidden, kinds, names, resource, run_id};
use crate::selection::{Evaluate as _, States};

/// Most runs that are searched for a resource that no longer exists.
pub(crate) const MOST_SEARCHED: u32 = 10_000;

/// Returns the runs of a resource that no longer exists: those in `runs` with the typed name.
///
/// # Errors
/// `refusal`, if there are none.
pub(crate) fn runs_of_removed(
    runs: Vec<HistoryRow>,
    typed: Option<&str>,
    refusal: Problem,
) -> Result<Vec<HistoryRow>, Problem> {
    let typed = typed.unwrap_or_default();
    let is_it = |run: &HistoryRow| {
        let name = run.key.name.as_str();
        name.eq_ignore_ascii_case(typed) || run.key.to_string().eq_ignore_ascii_case(typed)
    };
    let found: Vec<HistoryRow> = runs.into_iter().filter(is_it).collect();
    if found.is_empty() { Err(refusal) } else { Ok(found) }
}

/// One reading of the catalog, from which documents are made.
pub(crate) struct Reading<'a> {
    project: &'a Project,
    entries: &'a [Entry],
}

/// The content that `show` has for a resource.
pub(crate) enum Subject {
    /// The first rows of an output.
    Rows {
        /// The SQL statement that reads the rows.
        sql: String,
        /// The resource with this output.
        about: Box<ResourceDocument>,
        /// The resource's spec and state, if it is a source; none for others.
        source: Option<Source>,
    },
    /// A resource without rows, with its spec and state.
    Resource(Box<ShowDocument>),
}

impl<'a> Reading<'a> {
    /// Returns a reading of a project's resources.
    pub(crate) fn new(project: &'a Project, entries: &'a [Entry]) -> Self {
        Self { project, entries }
    }

    /// Returns the state of resources: of those named, those selected, or all.
    ///
    /// # Errors
    /// When a name is unknown or means several, or nothing is selected.
    pub(crate) fn status(
        &self,
        typed: &[String],
        selection: &Selection,
        hidden: Hidden,
    ) -> Result<RunDocument, Problem> {
        if let Some(chosen) = selection.among(self.entries, States::Known)? {
            let findings = document::findings(self.entries);
            let keep = |row: &Row| chosen.contains(&row.uid);
            return Ok(self.account(Command::Status, findings, hidden, Some(&chosen), keep));
        }
        let found: Result<Vec<&Entry>, Problem> = typed
            .iter()
            .map(|name| names::resolve(self.entries, name))
            .collect();
        let named: Vec<_> = found?.into_iter().map(|entry| entry.row.uid).collect();
        // Who is asked for by name is shown, hidden or not.
        let hidden = if named.is_empty() { hidden } else { Hidden::Show };
        let findings = document::findings(self.entries);
        Ok(self.told(Command::Status, findings, hidden, |row| {
            named.is_empty() || named.contains(&row.uid)
        }))
    }

    /// Returns the state of resources for a command that changes nothing.
    pub(crate) fn told(
        &self,
        command: Command,
        findings: Vec<Diagnostic>,
        hidden: Hidden,
        keep: impl Fn(&Row) -> bool,
    ) -> RunDocument {
        self.account(command, findings, hidden, None, keep)
    }

    fn account(
        &self,
        command: Command,
        findings: Vec<Diagnostic>,
        hidden: Hidden,
        selected: Option<&BTreeSet<Uid>>,
        keep: impl Fn(&Row) -> bool,
    ) -> RunDocument {
        let account = Account {
            project: self.project,
            occasion: &Occasion::begin(command),
            entries: self.entries,
            hidden,
            findings,
            done: &Done::default(),
            before: &Declarations::from_entries(self.entries, hidden),
            warnings: Warnings::Said,
            selected,
            stopped: None,
        };
        account.document(keep)
    }

    /// Returns the graph of resources and their refs.
    ///
    /// # Errors
    /// When the name is unknown or means several, or nothing is selected.
    pub(crate) fn graph(
        &self,
        around: Option<&str>,
        selection: &Selection,
        hidden: Hidden,
    ) -> Result<GraphDocument, Problem> {
        let around = around
            .map(|name| names::resolve(self.entries, name))
            .transpose()?;
        let about = match (around, selection.among(self.entries, States::Known)?) {
            (Some(entry), _) => About::Around(&entry.row),
            (None, Some(chosen)) => About::Only(chosen),
            (None, None) => About::All,
        };
        Ok(document::graph(self.entries, hidden, &about))
    }

    /// Returns the statement for a resource's rows, or its document if it has none.
    ///
    /// # Errors
    /// When the name is unknown or means several.
    pub(crate) fn show(&self, typed: &str) -> Result<Subject, Problem> {
        let entry = names::resolve_model(self.entries, typed)?;
        let shown = document::show(self.entries, &entry.row);
        if let (Some(table), Some(shown)) = (kinds::output(&entry.row), &shown) {
            return Ok(Subject::Rows {
                sql: format!("SELECT * FROM {}", ENGINE.name(&table)),
                about: Box::new(shown.resource.clone()),
                source: kinds::source(&entry.row),
            });
        }
        shown
            .map(|shown| Subject::Resource(Box::new(shown)))
            .ok_or_else(|| Problem::new(Code::WrongState, format!("there is nothing to show of `{typed}`")))
    }

    /// Returns past runs and transitions, of all resources or of a typed one, up to a limit for both together.
    pub(crate) fn history(
        &self,
        mut runs: Vec<HistoryRow>,
        request: &HistoryRequest,
    ) -> Result<HistoryDocument, Problem> {
        let span = Span::read(request)?;
        let chosen = request.selection.among(self.entries, States::Known)?;
        let is_chosen = |uid: &Uid| chosen.as_ref().is_none_or(|chosen| chosen.contains(uid));
        runs.retain(|run| {
            is_chosen(&run.uid)
                && span.has(Time::from_millis(run.started_at.0))
                && (request.outcomes.is_empty()
                    || request
                        .outcomes
                        .contains(&resource::outcome(run.result, run.error.as_deref())))
        });
        let mut transitions = match request.outcomes.is_empty() {
            true => self.transitions(request.name.as_deref()),
            // A transition has no outcome.
            false => Vec::new(),
        };
        let names: Option<BTreeSet<ResourceName>> = chosen.as_ref().map(|chosen| {
            let rows = self.entries.iter().map(|entry| &entry.row);
            let chosen = rows.filter(|row| chosen.contains(&row.uid));
            chosen
                .map(|row| ResourceName::new(row.kind.as_str(), row.name.as_str()))
                .collect()
        });
        transitions.retain(|past| {
            span.has(past.at) && names.as_ref().is_none_or(|names| names.contains(&past.resource))
        });
        runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.ended_at)));
        // Each is in the order in which it was told, so of one time the later stands first.
        transitions.reverse();
        transitions.sort_by_key(|transition| std::cmp::Reverse(transition.at));
        let page = span.page(
            &runs,
            &transitions,
            usize::try_from(request.limit).unwrap_or(usize::MAX),
        );
        let runs = runs[page.runs].iter().map(history_run).collect();
        let transitions = transitions[page.transitions].to_vec();
        Ok(HistoryDocument {
            next: page.next,
            ..document::history(self.project, runs, transitions)
        })
    }

    /// Returns what is kept of transitions: of all resources, or of the one that was typed.
    fn transitions(&self, typed: Option<&str>) -> Vec<HistoryTransition> {
        let of = match typed.map(|name| names::resolve(self.entries, name)) {
            None => None,
            Some(Ok(entry)) => Some(&*entry.row),
            // It is not there any more, and took its transitions with it.
            Some(Err(_)) => return Vec::new(),
        };
        let mut past = past_transitions(self.entries, of);
        past.extend(past_changes(self.entries, of));
        past.extend(past_questions(self.entries, of));
        past
    }
}

fn history_run(run: &HistoryRow) -> HistoryRun {
    let started_at = Time::from_millis(run.started_at.0);
    let outcome = resource::outcome(run.result, run.error.as_deref());
    HistoryRun {
        id: run
            .invocation
            .map_or_else(|| "forced".to_owned(), |id| run_id(run.epoch.0, id.0)),
        resource: ResourceName::new(run.key.kind.as_str(), run.key.name.as_str()),
        reason: resource::reason_of(run.reason.trigger),
        cause: resource::cause(&run.reason),
        chain: resource::chain(&run.reason, &run.key),
        started_at,
        duration_ms: Time::from_millis(run.ended_at.0).since_ms(started_at),
        outcome,
        work: resource::work(run.result, run.error.as_deref()),
        error: run.error.as_deref().map(resource::failure),
        repeats: run.repeats.map(|repeats| Repeats {
            runs: repeats.runs,
            since: Time::from_millis(repeats.since.0),
        }),
    }
}
