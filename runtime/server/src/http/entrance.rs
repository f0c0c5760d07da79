//! The entrance of callers who come by another protocol than HTTP, with the checks, the rates and the words of HTTP.
//!
//! Such a caller has a token of the service, and enters one instance.

mod views;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};
use watershed_api::documents::Time;
use watershed_api::http::{ROUTES, Route};
use watershed_api::request::QueryRequest;
use watershed_api::{Code, Problem, Request};
use watershed_callers::{Grant, Verifier};
use watershed_drivers::olap::QueryError;

use super::answers;
use super::bearer::{Bearers, unauthenticated};
use super::caller::Caller;
use super::held::Held;
use super::limits::Passed;
use super::routes::lacking;
use super::scope::Scope;
use super::service::{Open, Service};
use super::sessions::SessionPlace;
use super::visibility::Visibility;
use crate::instance::Instance;
use crate::out::redacted;
use crate::report::Entry;
use crate::service::answers::{self as engine, Statement};
use crate::service::problems::of_query;

pub(crate) use views::Offered;

/// A caller within an instance, until the value is dropped.
pub(crate) struct Entered {
    service: Service,
    open: Open,
    caller: Caller,
    instance: String,
    grant: Grant,
    visibility: Visibility,
    /// Cancelled when access is revoked, when the instance leaves, and when the value is dropped.
    ended: DropGuard,
    place: SessionPlace,
    /// The instance is attended as long as somebody may ask it.
    _held: Held,
}

impl Service {
    /// Returns the verifier of a valid token's secret; none for an id that no such token has.
    pub(crate) fn verifier(&self, id: &str) -> Option<Verifier> {
        let live = self.tokens()?.of_id(id, Time::now().millis())?;
        live.token.scram.clone()
    }

    /// Counts a failed sign-in among those over HTTP.
    ///
    /// # Errors
    /// `busy`, when too many have failed from there.
    pub(crate) fn failed_to_sign_in(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        let address = address.map(|address| address.to_canonical());
        self.gate().take_failure(address).map_err(|(problem, _)| problem)
    }

    /// Counts a connection that was refused because too many are open.
    pub(crate) fn count_refused_connection(&self) {
        self.gate().count(Passed::Connections);
    }

    /// Lets in the holder of a token who has proved the secret of a verifier.
    ///
    /// # Errors
    /// `unauthenticated`, if the token is not valid any more; `unknown-name`, for an instance on which the token has no role, as
    /// for one that does not exist; `busy`, for too many sessions or calls; and those of an instance that is not open.
    pub(crate) fn enter(&self, id: &str, proved: &Verifier, instance: &str) -> Result<Entered, Problem> {
        let tokens = self.tokens().ok_or_else(unauthenticated)?;
        let bearers = Bearers::new(Arc::clone(tokens));
        let caller = bearers.proved(id, proved).ok_or_else(unauthenticated)?;
        self.gate()
            .take_request(&caller)
            .map_err(|(problem, _)| problem)?;
        let grant = self.grant(&caller, instance)?;
        let visibility = Visibility::of(grant);
        let open = self
            .find(instance)
            .map_err(|problem| visibility.problem(problem))?;
        let place = self.sessions().take(caller.name(), instance)?;
        let held = Held::default();
        held.hold(&open.instance);
        Ok(Entered {
            service: self.clone(),
            ended: ended(&caller, &open).drop_guard(),
            instance: instance.to_owned(),
            open,
            caller,
            grant,
            visibility,
            place,
            _held: held,
        })
    }
}

/// Returns a token that is cancelled when access is revoked, or the instance leaves.
fn ended(caller: &Caller, open: &Open) -> CancellationToken {
    let (revoked, ended) = (caller.ended().clone(), open.ending.child_token());
    tokio::spawn({
        let ended = ended.clone();
        async move {
            tokio::select! {
                () = revoked.cancelled() => ended.cancel(),
                () = ended.cancelled() => {}
            }
        }
    });
    ended
}

