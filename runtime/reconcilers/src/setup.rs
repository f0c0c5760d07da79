//! Registration of all kinds with a controller.

use std::{path::PathBuf, sync::Arc};

use watershed_controller::Builder;
use watershed_delivery::Notifications;
use watershed_drivers::olap::Conditions;
use watershed_outputs::Outputs;
use watershed_resolvers::{Cache, directory::Directory};

use crate::{
    alert::{self, AlertReconciler},
    api::{self, ApiReconciler},
    canvas::{self, CanvasReconciler},
    component::{self, ComponentReconciler},
    connector::{self, ConnectorReconciler},
    explore::{self, ExploreReconciler},
    links::Links,
    metrics_view::{self, MetricsViewReconciler},
    migration::{self, MigrationReconciler},
    model::{self, ModelReconciler, sample::Sample},
    notifiers::ProjectNotifiers,
    project_parser::{self, ProjectParser, known::Known},
    report::{self, ReportReconciler, files::Files},
    surroundings::Surroundings,
    theme::{self, ThemeReconciler},
};

/// The number of invocations of alerts, reports and notifications that run beside builds; added to the controller's
/// limit so that neither takes slots from the other.
pub const BESIDE_BUILDS: usize = alert::AT_ONCE + report::AT_ONCE + watershed_delivery::notification::AT_ONCE;

/// The parts that all reconcilers of a project share.
pub struct Setup {
    /// The folder of the project.
    pub root: PathBuf,
    /// The name of the environment, for templates.
    pub environment: String,
    /// The engine and the outputs that models are built in.
    pub outputs: Arc<Outputs>,
    /// The files of the project as compiled so far.
    pub known: Known,
    /// The folder for files of reports, and for files of models before they are moved elsewhere.
    pub exports: PathBuf,
    /// The largest number of models that are built at once.
    pub jobs: usize,
    /// The evaluator of conditions in security policies.
    pub conditions: Arc<dyn Conditions>,
    /// The cache of answers to queries.
    pub cache: Arc<Cache>,
    /// The users that the embedder knows; none without an embedder's directory.
    pub directory: Option<Arc<dyn Directory>>,
    /// The embedder's links to files of reports, if it serves them.
    pub links: Option<Arc<dyn Links>>,
    /// The part of every source to read; all of it if none.
    pub sample: Option<Sample>,
}

impl Setup {
    /// Registers all kinds with a controller. The project parser itself is declared once the controller runs, by
    /// [`project_parser::declare_parser`].
    #[must_use]
    pub fn register(self, builder: Builder) -> Builder {
        let parser = ProjectParser::new(self.known, Arc::clone(&self.outputs));
        let chosen = self.outputs.chosen().clone();
        let (outputs, root, environment) = (&self.outputs, &self.root, &self.environment);
        let migration = MigrationReconciler::new(Arc::clone(outputs), environment);
        let connector = ConnectorReconciler::new(Arc::clone(outputs), root, environment);
        let metrics_view = MetricsViewReconciler::new(Arc::clone(outputs), environment);
        let explore = ExploreReconciler::new(Arc::clone(outputs));
        let project = self.root.file_name().map(|name| name.to_string_lossy());
        let surroundings = Surroundings {
            outputs: Arc::clone(outputs),
            root: root.clone(),
            environment: environment.clone(),
            project: project.unwrap_or_default().into_owned(),
            conditions: self.conditions,
            cache: self.cache,
            directory: self.directory,
            links: self.links,
        };
        let alert = AlertReconciler::new(surroundings.clone());
        let report = ReportReconciler::new(surroundings, Files::new(&self.exports));
        let notifiers = ProjectNotifiers::new(root, environment, outputs.secrets().clone())
            .confined(outputs.sandbox().is_some() || self.sample.is_some())
            .with_egress(outputs.egress().clone());
        let model = ModelReconciler::new(self.outputs, &self.root, self.environment)
            .with_parts(self.exports.join("parts"))
            .with_sample(self.sample);
        Notifications::new(notifiers)
            .register(builder)
            .kind(alert::options(), alert)
            .kind(report::options(), report)
            .kind(project_parser::options(), parser)
            .kind(migration::options(), migration)
            .kind(connector::options(), connector)
            .kind(model::options(self.jobs), model)
            .kind(metrics_view::options(self.jobs), metrics_view)
            .kind(explore::options(), explore)
            .kind(component::options(), ComponentReconciler::new(chosen.clone()))
            .kind(canvas::options(), CanvasReconciler::new(chosen.clone()))
            .kind(api::options(), ApiReconciler)
            .kind(theme::options(), ThemeReconciler)
    }
}
