//! Sessions: a folder with what was booked, and parts that follow one another.

use std::fs;
use std::path::PathBuf;

use watershed_controller::Error;
use watershed_managers::{
    Desired, Done, EventMatch, Manager, Observation, Part as Owned, Rule, Stages, Step, View,
};

use crate::effects;
use crate::part::Parts;
use crate::spec::{Part, Session};
use crate::worker::{failed, stages};

/// The manager of sessions.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    pub(crate) lab: PathBuf,
}

impl Sessions {
    fn folder(&self, view: &View<Self>) -> PathBuf {
        self.lab.join("sessions").join(view.uid().to_string())
    }
}

impl Manager for Sessions {
    const KIND: &'static str = "session";
    type Spec = Session;
    type Details = ();

    fn stages(&self, _: &Session) -> Stages {
        let all = stages(["absent", "prepared", "active", "gone"]);
        all.clone().with_early("prepared").unwrap_or(all)
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<()>, Error> {
        let folder = self.folder(view);
        Ok(match (folder.exists(), folder.join("open").exists()) {
            (false, _) => Observation::Absent,
            (true, false) => Observation::at("prepared", ()),
            (true, true) => Observation::at("active", ()),
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let folder = self.folder(view);
        let result = match step.to.as_str() {
            "prepared" => effects::make(&folder).map(drop),
            "active" => fs::write(folder.join("open"), ""),
            _ => effects::remove(&self.lab, &folder, &view.uid().to_string()).map(drop),
        };
        result.map_err(|error| failed("change the session", &error))?;
        Ok(Done::At(step.to.clone()))
    }

    /// Each waits for the one before to be done, which is what its event says.
    fn parts(&self, view: &View<Self>) -> Vec<Owned> {
        let names = view.spec().parts.iter().zip(1..);
        let part = |(name, order): (&String, u32)| {
            let submitted = Rule::sets(EventMatch::of("lab.submitted"), "done");
            let desired = Desired::stage("active").on_event(submitted);
            let name = format!("{}.{name}", view.name());
            Owned::managed::<Parts>(name, desired, &Part {})
                .in_order(order)
                .gates_next("done")
        };
        names.map(part).collect()
    }
}
