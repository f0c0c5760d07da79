//! Containers of one state folder: their state in the engine, and the work of this process on them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime};

use bollard::query_parameters::{ListContainersOptions, RemoveContainerOptions, RenameContainerOptions};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;
use watershed_core::Timestamp;
use watershed_locks::Unpoisoned;

use super::engine::{Engine, Failed};
use super::label::Mark;
use super::observe::{Details, Life, Listed, boot_time, filters};
use super::table::Table;
use crate::backend::{Error, News, Observation, StartId};

/// The most unread news of a slow receiver; older ones are dropped, and a listing makes up for them.
const MAX_NEWS: usize = 4_096;
/// The most containers that are inspected at once; the engine connection has its own bound.
const LOOKS_AT_ONCE: usize = 8;
/// Time limit of the look for containers that an earlier state folder with the same path left.
const FIRST_LOOK: Duration = Duration::from_secs(5);

/// The shared state about the containers of one state folder.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) engine: Engine,
    /// Label value of the state folder.
    pub(super) folder: String,
    /// Marker file, which exists once containers were started: without it, no listing is requested.
    marker: PathBuf,
    pub(super) is_used: watch::Sender<bool>,
    /// True once the engine was asked for containers despite a missing marker file.
    has_looked: AtomicBool,
    /// True once the highest epoch in the labels of all containers is known.
    has_learned: AtomicBool,
    pub(super) news: broadcast::Sender<News>,
    table: Mutex<Table>,
}

