//! The test of a reconciler with the kit, and the kit's report on a faulty reconciler.
//!
//! In a crate of your own, put `Buckets` and the calls of [`Kit`] into a `#[test]`, and add `watershed-testkit` to the
//! dev-dependencies.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use watershed_controller::{Context, Error, Outcome, Reconciler, Work, json_message};
use watershed_testkit::{Kit, Outside};

/// Bucket that should exist, with a quota, as a spec.
#[derive(serde::Serialize, serde::Deserialize)]
struct Bucket {
    quota: u64,
}

/// Id that the provider gave the bucket, as a state.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
struct Id(u64);

json_message!(Bucket, format = 1);
json_message!(Id, format = 1);

/// The provider, simulated for tests: buckets by id, each with a tag and a quota.
#[derive(Clone, Default)]
struct Buckets(Arc<Mutex<BTreeMap<u64, (String, u64)>>>);

impl Buckets {
    /// Makes a call with an await before and after its effect; the kit may interrupt it at either.
    async fn call<T>(&self, act: impl FnOnce(&mut BTreeMap<u64, (String, u64)>) -> T) -> T {
        tokio::task::yield_now().await;
        let answer = act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::yield_now().await;
        answer
    }

    async fn create(&self, tag: &str) -> u64 {
        self.call(|buckets| {
            let id = buckets.keys().next_back().map_or(1, |last| last + 1);
            buckets.insert(id, (tag.to_owned(), 0));
            id
        })
        .await
    }
}

impl Outside for Buckets {
    type Seen = Vec<(String, u64)>;

    /// Returns tags and quotas without ids, because the provider may choose different ids.
    fn look(&self) -> Self::Seen {
        let buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen: Vec<_> = buckets.values().cloned().collect();
        seen.sort();
        seen
    }
}

/// Way in which a reconciler finds the bucket of a resource again.
#[derive(Clone, Copy, PartialEq)]
enum Finds {
    /// By the id in the state, which is missing if the process died before writing it.
    ByState,
    /// By the tag that the bucket was created with.
    ByTag,
}

struct Keeper {
    buckets: Buckets,
    finds: Finds,
}

impl Keeper {
    async fn find(&self, context: &Context<Self>) -> Option<u64> {
        match self.finds {
            Finds::ByState => context.state().map(|id| id.0),
            Finds::ByTag => {
                let tag = context.uid().to_string();
                let find = |buckets: &mut BTreeMap<u64, (String, u64)>| {
                    let found = buckets.iter().find(|(_, bucket)| bucket.0 == tag);
                    found.map(|(id, _)| *id)
                };
                self.buckets.call(find).await
            }
        }
    }
}

impl Reconciler for Keeper {
    type Spec = Bucket;
    type State = Id;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let id = match self.find(&context).await {
            Some(id) => id,
            None => self.buckets.create(&context.uid().to_string()).await,
        };
        context.set_state(&Id(id)).await?;
        let quota = context.spec().quota;
        self.buckets
            .call(|buckets| {
                if let Some(bucket) = buckets.get_mut(&id) {
                    bucket.1 = quota;
                }
            })
            .await;
        Ok(Outcome::from_work(Work::Built))
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if let Some(id) = self.find(&context).await {
            self.buckets.call(|buckets| buckets.remove(&id)).await;
        }
        Ok(Outcome::from_work(Work::Dropped))
    }
}

fn kit(finds: Finds) -> Kit<Buckets, Keeper> {
    let keeper = move |buckets: &Buckets| Keeper {
        buckets: buckets.clone(),
        finds,
    };
    Kit::new(Buckets::default, keeper, |roll| Bucket {
        quota: 10 * (1 + roll.below(3)),
    })
    // The id may be another one each time.
    .state(|_| String::new())
}

#[allow(clippy::print_stdout, reason = "an example shows what happens")]
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    match kit(Finds::ByState).find() {
        Ok(_) => return Err("the fault was not found".into()),
        Err(report) => println!("{report}\n"),
    }
    let passed = kit(Finds::ByTag).check();
    println!("{passed:?}");
    Ok(())
}
