//! Explores and canvases in front of metrics views, whose rules form an additional layer that only restricts (Q15).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use watershed_compilers::Kind;
use watershed_core::{Key, Row};
use watershed_proto::{
    CanvasSpec, ComponentSpec, ComponentState, ExploreSpec, Fault, Message as _, SecurityRule,
};

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
        let names = |sql: &String| words(sql).any(|word| word.eq_ignore_ascii_case(view));
        Some(is_own || statements(&state.valid_spec?).iter().any(names))
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

/// Settings that have queries in SQL, which are sent as JSON instead.
pub(super) const STATEMENTS: [&str; 2] = ["metrics_sql", "sql"];

/// Returns the words of a text, as names are written without quotes.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_');
    words.filter(|word| !word.is_empty())
}

/// Returns a component's queries in SQL.
pub(super) fn statements(spec: &ComponentSpec) -> Vec<String> {
    let properties = spec.renderer_properties.as_ref();
    let value = properties.and_then(|all| all.get(STATEMENTS[0])).map(Json::from);
    let text = |one: &Json| one.as_str().map(str::to_owned);
    match &value {
        Some(Json::Array(items)) => items.iter().filter_map(text).collect(),
        one => one.iter().filter_map(text).collect(),
    }
}
