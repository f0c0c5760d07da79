//! The project as it is known so far: shared by the project parser and by whoever looks at the files before it runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use watershed_compilers::Options;
use watershed_drivers::sandbox::Sandbox;
use watershed_locks::Unpoisoned;

use super::compilation::Compilation;
use super::folder::FolderError;
use super::touched::Touched;

/// A project's files as compiled so far. Clones share it.
#[derive(Debug, Clone)]
pub struct Known {
    root: PathBuf,
    cache: Option<PathBuf>,
    sandbox: Option<Sandbox>,
    touched: Touched,
    /// Locked for a whole look, on threads for blocking work.
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    compilation: Option<Compilation>,
    /// It was made ahead of the first parse, which has not seen it.
    is_ahead: bool,
    /// The changes of the last look are in the catalog.
    is_applied: bool,
}

/// The looks that a parse had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// None: all that the files say counts as changed.
    None,
    /// Some: what changed since then is known.
    Some,
}

impl Known {
    /// The project below `root`, not looked at yet. The file `cache` stores answers of the engine's parser; `touched`
    /// receives the paths that the file watcher reports as changed.
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

    /// The same for a project that is confined to some folders: links that lead out of them are not followed.
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

    /// Looks at the files on a thread of its own before the first parse asks for them: a process compiles while it reads
    /// its catalog. What goes wrong is left to the parse, which looks again.
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

    /// Looks at the files as a parse does, and reads what they declare. Blocks.
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
        }
        Ok(read(compilation, looks))
    }

    /// Notes that the changes of the last look are in the catalog. Nobody looks meanwhile.
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
