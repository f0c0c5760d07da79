//! Explores and canvases in front of metrics views, whose rules form an additional layer that only restricts (Q15).

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_compilers::Kind;
use watershed_core::{Key, Row};
use watershed_proto::{CanvasSpec, ComponentState, ExploreSpec, Fault, Message as _, SecurityRule};

use super::board;
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
    let of_component = |row: Arc<Row>| {
        let state = ComponentState::decode(row.state.as_ref()?.as_ref()).ok()?;
        let is_own = state.metrics_view.eq_ignore_ascii_case(view);
        // Rules only restrict: a view that a text seems to name is no more open for it.
        let names = |sql: &String| board::words(sql).any(|word| word.eq_ignore_ascii_case(view));
        Some(is_own || board::statements(&state.valid_spec?).iter().any(names))
    };
    row.refs.iter().any(|reference| {
        let key = reference.key();
        match Kind::read(key.kind.as_str()) {
            Some(Kind::MetricsView) => key.name.as_str().eq_ignore_ascii_case(view),
            Some(Kind::Component) => resources.find(&key).and_then(of_component) == Some(true),
            _ => false,
        }
    })
}
