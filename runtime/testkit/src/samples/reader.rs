//! A sample that computes a number from its refs, possibly of its own kind, and publishes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, ErrorKind, Key, Outcome, RefView, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, Resource, json_message};

#[derive(Serialize, Deserialize)]
struct Factor(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Number(u64);

json_message!(Factor, format = 1);
json_message!(Number, format = 1);

#[derive(Default)]
struct Board(BTreeMap<Uid, u64>);

impl World for Board {
    type Seen = BTreeMap<Uid, u64>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    LooksOnlyAtItsSpec,
    ReadsPastItsRefs,
    TakesMissingForWell,
}

struct Reader {
    board: StandIn<Board>,
    flaw: Option<Flaw>,
}

impl Reader {
    fn sum(&self, context: &Context<Self>) -> Result<u64, Error> {
        let mut sum = context.spec().0;
        for view in context.refs() {
            sum = sum.wrapping_mul(31).wrapping_add(self.number(view)?);
        }
        if self.flaw == Some(Flaw::ReadsPastItsRefs)
            && let Ok(other) = context.controller().get(Key::new("number", "one"))
        {
            let number = other.state::<Number>().ok().flatten();
            sum += number.map_or(0, |number| number.0);
        }
        Ok(sum)
    }

    fn number(&self, view: &RefView) -> Result<u64, Error> {
        let missing = || {
            let message = format!("\"{}\" is not there", view.reference);
            Error::new(ErrorKind::Dependency(view.reference.clone()), "missing", message)
        };
        let number = view.target.as_deref().map(Resource::state_of::<Number>);
        match number {
            Some(Ok(Some(number))) if !view.failed => Ok(number.0),
            _ if self.flaw == Some(Flaw::TakesMissingForWell) => {
                panic!("\"{}\" has no number", view.reference)
            }
            _ => Err(missing()),
        }
    }
}

impl Reconciler for Reader {
    type Spec = Factor;
    type State = Number;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        if self.flaw == Some(Flaw::LooksOnlyAtItsSpec)
            && let Some(run) = &context.row().last_run
            && run
                .seen
                .as_ref()
                .is_some_and(|seen| seen.spec_version == context.row().spec_version)
            && context.row().error.is_none()
        {
            return done(Work::None);
        }
        let sum = self.sum(&context)?;
        self.board.call(|board| board.0.insert(uid, sum)).await?;
        note(&context, Number(sum)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.board.call(|board| board.0.remove(&uid)).await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Board>, Reader> {
    let reader = move |board: &StandIn<Board>| Reader {
        board: board.clone(),
        flaw,
    };
    Kit::new(StandIn::default, reader, |roll| Factor(roll.below(5)))
        .reads("number", |roll| Number(roll.below(100)))
        .chained()
}

#[test]
fn a_reader_that_looks_at_all_it_reads_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_readers_are_found() {
    finds(kit(Some(Flaw::LooksOnlyAtItsSpec)), Fault::StaleRef);
    finds(kit(Some(Flaw::ReadsPastItsRefs)), Fault::UndeclaredRead);
    finds(kit(Some(Flaw::TakesMissingForWell)), Fault::Panics);
}
