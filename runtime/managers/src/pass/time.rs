//! The window of a pass: its acceptance or refusal.

use watershed_controller::Reconciler;

use super::Pass;
use crate::manager::Manager;
use crate::record::ManagedState;
use crate::window::{BadWindow, Occurrence, Plan};

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    /// Accepts the window of the spec, if it may replace the window accepted before.
    ///
    /// One that may not is refused: no step upwards is taken, and the end that was accepted still holds, so that nothing
    /// outlives its deadline by a mistake in an edit.
    pub(super) fn accept_window(&mut self) {
        match self.stated_window() {
            Ok(window) => self.follow(window),
            Err(bad) => self.bad_window = Some(bad),
        }
    }

    fn stated_window(&mut self) -> Result<Option<Occurrence>, BadWindow> {
        let Some(timed) = &self.subject.wanted.desired.window else {
            return Ok(None);
        };
        let plan = timed.plan()?;
        let now = self.now();
        let found = plan.at(now);
        let accepted = self.kept.record.window;
        if let (Plan::Once(_), Some(found), Some(accepted)) = (&plan, &found, &accepted) {
            found.may_follow(accepted, now)?;
        }
        self.plan = Some(plan);
        Ok(found)
    }

    fn follow(&mut self, window: Option<Occurrence>) {
        let now = self.now();
        let is_recurring = matches!(self.plan, Some(Plan::Recurring(_)));
        let record = &mut self.kept.record;
        let Some(before) = record.window else {
            record.window = window;
            return;
        };
        let is_over = before.next_boundary(now).is_none();
        let is_another = window.is_some_and(|window| window.start != before.start);
        if is_another && (is_recurring || is_over) {
            // The lifecycle starts over: what happened in the window before says nothing of this one.
            record.failure = None;
            record.stage_override = None;
            record.current = None;
        }
        record.window = window;
    }
}
