//! The test kit over the loop: three managers, whose processes are stopped and die at each of their awaits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::{Error, Uid, json_message};
use watershed_testkit::{Kit, Outside, Roll};

use crate::record::ManagedState;
use crate::{
    Action, Desired, Done, Managed, Manager, Observation, Policy, Stage, Stages, Step, Tries, View, Wanted,
};

/// A text that a thing is to hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Text(String);
json_message!(Text, format = 1);

/// Things outside: by owner the marks that steps have left on them.
#[derive(Clone, Default)]
struct Things(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    marks: BTreeMap<Uid, BTreeMap<String, String>>,
    is_in_trouble: bool,
}

impl Things {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("nobody panics with it")
    }

    async fn mark(&self, uid: Uid, mark: &str, text: &str) -> Result<(), Error> {
        tokio::task::yield_now().await;
        if self.world().is_in_trouble {
            return Err(Error::transient("outside", "it is in trouble"));
        }
        let mut world = self.world();
        world
            .marks
            .entry(uid)
            .or_default()
            .insert(mark.to_owned(), text.to_owned());
        Ok(())
    }

    async fn remove(&self, uid: Uid) -> Result<(), Error> {
        tokio::task::yield_now().await;
        self.world().marks.remove(&uid);
        Ok(())
    }

    fn of(&self, uid: Uid) -> Option<BTreeMap<String, String>> {
        self.world().marks.get(&uid).cloned()
    }
}

impl Outside for Things {
    type Seen = Vec<BTreeMap<String, String>>;

    /// Identities differ from play to play; what they hold does not.
    fn look(&self) -> Self::Seen {
        let mut seen: Vec<_> = self.world().marks.values().cloned().collect();
        seen.sort();
        seen
    }

    fn trouble(&self, is_in_trouble: bool) {
        self.world().is_in_trouble = is_in_trouble;
    }
}

fn quick() -> Policy {
    Policy {
        tries: Tries {
            timeout: Duration::from_secs(60),
            attempts: 50,
            base: Duration::from_millis(10),
            cap: Duration::from_millis(100),
        },
        observe_every: Duration::from_secs(86_400),
    }
}

/// One action for each step.
struct Plain(Things);

impl Manager for Plain {
    const KIND: &'static str = "plain";
    type Spec = Text;
    type Details = Text;

    fn stages(&self, _: &Text) -> Stages {
        Stages::new(["absent", "active", "gone"]).expect("three stages")
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Text>, Error> {
        tokio::task::yield_now().await;
        Ok(match self.0.of(view.uid()) {
            Some(marks) => Observation::At("active".into(), Text(marks["text"].clone())),
            None => Observation::Absent,
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        match step.to.as_str() {
            "active" => self.0.mark(view.uid(), "text", "there").await?,
            _ => self.0.remove(view.uid()).await?,
        }
        Ok(Done::At(step.to.clone()))
    }

    fn policy(&self) -> Policy {
        quick()
    }
}

/// Two stages, a pipeline between them, and a text that an edit changes: what holds another one is only prepared.
struct Piped(Things);

impl Manager for Piped {
    const KIND: &'static str = "piped";
    type Spec = Text;
    type Details = Text;

    fn stages(&self, _: &Text) -> Stages {
        Stages::new(["absent", "prepared", "active", "gone"]).expect("four stages")
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Text>, Error> {
        tokio::task::yield_now().await;
        let Some(marks) = self.0.of(view.uid()) else {
            return Ok(Observation::Absent);
        };
        // What is to be active is so only with the text that is wanted; of what is not, nothing may be left.
        let wanted = &view.spec().0;
        let is_active = match view.desired().as_str() {
            "active" => ["boot", "greet"]
                .iter()
                .all(|mark| marks.get(*mark) == Some(wanted)),
            _ => marks.contains_key("boot") || marks.contains_key("greet"),
        };
        let stage = if is_active { "active" } else { "prepared" };
        Ok(Observation::At(
            stage.into(),
            Text(format!("{} marks", marks.len())),
        ))
    }

    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        let to = view.stages().step(view.stage(), goal)?;
        Some(match to.as_str() {
            "active" => {
                let actions = [Action::new("boot"), Action::new("greet").after(["boot"])];
                Step::pipeline(to, actions)
            }
            _ => Step::to(to),
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let text = view.spec().0.clone();
        match (step.to.as_str(), view.action()) {
            ("prepared", _) => {
                // Downwards, what an active one has goes.
                self.0.remove(view.uid()).await?;
                self.0.mark(view.uid(), "place", "made").await?;
            }
            ("active", action) => self.0.mark(view.uid(), action, &text).await?,
            _ => self.0.remove(view.uid()).await?,
        }
        Ok(Done::At(step.to.clone()))
    }

    fn policy(&self) -> Policy {
        quick()
    }
}

/// Work that is not finished at its first attempt.
struct Slow(Things);

impl Manager for Slow {
    const KIND: &'static str = "slow";
    type Spec = Text;
    type Details = Text;

    fn stages(&self, _: &Text) -> Stages {
        Stages::new(["absent", "begun", "active", "gone"]).expect("four stages")
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<Text>, Error> {
        let marks = self.0.of(view.uid());
        let at = |stage: &str| Observation::At(stage.into(), Text(String::new()));
        Ok(match marks.map(|marks| marks.contains_key("done")) {
            Some(true) => at("active"),
            Some(false) => at("begun"),
            None => Observation::Absent,
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let uid = view.uid();
        match step.to.as_str() {
            "gone" => self.0.remove(uid).await?,
            "begun" => self.0.mark(uid, "begun", "yes").await?,
            _ if self
                .0
                .of(uid)
                .is_some_and(|marks| marks.contains_key("handed in")) =>
            {
                self.0.mark(uid, "done", "yes").await?;
            }
            _ => {
                self.0.mark(uid, "handed in", "yes").await?;
                return Ok(Done::RequeueAfter(Duration::from_secs(1)));
            }
        }
        Ok(Done::At(step.to.clone()))
    }

    fn policy(&self) -> Policy {
        quick()
    }
}

fn check<M: Manager<Spec = Text>>(
    manager: impl Fn(&Things) -> M + Clone + 'static,
    desired: &'static [&'static str],
) {
    let make = manager.clone();
    let options = Managed::new(manager(&Things::default())).options();
    Kit::new(
        Things::default,
        move |things| Managed::new(manager(things)),
        move |roll: &mut Roll| {
            let stage = *roll.pick(desired);
            Wanted::new(
                Desired::stage(stage),
                Text((*roll.pick(&["one", "two"])).to_owned()),
            )
        },
    )
    .options(options)
    .beside(move |things, builder| Managed::new(make(things)).register_beside(builder))
    // The way to it, transitions and times, is another one each time.
    .state(|state: &ManagedState<M::Details>| state.record.stage.to_string())
    .check();
}

#[test]
fn a_manager_of_one_step_is_right_wherever_its_process_ends() {
    check(|things| Plain(things.clone()), &["active", "gone", "absent"]);
}

#[test]
fn a_manager_with_a_pipeline_is_right_wherever_its_process_ends() {
    check(|things| Piped(things.clone()), &["active", "prepared", "gone"]);
}

#[test]
fn a_manager_whose_work_takes_long_is_right_wherever_its_process_ends() {
    check(|things| Slow(things.clone()), &["active", "gone"]);
}
