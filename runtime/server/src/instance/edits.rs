//! Files of the project that a caller writes through this process: their parse, and what it found.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use watershed_api::documents::{Diagnostic, ResourceError};
use watershed_api::{Code, Problem};
use watershed_controller::Key;
use watershed_controller::request::on_behalf_of;
use watershed_reconcilers::project_parser::touched::Scope;
use watershed_reconcilers::project_parser::{KIND, NAME};

use super::Instance;
use crate::report::{health, kinds, resource};

/// The result of compiling files after an edit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parsed {
    /// True if the files were compiled within the time; otherwise the rest is that of an earlier parse.
    pub(crate) is_done: bool,
    /// The reason why the declarations of the files were not applied; none if they were.
    pub(crate) not_applied: Option<ResourceError>,
    /// The findings in the edited files.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Instance {
    /// Returns true if callers other than the user of the process may change the project's files: those of a confined
    /// project, and of one whose operator allows it.
    pub fn allows_remote_edit(&self) -> bool {
        self.options.sandbox || self.options.remote_edit
    }

    /// Returns what all who serve this instance to callers have in common; made for the first one.
    pub(crate) fn common<T: Clone + Send + Sync + 'static>(&self, make: impl Fn() -> T) -> T {
        self.attended.common(make)
    }

    /// Notes that a caller is about to write a file, so that the history names the caller as the origin of what the
    /// edit sets going.
    pub(crate) fn note_author(&self, path: &str, author: &Arc<str>) {
        self.origins.note(author);
        self.known.touched().note_author(path, Arc::clone(author));
    }

    /// Compiles all files anew, which were put in place as a whole, and applies their declarations. Does not wait for the
    /// parse.
    ///
    /// # Errors
    /// `unavailable`, when the controller takes no requests.
    pub(crate) async fn parse_all(&self, author: Arc<str>) -> Result<(), Problem> {
        self.look_at_everything();
        let asked = self.controller().reconcile(Key::new(KIND, NAME));
        let asked = on_behalf_of(author, asked).await;
        asked
            .map(drop)
            .map_err(|error| Problem::new(Code::Unavailable, error.to_string()))
    }

    /// Returns a receiver that is told each time that files may have changed.
    pub(crate) fn file_reports(&self) -> watch::Receiver<u64> {
        self.known.touched().reports()
    }

    /// Returns true if changes of files are reported at once.
    pub(crate) fn are_files_watched(&self) -> bool {
        self.known.touched().is_watched()
    }

    /// Forgets the caller of a file that was not written.
    pub(crate) fn forget_author(&self, path: &str) {
        self.known.touched().take_author(path);
    }

    /// Compiles edited files and applies their declarations, and returns the findings in these files. Does not wait for
    /// what the edit sets going, and for the parse no longer than `patience`.
    ///
    /// Cancel-safe: the files are compiled all the same.
    ///
    /// # Errors
    /// `stopping` and `unavailable`, when the controller takes no requests.
    pub(crate) async fn parse_edits(
        &self,
        paths: &[&str],
        author: Arc<str>,
        patience: Duration,
    ) -> Result<Parsed, Problem> {
        self.known
            .touched()
            .add(Scope::paths(paths.iter().map(|path| (*path).to_owned())));
        let parser = || Key::new(KIND, NAME);
        let asked = on_behalf_of(author, self.controller().reconcile(parser())).await;
        let mut asked = asked.map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?;
        let is_done = asked.outcome(patience).await.is_ok();
        let parser = self.controller().get(parser());
        let row = parser
            .map_err(|error| Problem::new(Code::Unavailable, error.to_string()))?
            .row;
        let is_about = |found: &Diagnostic| {
            let mut places = found.related.iter().map(|place| place.path.as_str());
            paths.contains(&found.path.as_str()) || places.any(|path| paths.contains(&path))
        };
        let mut diagnostics = kinds::findings(&row).unwrap_or_default();
        diagnostics.retain(is_about);
        Ok(Parsed {
            is_done,
            not_applied: health::own_error(&row).map(|error| resource::failure(error)),
            diagnostics,
        })
    }
}
