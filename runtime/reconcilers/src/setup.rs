//! Registering all kinds with a controller.

use std::{path::PathBuf, sync::Arc};

use watershed_controller::Builder;

use crate::{
    model::{self, ModelReconciler},
    outputs::Outputs,
    project_parser::{self, ProjectParser},
};

/// What the kinds of one project need.
pub struct Setup {
    /// The project's folder.
    pub root: PathBuf,
    /// The environment's name, for templates.
    pub environment: String,
    /// Where models are built.
    pub outputs: Arc<Outputs>,
    /// A file that keeps what the engine's parser said; none to keep nothing.
    pub parse_cache: Option<PathBuf>,
    /// Models built at once.
    pub jobs: usize,
}

impl Setup {
    /// Registers all kinds. The project parser itself is declared once the controller runs, by
    /// [`project_parser::declare_parser`].
    #[must_use]
    pub fn register(self, builder: Builder) -> Builder {
        let parser = ProjectParser::new(&self.root, self.parse_cache, Arc::clone(&self.outputs));
        let model = ModelReconciler::new(self.outputs, &self.root, self.environment);
        builder
            .kind(project_parser::options(), parser)
            .kind(model::options(self.jobs), model)
    }
}
