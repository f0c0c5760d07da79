//! The progress bar: the counts of a run and the resources that run now.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use watershed_api::request::Activity;

use super::units::some_of;

/// The time after which the bar is shown: shorter runs need none.
const PATIENCE: Duration = Duration::from_millis(200);
/// Most names of running resources in the bar.
const MOST_NAMES: usize = 3;
/// Longest message in the bar, in characters.
///
/// The line must not reach the terminal's edge, where the echo of Ctrl-C would break it.
const LONGEST: usize = 30;

/// A progress bar on standard error, removed when dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    begun: std::time::Instant,
    state: Drawn,
}

#[derive(PartialEq, Eq)]
enum Drawn {
    NotYet,
    Moving,
}

impl Bar {
    /// Returns a bar that is shown once the run has taken a moment.
    pub(crate) fn new(colour: super::Colour) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = match colour {
            super::Colour::On => "{spinner:.cyan} {bar:24.cyan/dim} {pos}/{len} {elapsed:.dim} {msg}",
            super::Colour::Off => "{spinner} {bar:24} {pos}/{len} {elapsed} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self {
            bar,
            begun: std::time::Instant::now(),
            state: Drawn::NotYet,
        }
    }

    /// Updates the bar to the progress of the run.
    pub(crate) fn update(&mut self, activity: &Activity) {
        self.bar.set_length(activity.total);
        self.bar.set_position(activity.settled.min(activity.total));
        let names: Vec<String> = activity.running.iter().map(|name| name.name.clone()).collect();
        let said = some_of(&names, MOST_NAMES);
        self.bar.set_message(match said.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", &said[..at]),
            None => said,
        });
        self.show_when_due();
    }

    /// Moves the spinner, and shows the bar when the run has taken a moment.
    pub(crate) fn tick(&mut self) {
        self.show_when_due();
        self.bar.tick();
    }

    fn show_when_due(&mut self) {
        if self.state == Drawn::NotYet && self.begun.elapsed() >= PATIENCE {
            self.state = Drawn::Moving;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Hides the bar while something else is written.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
