//! An HTTP call of an instance: the routes that exist only over HTTP, and the start of operations.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
use watershed_api::http::own::{EventsTaken, RequestDocument, TreeDocument, TreeHealth};
use watershed_api::http::routes::{Offer, Own};
use watershed_api::http::{Accepted, DiagnosticsDocument, FileChange, FileRename, RequestState};
use watershed_api::operations::Role;
use watershed_api::{Answer, Code, Operation as _, Problem, Request as Asked};
use watershed_compilers::FileEvent;
use watershed_controller::Select;
use watershed_controller::request::on_behalf_of;
use watershed_managers::{BODY_MAX, EventDoor, NotTaken, Tree, tree};

use super::answers;
pub(super) use super::answers::Unanswered;
use super::body::{read, read_up_to};
use super::caller::Caller;
use super::limits::Passed;
use super::list::MANAGED;
use super::operations::{self, Choice};
use super::scope::Scope;
use super::service::{Open, Service};
use super::trail::Trail;
use super::visibility::Visibility;
use super::{boards, checkout, exports, files, list, lsp, offers, table, texts, watch, words};

/// An HTTP call that was routed to an instance.
pub(super) struct Call<'a> {
    /// The service that received the call.
    pub(super) service: &'a Service,
    /// The instance that the call is for.
    pub(super) open: &'a Open,
    /// The authenticated caller.
    pub(super) caller: &'a Caller,
    /// The audit of the call.
    pub(super) trail: &'a Trail,
    /// Parts of documents that the caller may see.
    pub(super) visibility: Visibility,
    /// Operations and resources that the caller may name.
    pub(super) scope: &'a Scope,
    /// Headers of the request.
    pub(super) headers: &'a HeaderMap,
    /// Head of the request.
    pub(super) parts: &'a Parts,
    /// Name of the instance.
    pub(super) instance: &'a str,
    /// Path of the instance, to build links from.
    pub(super) place: String,
    /// Path of the request before decoding.
    pub(super) raw: &'a str,
}

