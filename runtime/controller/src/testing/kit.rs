//! The kit: what is tested, and how much.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use watershed_core::{Kind, KindOptions};

use super::ending::Sight;
use super::fault::{Passed, Report, What, Wrong};
use super::given::Givens;
use super::outside::Outside;
use super::play::Play;
use super::roll::Roll;
use super::script::{Cast, GIVENS, Script};
use super::shrink;
use super::story::Story;
use super::systematic;
use super::things::Things;
use crate::api::message::Message;
use crate::api::reconciler::Reconciler;

/// Steps of a check unless something else is asked for: a fraction of a second.
const STEPS: u64 = 10_000;

/// Says how many steps a check has.
const STEPS_VARIABLE: &str = "WATERSHED_TESTKIT_STEPS";

/// Has checks play this seed and no other.
const SEED_VARIABLE: &str = "WATERSHED_TESTKIT_SEED";

/// Tests a reconciler; see the [module](super).
///
/// Each seed is a play of its own: a few resources are created, edited, renamed and deleted while their invocations
/// are cancelled, dropped and killed, all in simulated time, under the real controller. At the end everything comes to
/// rest, and three things must hold. What is there is what the same specs come to from scratch, in a fresh outside.
/// Running everything once more changes nothing. Deleting everything leaves nothing.
///
/// The [module](super) has an example, [`Report`] another.
pub struct Kit<O: Outside, R: Reconciler> {
    pub(super) fresh: Box<dyn Fn() -> O>,
    pub(super) reconciler: Box<dyn Fn(&O) -> R>,
    pub(super) spec: Box<MakeSpec<R>>,
    pub(super) options: KindOptions,
    pub(super) givens: Vec<Givens>,
    pub(super) state: Option<Box<Counts<R>>>,
    pub(super) cancel_within: Duration,
    /// The ends of plays from scratch, by wanted resources.
    pub(super) scratches: RefCell<HashMap<String, Rc<Sight<O::Seen>>>>,
    is_chained: bool,
    is_fenced: bool,
    steps: u64,
}

/// Makes up a spec.
type MakeSpec<R> = dyn Fn(&mut Roll) -> <R as Reconciler>::Spec;

/// A function that returns the part of a state that is compared, as text.
type Counts<R> = dyn Fn(&<R as Reconciler>::State) -> String;

impl<O: Outside, R: Reconciler> fmt::Debug for Kit<O, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kit")
            .field("options", &self.options)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

/// Set-up of a test.
impl<O: Outside, R: Reconciler> Kit<O, R> {
    /// Tests the reconciler that `reconciler` makes over an outside. It is made anew for each process of a play, as
    /// yours is when your process starts. `spec` makes up a spec; few different ones are better than many, and each
    /// must be one that can be had.
    pub fn new(
        fresh: impl Fn() -> O + 'static,
        reconciler: impl Fn(&O) -> R + 'static,
        spec: impl Fn(&mut Roll) -> R::Spec + 'static,
    ) -> Self {
        Self {
            fresh: Box::new(fresh),
            reconciler: Box::new(reconciler),
            spec: Box::new(spec),
            options: KindOptions::new("thing"),
            givens: Vec::new(),
            state: None,
            cancel_within: Duration::from_secs(10),
            scratches: RefCell::default(),
            is_chained: false,
            is_fenced: false,
            steps: STEPS,
        }
    }

    /// The options of the kind as you register it; `thing` with every option at its default unless set.
    #[must_use]
    pub fn options(mut self, options: KindOptions) -> Self {
        self.options = options;
        self.changed()
    }

    /// The resources may read some of this kind, whose states are made up by `state`. The kit creates, changes, fails
    /// and deletes them.
    #[must_use]
    pub fn reads<M: Message>(
        mut self,
        kind: impl Into<Kind>,
        state: impl Fn(&mut Roll) -> M + 'static,
    ) -> Self {
        self.givens.push(Givens::new(kind.into(), state));
        self.changed()
    }

    /// The resources may read one another.
    #[must_use]
    pub fn chained(mut self) -> Self {
        self.is_chained = true;
        self
    }

    /// Also plays a process that stood still for longer than its lease and then goes on where it was: for kinds that
    /// run on a store whose leases run out (Postgres) and send [`Context::epoch`](crate::Context::epoch) along.
    #[must_use]
    pub fn fenced(mut self) -> Self {
        self.is_fenced = true;
        self
    }

    /// Sets the part of a state that must not depend on the way to it, as text; all of it by default.
    #[must_use]
    pub fn state(mut self, counts: impl Fn(&R::State) -> String + 'static) -> Self {
        self.state = Some(Box::new(counts));
        self.changed()
    }

