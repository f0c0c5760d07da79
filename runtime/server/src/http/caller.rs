//! The authenticated caller of a request.

use axum::http::request::Parts;
use futures::future::{BoxFuture, ready};
use tokio_util::sync::CancellationToken;
use watershed_api::Problem;
use watershed_api::documents::Time;
use watershed_api::http::access::Authentication;
use watershed_api::operations::Role;
use watershed_callers::grants::ALL_INSTANCES;
use watershed_callers::people::Attributes;
use watershed_callers::{Grant, Grants, Level};

/// An authenticated caller with access by instance.
#[derive(Debug, Clone)]
pub struct Caller {
    name: String,
    grants: Grants,
    is_owner: bool,
    /// True for the user of this machine, also under the policies of somebody else.
    is_of_machine: bool,
    /// Tool by which an assistant calls; none for calls of the API itself.
    tool: Option<String>,
    attributes: Attributes,
    narrowing: Option<Narrowing>,
    authentication: Authentication,
    expires_at: Option<Time>,
    ended: CancellationToken,
}

/// The part of a caller's access that a narrowed token keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Names of the allowed operations; none if all are allowed.
    pub operations: Option<Vec<String>>,
    /// Selection of the visible resources, in the language of `--select`; empty for all.
    pub select: Vec<String>,
}

impl Caller {
    /// Creates a caller who may do everything on all instances and to whom no policy applies, such as the user who
    /// started the service. The name is shown in the history.
    pub fn owner(name: impl Into<String>) -> Self {
        let everything = Grants::one(ALL_INSTANCES, Grant::new(Level::Admin));
        Self {
            is_owner: true,
            is_of_machine: true,
            ..Self::with(name, everything)
        }
    }

    /// Creates the user of this machine with less than everything. With attributes the policies of such a user are in force.
    #[cfg(feature = "mcp")]
    pub(super) fn of_machine(grants: Grants, attributes: Option<Attributes>) -> Self {
        Self {
            is_owner: attributes.is_none(),
            is_of_machine: true,
            attributes: attributes.unwrap_or_default(),
            ..Self::with("local", grants)
        }
    }

    /// Sets the tool by which an assistant calls in the caller's name.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub(super) fn through(self, tool: &str) -> Self {
        Self {
            tool: Some(tool.to_owned()),
            ..self
        }
    }

    /// Creates a caller with access by instance. Policies see a viewer without attributes.
    pub fn with(name: impl Into<String>, grants: Grants) -> Self {
        Self {
            name: name.into(),
            grants,
            is_owner: false,
            is_of_machine: false,
            tool: None,
            attributes: Attributes::new(),
            narrowing: None,
            authentication: Authentication::Local,
            expires_at: None,
            ended: CancellationToken::new(),
        }
    }

    /// Sets the attributes that policies see.
    #[must_use]
    pub fn seen_as(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Limits the caller to some operations and resources.
    #[must_use]
    pub fn narrowed(mut self, narrowing: Narrowing) -> Self {
        self.narrowing = Some(narrowing);
        self
    }

    /// Sets the manner in which the caller was recognised.
    #[must_use]
    pub fn known_by(mut self, authentication: Authentication) -> Self {
        self.authentication = authentication;
        self
    }

    /// Sets the time at which the caller's access ends.
    #[must_use]
    pub fn expiring(mut self, at: Time) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Limits the caller to `read`, under the policies for a user with these attributes.
    #[must_use]
    pub(super) fn viewing_as(self, attributes: Attributes) -> Self {
        Self {
            grants: Grants::one(ALL_INSTANCES, Grant::new(Level::Read)),
            is_owner: false,
            is_of_machine: false,
            attributes,
            ..self
        }
    }

    /// Sets the token whose cancellation ends the caller's streams, as when access is revoked.
    #[must_use]
    pub fn until(mut self, ended: CancellationToken) -> Self {
        self.ended = ended;
        self
    }

    /// Returns the caller's name, as the history shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the caller's access by instance.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the caller's access to an instance; none if the instance must appear not to exist.
    pub fn on(&self, instance: &str) -> Option<Grant> {
        self.grants.on(instance)
    }

    /// Returns the caller's roles on all instances.
    pub fn roles(&self) -> Vec<Role> {
        self.grants.everywhere().map(Grant::roles).unwrap_or_default()
    }

    /// Returns true if no policy applies to the caller.
    pub fn is_owner(&self) -> bool {
        self.is_owner
    }

    /// Returns true for the user of this machine, who owns the files that are changed.
    pub(super) fn is_of_machine(&self) -> bool {
        self.is_of_machine
    }

    /// Returns the protocol of the call, as the audit log has it.
    pub(super) fn protocol(&self) -> &'static str {
        match self.tool {
            Some(_) => "mcp",
            None => "http",
        }
    }

    /// Returns the caller with protocol and tool, as the history shows it.
    pub(super) fn origin(&self) -> String {
        match &self.tool {
            Some(tool) => format!("{} over MCP, by {tool}", self.name),
            None => format!("{} over HTTP", self.name),
        }
    }

    /// Returns the attributes that policies see.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Returns the attributes with which a question is asked in the caller's name; none where no policy applies.
    pub(crate) fn user(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        let attributes = || self.attributes.clone().into_iter().collect();
        (!self.is_owner).then(attributes)
    }

    /// Returns the limits of a narrowed token; none if the caller has all that the grants give.
    pub fn narrowing(&self) -> Option<&Narrowing> {
        self.narrowing.as_ref()
    }

    /// Returns the manner in which the caller was recognised.
    pub fn authentication(&self) -> Authentication {
        self.authentication
    }

    /// Returns the time at which the caller's access ends; none if it has no end.
    pub fn expires_at(&self) -> Option<Time> {
        self.expires_at
    }

    /// Returns the token that is cancelled when the caller's access is revoked. Expiry does not cancel it.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

/// Authenticates requests. Functions from a request's head to a caller implement this trait.
pub trait Identify: Send + Sync + 'static {
    /// Returns the caller of a request, from the request's head.
    ///
    /// # Errors
    /// The problem that the request is refused with.
    fn identify<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, Problem>>;
}

impl<F> Identify for F
where
    F: Fn(&Parts) -> Result<Caller, Problem> + Send + Sync + 'static,
{
    fn identify<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Caller, Problem>> {
        Box::pin(ready(self(head)))
    }
}
