//! The configuration of a service, validated as a whole before any project is opened.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use watershed::http::Limits;
use watershed::program::finding;
use watershed_api::http::DiagnosticsDocument;
use watershed_callers::Token;
use watershed_compilers::configuration::{self, Configuration, Instance, Placed, Trust};
use watershed_compilers::diagnostics::{Colour, draw};
use watershed_compilers::{Code, Diagnostic, Severity};
use watershed_drivers::{objects::Prefix, regular};
use watershed_outputs::secrets::Secrets;
use watershed_outside::http::{Destination, Egress};

use super::git::Origin;
use super::masking::without_secrets;
use super::people;
use crate::args::Format;
use crate::console::Console;
use crate::failure::Failure;
use crate::listen::Network;
use watershed::Options;

/// Name of the folder of fetched projects in the service's state.
const REPOSITORIES: &str = "git";
/// The largest configuration or file of variables, in bytes.
const LARGEST: usize = 1 << 20;

/// A validated configuration.
pub(super) struct Checked {
    pub(super) network: Network,
    pub(super) hosts: Vec<String>,
    pub(super) base: String,
    /// Folder of the service's state; none if the service keeps none.
    pub(super) state: Option<PathBuf>,
    /// Tokens of the file of tokens; none if only the user who started the service is let in.
    pub(super) tokens: Option<Vec<Token>>,
    pub(super) limits: Limits,
    /// True if assistants are let in.
    pub(super) mcp: bool,
    /// Policy of the projects' outgoing connections.
    pub(super) egress: Egress,
    /// People who sign in; none without a provider and a proxy's header.
    pub(super) people: Option<people::Checked>,
    pub(super) instances: Vec<Served>,
    /// True if something was found that a service can begin with all the same.
    pub(super) has_warnings: bool,
}

/// A project to serve as an instance.
#[derive(Clone, PartialEq)]
pub(super) struct Served {
    pub(super) name: String,
    pub(super) project: PathBuf,
    pub(super) environment: String,
    pub(super) variables: BTreeMap<String, String>,
    pub(super) weight: NonZeroU32,
    pub(super) trust: Trust,
    /// Repository of the project; none if the project is a folder of the operator's.
    pub(super) git: Option<Origin>,
    pub(super) remote_edit: bool,
    /// Addresses that the instance may ask if it is confined.
    pub(super) reach: Vec<Prefix>,
    /// Extensions of the engine that are loaded for the instance if it is confined.
    pub(super) extensions: Vec<String>,
}

impl std::fmt::Debug for Served {
    /// Formats without the values of variables, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served")
            .field("name", &self.name)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

/// Reads and validates a configuration, and prints all findings; none if there is an error. `is_asked` prints a JSON
/// document even without findings.
pub(super) fn check(
    console: &mut Console,
    file: &Path,
    is_asked: bool,
    format: Format,
) -> Result<Option<Checked>, Failure> {
    let bytes = regular::read(file, LARGEST).map_err(|error| Failure {
        exit: watershed_api::Exit::Usage,
        error: anyhow::Error::new(error)
            .context(format!("can't read the configuration `{}`", file.display())),
        hint: None,
    })?;
    let mut reading = Reading::new(file);
    let mut checked = reading.read(&bytes);
    let found = reading.found.iter().chain(&reading.found_in_variables);
    let is_usable = !found.into_iter().any(|found| found.severity == Severity::Error);
    if is_asked && is_usable {
        reading.look_for_projects(&configuration::read(&file.display().to_string(), &bytes).0);
    }
    let (mut found, of_variables) = (reading.found, reading.found_in_variables);
    found.sort();
    if is_asked || !found.is_empty() || !of_variables.is_empty() {
        tell(console, &found, &of_variables, &bytes, format)?;
    }
    if let Some(checked) = &mut checked {
        checked.has_warnings = !found.is_empty();
    }
    Ok(checked.filter(|_| is_usable))
}

/// Prints the findings, as text or as a JSON document.
fn tell(
    console: &mut Console,
    found: &[Diagnostic],
    of_variables: &[Diagnostic],
    bytes: &[u8],
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        let secrets = Secrets::default();
        let diagnostics: Vec<_> = found
            .iter()
            .chain(of_variables)
            .map(|found| finding(found, &secrets))
            .collect();
        return console.document(&DiagnosticsDocument {
            schema: DiagnosticsDocument::SCHEMA.to_owned(),
            not_applied: None,
            diagnostics,
        });
    }
    let text = without_secrets(&String::from_utf8_lossy(bytes));
    for found in found {
        console.say(&format!("{}\n\n", draw(found, Some(&*text), Colour::Always)));
    }
    // The place alone is told: the lines are values.
    for found in of_variables {
        console.say(&format!("{}\n\n", draw(found, None, Colour::Always)));
    }
    Ok(())
}

