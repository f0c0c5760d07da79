//! A play: a script, carried out in a world of its own in simulated time.

use std::sync::Arc;
use std::time::Duration;

use watershed_core::{Batch, Refusal, Row, Timestamp, Uid};

use crate::fault::{Passed, What, Wrong};
use crate::given;
use crate::kit::Kit;
use crate::outside::Outside;
use crate::probe::{Complaint, Control, Then};
use crate::process::{Process, Setting};
use crate::roll::Roll;
use crate::script::{Action, Cut, How, Script, Step};
use crate::story::{Story, text};
use crate::things::{Thing, Things};
use watershed_controller::Message;
use watershed_controller::Reconciler;
use watershed_controller::Select;
use watershed_controller::clock::TokioClock;
use watershed_controller::store::MemoryStore;
use watershed_controller::{EditError, WaitError};

/// Time at which every play begins: the first moment of 2000, in UTC.
const START: Timestamp = Timestamp(946_684_800_000);

/// Simulated time within which everything must come to rest.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum number of attempts at an edit, because a process may die meanwhile.
const TRIES: usize = 4;

/// A world with its processes, and the result that they should reach.
pub(super) struct Play<'a, O: Outside, R: Reconciler> {
    pub(super) kit: &'a Kit<O, R>,
    pub(super) outside: O,
    store: MemoryStore,
    pub(super) clock: TokioClock,
    pub(super) control: Arc<Control>,
    pub(super) process: Option<Process>,
    pub(super) things: Things,
    pub(super) story: Story,
    pub(super) passed: Passed,
    /// True if an invocation never reached the point at which it was to be interrupted.
    pub(super) missed: bool,
}

/// Reason why a wait ended.
enum Stop {
    Rest,
    Point,
}

impl<'a, O: Outside, R: Reconciler> Play<'a, O, R> {
    pub(super) fn new(kit: &'a Kit<O, R>, things: Things, story: Story) -> Self {
        Self {
            kit,
            outside: (kit.fresh)(),
            store: MemoryStore::new(),
            clock: TokioClock::starting_at(START),
            control: Arc::new(Control::default()),
            process: None,
            things,
            story,
            passed: Passed::default(),
            missed: false,
        }
    }

    /// Carries out a script, and checks the result.
    pub(super) async fn run(&mut self, script: &Script) -> Result<(), Wrong> {
        let result = self.carry_out(script).await;
        let counts = self.control.counts();
        self.passed.plays = 1;
        self.passed.steps += counts.polls;
        self.passed.invocations = counts.invocations;
        self.passed.cancelled = counts.cancelled;
        self.passed.dropped = counts.dropped;
        self.close().await;
        result
    }

    /// Ends the play, and drops everything that is left.
    pub(super) async fn close(&mut self) {
        if let Some(process) = self.process.take() {
            process.bury().await;
        }
        self.control.clear();
    }

    async fn carry_out(&mut self, script: &Script) -> Result<(), Wrong> {
        self.begin().await?;
        for step in &script.steps {
            self.step(step).await?;
        }
        self.end().await
    }

    /// Starts a process, which requests every resource.
    pub(super) async fn begin(&mut self) -> Result<(), Wrong> {
        let started = self.started().await?;
        self.process = Some(started);
        Ok(())
    }

    pub(super) async fn started(&self) -> Result<Process, Wrong> {
        let setting = Setting {
            store: &self.store,
            clock: self.clock,
            options: &self.kit.options,
            givens: &self.kit.givens,
            beside: &|builder| (self.kit.beside)(&self.outside, builder),
            control: &self.control,
            cancel_within: self.kit.cancel_within,
        };
        let reconciler = (self.kit.reconciler)(&self.outside);
        let started = Process::start(setting, reconciler).await;
        let started =
            started.map_err(|error| Wrong::new(What::Endless, format!("no controller starts: {error}")))?;
        (self.kit.started)(&self.outside, started.controller.handle());
        Ok(started)
    }

    pub(super) fn process(&self) -> &Process {
        self.process.as_ref().expect("a play has a process until it ends")
    }

