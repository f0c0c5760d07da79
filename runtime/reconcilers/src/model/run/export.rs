//! Export of a model's rows to files, once its table is up to date.
//!
//! The rows are written beside the place and put there when they are complete. Before that the catalog holds, on the disk,
//! what is about to stand there; so whatever dies, the next run knows which files are the model's own.

use std::path::Path;
use std::sync::Arc;

use watershed_core::{Error, Outcome, Work};
use watershed_drivers::olap::{ExportError, Failure, QueryError, WriteRows};
use watershed_drivers::placing;
use watershed_proto::{ExportState, ExportedFiles, FileExport};

use super::{state::State, subject::Subject};
use crate::model::{
    export::{self, Place, Stamps, all},
    failure,
    record::Record,
    upload,
};

/// Files that are written but not yet moved to their place.
pub(super) struct Part {
    place: Place,
    /// The files that were found at the place; none if there were none.
    found: Option<Stamps>,
    pub(super) files: ExportedFiles,
}

/// The exporter of a model's rows to files and other databases.
pub(super) struct Exporter<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) state: &'a State<'a>,
}

impl Exporter<'_> {
    /// Updates the exported files to the rows of the table, and removes others. Returns the outcome of the run, with
    /// this work included.
    pub(super) async fn write_files(&self, outcome: Outcome) -> Result<Outcome, Error> {
        let subject = self.subject;
        let state = self.state.so_far();
        if subject.model.sample.is_some() || (subject.spec().export.is_none() && state.export.is_none()) {
            return Ok(outcome);
        }
        let Some(record) = Record::from_state(&state) else {
            return Ok(outcome);
        };
        let known = state.export.unwrap_or_default();
        let written = match &subject.spec().export {
            Some(export) => {
                let written = self.write_export(export, &record, known).await;
                written.map_err(|error| export::at_its_place(error, export, subject.paths()))?
            }
            None => {
                self.remove_files(all(&known).cloned().collect()).await?;
                self.state.tell_files(None).await?;
                true
            }
        };
        Ok(match written {
            true => Outcome {
                work: Work::Built,
                ..outcome
            },
            false => outcome,
        })
    }

    /// Removes the files that were exported for the model, except those that somebody changed since.
    pub(super) async fn remove_all_files(&self) -> Result<(), Error> {
        let state = self.state.so_far().export.unwrap_or_default();
        self.remove_files(all(&state).cloned().collect()).await
    }

    /// Writes the export if it is not current; returns true if anything was written or removed.
    async fn write_export(
        &self,
        export: &FileExport,
        record: &Record,
        known: ExportState,
    ) -> Result<bool, Error> {
        let subject = self.subject;
        if !export.store.is_empty() {
            return Box::pin(self.write_objects(export, record, known)).await;
        }
        if !export.database.is_empty() {
            return Box::pin(self.write_table(export, record, known)).await;
        }
        let opened = subject.opened_spec()?;
        let scope = subject.scope(&opened);
        let sandbox = subject.outputs().sandbox();
        let place = export::place(export, &scope, &subject.model.root, sandbox)?;
        if record.files.iter().any(|file| file.path == place.path) {
            return Err(export::reads_itself(&place));
        }
        let made_of = export::made_of(record, export);
        let found = self.look_at(&place).await?;
        let standing = all(&known)
            .find(|it| it.path == place.path && it.made_of == made_of && Some(&it.files) == found.as_ref());
        if let Some(standing) = standing {
            let standing = standing.clone();
            return self.settle_files(standing, known).await;
        }
        subject.context.progress(format!("writing {}", place.path));
        let part = self.write_part(export, place, found, made_of).await?;
        let standing = self.put_in_place(part, &known).await?;
        self.settle_files(standing, known).await?;
        Ok(true)
    }

    async fn look_at(&self, place: &Place) -> Result<Option<Stamps>, Error> {
        let (at, uid) = (place.clone(), self.subject.uid());
        let found = blocking(move || {
            at.clear(uid)?;
            export::stamps(&at.whole)
        });
        found.await.map_err(|error| match error.kind() {
            // A link, a pipe, or more files than are ever written: somebody's.
            std::io::ErrorKind::Other => export::taken(place),
            _ => export::unwritable(place, &error),
        })
    }

    /// Writes the rows to part files beside the place.
    pub(super) async fn write_part(
        &self,
        export: &FileExport,
        place: Place,
        found: Option<Stamps>,
        made_of: Vec<u8>,
    ) -> Result<Part, Error> {
        let subject = self.subject;
        let part = place.part(subject.uid());
        let folder = part.parent().map(Path::to_owned);
        let is_folder = !export.partition_by.is_empty();
        let unwritable = |error: &std::io::Error| export::unwritable(&place, error);
        let made = blocking(move || folder.map_or(Ok(()), std::fs::create_dir_all)).await;
        made.map_err(|error| unwritable(&error))?;
        let job = WriteRows {
            table: subject.table().to_owned(),
            place: part.clone(),
            format: export::format(export),
            partition_by: export.partition_by.clone(),
            header: export.header.unwrap_or(true),
            delimiter: Some(export.delimiter.clone()).filter(|it| !it.is_empty()),
            compression: Some(export.compression.clone()).filter(|it| !it.is_empty()),
            timeout: Some(subject.time_limit()),
        };
        let written = async {
            let elsewhere = subject.outputs().olap().elsewhere()?;
            elsewhere.write_rows(&job, subject.cancel()).await
        };
        let rows = match written.await {
            Ok(rows) => rows,
            Err(error) => {
                self.give_up(&place).await;
                return Err(self.unwritten(&place, &error));
            }
        };
        let looked = blocking(move || {
            if is_folder {
                // The engine makes none for no rows.
                std::fs::create_dir_all(&part)?;
            }
            let files = export::stamps(&part)?.unwrap_or_default();
            let content = export::content(&part, &files)?;
            Ok((files, content))
        });
        let (files, content) = match looked.await {
            Ok(looked) => looked,
            Err(error) => {
                self.give_up(&place).await;
                return Err(unwritable(&error));
            }
        };
        let files = ExportedFiles {
            path: place.path.clone(),
            folder: is_folder,
            made_of,
            content,
            files,
            rows,
            ..ExportedFiles::default()
        };
        Ok(Part { place, found, files })
    }

    /// Moves complete files to their place, unless equal ones are there. Returns the files at the place.
    async fn put_in_place(&self, part: Part, known: &ExportState) -> Result<ExportedFiles, Error> {
        let Part { place, found, files } = part;
        let unwritable = |error: std::io::Error| export::unwritable(&place, &error);
        if let Some(found) = found.clone() {
            let (at, own) = (place.clone(), all(known).cloned().collect::<Vec<_>>());
            let (same, standing) = (files.content.clone(), found.clone());
            let looked = blocking(move || {
                let is_same = export::content(&at.whole, &found)? == same;
                Ok((is_same, is_same || export::is_ours(&at, &found, &own)?))
            });
            let (is_same, is_ours) = looked.await.map_err(unwritable)?;
            if is_same || !is_ours {
                self.give_up(&place).await;
            }
            if is_same {
                return Ok(ExportedFiles {
                    files: standing,
                    ..files
                });
            }
            if !is_ours {
                return Err(export::taken(&place));
            }
        }
        let about_to = ExportState {
            now: known.now.clone(),
            next: Some(files.clone()),
        };
        self.state.tell_files(Some(about_to)).await?;
        let committed = self.subject.context.committed().await;
        committed.map_err(|error| Error::transient("state", error.to_string()))?;
        let (at, uid) = (place.clone(), self.subject.uid());
        let put = blocking(move || {
            let part = at.part(uid);
            let Some(found) = found else {
                return placing::put(&part, &at.whole).map(|()| true);
            };
            placing::swap(&part, &at.whole)?;
            // Somebody may have put another there since it was looked at.
            if export::stamps(&part).ok().flatten().as_ref() != Some(&found) {
                placing::swap(&part, &at.whole)?;
                return Ok(false);
            }
            Ok(true)
        });
        let put = put.await;
        self.give_up(&place).await;
        match put {
            Ok(true) => Ok(files),
            Ok(false) => Err(export::taken(&place)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(export::taken(&place)),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// Records the files at the place, and removes files at earlier places. Returns true if anything was removed.
    pub(super) async fn settle_files(
        &self,
        standing: ExportedFiles,
        known: ExportState,
    ) -> Result<bool, Error> {
        // Under another name, or through another connector, it may be the very same that was written just now.
        let place = export::place_key(&standing);
        let others: Vec<_> = all(&known)
            .filter(|it| export::place_key(it) != place)
            .cloned()
            .collect();
        if let Some(before) =
            all(&known).find(|it| it.connector != standing.connector && it.path == standing.path)
        {
            let (path, connector) = (&before.path, &before.connector);
            tracing::warn!(%path, %connector, "written through another connector now: what was written through the former one stays");
        }
        let moved = !others.is_empty();
        if moved {
            self.state
                .tell_files(Some(ExportState {
                    now: others.first().cloned(),
                    next: Some(standing.clone()),
                }))
                .await?;
            self.remove_files(others).await?;
        }
        self.state
            .tell_files(Some(ExportState {
                now: Some(standing),
                next: None,
            }))
            .await?;
        Ok(moved)
    }

    async fn remove_files(&self, files: Vec<ExportedFiles>) -> Result<(), Error> {
        let subject = self.subject;
        for one in files {
            if !one.database.is_empty() {
                Box::pin(self.remove_table(&one)).await?;
                continue;
            }
            if upload::is_in_store(&one) {
                Box::pin(self.remove_objects(&one)).await?;
                continue;
            }
            let place = Place::of(&subject.model.root, &one.path);
            // A confined project touches nothing outside, whatever an earlier one wrote there.
            let sandbox = subject.outputs().sandbox();
            if sandbox.is_some_and(|sandbox| !sandbox.holds(&place.whole)) {
                tracing::warn!(path = %one.path, "outside the sandbox: the file that was written stays");
                continue;
            }
            let (root, uid) = (Arc::clone(&subject.model.root), subject.uid());
            let removed = blocking(move || export::remove(&root, uid, &one)).await;
            match removed {
                Ok(true) => {}
                Ok(false) => {
                    tracing::warn!(path = %place.path, "changed since it was written: the file stays")
                }
                Err(error) => return Err(export::unwritable(&place, &error)),
            }
        }
        Ok(())
    }

    /// Removes part files that are not needed; the next run removes what remains.
    pub(super) async fn give_up(&self, place: &Place) {
        let (at, uid) = (place.clone(), self.subject.uid());
        if let Err(error) = blocking(move || at.clear(uid)).await {
            tracing::debug!(%error, path = %place.path, "what is not complete stays");
        }
    }

    fn unwritten(&self, place: &Place, error: &ExportError) -> Error {
        match error {
            ExportError::Query(QueryError::Failed(Failure::Interrupted))
                if !self.subject.context.is_cancelled() =>
            {
                failure::timeout(self.subject.time_limit().as_secs())
            }
            ExportError::Query(QueryError::Failed(failure)) => failure::from_failure(failure),
            error => {
                let error = std::io::Error::other(error.to_string());
                export::unwritable(place, &error)
            }
        }
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(std::io::Error::other(error)),
    }
}
