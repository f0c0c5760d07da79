//! The engine as reconcilers share it: opened only when something is to be done, and looked over once.
//!
//! Invariants:
//! 1. While the engine's file is as an orderly close left it and nothing was asked of the engine since,
//!    [`Engine::find`] answers [`Found::AsLeft`] without opening it: what the catalog says of outputs holds.
//! 2. Otherwise all outputs are listed once; after that each change that goes through here keeps the list true.
//! 3. An output whose change ended in a way that nobody learned (interrupted, dropped) is not trusted: the next
//!    question about it lists anew.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::{
    duckdb::FileProof,
    olap::{Build, BuildError, Built, Failure, Olap, Output, Rename, RenameError, Renamed, Tag},
};

/// The engine, shared by all reconcilers of one instance.
pub struct Engine {
    olap: Arc<dyn Olap>,
    file: PathBuf,
    proof: PathBuf,
    as_left: bool,
    outputs: Mutex<Outputs>,
}

/// What is known of a resource's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The engine's file is as it was left: what the catalog says holds.
    AsLeft,
    /// The output, if there is one.
    Listed(Option<Output>),
}

/// The outputs as far as they are known.
#[derive(Default)]
struct Outputs {
    listing: Listing,
    by_uid: HashMap<Uuid, Output>,
    /// Who stands at a name, in lower case.
    by_name: HashMap<String, Uuid>,
    /// Uids whose last change ended in a way that nobody learned.
    doubtful: HashMap<Uuid, ()>,
}

#[derive(Default, PartialEq, Eq)]
enum Listing {
    #[default]
    None,
    Whole,
}

impl Engine {
    /// An engine over `olap`, whose data is in `file`. `proof` is where [`Engine::record_close`] keeps what the file
    /// was like when it was last closed in order.
    #[must_use]
    pub fn new(olap: Arc<dyn Olap>, file: impl Into<PathBuf>, proof: impl Into<PathBuf>) -> Self {
        let (file, proof) = (file.into(), proof.into());
        let as_left = is_as_left(&file, &proof);
        Self {
            olap,
            file,
            proof,
            as_left,
            outputs: Mutex::default(),
        }
    }

    /// The engine itself, for reading.
    #[must_use]
    pub fn olap(&self) -> &Arc<dyn Olap> {
        &self.olap
    }

    /// Whether the file was found as an orderly close had left it.
    #[must_use]
    pub fn was_as_left(&self) -> bool {
        self.as_left
    }

    /// Remembers what the file is like, so that the next process need not open it to know that nothing changed.
    ///
    /// To be called after the engine was closed, and only if everything that was done in it is in the catalog.
    ///
    /// # Errors
    /// When the file can't be looked at, or the proof can't be written. Then the next start opens the engine.
    pub fn record_close(&self) -> io::Result<()> {
        let proof = FileProof::of(&self.file)?;
        let text = serde_json::to_vec(&proof).map_err(io::Error::other)?;
        let mut fresh = self.proof.clone().into_os_string();
        fresh.push(".new");
        fs::write(&fresh, text)?;
        fs::rename(&fresh, &self.proof)
    }

    /// What a resource has in the engine.
    ///
    /// # Errors
    /// When the engine can't be opened or listed.
    pub async fn find(&self, uid: Uuid, cancel: &CancellationToken) -> Result<Found, Failure> {
        let mut outputs = self.outputs.lock().await;
        if outputs.listing == Listing::None && self.as_left {
            return Ok(Found::AsLeft);
        }
        self.list_into(&mut outputs, Some(uid), cancel).await?;
        Ok(Found::Listed(outputs.by_uid.get(&uid).cloned()))
    }

    /// What a resource has in the engine, in any case looked up there.
    ///
    /// # Errors
    /// As [`Engine::find`].
    pub async fn look_up(&self, uid: Uuid, cancel: &CancellationToken) -> Result<Option<Output>, Failure> {
        let mut outputs = self.outputs.lock().await;
        self.list_into(&mut outputs, Some(uid), cancel).await?;
        Ok(outputs.by_uid.get(&uid).cloned())
    }

