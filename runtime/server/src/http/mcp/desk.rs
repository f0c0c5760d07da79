//! The one who carries out the calls of tools: the routes of this process, or those of the process that owns the project.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::header::ETAG;
use futures::future::BoxFuture;
use tower::ServiceExt as _;
use watershed_api::http::calls::{Answered, Called, LocalUser};
use watershed_api::http::encoded;
use watershed_api::{Code, Owner, Problem};
use watershed_callers::grants::{ALL_INSTANCES, NoRole};
use watershed_callers::{Grant, Grants};

use super::super::caller::Caller;
use super::super::routes::calls_of_instances;
use super::super::service::Service;
use crate::instance::Instance;
use crate::socket::{self, Replies};

/// The largest answer that is read, in bytes: that of the largest page.
const LARGEST: usize = 64 << 20;

/// Carries out the calls of tools.
pub trait Desk: Send + Sync + 'static {
    /// Returns the instances that the caller may know, by name.
    fn instances(&self, caller: &Caller) -> Vec<String>;

    /// Carries out a call in the name of a caller.
    ///
    /// # Errors
    /// When nobody carried it out. The refusals of a path are answers.
    fn call(&self, caller: &Caller, called: Called) -> BoxFuture<'_, Result<Answered, Problem>>;
}

/// The routes of a service of this process.
pub(super) struct Here {
    service: Service,
    routes: Router,
}

impl Here {
    pub(super) fn new(service: Service) -> Self {
        Self {
            routes: calls_of_instances(service.clone()),
            service,
        }
    }
}

impl Desk for Here {
    fn instances(&self, caller: &Caller) -> Vec<String> {
        let all = self.service.all().into_iter().map(|(name, _)| name);
        all.filter(|name| caller.on(name).is_some()).collect()
    }

    fn call(&self, caller: &Caller, called: Called) -> BoxFuture<'_, Result<Answered, Problem>> {
        let caller = caller.clone();
        Box::pin(async move { call(&self.routes, caller, called).await })
    }
}

/// Carries out a call by routes that take the caller as authenticated.
async fn call(routes: &Router, caller: Caller, called: Called) -> Result<Answered, Problem> {
    let query = if called.query.is_empty() {
        String::new()
    } else {
        format!("?{}", called.query)
    };
    let path = format!(
        "/v1/instances/{}{}{query}",
        encoded(&called.instance),
        called.path
    );
    let mut request = Request::builder().method(called.method.as_str()).uri(path);
    for (name, value) in &called.headers {
        request = request.header(name, value);
    }
    let unread = |what: String| Problem::new(Code::BadArgument, format!("the call can't be made: {what}"));
    let mut request = request
        .body(Body::from(called.body))
        .map_err(|error| unread(error.to_string()))?;
    request.extensions_mut().insert(caller.through(&called.tool));
    let answered = routes.clone().oneshot(request).await;
    let (parts, body) = answered.map_err(|never| unread(never.to_string()))?.into_parts();
    let lost = |what: String| Problem::new(Code::Unavailable, format!("the answer can't be read: {what}"));
    let body = to_bytes(body, LARGEST)
        .await
        .map_err(|error| lost(error.to_string()))?;
    let body = String::from_utf8(body.to_vec())
        .map_err(|_| Problem::new(Code::BadArgument, "the file is no text in UTF-8"))?;
    let etag = parts.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    Ok(Answered {
        status: parts.status.as_u16(),
        etag: etag.map(str::to_owned),
        body,
    })
}

/// Returns the user of this machine as a caller of all instances.
///
/// # Errors
/// `bad-argument`, for a role that there is not.
pub fn caller_of(user: &LocalUser) -> Result<Caller, Problem> {
    let grant: Grant = user
        .role
        .parse()
        .map_err(|error: NoRole| Problem::new(Code::BadArgument, error.to_string()))?;
    let attributes = user.attributes.clone();
    Ok(Caller::of_machine(
        Grants::one(ALL_INSTANCES, grant),
        attributes.map(|all| all.into_iter().collect()),
    ))
}

/// The owner of a state folder, for other processes: its operations, and the calls of tools.
pub struct OwnerDesk {
    instance: Arc<Instance>,
    /// The routes, made for the first call.
    routes: OnceLock<Router>,
}

impl OwnerDesk {
    /// Returns the desk of an instance of this process.
    pub fn new(instance: Arc<Instance>) -> Self {
        Self {
            instance,
            routes: OnceLock::new(),
        }
    }

    /// Carries out a call in the name of the user of this machine.
    ///
    /// # Errors
    /// As [`Desk::call`].
    pub async fn call(&self, user: &LocalUser, called: Called) -> Result<Answered, Problem> {
        let name = self.instance.name();
        let routes = self
            .routes
            .get_or_init(|| calls_of_instances(Service::new().with(name, Arc::clone(&self.instance))));
        let called = Called {
            instance: name.to_owned(),
            ..called
        };
        call(routes, caller_of(user)?, called).await
    }
}

impl socket::Service for OwnerDesk {
    async fn serve(&self, request: watershed_api::Request, replies: Replies) {
        self.instance.serve(request, replies).await;
    }

    fn owner(&self) -> Option<Owner> {
        self.instance.owner()
    }

    async fn tool(&self, user: LocalUser, called: Called) -> Result<Answered, Problem> {
        self.call(&user, called).await
    }
}
