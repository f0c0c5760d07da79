//! The engine's outputs as all reconcilers share them: the engine is opened only on demand, and listed once.
//!
//! Invariants:
//! 1. While the engine's file is as an orderly close left it and nothing was asked of the engine since,
//!    [`Outputs::find`] answers [`Lookup::AsLeft`] without opening it: what the catalog says of outputs holds.
//! 2. Otherwise all outputs are listed once; after that each change that goes through here keeps the list true.
//! 3. An output whose change ended in a way that nobody learned (interrupted, dropped) is not trusted: the next
//!    question about it lists anew.
//! 4. The engine's file is given up to other processes now and then. Before each question it is known whether one of
//!    them has changed it since; then nothing that was known is trusted, as if this process had just begun.
//! 5. A listing or change is begun when the file is open: while another process has it, what is known stays known.

mod change;
mod ending;
mod known;

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_core::{Error, ErrorKind};
use watershed_drivers::{
    olap::{Failure, Location, Olap, Output, OutputKind, Stamp, Tag, Trashed},
    reach::Egress,
    sandbox::Sandbox,
};

use crate::digest::digest;
use crate::failure;
use crate::selection::Chosen;
use crate::traces::Made;
use known::{About, Known};
use watershed_locks::Unpoisoned;

use crate::secrets::Secrets;
use crate::settings::EngineSettings;

/// The most listings that one look-up may take.
const LISTINGS: usize = 3;

/// The most bytes of a proof file that are read.
const LARGEST_PROOF: usize = 64 << 10;
/// Content of the proof if the engine had no data.
const NO_DATA: &str = "null";

/// An output as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Owner of the output, and the build that made it.
    pub tag: Tag,
    /// Schema and name of the output.
    pub location: Location,
    /// Type of the output: table or view.
    pub kind: OutputKind,
    /// Place of the engine's data when it was made, as [`Olap::home`] tells it.
    pub home: String,
}

/// The outputs of one engine, shared by all reconcilers of one instance.
pub struct Outputs {
    olap: Arc<dyn Olap>,
    home: String,
    proof: PathBuf,
    as_left: bool,
    secrets: Secrets,
    sandbox: Option<Sandbox>,
    egress: Egress,
    chosen: Chosen,
    /// Name of the connector whose lake holds the outputs; none for the engine's file.
    lake: Option<String>,
    /// Outputs as last listed or changed. Never locked across an await.
    known: Mutex<Known>,
    /// Held during a listing, so that concurrent look-ups wait for it instead of listing again.
    listing: tokio::sync::Mutex<()>,
    made: Made,
    /// Counter of migrations' starts and ends; each may have changed any table.
    meddlings: AtomicU64,
    /// Resources whose output may be dropped although the trash has no room for it.
    approved: Mutex<HashSet<Uuid>>,
    /// Digest of the approved spec, by resource, for held edits that a person approved.
    approved_edits: Mutex<HashMap<Uuid, [u8; 16]>>,
}

fn edit_digest(spec: &[u8]) -> [u8; 16] {
    digest("watershed 2026 approved edit", [spec])
}

/// The result of looking up a resource's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The engine's data is unchanged since the last close, so the catalog's record holds.
    AsLeft,
    /// The output as the engine lists it; none if the engine has no such output.
    Listed(Option<Output>),
}

impl Outputs {
    /// Creates the shared outputs of `olap`. [`Outputs::record_close`] stores the stamp of its data in `proof` after an
    /// orderly close.
    #[must_use]
    pub async fn new(olap: Arc<dyn Olap>, proof: impl Into<PathBuf>) -> Self {
        let proof = proof.into();
        let as_left = is_as_left(&*olap, &proof).await;
        Self {
            home: olap.home(),
            olap,
            proof,
            as_left,
            secrets: Secrets::default(),
            sandbox: None,
            egress: Egress::default(),
            chosen: Chosen::default(),
            lake: None,
            known: Mutex::default(),
            listing: tokio::sync::Mutex::default(),
            made: Made::default(),
            meddlings: AtomicU64::new(0),
            approved: Mutex::default(),
            approved_edits: Mutex::default(),
        }
    }

    /// Sets the project's secrets, which messages of the engine may quote.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Sets the folders to which the project is confined, as its engine is.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Option<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Sets the policy of the project's outgoing connections.
    #[must_use]
    pub fn with_egress(mut self, egress: Egress) -> Self {
        self.egress = egress;
        self
    }

    /// Returns the policy of the project's outgoing connections.
    #[must_use]
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Sets the selection of the run.
    #[must_use]
    pub fn with_chosen(mut self, chosen: Chosen) -> Self {
        self.chosen = chosen;
        self
    }