/// Returns the policy of the public internet and the destinations that the operator lists.
fn egress(listed: &[configuration::Destination]) -> Egress {
    Egress::public_and(listed.iter().map(|one| match one {
        configuration::Destination::Network(network) => Destination::Network(*network),
        configuration::Destination::Host(name, port) => Destination::Host {
            name: name.clone(),
            port: *port,
        },
    }))
}

/// Returns the limits of a service, with the usual ones where none is set.
fn limits(set: &configuration::Limits) -> Limits {
    let usual = Limits::default();
    let bytes = |set: Option<u64>, usual| set.and_then(|it| usize::try_from(it).ok()).unwrap_or(usual);
    let time = |set: Option<u64>, usual| set.map_or(usual, Duration::from_millis);
    let number = |set: Option<u32>, usual| set.and_then(|it| usize::try_from(it).ok()).unwrap_or(usual);
    let rate = |set: Option<u32>, usual| set.and_then(NonZeroU32::new).unwrap_or(usual);
    Limits {
        head_bytes: bytes(set.head_bytes, usual.head_bytes),
        head_within: time(set.head_ms, usual.head_within),
        body_bytes: bytes(set.body_bytes, usual.body_bytes),
        body_within: time(set.body_ms, usual.body_within),
        answer_within: time(set.answer_ms, usual.answer_within),
        statement: time(set.statement_ms, usual.statement),
        statement_within: time(set.statement_ms, usual.statement_within),
        connections: number(set.connections, usual.connections),
        connections_from_one: number(set.connections_per_address, usual.connections_from_one),
        watchers: number(set.watchers, usual.watchers),
        watchers_of_one: number(set.watchers_per_principal, usual.watchers_of_one),
        requests_per_second: rate(set.requests_per_second, usual.requests_per_second),
        requests_at_once: rate(set.requests_at_once, usual.requests_at_once),
        requests_waiting: number(set.requests_waiting, usual.requests_waiting),
        failed_sign_ins_per_minute: rate(set.failed_sign_ins_per_minute, usual.failed_sign_ins_per_minute),
    }
}

/// The state of reading a configuration.
pub(super) struct Reading<'f> {
    file: &'f Path,
    /// Folder against which relative paths are resolved.
    folder: PathBuf,
    found: Vec<Diagnostic>,
    /// Findings in files of variables, whose lines are not shown.
    found_in_variables: Vec<Diagnostic>,
}

