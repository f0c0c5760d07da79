//! Delivery to files: each message becomes a file in a folder of the project, written atomically.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::Message;

/// Writes messages as `<key>.json` into a folder below a project's root, by rename, so that a repetition changes
/// nothing.
#[derive(Debug, Clone)]
pub struct File {
    root: PathBuf,
    folder: PathBuf,
}

impl File {
    /// Creates the notifier for a folder below a root. The folder is created at the first message.
    pub fn new(root: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            folder: folder.into(),
        }
    }

    fn write(&self, message: &Message) -> Result<Receipt, DeliveryError> {
        let folder = self.folder()?;
        let name = format!("{}.json", message.key);
        let path = folder.join(&name);
        let receipt = Receipt { said: name };
        if path.exists() {
            return Ok(receipt);
        }
        let mut text = serde_json::to_vec_pretty(message)
            .map_err(|error| DeliveryError::permanent(error.to_string()))?;
        text.push(b'\n');
        put(&folder, &path, &text)
            .map_err(|error| DeliveryError::transient(format!("can't write a file: {error}")))?;
        Ok(receipt)
    }

    /// Returns the folder's resolved path, creating the folder if it is missing.
    fn folder(&self) -> Result<PathBuf, DeliveryError> {
        let leaves = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
        if self.folder.components().any(leaves) {
            return Err(DeliveryError::permanent("the folder leads out of the project"));
        }
        let used = |error: io::Error| DeliveryError::transient(format!("the folder can't be used: {error}"));
        let root = self.root.canonicalize().map_err(used)?;
        let folder = root.join(&self.folder);
        fs::create_dir_all(&folder).map_err(used)?;
        let found = folder.canonicalize().map_err(used)?;
        match found.starts_with(&root) {
            true => Ok(found),
            false => Err(DeliveryError::permanent(
                "the folder is a link out of the project",
            )),
        }
    }
}

impl Notifier for File {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        _attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        let (this, message) = (self.clone(), message.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || this.write(&message)).await;
            written.unwrap_or_else(|_| Err(DeliveryError::transient("writing a file panicked")))
        })
    }
}

/// Writes a file under a temporary name and renames it.
fn put(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let whole = path.with_extension("json.part");
    let mut file = fs::File::create(&whole)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&whole, path)?;
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::message;

    #[test]
    fn a_message_is_one_file_however_often_it_comes() {
        let root = tempfile::tempdir().expect("a folder");
        let file = File::new(root.path(), "out/alerts");
        let message = message("k");
        let first = file.write(&message).expect("it can be written");
        let again = file.write(&message).expect("it is there");
        assert_eq!(first, again);
        let folder = root.path().join("out/alerts");
        let names: Vec<_> = fs::read_dir(&folder)
            .expect("the folder is there")
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        assert_eq!(names, [format!("{}.json", message.key)]);
        let text = fs::read(folder.join(&names[0])).expect("it can be read");
        let read: Message = serde_json::from_slice(&text).expect("it is a message");
        assert_eq!(read, message);
    }

    #[test]
    fn a_folder_lies_below_the_root_with_its_links_followed() {
        let root = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink("/tmp", root.path().join("out")).expect("a link");
        for wrong in ["/tmp", "..", "a/../..", "out"] {
            let error = File::new(root.path(), wrong).write(&message("k"));
            let error = error.expect_err(wrong);
            assert_eq!(error.class, crate::policy::Class::Permanent, "{wrong}: {error}");
        }
    }
}