    /// Sets the name of the connector whose lake holds the outputs; none for the engine's file.
    #[must_use]
    pub fn with_lake(mut self, connector: Option<&str>) -> Self {
        self.lake = connector.map(str::to_owned);
        self
    }

    /// Returns true if the outputs are held by the lake of a connector.
    #[must_use]
    pub fn are_in(&self, connector: &str) -> bool {
        self.lake.as_deref() == Some(connector)
    }

    /// Returns what stands for the place of the outputs, as [`Olap::home`] tells it.
    #[must_use]
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Returns true if an error says that the lake which holds the outputs can't be reached at present.
    #[must_use]
    pub fn is_away(&self, error: &Error) -> bool {
        let Some(lake) = &self.lake else { return false };
        let is_of_lake = error.message.starts_with(&format!("connector \"{lake}\": "))
            // Of a lake's files, the engine tells the address alone.
            || failure::is_unreached(&error.message);
        match &*error.code {
            "connection-refused" | "connection-failed" => is_of_lake && error.kind == ErrorKind::Transient,
            // The name of a server that is replaced may be unknown for a while.
            "host-unknown" => is_of_lake,
            "engine-unknown" => true,
            _ => false,
        }
    }

    /// Returns the selection of the run.
    #[must_use]
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Returns the folders to which the project is confined; none if it is not.
    #[must_use]
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Returns the project's secrets.
    #[must_use]
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns the engine, for reading.
    #[must_use]
    pub fn olap(&self) -> &Arc<dyn Olap> {
        &self.olap
    }

    /// Returns two counters of changes to tables other than by builds of their owners: by other processes, and by
    /// statements of people. Looks at the engine's file if it is closed.
    #[must_use]
    pub fn meddled(&self) -> (u64, u64) {
        (
            self.olap.changes_by_others(),
            self.meddlings.load(Ordering::Acquire),
        )
    }

    /// Returns the objects that migrations and connectors left in the engine.
    #[must_use]
    pub fn made(&self) -> &Made {
        &self.made
    }

    /// Permits the drop of a resource's output although the trash has no room for it, until this process ends.
    pub fn approve_drop(&self, uid: Uuid) {
        self.approved.lock().unpoisoned().insert(uid);
    }

    /// Records a person's approval of a held edit, given by its encoded spec, until this process ends. A full refresh
    /// decides which rows are rebuilt; the approval only ends the wait.
    pub fn approve_edit(&self, uid: Uuid, spec: &[u8]) {
        let digest = edit_digest(spec);
        self.approved_edits.lock().unpoisoned().insert(uid, digest);
    }

    /// Returns true if a person approved this spec of a resource.
    #[must_use]
    pub fn is_approved(&self, uid: Uuid, spec: &[u8]) -> bool {
        self.approved_edits.lock().unpoisoned().get(&uid) == Some(&edit_digest(spec))
    }

    /// Discards the approval of a resource's edit after its build.
    pub fn forget_approval(&self, uid: Uuid) {
        self.approved_edits.lock().unpoisoned().remove(&uid);
    }

    /// Applies the project's settings to the engine.
    pub fn set(&self, settings: EngineSettings) {
        let EngineSettings {
            sessions,
            trash,
            installs,
        } = settings;
        let inputs = sessions.iter().filter(|(session, _)| !session.optional);
        let versions = inputs.map(|(session, version)| (session.connector.as_str(), *version));
        self.made.begin_with(versions);
        if let Ok(bin) = self.olap.trash() {
            bin.limit(trash);
        }
        self.olap.allow_installs(installs);
        self.olap
            .begin_with(sessions.into_iter().map(|(session, _)| session).collect());
    }

    /// Returns true if, at the start, the engine's data was unchanged since an orderly close.
    #[must_use]
    pub fn were_as_left(&self) -> bool {
        self.as_left
    }

    /// Returns true if the engine's data is unchanged since an orderly close, and this process has listed or changed
    /// nothing since.
    #[must_use]
    pub fn is_as_left(&self) -> bool {
        self.as_left && self.current().is_untouched()
    }

