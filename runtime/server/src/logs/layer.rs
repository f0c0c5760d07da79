//! The tracing layer that finds the invocation of each event and hands the line to the writer.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;
use watershed_api::documents::{LogLevel, LogLine, ResourceName, Time};
use watershed_outputs::secrets::Secrets;

use super::writer::Writer;
use crate::hiding::Hiding;
use crate::report::run_id;

/// Most detailed lines that are held back for a run until it logs a line at `INFO` or above.
const DETAILS: usize = 64;
/// Longest text of a line, in bytes: a statement that a person wrote, and more than anybody reads.
const LONGEST: usize = 16 * 1024;

/// Name of the span of an instance, whose field `logs` is the folder of its logs.
pub(crate) const INSTANCE_SPAN: &str = "instance";
/// Name of the controller's span of an invocation.
const INVOCATION_SPAN: &str = "invocation";

/// Returns the layer that stores log lines of invocations: from this project's crates with details, from others
/// without.
pub(super) fn layer<S>(writer: &'static Writer, hiding: Hiding) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let wanted = filter_fn(|metadata: &Metadata<'_>| {
        *metadata.level() <= Level::INFO || metadata.target().starts_with("watershed")
    });
    LogLayer { writer, hiding }.with_filter(wanted.and(LevelFilter::DEBUG))
}

struct LogLayer {
    writer: &'static Writer,
    /// The secrets of the instances whose lines are kept.
    hiding: Hiding,
}

/// The folder of an instance, and what its lines do not show.
#[derive(Clone)]
struct Folder {
    path: Arc<Path>,
    secrets: Secrets,
}

/// The invocation that a span belongs to.
struct Run {
    folder: Folder,
    uid: Uuid,
    resource: ResourceName,
    run: String,
    /// Detailed lines that are held back until the first line that matters.
    details: Vec<LogLine>,
    matters: bool,
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        let is_ours = metadata.target().starts_with("watershed");
        let Some(span) = context.span(id).filter(|_| is_ours) else {
            return;
        };
        match metadata.name() {
            INSTANCE_SPAN => {
                let said = Fields::recorded(|said| attributes.record(said));
                let path: Option<Arc<Path>> = said.text("logs").map(|path| PathBuf::from(path).into());
                // Another runtime's is that one's affair.
                if let Some(path) = path
                    && let Some(secrets) = self.hiding.of_project(&path)
                {
                    span.extensions_mut().insert(Folder { path, secrets });
                }
            }
            INVOCATION_SPAN => {
                let folder = span.scope().find_map(|above| {
                    let extensions = above.extensions();
                    extensions.get::<Folder>().cloned()
                });
                let run = folder.and_then(|folder| {
                    Run::from_fields(&Fields::recorded(|said| attributes.record(said)), folder)
                });
                if let Some(run) = run {
                    span.extensions_mut().insert(run);
                }
            }
            _ => {}
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        for span in context.event_scope(event).into_iter().flatten() {
            let mut extensions = span.extensions_mut();
            let Some(run) = extensions.get_mut::<Run>() else {
                continue;
            };
            let line = self.line(run, event);
            if line.level > LogLevel::Info && !run.matters {
                if run.details.len() < DETAILS {
                    run.details.push(line);
                }
                return;
            }
            run.matters = true;
            for line in std::mem::take(&mut run.details).into_iter().chain([line]) {
                self.writer.take(&run.folder.path, run.uid, line);
            }
            return;
        }
    }
}

impl LogLayer {
    fn line(&self, run: &Run, event: &Event<'_>) -> LogLine {
        let mut said = Fields::recorded(|said| event.record(said));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let message = match said.0.remove("message") {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let hidden = |text: &str| run.folder.secrets.redact(text).into_owned();
        for value in said.0.values_mut() {
            if let Value::String(text) = value {
                *text = hidden(text);
            }
        }
        LogLine {
            id: self
                .writer
                .next_id(u64::try_from(now.as_micros()).unwrap_or(u64::MAX)),
            at: Time::from_millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX)),
            level: level(*event.metadata().level()),
            resource: run.resource.clone(),
            run: run.run.clone(),
            message: hidden(&message),
            fields: said.0,
            target: event.metadata().target().to_owned(),
        }
    }
}

impl Run {
    fn from_fields(said: &Fields, folder: Folder) -> Option<Self> {
        let number = |name: &str| said.0.get(name).and_then(Value::as_u64);
        Some(Self {
            folder,
            uid: Uuid::parse_str(said.text("resource.uid")?).ok()?,
            resource: ResourceName {
                kind: said.text("resource.kind")?.to_owned(),
                name: said.text("resource.name")?.to_owned(),
            },
            run: run_id(number("epoch")?, number("invocation")?),
            details: Vec::new(),
            matters: false,
        })
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// The fields of a span or an event, by name.
#[derive(Default)]
struct Fields(BTreeMap<String, Value>);

impl Fields {
    fn recorded(record: impl FnOnce(&mut Self)) -> Self {
        let mut said = Self::default();
        record(&mut said);
        said
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, bounded(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, bounded(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::super::files;
    use super::*;

    fn invocation(uid: Uuid, number: u64) -> tracing::Span {
        tracing::info_span!(
            target: "watershed_controller::runner",
            "invocation",
            resource.uid = %uid,
            resource.kind = "model",
            resource.name = "a",
            epoch = 3_u64,
            invocation = number,
        )
    }

    #[test]
    fn lines_go_to_their_resource_with_details_only_where_something_matters() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        let writer: &'static Writer = Box::leak(Box::new(Writer::start()));
        let (hiding, secrets) = (Hiding::default(), Secrets::default());
        secrets.learn([(&"KEY".to_owned(), &"hunter22".to_owned())]);
        hiding.begin(&folder, &secrets);
        let subscriber = tracing_subscriber::registry().with(layer(writer, hiding));
        let (busy, idle) = (Uuid::from_u128(1), Uuid::from_u128(2));
        tracing::subscriber::with_default(subscriber, || {
            let instance =
                tracing::info_span!(target: "watershed::instance", "instance", logs = %folder.display());
            instance.in_scope(|| {
                invocation(idle, 1).in_scope(|| tracing::debug!(target: "watershed", "looked"));
                invocation(busy, 2).in_scope(|| {
                    tracing::debug!(target: "watershed", decision = "build", "decided");
                    tracing::debug!(target: "sqlx", "SELECT");
                    tracing::info_span!("elsewhere").in_scope(|| tracing::info!(rows = 7, "built hunter22"));
                    tracing::debug!(target: "watershed", "then");
                });
                tracing::info!("outside of an invocation");
            });
            invocation(busy, 3).in_scope(|| tracing::info!("of no instance"));
            let other = temp.path().join("other");
            let other =
                tracing::info_span!(target: "watershed::instance", "instance", logs = %other.display());
            other.in_scope(|| invocation(busy, 4).in_scope(|| tracing::info!("of another runtime")));
        });
        assert!(!temp.path().join("other").exists());
        writer.flush();
        assert_eq!(files::read(&folder, idle, 10).unwrap(), []);
        let lines = files::read(&folder, busy, 10).unwrap();
        let told: Vec<&str> = lines.iter().map(|line| line.message.as_str()).collect();
        assert_eq!(told, ["decided", "built [KEY]", "then"]);
        assert_eq!(
            (lines[1].run.as_str(), &lines[1].fields["rows"]),
            ("3-2", &Value::from(7))
        );
        assert_eq!(lines[0].fields["decision"], "build");
        assert!(lines.windows(2).all(|pair| pair[0].id < pair[1].id));
    }
}
