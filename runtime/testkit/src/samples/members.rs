//! A sample with a set of objects: missing ones are created, surplus ones removed, and all of them with their resource.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

#[derive(Serialize, Deserialize)]
struct Count(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Has(u64);

json_message!(Count, format = 1);
json_message!(Has, format = 1);

#[derive(Default)]
struct Objects(BTreeSet<(Uid, u64)>);

impl World for Objects {
    type Seen = BTreeSet<(Uid, u64)>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }
}

impl Objects {
    fn of(&self, uid: Uid) -> Vec<u64> {
        let own = self.0.iter().filter(|(of, _)| *of == uid);
        own.map(|(_, number)| *number).collect()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    ForgetsToDelete,
    DeletesWhatItsStateSays,
    SwallowsErrors,
}

struct Keeper {
    objects: StandIn<Objects>,
    flaw: Option<Flaw>,
}

impl Keeper {
    /// Makes the set contain exactly the objects below a number.
    async fn have(&self, uid: Uid, count: u64) -> Result<bool, Error> {
        let have = self.objects.call(|objects| objects.of(uid)).await?;
        let surplus: Vec<u64> = have.iter().copied().filter(|number| *number >= count).collect();
        let missing: Vec<u64> = (0..count).filter(|number| !have.contains(number)).collect();
        for number in &missing {
            self.objects
                .call(|objects| objects.0.insert((uid, *number)))
                .await?;
        }
        for number in &surplus {
            self.objects
                .call(|objects| objects.0.remove(&(uid, *number)))
                .await?;
        }
        Ok(!missing.is_empty() || !surplus.is_empty())
    }

    async fn have_of(&self, context: &Context<Self>) -> Result<bool, Error> {
        let made = self.have(context.uid(), context.spec().0).await;
        match self.flaw {
            Some(Flaw::SwallowsErrors) => Ok(made.unwrap_or(false)),
            _ => made,
        }
    }
}

impl Reconciler for Keeper {
    type Spec = Count;
    type State = Has;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let changed = self.have_of(&context).await?;
        note(&context, Has(context.spec().0)).await?;
        done(if changed { Work::Built } else { Work::Checked })
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        match self.flaw {
            Some(Flaw::ForgetsToDelete) => return done(Work::None),
            Some(Flaw::DeletesWhatItsStateSays) => {
                for number in 0..context.state().map_or(0, |has| has.0) {
                    self.objects
                        .call(|objects| objects.0.remove(&(uid, number)))
                        .await?;
                }
            }
            _ => drop(self.have(uid, 0).await?),
        }
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Objects>, Keeper> {
    let keeper = move |objects: &StandIn<Objects>| Keeper {
        objects: objects.clone(),
        flaw,
    };
    Kit::new(StandIn::default, keeper, |roll| Count(1 + roll.below(3)))
}

#[test]
fn a_set_that_is_listed_before_it_is_changed_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_sets_are_found() {
    finds(kit(Some(Flaw::ForgetsToDelete)), Fault::LeavesBehind);
    finds(kit(Some(Flaw::DeletesWhatItsStateSays)), Fault::NotCancelSafe);
    finds(kit(Some(Flaw::SwallowsErrors)), Fault::SwallowsError);
}
