//! The compiled project, shared by the project parser and by readers that need the files before it runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use watershed_compilers::Options;
use watershed_drivers::sandbox::Sandbox;
use watershed_locks::Unpoisoned;

use super::compilation::Compilation;
use super::folder::FolderError;
use super::touched::Touched;

/// The compiled files of a project; clones share the state.
#[derive(Debug, Clone)]
pub struct Known {
    root: PathBuf,
    cache: Option<PathBuf>,
    sandbox: Option<Sandbox>,
    touched: Touched,
    /// The state, locked during a whole look, on threads for blocking work.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    compilation: Option<Compilation>,
    /// True if the compilation was made before the first parse.
    is_ahead: bool,
    /// True if the changes of the last look have been applied to the catalog.
    is_applied: bool,
}

/// Tells whether earlier looks exist, from which changes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// No earlier look: everything counts as changed.
    None,
    /// An earlier look: later changes are known.
    Some,
}

impl Known {
    /// Creates the state for the project in `root`, without looking at files yet. The file `cache` stores answers of
    /// the engine's parser; `touched` receives the paths that the file watcher reports as changed.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>, cache: Option<PathBuf>, touched: Touched) -> Self {
        Self {
            root: root.into(),
            cache,
            sandbox: None,
            touched,
            state: Arc::default(),
        }
    }

    /// Confines the project to the folders of a sandbox: links that lead out of them are not followed.
    #[must_use]
    pub fn confined(mut self, sandbox: Option<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// Returns the paths that may have changed since the last look.
    #[must_use]
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// Begins with files that were compiled a moment ago.
    pub fn begin_with(&self, compilation: Compilation) {
        let mut state = self.state();
        state.compilation = Some(compilation);
        state.is_ahead = true;
    }

    /// Compiles the files on another thread before the first parse, while the process loads its catalog. Errors are
    /// left to the parse, which looks again.
    pub fn look_ahead(&self, options: Options) {
        let known = self.clone();
        tokio::task::spawn_blocking(move || {
            let mut state = known.state();
            if state.compilation.is_some() {
                return;
            }
            let mut compilation = known.begin(options);
            if known.touched.look(|scope| compilation.refresh(scope)).is_ok() {
                state.compilation = Some(compilation);
                state.is_ahead = true;
            }
        });
    }

    /// Looks at the files as a parse does, and passes the compilation to `read`. Blocks.
    ///
    /// # Errors
    /// When the folder can't be listed. Then nothing is known anew.
    pub(super) fn look<T>(
        &self,
        options: Options,
        read: impl FnOnce(&mut Compilation, Looks) -> T,
    ) -> Result<T, FolderError> {
        let mut guard = self.state();
        let state = &mut *guard;
        if state
            .compilation
            .as_ref()
            .is_some_and(|before| *before.project().options() != options)
        {
            state.compilation = None;
            state.is_ahead = false;
        }
        let is_ahead = std::mem::take(&mut state.is_ahead);
        let looks = match state.compilation {
            Some(_) if !is_ahead => Looks::Some,
            _ => Looks::None,
        };
        let compilation = state.compilation.get_or_insert_with(|| self.begin(options));
        if std::mem::take(&mut state.is_applied) {
            compilation.changes_are_applied();
        }
        // Where nobody watches, a look ahead was at all files, a moment ago and since this process was asked.
        if !is_ahead || self.touched.is_watched() {
            self.touched.look(|scope| compilation.refresh(scope))?;
            compilation.name_authors(|path| self.touched.take_author(path));
        }
        Ok(read(compilation, looks))
    }

    /// Records that the changes of the last look have been applied to the catalog. No look may run meanwhile.
    pub(super) fn changes_are_applied(&self) {
        self.state().is_applied = true;
    }

    fn begin(&self, options: Options) -> Compilation {
        Compilation::new(&self.root, options, self.cache.clone()).confined(self.sandbox.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::touched::Scope;
    use super::*;

    #[test]
    fn files_that_were_compiled_a_moment_ago_are_not_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("models/days.sql");
        std::fs::create_dir(folder.path().join("models")).unwrap();
        std::fs::write(folder.path().join("watershed.yaml"), "").unwrap();
        std::fs::write(&model, "SELECT 1 AS day").unwrap();
        let options = Options::default();
        let mut compilation = Compilation::new(folder.path(), options.clone(), None);
        compilation.refresh(&Scope::Everything).unwrap();
        let known = Known::new(folder.path(), None, Touched::default());
        known.begin_with(compilation);
        // A second look would miss it.
        std::fs::remove_file(model).unwrap();
        let looked = known.look(options, |compilation, looks| {
            let mut resources = compilation.project().resources();
            (resources.any(|it| it.name == "days"), looks)
        });
        assert_eq!(looked.unwrap(), (true, Looks::None));
    }
}
