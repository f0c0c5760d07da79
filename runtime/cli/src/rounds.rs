//! Output of `start` after it has converged: ended runs, errors with their place, fixed errors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use watershed_api::documents::{Diagnostic, Event, Outcome, ResourceName, RunDocument, Severity, Time};

use super::console::{Console, Verbosity};
use super::failing::{Failing, Heard};
use super::failure::Failure;
use crate::render::diagnostics::{Details, Drawing};
use crate::render::palette::{BAD, DIM, GOOD, STRONG, WARN};
use crate::render::summary::first_line;
use crate::render::told::{self, Begin};
use crate::render::units::{clock, count, duration};
use watershed::program::problems;

/// The code of a program that has ended by itself and is started again.
const EXITED: &str = "exited";
/// The time for which further crashes of a program are told by a line each.
const CRASH_IS_KNOWN: Duration = Duration::from_mins(10);

/// The state of `start` after its first round, which shows each later round.
pub(super) struct Rounds {
    root: PathBuf,
    project: String,
    lines: told::Lines,
    /// Errors that stand now.
    errors: Vec<Diagnostic>,
    failing: Failing,
    /// Resources that are in order after a run that was shown in this round.
    mended: BTreeSet<ResourceName>,
    /// Programs that ended by themselves and are started again, with the moment at which that was told in full.
    crashing: BTreeMap<ResourceName, Instant>,
    /// Number of resources that were not built in this round because of others.
    skipped: u64,
    has_told: bool,
}

impl Rounds {
    /// Returns the state after the first round, whose result is `document`.
    pub(super) fn after(document: &RunDocument, root: &Path) -> Self {
        let errors = problems(document).into_iter().filter(is_error).collect();
        Self {
            root: root.to_owned(),
            project: document.project.clone(),
            lines: told::Lines::new(Begin::Clock),
            errors,
            failing: Failing::default(),
            mended: BTreeSet::new(),
            crashing: BTreeMap::new(),
            skipped: 0,
            has_told: false,
        }
    }

    /// Shows one event.
    pub(super) fn event(&mut self, console: &mut Console, event: &Event) -> Result<(), Failure> {
        match event {
            Event::ResourceFinished { resource, run, .. } => {
                let is_verbose = console.verbosity >= Verbosity::Verbose;
                match self.failing.hear(event) {
                    // Everybody was told when it came first.
                    Heard::Again if !is_verbose => return Ok(()),
                    Heard::Over(times) if run.outcome != Outcome::Skipped => {
                        let (at, times) = (clock(Time::now()), count(times, "time"));
                        let name = &resource.name;
                        let text = format!("  {DIM}{at}  {name} has ended the same way {times}{DIM:#}\n");
                        self.tell(console, &text)?;
                    }
                    _ => {}
                }
                self.skipped += u64::from(run.outcome == Outcome::Skipped);
                if event.is_news() || is_verbose {
                    if matches!(run.outcome, Outcome::Done | Outcome::Unchanged) {
                        self.mended.insert(resource.clone());
                    }
                    let line = self.lines.line(event, console.result_width());
                    self.tell(console, &line.unwrap_or_default())?;
                }
            }
            Event::Diagnostic { diagnostic } => {
                if is_error(diagnostic) {
                    let root = &self.root;
                    // One that moved with its file is told at its new place, and is no second one.
                    self.errors
                        .retain(|known| !says_same(known, diagnostic) || root.join(&known.path).exists());
                    self.errors.push(diagnostic.clone());
                }
                // Each crash has a line of its own.
                if self.is_crash_again(diagnostic) && console.verbosity < Verbosity::Verbose {
                    return Ok(());
                }
                self.has_told = true;
                let details = match console.verbosity {
                    Verbosity::Verbose => Details::Shown,
                    _ => Details::Left,
                };
                // Drawn anew each time: the file is another one by now.
                let width = console.err_width();
                console.say(&Drawing::new(&self.root, details, width).draw(diagnostic));
            }
            Event::Fixed { diagnostic } => self.fixed(console, diagnostic)?,
            Event::Settled {
                exit_code,
                duration_ms,
                ..
            } => self.settled(console, *exit_code, *duration_ms)?,
            Event::NotificationDelivered { .. }
            | Event::NotificationDelayed { .. }
            | Event::NotificationDead { .. } => {
                // Messages alone make no round: nothing was behind.
                let line = self.lines.line(event, console.result_width());
                say(console, &line.unwrap_or_default())?;
            }
            Event::Transition { .. } => {
                // A step of a program makes no round: nothing was behind. `history` has the others.
                if event.is_news() {
                    let line = self.lines.line(event, console.result_width());
                    say(console, &line.unwrap_or_default())?;
                }
            }
            Event::AlertEvaluated { .. }
            | Event::RunStarted { .. }
            | Event::ResourceStarted { .. }
            | Event::RunFinished { .. } => {}
        }
        Ok(())
    }

