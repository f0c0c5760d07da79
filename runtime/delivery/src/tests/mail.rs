//! Tests of mail through a loopback server that demands STARTTLS and a password.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use watershed_locks::Unpoisoned;
use watershed_outside::http::{Destination, Egress, Names, Resolving};

use super::message;
use crate::message::{ATTACHED_MAX, Attachment};
use crate::notify::{Attempt, DeliveryError, Login, Notifier, Receipt, Smtp, SmtpError, SmtpSettings, Tls};
use crate::policy::Class;

/// Base64 of `\0ann\0correct horse`.
const PLAIN: &str = "AGFubgBjb3JyZWN0IGhvcnNl";

/// Behaviour of the mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Accepts all mails.
    Takes,
    /// Refuses each recipient permanently.
    Refuses,
    /// Refuses each recipient temporarily.
    Greylists,
    /// Stops answering once the connection is encrypted.
    Hangs,
    /// Offers no encryption.
    Clear,
}

#[derive(Clone)]
struct Server {
    port: u16,
    manner: Manner,
    acceptor: TlsAcceptor,
    authority: Vec<u8>,
    mails: Arc<Mutex<Vec<String>>>,
    /// Lines received before the connection was encrypted.
    clear: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has ports");
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])
            .expect("a certificate can be made");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("certificate and key belong together");
        let server = Self {
            port: listener.local_addr().expect("it is bound").port(),
            manner,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            authority: made.cert.pem().into_bytes(),
            mails: Arc::default(),
            clear: Arc::default(),
        };
        tokio::spawn(server.clone().serve(listener));
        server
    }

    fn settings(&self) -> SmtpSettings {
        SmtpSettings {
            host: "localhost".to_owned(),
            port: Some(self.port),
            tls: Tls::Starttls,
            login: Some(Login {
                user: "ann".to_owned(),
                password: "correct horse".to_owned(),
            }),
            from: "Watershed <alerts@example.org>".to_owned(),
            authorities: Some(self.authority.clone()),
            within: Some(Duration::from_secs(5)),
            ..SmtpSettings::default()
        }
    }

    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let server = self.clone();
            tokio::spawn(async move { server.converse(stream).await });
        }
    }

    async fn converse(&self, stream: TcpStream) -> Option<()> {
        let mut stream = BufStream::new(stream);
        say(&mut stream, "220 localhost ready").await?;
        loop {
            let line = hear(&mut stream).await?;
            self.clear.lock().unpoisoned().push(line.clone());
            match verb(&line).as_str() {
                "EHLO" if self.manner == Manner::Clear => say(&mut stream, "250 localhost").await?,
                "EHLO" => say(&mut stream, "250-localhost\r\n250 STARTTLS").await?,
                "STARTTLS" => break,
                _ => say(&mut stream, "530 encrypt first").await?,
            }
        }
        say(&mut stream, "220 go ahead").await?;
        let stream = self.acceptor.accept(stream.into_inner()).await.ok()?;
        if self.manner == Manner::Hangs {
            let _stream = stream;
            return std::future::pending().await;
        }
        self.take(BufStream::new(stream)).await
    }

    async fn take(&self, mut stream: BufStream<impl AsyncRead + AsyncWrite + Unpin>) -> Option<()> {
        let mut is_known = false;
        loop {
            let line = hear(&mut stream).await?;
            let answer = match verb(&line).as_str() {
                "EHLO" => "250-localhost\r\n250 AUTH PLAIN",
                "AUTH" if line.ends_with(PLAIN) => {
                    is_known = true;
                    "235 welcome"
                }
                "AUTH" => "535 who are you",
                "MAIL" if !is_known => "530 say who you are",
                "RCPT" if self.manner == Manner::Refuses => "550 no such user",
                "RCPT" if self.manner == Manner::Greylists => "451 come again later",
                "DATA" => {
                    say(&mut stream, "354 go on").await?;
                    let mail = self.mail(&mut stream).await?;
                    self.mails.lock().unpoisoned().push(mail);
                    "250 taken as 17"
                }
                "QUIT" => return say(&mut stream, "221 bye").await,
                _ => "250 fine",
            };
            say(&mut stream, answer).await?;
        }
    }

    async fn mail(&self, stream: &mut BufStream<impl AsyncRead + AsyncWrite + Unpin>) -> Option<String> {
        let mut mail = String::new();
        loop {
            match hear(stream).await?.as_str() {
                "." => return Some(mail),
                line => mail = format!("{mail}{line}\n"),
            }
        }
    }
}

