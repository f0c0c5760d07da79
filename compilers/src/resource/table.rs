//! The table of kinds, from which the types and matches over all kinds are generated.

/// Passes the table of kinds to a macro.
///
/// A line says of a kind what it is, its variant, the word that files, documents and the catalog write for it, and
/// other words that files may write. Between the braces stand, of kinds that are more than recognised, the table of
/// its keys in `kinds` (the function `read` beside it reads them), the message of its spec, and the key of the manifest
/// that holds defaults of it, with older forms of that key.
///
/// Lines are in the order of the words: it is that of the variants, by which resources are sorted.
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            /// An evaluation of an AI assistant's answers; does nothing yet.
            AiEval = "ai_eval" | "eval" {}
            /// A condition about which people are notified.
            Alert = "alert" { keys: alert::ALERT, spec: AlertSpec }
            /// A query that programs call.
            Api = "api" { keys: api::API, spec: ApiSpec, defaults: "apis" }
            /// A board of components.
            Canvas = "canvas" { keys: canvas::CANVAS, spec: CanvasSpec, defaults: "canvases" }
            /// One component of a canvas.
            Component = "component" { keys: component::COMPONENT, spec: ComponentSpec }
            /// Access to another system.
            Connector = "connector" { keys: connector::CONNECTOR, spec: ConnectorSpec }
            /// A dashboard over one metrics view.
            Explore = "explore" { keys: explore::EXPLORE, spec: ExploreSpec, defaults: "explores" }
            /// A program that runs once to completion.
            Job = "job" { keys: job::JOB, spec: JobSpec, defaults: "jobs" }
            /// A long-lived thing outside, moved from stage to stage.
            Managed = "managed" { keys: managed::MANAGED, spec: ManagedSpec, defaults: "managed" }
            /// Measures and dimensions over a table.
            MetricsView = "metrics_view" | "metricsview" {
                keys: metrics_view::METRICS_VIEW, spec: MetricsViewSpec, defaults: "metrics_views" | "dashboards"
            }
            /// SQL that runs once.
            Migration = "migration" { keys: migration::MIGRATION, spec: MigrationSpec, defaults: "migrations" }
            /// A table or view; sources are models too.
            Model = "model" { keys: model::MODEL, spec: ModelSpec }
            /// A query whose result is sent to people.
            Report = "report" { keys: report::REPORT, spec: ReportSpec }
            /// A program that is kept running.
            Service = "service" { keys: service::SERVICE, spec: ServiceSpec, defaults: "services" }
            /// Instructions to an AI assistant; does nothing.
            Skill = "skill" {}
            /// A set of colours for dashboards.
            Theme = "theme" { keys: theme::THEME, spec: ThemeSpec }
            /// Texts of dashboards in another language; does nothing.
            Translation = "translation" {}
        }
    };
}

pub(crate) use kinds;