    /// Says that a finding is gone, unless that is no news.
    fn fixed(&mut self, console: &mut Console, diagnostic: &Diagnostic) -> Result<(), Failure> {
        let gone = self
            .errors
            .iter()
            .position(|known| says_same(known, diagnostic) && known.path == diagnostic.path);
        gone.map(|at| self.errors.swap_remove(at));
        // A program that is started again is not mended by that.
        if diagnostic.code == EXITED {
            return Ok(());
        }
        // What has failed in another way is not mended.
        let stands = |known: &Diagnostic| known.resource == diagnostic.resource;
        if diagnostic.resource.is_some() && self.errors.iter().any(stands) {
            return Ok(());
        }
        // The line of the resource's run has told it.
        if diagnostic
            .resource
            .as_ref()
            .is_some_and(|of| self.mended.contains(of))
        {
            return Ok(());
        }
        if let Some(line) = self.lines.recovered(diagnostic, console.result_width()) {
            return self.tell(console, &line);
        }
        let place = format!("{}:{}:{}", diagnostic.path, diagnostic.line, diagnostic.column);
        let (what, at) = (first_line(&diagnostic.message), clock(Time::now()));
        let line = format!("  {DIM}{at}{DIM:#}  {GOOD}fixed{GOOD:#}      {place}  {DIM}{what}{DIM:#}\n");
        self.tell(console, &line)
    }

    /// Returns true for the crash of a program whose last one was told in full not long ago.
    fn is_crash_again(&mut self, diagnostic: &Diagnostic) -> bool {
        let Some(program) = diagnostic.resource.as_ref().filter(|_| diagnostic.code == EXITED) else {
            return false;
        };
        let is_known = |told: &Instant| told.elapsed() < CRASH_IS_KNOWN;
        if self.crashing.get(program).is_some_and(is_known) {
            return true;
        }
        self.crashing.insert(program.clone(), Instant::now());
        false
    }

    fn settled(&mut self, console: &mut Console, exit_code: u8, took_ms: u64) -> Result<(), Failure> {
        if self.skipped > 0 {
            let number = count(self.skipped, "resource");
            let at = clock(Time::now());
            let text = format!("  {DIM}{at}{DIM:#}  {WARN}skipped{WARN:#}    {number} because of that\n");
            self.tell(console, &text)?;
        }
        if self.has_told {
            let (name, took) = (&self.project, duration(took_ms));
            let verdict = match exit_code {
                0 => format!("{GOOD}✓{GOOD:#} {STRONG}{name}{STRONG:#} is up to date ({took})\n"),
                _ => {
                    let left = count(self.errors.len().max(1) as u64, "error");
                    format!("{BAD}✗{BAD:#} {STRONG}{name}{STRONG:#}: {left} ({took})\n")
                }
            };
            self.tell(console, &verdict)?;
        }
        (self.skipped, self.has_told) = (0, false);
        self.mended.clear();
        Ok(())
    }

    fn tell(&mut self, console: &mut Console, text: &str) -> Result<(), Failure> {
        self.has_told = true;
        say(console, text)
    }
}

fn say(console: &mut Console, text: &str) -> Result<(), Failure> {
    if console.verbosity > Verbosity::Quiet {
        console.result(text)?;
    }
    Ok(())
}

/// Returns true if two findings say the same, wherever they are.
fn says_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.code, &one.message) == (&other.code, &other.message)
}

fn is_error(found: &Diagnostic) -> bool {
    found.severity == Severity::Error
}
