//! Projects that come from git: fetched by `git` itself into a folder of the service's, and swapped in whole.
//!
//! Nothing of a repository runs here: no hook, no filter, no submodule, and no configuration but this module's. What can't be
//! fetched, is too large or leads out of its folder leaves the files of before in place.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use ring::hmac;
use rustix::fs::{CWD, RenameFlags};
use tokio::sync::Mutex;
use watershed::http::{Fetched, Source};
use watershed::program::{Readers, replace};
use watershed_api::{Code, Problem};
use watershed_outside::program::{Ended, Keep, Program};

/// The time that a call of `git` may take.
const WITHIN: Duration = Duration::from_secs(300);
/// The largest file that `git` may write, a pack included, in blocks of 512 bytes: 256 MiB.
const LARGEST_FILE: &str = "524288";
/// The largest sum of a commit's files, in bytes.
const MOST_BYTES: u64 = 256 << 20;
/// The most files of a commit.
const MOST_FILES: usize = 50_000;
/// The longest list of a commit's files, in bytes.
const LONGEST_LIST: usize = 32 << 20;
/// The part of errors that is kept, in bytes.
const KEPT: usize = 4 << 10;
/// The most fetches of a repository that wait.
const MOST_WAITING: usize = 2;
/// The name under which the fetched commit is known in the folder's repository.
const NEXT: &str = "refs/watershed/next";
/// The beginning of a webhook's signature.
const SIGNATURE: &str = "sha256=";

/// The repository of an instance, as it is configured.
#[derive(Clone, PartialEq)]
pub(super) struct Origin {
    pub(super) url: String,
    pub(super) revision: String,
    /// Name and password for the server, with a colon between; none for a public repository.
    pub(super) credentials: Option<String>,
    /// File of certificates of trusted authorities; none for those of the system.
    pub(super) authorities: Option<PathBuf>,
    /// Secret of webhooks; none if none are taken.
    pub(super) secret: Option<String>,
    /// Folder of the instance in the service's state.
    pub(super) folder: PathBuf,
}

/// A repository whose files are fetched. Clones share it.
#[derive(Clone)]
pub(super) struct Repository(Arc<Inner>);

struct Inner {
    origin: Origin,
    /// Folder of the project: the one that is swapped.
    project: PathBuf,
    /// The turn of a fetch: one at a time.
    turn: Mutex<()>,
    waiting: AtomicUsize,
}

impl Repository {
    /// Creates the repository whose files are put into the folder `project`.
    pub(super) fn new(origin: Origin, project: PathBuf) -> Self {
        Self(Arc::new(Inner {
            origin,
            project,
            turn: Mutex::default(),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Fetches the files when the service starts. What was fetched before stands in for what can't be fetched now.
    ///
    /// # Errors
    /// When nothing can be fetched and nothing was fetched before.
    pub(super) async fn begin(&self) -> Result<(), Problem> {
        match self.checkout().await {
            Err(problem) if self.0.project.is_dir() => {
                tracing::warn!(%problem, "the files of before are served");
                Ok(())
            }
            other => other.map(drop),
        }
    }
}

impl Source for Repository {
    fn checkout(&self) -> BoxFuture<'_, Result<Fetched, Problem>> {
        Box::pin(async move {
            let _waiting = Waiting::begin(&self.0.waiting)?;
            let _turn = self.0.turn.lock().await;
            self.0.fetch().await
        })
    }

    fn is_signed(&self, body: &[u8], signature: &str) -> bool {
        let given = signature.strip_prefix(SIGNATURE).and_then(bytes_of);
        match (&self.0.origin.secret, given) {
            (Some(secret), Some(given)) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
                hmac::verify(&key, body, &given).is_ok()
            }
            _ => false,
        }
    }
}

/// Decodes hexadecimal digits; none for other signs and for half a byte.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = digits.chars().map(|sign| sign.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    let pairs = digits
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |sum, digit| 16 * sum + digit));
    pairs.map(|byte| u8::try_from(byte).ok()).collect()
}

