//! A project on disk, as the server's host knows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use watershed_compilers::{
    FileEvent, Kind, Options, Project, ResourceKey, SqlError, SqlParser, Tree, is_relevant,
};
use watershed_drivers::duckdb::Parser;
use watershed_lsp::{Column, Facts, Handle, Host, Redactor, ResourceStatus};

/// The handle of the server that opened a project.
pub(crate) type Opened = Arc<Mutex<Option<Handle>>>;

/// A project's folder and the engine's parser.
pub(crate) struct OnDisk {
    root: PathBuf,
    seen: BTreeMap<String, Arc<[u8]>>,
    parser: Engine,
}

struct Engine {
    parser: Parser,
    version: String,
}

impl SqlParser for Engine {
    fn version(&self) -> &str {
        &self.version
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        let documents = self
            .parser
            .documents(statements)
            .expect("the engine's parser works");
        documents.into_iter().map(Tree::from_document).collect()
    }
}

impl OnDisk {
    pub(crate) fn open(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            seen: BTreeMap::new(),
            parser: Engine {
                parser: Parser::new(),
                version: Parser::version(),
            },
        }
    }
}

impl Host for OnDisk {
    fn root(&self) -> &Path {
        &self.root
    }

    fn options(&self) -> Options {
        Options::default()
    }

    fn look(&mut self, _: Option<&BTreeSet<String>>) -> Result<Vec<FileEvent>, String> {
        let mut now = BTreeMap::new();
        list(&self.root, &self.root, &mut now);
        let mut events = Vec::new();
        for path in self.seen.keys().filter(|path| !now.contains_key(*path)) {
            events.push(FileEvent::Removed { path: path.clone() });
        }
        for (path, content) in &now {
            if self.seen.get(path) != Some(content) {
                events.push(FileEvent::Written {
                    path: path.clone(),
                    content: Arc::clone(content),
                });
            }
        }
        self.seen = now;
        Ok(events)
    }

    fn learned(&self) -> Option<Vec<u8>> {
        None
    }

    fn redactor(&self, project: &Project) -> Redactor {
        let secret = project.variables().get("password").cloned();
        Box::new(move |text| match &secret {
            Some(secret) => text.replace(secret, "[password]"),
            None => text.to_owned(),
        })
    }

    fn parser(&self) -> &dyn SqlParser {
        &self.parser
    }

    fn facts(&self) -> Arc<Facts> {
        let mut facts = Facts::default();
        let column = |name: &str, data_type: &str| Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
        };
        facts.columns.insert(
            "orders".to_owned(),
            vec![column("id", "INTEGER"), column("paid on", "DATE")],
        );
        let status = ResourceStatus {
            health: "ok".to_owned(),
            last_run: Some("2 minutes ago, built".to_owned()),
            error: None,
        };
        let orders = ResourceKey::new(Kind::Model, "orders");
        facts.statuses.insert(orders, status);
        Arc::new(facts)
    }
}

fn list(root: &Path, folder: &Path, into: &mut BTreeMap<String, Arc<[u8]>>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            list(root, &path, into);
            continue;
        }
        let relative = path
            .strip_prefix(root)
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        if is_relevant(&relative) {
            into.insert(relative, fs::read(&path).expect("a file").into());
        }
    }
}
