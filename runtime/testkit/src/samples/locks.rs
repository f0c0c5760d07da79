//! A sample with a value guarded by a fencing token: calls with a lower epoch than the last are refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Epoch, Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

#[derive(Serialize, Deserialize)]
struct Value(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Set(u64);

json_message!(Value, format = 1);
json_message!(Set, format = 1);

#[derive(Default)]
struct Guarded {
    values: BTreeMap<Uid, u64>,
    token: Epoch,
}

impl World for Guarded {
    type Seen = BTreeMap<Uid, u64>;

    fn look(&self) -> Self::Seen {
        self.values.clone()
    }
}

impl Guarded {
    /// Performs a call, unless one with a later token came before.
    fn guard<T>(&mut self, token: Epoch, act: impl FnOnce(&mut BTreeMap<Uid, u64>) -> T) -> Result<T, Error> {
        if token < self.token {
            let message = format!("epoch {token} is over, it is {}", self.token);
            return Err(Error::permanent("fenced", message));
        }
        self.token = token;
        Ok(act(&mut self.values))
    }
}

/// A flaw: the reconciler claims the highest epoch of all.
#[derive(Clone, Copy, PartialEq)]
struct IgnoresItsEpoch;

struct Setter {
    guarded: StandIn<Guarded>,
    flaw: Option<IgnoresItsEpoch>,
}

impl Setter {
    async fn change<T>(
        &self,
        epoch: Epoch,
        act: impl FnOnce(&mut BTreeMap<Uid, u64>) -> T,
    ) -> Result<T, Error> {
        let token = match self.flaw {
            None => epoch,
            Some(IgnoresItsEpoch) => Epoch(u64::MAX),
        };
        self.guarded.call(|guarded| guarded.guard(token, act)).await?
    }
}

impl Reconciler for Setter {
    type Spec = Value;
    type State = Set;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, value) = (context.uid(), context.spec().0);
        self.change(context.epoch(), |values| values.insert(uid, value))
            .await?;
        note(&context, Set(value)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.change(context.epoch(), |values| values.remove(&uid)).await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<IgnoresItsEpoch>) -> Kit<StandIn<Guarded>, Setter> {
    let setter = move |guarded: &StandIn<Guarded>| Setter {
        guarded: guarded.clone(),
        flaw,
    };
    Kit::new(StandIn::default, setter, |roll| Value(roll.below(4))).fenced()
}

#[test]
fn a_value_behind_a_fencing_token_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_locks_are_found() {
    finds(kit(Some(IgnoresItsEpoch)), Fault::IgnoresEpoch);
}
