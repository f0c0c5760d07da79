//! Options with which an instance is opened.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use watershed_api::request::Selection;
use watershed_drivers::objects::Prefix;
use watershed_drivers::reach::Egress;
use watershed_drivers::sandbox::WorkingFolder;
use watershed_drivers::shares::{MemoryShare, Share};
use watershed_reconcilers::model::sample::Sample;

use crate::report::document::Project;
use crate::state_folder::{self, STATE_FOLDER, StateFolder};

/// The project to open, and the resources that it may use.
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    /// The project's folder.
    pub root: PathBuf,
    /// Name of the environment, which selects the overrides and the state.
    pub environment: String,
    /// Name of the instance in its catalog; `default` unless set.
    ///
    /// In a [store of the embedder's](super::Runtime::with_store) each instance has a name of its own.
    pub name: String,
    /// The folder of the state; `.watershed` in the project by default.
    pub state_dir: Option<PathBuf>,
    /// Variables that take precedence over the project's own.
    pub variables: BTreeMap<String, String>,
    /// Transactions of the engine that make outputs at once; two more than cores by default.
    ///
    /// Small builds share a transaction, so more resources than that are at work, unless this is 1.
    pub jobs: Option<NonZeroUsize>,
    /// The share in the slots for builds of a process that runs several projects; none by default, which bounds this
    /// project alone.
    pub share: Option<Share>,
    /// Number of threads of the engine; one per core by default.
    pub engine_threads: Option<NonZeroUsize>,
    /// Memory that the engine may use, in bytes; 60 % of the machine's by default.
    pub memory_limit: Option<u64>,
    /// The share of the project in `memory_limit`, of a process that runs several projects; all of the limit by default.
    pub memory_share: Option<MemoryShare>,
    /// The time that work waits for the engine's file while another program has it open.
    ///
    /// Without end by default, which suits a process that stays; readers wait 10 seconds at most.
    pub engine_patience: Duration,
    /// True to confine the project to its own folder and its state, for projects that you don't trust; false by
    /// default.
    ///
    /// The working folder of the process must then be the project's, or `working_folder`.
    pub sandbox: bool,
    /// Addresses of stores and web servers that a confined project may ask; none by default.
    ///
    /// An endpoint that a connector names has to be among them.
    pub reach: Vec<Prefix>,
    /// Extensions of the engine that are loaded for a confined project, which loads none itself; none by default.
    ///
    /// Extensions that read files or servers by themselves would open the sandbox.
    pub loads: Vec<String>,
    /// True if callers of a service other than its own user may change the files of a project that is not confined, and
    /// so run programs as that user; false by default.
    pub remote_edit: bool,
    /// The policy of outgoing connections; none are refused by default.
    pub egress: Egress,
    /// The empty working folder of a process that runs several projects, confined ones among them; none by default.
    ///
    /// The process makes the folder its working folder before the first project is opened.
    pub working_folder: Option<WorkingFolder>,
    /// A folder of the engine's extensions, searched before all others.
    pub extensions: Option<PathBuf>,
    /// True to download missing extensions from their makers' repository, unless the manifest forbids it; false by
    /// default.
    pub installs: bool,
    /// The occasions on which the project's files are read; whenever they change by default.
    pub files: Files,
    /// The program that is run as the parent of local processes, with `shim FOLDER`; `watershed` in `PATH` unless set.
    pub shim: PathBuf,
    /// The part of every source that is read; all of it by default.
    ///
    /// A sample has a state of its own, writes no files, starts no programs and sends no messages.
    pub sample: Option<Sample>,
    /// The resources to run; all by default.
    ///
    /// The others are recorded as the files declare them and otherwise left as they are.
    pub selection: Selection,
}

/// The occasions on which a project's files, and the data files that its models read, are looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Files {
    /// At the start, and whenever the files change.
    #[default]
    Watched,
    /// At the start, and when somebody asks for the project parser.
    Once,
}

impl Options {
    /// Returns the default options for a project.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            environment: "dev".to_owned(),
            name: "default".to_owned(),
            state_dir: None,
            variables: BTreeMap::new(),
            jobs: None,
            share: None,
            engine_threads: None,
            memory_limit: None,
            memory_share: None,
            engine_patience: Duration::MAX,
            sandbox: false,
            reach: Vec::new(),
            loads: Vec::new(),
            remote_edit: false,
            egress: Egress::default(),
            working_folder: None,
            extensions: None,
            installs: false,
            sample: None,
            files: Files::default(),
            shim: PathBuf::from("watershed"),
            selection: Selection::default(),
        }
    }
}

impl fmt::Debug for Options {
    /// Formats the options without the values of variables, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("root", &self.root)
            .field("environment", &self.environment)
            .field("name", &self.name)
            .field("state_dir", &self.state_dir)
            .field("variables", &self.variables.keys())
            .field("files", &self.files)
            .field("sandbox", &self.sandbox)
            .field("remote_edit", &self.remote_edit)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Returns the state folder of these options.
    ///
    /// # Errors
    /// When the environment's name could not be a folder's.
    pub fn state_folder(&self) -> Result<StateFolder, state_folder::Error> {
        let root = self
            .state_dir
            .clone()
            .unwrap_or_else(|| self.root.join(STATE_FOLDER));
        StateFolder::new(root, &state_name(&self.environment, self.sample))
    }

    /// Refuses symbolic links in the state folder of a confined project. To be called before anything is made there.
    ///
    /// # Errors
    /// [`state_folder::Error::Link`] when there is one.
    pub fn refuse_links(&self, state: &StateFolder) -> Result<(), state_folder::Error> {
        match self.sandbox {
            true => state.refuse_links(&self.root),
            false => Ok(()),
        }
    }

    pub(crate) fn project(&self) -> Project {
        let name = self
            .root
            .file_name()
            .map_or_else(|| "project".into(), |name| name.to_string_lossy());
        Project {
            name: name.into_owned(),
            root: self.root.clone(),
            environment: self.environment.clone(),
        }
    }
}

/// Returns the name of the folder that holds the state of an environment, or of a sample of it.
#[must_use]
pub fn state_name(environment: &str, sample: Option<Sample>) -> String {
    match sample {
        None => environment.to_owned(),
        Some(sample) => format!("{environment}.sample-{sample}"),
    }
}

impl<P: Into<PathBuf>> From<P> for Options {
    /// Returns the default options for the project in this folder.
    fn from(root: P) -> Self {
        Self::new(root)
    }
}
