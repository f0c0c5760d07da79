//! Folders, files and links. Every operation may be repeated, and leaves alone what it did not make.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use tokio::fs;
use watershed_stategraph::{Context, Handler, HandlerError, Observed, Ref};

use crate::point;
use crate::thing::Thing;

/// Makes folders.
pub(crate) struct Folders;
/// Makes files.
pub(crate) struct Files;
/// Makes symbolic links.
pub(crate) struct Links;

impl Handler<Thing> for Folders {
    async fn create(&self, _: &Context, _: &Ref, new: &Thing) -> Result<(), HandlerError> {
        let path = path_of(new)?;
        match fs::create_dir(path).await {
            // A run that was killed may have made it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => Ok(result?),
        }
    }

    async fn modify(&self, _: &Context, _: &Ref, _: &Thing, _: &Thing) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn delete(&self, _: &Context, _: &Ref, old: &Thing) -> Result<(), HandlerError> {
        Ok(unless_gone(fs::remove_dir(path_of(old)?).await)?)
    }

    async fn needs_recreate(&self, _: &Ref, old: &Thing, new: &Thing) -> Result<bool, HandlerError> {
        Ok(old.path() != new.path())
    }

    async fn observe(&self, _: &Ref, known: &Thing) -> Observed<Thing> {
        let Ok(path) = path_of(known) else {
            return Observed::Absent;
        };
        match fs::symlink_metadata(path).await {
            Ok(found) if found.is_dir() => Observed::Present(known.clone()),
            Ok(_) => Observed::Unclear(in_the_way(path)),
            Err(error) => absent(&error),
        }
    }
}

impl Handler<Thing> for Files {
    async fn create(&self, _: &Context, item: &Ref, new: &Thing) -> Result<(), HandlerError> {
        let Thing::File { path, text } = new else {
            return Err(HandlerError::new("expected a file"));
        };
        fs::write(part_of(path), text).await?;
        point::pass("within", item);
        Ok(fs::rename(part_of(path), path).await?)
    }

    async fn modify(
        &self,
        context: &Context,
        item: &Ref,
        _: &Thing,
        new: &Thing,
    ) -> Result<(), HandlerError> {
        self.create(context, item, new).await
    }

    async fn delete(&self, _: &Context, _: &Ref, old: &Thing) -> Result<(), HandlerError> {
        let path = path_of(old)?;
        unless_gone(fs::remove_file(part_of(path)).await)?;
        Ok(unless_gone(fs::remove_file(path).await)?)
    }

    async fn needs_recreate(&self, _: &Ref, old: &Thing, new: &Thing) -> Result<bool, HandlerError> {
        Ok(old.path() != new.path())
    }

    async fn observe(&self, _: &Ref, known: &Thing) -> Observed<Thing> {
        let Ok(path) = path_of(known) else {
            return Observed::Absent;
        };
        // What a run that was killed had only half written.
        if let Err(error) = unless_gone(fs::remove_file(part_of(path)).await) {
            return Observed::Unclear(error.to_string());
        }
        match fs::symlink_metadata(path).await {
            Ok(found) if found.is_file() => match fs::read(path).await {
                Ok(bytes) => Observed::Present(Thing::File {
                    path: path.clone(),
                    text: String::from_utf8_lossy(&bytes).into_owned(),
                }),
                Err(error) => absent(&error),
            },
            Ok(_) => Observed::Unclear(in_the_way(path)),
            Err(error) => absent(&error),
        }
    }
}

impl Handler<Thing> for Links {
    async fn create(&self, _: &Context, item: &Ref, new: &Thing) -> Result<(), HandlerError> {
        let Thing::Link { path, to } = new else {
            return Err(HandlerError::new("expected a link"));
        };
        unless_gone(fs::remove_file(part_of(path)).await)?;
        fs::symlink(to, part_of(path)).await?;
        point::pass("within", item);
        Ok(fs::rename(part_of(path), path).await?)
    }

    async fn modify(
        &self,
        context: &Context,
        item: &Ref,
        _: &Thing,
        new: &Thing,
    ) -> Result<(), HandlerError> {
        self.create(context, item, new).await
    }

    async fn delete(&self, context: &Context, item: &Ref, old: &Thing) -> Result<(), HandlerError> {
        Files.delete(context, item, old).await
    }

    async fn needs_recreate(&self, _: &Ref, old: &Thing, new: &Thing) -> Result<bool, HandlerError> {
        Ok(old.path() != new.path())
    }

    async fn observe(&self, _: &Ref, known: &Thing) -> Observed<Thing> {
        let Ok(path) = path_of(known) else {
            return Observed::Absent;
        };
        if let Err(error) = unless_gone(fs::remove_file(part_of(path)).await) {
            return Observed::Unclear(error.to_string());
        }
        match fs::symlink_metadata(path).await {
            Ok(found) if found.is_symlink() => match fs::read_link(path).await {
                Ok(to) => Observed::Present(Thing::Link {
                    path: path.clone(),
                    to,
                }),
                Err(error) => absent(&error),
            },
            Ok(_) => Observed::Unclear(in_the_way(path)),
            Err(error) => absent(&error),
        }
    }
}

fn path_of(thing: &Thing) -> Result<&PathBuf, HandlerError> {
    thing
        .path()
        .ok_or_else(|| HandlerError::new("is nothing on disk"))
}

/// Returns the path at which a file is written before it takes its place whole.
fn part_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.part"))
}

fn unless_gone(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
        result => result,
    }
}

fn absent(error: &Error) -> Observed<Thing> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Observed::Absent,
        _ => Observed::Unclear(error.to_string()),
    }
}

fn in_the_way(path: &Path) -> String {
    format!("something else is at \"{}\"", path.display())
}
