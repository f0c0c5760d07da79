//! The authenticated caller of a request.

use std::sync::Arc;

use axum::http::request::Parts;
use watershed_api::Problem;
use watershed_api::operations::Role;

/// An authenticated caller with roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    name: String,
    roles: Vec<Role>,
}

impl Caller {
    /// Creates a caller with all roles; the name is shown in the history.
    pub fn owner(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            roles: vec![Role::Read, Role::Operate, Role::Edit, Role::Admin, Role::Query],
        }
    }

    /// Returns the caller's name, as the history shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the caller's roles.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }
}

/// Function that authenticates a request by its head.
///
/// # Errors
/// The problem with which a caller is turned away.
pub type Identify = Arc<dyn Fn(&Parts) -> Result<Caller, Problem> + Send + Sync>;
