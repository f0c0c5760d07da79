//! Secrets of all open projects of this process, by the folder of a project's logs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use watershed_locks::Unpoisoned;
use watershed_outputs::secrets::Secrets;

/// The secrets of the projects that are open. Clones are the same ones.
#[derive(Clone, Default)]
pub(crate) struct Hiding(Arc<RwLock<BTreeMap<PathBuf, Secrets>>>);

impl Hiding {
    /// Hides the secrets of a project from now on.
    pub(crate) fn begin(&self, logs: &Path, secrets: &Secrets) {
        self.0
            .write()
            .unpoisoned()
            .insert(logs.to_owned(), secrets.clone());
    }

    /// Forgets the secrets of a project that is closed.
    pub(crate) fn end(&self, logs: &Path) {
        self.0.write().unpoisoned().remove(logs);
    }

    /// Returns the secrets of one project; none if it is not one of these.
    pub(crate) fn of_project(&self, logs: &Path) -> Option<Secrets> {
        self.0.read().unpoisoned().get(logs).cloned()
    }

    /// Returns the text without the secrets of any.
    pub(crate) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let open = self.0.read().unpoisoned();
        let mut shown = Cow::Borrowed(text);
        for secrets in open.values() {
            let hidden = match secrets.redact(&shown) {
                Cow::Owned(hidden) => Some(hidden),
                Cow::Borrowed(_) => None,
            };
            shown = hidden.map_or(shown, Cow::Owned);
        }
        shown
    }
}
