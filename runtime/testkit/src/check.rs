//! Checks of a reconciler: plays from seeds, and the report of the first fault.

use crate::fault::{Passed, Report, What, Wrong};
use crate::kit::Kit;
use crate::outside::Outside;
use crate::play::Play;
use crate::script::{Cast, GIVENS, Script};
use crate::shrink;
use crate::story::Story;
use crate::systematic;
use crate::things::Things;
use watershed_controller::Reconciler;

/// Environment variable with the number of steps of a check.
const STEPS_VARIABLE: &str = "WATERSHED_TESTKIT_STEPS";

/// Environment variable with the only seed that checks play.
const SEED_VARIABLE: &str = "WATERSHED_TESTKIT_SEED";

/// Runs of the check.
impl<O: Outside, R: Reconciler> Kit<O, R> {
    /// Plays one seed after the other, and panics with a [`Report`] of the first fault. Call it in a plain `#[test]`,
    /// because it creates a runtime of its own.
    ///
    /// # Panics
    /// If the reconciler has a fault.
    pub fn check(&self) -> Passed {
        match self.find() {
            Ok(passed) => passed,
            Err(report) => panic!("{report}"),
        }
    }

    /// Checks like [`check`](Self::check), but returns the first fault instead of panicking.
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

    /// Plays the script of a single seed.
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

    /// Plays a script, and shrinks it if it fails. Otherwise also returns whether an interruption point was missed.
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

    /// Plays a script in a runtime of its own, isolated from other plays.
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

/// Result of a play: its counts, its story, and a fault if there is one.
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

/// Reads a number from an environment variable; none if it is not set.
///
/// # Panics
/// If there is something else.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.replace('_', "").parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is \"{text}\", expected a number")))
}
