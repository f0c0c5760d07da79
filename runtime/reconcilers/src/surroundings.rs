//! The context in which alerts and reports run their queries.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use watershed_controller::Handle;
use watershed_core::{Error, Key, RefView, Row, Timestamp, Uid};
use watershed_drivers::olap::Conditions;
use watershed_metrics::jiff;
use watershed_outputs::{Outputs, failure};
use watershed_proto::{DataResolver, MapValue, Value};
use watershed_resolvers::{
    Cache, ResolveError, Resolvers, Resources, Viewer, Views, directory::Directory, legacy,
};

use crate::links::Links;
use crate::metrics_view;
use crate::model::freshness;

/// The parts of a project that alerts and reports use.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) root: PathBuf,
    pub(crate) environment: String,
    /// The display name of the project.
    pub(crate) project: String,
    pub(crate) conditions: Arc<dyn Conditions>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) directory: Option<Arc<dyn Directory>>,
    pub(crate) links: Option<Arc<dyn Links>>,
}

impl Surroundings {
    /// Returns the resolvers of a running controller.
    pub(crate) fn resolvers<'a>(&'a self, resources: &'a Seen<'a>) -> Resolvers<'a> {
        Resolvers {
            views: Views {
                olap: self.outputs.olap(),
                cache: Some(&self.cache),
                secrets: self.outputs.secrets(),
                environment: &self.environment,
                resources,
                conditions: Arc::clone(&self.conditions),
                stale: freshness::stale,
            },
            root: &self.root,
            sandbox: self.outputs.sandbox(),
            directory: self.directory.as_deref(),
        }
    }
}

/// The resources as seen by an invocation: its refs as of the start, which the catalog may not show yet.
pub(crate) struct Seen<'a> {
    pub(crate) handle: Handle,
    pub(crate) refs: &'a [RefView],
}

impl Resources for Seen<'_> {
    fn find(&self, key: &Key) -> Option<Arc<Row>> {
        let of_refs = self.refs.iter().find(|view| view.reference.key() == *key);
        let target = of_refs.and_then(|view| view.target.clone());
        target.or_else(|| self.handle.find(key))
    }

    fn rows(&self) -> Vec<Arc<Row>> {
        let read: HashMap<Uid, &Arc<Row>> = self
            .refs
            .iter()
            .filter_map(|view| view.target.as_ref())
            .map(|target| (target.uid, target))
            .collect();
        let now = |row: Arc<Row>| read.get(&row.uid).map_or(row, |target| Arc::clone(target));
        self.handle.rows().into_iter().map(now).collect()
    }
}

/// Returns the error about the first ref that is missing or has failed, which keeps a query from running.
pub(crate) fn failed_ref(refs: &[RefView]) -> Option<Error> {
    let missing = refs.iter().find(|view| view.target.is_none());
    let failed = refs.iter().find(|view| view.failed);
    let missing = missing.map(|view| failure::missing_ref(&view.reference));
    missing.or_else(|| failed.map(|view| failure::unchecked_ref(&view.reference)))
}

/// Returns the error about the first ref of a row that is missing or has failed, for use without a controller.
pub(crate) fn failed_ref_of(row: &Row, resources: &dyn Resources) -> Option<Error> {
    row.refs
        .iter()
        .find_map(|reference| match resources.find(&reference.key()) {
            None => Some(failure::missing_ref(reference)),
            Some(target) => target.error.as_ref().map(|_| failure::unchecked_ref(reference)),
        })
}

/// Returns the data block of a resource, or else the block equivalent to its deprecated query by name.
///
/// # Errors
/// `not-supported-yet` for a question that queries of metrics views can't say.
pub(crate) fn data_or_legacy(
    data: Option<&DataResolver>,
    name: &str,
    args: Option<&MapValue>,
) -> Result<DataResolver, Error> {
    let found = data.cloned().or_else(|| legacy::data(name, args));
    found.ok_or_else(|| Error {
        hint: Some("write `data: {metrics: ...}` or `data: {sql: ...}`".into()),
        ..Error::permanent(
            "not-supported-yet",
            format!("the question `{name}` is not supported"),
        )
    })
}

/// The block `for`: the user on whose behalf rows are read.
pub(crate) struct For<'a> {
    pub(crate) id: &'a str,
    pub(crate) email: &'a str,
    pub(crate) attributes: Option<&'a MapValue>,
}

impl For<'_> {
    /// Returns the viewer of a query. Without `for`, it is a user without attributes, since the rows are sent to people
    /// (N3).
    ///
    /// # Errors
    /// When nobody knows the user.
    pub(crate) async fn viewer(&self, directory: Option<&dyn Directory>) -> Result<Viewer, Error> {
        let who = if self.email.is_empty() {
            self.id
        } else {
            self.email
        };
        if let Some(said) = self.attributes {
            return Ok(Viewer::user(json(said.fields.clone())));
        }
        if who.is_empty() {
            return Ok(Viewer::user(serde_json::Map::new()));
        }
        let found = match directory {
            Some(directory) => directory.find(who).await,
            None => None,
        };
        found.map(Viewer::user).ok_or_else(|| Error {
            hint: Some(
                "list the user under `mock_users` in the manifest, or write `for: {attributes: ...}`".into(),
            ),
            ..Error::permanent(
                "unknown-user",
                format!("the attributes of the user \"{who}\" are not known"),
            )
        })
    }
}

fn json(attributes: BTreeMap<String, Value>) -> serde_json::Map<String, serde_json::Value> {
    let json = |(name, value): (String, Value)| (name, serde_json::Value::from(&value));
    attributes.into_iter().map(json).collect()
}

/// Returns the keys of the targets of refs.
pub(crate) fn keys(refs: &[RefView]) -> impl Iterator<Item = Key> {
    refs.iter().map(|view| view.reference.key())
}

/// Returns the lowest watermark of the metrics views among the refs; none if no view has one (N2).
///
/// # Errors
/// When one can't be read.
pub(crate) async fn watermark(
    resolvers: &Resolvers<'_>,
    refs: impl Iterator<Item = Key>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let mut lowest: Option<jiff::Timestamp> = None;
    for key in refs.filter(|key| key.kind.as_str() == metrics_view::KIND) {
        let read = resolvers.views.watermark(key.name.as_str(), instant(now)).await;
        let read = read.map_err(|error| ResolveError::from(error).to_error());
        let read = read.map_err(|error| resolvers.views.secrets.redact_error(error))?;
        lowest = match (lowest, read) {
            (Some(lowest), Some(read)) => Some(lowest.min(read)),
            (one, other) => one.or(other),
        };
    }
    Ok(lowest.map(|at| Timestamp(at.as_millisecond())))
}

/// Converts a timestamp of the controller to one of the calendar library.
pub(crate) fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or_default()
}
