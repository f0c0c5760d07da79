//! A container engine for one test: on a Unix socket in a temporary folder, without a network.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::REQUIRED;

/// The variable with a file to which a skipped test adds its reason.
const SKIPPED: &str = "WATERSHED_SKIPPED";

/// The longest time that the engine may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The image that each engine has: `busybox` and a shell.
pub const IMAGE: &str = "tool:1";

/// A running engine with one image, [`IMAGE`].
#[derive(Debug)]
pub struct Engine {
    folder: TempDir,
    process: Child,
}

impl Engine {
    /// Starts an engine; none, with a message, if its program is missing or may not run here.
    ///
    /// # Panics
    /// If it is missing where [`REQUIRED`] is set.
    pub fn start() -> Option<Self> {
        let (Some(program), Some(busybox)) = (find("dockerd"), find("busybox")) else {
            let missing = "dockerd or busybox is missing (Debian: apt-get install docker.io busybox-static)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{missing}");
            return skip(missing);
        };
        if !rustix::process::geteuid().is_root() {
            return skip("an engine for containers needs the rights of root");
        }
        let folder = tempfile::tempdir().expect("a folder for the engine");
        let process = spawn(&program, folder.path());
        let mut engine = Self { folder, process };
        if !engine.is_up() {
            let log = fs::read_to_string(engine.folder.path().join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default().to_owned();
            return skip(&format!("an engine for containers does not start here: {last}"));
        }
        engine.import(&busybox);
        match engine.try_container() {
            Ok(()) => Some(engine),
            Err(said) => skip(&format!("containers can't be run here: {said}")),
        }
    }

