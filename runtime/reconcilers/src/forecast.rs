//! Forecasts: the work that a run would do for each resource, and the reason, computed without changing anything.
//!
//! It is made of the parts that a run is made of: the batch of a parse ([`crate::project_parser`]), applied to a copy of the
//! catalog's rows, and the decision about each model, in the order of what they read. An output that would be built gets
//! a build id that nobody has, so that what reads it is built too.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use watershed_compilers::sql::names_in;
use watershed_core::{Batch, Change, Error, ErrorKind, Key, Name, RefView, Row, Target, Uid};
use watershed_outputs::{
    selection::{Candidate, Chosen},
    traces::Made,
};
use watershed_proto::{Message, MigrationState, ModelSpec, ModelState};

pub use crate::model::forecast::View;

use crate::{
    migration,
    model::{
        self, failure,
        fit::Fit,
        forecast::{Foreseen, Sky, foresee},
        plan::{Again, BuildReason, Decision},
        record::BuildId,
    },
    project_parser,
};

/// The forecast for one resource.
#[derive(Debug, Clone)]
pub struct Step {
    /// The resource after the run; a deleted resource is shown as it is now.
    pub row: Arc<Row>,
    /// The resource as it is now; none if it is new.
    pub before: Option<Arc<Row>>,
    /// The edit that the files make, if any.
    pub edit: Option<EditKind>,
    /// The work that the run does for the resource.
    pub work: PlannedWork,
    /// The reason for the work, in words.
    pub reason: Option<String>,
    /// The time that the last build took, in milliseconds; none if unknown.
    pub took_ms: Option<u64>,
}

/// The sort of edit that files make to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKind {
    /// The resource is new.
    Created,
    /// The spec of the resource changed.
    Edited,
    /// The name of the resource changed, and perhaps the spec.
    Renamed,
    /// The files of the resource are gone.
    Deleted,
}

/// The work that a run does for a resource.
#[derive(Debug, Clone)]
pub enum PlannedWork {
    /// A view, or all rows of a table, are built.
    Build,
    /// The table is restored from the trash.
    Restore,
    /// New rows are added to a table.
    Add,
    /// A view is created again, as an object that it names has changed.
    MakeAgain,
    /// The output is renamed together with its model.
    Rename,
    /// The output is dropped.
    Drop,
    /// The resource is reconciled without building anything: tested, checked or run.
    Check,
    /// The resource fails before any work is done.
    Fail(Error),
    /// No work is done.
    Nothing,
}

/// Returns the forecast of a run in dependency order, with deleted resources at the end. Resources that are not
/// `chosen` are not built.
///
/// # Errors
/// When the engine's cancel token ends it.
pub async fn forecast(
    parsed: project_parser::Foreseen,
    rows: &[Arc<Row>],
    view: &View<'_>,
    chosen: &Chosen,
) -> Result<Vec<Step>, Error> {
    let made = Made::default();
    made.begin_with(
        parsed
            .sessions
            .iter()
            .filter(|(session, _)| !session.optional)
            .map(|(session, version)| (session.connector.as_str(), *version)),
    );
    for row in rows.iter().filter(|row| row.kind.as_str() == migration::KIND) {
        if let Some(state) = row
            .state
            .as_deref()
            .and_then(|state| MigrationState::decode(state).ok())
        {
            made.learn(row.uid.0, &state);
        }
    }
    let mut sky = Sky::new(view, &made, chosen);
    let mut after = After::new(rows, &parsed.batch);
    chosen.choose(after.candidates());
    after.run_again = after.migrations_that_run(chosen);
    sky.owners = after.by_key.values().copied().collect();
    let mut steps = Vec::new();
    for uid in after.parents_first() {
        let step = after.step(uid, &sky).await;
        if view.cancel.is_cancelled() {
            return Err(failure::cancelled());
        }
        steps.extend(step);
    }
    steps.extend(after.gone());
    Ok(steps)
}

/// Returns true if an error means that a model is not built because of a failed ref. The output is renamed even so.
fn waits(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Dependency(_)) && error.code.as_ref() == failure::REF_FAILED
}

fn renamed_and_waits(refs: &[RefView]) -> String {
    let failed = refs.iter().find(|view| view.failed);
    match failed.map(|view| &view.reference.name) {
        Some(name) => format!("its file has another name; it is not built, because `{name}` fails"),
        None => "its file has another name; it is not built".to_owned(),
    }
}

