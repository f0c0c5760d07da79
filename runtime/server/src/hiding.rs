//! Values that this process knows and does not show: those of every project that it has open, by the folder of its logs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use watershed_locks::Unpoisoned;
use watershed_outputs::secrets::Secrets;

static OPEN: RwLock<BTreeMap<PathBuf, Secrets>> = RwLock::new(BTreeMap::new());

/// Hides the secrets of a project from now on.
pub(crate) fn begin(logs: &Path, secrets: &Secrets) {
    let mut open = OPEN.write().unpoisoned();
    open.insert(logs.to_owned(), secrets.clone());
}

/// Forgets the secrets of a project that is closed.
pub(crate) fn end(logs: &Path) {
    OPEN.write().unpoisoned().remove(logs);
}

/// The text without the secrets of one project.
pub(crate) fn redact_project<'t>(logs: &Path, text: &'t str) -> Cow<'t, str> {
    let open = OPEN.read().unpoisoned();
    open.get(logs)
        .map_or(Cow::Borrowed(text), |secrets| secrets.redact(text))
}

/// The text without the secrets of any.
pub fn redact_all(text: &str) -> Cow<'_, str> {
    let open = OPEN.read().unpoisoned();
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
