//! A handle by which watchers of files tell the server of changes.

use std::collections::BTreeSet;

use async_lsp::ClientSocket;

/// A handle that tells a server of changes to files.
#[derive(Debug, Clone)]
pub struct Handle(ClientSocket);

/// The paths of files that have changed; none means that any file may have changed.
#[derive(Debug)]
pub(crate) struct Changed(pub(crate) Option<BTreeSet<String>>);

impl Handle {
    pub(crate) fn new(client: ClientSocket) -> Self {
        Self(client)
    }

    /// Tells the server to look at files again: those with these paths in the project, or all if there are none. Does
    /// nothing if the server has ended.
    pub fn changed(&self, paths: Option<BTreeSet<String>>) {
        let _ = self.0.emit(Changed(paths));
    }
}
