//! Export of a model's rows to an object store, once its table is up to date.
//!
//! The rows are written on this machine first, and each object then in one go, so that it is visible as a whole. Before
//! that the catalog holds, on the disk, which objects are about to be there; with the mark that each of them bears, the next
//! run knows its own, whatever died.

use std::collections::BTreeMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use watershed_core::Error;
use watershed_drivers::objects::{self, Access, Driver, Over, Standing, StoreError};
use watershed_proto::{ExportState, ExportedFiles, FileExport, LocalFileState};

use super::{
    export::{Exporter, blocking},
    stores,
    subject::Subject,
};
use crate::model::{
    export::{self, Place},
    record::Record,
    upload::{self, Due, Mark},
};

/// The largest number of requests that one export makes at once.
const AT_ONCE: usize = 8;

impl Exporter<'_> {
    /// Updates the exported objects to the rows of the table. Returns true if anything was written or removed.
    pub(super) async fn write_objects(
        &self,
        export: &FileExport,
        record: &Record,
        known: ExportState,
    ) -> Result<bool, Error> {
        let subject = self.subject;
        let opened = subject.opened_spec()?;
        let scope = subject.scope(&opened);
        let address = upload::address(export, &scope)?;
        let made_of = export::made_of(record, export);
        if let Some(standing) = known.now.clone()
            && export::stands(&known, &address, &export.connector, &made_of)
        {
            return self.settle_files(standing, known).await;
        }
        let place = self.part_place(&address);
        if record.files.iter().any(|file| is_below(&file.path, &address)) {
            return Err(export::reads_itself(&place));
        }
        let access = stores::access_of(
            subject,
            &export.connector,
            Driver::from_name(&export.store).unwrap_or_default(),
        )?;
        if let Some(sandbox) = subject.outputs().sandbox() {
            stores::refuse_unreached(sandbox, &access, &address)?;
        }
        let store = Upload {
            exporter: self,
            access: &access,
            address: &address,
            known: &known,
        };
        if export.partition_by.is_empty() {
            // An object of somebody's is told before rows are written for nothing.
            store.refuse_taken().await?;
        }
        subject.context.progress(format!("writing {address}"));
        // What a run left that was cut off.
        self.give_up(&place).await;
        let part = self.write_part(export, place.clone(), None, made_of).await?;
        let files = ExportedFiles {
            connector: export.connector.clone(),
            ..part.files
        };
        let written = store.bring(&place, files).await;
        self.give_up(&place).await;
        let (standing, changed) = written?;
        Ok(self.settle_files(standing, known).await? | changed)
    }

    /// Returns the place of the local files that are made before the upload to an address.
    fn part_place(&self, address: &str) -> Place {
        Place {
            path: address.to_owned(),
            whole: self.subject.model.parts.join("rows"),
        }
    }

    /// Removes objects that were exported for the model, except those that somebody changed since.
    pub(super) async fn remove_objects(&self, files: &ExportedFiles) -> Result<(), Error> {
        let Some(access) = access_for_removal(self.subject, files)? else {
            let (path, connector) = (&files.path, &files.connector);
            tracing::warn!(%path, %connector, "there is no such connector any more: the objects that were written stay");
            return Ok(());
        };
        let sandbox = self.subject.outputs().sandbox();
        if sandbox.is_some_and(|sandbox| !sandbox.reaches(&access, &files.path)) {
            tracing::warn!(path = %files.path, "outside the sandbox: the objects that were written stay");
            return Ok(());
        }
        self.give_up(&self.part_place(&files.path)).await;
        let known = ExportState {
            now: Some(files.clone()),
            next: None,
        };
        let store = Upload {
            exporter: self,
            access: &access,
            address: &files.path,
            known: &known,
        };
        store
            .remove(files.files.keys().cloned().collect())
            .await
            .map(drop)
    }
}

/// The upload of the objects of one export.
struct Upload<'a> {
    exporter: &'a Exporter<'a>,
    access: &'a Access,
    address: &'a str,
    known: &'a ExportState,
}