    /// Returns the engine's address, in the form of `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Stops the engine in the middle of its work, and starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.stop();
        self.begin();
    }

    /// Stops the engine, and all its containers with it.
    ///
    /// # Panics
    /// If it can't be ended.
    pub fn stop(&mut self) {
        terminate(&self.process);
        self.process.wait().expect("it ends");
    }

    /// Starts the stopped engine again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn begin(&mut self) {
        let program = find("dockerd").expect("it was there");
        self.process = spawn(&program, self.folder.path());
        assert!(self.is_up(), "the engine starts again");
    }

    /// Returns all containers as the engine lists them, exited ones included.
    pub fn containers(&self) -> Vec<Value> {
        let (status, listed) = self.ask("GET", "/containers/json?all=true", &[]);
        assert_eq!(status, 200, "{listed}");
        listed.as_array().cloned().unwrap_or_default()
    }

    /// Returns the names of the containers in a state, such as `running`.
    pub fn names(&self, state: &str) -> Vec<String> {
        let listed = self.containers().into_iter();
        let mut names: Vec<String> = listed
            .filter(|one| one["State"] == state)
            .map(|one| {
                one["Names"][0]
                    .as_str()
                    .unwrap_or_default()
                    .trim_start_matches('/')
                    .to_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// Creates a container without starting it.
    ///
    /// # Panics
    /// If that fails.
    pub fn create(&self, name: &str, command: &[&str]) {
        let body = serde_json::json!({"Image": IMAGE, "Cmd": command, "HostConfig": {"NetworkMode": "none"}});
        let path = format!("/containers/create?name={name}");
        let (status, said) = self.ask("POST", &path, body.to_string().as_bytes());
        assert_eq!(status, 201, "{said}");
    }

    /// Sends a signal to a container.
    ///
    /// # Panics
    /// If that fails.
    pub fn kill(&self, name: &str, signal: &str) {
        let (status, said) = self.ask("POST", &format!("/containers/{name}/kill?signal={signal}"), &[]);
        assert_eq!(status, 204, "{said}");
    }

    /// Removes a container, even a running one.
    ///
    /// # Panics
    /// If that fails.
    pub fn remove(&self, name: &str) {
        let path = format!("/containers/{name}?force=true&v=true");
        // The engine may still write into the container's folder, and fails then.
        let answers = std::iter::repeat_with(|| self.ask("DELETE", &path, &[])).take(100);
        let mut answers = answers.skip_while(|(status, said)| {
            *status == 500
                && said["message"]
                    .as_str()
                    .is_some_and(|it| it.contains("not empty"))
        });
        let (status, said) = answers.next().expect("it can be removed in the end");
        assert!(status == 204 || status == 404, "{said}");
    }

    /// Removes an image, or one of its names.
    ///
    /// # Panics
    /// If that fails.
    pub fn remove_image(&self, image: &str) {
        let (status, said) = self.ask("DELETE", &format!("/images/{image}?force=true"), &[]);
        assert_eq!(status, 200, "{said}");
    }

    /// Returns the number of volumes.
    pub fn volumes(&self) -> usize {
        let (_, listed) = self.ask("GET", "/volumes", &[]);
        listed["Volumes"].as_array().map_or(0, Vec::len)
    }

    /// Adds [`IMAGE`], or the same image under another name, with an anonymous volume.
    pub fn add_image(&self, name: &str) {
        let busybox = find("busybox").expect("it was there");
        self.import_as(&busybox, name, "VOLUME%20%2Fscratch");
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Waits until the engine answers. Returns false if it has exited or gives no answer.
    fn is_up(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.process.try_wait().is_ok_and(|ended| ended.is_some()) {
                return false;
            }
            if self
                .try_ask("GET", "/version", &[])
                .is_ok_and(|(status, _)| status == 200)
            {
                return true;
            }
            #[allow(clippy::disallowed_methods, reason = "nothing tells when it listens")]
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn import(&self, busybox: &Path) {
        self.import_as(busybox, IMAGE, "ENV%20FROM_IMAGE%3Dyes");
    }

    /// Imports an image with one program, under all names by which it is called.
    fn import_as(&self, busybox: &Path, name: &str, change: &str) {
        let root = tempfile::tempdir().expect("a folder");
        let bin = root.path().join("bin");
        fs::create_dir(&bin).expect("a folder can be made");
        fs::create_dir(root.path().join("tmp")).expect("a folder can be made");
        fs::copy(busybox, bin.join("busybox")).expect("the program can be copied");
        for name in [
            "sh", "sleep", "echo", "cat", "true", "false", "test", "touch", "httpd", "id", "env", "kill",
        ] {
            std::os::unix::fs::symlink("busybox", bin.join(name)).expect("a link can be made");
        }
        let tar = Command::new("tar")
            .arg("-C")
            .arg(root.path())
            .args(["-c", "."])
            .output();
        let tar = tar.expect("tar runs").stdout;
        let (name, tag) = name.split_once(':').expect("a name and a tag");
        let path = format!("/images/create?fromSrc=-&repo={name}&tag={tag}&changes={change}");
        let (status, said) = self.ask("POST", &path, &tar);
        assert_eq!(status, 200, "{said}");
    }

    /// Runs one container to its end.
    fn try_container(&self) -> Result<(), Value> {
        self.create("try", &["true"]);
        let (status, said) = self.ask("POST", "/containers/try/start", &[]);
        if status != 204 {
            return Err(said["message"].clone());
        }
        let (_, ended) = self.ask("POST", "/containers/try/wait", &[]);
        self.remove("try");
        match ended["StatusCode"] == 0 {
            true => Ok(()),
            false => Err(ended),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        self.try_ask(method, path, body).expect("the engine answers")
    }

    fn try_ask(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<(u16, Value)> {
        let mut stream = UnixStream::connect(self.socket())?;
        let kind = if path.starts_with("/images/create") {
            "application/x-tar"
        } else {
            "application/json"
        };
        // The version in which a body ends with its connection.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: engine\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = serde_json::from_str(body).unwrap_or_else(|_| Value::from(body));
        Ok((status.unwrap_or(0), body))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        terminate(&self.process);
        let _ = self.process.wait();
    }
}

/// Starts the engine's process in a folder. The process ends with the thread that starts it, should a test be killed.
fn spawn(program: &Path, folder: &Path) -> Child {
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("log"));
    let log = log.expect("a log can be made");
    let path = |name: &str| folder.join(name).display().to_string();
    Command::new("setpriv")
        .args(["--pdeathsig", "TERM", "--"])
        .arg(program)
        .args([
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
            "--storage-driver=vfs",
        ])
        .args(["--shutdown-timeout=1", "--log-level=warn"])
        .args(["--data-root", &path("data"), "--exec-root", &path("run")])
        .args([
            "--pidfile",
            &path("pid"),
            "--host",
            &format!("unix://{}", path("socket")),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("setpriv runs")
}

fn terminate(process: &Child) {
    let pid = i32::try_from(process.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // One that has ended already needs no signal.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Reports the reason why a test is skipped.
fn skip(reason: &str) -> Option<Engine> {
    #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
    {
        eprintln!("skipped: {reason}");
    }
    if let Some(path) = std::env::var_os(SKIPPED) {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{reason}"));
    }
    None
}

fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    // Where the system keeps what is for root, which is not in everybody's path.
    folders.push("/usr/sbin".into());
    folders
        .into_iter()
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}