impl Entered {
    /// Returns the route whose rights, rate and audit are those of statements.
    fn route() -> Result<&'static Route, Problem> {
        let mut all = ROUTES.iter();
        let found = all.find(|route| route.path == "/query");
        found.ok_or_else(|| Problem::new(Code::Defect, "there is no path of statements"))
    }

    /// Refuses a caller who may not ask the outputs over HTTP.
    ///
    /// # Errors
    /// `not-allowed`.
    pub(crate) fn check_query(&self) -> Result<(), Problem> {
        let route = Self::route()?;
        if !self.grant.allows(route.role) {
            return Err(lacking(route.role, self.grant, &self.instance));
        }
        Scope::of(&self.caller).check(route)
    }

    /// Counts a call, whatever is asked.
    ///
    /// # Errors
    /// `busy`, when the caller asks more often than one may.
    pub(crate) fn count(&self) -> Result<(), Problem> {
        self.place.count_statement();
        let taken = self.service.gate().take_request(&self.caller);
        taken.map_err(|(problem, _)| problem)
    }

    /// Returns a statement over the outputs as the engine may run it, with its slot. Rights, fence, limits and words are those of
    /// `POST query`.
    ///
    /// # Errors
    /// Those of `POST query`.
    pub(crate) async fn statement(&self, sql: String, limit: Option<u64>) -> Result<Statement, Problem> {
        self.check_query()?;
        let request = Request::Query(Box::new(QueryRequest {
            limit,
            ..QueryRequest::new(sql)
        }));
        let usual = self.service.gate().limits().statement;
        let stated = engine::statement(self.instance(), request, usual).await;
        stated.map_err(|problem| self.shown(problem))
    }

    /// Returns the problem of a statement in words that the caller may read.
    pub(crate) fn problem(&self, error: &QueryError) -> Problem {
        self.shown(of_query(error))
    }

    /// Returns a problem without secrets, and without what the caller may not see.
    pub(crate) fn shown(&self, problem: Problem) -> Problem {
        self.visibility.problem_of_question(self.whole(problem))
    }

    /// Returns a problem without secrets.
    fn whole(&self, problem: Problem) -> Problem {
        let instance = self.instance();
        answers::problem(redacted(problem, instance.outputs.secrets()), instance)
    }

    /// Returns a problem of a statement over a metrics view, as over HTTP: who may not read texts of errors reads those of the
    /// statement itself alone.
    pub(crate) fn shown_of_view(&self, problem: Problem) -> Problem {
        self.visibility.problem(self.whole(problem))
    }

    /// Returns the instance.
    pub(crate) fn instance(&self) -> &Arc<Instance> {
        &self.open.instance
    }

    /// Returns the resources of the instance.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.open.instance.entries()
    }

    /// Returns the name of the instance.
    pub(crate) fn name(&self) -> &str {
        &self.instance
    }

    /// Returns the id of the caller's token.
    pub(crate) fn user(&self) -> &str {
        let name = self.caller.name();
        name.strip_prefix("token:").unwrap_or(name)
    }

    /// Returns the time limit of a statement.
    pub(crate) fn time_limit(&self) -> Duration {
        self.service.gate().limits().statement
    }

    /// Returns the names of the instances on which the caller has a role.
    pub(crate) fn instances(&self) -> Vec<String> {
        let all = self.service.all().into_iter().map(|(name, _)| name);
        all.filter(|name| self.caller.on(name).is_some()).collect()
    }

    /// Returns the token that is cancelled when access is revoked, or the instance leaves.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.token().clone()
    }

    /// Returns the time until access expires.
    pub(crate) fn expires_in(&self) -> Duration {
        let left = |at: Time| u64::try_from(at.millis() - Time::now().millis()).unwrap_or(0);
        self.caller
            .expires_at()
            .map_or(Duration::MAX, |at| Duration::from_millis(left(at)))
    }
}
