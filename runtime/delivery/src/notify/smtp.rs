//! Mail: one to each recipient, text and HTML, over a connection that is encrypted.

use std::fmt;
use std::io::Read as _;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment as MailAttachment, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls as SmtpTls, TlsParameters};
use lettre::transport::smtp::response::Response;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use tokio::time::timeout;

use super::client::is_loopback;
use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::{ATTACHED_MAX, Attachment, Message, shown};

/// The time that a whole conversation may take.
const WITHIN: Duration = Duration::from_secs(60);

/// The encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// It begins in the clear and must be encrypted by `STARTTLS` before anything is sent.
    #[default]
    Starttls,
    /// It is encrypted from its beginning.
    Implicit,
    /// It is in the clear, to this machine alone.
    None,
}

impl Tls {
    /// Returns the port that servers listen at for it.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

/// The credentials of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(..)")
    }
}

/// Sends mails through a server.
#[derive(Debug, Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    within: Duration,
}

/// The settings of a server can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SmtpError {
    /// The sender's address.
    #[error("\"{0}\" is no address that mails can be from")]
    From(String),
    /// A connection in the clear that leaves the machine.
    #[error("`tls: none` is for a server on this machine alone")]
    Unencrypted,
    /// Certificates that can't be read, or TLS that can't be configured.
    #[error("TLS can't be configured: {0}")]
    Tls(String),
}

/// The settings of a server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The server's name.
    pub host: String,
    /// The port; that of the encryption without one.
    pub port: Option<u16>,
    /// The encryption.
    pub tls: Tls,
    /// The credentials, if it asks for some.
    pub login: Option<Login>,
    /// The sender's address, with or without a name: `Watershed <alerts@example.org>`.
    pub from: String,
    /// Certificates of authorities (PEM) that are trusted as well.
    pub authorities: Option<Vec<u8>>,
    /// The time that a whole conversation may take; a minute without one.
    pub within: Option<Duration>,
}

impl Smtp {
    /// Returns the notifier for a server. Nothing is connected before the first mail.
    ///
    /// # Errors
    /// When a setting can't be used.
    pub fn new(settings: &Settings) -> Result<Self, SmtpError> {
        let from: Mailbox = settings
            .from
            .parse()
            .map_err(|_| SmtpError::From(shown(&settings.from)))?;
        let tls = match settings.tls {
            Tls::None if !is_loopback(&settings.host) => return Err(SmtpError::Unencrypted),
            Tls::None => SmtpTls::None,
            Tls::Starttls => SmtpTls::Required(parameters(settings)?),
            Tls::Implicit => SmtpTls::Wrapper(parameters(settings)?),
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(settings.host.as_str())
            .port(settings.port.unwrap_or(settings.tls.port()))
            .tls(tls);
        if let Some(login) = &settings.login {
            let credentials = Credentials::new(login.user.clone(), login.password.clone());
            builder = builder.credentials(credentials);
        }
        Ok(Self {
            transport: builder.build(),
            from,
            within: settings.within.unwrap_or(WITHIN),
        })
    }

    async fn send(&self, message: &Message, attempt: Attempt<'_>) -> Result<Receipt, DeliveryError> {
        let mail = self.mail(message, attempt.to).await?;
        // The transport's own timeout ends with the connection: a server that says nothing after it would hold us for ever.
        let sent = timeout(self.within, self.transport.send(mail)).await;
        let sent = sent.map_err(|_| DeliveryError::transient("the server took too long"))?;
        let response = sent.map_err(|error| judge(&error))?;
        Ok(Receipt {
            said: said(&response),
        })
    }

    async fn mail(&self, message: &Message, to: &str) -> Result<lettre::Message, DeliveryError> {
        let to: Mailbox = to
            .parse()
            .map_err(|_| DeliveryError::permanent(format!("\"{}\" is no e-mail address", shown(to))))?;
        // The same for each attempt, so that mail programs show a repetition once.
        let id = format!("<{}@{}>", message.key, self.from.email.domain());
        let text = MultiPart::alternative_plain_html(message.plain(), message.html());
        let parts = match &message.attachment {
            Some(file) if file.is_attached() => {
                MultiPart::mixed().multipart(text).singlepart(part(file).await?)
            }
            _ => text,
        };
        lettre::Message::builder()
            .from(self.from.clone())
            .to(to)
            .message_id(Some(id))
            .subject(message.headline())
            .multipart(parts)
            .map_err(|error| DeliveryError::permanent(format!("no mail can be made of it: {error}")))
    }
}

/// Reads a file as a part of a mail. Another content than the message was about is never sent.
async fn part(file: &Attachment) -> Result<SinglePart, DeliveryError> {
    let name = shown(&file.name);
    let path = file.path.clone();
    let read = tokio::task::spawn_blocking(move || -> std::io::Result<Vec<u8>> {
        let mut content = Vec::new();
        // One that has grown since is another one, however long.
        std::fs::File::open(path)?
            .take(ATTACHED_MAX + 1)
            .read_to_end(&mut content)?;
        Ok(content)
    });
    let read = read
        .await
        .map_err(|error| DeliveryError::transient(error.to_string()))?;
    let content = match read {
        Ok(content) => content,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(DeliveryError::permanent(format!("the file `{name}` is gone")));
        }
        Err(error) => {
            let message = format!("the file `{name}` can't be read: {error}");
            return Err(DeliveryError::transient(message));
        }
    };
    if blake3::hash(&content).to_hex().as_str() != file.hash {
        return Err(DeliveryError::permanent(format!("the file `{name}` was changed")));
    }
    let media_type = ContentType::parse(&file.media_type)
        .map_err(|_| DeliveryError::permanent(format!("\"{}\" is no media type", file.media_type)))?;
    Ok(MailAttachment::new(name).body(content, media_type))
}

impl Notifier for Smtp {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.send(message, attempt))
    }
}

fn parameters(settings: &Settings) -> Result<TlsParameters, SmtpError> {
    let refused = |error: lettre::transport::smtp::Error| SmtpError::Tls(error.to_string());
    let mut builder =
        TlsParameters::builder(settings.host.clone()).certificate_store(CertificateStore::WebpkiRoots);
    if let Some(pem) = &settings.authorities {
        builder = builder.add_root_certificate(Certificate::from_pem(pem).map_err(refused)?);
    }
    builder.build().map_err(refused)
}

/// The class of a failure (N8): what the server refuses for good is permanent.
fn judge(error: &lettre::transport::smtp::Error) -> DeliveryError {
    let message = match error.status() {
        Some(code) => format!("the server answered {code}"),
        None if error.is_timeout() => "the server took too long".to_owned(),
        None if error.is_tls() => "the connection could not be encrypted".to_owned(),
        None => "the server can't be used".to_owned(),
    };
    // The cause may name the user, and never the password.
    let message = match std::error::Error::source(error) {
        Some(cause) => format!("{message}: {}", shown(&cause.to_string())),
        None => message,
    };
    match error.is_permanent() {
        true => DeliveryError::permanent(message),
        false => DeliveryError::transient(message),
    }
}

fn said(response: &Response) -> String {
    let line = response.first_line().unwrap_or_default();
    shown(&format!("{} {line}", response.code()))
}