/// A place among the fetches that wait, free again when dropped.
struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    fn begin(waiting: &'w AtomicUsize) -> Result<Self, Problem> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::AcqRel) < MOST_WAITING {
            true => Ok(place),
            // The one that waits will fetch what there is by then.
            false => Err(Problem::new(Code::Busy, "the files are being fetched already")),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Inner {
    fn repository(&self) -> PathBuf {
        self.origin.folder.join("repository")
    }

    fn next(&self) -> PathBuf {
        self.origin.folder.join("next")
    }

    /// The file with the id of the commit whose files are in place.
    fn commit(&self) -> PathBuf {
        self.origin.folder.join("commit")
    }

    async fn fetch(&self) -> Result<Fetched, Problem> {
        let mut making = fs::DirBuilder::new();
        making.recursive(true).mode(0o700);
        making
            .create(&self.origin.folder)
            .map_err(|error| self.unwritten(&error))?;
        if !self.repository().join("HEAD").is_file() {
            let made = ["init", "--quiet", "--bare", "--template="].map(str::to_owned);
            self.git(made.into_iter().chain([shown(&self.repository())]), Keep::Nothing)
                .await?;
        }
        let fetch = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--force",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--no-write-fetch-head",
            "--",
            &self.origin.url,
            &format!("+{}:{NEXT}", self.origin.revision),
        ];
        self.of_repository(fetch, Keep::Nothing).await?;
        let commit = format!("{NEXT}^{{commit}}");
        let found = self
            .of_repository(["rev-parse", "--verify", "--quiet", &commit], Keep::First(KEPT))
            .await?;
        let commit = String::from_utf8_lossy(&found.output).trim().to_owned();
        let is_there = fs::read_to_string(self.commit()).is_ok_and(|known| known.trim() == commit);
        if is_there && self.project.is_dir() {
            return Ok(Fetched {
                commit,
                is_changed: false,
            });
        }
        self.refuse_large(&commit).await?;
        self.check_out(&commit).await?;
        let (next, project, known) = (self.next(), self.project.clone(), self.commit());
        let id = commit.clone();
        let placing = tokio::task::spawn_blocking(move || {
            refuse_links(&next)?;
            place(&next, &project)
                .and_then(|()| replace(&known, &format!("{id}\n"), Readers::Owner))
                .map_err(Unplaced::Refused)
        });
        let placed = placing
            .await
            .map_err(|_| Problem::new(Code::Defect, "the thread that puts files in place has panicked"))?;
        placed.map_err(|why| match why {
            Unplaced::Link(path) => Problem::new(
                Code::ProjectError,
                format!("the link `{path}` of the repository leads out of it, or nowhere"),
            )
            .hint("nothing was changed: take the link out of the repository"),
            Unplaced::Refused(error) => self.unwritten(&error),
        })?;
        Ok(Fetched {
            commit,
            is_changed: true,
        })
    }

    /// Refuses a commit with too many files, or too large ones.
    async fn refuse_large(&self, commit: &str) -> Result<(), Problem> {
        let list = ["ls-tree", "-r", "-l", "-z", "--full-tree", commit];
        let listed = self.of_repository(list, Keep::First(LONGEST_LIST)).await?;
        let lines = listed
            .output
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty());
        let (mut files, mut bytes) = (0, 0_u64);
        for line in lines {
            // Mode, type, id, size, and behind a tab the path.
            let about = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
            let size = String::from_utf8_lossy(about);
            let size = size
                .split_whitespace()
                .nth(3)
                .and_then(|size| size.parse::<u64>().ok());
            files += 1;
            bytes = bytes.saturating_add(size.unwrap_or_default());
        }
        match files > MOST_FILES || bytes > MOST_BYTES {
            true => Err(Problem::new(
                Code::ProjectError,
                format!("the commit has {files} files with {bytes} bytes, more than are fetched"),
            )
            .hint(format!(
                "nothing was changed: {MOST_FILES} files and {MOST_BYTES} bytes are the bounds"
            ))),
            false => Ok(()),
        }
    }

    /// Writes the files of a commit into the folder beside the project's.
    async fn check_out(&self, commit: &str) -> Result<(), Problem> {
        let (next, repository) = (self.next(), self.repository());
        let preparing = tokio::task::spawn_blocking(move || {
            gone(fs::remove_dir_all(&next))?;
            // It knows the files of another folder.
            gone(fs::remove_file(repository.join("index")))?;
            fs::create_dir(&next)
        });
        let prepared = preparing
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        prepared.map_err(|error| self.unwritten(&error))?;
        let tree = format!("--work-tree={}", shown(&self.next()));
        self.of_repository(
            [&tree, "checkout", "--quiet", "--force", commit, "--", "."],
            Keep::Nothing,
        )
        .await
        .map(drop)
    }

    async fn of_repository<'a>(
        &self,
        arguments: impl IntoIterator<Item = &'a str>,
        output: Keep,
    ) -> Result<Ended, Problem> {
        let repository = format!("--git-dir={}", shown(&self.repository()));
        let arguments = arguments.into_iter().map(str::to_owned);
        self.git([repository].into_iter().chain(arguments), output).await
    }

    /// Runs `git` with nothing of the user's configuration, within bounds of time and size.
    async fn git(&self, arguments: impl IntoIterator<Item = String>, output: Keep) -> Result<Ended, Problem> {
        let limited = format!("ulimit -f {LARGEST_FILE}; exec git \"$@\"");
        let command: Vec<String> = ["sh".to_owned(), "-c".to_owned(), limited, "git".to_owned()]
            .into_iter()
            .chain(arguments)
            .collect();
        let defect = || Problem::new(Code::Defect, "there is no command of git");
        let mut program = Program::new(&self.origin.folder, &command).ok_or_else(defect)?;
        program.pass_on();
        program.variables(self.environment());
        (program.output, program.errors, program.within) = (output, Keep::Last(KEPT), Some(WITHIN));
        let unfetched = |why: String| {
            let why = why.replace(&shown(&self.origin.folder), ".");
            Problem::new(
                Code::Unavailable,
                format!("the repository can't be fetched: {why}"),
            )
            .hint("the files of before stay in place; look at `git` in the configuration of the instance")
        };
        let ended = program
            .run()
            .await
            .map_err(|error| unfetched(error.to_string()))?;
        match ended.status.success() {
            true => Ok(ended),
            false => Err(unfetched(ended.last_line().unwrap_or_else(|| ended.how()))),
        }
    }

    /// Returns the environment of `git`: its whole configuration, credentials included, which no list of processes shows.
    fn environment(&self) -> Vec<(String, String)> {
        let protocol = match self.origin.url.starts_with("file:") {
            true => "file",
            false => "https",
        };
        let nothing = || "/dev/null".to_owned();
        let mut settings: Vec<(&str, String)> = vec![
            ("core.hooksPath", nothing()),
            ("core.fsmonitor", "false".to_owned()),
            ("core.attributesFile", nothing()),
            ("credential.helper", String::new()),
            ("fetch.fsckObjects", "true".to_owned()),
            ("gc.auto", "0".to_owned()),
            ("http.followRedirects", "false".to_owned()),
            ("http.lowSpeedLimit", "1000".to_owned()),
            ("http.lowSpeedTime", "30".to_owned()),
            ("submodule.recurse", "false".to_owned()),
            ("advice.detachedHead", "false".to_owned()),
        ];
        if let Some(credentials) = &self.origin.credentials {
            let header = format!("Authorization: Basic {}", STANDARD.encode(credentials));
            settings.push(("http.extraHeader", header));
        }
        if let Some(authorities) = &self.origin.authorities {
            settings.push(("http.sslCAInfo", shown(authorities)));
        }
        let mut environment: Vec<(String, String)> = [
            ("HOME", shown(&self.origin.folder)),
            ("LC_ALL", "C".to_owned()),
            ("GIT_ALLOW_PROTOCOL", protocol.to_owned()),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_GLOBAL", nothing()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_ATTR_NOSYSTEM", "1".to_owned()),
            ("GIT_CONFIG_COUNT", settings.len().to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (number, (key, value)) in settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{number}"), key.to_owned()));
            environment.push((format!("GIT_CONFIG_VALUE_{number}"), value));
        }
        environment
    }

    fn unwritten(&self, error: &io::Error) -> Problem {
        let code = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::NoSpace,
            _ => Code::Unavailable,
        };
        Problem::new(code, format!("fetched files can't be put in place: {error}"))
            .hint("the files of before stay in place; look at the disk of the service's state")
    }
}

