//! What `start` tells people after it has converged: one line a resource, mistakes with their place, what is mended.

use std::path::{Path, PathBuf};

use super::console::{Console, Verbosity};
use super::failure::Failure;
use crate::documents::{Diagnostic, Event, LastRun, Outcome, ResourceName, RunDocument, Severity, Work};
use crate::render::diagnostics::{Details, Drawing};
use crate::render::palette::{BAD, DIM, GOOD, STRONG, WARN};
use crate::render::summary::first_line;
use crate::render::units::{count, duration};
use crate::report::problems::problems;

/// Tells round after round.
pub(super) struct Rounds {
    root: PathBuf,
    project: String,
    /// Mistakes that are there at the moment.
    errors: u64,
    /// Resources that were not built in this round because of others.
    skipped: u64,
    has_mended: bool,
    has_told: bool,
}

impl Rounds {
    /// Goes on after the first round, which came to `document`.
    pub(super) fn after(document: &RunDocument, root: &Path) -> Self {
        let errors = problems(document).iter().filter(|found| is_error(found)).count();
        Self {
            root: root.to_owned(),
            project: document.project.clone(),
            errors: errors as u64,
            skipped: 0,
            has_mended: false,
            has_told: false,
        }
    }

    /// Tells one event.
    pub(super) fn event(&mut self, console: &mut Console, event: &Event) -> Result<(), Failure> {
        match event {
            Event::ResourceFinished {
                resource, work, run, ..
            } => self.finished(console, resource, *work, run)?,
            Event::Diagnostic { diagnostic } => {
                self.errors += u64::from(is_error(diagnostic));
                self.has_told = true;
                // Drawn anew each time: the file is another one by now.
                console.say(&Drawing::new(&self.root, Details::Left).draw(diagnostic));
            }
            Event::Mended { diagnostic } => {
                self.errors = self.errors.saturating_sub(u64::from(is_error(diagnostic)));
                self.has_mended |= is_error(diagnostic);
                let place = format!("{}:{}:{}", diagnostic.path, diagnostic.line, diagnostic.column);
                let what = first_line(&diagnostic.message);
                tell(
                    console,
                    &format!("{GOOD}{:>9}{GOOD:#} {place} {DIM}{what}{DIM:#}\n", "mended"),
                )?;
            }
            Event::Settled { exit_code, .. } => self.settled(console, *exit_code)?,
            Event::RunStarted { .. } | Event::ResourceStarted { .. } | Event::RunFinished { .. } => {}
        }
        Ok(())
    }

    fn finished(
        &mut self,
        console: &mut Console,
        resource: &ResourceName,
        work: Work,
        run: &LastRun,
    ) -> Result<(), Failure> {
        self.skipped += u64::from(run.outcome == Outcome::Skipped);
        // Who was cancelled runs again, who had nothing to do is of no interest.
        let is_news = matches!(run.outcome, Outcome::Done | Outcome::Failed);
        if is_news || console.verbosity >= Verbosity::Verbose {
            self.has_told = true;
            tell(console, &line(resource, work, run))?;
        }
        Ok(())
    }

    fn settled(&mut self, console: &mut Console, exit_code: u8) -> Result<(), Failure> {
        if self.skipped > 0 {
            let number = count(self.skipped, "resource");
            let text = format!("{WARN}{:>9}{WARN:#} {number} because of that\n", "skipped");
            tell(console, &text)?;
        }
        let name = &self.project;
        if exit_code == 0 && self.has_mended {
            tell(
                console,
                &format!("{GOOD}✓{GOOD:#} {STRONG}{name}{STRONG:#} is up to date again\n"),
            )?;
        } else if exit_code != 0 && (self.has_told || self.has_mended) {
            let left = count(self.errors.max(1), "error");
            tell(
                console,
                &format!("{BAD}✗{BAD:#} {STRONG}{name}{STRONG:#}: {left}\n"),
            )?;
        }
        (self.skipped, self.has_mended, self.has_told) = (0, false, false);
        Ok(())
    }
}

/// One run in one line.
pub(super) fn line(resource: &ResourceName, work: Work, run: &LastRun) -> String {
    let (word, style) = match run.outcome {
        Outcome::Done => (work.as_str(), GOOD),
        Outcome::Failed => (run.outcome.as_str(), BAD),
        _ => (run.outcome.as_str(), DIM),
    };
    let took = duration(run.duration_ms);
    format!("{style}{word:>9}{style:#} {resource} {DIM}{took}{DIM:#}\n")
}

fn tell(console: &mut Console, text: &str) -> Result<(), Failure> {
    if console.verbosity > Verbosity::Quiet {
        console.result(text)?;
    }
    Ok(())
}

fn is_error(found: &Diagnostic) -> bool {
    found.severity == Severity::Error
}