/// The catalog as applying a parse would leave it.
struct After<'a> {
    before: HashMap<Uid, &'a Arc<Row>>,
    rows: BTreeMap<Uid, Arc<Row>>,
    by_key: HashMap<Key, Uid>,
    edits: HashMap<Uid, EditKind>,
    failed: BTreeSet<Uid>,
    /// Resources whose run changes their output or result.
    changed: BTreeSet<Uid>,
    /// Migrations that are run, whose effects are not known beforehand.
    run_again: BTreeSet<Uid>,
}

impl<'a> After<'a> {
    fn new(rows: &'a [Arc<Row>], batch: &Batch) -> Self {
        let live = rows.iter().filter(|row| !row.intents.is_deleted());
        let before: HashMap<Uid, &Arc<Row>> = live.map(|row| (row.uid, row)).collect();
        let mut after = Self {
            rows: before.iter().map(|(uid, row)| (*uid, Arc::clone(row))).collect(),
            before,
            by_key: HashMap::new(),
            edits: HashMap::new(),
            failed: BTreeSet::new(),
            changed: BTreeSet::new(),
            run_again: BTreeSet::new(),
        };
        let uids: HashMap<Key, Uid> = after.rows.values().map(|row| (row.key(), row.uid)).collect();
        for edit in &batch.edits {
            let uid = match &edit.target {
                Target::Uid(uid) => Some(*uid),
                Target::Key(key) => uids.get(key).copied(),
                // A parse names its resources in full.
                Target::Name(_) => None,
            };
            after.edit(uid, &edit.change);
        }
        let live = after.rows.values();
        let live = live.filter(|row| after.edits.get(&row.uid) != Some(&EditKind::Deleted));
        after.by_key = live.map(|row| (row.key(), row.uid)).collect();
        after
    }

    fn edit(&mut self, uid: Option<Uid>, change: &Change) {
        let uid = match (change, uid) {
            (Change::Create(new), _) | (Change::Apply(new), None) => new.uid,
            (_, Some(uid)) => uid,
            (_, None) => return,
        };
        match change {
            Change::Create(new) | Change::Apply(new) => {
                let before = self.rows.get(&uid).map(|row| Row::clone(row));
                let kind = match before {
                    Some(_) => EditKind::Edited,
                    None => EditKind::Created,
                };
                let row = Row {
                    refs: Arc::clone(&new.refs),
                    paths: Arc::clone(&new.paths),
                    labels: Arc::clone(&new.labels),
                    spec: Arc::clone(&new.spec),
                    spec_format: new.spec_format,
                    hidden: new.hidden,
                    ..before.unwrap_or_else(|| Row::new(uid, new.kind.clone(), new.name.clone()))
                };
                self.edits.insert(uid, kind);
                self.rows.insert(uid, Arc::new(row));
            }
            Change::Update(update) => {
                let Some(row) = self.rows.get_mut(&uid).map(Arc::make_mut) else {
                    return;
                };
                if let Some((spec, _)) = &update.spec {
                    row.spec = Arc::clone(spec);
                }
                if let Some(refs) = &update.refs {
                    row.refs = Arc::clone(refs);
                }
                if let Some(paths) = &update.paths {
                    row.paths = Arc::clone(paths);
                }
                if let Some(labels) = &update.labels {
                    row.labels = Arc::clone(labels);
                }
                if update.spec.is_some() {
                    self.edits.entry(uid).or_insert(EditKind::Edited);
                }
            }
            Change::Rename(name) => {
                if let Some(row) = self.rows.get_mut(&uid).map(Arc::make_mut) {
                    row.name = Name::clone(name);
                    self.edits.insert(uid, EditKind::Renamed);
                }
            }
            Change::Delete | Change::ForceDelete => {
                self.edits.insert(uid, EditKind::Deleted);
            }
        }
    }

