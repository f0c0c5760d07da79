//! A project of this process as the language server of an editor elsewhere sees it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Threads;
use tokio::task::AbortHandle;
use watershed_api::http::encoded;
use watershed_compilers::{FileEvent, Options, Project, SqlParser};
use watershed_drivers::regular;
use watershed_lsp::{Bounds, Facts, Handle, Host, Redactor, Url};
use watershed_outputs::sql_parser::EngineParser;
use watershed_reconcilers::project_parser::folder::Folder;
use watershed_reconcilers::project_parser::touched::Scope;

use crate::editor::{self, LatestFacts};
use crate::http::answers::without_folder;
use crate::instance::{Instance, compiled, compiler_options, sandbox};
use crate::socket::{Service as _, replies};

/// The scheme of addresses.
const SCHEME: &str = "watershed";
/// The bounds of what an editor may have open.
const BOUNDS: Bounds = Bounds {
    documents: 1_000,
    bytes: 64 << 20,
};
/// The interval at which files that can't be watched are listed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The time for which changed files are gathered, so that those of one save are looked at together.
const GATHERING: Duration = Duration::from_millis(20);
/// Largest parse cache that is read, in bytes.
const LARGEST_CACHE: usize = 256 << 20;

/// A project of this process for one editor.
pub(super) struct Remote {
    instance: Arc<Instance>,
    /// Address of the project's folder.
    root: String,
    folder: Folder,
    parser: EngineParser,
    latest: LatestFacts,
    threads: Threads,
    watching: AbortHandle,
}

impl Remote {
    /// Opens the project of an instance under a name.
    pub(super) fn open(instance: Arc<Instance>, name: &str, handle: Handle, threads: &Threads) -> Self {
        let latest = LatestFacts::default();
        latest.renew(threads, || look(Arc::clone(&instance)));
        Self {
            root: format!("{SCHEME}://{}/", encoded(name)),
            folder: Folder::confined(sandbox(&instance.options, &instance.state)),
            parser: EngineParser::default(),
            watching: threads.spawn(watch(Arc::clone(&instance), handle)).abort_handle(),
            instance,
            latest,
            threads: threads.clone(),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Host for Remote {
    fn root(&self) -> &Path {
        &self.instance.options.root
    }

    fn path(&self, uri: &Url) -> Option<String> {
        path(&self.root, uri)
    }

    fn uri(&self, path: &str) -> Option<Url> {
        let parts: Vec<String> = path.split('/').map(encoded).collect();
        Url::parse(&format!("{}{}", self.root, parts.join("/"))).ok()
    }

    fn bounds(&self) -> Bounds {
        BOUNDS
    }

    fn options(&self) -> Options {
        compiler_options(&self.instance.options)
    }

    fn look(&mut self, paths: Option<&BTreeSet<String>>) -> Result<Vec<FileEvent>, String> {
        let scope = match paths {
            Some(paths) => Scope::paths(paths.iter().map(String::as_str)),
            None => Scope::Everything,
        };
        let looked = self.folder.look(&self.instance.options.root, &scope);
        looked.map_err(|error| crate::chain(&error))
    }

    fn learned(&self) -> Option<Vec<u8>> {
        regular::read(&self.instance.state.parse_cache(), LARGEST_CACHE).ok()
    }

    fn redactor(&self, project: &Project) -> Redactor {
        let secrets = compiled::secrets_of(project);
        let root = self.root().display().to_string();
        Box::new(move |text| without_folder(&secrets.redact(text), &root))
    }

    fn parser(&self) -> &dyn SqlParser {
        &self.parser
    }

    fn facts(&self) -> Arc<Facts> {
        self.latest
            .renew(&self.threads, || look(Arc::clone(&self.instance)));
        self.latest.get()
    }
}

/// Returns the path of a file within the project, from its address below `root`; none for all other addresses.
fn path(root: &str, uri: &Url) -> Option<String> {
    let below = uri.as_str().strip_prefix(root)?;
    if uri.query().is_some() || uri.fragment().is_some() {
        return None;
    }
    let parts: Option<Vec<String>> = below.split('/').map(decoded).collect();
    let parts = parts?;
    let is_plain = |part: &String| {
        !matches!(part.as_str(), "" | "." | "..")
            && !part
                .chars()
                .any(|sign| sign.is_control() || matches!(sign, '/' | '\\'))
    };
    parts.iter().all(is_plain).then(|| parts.join("/"))
}

/// Decodes a part of an address; none if the part is no text.
fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(16 * digit(rest.next())? + digit(rest.next())?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Reads the facts about a project's outputs.
async fn look(instance: Arc<Instance>) -> Option<Facts> {
    let mut facts = Facts::default();
    for question in editor::questions() {
        let (sender, mut receiver) = replies();
        let answering = instance.serve(question, sender);
        let hearing = async {
            while let Some(reply) = receiver.recv().await {
                editor::hear(&mut facts, reply);
            }
        };
        futures::future::join(answering, hearing).await;
    }
    let root = instance.options.root.display().to_string();
    for error in facts
        .statuses
        .values_mut()
        .filter_map(|status| status.error.as_mut())
    {
        *error = without_folder(error, &root);
    }
    Some(facts)
}

/// Reports changed files to the server until aborted. Files that can't be watched are looked at now and then.
async fn watch(instance: Arc<Instance>, handle: Handle) {
    let mut reports = instance.file_reports();
    // What changed before the reports.
    handle.changed(None);
    loop {
        if instance.are_files_watched() {
            if reports.changed().await.is_err() {
                return;
            }
            tokio::time::sleep(GATHERING).await;
            reports.mark_unchanged();
        } else {
            let _ = tokio::time::timeout(LOOK_EVERY, reports.changed()).await;
        }
        handle.changed(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Option<String> {
        path("watershed://shop/", &Url::parse(address).unwrap())
    }

    #[test]
    fn addresses_lead_to_files_of_the_project_alone() {
        for (address, file) in [
            ("watershed://shop/models/a.sql", "models/a.sql"),
            ("watershed://shop/models/a%20b.sql", "models/a b.sql"),
            ("watershed://shop/models/%C3%A4.sql", "models/ä.sql"),
            ("watershed://shop/models/x/../a.sql", "models/a.sql"),
        ] {
            assert_eq!(read(address).as_deref(), Some(file), "{address}");
        }
        for address in [
            "watershed://shop/",
            "watershed://shop",
            "watershed://other/models/a.sql",
            "watershed://shop.example/models/a.sql",
            "file:///models/a.sql",
            "watershed://shop//etc/passwd",
            "watershed://shop/..%2f..%2fetc%2fpasswd.sql",
            "watershed://shop/%2e%2e%2fa.sql",
            "watershed://shop/models%2fa.sql",
            "watershed://shop/models%5ca.sql",
            "watershed://shop/a%00.sql",
            "watershed://shop/%ff.sql",
            "watershed://shop/%zz.sql",
            "watershed://shop/models/a.sql?x",
            "watershed://shop/models/a.sql#x",
        ] {
            assert_eq!(read(address), None, "{address}");
        }
    }
}