impl Call<'_> {
    /// Carries out an operation and returns the visible parts of its document.
    pub(super) async fn answer(&self, mut request: Asked) -> Result<Response, Unanswered> {
        let made = table::choose(&mut request, self.headers, &self.open.instance.state).await?;
        self.trail.begin().await?;
        let (instance, gate) = (&self.open.instance, self.service.gate());
        let limits = gate.limits();
        let is_question = is_question(&request);
        let within = match is_question {
            true => limits.statement_within,
            false => limits.answer_within,
        };
        let origin: Arc<str> = self.caller.origin().into();
        instance.origins.note(&origin);
        let answering = async {
            // Readers of all kinds share slots, so that they hold up no build.
            let _slot = match is_question {
                true => Some(instance.slots.take().await?),
                false => None,
            };
            instance.answer(request).await
        };
        let answering = on_behalf_of(origin, answering);
        let late = || {
            let (passed, code) = match is_question {
                true => (Passed::Statement, Code::DeadlinePassed),
                false => (Passed::Answer, Code::OutcomeUnknown),
            };
            gate.count(passed);
            let message = format!("there was no answer within {} s", within.as_secs_f64());
            Problem::new(code, message)
        };
        let answered = tokio::time::timeout(within, answering).await;
        let answer = answered.unwrap_or_else(|_| Err(late()))?;
        if let Some(made) = made {
            return Ok(made.response(&answer).await?);
        }
        let document = answers::of_answer(&answer, instance);
        Ok(answers::json(&self.visibility.of_answer(&answer).show(document)))
    }

    /// Stores a request and starts its work in the background. With `Prefer: wait`, the response is the final document
    /// if the work ends in time.
    pub(super) async fn start(&self, mut request: Asked) -> Result<Response, Unanswered> {
        self.trail.begin().await?;
        let open = self.open;
        let wait = operations::preferred_wait(self.headers)?;
        operations::check(open, &mut request)?;
        let id = open
            .requests
            .start(&open.instance, request, self.caller.name())
            .await?;
        let location = format!("{}/requests/{id}", self.place);
        let accepted = Accepted { id: id.to_string() };
        if let Some(wait) = wait {
            // Whoever waits when the service stops learns the id.
            tokio::select! {
                biased;
                () = open.ending.cancelled() => {}
                () = open.requests.wait(id, wait) => {}
            }
            let request = open.requests.get(&accepted.id, self.service.base()).await?;
            if request.state != RequestState::Running {
                let response = answers::json(&self.shown(request));
                return Ok(operations::located(response, &location)?);
            }
        }
        let response = (StatusCode::ACCEPTED, axum::Json(accepted)).into_response();
        Ok(operations::located(response, &location)?)
    }

    /// Carries out an operation on a selection of resources, or lists the selected resources if it is not confirmed.
    pub(super) async fn selected(&self, offer: &Offer, words: Value) -> Result<Response, Unanswered> {
        match operations::selected(self.open, offer, words, self.scope)? {
            Choice::Asks(touched) => {
                self.trail.void();
                Ok(answers::json(&touched))
            }
            Choice::Acts(request, names) => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                self.trail.about(&names.join(" "));
                match is_work(&request) {
                    true => self.start(request).await,
                    false => self.answer(request).await,
                }
            }
        }
    }

    /// Returns an accepted request with the parts of its outcome that the caller may see.
    pub(super) fn shown(&self, mut request: RequestDocument) -> Value {
        self.scope.cut(&mut request, || self.open.instance.entries());
        self.visibility
            .show(serde_json::to_value(request).unwrap_or_default())
    }

    /// Waits for the end of a request, for a while.
    async fn ended(&self, id: &str, wait: std::time::Duration) {
        let Ok(id) = id.parse() else { return };
        tokio::select! {
            biased;
            () = self.open.ending.cancelled() => {}
            () = self.open.requests.wait(id, wait) => {}
        }
    }

    /// Returns a document with the parts that the caller may see, as a response.
    fn document(&self, document: &impl Serialize) -> Response {
        let document = answers::document(document, &self.open.instance);
        answers::json(&self.visibility.show(document))
    }

    /// Answers a route that exists only over HTTP.
    pub(super) async fn own(
        &self,
        own: Own,
        path: &HashMap<String, String>,
        query: Value,
        body: Body,
    ) -> Result<Response, Unanswered> {
        let word = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
        match own {
            Own::List => Ok(answers::written(
                list::page(self.open, query, self.visibility, self.scope).await?,
            )),
            Own::Resource => {
                let found = list::one(
                    (self.open, self.caller),
                    word("kind"),
                    word("name"),
                    query,
                    self.visibility,
                )
                .await?;
                Ok(answers::versioned(
                    "application/json",
                    found.to_vec(),
                    self.headers,
                ))
            }
            Own::Tree => self.tree(word("kind"), word("name")),
            Own::Diagnostics => self.diagnostics().await,
            Own::Watch => {
                let last = self.headers.get("last-event-id").and_then(|id| id.to_str().ok());
                let grant = self.caller.on(self.instance);
                let reads_files = grant.is_some_and(|grant| grant.allows(Role::Edit));
                Ok(watch::stream(
                    self.open,
                    (self.visibility, self.scope.clone()),
                    query,
                    last,
                    reads_files && self.scope.has_all(),
                    &self.open.ending,
                )
                .await?)
            }
            Own::Request => {
                if let Some(wait) = operations::preferred_wait(self.headers)? {
                    self.ended(word("id"), wait).await;
                }
                let asker = self.caller.narrowing().map(|_| self.caller.name());
                let request = self
                    .open
                    .requests
                    .of(asker, word("id"), self.service.base())
                    .await?;
                Ok(answers::json(&self.shown(request)))
            }
            Own::MetricsViews => Ok(answers::json(
                &offers::metrics_views(self.open, self.caller, self.scope).await?,
            )),
            Own::MetricsView => Ok(answers::json(
                &offers::metrics_view(self.open, self.caller, word("view")).await?,
            )),
            Own::Board => {
                let asker = (self.caller, self.scope);
                let board = boards::board(self.open, asker, word("name"), query).await?;
                Ok(answers::json(&board))
            }
            Own::Apis => Ok(answers::json(
                &offers::apis(self.open, self.caller, self.scope).await?,
            )),
            Own::Backup => {
                let words = words::body(&read(body, self.service.gate()).await?)?;
                self.trail.begin().await?;
                match words.as_object().is_some_and(serde_json::Map::is_empty) {
                    true => self.backup().await,
                    false => Err(Problem::new(Code::BadArgument, "a backup takes nothing").into()),
                }
            }
            Own::Events => self.events(body).await,
            Own::Export => exports::answer(self.open, word("id"), &self.place, self.headers).await,
            Own::Revoke => {
                self.trail.begin().await?;
                exports::revoke(self.open, word("id")).await
            }
            of_files => self.files(of_files, path, body).await,
        }
    }

    /// Carries out a call that is about the project's files.
    async fn files(
        &self,
        own: Own,
        path: &HashMap<String, String>,
        body: Body,
    ) -> Result<Response, Unanswered> {
        let word = |name: &str| path.get(name).map(String::as_str).unwrap_or_default();
        match own {
            Own::Files => Ok(answers::json(&files::list(&self.open.instance).await?)),
            Own::File => {
                let bytes = files::read(&self.open.instance, word("path"), self.raw).await?;
                Ok(answers::versioned(
                    "text/plain; charset=utf-8",
                    bytes,
                    self.headers,
                ))
            }
            Own::WriteFile => {
                let bytes = read_up_to(body, FileEvent::MAX_BYTES, self.service.gate()).await?;
                let edit = self.edit().await?;
                self.changed(files::write(edit, word("path"), self.raw, bytes).await?)
            }
            Own::WriteVariables => {
                let bytes = read_up_to(body, FileEvent::MAX_BYTES, self.service.gate()).await?;
                let edit = self.edit().await?;
                self.changed(files::write_variables(edit, bytes).await?)
            }
            Own::DeleteFile => {
                let edit = self.edit().await?;
                self.changed(files::delete(edit, word("path"), self.raw).await?)
            }
            Own::RenameFile => {
                let asked: FileRename = words::form(words::body(&read(body, self.service.gate()).await?)?)?;
                self.trail.about(&format!("{} {}", asked.from, asked.to));
                let edit = self.edit().await?;
                self.changed(files::rename(edit, &asked.from, &asked.to).await?)
            }
            Own::CheckFiles => {
                let texts = &self.open.texts;
                let checked = texts::check(texts, &self.open.instance, self.service.gate(), body).await?;
                Ok(self.document(&checked))
            }
            Own::Checkout => {
                let place = checkout::Place {
                    service: self.service,
                    name: self.instance,
                    instance: &self.open.instance,
                };
                checkout::checkout(place, self.caller, self.trail, body).await
            }
            Own::Lsp => {
                let place = lsp::Place {
                    name: self.instance,
                    instance: &self.open.instance,
                    gate: self.service.gate(),
                    editors: &self.open.editors,
                    stopping: self.service.stopping(),
                };
                lsp::connect(self.parts, self.caller, place).await
            }
            Own::Public => {
                let (media, bytes) = files::public(&self.open.instance, word("path"), self.raw).await?;
                let mut response = answers::versioned(media, bytes, self.headers);
                // A picture may have scripts in it, and shares its origin with what may do everything.
                let policy =
                    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
                response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
                Ok(response)
            }
            _ => Err(Problem::new(Code::Defect, "the path is not about files").into()),
        }
    }

    /// Returns the edit that the call is, if the caller may edit files there.
    async fn edit(&self) -> Result<files::Edit<'_>, Unanswered> {
        let condition = files::Condition::of(self.headers)?;
        self.service.allows_edit(self.instance, self.caller)?;
        self.trail.begin().await?;
        Ok(files::Edit {
            instance: &self.open.instance,
            caller: self.caller.name(),
            condition,
        })
    }

    /// Returns the answer to a change of a file, with the new version.
    fn changed(&self, change: FileChange) -> Result<Response, Unanswered> {
        let version = change.etag.clone();
        let mut response = self.document(&change);
        let version = version.and_then(|version| HeaderValue::from_str(&version).ok());
        response
            .headers_mut()
            .extend(version.map(|version| (ETAG, version)));
        Ok(response)
    }

    fn tree(&self, kind: &str, name: &str) -> Result<Response, Unanswered> {
        let key = operations::existing(self.open, kind, name)?;
        let resources = self
            .open
            .instance
            .controller()
            .list(Select::kind(MANAGED).with_hidden());
        let root = resources.resources.iter().find(|resource| resource.key() == key);
        let found = root.and_then(|root| tree(&resources.resources, root.row.uid));
        let none = || {
            Problem::new(
                Code::WrongState,
                format!("`{key}` has no parts: it is no managed resource"),
            )
        };
        let document = tree_document(&found.ok_or_else(none)?);
        Ok(self.document(&document))
    }

    async fn diagnostics(&self) -> Result<Response, Unanswered> {
        let input = watershed_api::request::StatusRequest::default();
        let status = watershed_api::operations::ops::Status::request(input);
        let Answer::Status(status) = self.open.instance.answer(status).await? else {
            return Err(Problem::new(Code::Defect, "the answer is that of another operation").into());
        };
        let document = DiagnosticsDocument {
            schema: DiagnosticsDocument::SCHEMA.to_owned(),
            not_applied: status.not_applied,
            diagnostics: status.diagnostics,
        };
        Ok(self.document(&document))
    }

    async fn backup(&self) -> Result<Response, Unanswered> {
        let name = format!(".backup-{}", uuid::Uuid::now_v7());
        let file = self.open.instance.state.path().join(name);
        let input = watershed_api::request::BackupRequest {
            file: file.clone(),
            force: false,
        };
        let made = self.open.instance.backup(input).await;
        let unread = |error: std::io::Error| {
            Problem::new(Code::Unavailable, format!("the archive can't be read: {error}"))
        };
        let opened = match made {
            Ok(_) => tokio::fs::File::open(&file).await.map_err(unread),
            Err(problem) => Err(problem),
        };
        // What is open stays until it is read.
        let _ = tokio::fs::remove_file(&file).await;
        let body = super::sent_file::body(opened?, ());
        Ok(answers::of_type("application/octet-stream", body))
    }

    async fn events(&self, body: Body) -> Result<Response, Unanswered> {
        let body = read_up_to(body, BODY_MAX, self.service.gate()).await?;
        let text = |(name, value): (&axum::http::HeaderName, &HeaderValue)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        };
        let mut headers: BTreeMap<String, String> = self.headers.iter().filter_map(text).collect();
        if !headers.contains_key("ce-id")
            && headers
                .get(CONTENT_TYPE.as_str())
                .is_some_and(|it| it.starts_with("application/json"))
        {
            // An event in plain JSON is one in the structured mode, and a list of them a batch.
            let is_batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
            let mode = if is_batch {
                "application/cloudevents-batch+json"
            } else {
                "application/cloudevents+json"
            };
            headers.insert(CONTENT_TYPE.to_string(), mode.to_owned());
        }
        self.trail.begin().await?;
        let door = EventDoor::new(self.open.instance.controller().clone(), [MANAGED]);
        let taken = door
            .receive(&headers, &body)
            .await
            .map_err(|why| not_taken(&why))?;
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let document = EventsTaken {
            events: number(taken.events),
            told: number(taken.matched),
        };
        Ok((StatusCode::ACCEPTED, axum::Json(document)).into_response())
    }
}

