//! Parts: one pod each. An event about a part completes it, and its pod goes.

use watershed_controller::{Error, Ref};
use watershed_managers::{
    Action, Desired, Done, Manager, Observation, Part as Owned, Stage, Stages, Step, View,
};

use crate::pod::Pods;
use crate::spec::{Part, Pod, WORKER};
use crate::worker::stages;

/// The manager of parts.
#[derive(Debug, Clone)]
pub(crate) struct Parts;

impl Manager for Parts {
    const KIND: &'static str = "part";
    type Spec = Part;
    type Details = ();

    fn stages(&self, _: &Part) -> Stages {
        let all = stages(["absent", "prepared", "active", "done", "gone"]);
        all.clone().with_early("prepared").unwrap_or(all)
    }

    /// A part is nothing by itself: it is where its steps have brought it.
    async fn observe(&self, view: &View<Self>) -> Result<Observation<()>, Error> {
        Ok(match view.stages().is_nothing(view.stage()) {
            true => Observation::Absent,
            false => Observation::At(view.stage().clone(), ()),
        })
    }

    fn next(&self, view: &View<Self>, goal: &Stage) -> Option<Step> {
        let to = view.stages().step(view.stage(), goal)?;
        let nothing = Action::new(to.as_str()).skipped("its pod does it");
        Some(Step::pipeline(to, [nothing]))
    }

    async fn act(&self, _: &View<Self>, step: &Step) -> Result<Done, Error> {
        Ok(Done::At(step.to.clone()))
    }

    fn parts(&self, view: &View<Self>) -> Vec<Owned> {
        let desired = match view.desired().as_str() {
            "done" => "gone",
            _ => "active",
        };
        let pod = Pod {
            worker: WORKER.to_owned(),
        };
        let name = format!("{}.pod", view.name());
        let owned = Owned::managed::<Pods>(name, Desired::stage(desired), &pod);
        vec![owned.with_refs([Ref::completed("worker", WORKER)])]
    }
}
