//! Workers: a folder with a place for each pod that runs there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use watershed_controller::Error;
use watershed_managers::{Done, Manager, Observation, Stages, Step, View};

use crate::effects;
use crate::spec::Worker;

/// The manager of workers.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    pub(crate) lab: PathBuf,
}

/// Returns the folder of a worker.
fn folder(lab: &Path, name: &str) -> PathBuf {
    lab.join("workers").join(name)
}

/// Says in words what could not be done.
pub(crate) fn failed(what: &str, error: &io::Error) -> Error {
    Error::transient("lab", format!("can't {what}: {error}"))
}

impl Manager for Workers {
    const KIND: &'static str = "worker";
    type Spec = Worker;
    type Details = ();

    fn stages(&self, _: &Worker) -> Stages {
        stages(["absent", "active", "gone"])
    }

    async fn observe(&self, view: &View<Self>) -> Result<Observation<()>, Error> {
        let is_there = folder(&self.lab, view.name()).join("room").exists();
        Ok(match is_there {
            true => Observation::at("active", ()),
            false => Observation::Absent,
        })
    }

    async fn act(&self, view: &View<Self>, step: &Step) -> Result<Done, Error> {
        let path = folder(&self.lab, view.name());
        let result = match step.to.as_str() {
            "active" => effects::make(&path).and_then(|is_first| {
                fs::write(path.join("room"), view.spec().room.to_string())?;
                Ok(is_first)
            }),
            _ => effects::remove(&self.lab, &path, &view.uid().to_string()),
        };
        let is_first = result.map_err(|error| failed("change the worker", &error))?;
        if is_first {
            let line = format!("{} {}", step.to, view.name());
            effects::note(&self.lab, &line).map_err(|error| failed("write", &error))?;
        }
        Ok(Done::At(step.to.clone()))
    }
}

/// Returns a lifecycle that is written down in this program.
pub(crate) fn stages<const N: usize>(names: [&str; N]) -> Stages {
    match Stages::new(names) {
        Ok(stages) => stages,
        Err(error) => unreachable!("distinct names: {error}"),
    }
}

/// Takes a place on a worker; false if it has none. Who has one keeps it.
pub(crate) fn take_place(lab: &Path, worker: &str, mark: &str) -> io::Result<bool> {
    let folder = folder(lab, worker);
    let room: usize = fs::read_to_string(folder.join("room"))?
        .trim()
        .parse()
        .unwrap_or(0);
    // Others count and take at the same time.
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let places = folder.join("places");
    fs::create_dir_all(&places)?;
    let taken = fs::read_dir(&places)?.filter_map(Result::ok);
    let others = taken.filter(|place| place.file_name() != mark).count();
    if others >= room {
        return Ok(false);
    }
    File::create(places.join(mark))?;
    Ok(true)
}

/// Gives a place back, if it was taken.
pub(crate) fn leave_place(lab: &Path, worker: &str, mark: &str) -> io::Result<()> {
    match fs::remove_file(folder(lab, worker).join("places").join(mark)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
