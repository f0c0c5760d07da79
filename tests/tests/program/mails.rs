//! A server of mail on loopback that demands STARTTLS and a password, of a package that others wrote. It keeps mails in a folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use watershed_tests::server::{fetched, skip};

use crate::sandbox::Sandbox;

/// The server: it says its port, and has each mail in the folder before it answers.
const SERVER: &str = r#"
import asyncio, ssl, sys
from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import SMTP, AuthResult

def known(server, session, envelope, mechanism, data):
    return AuthResult(success=data.login == b"ann" and data.password == b"correct horse")

async def main(folder, certificate, key):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    options = dict(hostname="localhost", tls_context=tls, require_starttls=True, auth_required=True, authenticator=known)
    handler = Mailbox(folder)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, loop=loop, **options), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main(*sys.argv[1:]))
"#;

/// A running server.
pub(crate) struct MailServer {
    process: Child,
    port: String,
    folder: tempfile::TempDir,
    authority: String,
}

impl MailServer {
    /// Starts a server; none if it is not on this machine, which is said.
    pub(crate) fn start() -> Option<Self> {
        let package = fetched().join("mail");
        if !package.join("aiosmtpd").is_dir() {
            skip("the mail server is missing (scripts/fetch-test-servers)");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder can be made");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate can be made");
        let (authority, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let file = |name: &str, text: &str| -> PathBuf {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("the file can be written");
            path
        };
        let mut process = Command::new("python3")
            .args(["-c", SERVER])
            .arg(folder.path().join("mails"))
            .args([file("certificate.pem", &authority), file("key.pem", &key)])
            .env("PYTHONPATH", package)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 runs");
        let mut said = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        let port = said
            .next()
            .and_then(Result::ok)
            .expect("it says where it listens");
        Some(Self {
            process,
            port,
            folder,
            authority,
        })
    }

    /// Gives a project the connector `post`, which sends through it.
    pub(crate) fn connect(&self, project: &Sandbox) {
        project.write("authority.pem", &self.authority);
        let connector = format!(
            "type: connector\ndriver: smtp\nhost: localhost\nport: {}\nuser: ann\npassword: correct horse\n\
             from: Watershed <alerts@example.org>\nca_file: authority.pem\n",
            self.port
        );
        project.write("connectors/post.yaml", &connector);
    }

    /// The mails that it has taken.
    pub(crate) fn mails(&self) -> Vec<Mail> {
        let entries = fs::read_dir(self.folder.path().join("mails/new")).expect("the folder is there");
        let mail = |path: PathBuf| Mail(fs::read_to_string(path).expect("a mail is text"));
        entries
            .map(|entry| mail(entry.expect("it can be listed").path()))
            .collect()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A mail as it came.
#[derive(Debug)]
pub(crate) struct Mail(String);

impl Mail {
    /// The value of a header of one line; empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let head = self.0.split("\n\n").next().unwrap_or_default();
        let found = head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_default()
    }
}