/// Returns true if the operation continues after the response.
fn is_work(request: &Asked) -> bool {
    matches!(
        request,
        Asked::Run(_) | Asked::Reconcile(_) | Asked::Refresh(_) | Asked::Approve(_) | Asked::Retry(_)
    )
}

/// Returns true if the operation only runs statements that read rows.
fn is_question(request: &Asked) -> bool {
    matches!(
        request,
        Asked::Metrics(_) | Asked::MetricsBounds(_) | Asked::Call(_) | Asked::Query(_)
    )
}

fn not_taken(why: &NotTaken) -> Unanswered {
    let status = StatusCode::from_u16(why.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let code = match status.is_server_error() {
        true => Code::Unavailable,
        false => Code::BadArgument,
    };
    Unanswered::Status(Problem::new(code, why.to_string()), status)
}

fn tree_document(tree: &Tree) -> TreeDocument {
    use watershed_managers::Health;
    TreeDocument {
        kind: tree.key.kind.to_string(),
        name: tree.key.name.to_string(),
        stage: tree.stage.as_ref().map(|stage| stage.as_str().to_owned()),
        goal: tree.goal.as_ref().map(|stage| stage.as_str().to_owned()),
        health: match tree.health {
            Health::There => TreeHealth::There,
            Health::Moving => TreeHealth::Moving,
            Health::Trying => TreeHealth::Trying,
            Health::Failed => TreeHealth::Failed,
        },
        message: tree.message.clone(),
        parts: tree.parts.iter().map(tree_document).collect(),
    }
}