    /// Returns the resources that the files declare, as candidates for the selection.
    fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        let live = self.by_key.values().filter_map(|uid| self.rows.get(uid));
        let listed = live.filter(|row| !row.hidden);
        listed.map(|row| {
            let candidate = Candidate::from(&**row);
            let is_modified = candidate.is_modified || self.edits.contains_key(&row.uid);
            Candidate {
                is_modified,
                ..candidate
            }
        })
    }

    fn migrations_that_run(&self, chosen: &Chosen) -> BTreeSet<Uid> {
        let edited = self
            .edits
            .iter()
            .filter(|(_, edit)| matches!(edit, EditKind::Created | EditKind::Edited | EditKind::Deleted));
        let rows = edited.filter_map(|(uid, _)| self.rows.get(uid));
        let migrations = rows.filter(|row| row.kind.as_str() == migration::KIND && chosen.holds(row.uid));
        migrations.map(|row| row.uid).collect()
    }

    /// Returns all remaining resources, each after those that it reads; members of cycles come last.
    fn parents_first(&self) -> Vec<Uid> {
        let mut waits: BTreeMap<Uid, usize> = BTreeMap::new();
        let mut readers: HashMap<Uid, Vec<Uid>> = HashMap::new();
        for (key, uid) in &self.by_key {
            let parents = self.rows.get(uid).map(|row| row.refs.clone()).unwrap_or_default();
            let parents = parents
                .iter()
                .map(watershed_core::Ref::key)
                .filter(|to| to != key);
            let parents: BTreeSet<Uid> = parents.filter_map(|to| self.by_key.get(&to).copied()).collect();
            waits.insert(*uid, parents.len());
            for parent in parents {
                readers.entry(parent).or_default().push(*uid);
            }
        }
        let ready = waits.iter().filter(|(_, count)| **count == 0);
        let mut ready: VecDeque<Uid> = self.by_name(ready.map(|(uid, _)| *uid).collect()).into();
        let mut sorted = Vec::with_capacity(waits.len());
        while let Some(uid) = ready.pop_front() {
            waits.remove(&uid);
            sorted.push(uid);
            let mut next = Vec::new();
            for reader in readers.remove(&uid).unwrap_or_default() {
                if let Some(count) = waits.get_mut(&reader) {
                    *count -= 1;
                    if *count == 0 {
                        next.push(reader);
                    }
                }
            }
            ready.extend(self.by_name(next));
        }
        sorted.extend(self.by_name(waits.into_keys().collect()));
        sorted
    }

    fn by_name(&self, mut uids: Vec<Uid>) -> Vec<Uid> {
        uids.sort_by_key(|uid| self.rows.get(uid).map(|row| row.key()));
        uids
    }

    async fn step(&mut self, uid: Uid, sky: &Sky<'_>) -> Option<Step> {
        let row = Arc::clone(self.rows.get(&uid)?);
        let edit = self.edits.get(&uid).copied();
        let refs = self.refs(&row);
        let (work, reason, took_ms) = match row.kind.as_str() {
            project_parser::KIND => return None,
            _ if !sky.chosen.holds(uid) => self.passed_over(&row, &refs, edit, sky).await,
            model::KIND => match self.lost_input(uid) {
                Some(error) => (PlannedWork::Fail(error), None, None),
                None => self.model(&row, &refs, edit, sky).await,
            },
            _ => self.other(&row, &refs, edit),
        };
        match &work {
            PlannedWork::Fail(_) => drop(self.failed.insert(uid)),
            // One that is renamed and then not built has failed already.
            PlannedWork::Rename if self.failed.contains(&uid) => {}
            PlannedWork::Nothing => {}
            _ => drop(self.changed.insert(uid)),
        }
        Some(Step {
            before: self.before.get(&uid).map(|row| Arc::clone(row)),
            row,
            edit,
            work,
            reason,
            took_ms,
        })
    }

    /// Returns the error of a model whose query is as it was and names an input that this edit removes or renames.
    fn lost_input(&self, uid: Uid) -> Option<Error> {
        let (row, before) = (self.rows.get(&uid)?, self.before.get(&uid)?);
        // Those of a row that nobody edited are shared.
        (!Arc::ptr_eq(&row.refs, &before.refs)).then_some(())?;
        let is_there = |name: &Name| row.refs.iter().any(|to| to.name == *name);
        let lost = || before.refs.iter().filter(|to| !is_there(&to.name));
        lost().next()?;
        let sql = |row: &Row| ModelSpec::decode(row.spec.as_ref()).ok()?.sql;
        let (now, then) = (sql(row)?, sql(before)?);
        if now.text != then.text {
            return None;
        }
        let names = names_in(&now.text);
        let named = |to: &&watershed_core::Ref| names.contains(&to.name.as_str().to_lowercase());
        lost().filter(named).find_map(|to| {
            let gone = self.before.values().find(|row| row.key() == to.key())?;
            let renamed = match self.edits.get(&gone.uid)? {
                EditKind::Renamed => Some(self.rows.get(&gone.uid)?.name.as_str()),
                EditKind::Deleted => None,
                EditKind::Created | EditKind::Edited => return None,
            };
            Some(failure::lost_input(to.name.as_str(), renamed))
        })
    }

    fn refs(&self, row: &Row) -> Vec<RefView> {
        let view = |to: &watershed_core::Ref| {
            let uid = self.by_key.get(&to.key());
            RefView {
                reference: to.clone(),
                target: uid.and_then(|uid| self.rows.get(uid)).cloned(),
                failed: uid.is_some_and(|uid| self.failed.contains(uid)),
            }
        };
        row.refs.iter().map(view).collect()
    }

    async fn model(
        &mut self,
        row: &Arc<Row>,
        refs: &[RefView],
        edit: Option<EditKind>,
        sky: &Sky<'_>,
    ) -> (PlannedWork, Option<String>, Option<u64>) {
        let foreseen = match foresee(sky, row, refs).await {
            Ok(foreseen) => foreseen,
            Err(error) if edit == Some(EditKind::Renamed) && waits(&error) && model::claim(row).is_some() => {
                self.failed.insert(row.uid);
                return (PlannedWork::Rename, Some(renamed_and_waits(refs)), None);
            }
            Err(error) => return (PlannedWork::Fail(error), None, None),
        };
        let Foreseen {
            decision,
            state,
            writes,
            restored,
            took_ms,
            spec,
            failed,
            has_other_tests,
        } = foreseen;
        let mut after = Row::clone(row);
        after.state = Some(state.encode_to_vec().into());
        self.rows.insert(row.uid, Arc::new(after));
        let input = |ordinal: usize| {
            let name = spec.inputs.get(ordinal);
            name.map_or_else(|| "what it reads".to_owned(), |name| format!("`{name}`"))
        };
        let why = |reason: &BuildReason| match reason {
            BuildReason::InputChanged(ordinal) => format!("{} is built", input(*ordinal)),
            other => other.to_string(),
        };
        let behind = sky.made.behind(&spec.uses);
        if decision == Decision::Nothing && behind.iter().any(|uid| self.run_again.contains(&Uid(*uid))) {
            let reason = "a migration that is run makes what it reads".to_owned();
            self.blur(row);
            return (PlannedWork::Build, Some(reason), took_ms);
        }
        let (work, reason) = match decision {
            Decision::Build(reason) => {
                let why = why(&reason);
                match restored {
                    None => (PlannedWork::Build, Some(why)),
                    Some(Fit::Same) => (PlannedWork::Restore, Some(format!("{why}; the trash has it"))),
                    Some(Fit::Base) => (
                        PlannedWork::Add,
                        Some(format!("{why}; the trash has its earlier rows")),
                    ),
                }
            }
            Decision::Add(reason) => (PlannedWork::Add, Some(why(&reason))),
            Decision::MakeViewAgain(Again::InputRenamed) => (
                PlannedWork::MakeAgain,
                Some("what it reads has another name".to_owned()),
            ),
            Decision::MakeViewAgain(Again::InputReplaced(ordinal)) => (
                PlannedWork::MakeAgain,
                Some(format!("{} is built, and has another name", input(ordinal))),
            ),
            Decision::MakeViewAgain(Again::InputChanged(ordinal)) => (
                PlannedWork::MakeAgain,
                Some(format!("{} is built, and may have other columns", input(ordinal))),
            ),
            Decision::Follow(ordinal) => (
                PlannedWork::Check,
                Some(format!("{} has other rows", input(ordinal))),
            ),
            Decision::MakeViewAgain(Again::MadeChanged) => {
                let reason = "what a migration made, which it reads, is another".to_owned();
                (PlannedWork::MakeAgain, Some(reason))
            }
            Decision::Rename { from } => (PlannedWork::Rename, Some(format!("its table is called `{from}`"))),
            Decision::Adopt | Decision::Accept => {
                (PlannedWork::Check, Some("its definition is another".to_owned()))
            }
            Decision::Hold(reason) => (
                PlannedWork::Fail(failure::held_edit(row.name.as_str(), &reason)),
                None,
            ),
            // Only a run asks stores.
            Decision::Nothing | Decision::Unchanged => match writes {
                Some(path) => (
                    PlannedWork::Build,
                    Some(format!("its rows are written to `{path}`")),
                ),
                None if has_other_tests => (
                    PlannedWork::Check,
                    Some("its tests are others, or have failed".to_owned()),
                ),
                None => (PlannedWork::Nothing, None),
            },
        };
        let Some(failed) = failed else {
            return (work, reason, took_ms);
        };
        self.failed.insert(row.uid);
        let reason = reason.unwrap_or_default();
        let reason = format!(
            "{reason}; from the last good rows of `{}`, which fails",
            failed.name
        );
        (work, Some(reason), took_ms)
    }

    /// Returns the work for a resource that is not selected: only names of outputs are followed.
    async fn passed_over(
        &mut self,
        row: &Arc<Row>,
        refs: &[RefView],
        edit: Option<EditKind>,
        sky: &Sky<'_>,
    ) -> (PlannedWork, Option<String>, Option<u64>) {
        let state = row
            .state
            .as_deref()
            .and_then(|state| ModelState::decode(state).ok());
        let (Some(state), true) = (state, model::claim(row).is_some()) else {
            return (PlannedWork::Nothing, None, None);
        };
        let Ok(foreseen) = foresee(sky, row, refs).await else {
            return (PlannedWork::Nothing, None, None);
        };
        let (work, reason) = match (foreseen.decision, edit) {
            (Decision::MakeViewAgain(Again::InputRenamed | Again::InputReplaced(_)), _) => {
                (PlannedWork::MakeAgain, "what it reads has another name")
            }
            (_, Some(EditKind::Renamed)) => (PlannedWork::Rename, "its file has another name"),
            _ => return (PlannedWork::Nothing, None, None),
        };
        let named = ModelState {
            result_table: foreseen.state.result_table,
            ..state
        };
        let mut after = Row::clone(row);
        after.state = Some(named.encode_to_vec().into());
        self.rows.insert(row.uid, Arc::new(after));
        (work, Some(reason.to_owned()), None)
    }

    /// Gives a model's output another build, so that its dependents are built too.
    fn blur(&mut self, row: &Row) {
        let Some(row) = self.rows.get_mut(&row.uid).map(Arc::make_mut) else {
            return;
        };
        let state = row
            .state
            .as_deref()
            .and_then(|state| ModelState::decode(state).ok());
        if let Some(state) = state {
            let build_id = BuildId::fresh().to_string();
            let state = ModelState { build_id, ..state };
            row.state = Some(state.encode_to_vec().into());
        }
    }

    /// Returns the work for a resource other than a model: reconciled if the resource or a ref changes.
    fn other(
        &self,
        row: &Row,
        refs: &[RefView],
        edit: Option<EditKind>,
    ) -> (PlannedWork, Option<String>, Option<u64>) {
        let failed = refs.iter().find(|view| view.failed || view.target.is_none());
        if let Some(view) = failed {
            let error = match &view.target {
                None => failure::missing_ref(&view.reference),
                Some(_) => failure::unchecked_ref(&view.reference),
            };
            return (PlannedWork::Fail(error), None, None);
        }
        let why = match edit {
            Some(EditKind::Created) => Some("it is new"),
            Some(EditKind::Edited) => Some("its definition changed"),
            Some(EditKind::Renamed) => Some("it has another name"),
            Some(EditKind::Deleted) | None => None,
        };
        let parent = refs
            .iter()
            .filter_map(|view| view.target.as_ref())
            .find(|target| self.changed.contains(&target.uid));
        match (why, parent) {
            (Some(why), _) if self.run_again.contains(&row.uid) => {
                (PlannedWork::Build, Some(why.to_owned()), None)
            }
            (Some(why), _) => (PlannedWork::Check, Some(why.to_owned()), None),
            (None, Some(parent)) => {
                let reason = format!("`{}` is another", parent.name);
                (PlannedWork::Check, Some(reason), None)
            }
            (None, None) if row.error.is_some() => {
                (PlannedWork::Check, Some("it has failed".to_owned()), None)
            }
            (None, None) => (PlannedWork::Nothing, None, None),
        }
    }

    /// Returns the forecast for resources whose files are gone.
    fn gone(&self) -> Vec<Step> {
        let deleted = self.edits.iter().filter(|(_, edit)| **edit == EditKind::Deleted);
        let rows = self.by_name(deleted.map(|(uid, _)| *uid).collect()).into_iter();
        let step = |uid: Uid| {
            let row = self.before.get(&uid)?;
            let has_output = model::claim(row).is_some();
            Some(Step {
                row: Arc::clone(row),
                before: Some(Arc::clone(row)),
                edit: Some(EditKind::Deleted),
                work: if has_output {
                    PlannedWork::Drop
                } else {
                    PlannedWork::Nothing
                },
                reason: Some("its file is gone".to_owned()),
                took_ms: None,
            })
        };
        rows.filter_map(step).collect()
    }
}