impl Upload<'_> {
    /// Returns an error if the object at the address belongs to somebody else.
    async fn refuse_taken(&self) -> Result<(), Error> {
        let Some(standing) = self.find("").await? else {
            return Ok(());
        };
        let marked = standing.mark.is_some();
        // What bears a mark may be of the very rows that are to be written.
        match marked || upload::is_own(self.exporter.subject.uid(), &standing, &self.versions("")) {
            true => Ok(()),
            false => Err(upload::taken(self.address)),
        }
    }

    /// Uploads complete files, and removes objects of earlier exports. Returns the resulting objects, and true if
    /// anything was written or removed.
    async fn bring(&self, place: &Place, files: ExportedFiles) -> Result<(ExportedFiles, bool), Error> {
        let mut files = self.digested(place, files).await?;
        let due = self.due(&files).await?;
        let old: Vec<String> = upload::recorded(self.known, self.address)
            .map(|(name, _)| name.to_owned())
            .filter(|name| !files.files.contains_key(name))
            .collect();
        let writes = due.values().any(|due| matches!(due, Due::Write(_)));
        if writes || !old.is_empty() {
            self.exporter
                .state
                .tell_files(Some(ExportState {
                    now: self.known.now.clone(),
                    next: Some(files.clone()),
                }))
                .await?;
            let committed = self.exporter.subject.context.committed().await;
            committed.map_err(|error| Error::transient("state", error.to_string()))?;
        }
        let part = place.part(self.exporter.subject.uid());
        let jobs = due.into_iter().map(|(name, due)| {
            let (file, wanted) = (
                if name.is_empty() {
                    part.clone()
                } else {
                    part.join(&name)
                },
                files.files.get(&name).cloned().unwrap_or_default(),
            );
            async move {
                let version = match due {
                    Due::Nothing(version) => version,
                    Due::Write(over) => self.put(&name, &file, &wanted, &over).await?,
                    Due::Taken => return Err(upload::taken(&upload::address_of(self.address, &name))),
                };
                Ok::<_, Error>((name, version))
            }
        });
        let versions: Vec<(String, String)> =
            stream::iter(jobs).buffer_unordered(AT_ONCE).try_collect().await?;
        for (name, version) in versions {
            if let Some(file) = files.files.get_mut(&name) {
                file.version = version;
            }
        }
        let removed = self.remove(old).await?;
        Ok((files, writes || removed))
    }

    async fn digested(&self, place: &Place, files: ExportedFiles) -> Result<ExportedFiles, Error> {
        let part = place.part(self.exporter.subject.uid());
        let digested = blocking(move || {
            let mut files = files;
            upload::digests(&part, &mut files.files)?;
            Ok(files)
        });
        digested.await.map_err(|error| export::unwritable(place, &error))
    }

    /// Decides on the action for each object before the first is written.
    async fn due(&self, files: &ExportedFiles) -> Result<BTreeMap<String, Due>, Error> {
        // Of a folder, one listing tells most of it.
        let listed: Option<BTreeMap<String, String>> = match files.folder {
            false => None,
            true => {
                let found =
                    objects::find_below(self.access, self.address, self.exporter.subject.cancel()).await;
                let found = found.map_err(|error| upload::refused(&error))?;
                let version = |object: objects::Object| (object.address, object.version.unwrap_or_default());
                Some(found.into_iter().map(version).collect())
            }
        };
        let jobs = files.files.iter().map(|(name, wanted)| {
            let listed = &listed;
            async move {
                let versions = self.versions(name);
                let there = listed
                    .as_ref()
                    .map(|listed| listed.get(&upload::address_of(self.address, name)));
                let standing = match there {
                    Some(None) => None,
                    Some(Some(version)) if versions.contains(&version.as_str()) => {
                        Some(self.standing_as_recorded(name, version))
                    }
                    Some(Some(_)) | None => self.find(name).await?,
                };
                let due = upload::due(self.exporter.subject.uid(), wanted, standing.as_ref(), &versions);
                match due {
                    Due::Taken => Err(upload::taken(&upload::address_of(self.address, name))),
                    due => Ok((name.clone(), due)),
                }
            }
        });
        let jobs: Vec<_> = jobs.collect();
        stream::iter(jobs).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Returns the state of an object of a version; its content is known if that version was recorded.
    fn standing_as_recorded(&self, name: &str, version: &str) -> Standing {
        let mut recorded = upload::recorded(self.known, self.address);
        let file = recorded.find(|(other, file)| *other == name && file.version == version);
        Standing {
            version: version.to_owned(),
            mark: file.map(|(_, file)| Mark::of(self.exporter.subject.uid(), file).text()),
        }
    }

    /// Returns the recorded versions of an object.
    fn versions(&self, name: &str) -> Vec<&str> {
        upload::recorded(self.known, self.address)
            .filter(|(other, file)| *other == name && !file.version.is_empty())
            .map(|(_, file)| file.version.as_str())
            .collect()
    }

    async fn find(&self, name: &str) -> Result<Option<Standing>, Error> {
        let address = upload::address_of(self.address, name);
        let found = objects::find(self.access, &address, self.exporter.subject.cancel()).await;
        found.map_err(|error| upload::refused(&error))
    }

    async fn put(
        &self,
        name: &str,
        file: &std::path::Path,
        wanted: &LocalFileState,
        over: &Over,
    ) -> Result<String, Error> {
        let address = upload::address_of(self.address, name);
        let mark = Mark::of(self.exporter.subject.uid(), wanted).text();
        let put = objects::put(
            self.access,
            &address,
            file,
            &mark,
            over,
            self.exporter.subject.cancel(),
        )
        .await;
        match put {
            Ok(version) => Ok(version),
            // An answer may be lost, and the request sent again: then it is our own that stands there.
            Err(StoreError::Taken(_)) => match self.find(name).await? {
                Some(standing) if standing.mark.as_deref() == Some(mark.as_str()) => Ok(standing.version),
                _ => Err(upload::taken(&address)),
            },
            Err(error) => Err(upload::refused(&error)),
        }
    }

    /// Removes objects that are unchanged since they were written. Returns true if anything was removed.
    async fn remove(&self, names: Vec<String>) -> Result<bool, Error> {
        let jobs = names.into_iter().map(|name| async move {
            let address = upload::address_of(self.address, &name);
            let standing = match objects::find(self.access, &address, self.exporter.subject.cancel()).await {
                Err(StoreError::NoBucket(_)) => None,
                found => found.map_err(|error| upload::refused(&error))?,
            };
            let Some(standing) = standing else {
                return Ok(false);
            };
            if !upload::is_own(self.exporter.subject.uid(), &standing, &self.versions(&name)) {
                tracing::warn!(path = %address, "changed since it was written: the object stays");
                return Ok(false);
            }
            let removed = objects::remove(self.access, &address, self.exporter.subject.cancel()).await;
            removed.map_err(|error| upload::refused(&error))?;
            Ok::<_, Error>(true)
        });
        let removed: Vec<bool> = stream::iter(jobs).buffer_unordered(AT_ONCE).try_collect().await?;
        Ok(removed.contains(&true))
    }
}

/// Returns true if an address that is read equals or lies below one that would be written.
fn is_below(read: &str, written: &str) -> bool {
    let rest = read.strip_prefix(written);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the access to a store that the model no longer exports to. It is looked up in the catalog, as a deleted
/// model has no refs.
fn access_for_removal(subject: Subject<'_>, files: &ExportedFiles) -> Result<Option<Access>, Error> {
    if let Some(spec) = stores::connector_in_catalog(subject, &files.connector) {
        return stores::opened_access(subject, &spec);
    }
    // Of a driver's own name, without a connector.
    let driver = Driver::from_name(&files.connector);
    Ok(driver.map(|driver| Access {
        driver,
        ..Access::default()
    }))
}