/// The reason why fetched files were not put in place.
enum Unplaced {
    /// The link of this path leads out of the folder, or nowhere.
    Link(String),
    /// The system refused.
    Refused(io::Error),
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns success also for what is gone already.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Refuses links that lead out of a folder, through whatever other links, and those that lead nowhere. Blocks.
fn refuse_links(folder: &Path) -> Result<(), Unplaced> {
    let whole = folder.canonicalize().map_err(Unplaced::Refused)?;
    let mut folders = vec![whole.clone()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).map_err(Unplaced::Refused)? {
            let entry = entry.map_err(Unplaced::Refused)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(Unplaced::Refused)?);
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let is_within = fs::read_link(&path).is_ok_and(|to| to.is_relative())
                    && path.canonicalize().is_ok_and(|to| to.starts_with(&whole));
                if !is_within {
                    let below = path.strip_prefix(&whole).unwrap_or(&path);
                    return Err(Unplaced::Link(shown(below)));
                }
            }
        }
    }
    Ok(())
}

/// Puts a folder in the place of another one in one step, and removes what was there. Blocks.
fn place(next: &Path, project: &Path) -> io::Result<()> {
    // All files of the folder are on disk before it is in place.
    rustix::fs::syncfs(fs::File::open(next)?)?;
    let placed = match project.exists() {
        true => rustix::fs::renameat_with(CWD, next, CWD, project, RenameFlags::EXCHANGE)
            .map_err(io::Error::from)
            .and_then(|()| fs::remove_dir_all(next)),
        false => fs::rename(next, project),
    };
    placed?;
    match project.parent() {
        Some(folder) => fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(secret: Option<&str>) -> Repository {
        let origin = Origin {
            url: "https://git.example.org/ops.git".to_owned(),
            revision: "main".to_owned(),
            credentials: Some("ann:secret-of-ann".to_owned()),
            authorities: None,
            secret: secret.map(str::to_owned),
            folder: PathBuf::from("/state/ops"),
        };
        Repository::new(origin, PathBuf::from("/state/ops/ops"))
    }

    #[test]
    fn s_api46_a_webhook_is_signed_with_the_secret_or_not_at_all() {
        // The example of the header's makers.
        let signed = repository(Some("It's a Secret to Everybody"));
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(signed.is_signed(b"Hello, World!", signature));
        for wrong in [
            "",
            "sha256=",
            "sha256=75",
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e18",
            "sha1=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
        ] {
            assert!(!signed.is_signed(b"Hello, World!", wrong), "{wrong}");
        }
        assert!(!signed.is_signed(b"Hello, world!", signature));
        assert!(!repository(None).is_signed(b"Hello, World!", signature));
    }

    #[test]
    fn s_api46_credentials_stand_in_the_environment_and_other_protocols_are_off() {
        let environment = repository(None).0.environment();
        let has = |name: &str, value: &str| environment.iter().any(|it| it.0 == name && it.1 == value);
        assert!(has("GIT_ALLOW_PROTOCOL", "https") && has("GIT_CONFIG_GLOBAL", "/dev/null"));
        let header = format!("Authorization: Basic {}", STANDARD.encode("ann:secret-of-ann"));
        assert!(environment.iter().any(|(_, value)| *value == header));
    }

    #[test]
    fn s_api46_links_that_lead_out_or_nowhere_are_refused() {
        for (to, is_good) in [
            ("a.sql", true),
            ("deep/../a.sql", true),
            ("../outside", false),
            ("/etc/passwd", false),
            ("nowhere", false),
            // The folder itself is a link to the top, above which `..` leads.
            ("top/../outside", false),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join("next");
            fs::create_dir_all(folder.join("deep")).unwrap();
            fs::write(folder.join("a.sql"), "").unwrap();
            fs::write(temp.path().join("outside"), "").unwrap();
            std::os::unix::fs::symlink(".", folder.join("top")).unwrap();
            std::os::unix::fs::symlink(to, folder.join("link")).unwrap();
            let checked = refuse_links(&folder);
            assert_eq!(checked.is_ok(), is_good, "{to}");
        }
    }

    #[test]
    fn s_api46_a_folder_is_swapped_in_whole() {
        let temp = tempfile::tempdir().unwrap();
        let (next, project) = (temp.path().join("next"), temp.path().join("project"));
        for (text, other) in [("one", "only one"), ("two", "only two")] {
            fs::create_dir(&next).unwrap();
            fs::write(next.join("a.sql"), text).unwrap();
            fs::write(next.join(other), "").unwrap();
            place(&next, &project).unwrap();
            assert_eq!(fs::read_to_string(project.join("a.sql")).unwrap(), text);
            assert_eq!(fs::read_dir(&project).unwrap().count(), 2);
            assert!(!next.exists());
        }
    }
}
