//! The driver's timer, which is moved at nearly every turn and seldom fires.
//!
//! A timer that is set anew wakes the thread that waits for timers. With two threads that costs more than most turns do,
//! and a thread that was woken looks for work, which it takes from the one that has it at hand. So a timer stays set when
//! nothing is waited for any more, and to wait longer costs nothing until it goes off.

use std::future::pending;
use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer that stays registered when it is moved to a later time.
#[derive(Debug)]
pub(crate) struct Timer(Pin<Box<Sleep>>);

impl Timer {
    pub(crate) fn new() -> Self {
        Self(Box::pin(sleep_until(Instant::now())))
    }

    /// Waits until this time, or forever if there is none. An earlier registered time may cause one spurious wake-up.
    ///
    /// Cancel-safe.
    pub(crate) async fn at(&mut self, due: Option<Instant>) {
        let Some(due) = due else {
            return pending().await;
        };
        if due < self.0.deadline() {
            self.0.as_mut().reset(due);
        }
        loop {
            self.0.as_mut().await;
            if due <= self.0.deadline() {
                return;
            }
            self.0.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const STEP: Duration = Duration::from_secs(1);

    /// Waits one step for the timer; returns whether it fired, and the number of steps since `start`.
    async fn goes_off(timer: &mut Timer, start: Instant, due: Option<u32>) -> (bool, u32) {
        let due = due.map(|steps| start + STEP * steps);
        let went_off = timeout(STEP, timer.at(due)).await.is_ok();
        let steps = start.elapsed().as_secs_f64() / STEP.as_secs_f64();
        (went_off, steps.round() as u32)
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_off_at_the_time_that_was_set_last() {
        let (mut timer, start) = (Timer::new(), Instant::now());
        assert_eq!(goes_off(&mut timer, start, None).await, (false, 1));
        assert_eq!(goes_off(&mut timer, start, Some(9)).await, (false, 2));
        // Earlier than it was set for.
        assert_eq!(goes_off(&mut timer, start, Some(3)).await, (true, 3));
        assert_eq!(goes_off(&mut timer, start, Some(6)).await, (false, 4));
        // For nothing, or later: what it was set for passes.
        assert_eq!(goes_off(&mut timer, start, None).await, (false, 5));
        assert_eq!(goes_off(&mut timer, start, Some(8)).await, (false, 6));
        assert_eq!(goes_off(&mut timer, start, Some(8)).await, (false, 7));
        assert_eq!(goes_off(&mut timer, start, Some(8)).await, (true, 8));
        // What is past goes off at once, as often as it is asked.
        assert_eq!(goes_off(&mut timer, start, Some(2)).await, (true, 8));
        assert_eq!(goes_off(&mut timer, start, Some(2)).await, (true, 8));
    }
}
