//! Word of files that change, from whoever watches them.

use std::collections::BTreeSet;

use async_lsp::ClientSocket;

/// Tells a server of changes that the editor does not know of.
#[derive(Debug, Clone)]
pub struct Handle(ClientSocket);

/// Files have changed: these, or any.
#[derive(Debug)]
pub(crate) struct Changed(pub(crate) Option<BTreeSet<String>>);

impl Handle {
    pub(crate) fn new(client: ClientSocket) -> Self {
        Self(client)
    }

    /// Has files looked at again, by their paths in the project: these, or all. Does nothing when the server has ended.
    pub fn changed(&self, paths: Option<BTreeSet<String>>) {
        let _ = self.0.emit(Changed(paths));
    }
}