impl<'f> Reading<'f> {
    fn new(file: &'f Path) -> Self {
        Self {
            file,
            folder: file.parent().unwrap_or(Path::new("")).to_owned(),
            found: Vec::new(),
            found_in_variables: Vec::new(),
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Option<Checked> {
        let path = self.file.display().to_string();
        let (read, found) = configuration::read(&path, bytes);
        self.found.extend(found);
        let folders: BTreeMap<&String, PathBuf> = read
            .instances
            .iter()
            .map(|(name, instance)| (name, self.folder_of(name, instance, &read)))
            .collect();
        self.refuse_overlaps(&read.instances, &folders);
        let state = self.state(&read, &folders);
        let tokens = self.tokens(&read, &folders);
        let network = self.network(&read.network, read.sql);
        let names = read.instances.keys().map(String::as_str).collect();
        let people = read.auth.as_ref().map(|auth| self.people(&auth.people, &names));
        let mut instances = Vec::new();
        for (name, instance) in &read.instances {
            let served = Served {
                name: name.clone(),
                project: folders.get(name).cloned()?,
                environment: self.environment(instance),
                variables: self.variables(instance),
                weight: instance.weight,
                trust: instance.trust,
                git: match &instance.files {
                    configuration::Files::Folder(_) => None,
                    configuration::Files::Git(git) => self.origin(git, folders.get(name)?),
                },
                remote_edit: instance.remote_edit,
                reach: self.reach(instance),
                extensions: instance.extensions.clone(),
            };
            instances.push(served);
        }
        Some(Checked {
            network: network?,
            hosts: read.hosts,
            base: read.base,
            state,
            tokens,
            limits: limits(&read.limits),
            mcp: read.mcp,
            egress: egress(&read.egress),
            people: people.filter(people::Checked::is_any),
            instances,
            has_warnings: false,
        })
    }

    /// Warns of folders without a project. A service begins without them, and opens them once they are there.
    fn look_for_projects(&mut self, read: &Configuration) {
        for (name, instance) in &read.instances {
            let folder = self.folder_of(name, instance, read);
            if matches!(instance.files, configuration::Files::Git(_)) || crate::project::is_project(&folder) {
                continue;
            }
            let message = format!("no project in `{}`: it has no `watershed.yaml`", folder.display());
            self.mistake(
                instance.place(),
                Code::Unreadable,
                message,
                "correct the path, or write the project there: the service looks every few seconds",
            );
            if let Some(found) = self.found.last_mut() {
                found.severity = Severity::Warning;
            }
        }
    }

    pub(super) fn mistake(&mut self, place: &Placed, code: Code, message: String, hint: &str) {
        self.found.push(Diagnostic {
            path: self.file.display().to_string(),
            span: place.span,
            severity: code.severity(),
            code,
            message,
            hint: Some(hint.to_owned()),
            resource: None,
            related: Vec::new(),
        });
    }

    /// Returns the folder of the service's state: the one that is named, or one beside the configuration.
    fn state_folder(&self, read: &Configuration) -> PathBuf {
        let named = read.state.as_ref().map(|named| self.path(named));
        resolved(&named.unwrap_or_else(|| self.file.with_extension("state")))
    }

    /// Returns the absolute path of a project's folder, with links resolved if it exists. The files of a repository have
    /// a folder of the instance's name in the service's state.
    fn folder_of(&self, name: &str, instance: &Instance, read: &Configuration) -> PathBuf {
        let folder = match &instance.files {
            configuration::Files::Folder(project) => self.folder.join(&project.text),
            configuration::Files::Git(_) => self.state_folder(read).join(REPOSITORIES).join(name).join(name),
        };
        let whole = std::path::absolute(&folder).unwrap_or(folder);
        whole.canonicalize().unwrap_or(whole)
    }

    /// Refuses instances that share a folder, or whose folders lie within one another.
    fn refuse_overlaps(
        &mut self,
        instances: &BTreeMap<String, Instance>,
        folders: &BTreeMap<&String, PathBuf>,
    ) {
        let mut owners: BTreeMap<&Path, &String> = BTreeMap::new();
        for (name, folder) in folders {
            let Some(other) = owners.get(folder.as_path()).copied() else {
                owners.insert(folder, name);
                continue;
            };
            let message = format!("\"{name}\" and \"{other}\" have one folder");
            self.mistake(
                instances[*name].place(),
                Code::ConflictingKeys,
                message,
                "name each project once",
            );
        }
        for (name, folder) in folders {
            let above = folder.ancestors().skip(1);
            if let Some(other) = above.filter_map(|above| owners.get(above)).next() {
                let message = format!("the folder of \"{name}\" lies within that of \"{other}\"");
                self.mistake(
                    instances[*name].place(),
                    Code::ConflictingKeys,
                    message,
                    "move one of them out of the other",
                );
            }
        }
    }

    /// Reads the files of secrets of a repository, whose files are put into the folder `project`.
    fn origin(&mut self, git: &configuration::Git, project: &Path) -> Option<Origin> {
        let credentials = git.credentials_file.as_ref().and_then(|file| {
            let text = String::from_utf8(self.private_file(file)?).unwrap_or_default();
            let text = text.trim().to_owned();
            if !text.contains(':') || text.chars().any(char::is_control) {
                let message = "the credentials have to be one line of `NAME:PASSWORD`".to_owned();
                let hint = "write the name, a colon and the password or token into the file";
                self.mistake(file, Code::InvalidValue, message, hint);
            }
            Some(text)
        });
        Some(Origin {
            url: git.url.text.clone(),
            revision: git
                .revision
                .as_ref()
                .map_or("HEAD", |revision| &revision.text)
                .to_owned(),
            credentials,
            authorities: git.ca_cert_file.as_ref().and_then(|file| {
                self.read_file(file)?;
                // `git` runs in another folder.
                std::path::absolute(self.path(file)).ok()
            }),
            secret: git.secret_file.as_ref().and_then(|file| self.secret(file)),
            folder: project.parent()?.to_owned(),
        })
    }

    /// Parses the addresses that an instance may ask.
    fn reach(&mut self, instance: &Instance) -> Vec<Prefix> {
        let mut found = Vec::new();
        for named in &instance.reach {
            match named.text.parse() {
                Ok(prefix) => found.push(prefix),
                Err(error) => {
                    let message = format!("\"{}\" can't be reached: {error}", named.text);
                    let hint = "such as `s3://lake/raw/`, or `https://rates.example.org/daily/`";
                    self.mistake(named, Code::InvalidValue, message, hint);
                }
            }
        }
        found
    }

    fn environment(&mut self, instance: &Instance) -> String {
        let Some(environment) = &instance.environment else {
            return Options::new("").environment;
        };
        let options = Options {
            environment: environment.text.clone(),
            ..Options::new("")
        };
        if let Err(error) = options.state_folder() {
            let hint = "it is the name of a folder too, in which the state is kept";
            self.mistake(environment, Code::InvalidValue, error.to_string(), hint);
        }
        environment.text.clone()
    }

    /// Reads the variables of an instance's file, which only its owner may be able to read.
    fn variables(&mut self, instance: &Instance) -> BTreeMap<String, String> {
        let named = instance.env_file.as_ref();
        let Some((named, bytes)) = named.and_then(|named| Some((named, self.private_file(named)?))) else {
            return BTreeMap::new();
        };
        let shown = self.path(named).display().to_string();
        let (variables, found) = configuration::read_variables(&shown, &bytes);
        self.found_in_variables.extend(found);
        variables
    }

    /// Returns the folder of the service's state: the one that is named, or with `auth` one beside the configuration.
    fn state(&mut self, read: &Configuration, folders: &BTreeMap<&String, PathBuf>) -> Option<PathBuf> {
        if read.state.is_none() && read.auth.is_none() {
            return None;
        }
        let folder = self.state_folder(read);
        if let Some(name) = above(&folder, folders) {
            let place = read.state.as_ref().unwrap_or(read.instances[name].place());
            let message = format!(
                "the state of the service would lie in the folder of \"{name}\", which its files reach"
            );
            self.mistake(
                place,
                Code::ConflictingKeys,
                message,
                "name another folder by `state`",
            );
        }
        let others = std::fs::metadata(&folder).is_ok_and(|about| about.mode() & 0o022 != 0);
        if let Some(place) = read.state.as_ref().filter(|_| others) {
            let message = format!("others than its owner may write into `{}`", folder.display());
            let hint = format!("`chmod 700 {}`", folder.display());
            self.mistake(place, Code::InvalidValue, message, &hint);
        }
        Some(folder)
    }

    /// Reads the file of tokens; none without `auth`.
    fn tokens(&mut self, read: &Configuration, folders: &BTreeMap<&String, PathBuf>) -> Option<Vec<Token>> {
        let Some(named) = &read.auth.as_ref()?.tokens else {
            return Some(Vec::new());
        };
        let path = self.path(named);
        if let Some(name) = above(&resolved(&path), folders) {
            let message =
                format!("the file of tokens lies in the folder of \"{name}\", which its files reach");
            self.mistake(
                named,
                Code::ConflictingKeys,
                message,
                "move the file out of the project",
            );
        }
        // Whoever may change the link would say who gets in.
        if path.is_symlink() {
            let message = format!("`{}` is a link", path.display());
            self.mistake(named, Code::InvalidValue, message, "name the file itself");
        }
        if !path.exists() {
            let message = format!("can't read `{}`: there is no such file", path.display());
            let command = "watershed token create --name root --role '*=admin' --file";
            let hint = format!("`{command} {}` makes it, with a first token", path.display());
            self.mistake(named, Code::Unreadable, message, &hint);
            return None;
        }
        let bytes = self.private_file(named)?;
        let instances = read.instances.keys().map(String::as_str).collect();
        let (tokens, found) = super::tokens::read(&path.display().to_string(), &bytes, &instances);
        self.found_in_variables.extend(found);
        Some(tokens)
    }

    /// Returns the path of a file that the configuration names.
    pub(super) fn path(&self, named: &Placed) -> PathBuf {
        self.folder.join(&named.text)
    }

    /// Reads a file that the configuration names; none if it can't be read.
    pub(super) fn read_file(&mut self, named: &Placed) -> Option<Vec<u8>> {
        let file = self.path(named);
        match regular::read(&file, LARGEST) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let message = format!("can't read `{}`: {error}", file.display());
                let hint = "a relative path starts from the folder of the configuration";
                self.mistake(named, Code::Unreadable, message, hint);
                None
            }
        }
    }

    /// Reads a file of secrets, which only its owner may be able to read or write; none if it can't be read.
    pub(super) fn private_file(&mut self, named: &Placed) -> Option<Vec<u8>> {
        let bytes = self.read_file(named)?;
        let file = self.path(named);
        if std::fs::metadata(&file).is_ok_and(|about| about.mode() & 0o077 != 0) {
            let shown = file.display();
            let message = format!("others than its owner may read or write `{shown}`, which has secrets");
            let hint = format!("`chmod 600 {shown}`");
            self.mistake(named, Code::InvalidValue, message, &hint);
        }
        Some(bytes)
    }
}

/// Returns an absolute path with the links of all folders that exist resolved.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let known = whole
        .ancestors()
        .find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    match known {
        Some((folder, known)) => known.join(whole.strip_prefix(folder).unwrap_or(Path::new(""))),
        None => whole,
    }
}

/// Returns the instance in whose folder a path lies; none if it lies in no project.
fn above<'n>(path: &Path, folders: &BTreeMap<&'n String, PathBuf>) -> Option<&'n String> {
    let mut all = folders.iter();
    all.find(|(_, folder)| path.starts_with(folder))
        .map(|(name, _)| *name)
}