impl Place {
    pub(super) fn new(engine: Engine, folder: String, marker: PathBuf) -> Self {
        Self {
            engine,
            folder,
            is_used: watch::Sender::new(marker.exists()),
            marker,
            has_looked: AtomicBool::new(false),
            has_learned: AtomicBool::new(false),
            news: broadcast::channel(MAX_NEWS).0,
            table: Mutex::default(),
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        // Changes of the table are single insertions and removals; a panic in between leaves nothing half done.
        self.table.lock().unpoisoned()
    }

    /// Refuses stale epochs (W13). A higher one makes all earlier epochs stale.
    pub(super) fn enter(&self, epoch: u64) -> Result<(), Error> {
        let mut table = self.table();
        let newest = table.newest_epoch;
        if epoch < newest {
            return Err(Error::StaleEpoch { epoch, newest });
        }
        table.newest_epoch = epoch;
        Ok(())
    }

    /// Learns the highest epoch from one listing of all containers, unless done before. Later, scans reveal new
    /// holders.
    pub(super) async fn learn_epoch(&self) -> Result<(), Error> {
        if !self.has_learned.load(Ordering::Relaxed) {
            self.containers(None).await?;
            self.has_learned.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Creates the marker file before the first container.
    pub(super) fn mark_used(&self) -> Result<(), Error> {
        if *self.is_used.borrow() {
            return Ok(());
        }
        std::fs::write(&self.marker, &self.folder).map_err(|error| Error::Unreachable {
            backend: super::NAME,
            message: format!("can't write `{}`: {error}", self.marker.display()),
        })?;
        self.is_used.send_replace(true);
        Ok(())
    }

    /// Returns all containers of the state folder, or of one uid.
    pub(super) async fn containers(&self, uid: Option<&str>) -> Result<Vec<Listed>, Failed> {
        let client = self.engine.client().await?;
        let options = ListContainersOptions {
            all: true,
            filters: Some(filters(&self.folder, uid)),
            ..ListContainersOptions::default()
        };
        let rows = self.engine.call(client.list_containers(Some(options))).await?;
        let found: Vec<Listed> = rows.into_iter().filter_map(Listed::read).collect();
        let mut table = self.table();
        for one in &found {
            // What another holder has started says that there was one.
            table.newest_epoch = table.newest_epoch.max(one.labels.epoch);
            table
                .containers
                .insert(one.labels.start.clone(), one.container.clone());
        }
        drop(table);
        Ok(found)
    }

    /// Lists the observations of all containers, in the order of start ids.
    pub(super) async fn observe(&self) -> Result<Vec<Observation>, Error> {
        let mut found = BTreeMap::new();
        // Looked at first: what is made meanwhile is in the engine's list then.
        for (id, making) in &self.table().making {
            found.insert(id.clone(), making.observation.clone());
        }
        if self.is_worth_asking().await {
            let listed = self.containers(None).await?;
            let details = self.details_of(&listed).await?;
            self.drop_what_is_gone(&listed);
            for one in listed.into_iter().filter(|one| !one.is_kept()) {
                let details = details.get(&one.container);
                let is_making = found.contains_key(&one.labels.start);
                match (one.life, details) {
                    // One that nobody is about to start is no start: it is ordered again.
                    (Life::Made, _) => {}
                    // It was removed meanwhile.
                    (_, None) => {}
                    // Its end is told by who made it.
                    (Life::Ended, _) if is_making && self.is_failing(&one.labels.start) => {}
                    (_, Some(details)) => {
                        found.insert(one.labels.start.clone(), one.observe(details));
                    }
                }
            }
        }
        Ok(found.into_values().collect())
    }

    /// Returns true if a start has failed and the remains of its container are being removed.
    fn is_failing(&self, start: &StartId) -> bool {
        let table = self.table();
        let making = table.making.get(start);
        making.is_some_and(|making| !making.observation.phase.is_alive())
    }

    /// Returns true if containers may exist. Without the marker file the engine is asked once, since containers of an
    /// earlier state folder with the same path may still run (W13).
    async fn is_worth_asking(&self) -> bool {
        if *self.is_used.borrow() {
            return true;
        }
        if self.has_looked.swap(true, Ordering::Relaxed) || !self.engine.is_there() {
            return false;
        }
        let looked = timeout(FIRST_LOOK, self.containers(None)).await;
        let has_some = matches!(looked, Ok(Ok(found)) if !found.is_empty());
        has_some && self.mark_used().is_ok()
    }

    /// Returns the details of containers, inspecting those that changed.
    async fn details_of(&self, listed: &[Listed]) -> Result<BTreeMap<String, Details>, Failed> {
        let mut looks = Vec::new();
        for one in listed
            .iter()
            .filter(|one| !one.is_kept() && one.life != Life::Made)
        {
            looks.push(async move { Ok((one.container.clone(), self.details(one).await?)) });
        }
        let details: Vec<(String, Option<Details>)> = stream::iter(looks)
            .buffer_unordered(LOOKS_AT_ONCE)
            .try_collect()
            .await?;
        let known = details.into_iter();
        Ok(known.filter_map(|(id, details)| Some((id, details?))).collect())
    }

    /// Returns the details of a container, from memory if unchanged; none if the container is gone.
    pub(super) async fn details(&self, listed: &Listed) -> Result<Option<Details>, Failed> {
        let known = self.table().details.get(&listed.container).copied();
        if let Some(known) = known.filter(|known| known.ended.is_some() || listed.is_alive()) {
            return Ok(Some(known));
        }
        self.ask_details(&listed.container, listed.labels.ordered).await
    }

    /// Inspects a container; none if it is gone.
    pub(super) async fn ask_details(
        &self,
        container: &str,
        ordered: Timestamp,
    ) -> Result<Option<Details>, Failed> {
        let client = self.engine.client().await?;
        let state = match self.engine.call(client.inspect_container(container, None)).await {
            Ok(found) => found.state.unwrap_or_default(),
            Err(failed) if failed.is_missing() => return Ok(None),
            Err(failed) => return Err(failed),
        };
        let details = Details::read(&state, ordered, boot());
        self.table().details.insert(container.to_owned(), details);
        Ok(Some(details))
    }

    /// Forgets details of containers that no longer exist.
    fn drop_what_is_gone(&self, listed: &[Listed]) {
        let containers: BTreeSet<&str> = listed.iter().map(|one| one.container.as_str()).collect();
        let mut table = self.table();
        table
            .details
            .retain(|container, _| containers.contains(container.as_str()));
        table
            .containers
            .retain(|_, container| containers.contains(container.as_str()));
        let known: BTreeSet<StartId> = table.containers.keys().cloned().collect();
        table.overdue.retain(|(start, _), _| known.contains(start));
    }

    /// Renames a container to carry a mark. Succeeds if the container is gone.
    pub(super) async fn mark(&self, listed: &Listed, mark: &Mark) -> Result<(), Failed> {
        if listed.mark == *mark {
            return Ok(());
        }
        let client = self.engine.client().await?;
        let name = mark.put_on(&listed.name);
        let options = RenameContainerOptions { name };
        let renamed = client.rename_container(&listed.container, options);
        match self.engine.call(renamed).await {
            Err(failed) if !failed.is_missing() => Err(failed),
            _ => Ok(()),
        }
    }

    /// Removes a container with its anonymous volumes (W14). Succeeds if the container is gone.
    pub(super) async fn remove(&self, container: &str, force: bool) -> Result<(), Failed> {
        let client = self.engine.client().await?;
        let options = RemoveContainerOptions {
            v: true,
            force,
            ..RemoveContainerOptions::default()
        };
        let removed = client.remove_container(container, Some(options));
        match self.engine.call(removed).await {
            Err(failed) if failed.is_missing() || failed.is_under_way() => Ok(()),
            removed => removed,
        }
    }

    /// Removes the record of a start that has ended: its container is removed, or kept for the output. Containers of
    /// earlier starts are removed.
    pub(super) async fn forget(&self, id: &StartId, remove_output: bool) -> Result<(), Error> {
        for one in self.containers(Some(id.uid())).await? {
            let counter = one.labels.start.counter();
            if one.labels.start == *id && one.is_alive() {
                return Err(Error::StillRunning);
            }
            if counter > id.counter() || one.is_alive() {
                continue;
            }
            let is_output = one.labels.start == *id && one.life == Life::Ended && !remove_output;
            match is_output {
                true => match self.mark(&one, &Mark::Kept).await {
                    // Somebody has taken the name: the container can't stay under the one that it has.
                    Err(failed) if failed.is_conflict() => self.remove(&one.container, false).await?,
                    marked => marked?,
                },
                false => self.remove(&one.container, false).await?,
            }
        }
        Ok(())
    }

    /// Sends news; dropped if nobody is subscribed.
    pub(super) fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }
}

/// Returns the wall-clock time.
pub(super) fn now() -> Timestamp {
    SystemTime::now().into()
}

/// Returns the time at which this machine booted; none if the system does not report it.
fn boot() -> Option<Timestamp> {
    static BOOT: OnceLock<Option<Timestamp>> = OnceLock::new();
    *BOOT.get_or_init(|| boot_time(&std::fs::read_to_string("/proc/stat").ok()?))
}
