//! Explores and canvases in front of metrics views, whose rules form an additional layer that only restricts (Q15).

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_compilers::Kind;
use watershed_core::{Key, Row};
use watershed_proto::{CanvasSpec, ExploreSpec, Fault, Message as _, SecurityRule};

use super::error::MetricsError;
use super::resources::Resources;

/// The rules of an explore or canvas, with the variables of their templates.
pub(super) struct Front {
    pub(super) rules: Vec<SecurityRule>,
    pub(super) variables: BTreeMap<String, String>,
}

impl Front {
    /// Finds the explore or canvas through which a view is queried.
    ///
    /// # Errors
    /// One that is not there, does not compile, or does not show the view.
    pub(super) fn find(key: &Key, view: &str, resources: &dyn Resources) -> Result<Self, MetricsError> {
        let unknown = || MetricsError::NoFront(key.clone());
        let row = resources.find(key).ok_or_else(unknown)?;
        let (front, fault, shows) = match Kind::read(key.kind.as_str()) {
            Some(Kind::Explore) => {
                let spec = ExploreSpec::decode(row.spec.as_ref()).map_err(|_| unknown())?;
                let shows = spec.metrics_view.eq_ignore_ascii_case(view);
                (Self::of(spec.security_rules, spec.variables), spec.fault, shows)
            }
            Some(Kind::Canvas) => {
                let spec = CanvasSpec::decode(row.spec.as_ref()).map_err(|_| unknown())?;
                let shows = shows(&row, view, resources);
                (Self::of(spec.security_rules, spec.variables), spec.fault, shows)
            }
            _ => return Err(unknown()),
        };
        match (fault, shows) {
            // Nobody knows what its rules were to say.
            (Some(Fault { .. }), _) => Err(MetricsError::Policy {
                view: key.to_string(),
                message: "its file does not compile".to_owned(),
            }),
            (None, false) => Err(MetricsError::NotInFront {
                front: key.clone(),
                view: view.to_owned(),
            }),
            (None, true) => Ok(front),
        }
    }

    fn of(rules: Vec<SecurityRule>, variables: BTreeMap<String, String>) -> Self {
        Self { rules, variables }
    }
}

/// Returns true if a canvas has a component over the view.
fn shows(row: &Row, view: &str, resources: &dyn Resources) -> bool {
    let is_view = |key: &Key| {
        let is_of_kind = Kind::read(key.kind.as_str()) == Some(Kind::MetricsView);
        is_of_kind && key.name.as_str().eq_ignore_ascii_case(view)
    };
    // A component that asks in SQL reads what its refs are, and no other view.
    let of_component = |row: Arc<Row>| row.refs.iter().any(|reference| is_view(&reference.key()));
    row.refs.iter().any(|reference| {
        let key = reference.key();
        match Kind::read(key.kind.as_str()) {
            Some(Kind::Component) => resources.find(&key).is_some_and(of_component),
            _ => is_view(&key),
        }
    })
}
