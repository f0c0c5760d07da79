//! Convergence of an instance for one command, with its events.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use watershed_api::documents::{Command, Event, Outcome, RunDocument, Time};
use watershed_api::request::{Events, RunRequest};
use watershed_api::{Code, Exit, Problem};
use watershed_controller::resource::{Settled, Stage, Target};
use watershed_controller::{Key, Refresh, Resource, Select, Uid, WaitError};
use watershed_reconcilers::model::rest;
use watershed_reconcilers::project_parser;

use super::observer::Observer;
use super::order::{parents_first, with_below};
use super::progress::Progress;
use super::settle::{Halt, UNTIL_DONE, settle};
use super::sharing::Holder;
use super::stop::{Control, asked};
use super::wish::Wish;
use super::workloads::wait_for_more;
use super::{Instance, approve, partitions, refresh, retry};
use crate::kept::Moment;
use crate::out::Out;
use crate::report::difference::Declarations;
use crate::report::document::{Account, Occasion, Warnings, findings};
use crate::report::kinds::PROJECT_PARSER;
use crate::report::problems::{ReportedProblems, problems};
use crate::report::{Entry, Hidden, names};
use crate::selection::{Evaluate as _, States};

/// The time that cancelled work has to return before a shutdown proceeds without it.
const GRACE: Duration = Duration::from_secs(10);

/// A running command: the state at its beginning, and everything that it has seen since.
pub(super) struct Course<'a> {
    pub(super) occasion: Occasion,
    pub(super) observer: Observer,
    pub(super) declared: Declarations,
    pub(super) holder: Holder,
    run: &'a RunRequest,
    control: &'a Control,
    out: &'a Out,
    /// The resources that the command applies to; none if it applies to all.
    selected: Option<BTreeSet<Uid>>,
    /// The problems that were reported.
    pub(super) told: ReportedProblems,
}

impl Course<'_> {
    /// Reports the problems found since the last call, each once.
    pub(super) async fn tell_problems(&mut self) {
        let problems = self.observer.take_problems();
        // Which of them count is known at the end.
        if self.is_for_some() {
            return;
        }
        for problem in problems {
            if let Some(diagnostic) = self.told.news(problem) {
                self.tell(Event::Diagnostic { diagnostic }).await;
            }
        }
    }

    fn is_for_some(&self) -> bool {
        self.occasion.command == Command::Run && !self.run.selection.is_empty()
    }

    /// Reports the process for which the work waits.
    pub(super) async fn wait_for(&self, holder: String) {
        self.out.waiting(holder).await;
    }

    pub(super) async fn tell(&self, event: Event) {
        if self.run.events == Events::All || is_for_people(&event) {
            self.out.event(event).await;
        }
    }

    pub(super) fn hidden(&self) -> Hidden {
        Hidden::unless(self.run.all)
    }

    /// Returns the exit code of a command that was stopped; none if it ended by itself.
    fn stopped(&self, ended: Ended) -> Option<Exit> {
        match (self.control, ended) {
            // Where nobody asked for it, the controller gave up by itself: its store failed.
            (Control::Own(stop), Ended::Stopped) => stop.exit().or(Some(Exit::NotNow)),
            (Control::Foreign, Ended::Stopped) => Some(Exit::NotNow),
            _ => None,
        }
    }
}

impl Instance {
    /// Waits until what the files declare is in the catalog, at most for a time: before that an answer about a project that
    /// was just opened has nothing, or what was declared when the project was last open.
    pub async fn wait_until_read(&self, longest: Duration) {
        let parser = Key::new(project_parser::KIND, project_parser::NAME);
        let is_read = |found: Option<&Resource>| {
            found.is_some_and(|found| matches!(found.status.stage, Stage::Settled(_)))
        };
        // A controller that ends meanwhile answers for itself.
        let _ = self.controller().wait_until(parser, is_read, longest).await;
    }