    /// Returns true if every output in the catalog is known to exist in the engine: its data is unchanged since a
    /// close, or all were listed since.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.is_as_left() || self.current().can_tell(About::All)
    }

    /// Opens the engine's file, waiting while another process holds it. For callers whose work must not count as
    /// started before.
    ///
    /// # Errors
    /// As [`Olap::open`].
    pub async fn open(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        self.olap.open(cancel).await
    }

    /// Stores the stamp of the engine's data at its close, by which the next process knows without opening the file
    /// that nothing changed.
    ///
    /// The file proves only that it did not change, not that the catalog speaks of it truly: an output that was
    /// dropped by hand while its model fails or waits is in the catalog still. So `claims`, all outputs of which the
    /// committed catalog speaks, are compared with what is known to stand there, and unless they agree no proof is left. Those
    /// that were made in another place than this one stand there still, or not: this file says nothing of them.
    ///
    /// # Errors
    /// When the proof can't be written or removed. Then the next start opens the engine, unless the file is as the
    /// proof of an earlier close has it.
    pub fn record_close(
        &self,
        stamp: Option<&Stamp>,
        claims: impl IntoIterator<Item = Claim>,
    ) -> io::Result<()> {
        let claims = claims.into_iter().filter(|claim| claim.home == self.home);
        if !self.current().agrees(self.as_left, claims) {
            return match fs::remove_file(&self.proof) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let text = stamp.map_or(NO_DATA, Stamp::as_str);
        let mut fresh = self.proof.clone().into_os_string();
        fresh.push(".new");
        fs::write(&fresh, text)?;
        fs::rename(&fresh, &self.proof)
    }

    /// Returns the known outputs, emptied if another process has changed the engine's data since.
    fn current(&self) -> MutexGuard<'_, Known> {
        let changes = self.olap.changes_by_others();
        let mut known = self.known();
        known.trust_since(changes);
        known
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unpoisoned()
    }
}

/// Look-ups of outputs, known or in the engine.
impl Outputs {
    /// Finds a resource's output; answers without the engine while its data is unchanged since the last close.
    ///
    /// # Errors
    /// When the engine can't be opened or listed.
    pub async fn find(&self, uid: Uuid, cancel: &CancellationToken) -> Result<Lookup, Failure> {
        if self.is_as_left() {
            return Ok(Lookup::AsLeft);
        }
        self.look_up(uid, cancel).await.map(Lookup::Listed)
    }

    /// Finds a resource's output by asking the engine, even if its data is unchanged.
    ///
    /// # Errors
    /// As [`Outputs::find`].
    pub async fn look_up(&self, uid: Uuid, cancel: &CancellationToken) -> Result<Option<Output>, Failure> {
        self.ask(About::One(uid), cancel, |known| known.get(uid).cloned())
            .await
    }

    /// Returns the tagged output at a location.
    ///
    /// # Errors
    /// As [`Outputs::find`].
    pub async fn standing_at(
        &self,
        location: &Location,
        cancel: &CancellationToken,
    ) -> Result<Option<Output>, Failure> {
        self.ask(About::All, cancel, |known| known.at(location).cloned())
            .await
    }

    /// Returns all outputs, ordered by location.
    ///
    /// # Errors
    /// As [`Outputs::find`].
    pub async fn list(&self, cancel: &CancellationToken) -> Result<Vec<Output>, Failure> {
        let mut all = self
            .ask(About::All, cancel, |known| {
                known.all().cloned().collect::<Vec<_>>()
            })
            .await?;
        all.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(all)
    }

    /// Returns the outputs in the trash of a resource or with a former name, the latest first.
    ///
    /// # Errors
    /// When the engine can't be opened.
    pub async fn in_trash(
        &self,
        uid: Uuid,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Vec<Trashed>, Failure> {
        self.open(cancel).await?;
        let mut trash = self.olap.trash()?.concerning(uid, name, cancel).await?;
        trash.reverse();
        Ok(trash)
    }

    async fn ask<T>(
        &self,
        about: About,
        cancel: &CancellationToken,
        answer: impl FnOnce(&Known) -> T,
    ) -> Result<T, Failure> {
        if !self.current().can_tell(about) {
            let _only_one = self.listing.lock().await;
            // Once more when another process changed the file, or a change ended unlearned, while it was listed.
            for _ in 0..LISTINGS {
                if !self.current().can_tell(about) {
                    self.list_anew(cancel).await?;
                }
            }
        }
        Ok(answer(&self.known()))
    }

    async fn list_anew(&self, cancel: &CancellationToken) -> Result<(), Failure> {
        self.open(cancel).await?;
        let under_way = UnderWay(self);
        self.current().begin_listing();
        let outputs = self.olap.outputs(cancel).await?;
        std::mem::forget(under_way);
        self.known().end_listing(outputs);
        Ok(())
    }
}

/// A running listing of all outputs; dropping it invalidates what is known.
struct UnderWay<'a>(&'a Outputs);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.known().drop_listing();
    }
}

/// Returns true if the engine's data has the stamp that the proof of a close records.
async fn is_as_left(olap: &dyn Olap, proof: &Path) -> bool {
    let Ok(left) = watershed_drivers::regular::read(proof, LARGEST_PROOF) else {
        return false;
    };
    let now = olap.stamp().await;
    now.is_ok_and(|now| now.as_ref().map_or(NO_DATA, Stamp::as_str).as_bytes() == left.trim_ascii())
}