    /// The tagged output that stands at a name.
    ///
    /// # Errors
    /// As [`Engine::find`].
    pub async fn standing_at(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Output>, Failure> {
        let mut outputs = self.outputs.lock().await;
        self.list_into(&mut outputs, None, cancel).await?;
        let uid = outputs.by_name.get(&folded(name)).copied();
        Ok(uid.and_then(|uid| outputs.by_uid.get(&uid).cloned()))
    }

    /// All outputs, ordered by name.
    ///
    /// # Errors
    /// As [`Engine::find`].
    pub async fn list(&self, cancel: &CancellationToken) -> Result<Vec<Output>, Failure> {
        let mut outputs = self.outputs.lock().await;
        self.list_into(&mut outputs, None, cancel).await?;
        let mut all = outputs.by_uid.values().cloned().collect::<Vec<_>>();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    async fn list_into(
        &self,
        outputs: &mut Outputs,
        uid: Option<Uuid>,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let doubtful = uid.map_or(!outputs.doubtful.is_empty(), |uid| {
            outputs.doubtful.contains_key(&uid)
        });
        if outputs.listing == Listing::None || doubtful {
            let listed = self.olap.outputs(cancel).await?;
            *outputs = Outputs {
                listing: Listing::Whole,
                ..Outputs::default()
            };
            for output in listed {
                outputs.put(output);
            }
        }
        Ok(())
    }
}

/// Changes.
impl Engine {
    /// Makes or replaces an output.
    ///
    /// # Errors
    /// As [`Olap::build`].
    pub async fn build(&self, build: &Build, cancel: &CancellationToken) -> Result<Built, BuildError> {
        let uid = build.tag.uid;
        self.doubt(uid).await;
        let result = self.olap.build(build, cancel).await;
        let mut outputs = self.outputs.lock().await;
        match &result {
            Ok(built) => outputs.put(Output {
                name: build.name.clone(),
                kind: build.kind,
                tag: build.tag,
                record: Some(build.record.clone()),
                rows: built.rows,
            }),
            Err(BuildError::Failed(failure)) if leaves_doubt(failure) => {}
            Err(_) => outputs.trust(uid),
        }
        result
    }

    /// Gives an output another name.
    ///
    /// # Errors
    /// As [`Olap::rename`].
    pub async fn rename(&self, rename: &Rename, cancel: &CancellationToken) -> Result<Renamed, RenameError> {
        self.doubt(rename.uid).await;
        let result = self.olap.rename(rename, cancel).await;
        let mut outputs = self.outputs.lock().await;
        match &result {
            Ok(_) => outputs.renamed(rename),
            Err(RenameError::Failed(failure)) if leaves_doubt(failure) => {}
            Err(_) => outputs.trust(rename.uid),
        }
        result
    }

    /// Drops what a resource has in the engine. Says whether there was anything.
    ///
    /// # Errors
    /// As [`Olap::drop_output`].
    pub async fn drop_output(&self, uid: Uuid, cancel: &CancellationToken) -> Result<bool, Failure> {
        self.doubt(uid).await;
        let result = self.olap.drop_output(uid, cancel).await;
        let mut outputs = self.outputs.lock().await;
        match &result {
            Ok(_) => outputs.remove(uid),
            Err(failure) if leaves_doubt(failure) => {}
            Err(_) => outputs.trust(uid),
        }
        result
    }

    /// Gives an output to another resource, rows untouched. Says whether it was there.
    ///
    /// # Errors
    /// As [`Olap::retag`].
    pub async fn adopt(
        &self,
        from: Tag,
        to: Tag,
        record: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        self.doubt(from.uid).await;
        self.doubt(to.uid).await;
        let was_there = self.olap.retag(from, to, &record, cancel).await?;
        let mut outputs = self.outputs.lock().await;
        if let Some(output) = outputs.by_uid.get(&from.uid).cloned() {
            outputs.remove(from.uid);
            if was_there {
                outputs.put(Output {
                    tag: to,
                    record: Some(record),
                    ..output
                });
            }
        }
        Ok(was_there)
    }

    async fn doubt(&self, uid: Uuid) {
        self.outputs.lock().await.doubtful.insert(uid, ());
    }
}

impl Outputs {
    fn put(&mut self, output: Output) {
        let uid = output.tag.uid;
        self.remove(uid);
        let name = folded(&output.name);
        self.by_uid.insert(uid, output);
        if let Some(other) = self.by_name.insert(name, uid)
            && let Some(other) = self.by_uid.get_mut(&other)
        {
            // It was moved out of the way, to a name that nobody asks for.
            other.name.clear();
        }
    }

    fn renamed(&mut self, rename: &Rename) {
        if let Some(output) = self.by_uid.get(&rename.uid).cloned() {
            let record = rename.record.clone().or(output.record);
            self.put(Output {
                name: rename.to.clone(),
                record,
                ..output
            });
        }
        self.trust(rename.uid);
    }

    fn remove(&mut self, uid: Uuid) {
        self.trust(uid);
        if let Some(output) = self.by_uid.remove(&uid) {
            let name = folded(&output.name);
            if self.by_name.get(&name) == Some(&uid) {
                self.by_name.remove(&name);
            }
        }
    }

    fn trust(&mut self, uid: Uuid) {
        self.doubtful.remove(&uid);
    }
}

/// Names that are equal to the engine are equal here.
fn folded(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether a failure leaves open what became of the work.
fn leaves_doubt(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Interrupted | Failure::Fatal { .. } | Failure::Closed
    )
}

fn is_as_left(file: &Path, proof: &Path) -> bool {
    let left = fs::read(proof)
        .ok()
        .and_then(|text| serde_json::from_slice::<Option<FileProof>>(&text).ok());
    let Some(left) = left else { return false };
    FileProof::of(file).is_ok_and(|now| now == left)
}