    /// Returns the time that an invocation may go on after its cancel; 10 s unless set, which is what a controller that
    /// is dropped waits.
    #[must_use]
    pub fn cancel_within(mut self, within: Duration) -> Self {
        self.cancel_within = within;
        self
    }

    /// Forgets what came of the kit as it was.
    fn changed(self) -> Self {
        self.scratches.borrow_mut().clear();
        self
    }

    /// Sets the least number of steps of a check; `WATERSHED_TESTKIT_STEPS` overrides it. A step is something done to
    /// the world, or one poll of an invocation.
    #[must_use]
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }
}

/// Testing it.
impl<O: Outside, R: Reconciler> Kit<O, R> {
    /// Plays seed after seed, and panics with a [`Report`] if something is wrong. Call it in a plain `#[test]`: it
    /// makes a runtime of its own.
    ///
    /// # Panics
    /// If the reconciler has a fault.
    pub fn check(&self) -> Passed {
        match self.find() {
            Ok(passed) => passed,
            Err(report) => panic!("{report}"),
        }
    }

    /// As [`check`](Self::check), and returns what was found.
    ///
    /// # Errors
    /// With the first fault.
    pub fn find(&self) -> Result<Passed, Box<Report>> {
        if let Some(seed) = number(SEED_VARIABLE) {
            return self.play(seed);
        }
        let steps = number(STEPS_VARIABLE).unwrap_or(self.steps);
        let mut passed = Passed::default();
        let mut over = None;
        let mut seed = 0;
        while passed.steps < steps || seed < systematic::SEEDS {
            let series = systematic::series(seed);
            let is_over = series.is_some() && series == over;
            if let Some(script) = self.script(seed).filter(|_| !is_over) {
                let (played, missed) = self.judge(seed, script, passed.steps)?;
                passed.add(played);
                if missed {
                    over = series;
                }
            }
            seed += 1;
        }
        Ok(passed)
    }

    /// Plays one seed.
    ///
    /// # Errors
    /// With its fault, told as shortly as can be.
    pub fn play(&self, seed: u64) -> Result<Passed, Box<Report>> {
        match self.script(seed) {
            Some(script) => self.judge(seed, script, 0).map(|(passed, _)| passed),
            None => Ok(Passed::default()),
        }
    }

    fn script(&self, seed: u64) -> Option<Script> {
        let cast = Cast {
            givens: self.givens.len() * GIVENS,
            chained: self.is_chained,
            fenced: self.is_fenced,
        };
        if seed < systematic::SEEDS {
            systematic::script(seed, cast)
        } else {
            Some(Script::random(seed, cast))
        }
    }

    /// Plays a script, and if it fails makes it short; else says also whether an interruption was missed.
    fn judge(&self, seed: u64, script: Script, before: u64) -> Result<(Passed, bool), Box<Report>> {
        let mut played = self.perform(&script, Story::default());
        let Some(wrong) = played.wrong.take() else {
            return Ok((played.passed, played.missed));
        };
        let steps = before + played.passed.steps;
        let again = |script: &Script| self.perform(script, Story::default()).is_wrong(wrong.what);
        let script = shrink::shrink(script, again);
        let told = self.perform(&script, Story::kept());
        let wrong = told.wrong.unwrap_or(wrong);
        Err(Box::new(Report {
            fault: shrink::name(wrong.what, &script, told.has_complained),
            seed,
            story: told.story.lines(),
            finding: wrong.finding,
            steps,
        }))
    }

    /// One play in a runtime of its own, with nothing left of any other.
    fn perform(&self, script: &Script, story: Story) -> Played {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        let runtime = runtime.expect("the system lets a runtime be made");
        runtime.block_on(async {
            let kinds = self
                .givens
                .iter()
                .map(|givens| (givens.kind.clone(), givens.format));
            let things = Things::new(self.options.kind.clone(), kinds);
            let mut play = Play::new(self, things, story);
            let wrong = play.run(script).await.err();
            Played {
                wrong,
                passed: play.passed,
                missed: play.missed,
                has_complained: play.has_complained(),
                story: play.story,
            }
        })
    }
}

/// The result of a play.
struct Played {
    wrong: Option<Wrong>,
    passed: Passed,
    missed: bool,
    has_complained: bool,
    story: Story,
}

impl Played {
    fn is_wrong(&self, what: What) -> bool {
        self.wrong.as_ref().is_some_and(|wrong| wrong.what == what)
    }
}

impl Passed {
    fn add(&mut self, other: Self) {
        self.plays += other.plays;
        self.steps += other.steps;
        self.invocations += other.invocations;
        self.cancelled += other.cancelled;
        self.dropped += other.dropped;
        self.crashes += other.crashes;
        self.frozen += other.frozen;
    }
}

/// A number from the environment.
///
/// # Panics
/// If there is something else.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.replace('_', "").parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is \"{text}\", expected a number")))
}
