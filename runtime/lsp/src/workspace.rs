//! The project, with open documents laid over its files.
//!
//! The compiler knows an open document by the editor's text, whatever happens to its file.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use async_lsp::lsp_types::{TextDocumentContentChangeEvent, TextDocumentItem, Url};
use watershed_compilers::{FileEvent, Project, is_relevant};

use crate::{document::Document, host::Host};

/// The project that an editor works on.
pub(crate) struct Workspace {
    host: Box<dyn Host>,
    project: Project,
    /// The last event of each file on disk, by path.
    files: BTreeMap<String, FileEvent>,
    open: BTreeMap<String, Document>,
}

impl Workspace {
    /// Compiles the project of a host.
    pub(crate) fn new(host: Box<dyn Host>) -> Self {
        let mut project = Project::new(host.options());
        if let Some(learned) = host.learned() {
            project.import_cache(&learned);
        }
        let mut workspace = Self {
            host,
            project,
            files: BTreeMap::new(),
            open: BTreeMap::new(),
        };
        workspace.look(None);
        workspace
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    pub(crate) fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }

    /// Returns the text of a file as the editor shows it; empty if there is no such file.
    pub(crate) fn text(&self, path: &str) -> Cow<'_, str> {
        self.project.source(path).unwrap_or_default()
    }

    /// Returns the path within the project for an address; none if it lies outside the project.
    pub(crate) fn path(&self, uri: &Url) -> Option<String> {
        self.host.path(uri)
    }

    /// Returns the editor's address of a file; none if its path makes no address.
    pub(crate) fn uri(&self, path: &str) -> Option<Url> {
        match self.open.get(path) {
            Some(document) => Some(document.uri.clone()),
            None => self.host.uri(path),
        }
    }

    /// Takes over changes to files on disk: to the files with these paths, or to all files without paths.
    pub(crate) fn look(&mut self, paths: Option<&BTreeSet<String>>) {
        let events = match self.host.look(paths) {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(%error, "the project's folder can't be listed");
                return;
            }
        };
        for event in &events {
            let path = path_of(event).to_owned();
            match event {
                FileEvent::Removed { .. } => drop(self.files.remove(&path)),
                event => drop(self.files.insert(path, event.clone())),
            }
        }
        let open = &self.open;
        let closed = events
            .into_iter()
            .filter(|event| !open.contains_key(path_of(event)));
        self.apply(closed.collect());
    }

    /// Compiles a document's text in place of its file from now on.
    pub(crate) fn open(&mut self, document: TextDocumentItem) {
        let Some(path) = self.path(&document.uri).filter(|path| is_relevant(path)) else {
            return;
        };
        let is_one_more = self.open.len() >= self.host.bounds().documents && !self.open.contains_key(&path);
        let opened = Document::new(document.uri, document.version, document.text);
        let event = opened.event(&path);
        if is_one_more {
            tracing::warn!(path, "too many open documents: the file counts as it is saved");
            return;
        }
        self.open.insert(path.clone(), opened);
        self.apply_within_bounds(path, event);
    }

    /// Compiles a document's text, unless the texts of all documents have become too large: then its file counts.
    fn apply_within_bounds(&mut self, path: String, event: FileEvent) {
        let bytes: usize = self.open.values().map(Document::bytes).sum();
        if bytes <= self.host.bounds().bytes {
            return self.apply(vec![event]);
        }
        tracing::warn!(
            path,
            "the open documents are too large: the file counts as it is saved"
        );
        self.open.remove(&path);
        self.apply_as_saved(path);
    }

    /// Applies edits to a document, and compiles it.
    pub(crate) fn edit(&mut self, uri: &Url, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        let Some(path) = self.path(uri) else { return };
        let Some(document) = self.open.get_mut(&path) else {
            return;
        };
        document.version = version;
        for change in changes {
            document.edit(change);
        }
        let event = document.event(&path);
        self.apply_within_bounds(path, event);
    }

    /// Compiles the file of a document again in place of its text, as the document is closed.
    pub(crate) fn close(&mut self, uri: &Url) {
        let Some(path) = self.path(uri).filter(|path| self.open.contains_key(path)) else {
            return;
        };
        self.open.remove(&path);
        self.apply_as_saved(path);
    }

    fn apply_as_saved(&mut self, path: String) {
        let file = self.files.get(&path).cloned();
        let event = file.unwrap_or_else(|| FileEvent::Removed { path: path.clone() });
        self.apply(vec![event]);
        self.look(Some(&BTreeSet::from([path])));
    }

    /// Compiles everything anew, without earlier results.
    pub(crate) fn start_over(&mut self) {
        self.project = Project::new(self.host.options());
        let open = self.open.iter().map(|(path, document)| document.event(path));
        let closed = self
            .files
            .values()
            .filter(|event| !self.open.contains_key(path_of(event)));
        let events = open.chain(closed.cloned()).collect();
        self.apply(events);
    }

    fn apply(&mut self, events: Vec<FileEvent>) {
        self.project.apply(events, self.host.parser());
    }

    /// Returns the version of a document, if it is open.
    pub(crate) fn version(&self, path: &str) -> Option<i32> {
        self.open.get(path).map(|document| document.version)
    }
}

fn path_of(event: &FileEvent) -> &str {
    match event {
        FileEvent::Written { path, .. }
        | FileEvent::Removed { path }
        | FileEvent::Unreadable { path, .. } => path,
    }
}
