//! A sample that submits a job outside once, and looks at it until it is done.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{again_at, done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

/// Simulated time that a job takes.
const TAKES: Duration = Duration::from_secs(45);

/// Pause between two looks at a job.
const POLL: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
struct Task(String);

#[derive(PartialEq, Serialize, Deserialize)]
struct Finished(String);

json_message!(Task, format = 1);
json_message!(Finished, format = 1);

/// Jobs by the uid of their submitter and their key, with their start.
#[derive(Default)]
struct Farm(BTreeMap<(Uid, String), Instant>);

impl Farm {
    /// Returns the progress of a job, submitting it if necessary.
    fn submit(&mut self, key: (Uid, String)) -> Duration {
        self.0.entry(key).or_insert_with(Instant::now).elapsed()
    }
}

impl World for Farm {
    type Seen = Vec<(Uid, String)>;

    fn look(&self) -> Self::Seen {
        let task = |key: &str| key.split('#').next().unwrap_or_default().to_owned();
        self.0.keys().map(|(of, key)| (*of, task(key))).collect()
    }

    fn under_way(&self) -> Option<String> {
        let open = self.0.iter().find(|(_, at)| at.elapsed() < TAKES);
        open.map(|((_, task), _)| format!("a job runs for \"{task}\""))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    ForgetsJobsThatAreThere,
    SubmitsWithoutAKey,
    WaitsDeafly,
    AsksWithoutEnd,
}

struct Foreman {
    farm: StandIn<Farm>,
    flaw: Option<Flaw>,
}

impl Reconciler for Foreman {
    type Spec = Task;
    type State = Finished;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, task) = (context.uid(), context.spec().0.clone());
        if self.flaw == Some(Flaw::SubmitsWithoutAKey) && context.state() == Some(&Finished(task.clone())) {
            return done(Work::None);
        }
        let mut key = (uid, task.clone());
        if self.flaw == Some(Flaw::SubmitsWithoutAKey) {
            key.1 = format!("{task}#{}/{}", context.epoch(), context.invocation());
        }
        let stale = |(of, key): &(Uid, String)| *of == uid && !key.starts_with(&task);
        self.farm.call(|farm| farm.0.retain(|key, _| !stale(key))).await?;
        let is_there = self.farm.call(|farm| farm.0.contains_key(&key)).await?;
        let mut age = self.farm.call(|farm| farm.submit(key)).await?;
        while self.flaw == Some(Flaw::AsksWithoutEnd) && age < TAKES {
            age = self.farm.call(|farm| farm.submit((uid, task.clone()))).await?;
        }
        if matches!(self.flaw, Some(Flaw::SubmitsWithoutAKey | Flaw::WaitsDeafly)) {
            tokio::time::sleep(TAKES).await;
            age = TAKES;
        }
        if age < TAKES {
            if is_there && self.flaw == Some(Flaw::ForgetsJobsThatAreThere) {
                return done(Work::Checked);
            }
            return again_at(context.now().after(POLL));
        }
        note(&context, Finished(task)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.farm
            .call(|farm| farm.0.retain(|(of, _), _| *of != uid))
            .await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Farm>, Foreman> {
    let foreman = move |farm: &StandIn<Farm>| Foreman {
        farm: farm.clone(),
        flaw,
    };
    let kit = Kit::new(StandIn::default, foreman, |roll| {
        Task(roll.pick(&["dig", "fill", "rest"]).to_string())
    });
    match flaw {
        // This one is about something else than its patience.
        Some(Flaw::SubmitsWithoutAKey) => kit.cancel_within(TAKES * 2),
        _ => kit,
    }
}

#[test]
fn a_job_with_a_key_that_is_looked_at_again_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_jobs_are_found() {
    finds(kit(Some(Flaw::ForgetsJobsThatAreThere)), Fault::LosesRetrigger);
    finds(kit(Some(Flaw::SubmitsWithoutAKey)), Fault::NotCancelSafe);
    finds(kit(Some(Flaw::WaitsDeafly)), Fault::IgnoresCancel);
    finds(kit(Some(Flaw::AsksWithoutEnd)), Fault::Endless);
}
