//! The one who asks.

use std::sync::Arc;

use axum::http::request::Parts;
use watershed_api::Problem;
use watershed_api::operations::Role;

/// The one who asks, as the server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    name: String,
    roles: Vec<Role>,
}

impl Caller {
    /// A caller who may do everything, under a name for the history.
    pub fn owner(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            roles: vec![Role::Read, Role::Operate, Role::Edit, Role::Admin, Role::Query],
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the caller may do.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }
}

/// Tells who asks, from the head of a request.
///
/// # Errors
/// The problem with which a caller is turned away.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Caller, Problem> + Send + Sync>;