async fn say(stream: &mut BufStream<impl AsyncRead + AsyncWrite + Unpin>, text: &str) -> Option<()> {
    stream.write_all(format!("{text}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()
}

async fn hear(stream: &mut BufStream<impl AsyncRead + AsyncWrite + Unpin>) -> Option<String> {
    let mut line = String::new();
    match stream.read_line(&mut line).await {
        Ok(1..) => Some(line.trim_end().to_owned()),
        _ => None,
    }
}

fn verb(line: &str) -> String {
    line.chars()
        .take_while(char::is_ascii_alphabetic)
        .collect::<String>()
        .to_uppercase()
}

async fn send(settings: &SmtpSettings, message: &crate::Message) -> Result<Receipt, DeliveryError> {
    let attempt = Attempt {
        number: 1,
        epoch: 1,
        to: "Bob <bob@example.org>",
    };
    let smtp = Smtp::new(settings).expect("the settings are fine");
    smtp.deliver(message, attempt).await
}

#[tokio::test]
async fn a_mail_goes_over_an_encrypted_connection_with_one_id_for_each_attempt() {
    let server = Server::start(Manner::Takes).await;
    let mut sent = message("k");
    sent.title = "late: <3 rows>\r\nBcc: all@example.org".to_owned();
    for _ in 0..2 {
        let receipt = send(&server.settings(), &sent)
            .await
            .expect("the server takes it");
        assert_eq!(receipt.said, "250 taken as 17");
    }
    let mails = server.mails.lock().unpoisoned().clone();
    assert_eq!(mails.len(), 2);
    for mail in &mails {
        let (head, body) = mail.split_once("\n\n").expect("a mail has a head and a body");
        assert!(
            head.contains(&format!("Message-ID: <{}@example.org>", sent.key)),
            "{head}"
        );
        assert!(head.contains("To: Bob <bob@example.org>"), "{head}");
        assert!(
            head.contains("Subject: late: <3 rows>  Bcc: all@example.org"),
            "{head}"
        );
        assert!(!head.lines().any(|line| line.starts_with("Bcc")), "{head}");
        assert!(
            body.contains("text/plain") && body.contains("text/html"),
            "{body}"
        );
        assert!(body.contains("&lt;3 rows&gt;"), "{body}");
    }
    let clear = server.clear.lock().unpoisoned().clone();
    let verbs: Vec<String> = clear.iter().map(|line| verb(line)).collect();
    assert_eq!(verbs, ["EHLO", "STARTTLS", "EHLO", "STARTTLS"]);
}

/// Covers rule N10.
#[tokio::test]
async fn a_file_goes_with_a_mail_unless_it_is_too_large_changed_or_gone() {
    let server = Server::start(Manner::Takes).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("weekly.csv");
    let content = "day,n\n2024-03-01,7\n";
    std::fs::write(&path, content).expect("it can be written");
    let mut sent = message("k");
    sent.attachment = Some(Attachment {
        name: "weekly.csv".to_owned(),
        media_type: "text/csv".to_owned(),
        bytes: content.len() as u64,
        hash: blake3::hash(content.as_bytes()).to_hex().to_string(),
        link: "https://example.org/weekly.csv".to_owned(),
        path: path.display().to_string(),
    });
    send(&server.settings(), &sent)
        .await
        .expect("the server takes it");
    let mail = server.mails.lock().unpoisoned().pop().expect("a mail");
    assert!(
        mail.contains("Content-Disposition: attachment; filename=\"weekly.csv\""),
        "{mail}"
    );
    assert!(
        mail.contains("Content-Type: text/csv") && mail.contains("2024-03-01,7"),
        "{mail}"
    );
    assert!(mail.contains("https://example.org/weekly.csv"), "{mail}");

    let large = |attachment: Attachment| Attachment {
        bytes: ATTACHED_MAX + 1,
        ..attachment
    };
    let linked = crate::Message {
        attachment: sent.attachment.clone().map(large),
        ..sent.clone()
    };
    send(&server.settings(), &linked)
        .await
        .expect("the server takes it");
    let mail = server.mails.lock().unpoisoned().pop().expect("a mail");
    assert!(
        !mail.contains("attachment;") && mail.contains("https://example.org/weekly.csv"),
        "{mail}"
    );

    std::fs::write(&path, "day,n\n").expect("it can be written");
    let error = send(&server.settings(), &sent)
        .await
        .expect_err("it is another file");
    assert_eq!(
        (error.class, error.message.as_str()),
        (Class::Permanent, "the file `weekly.csv` was changed")
    );
    std::fs::remove_file(&path).expect("it can be removed");
    let error = send(&server.settings(), &sent).await.expect_err("it is gone");
    assert_eq!(
        (error.class, error.message.as_str()),
        (Class::Permanent, "the file `weekly.csv` is gone")
    );
    assert!(server.mails.lock().unpoisoned().is_empty());
}

/// Covers rule N8.
#[tokio::test]
async fn refusals_for_good_are_permanent_and_others_are_tried_again() {
    let cases = [
        (Manner::Refuses, Class::Permanent, "550"),
        (Manner::Greylists, Class::Transient, "451"),
        (Manner::Clear, Class::Transient, ""),
    ];
    for (manner, class, says) in cases {
        let server = Server::start(manner).await;
        let error = send(&server.settings(), &message("k")).await;
        let error = error.expect_err("it is not taken");
        assert_eq!(error.class, class, "{manner:?}: {error}");
        assert!(error.message.contains(says), "{manner:?}: {error}");
        assert!(server.mails.lock().unpoisoned().is_empty());
    }
}

#[tokio::test]
async fn a_wrong_password_is_permanent_and_never_shown() {
    let server = Server::start(Manner::Takes).await;
    let mut settings = server.settings();
    settings.login = Some(Login {
        user: "ann".to_owned(),
        password: "wrong horse".to_owned(),
    });
    let error = send(&settings, &message("k")).await.expect_err("it is wrong");
    assert_eq!(error.class, Class::Permanent, "{error}");
    assert!(!format!("{error:?} {settings:?}").contains("horse"), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_or_is_not_who_it_says_gets_nothing() {
    let server = Server::start(Manner::Hangs).await;
    let mut settings = server.settings();
    settings.within = Some(Duration::from_millis(300));
    let error = send(&settings, &message("k")).await.expect_err("it hangs");
    assert_eq!(error.class, Class::Transient, "{error}");
    let server = Server::start(Manner::Takes).await;
    let mut settings = server.settings();
    settings.authorities = None;
    let error = send(&settings, &message("k"))
        .await
        .expect_err("nobody vouches for it");
    assert_eq!(error.class, Class::Transient, "{error}");
    assert!(server.mails.lock().unpoisoned().is_empty());
}

#[tokio::test]
async fn settings_that_would_send_in_the_clear_are_refused() {
    let server = Server::start(Manner::Takes).await;
    let mut settings = server.settings();
    settings.tls = Tls::None;
    assert!(Smtp::new(&settings).is_ok(), "this machine");
    settings.host = "mail.example.org".to_owned();
    assert_eq!(Smtp::new(&settings).err(), Some(SmtpError::Unencrypted));
    settings.tls = Tls::Implicit;
    settings.from = "nobody".to_owned();
    assert_eq!(
        Smtp::new(&settings).err(),
        Some(SmtpError::From("nobody".to_owned()))
    );
}

/// Resolves every name to a loopback address, then to another one.
#[derive(Debug, Default)]
struct Changing(std::sync::atomic::AtomicUsize);

impl Names for Changing {
    fn look_up(&self, _: &str) -> Resolving {
        let turn = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let last = if turn == 0 { 1 } else { 9 };
        Box::pin(async move { Ok(vec![std::net::IpAddr::from([127, 0, 0, last])]) })
    }
}

#[tokio::test]
async fn s_api35_a_mail_server_is_looked_up_once_and_connected_to_where_it_was_checked() {
    let server = Server::start(Manner::Takes).await;
    let names = Arc::new(Changing::default());
    let of = |egress| SmtpSettings {
        egress,
        names: Arc::clone(&names) as Arc<dyn Names>,
        ..server.settings()
    };
    let listed = Egress::public_and([Destination::Network("127.0.0.1/32".parse().unwrap())]);
    let sent = send(&of(listed.clone()), &message("k")).await;
    // The certificate is that of the name, at the address that the name had.
    sent.expect("the first address takes the mail");
    assert_eq!(server.mails.lock().unpoisoned().len(), 1);
    let refused = send(&of(listed), &message("k"))
        .await
        .expect_err("it is another address");
    assert_eq!(refused.class, Class::Permanent);
    assert!(refused.message.starts_with("egress-refused"), "{refused}");
    let refused = send(&of(Egress::public_and([])), &message("k"))
        .await
        .expect_err("it is loopback");
    assert!(refused.message.contains("127.0.0.9"), "{refused}");
    assert_eq!(names.0.load(std::sync::atomic::Ordering::SeqCst), 3);
}
