//! The outside of the samples: a value in memory behind calls that wait, and that fail while there is trouble.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use watershed_core::{Error, Outcome, Timestamp, Work};

use crate::Outside;
use crate::sync::lock;
use watershed_controller::Context;
use watershed_controller::Reconciler;

/// The value behind the calls.
pub(super) trait World: Default + Send + 'static {
    type Seen: PartialEq + fmt::Debug;

    fn look(&self) -> Self::Seen;

    fn wrong(&self) -> Option<String> {
        None
    }

    fn under_way(&self) -> Option<String> {
        None
    }
}

/// An outside in memory; clones share the same value.
#[derive(Default)]
pub(super) struct StandIn<W> {
    world: Arc<Mutex<W>>,
    fails: Arc<AtomicBool>,
}

impl<W> Clone for StandIn<W> {
    fn clone(&self) -> Self {
        Self {
            world: Arc::clone(&self.world),
            fails: Arc::clone(&self.fails),
        }
    }
}

impl<W> StandIn<W> {
    fn lock(&self) -> MutexGuard<'_, W> {
        lock(&self.world)
    }

    /// Makes a call, with an await before and after it is carried out.
    pub(super) async fn call<T>(&self, act: impl FnOnce(&mut W) -> T) -> Result<T, Error> {
        let result = self.call_at_once(act).await?;
        tokio::task::yield_now().await;
        Ok(result)
    }

    /// Makes a call that returns as soon as it is carried out.
    pub(super) async fn call_at_once<T>(&self, act: impl FnOnce(&mut W) -> T) -> Result<T, Error> {
        tokio::task::yield_now().await;
        if self.fails.load(Ordering::Relaxed) {
            return Err(Error::transient("outside", "the outside is in trouble"));
        }
        Ok(act(&mut self.lock()))
    }

    /// Changes the value at once, without a call, as a destructor can.
    pub(super) fn act<T>(&self, act: impl FnOnce(&mut W) -> T) -> T {
        act(&mut self.lock())
    }
}

impl<W: World> Outside for StandIn<W> {
    type Seen = W::Seen;

    fn look(&self) -> W::Seen {
        self.lock().look()
    }

    fn wrong(&self) -> Option<String> {
        self.lock().wrong()
    }

    fn under_way(&self) -> Option<String> {
        self.lock().under_way()
    }

    fn trouble(&self, begins: bool) {
        self.fails.store(begins, Ordering::Relaxed);
    }
}

/// Writes a state, unless it was there when the run began: for samples that write once.
pub(super) async fn note<R: Reconciler>(context: &Context<R>, state: R::State) -> Result<(), Error>
where
    R::State: PartialEq,
{
    if context.state() == Some(&state) {
        return Ok(());
    }
    write(context, state).await
}

pub(super) async fn write<R: Reconciler>(context: &Context<R>, state: R::State) -> Result<(), Error> {
    Ok(context.set_state(&state).await?)
}

pub(super) fn done(work: Work) -> Result<Outcome, Error> {
    Ok(Outcome::from_work(work))
}

pub(super) fn again_at(at: Timestamp) -> Result<Outcome, Error> {
    Ok(Outcome {
        work: Work::Checked,
        retrigger: Some(at),
        ..Outcome::default()
    })
}
