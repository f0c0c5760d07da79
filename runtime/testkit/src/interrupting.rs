//! Interruptions of a play, at the point that an invocation has reached.

use std::time::Duration;

use watershed_core::Uid;

use crate::fault::Wrong;
use crate::outside::Outside;
use crate::play::Play;
use crate::probe::Reached;
use crate::script::{Action, Cut, How, Point};
use watershed_controller::Reconciler;
use watershed_controller::Refresh;

/// Number of turns and seconds in which a frozen process may find out that it has lost its lease.
const LAST_GASPS: u32 = 40;

/// Number of these turns in which no time passes.
const TURNS: u32 = 20;

impl<O: Outside, R: Reconciler> Play<'_, O, R> {
    /// Interrupts the invocation that reached the point; the next interruption counts from there.
    pub(super) async fn cut(&mut self, cut: &Cut, next: Option<&Cut>) -> Result<(), Wrong> {
        self.passed.steps += 1;
        let reached = self.control.take_reached();
        self.story.tell(|| at(cut.at, reached.as_ref()));
        let uid = reached.map(|reached| reached.row.uid);
        match cut.how {
            How::Crash => {
                self.story.tell(|| "there its process dies".to_owned());
                self.arm(next);
                return self.replace().await;
            }
            How::Stop => {
                self.story
                    .tell(|| "there its process is stopped, and another one starts".to_owned());
                self.drop_process().await;
                self.arm(next);
                return self.begin().await;
            }
            How::Lose => {
                self.story
                    .tell(|| "there its process loses the lease, and another one starts".to_owned());
                self.process().pulse.evict();
                if let Some(uid) = uid {
                    // Something to be stored, by which it finds out.
                    let _ = self.process().controller.refresh(uid, Refresh::Plain).await;
                }
                self.drop_process().await;
                self.arm(next);
                return self.begin().await;
            }
            How::Freeze { seed } => return self.freeze(uid, seed, next).await,
            How::Ask => {
                self.story
                    .tell(|| "there a reconcile is asked for, which cancels it".to_owned());
                if let Some(uid) = uid {
                    let _ = self.process().controller.reconcile(uid).await;
                }
            }
            How::Edit { seed } => self.edit(uid, seed).await?,
            How::Delete => {
                if let Some(place) = self.place_of(uid) {
                    self.act(&Action::Delete { place }).await?;
                }
            }
            How::Rename { to } => {
                if let Some(place) = self.place_of(uid) {
                    self.act(&Action::Rename { place, to }).await?;
                }
            }
            How::Give { given, seed } => {
                self.give(given, seed)?;
                self.declare().await?;
            }
        }
        self.arm(next);
        self.control.release();
        Ok(())
    }

    fn place_of(&self, uid: Option<Uid>) -> Option<usize> {
        uid.and_then(|uid| self.things.place_of(uid))
    }

    async fn drop_process(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
        self.control.release();
    }

    /// Gives a resource another spec, if it is still wanted.
    async fn edit(&mut self, uid: Option<Uid>, seed: u64) -> Result<(), Wrong> {
        let Some(place) = self.place_of(uid) else {
            return Ok(());
        };
        let refs = self.things.places[place].as_ref().map(|thing| thing.refs.clone());
        self.put(place, seed, refs.unwrap_or_default())?;
        self.declare().await
    }

    /// Freezes the process until another one has taken over and come to rest.
    async fn freeze(&mut self, uid: Option<Uid>, seed: u64, next: Option<&Cut>) -> Result<(), Wrong> {
        self.passed.frozen += 1;
        self.story
            .tell(|| "there its process stands still, and another one takes the lease".to_owned());
        let next_process = self.started().await?;
        let frozen = self.process.replace(next_process);
        self.edit(uid, seed).await?;
        self.until_rest().await?;
        self.story
            .tell(|| "all comes to rest; then the first process goes on".to_owned());
        self.control.release();
        if let Some(frozen) = frozen {
            for round in 0..LAST_GASPS {
                if frozen.pulse.is_empty() {
                    break;
                }
                match round {
                    0..TURNS => tokio::task::yield_now().await,
                    _ => tokio::time::sleep(Duration::from_secs(1)).await,
                }
            }
            frozen.bury().await;
        }
        self.arm(next);
        Ok(())
    }
}

fn at(point: Point, reached: Option<&Reached>) -> String {
    let who = reached.map_or_else(|| "an invocation".to_owned(), ToString::to_string);
    match point {
        Point::Await(0) => format!("{who} is about to begin"),
        Point::Await(waited) => format!("{who} waits for the {}", nth(waited)),
        Point::End => format!("{who} is done, and nobody has heard of it"),
        Point::Commit { durable: true } => {
            "what an invocation came to is stored, and nobody has heard of it".into()
        }
        Point::Commit { durable: false } => "what an invocation came to is about to be stored".into(),
    }
}

fn nth(count: usize) -> String {
    match count {
        1 => "first time".to_owned(),
        2 => "second time".to_owned(),
        3 => "third time".to_owned(),
        count => format!("{count}th time"),
    }
}
