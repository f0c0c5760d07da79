//! A sample that appends in batches, with a checkpoint in the state after each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, write};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

/// Number of items that are appended in one call.
const BATCH: u64 = 2;

#[derive(Serialize, Deserialize)]
struct Upto(u64);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Checkpoint(u64);

json_message!(Upto, format = 1);
json_message!(Checkpoint, format = 1);

#[derive(Default)]
struct Logs(BTreeMap<Uid, Vec<u64>>);

impl World for Logs {
    type Seen = BTreeMap<Uid, Vec<u64>>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }
}

impl Logs {
    fn append(&mut self, uid: Uid, items: std::ops::Range<u64>) {
        self.0.entry(uid).or_default().extend(items);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    NotesBeforeItAppends,
    TrustsItsNote,
}

struct Batcher {
    logs: StandIn<Logs>,
    flaw: Option<Flaw>,
}

impl Batcher {
    /// Returns the number of items that exist already.
    async fn begin(&self, context: &Context<Self>, upto: u64) -> Result<u64, Error> {
        let uid = context.uid();
        let cut = |logs: &mut Logs| {
            let log = logs.0.entry(uid).or_default();
            log.truncate(upto as usize);
            log.len() as u64
        };
        let there = self.logs.call(cut).await?;
        Ok(match self.flaw {
            None => there,
            Some(_) => context.state().map_or(0, |note| note.0).min(upto),
        })
    }
}

/// Stores the progress. Later batches count from the last stored one, not from the start of the run.
async fn checkpoint(context: &Context<Batcher>, noted: &mut Option<u64>, upto: u64) -> Result<(), Error> {
    if *noted != Some(upto) {
        write(context, Checkpoint(upto)).await?;
        *noted = Some(upto);
    }
    Ok(())
}

impl Reconciler for Batcher {
    type Spec = Upto;
    type State = Checkpoint;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, upto) = (context.uid(), context.spec().0);
        let mut there = self.begin(&context, upto).await?;
        let mut noted = context.state().map(|note| note.0);
        let mut work = Work::Checked;
        while there < upto && !context.is_cancelled() {
            let next = upto.min(there + BATCH);
            if self.flaw == Some(Flaw::NotesBeforeItAppends) {
                checkpoint(&context, &mut noted, next).await?;
            }
            self.logs.call(|logs| logs.append(uid, there..next)).await?;
            checkpoint(&context, &mut noted, next).await?;
            (there, work) = (next, Work::Built);
        }
        checkpoint(&context, &mut noted, there).await?;
        done(work)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.logs.call(|logs| logs.0.remove(&uid)).await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Logs>, Batcher> {
    let batcher = move |logs: &StandIn<Logs>| Batcher {
        logs: logs.clone(),
        flaw,
    };
    Kit::new(StandIn::default, batcher, |roll| Upto(1 + roll.below(7)))
}

#[test]
fn an_append_that_begins_where_the_log_ends_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_batches_are_found() {
    finds(kit(Some(Flaw::NotesBeforeItAppends)), Fault::NotCancelSafe);
    finds(kit(Some(Flaw::TrustsItsNote)), Fault::NotCancelSafe);
}
