//! A sample with a ledger whose total matters: an entry must count once, however often its run is repeated.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

#[derive(Serialize, Deserialize)]
struct Amount(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Posted(u64);

json_message!(Amount, format = 1);
json_message!(Posted, format = 1);

#[derive(Default)]
struct Ledger {
    entries: BTreeMap<Uid, u64>,
    /// Sum of entries without a key.
    loose: i64,
}

impl World for Ledger {
    type Seen = i64;

    fn look(&self) -> i64 {
        self.loose + self.entries.values().sum::<u64>() as i64
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    PostsEachTime,
    PostsTheDifferenceFromItsState,
    PostsAndNotesInOneBreath,
    RemembersInMemory,
}

struct Clerk {
    ledger: StandIn<Ledger>,
    flaw: Option<Flaw>,
    /// In-memory record of entries, used only by a flawed variant.
    memory: Mutex<BTreeMap<Uid, u64>>,
}

impl Clerk {
    async fn post(&self, context: &Context<Self>) -> Result<(), Error> {
        let (uid, amount) = (context.uid(), context.spec().0);
        let loose = match self.flaw {
            None => {
                self.ledger
                    .call(|ledger| ledger.entries.insert(uid, amount))
                    .await?;
                return Ok(());
            }
            Some(Flaw::PostsEachTime) => amount as i64,
            Some(Flaw::PostsTheDifferenceFromItsState | Flaw::PostsAndNotesInOneBreath) => {
                amount as i64 - context.state().map_or(0, |posted| posted.0) as i64
            }
            Some(Flaw::RemembersInMemory) => {
                let before = self.remembered(uid);
                if before == Some(amount) {
                    return Ok(());
                }
                amount as i64 - before.unwrap_or(0) as i64
            }
        };
        if self.flaw == Some(Flaw::PostsAndNotesInOneBreath) {
            return self.ledger.call_at_once(|ledger| ledger.loose += loose).await;
        }
        let post = |ledger: &mut Ledger| {
            ledger.loose += loose;
            self.memory
                .lock()
                .expect("nobody panics with it")
                .insert(uid, amount);
        };
        self.ledger.call(post).await
    }

    fn remembered(&self, uid: Uid) -> Option<u64> {
        let memory = self.memory.lock().expect("nobody panics with it");
        memory.get(&uid).copied()
    }
}

impl Reconciler for Clerk {
    type Spec = Amount;
    type State = Posted;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        self.post(&context).await?;
        note(&context, Posted(context.spec().0)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        let posted = context.state().map_or(0, |posted| posted.0) as i64;
        let loose = if self.flaw.is_some() { posted } else { 0 };
        let undo = |ledger: &mut Ledger| {
            ledger.entries.remove(&uid);
            ledger.loose -= loose;
        };
        if self.flaw == Some(Flaw::PostsAndNotesInOneBreath) {
            self.ledger.call_at_once(undo).await?;
            note(&context, Posted(0)).await?;
        } else {
            self.ledger.call(undo).await?;
        }
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Ledger>, Clerk> {
    let clerk = move |ledger: &StandIn<Ledger>| Clerk {
        ledger: ledger.clone(),
        flaw,
        memory: Mutex::default(),
    };
    Kit::new(StandIn::default, clerk, |roll| Amount(1 + roll.below(5)))
}

#[test]
fn an_entry_with_a_key_of_its_own_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_ledgers_are_found() {
    finds(kit(Some(Flaw::PostsEachTime)), Fault::NotIdempotent);
    finds(
        kit(Some(Flaw::PostsTheDifferenceFromItsState)),
        Fault::NotCancelSafe,
    );
    finds(kit(Some(Flaw::PostsAndNotesInOneBreath)), Fault::NotCrashSafe);
    finds(kit(Some(Flaw::RemembersInMemory)), Fault::MemoryOnly);
}