    /// Carries out the work of a command, reports its events, and sends the result document.
    ///
    /// # Errors
    /// When a name that was wished for is unknown or means several.
    pub(crate) async fn converge(
        &self,
        command: Command,
        wish: Wish,
        run: &RunRequest,
        control: &Control,
        out: &Out,
    ) -> Result<RunDocument, Problem> {
        let mut course = self.begin(command, run, control, out).await;
        let ended = self.follow(wish, &mut course).await?;
        let document = self.conclude(&mut course, ended).await;
        if matches!(control, Control::Foreign) && ended == Ended::Stopped {
            return Err(
                Problem::new(Code::Stopping, "the process that did the work was stopped")
                    .hint("run the command again"),
            );
        }
        let diagnostics = match course.is_for_some() {
            true => problems(&document),
            false => document.diagnostics.clone(),
        };
        for diagnostic in diagnostics {
            if !course.told.holds(&diagnostic) {
                course.tell(Event::Diagnostic { diagnostic }).await;
            }
        }
        if command == Command::Run && !course.is_for_some() {
            self.note_success(document.exit_code);
        }
        self.finish(&course, &document).await;
        Ok(document)
    }

    /// Begins to observe the controller for a command.
    pub(super) async fn begin<'a>(
        &self,
        command: Command,
        run: &'a RunRequest,
        control: &'a Control,
        out: &'a Out,
    ) -> Course<'a> {
        let occasion = Occasion::begin(command);
        let hidden = Hidden::unless(run.all);
        let (before, revision) = match control {
            Control::Own(_) => (self.found.entries.clone(), self.found.revision),
            Control::Foreign => {
                let listing = self.controller.list(watershed_controller::Select::all());
                let entries = listing.resources.into_iter().map(Entry::from);
                (entries.collect(), listing.revision)
            }
        };
        let course = Course {
            observer: Observer::new(self.controller.handle(), &before, revision, hidden),
            declared: Declarations::from_entries(&before, hidden),
            holder: Holder::from_engine(&*self.engine),
            occasion,
            run,
            control,
            out,
            selected: None,
            told: ReportedProblems::default(),
        };
        course.tell(self.started(&course.occasion)).await;
        course
    }

    /// Returns the result of a command after its last events were reported.
    pub(super) async fn conclude(&self, course: &mut Course<'_>, ended: Ended) -> RunDocument {
        if ended != Ended::Idle && matches!(course.control, Control::Own(_)) {
            // The document tells what was stopped, so the stop comes first.
            self.workloads.leave();
            if let Err(error) = self.controller.shutdown(GRACE).await {
                tracing::warn!(%error, "not everything stopped in order");
            }
        }
        for event in course.observer.rest().await {
            course.tell(event).await;
        }
        course.tell_problems().await;
        if course.is_for_some() && course.selected.is_none() {
            // It was stopped before all was done.
            course.selected = self.choice.made().ok().flatten();
        }
        self.document(course, ended)
    }

    /// Returns the document of a command: the state of the project, and the work done.
    pub(super) fn document(&self, course: &Course<'_>, ended: Ended) -> RunDocument {
        let entries = self.entries();
        let account = Account {
            project: &self.project,
            occasion: &course.occasion,
            findings: findings(&entries),
            entries: &entries,
            hidden: course.hidden(),
            done: course.observer.done(),
            before: &course.declared,
            warnings: if course.run.warn_error {
                Warnings::AreErrors
            } else {
                Warnings::Said
            },
            selected: course.selected.as_ref(),
            stopped: course.stopped(ended),
        };
        account.document(|_| true)
    }

    /// Reports the last event of a command.
    pub(super) async fn finish(&self, course: &Course<'_>, document: &RunDocument) {
        // A person gets the document alone: two copies of it are long.
        if course.run.events == Events::All {
            let finished = Event::RunFinished {
                at: Time::now(),
                document: Box::new(document.clone()),
            };
            course.tell(finished).await;
        }
    }

    /// Stores the time of a successful convergence of the whole project.
    pub(super) fn note_success(&self, exit_code: u8) {
        if exit_code == Exit::Converged.code() {
            Moment::Success.note(&self.state.path(), Time::now());
        }
    }

    fn started(&self, occasion: &Occasion) -> Event {
        Event::RunStarted {
            at: occasion.started_at,
            schema: Event::SCHEMA.to_owned(),
            run_id: occasion.run_id.clone(),
            command: occasion.command,
            project: self.project.name.clone(),
            root: self.project.root.display().to_string(),
            environment: self.project.environment.clone(),
        }
    }

    /// Reports events until everything has settled or something ends the run.
    pub(super) async fn follow(&self, wish: Wish, course: &mut Course<'_>) -> Result<Ended, Problem> {
        let settled = self.carry_out(
            wish,
            course.occasion.started_at,
            course.occasion.command,
            course.control,
            course.run.goes_on_since,
        );
        tokio::pin!(settled);
        let mut progress = Progress::new(course.run.progress);
        loop {
            // Every arm is cancel-safe: the wish is pinned outside of the loop, the observer keeps its place.
            let events = tokio::select! {
                biased;
                () = asked(course.control) => return Ok(Ended::Stopped),
                holder = course.holder.next() => {
                    course.wait_for(holder).await;
                    continue;
                }
                events = course.observer.next() => events,
                () = progress.due() => {
                    // It is worth nothing to a reader who is behind.
                    course.out.activity(course.observer.activity());
                    progress.told();
                    continue;
                }
                result = &mut settled => return match result {
                    Ok(selected) => {
                        course.selected = selected;
                        Ok(Ended::Idle)
                    }
                    Err(Halt::Ended) => Ok(Ended::Stopped),
                    Err(Halt::Refused(refusal)) => Err(refusal),
                },
            };
            let Some(events) = events else {
                return Ok(Ended::Stopped);
            };
            let failed = events.iter().any(is_failure);
            for event in events {
                course.tell(event).await;
            }
            course.tell_problems().await;
            progress.changed();
            if failed && course.run.fail_fast {
                return Ok(Ended::Failed);
            }
        }
    }

    /// Carries out the work of a command and returns the resources that a run was for; none if it was for all.
    ///
    /// The work of the start comes first, or a look at the files alone where only some resources are waited for, so
    /// that names are those of the files as they are now.
    ///
    /// A command that ends when all is done waits for retries too; one that stays is not to be held up by them.
    ///
    /// Returns the resources that a run was for, if it was not for all.
    async fn carry_out(
        &self,
        wish: Wish,
        began: Time,
        command: Command,
        control: &Control,
        goes_on_since: Option<Time>,
    ) -> Result<Option<BTreeSet<Uid>>, Halt> {
        let early = refresh::begin_early(self, &wish, control, goes_on_since).await;
        // As they were before this command asked for anything.
        let stored = refresh::stored_requests(&self.found.entries, goes_on_since);
        match (&wish, control) {
            // Whoever asks for some waits for those alone, whatever else the process works on.
            (Wish::Reconcile(_), _) => self.parse().await?,
            _ => self.controller.wait_until_idle(UNTIL_DONE).await?,
        }
        let mut selected = None;
        match wish {
            Wish::Start => selected = self.choice.made()?,
            Wish::Everything => {
                self.choice.chosen.add_all();
                self.parse().await?;
                self.look_at(self.in_doubt()).await?;
            }
            Wish::Selected(selection) => {
                self.parse().await?;
                selected = selection.among(&self.entries(), States::Known)?;
                let chosen = selected.clone().unwrap_or_default();
                self.choice.chosen.add(chosen.iter().copied());
                self.look_at(self.uids(|entry| chosen.contains(&entry.row.uid)))
                    .await?;
            }
            Wish::Reconcile(names) => {
                let uids = self.named(&names)?;
                self.look_at(uids.clone()).await?;
                self.settle_with_below(&uids, began).await?;
                return Ok(selected);
            }
            Wish::Refresh(which, how, reach) => refresh::carry_out(self, &which, how, reach, early).await?,
            // Its choice is stored with its request.
            Wish::Partitions(names, _) if self.are_all_in(&names, &stored)? => {}
            Wish::Partitions(names, choice) => {
                let uids = partitions::ask(&*self.engine, &self.entries(), &names, &choice).await?;
                self.choice.chosen.add(uids.iter().copied());
                let asked = uids
                    .iter()
                    .map(|uid| self.controller.refresh(Target::Uid(*uid), Refresh::Plain));
                settle(join_all(asked).await).await?;
            }
            Wish::Approve(names) => {
                let asked = approve::carry_out(self, &names).await?;
                settle(asked).await?;
            }
            Wish::Retry(names) => retry::carry_out(self, &names, began, &stored).await?,
        }
        self.controller.wait_until_idle(UNTIL_DONE).await?;
        while command != Command::Start && wait_for_more(self, began, &|_| true).await? {
            self.controller.wait_until_idle(UNTIL_DONE).await?;
        }
        Ok(selected)
    }

    /// Runs the project parser again, and waits until all resources that it changes have settled.
    async fn parse(&self) -> Result<(), WaitError> {
        self.look_at_everything();
        self.look_at(self.uids(|entry| entry.row.kind.as_str() == PROJECT_PARSER))
            .await
    }

    /// Waits until these resources and their dependents have settled, with their retries that are due soon, and for
    /// nothing else.
    async fn settle_with_below(&self, uids: &[Uid], began: Time) -> Result<(), Halt> {
        loop {
            let all = Select::all();
            let mut changes = self.controller.watch(self.controller.list(all).revision);
            let entries = self.entries();
            let below = with_below(&entries, uids);
            let is_unsettled = |entry: &Entry| !matches!(entry.status.stage, Stage::Settled(_));
            let waits = entries
                .iter()
                .any(|entry| below.contains(&entry.row.uid) && is_unsettled(entry));
            if waits {
                if changes.next().await.is_none() {
                    return Err(Halt::Ended);
                }
            } else if !wait_for_more(self, began, &|entry| below.contains(&entry.row.uid)).await? {
                return Ok(());
            }
        }
    }

    /// Returns true if all the named resources are among `others`.
    fn are_all_in(&self, typed: &[String], others: &BTreeSet<Uid>) -> Result<bool, Problem> {
        if others.is_empty() {
            return Ok(false);
        }
        Ok(self.named(typed)?.iter().all(|uid| others.contains(uid)))
    }

    /// Returns the named resources, and adds them to the selection so that no run passes them over.
    pub(super) fn named(&self, typed: &[String]) -> Result<Vec<Uid>, Problem> {
        let uids = names::resolve_all(&self.entries(), typed)?;
        self.choice.chosen.add(uids.iter().copied());
        Ok(uids)
    }

    pub(super) fn uids(&self, keep: impl Fn(&Entry) -> bool) -> Vec<Uid> {
        let live = |entry: &&Entry| !entry.row.intents.is_deleted() && keep(entry);
        let entries = self.entries();
        let uids = entries.iter().filter(live).map(|entry| entry.row.uid).collect();
        parents_first(&entries, uids)
    }

    /// Returns the resources whose reconcile could find something changed: most of a large project is left out.
    fn in_doubt(&self) -> Vec<Uid> {
        let are_known = self.outputs.are_known();
        let is_idle =
            |entry: &Entry| entry.status.stage == Stage::Settled(Settled::Idle) && entry.row.error.is_none();
        let rests = |entry: &Entry| are_known && is_idle(entry) && rest::rests(&entry.row, &self.outputs);
        self.uids(|entry| entry.row.kind.as_str() != PROJECT_PARSER && !rests(entry))
    }

    /// Requests a reconcile of resources, and waits until they and their dependents have settled.
    async fn look_at(&self, uids: Vec<Uid>) -> Result<(), WaitError> {
        let asked = uids
            .iter()
            .map(|uid| self.controller.reconcile(Target::Uid(*uid)));
        settle(join_all(asked).await).await
    }
}

/// The reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// Everything has settled.
    Idle,
    /// Something failed, and the command ends at the first failure.
    Failed,
    /// The command was stopped.
    Stopped,
}

/// Returns true if an event is shown to a person who follows a run.
fn is_for_people(event: &Event) -> bool {
    match event {
        Event::ResourceFinished { run, .. } if run.outcome == Outcome::Skipped => true,
        Event::Diagnostic { .. } | Event::Fixed { .. } | Event::Settled { .. } => true,
        _ => event.is_news(),
    }
}

fn is_failure(event: &Event) -> bool {
    matches!(event, Event::ResourceFinished { run, .. } if run.outcome == Outcome::Failed)
}
