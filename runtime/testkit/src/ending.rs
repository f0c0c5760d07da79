//! The end of a play: everything is repaired, comes to rest, and is compared with the same resources from scratch.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use watershed_core::{Key, Row, Timestamp, Uid};

use crate::fault::{What, Wrong, difference};
use crate::outside::Outside;
use crate::play::Play;
use crate::script::PLACES;
use crate::sight::Sight;
use crate::story::{Story, text};
use watershed_controller::Reconciler;
use watershed_controller::Resource;
use watershed_controller::Select;
use watershed_controller::clock::Clock;

/// Maximum number of retries of failed resources.
const RETRIES: usize = 3;

/// Maximum number of due times that may pass before a play counts as at rest: enough for every reconciler that waits
/// for something.
const TIMES: usize = 64;

/// Number of due times in a row without a change after which further requests only look for drift.
const IDLE_TIMES: usize = 3;

/// Maximum number of remembered outcomes from scratch.
const SCRATCHES: usize = 1_000;

impl<O: Outside, R: Reconciler> Play<'_, O, R> {
    /// Repairs everything that the script has broken, and makes all checks.
    pub(super) async fn end(&mut self) -> Result<(), Wrong> {
        self.mend()?;
        self.declare().await?;
        self.until_rest().await?;
        self.let_rest().await?;
        self.try_again().await?;
        self.pass_times().await?;
        self.story
            .tell(|| "what has failed is tried again, and all comes to rest".to_owned());
        self.compare().await?;
        self.ask_again().await?;
        self.delete_all().await
    }

    /// Gives every resource only refs that can exist, and makes these exist without failure.
    fn mend(&mut self) -> Result<(), Wrong> {
        self.outside.trouble(false);
        for place in 0..PLACES {
            let sound = self.things.sound_refs(place);
            let Some(thing) = &self.things.places[place] else {
                continue;
            };
            if thing.refs != sound {
                let seed = thing.seed;
                self.put(place, seed, sound)?;
            }
        }
        let read = self
            .things
            .places
            .iter()
            .flatten()
            .flat_map(|thing| thing.refs.iter());
        let read: Vec<Key> = read.cloned().collect();
        for given in 0..self.things.givens.len() {
            let it = &self.things.givens[given];
            let is_wanted = it.fails || (it.spec.is_none() && read.contains(&it.key));
            if is_wanted {
                let seed = it.seed;
                self.give(given, seed)?;
            }
        }
        Ok(())
    }

    /// Retries failed resources, a few times.
    async fn try_again(&mut self) -> Result<(), Wrong> {
        for _ in 0..RETRIES {
            let failed = self.failed_ones();
            if failed.is_empty() {
                break;
            }
            for uid in failed {
                // What went meanwhile needs no retry.
                let _ = self.process().controller.retry(uid).await;
            }
            self.until_rest().await?;
        }
        Ok(())
    }

    fn failed_ones(&self) -> Vec<Uid> {
        let all = self.process().controller.list(Select::all()).resources;
        let failed = all.iter().filter(|found| found.row.error.is_some());
        failed.map(|found| found.row.uid).collect()
    }

    /// Gives reconcilers time to notice events outside.
    async fn let_rest(&mut self) -> Result<(), Wrong> {
        if self.kit.rest_after.is_zero() {
            return Ok(());
        }
        tokio::time::sleep(self.kit.rest_after).await;
        self.until_rest().await
    }

    /// Passes time while any resource has asked to be run again.
    async fn pass_times(&mut self) -> Result<(), Wrong> {
        self.let_rest().await?;
        let mut idle = 0;
        for _ in 0..TIMES {
            let all = self.process().controller.list(Select::all()).resources;
            let Some(due) = all.iter().filter_map(|found| found.row.next_reconcile).min() else {
                break;
            };
            if idle == IDLE_TIMES && self.outside.under_way().is_none() {
                break;
            }
            let before = (self.outside.look(), self.versions());
            self.pass_until(due).await;
            self.until_rest().await?;
            let is_same = before == (self.outside.look(), self.versions());
            idle = if is_same { idle + 1 } else { 0 };
        }
        match self.outside.under_way() {
            None => Ok(()),
            Some(what) => {
                let finding = format!("nobody will look again, and the outside says: {what}");
                Err(Wrong::new(What::Asleep, finding))
            }
        }
    }

    async fn pass_until(&self, due: Timestamp) {
        let wait = due.0.saturating_sub(self.clock.now().wall.0);
        let wait = u64::try_from(wait).unwrap_or_default().saturating_add(1);
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }

    fn versions(&self) -> Vec<u64> {
        self.live().iter().map(|row| row.state_version.0).collect()
    }

    fn sight(&self) -> Sight<O::Seen> {
        let rows = self.live();
        let tested = rows.iter().filter(|row| row.kind == self.things.kind);
        let states = tested.map(|row| (row.name.to_string(), self.state(row)));
        let errors = rows.iter().filter_map(|row| {
            let error = row.error.as_ref()?;
            Some((row.key().to_string(), error.message.to_string()))
        });
        Sight {
            outside: self.outside.look(),
            states: states.collect(),
            failed: errors.collect(),
        }
    }

    /// Returns the part of a state that is compared, as text.
    fn state(&self, row: &Arc<Row>) -> Option<String> {
        let bytes = row.state.as_ref()?;
        match &self.kit.state {
            None => Some(text(bytes)),
            Some(counts) => match Resource::state_of::<R::State>(row) {
                Ok(state) => state.map(|state| counts(&state)),
                Err(error) => Some(error.to_string()),
            },
        }
    }

    /// Compares the result with that of the same resources from scratch, in another world.
    async fn compare(&mut self) -> Result<(), Wrong> {
        let found = self.sight();
        let expected = self.scratch().await?;
        for (key, message) in &found.failed {
            if !expected.failed.contains_key(key) {
                let finding = format!("\"{key}\" goes on failing: {message}\nfrom scratch it does not");
                return Err(Wrong::new(What::Stuck, finding));
            }
        }
        if found.outside != expected.outside {
            let title = "the outside, which is + and from scratch would be -";
            let finding = difference(title, &found.outside, &expected.outside);
            return Err(Wrong::new(What::Differs, finding));
        }
        if found.states != expected.states {
            let title = "the states, which are + and from scratch would be - \
                         (if they may differ, say what of them counts with `Kit::state`)";
            let finding = difference(title, &found.states, &expected.states);
            return Err(Wrong::new(What::State, finding));
        }
        Ok(())
    }

    /// Returns the result of the same resources from scratch, remembered across plays.
    async fn scratch(&self) -> Result<Rc<Sight<O::Seen>>, Wrong> {
        let wanted = self.things.text();
        if let Some(sight) = self.kit.scratches.borrow().get(&wanted) {
            return Ok(Rc::clone(sight));
        }
        let mut scratch = Play::new(self.kit, self.things.clone(), Story::default());
        let result = scratch.converge().await;
        let sight = Rc::new(scratch.sight());
        scratch.close().await;
        result?;
        if let Some((key, message)) = sight.failed.first_key_value() {
            let finding = format!("\"{key}\" fails from scratch: {message}");
            return Err(Wrong::new(What::Fails, finding));
        }
        let mut known = self.kit.scratches.borrow_mut();
        if known.len() >= SCRATCHES {
            known.clear();
        }
        known.insert(wanted, Rc::clone(&sight));
        Ok(sight)
    }

    async fn converge(&mut self) -> Result<(), Wrong> {
        self.begin().await?;
        self.declare().await?;
        self.until_rest().await?;
        self.pass_times().await
    }

    /// Runs everything again: since nothing has changed, nothing may change.
    async fn ask_again(&mut self) -> Result<(), Wrong> {
        let before = self.sight();
        let uids: Vec<Uid> = self
            .things
            .places
            .iter()
            .flatten()
            .map(|thing| thing.uid)
            .collect();
        for uid in uids {
            let _ = self.process().controller.reconcile(uid).await;
        }
        self.story
            .tell(|| "all are run again, with nothing changed".to_owned());
        self.until_rest().await?;
        self.pass_times().await?;
        let after = self.sight();
        if let Some((key, message)) = after.failed.first_key_value() {
            let finding = format!("\"{key}\" fails the second time: {message}");
            return Err(Wrong::new(What::Again, finding));
        }
        if before.outside != after.outside {
            let finding = difference(
                "the outside, before - and after +",
                &after.outside,
                &before.outside,
            );
            return Err(Wrong::new(What::Again, finding));
        }
        if before.states != after.states {
            let finding = difference("the states, before - and after +", &after.states, &before.states);
            return Err(Wrong::new(What::Again, finding));
        }
        Ok(())
    }

    /// Deletes everything: afterwards the outside must be as at the start.
    async fn delete_all(&mut self) -> Result<(), Wrong> {
        self.things.places = Default::default();
        self.story.tell(|| "all are deleted".to_owned());
        self.declare().await?;
        self.until_rest().await?;
        self.try_again().await?;
        // Kinds beside it may have something to finish.
        self.pass_times().await?;
        let left = self.process().controller.list(Select::all()).resources;
        if let Some(left) = left.iter().find(|found| found.row.kind == self.things.kind) {
            let message = left.row.error.as_ref().map_or("", |error| &*error.message);
            let finding = format!("\"{}\" can't be deleted: {message}", left.row.name);
            return Err(Wrong::new(What::Left, finding));
        }
        let (after, empty) = (self.outside.look(), (self.kit.fresh)().look());
        if after != empty {
            let finding = difference(
                "the outside, which is + and was - in the beginning",
                &after,
                &empty,
            );
            return Err(Wrong::new(What::Left, finding));
        }
        Ok(())
    }
}