    async fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        self.passed.steps += 1;
        if step.trouble {
            self.story.tell(|| "the outside begins to fail".to_owned());
            self.outside.trouble(true);
            self.control.trouble(true);
        }
        let mut cuts = step.cuts.iter();
        let mut next = cuts.next();
        self.arm(next);
        self.act(&step.action).await?;
        while let Stop::Point = self.until_stop().await? {
            let Some(cut) = next else { break };
            next = cuts.next();
            self.cut(cut, next).await?;
        }
        self.missed |= next.is_some() && next == step.cuts.first();
        self.control.arm(None);
        if step.trouble {
            self.outside.trouble(false);
            self.control.trouble(false);
            self.story.tell(|| "the outside works again".to_owned());
        }
        Ok(())
    }

    pub(super) fn arm(&self, cut: Option<&Cut>) {
        let then = |cut: &Cut| match cut.how {
            How::Crash => Then::Die,
            _ => Then::Hold,
        };
        self.control.arm(cut.map(|cut| (cut.at, then(cut))));
    }

    /// Returns true if an invocation reported the failure of the outside.
    pub(super) fn has_complained(&self) -> bool {
        self.control.counts().errors > 0
    }

    pub(super) async fn act(&mut self, action: &Action) -> Result<(), Wrong> {
        match *action {
            Action::Put {
                place,
                seed,
                ref refs,
            } => {
                let keys = self.things.keys(refs);
                self.put(place, seed, keys)?;
            }
            Action::Delete { place } => {
                if let Some(thing) = self.things.places[place].take() {
                    self.story.tell(|| format!("\"{}\" is deleted", thing.name));
                }
            }
            Action::Rename { place, to } => self.rename(place, to),
            Action::Give { given, seed } => self.give(given, seed)?,
            Action::Fail { given } => self.fail(given),
            Action::TakeAway { given } => {
                let uid = self.things.uid();
                let given = &mut self.things.givens[given];
                if given.spec.take().is_some() {
                    given.uid = uid;
                    let key = given.key.clone();
                    self.story
                        .tell(|| format!("\"{key}\", which may be read, is deleted"));
                }
            }
            Action::Ask { place } => return self.ask(place).await,
            Action::Restart => {
                self.story
                    .tell(|| "the process stops in order, and another one starts".to_owned());
                if let Some(process) = self.process.take() {
                    process.stop().await;
                }
                return self.begin().await;
            }
            Action::Wait { seconds } => {
                self.story.tell(|| format!("{seconds} s pass"));
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                return Ok(());
            }
        }
        self.declare().await
    }

    /// Gives a place another spec, creating a resource if the place is empty.
    pub(super) fn put(
        &mut self,
        place: usize,
        seed: u64,
        refs: Vec<watershed_core::Key>,
    ) -> Result<(), Wrong> {
        let name = self.things.name_of(place);
        let spec = (self.kit.spec)(&mut Roll::seeded(seed).of(&name, &refs)).encode();
        let spec: Arc<[u8]> = spec
            .map_err(|error| Wrong::new(What::Fails, error.to_string()))?
            .into();
        let is_new = self.things.places[place].is_none();
        self.story.tell(|| {
            let names: Vec<String> = refs.iter().map(ToString::to_string).collect();
            let reading = if names.is_empty() {
                String::new()
            } else {
                format!(", reading {}", names.join(" and "))
            };
            let verb = if is_new { "is created with" } else { "gets" };
            format!("\"{name}\" {verb} spec {}{reading}", text(&spec))
        });
        let uid = match &self.things.places[place] {
            Some(thing) => thing.uid,
            None => self.things.uid(),
        };
        self.things.places[place] = Some(Thing {
            uid,
            name,
            seed,
            spec,
            refs,
        });
        Ok(())
    }

    fn rename(&mut self, place: usize, to: usize) {
        if self.things.places[place].is_none() {
            return;
        }
        let (from, onto) = (self.things.name_of(place), self.things.name_of(to));
        let onto = if place == to {
            self.things.case_changed(place)
        } else {
            onto
        };
        self.story.tell(|| format!("\"{from}\" is renamed to \"{onto}\""));
        self.things.places.swap(place, to);
        if let Some(thing) = &mut self.things.places[place] {
            if place != to {
                self.story
                    .tell(|| format!("\"{onto}\" is renamed to \"{from}\" with it"));
            }
            thing.name = from;
        }
        if let Some(thing) = &mut self.things.places[to] {
            thing.name = onto;
        }
    }

    pub(super) fn give(&mut self, given: usize, seed: u64) -> Result<(), Wrong> {
        let kind = &self.things.givens[given].key.kind;
        let givens = self.kit.givens.iter().find(|givens| givens.kind == *kind);
        let givens = givens.expect("every given resource is of a given kind");
        let state = (givens.state)(&mut Roll::seeded(seed));
        let state = state.map_err(|error| Wrong::new(What::Fails, error.to_string()))?;
        let given = &mut self.things.givens[given];
        given.seed = seed;
        given.fails = false;
        given.spec = Some(given::wanted(Some(&state)).into());
        let key = given.key.clone();
        self.story
            .tell(|| format!("\"{key}\", which may be read, has state {}", text(&state)));
        Ok(())
    }

    fn fail(&mut self, given: usize) {
        let given = &mut self.things.givens[given];
        if given.spec.is_some() {
            given.fails = true;
            given.spec = Some(given::wanted(None).into());
            let key = given.key.clone();
            self.story.tell(|| format!("\"{key}\", which may be read, fails"));
        }
    }

    async fn ask(&mut self, place: usize) -> Result<(), Wrong> {
        if let Some(thing) = &self.things.places[place] {
            self.story
                .tell(|| format!("a reconcile of \"{}\" is asked for", thing.name));
            // A process that dies meanwhile is seen by whoever waits for rest.
            let _ = self.process().controller.reconcile(thing.uid).await;
        }
        Ok(())
    }

    /// Returns the resources in the catalog that are not being deleted.
    pub(super) fn live(&self) -> Vec<Arc<Row>> {
        let resources = self.process().controller.list(Select::all()).resources;
        let live = resources
            .into_iter()
            .filter(|found| !found.row.intents.is_deleted());
        live.map(|found| found.row).collect()
    }

    /// Edits the catalog into the wanted state; continues in the next process if one dies meanwhile.
    pub(super) async fn declare(&mut self) -> Result<(), Wrong> {
        for _ in 0..TRIES {
            let edits = self.things.edits(&self.live(), R::Spec::FORMAT);
            if edits.is_empty() {
                return Ok(());
            }
            let created: Vec<Option<Uid>> = edits.iter().map(created).collect();
            match self.process().controller.edit(Batch { edits }).await {
                Ok(applied) => {
                    for (asked, got) in created.into_iter().zip(applied.uids) {
                        asked
                            .into_iter()
                            .for_each(|asked| self.things.created(asked, got));
                    }
                    return Ok(());
                }
                Err(EditError::Refused(Refusal::LeaseLost | Refusal::OutcomeUnknown)) => {
                    self.replace().await?;
                }
                Err(error) => return Err(Wrong::new(What::Endless, format!("an edit is refused: {error}"))),
            }
        }
        Err(Wrong::new(What::Endless, "no edit is taken"))
    }

    /// Starts a process in place of one that has died.
    pub(super) async fn replace(&mut self) -> Result<(), Wrong> {
        self.passed.crashes += 1;
        if let Some(process) = self.process.take() {
            process.bury().await;
        }
        self.story.tell(|| "another process starts".to_owned());
        self.begin().await
    }

    /// Waits until nothing is left to do at this time, or an invocation has reached the point.
    async fn until_stop(&mut self) -> Result<Stop, Wrong> {
        loop {
            let process = self.process();
            let idle = tokio::select! {
                biased;
                () = self.control.happened.notified() => None,
                idle = process.controller.wait_until_idle(LONG) => Some(idle),
            };
            self.look_for_trouble()?;
            if self.process().pulse.is_dead() || self.control.is_reached() {
                return Ok(Stop::Point);
            }
            match idle {
                None => {}
                Some(Ok(())) => return Ok(Stop::Rest),
                Some(Err(WaitError::Deadline(_))) => {
                    let what = if self.control.has_cancelled() {
                        What::Late
                    } else {
                        What::Endless
                    };
                    return Err(Wrong::new(what, format!("it still runs after {LONG:?}")));
                }
                Some(Err(WaitError::Refused(refusal))) => {
                    return Err(Wrong::new(
                        What::Endless,
                        format!("the controller stopped: {refusal}"),
                    ));
                }
            }
        }
    }

    /// Waits for rest, without an interruption.
    pub(super) async fn until_rest(&mut self) -> Result<(), Wrong> {
        while let Stop::Point = self.until_stop().await? {
            self.control.take_reached();
        }
        Ok(())
    }

    fn look_for_trouble(&self) -> Result<(), Wrong> {
        match self.control.take_complaint() {
            Some(Complaint::Late(who, took)) => {
                return Err(Wrong::new(
                    What::Late,
                    format!("{who} returned {took:?} after its cancel"),
                ));
            }
            Some(Complaint::Panicked(who, message)) => {
                return Err(Wrong::new(What::Panicked, format!("{who} panicked: {message}")));
            }
            Some(Complaint::Endless(who)) => {
                return Err(Wrong::new(What::Endless, format!("{who} is polled without end")));
            }
            None => {}
        }
        match self.outside.wrong() {
            Some(wrong) => Err(Wrong::new(What::Torn, format!("the outside says: {wrong}"))),
            None => Ok(()),
        }
    }
}

/// Returns the uid that a create asks for; none for other edits.
fn created(edit: &watershed_core::Edit) -> Option<Uid> {
    match &edit.change {
        watershed_core::Change::Create(new) => Some(new.uid),
        _ => None,
    }
}
