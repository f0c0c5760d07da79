//! Requests and notifications, each handed to where it is answered.
//!
//! Messages are taken one at a time and in order: a request is answered by the text that the editor had when it asked.

use std::{
    future::ready,
    io::Write,
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use async_lsp::{
    AnyNotification, AnyRequest, ClientSocket, ErrorCode, MainLoop, ResponseError,
    lsp_types::{
        CompletionOptions, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
        DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams,
        GotoDefinitionResponse, HoverProviderCapability, InitializeParams, InitializeResult, OneOf,
        PositionEncodingKind, ReferenceParams, ServerCapabilities, ServerInfo, TextDocumentPositionParams,
        TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
        TextDocumentSyncSaveOptions, notification, notification::Notification as _, request,
        request::Request as _,
    },
    router::Router,
    server::Lifecycle,
};
use futures::io::AllowStdIo;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    findings::Published,
    frames::Frames,
    handle::{Changed, Handle},
    hints,
    host::{Host, Opener},
    proposals, ways,
    workspace::Workspace,
};

/// An error by which the conversation with the editor ended.
#[derive(Debug, thiserror::Error)]
#[error("the conversation with the editor failed")]
pub struct ServeError(#[from] async_lsp::Error);

/// A language server for one editor.
pub struct Server {
    conversation: MainLoop<Lifecycle<Router<State>>>,
}

impl Server {
    /// Returns a server that opens its project when the editor names a folder or opens a document. If given, `folder`
    /// is tried before the editor's folders.
    #[must_use]
    pub fn new(opener: Opener, folder: Option<PathBuf>) -> Self {
        let (conversation, _) = MainLoop::new_server(|client| {
            let mut router = Router::new(State {
                client,
                opener,
                folder,
                workspace: None,
                told: Published::default(),
            });
            router
                .unhandled_request(|state, request| ready(state.asked(request)))
                .unhandled_notification(State::notified)
                .event::<Changed>(State::changed);
            Lifecycle::new(router)
        });
        Self { conversation }
    }

    /// Serves the editor until it ends the conversation or the pipe ends.
    ///
    /// # Errors
    /// When the pipe breaks, or holds what is no message.
    pub async fn run(self, input: Frames, output: impl Write) -> Result<(), ServeError> {
        match self
            .conversation
            .run_buffered(input, AllowStdIo::new(output))
            .await
        {
            Ok(()) | Err(async_lsp::Error::Eof) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The server's project, and its connection to the editor.
struct State {
    client: ClientSocket,
    opener: Opener,
    folder: Option<PathBuf>,
    workspace: Option<Workspace>,
    told: Published,
}

/// The answer to a request, or the error that replaces it.
type Answer = Result<Value, ResponseError>;

impl State {
    /// Answers a request. A panic is answered with an error, and the project is compiled anew.
    fn asked(&mut self, request: AnyRequest) -> Answer {
        let method = request.method.clone();
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(request)));
        answered.unwrap_or_else(|_| {
            self.recover(&method);
            let message = format!("a defect of the server kept it from answering {method}");
            Err(ResponseError::new(ErrorCode::INTERNAL_ERROR, message))
        })
    }

    fn answer(&mut self, request: AnyRequest) -> Answer {
        let params = request.params;
        match request.method.as_str() {
            request::Initialize::METHOD => {
                self.initialize(&read(params)?);
                told(&initialized())
            }
            request::Shutdown::METHOD => Ok(Value::Null),
            request::Completion::METHOD => {
                let at: TextDocumentPositionParams = read(params)?;
                told(&self.at(&at, |workspace, path| {
                    Some(proposals::at(workspace, path, at.position))
                }))
            }
            request::HoverRequest::METHOD => {
                let at: TextDocumentPositionParams = read(params)?;
                told(&self.at(&at, |workspace, path| hints::at(workspace, path, at.position)))
            }
            request::GotoDefinition::METHOD => {
                let at: TextDocumentPositionParams = read(params)?;
                let found = self.at(&at, |workspace, path| {
                    ways::definition(workspace, path, at.position)
                });
                told(&found.map(GotoDefinitionResponse::Scalar))
            }
            request::References::METHOD => {
                let asked: ReferenceParams = read(params)?;
                let at = asked.text_document_position;
                let with_declaration = asked.context.include_declaration;
                told(&self.at(&at, |workspace, path| {
                    Some(ways::references(workspace, path, at.position, with_declaration))
                }))
            }
            method => Err(ResponseError::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("no such method: {method}"),
            )),
        }
    }

    /// Returns the answer about a position; none if the document belongs to no project.
    fn at<T>(
        &self,
        at: &TextDocumentPositionParams,
        answer: impl FnOnce(&Workspace, &str) -> Option<T>,
    ) -> Option<T> {
        let workspace = self.workspace.as_ref()?;
        answer(workspace, &workspace.path(&at.text_document.uri)?)
    }

    /// Takes a notification, and publishes changed findings. An unreadable notification is ignored, since the editor
    /// expects no answer.
    fn notified(&mut self, notification: AnyNotification) -> ControlFlow<async_lsp::Result<()>> {
        let method = notification.method.clone();
        if catch_unwind(AssertUnwindSafe(|| self.take(notification))).is_err() {
            self.recover(&method);
        }
        self.publish()
    }

    fn take(&mut self, notification: AnyNotification) {
        let params = notification.params;
        match notification.method.as_str() {
            notification::DidOpenTextDocument::METHOD => {
                if let Some(opened) = readable::<DidOpenTextDocumentParams>(params) {
                    self.open_project_of(&opened);
                    self.with_workspace(|workspace| workspace.open(opened.text_document));
                }
            }
            notification::DidChangeTextDocument::METHOD => {
                if let Some(edited) = readable::<DidChangeTextDocumentParams>(params) {
                    let document = edited.text_document;
                    let changes = edited.content_changes;
                    self.with_workspace(|workspace| workspace.edit(&document.uri, document.version, changes));
                }
            }
            notification::DidCloseTextDocument::METHOD => {
                if let Some(closed) = readable::<DidCloseTextDocumentParams>(params) {
                    self.with_workspace(|workspace| workspace.close(&closed.text_document.uri));
                }
            }
            notification::DidSaveTextDocument::METHOD => {
                if let Some(saved) = readable::<DidSaveTextDocumentParams>(params) {
                    self.look_at([&saved.text_document.uri]);
                }
            }
            notification::DidChangeWatchedFiles::METHOD => {
                if let Some(changed) = readable::<DidChangeWatchedFilesParams>(params) {
                    self.look_at(changed.changes.iter().map(|change| &change.uri));
                }
            }
            _ => {}
        }
    }

    fn look_at<'a>(&mut self, uris: impl IntoIterator<Item = &'a async_lsp::lsp_types::Url>) {
        self.with_workspace(|workspace| {
            let paths = uris.into_iter().filter_map(|uri| workspace.path(uri)).collect();
            workspace.look(Some(&paths));
        });
    }

    fn changed(&mut self, changed: Changed) -> ControlFlow<async_lsp::Result<()>> {
        let looked = catch_unwind(AssertUnwindSafe(|| {
            self.with_workspace(|workspace| workspace.look(changed.0.as_ref()));
        }));
        if looked.is_err() {
            self.recover("a look at files");
        }
        self.publish()
    }

    fn with_workspace(&mut self, work: impl FnOnce(&mut Workspace)) {
        if let Some(workspace) = &mut self.workspace {
            work(workspace);
        }
    }

    #[allow(
        deprecated,
        reason = "editors that know no folders of a workspace say the root alone"
    )]
    fn initialize(&mut self, said: &InitializeParams) {
        let folders = said.workspace_folders.iter().flatten().map(|folder| &folder.uri);
        let roots = folders.chain(&said.root_uri);
        let mut places: Vec<PathBuf> = roots.filter_map(|uri| uri.to_file_path().ok()).collect();
        if let Some(folder) = &self.folder {
            places.insert(0, folder.clone());
        }
        for place in places {
            if self.open_project(&place) {
                return;
            }
        }
    }

    /// Opens the project of a document that the editor has opened, if no project is open.
    fn open_project_of(&mut self, opened: &DidOpenTextDocumentParams) {
        if self.workspace.is_none()
            && let Ok(file) = opened.text_document.uri.to_file_path()
        {
            self.open_project(&file);
        }
    }

    fn open_project(&mut self, place: &Path) -> bool {
        let handle = Handle::new(self.client.clone());
        let host: Option<Box<dyn Host>> = (self.opener)(place, handle);
        self.workspace = host.map(Workspace::new);
        self.workspace.is_some()
    }

    /// Sends the editor the findings that have changed.
    fn publish(&mut self) -> ControlFlow<async_lsp::Result<()>> {
        let Some(workspace) = &self.workspace else {
            return ControlFlow::Continue(());
        };
        for news in self.told.news(workspace) {
            if let Err(error) = self.client.notify::<notification::PublishDiagnostics>(news) {
                return ControlFlow::Break(Err(error));
            }
        }
        ControlFlow::Continue(())
    }

    /// Compiles the project anew after a panic, which may have left its state incomplete. A second panic closes the
    /// project.
    fn recover(&mut self, during: &str) {
        tracing::error!(
            during,
            "a defect of the language server; the project is compiled anew"
        );
        let Some(mut workspace) = self.workspace.take() else {
            return;
        };
        // What ends in a defect every time is given up.
        let again = catch_unwind(AssertUnwindSafe(|| {
            workspace.start_over();
            workspace
        }));
        self.workspace = again.ok();
    }
}

fn initialized() -> InitializeResult {
    let triggers = [" ", ":", ".", "\"", "/", "@", "-"];
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(PositionEncodingKind::UTF16),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::Supported(true)),
                ..TextDocumentSyncOptions::default()
            })),
            completion_provider: Some(CompletionOptions {
                trigger_characters: Some(triggers.map(str::to_owned).to_vec()),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            definition_provider: Some(OneOf::Left(true)),
            references_provider: Some(OneOf::Left(true)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: "watershed".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        }),
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, ResponseError> {
    serde_json::from_value(params).map_err(|error| {
        let message = format!("the parameters can't be read: {error}");
        ResponseError::new(ErrorCode::INVALID_PARAMS, message)
    })
}

fn readable<T: DeserializeOwned>(params: Value) -> Option<T> {
    let read = serde_json::from_value(params);
    read.inspect_err(|error| tracing::warn!(%error, "a notification can't be read"))
        .ok()
}

fn told(answer: &impl serde::Serialize) -> Answer {
    serde_json::to_value(answer).map_err(|error| {
        let data = json!({"error": error.to_string()});
        ResponseError::new_with_data(ErrorCode::INTERNAL_ERROR, "the answer can't be written", data)
    })
}
