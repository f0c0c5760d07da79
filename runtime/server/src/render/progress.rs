//! The progress bar: how far a run is and what it does now.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::units::some_of;
use crate::socket::Activity;

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(100);
/// Runs that end sooner need no bar.
const PATIENCE: Duration = Duration::from_millis(200);
/// Names in the bar.
const MOST_NAMES: usize = 3;

/// A bar on standard error, gone when dropped.
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
    /// A bar that shows itself when the run takes a moment.
    pub(crate) fn new(colour: super::Colour) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let template = match colour {
            super::Colour::On => "{spinner:.cyan} {bar:24.cyan/dim} {pos}/{len} {elapsed:.dim} {wide_msg}",
            super::Colour::Off => "{spinner} {bar:24} {pos}/{len} {elapsed} {wide_msg}",
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

    /// Shows how far the run is.
    pub(crate) fn update(&mut self, activity: &Activity) {
        self.bar.set_length(activity.total);
        self.bar.set_position(activity.settled.min(activity.total));
        let names: Vec<String> = activity.running.iter().map(|name| name.name.clone()).collect();
        self.bar.set_message(some_of(&names, MOST_NAMES));
        if self.state == Drawn::NotYet && self.begun.elapsed() >= PATIENCE {
            self.state = Drawn::Moving;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(TICK);
        }
    }

    /// Takes the bar away while something else is written.
    pub(crate) fn suspend(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
