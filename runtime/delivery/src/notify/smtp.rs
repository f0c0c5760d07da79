//! Delivery by mail: a mail to each recipient, as text and HTML, over an encrypted connection.

use std::fmt;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment as MailAttachment, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls as SmtpTls, TlsParameters};
use lettre::transport::smtp::response::Response;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use tokio::time::timeout;
use watershed_outside::http::{Egress, Names, SystemNames, Unreached};

use super::client::{is_loopback, not_allowed};
use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::{ATTACHED_MAX, Attachment, Message, PICTURE, shown};
use crate::picture;

/// Default time limit of a whole SMTP session.
const WITHIN: Duration = Duration::from_secs(60);

/// Encryption of a connection to a mail server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// Starts unencrypted; `STARTTLS` must succeed before anything is sent.
    #[default]
    Starttls,
    /// Encrypted from the beginning.
    Implicit,
    /// Unencrypted; only to a server on this machine.
    None,
}

impl Tls {
    /// Returns the default port for this encryption.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Starttls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

/// Credentials for a mail server.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Name with which the sender logs in.
    pub user: String,
    /// Password, in clear text.
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
    server: Server,
    egress: Egress,
    names: Arc<dyn Names>,
    from: Mailbox,
    within: Duration,
}

/// The server of mails.
#[derive(Debug, Clone)]
struct Server {
    host: String,
    port: u16,
    tls: SmtpTls,
    login: Option<Login>,
}

impl Server {
    /// Returns the transport to the server at one of its addresses, or by its name. The certificate must be that of the
    /// name either way.
    fn transport(&self, at: &str) -> AsyncSmtpTransport<Tokio1Executor> {
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(at)
            .port(self.port)
            .tls(self.tls.clone());
        if let Some(login) = &self.login {
            let credentials = Credentials::new(login.user.clone(), login.password.clone());
            builder = builder.credentials(credentials);
        }
        builder.build()
    }

    /// Sends a mail to the first address that takes connections.
    async fn send_to(
        &self,
        addresses: &[SocketAddr],
        mail: &lettre::Message,
    ) -> Result<Response, lettre::transport::smtp::Error> {
        let (last, others) = match addresses.split_last() {
            Some((last, others)) => (last.ip().to_string(), others),
            None => (self.host.clone(), addresses),
        };
        for address in others.iter().take(ADDRESSES_MAX) {
            match self.transport(&address.ip().to_string()).send(mail.clone()).await {
                Err(error) if is_unconnected(&error) => {}
                sent => return sent,
            }
        }
        self.transport(&last).send(mail.clone()).await
    }
}

/// The most addresses of a server that are tried before the last one.
const ADDRESSES_MAX: usize = 3;

/// Returns true if no connection was made, so that nothing was sent.
fn is_unconnected(error: &lettre::transport::smtp::Error) -> bool {
    use io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            AddrNotAvailable | ConnectionRefused | HostUnreachable | NetworkUnreachable
        )
    })
}

/// The error of unusable server settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SmtpError {
    /// The sender's address is not valid.
    #[error("\"{0}\" is no address that mails can be from")]
    From(String),
    /// The connection would be unencrypted and leave this machine.
    #[error("`tls: none` is for a server on this machine alone")]
    Unencrypted,
    /// Certificates can't be read, or TLS can't be configured.
    #[error("TLS can't be configured: {0}")]
    Tls(String),
}

/// Settings of a mail server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Host name of the server.
    pub host: String,
    /// Port; by default the usual one for the encryption.
    pub port: Option<u16>,
    /// Encryption of the connection.
    pub tls: Tls,
    /// Credentials; none if the server needs none.
    pub login: Option<Login>,
    /// The sender's address, with or without a name: `Watershed <alerts@example.org>`.
    pub from: String,
    /// PEM certificates of authorities that are trusted additionally.
    pub authorities: Option<Vec<u8>>,
    /// Time limit of a whole SMTP session; by default a minute.
    pub within: Option<Duration>,
    /// Policy of the connections to the server.
    pub egress: Egress,
    /// Resolver of the server's name, for a restricted policy.
    pub names: Arc<dyn Names>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: None,
            tls: Tls::default(),
            login: None,
            from: String::new(),
            authorities: None,
            within: None,
            egress: Egress::default(),
            names: Arc::new(SystemNames),
        }
    }
}

impl Smtp {
    /// Creates the notifier for a mail server without connecting.
    ///
    /// # Errors
    /// When a setting can't be used.
    pub fn new(settings: &Settings) -> Result<Self, SmtpError> {
        let from: Mailbox = settings
            .from
            .parse()
            .map_err(|_| SmtpError::From(shown(&settings.from)))?;
        let tls = match settings.tls {
            // What a restricted sender may reach without encryption is its policy's.
            Tls::None if !settings.egress.is_restricted() && !is_loopback(&settings.host) => {
                return Err(SmtpError::Unencrypted);
            }
            Tls::None => SmtpTls::None,
            Tls::Starttls => SmtpTls::Required(parameters(settings)?),
            Tls::Implicit => SmtpTls::Wrapper(parameters(settings)?),
        };
        Ok(Self {
            server: Server {
                host: settings.host.clone(),
                port: settings.port.unwrap_or(settings.tls.port()),
                tls,
                login: settings.login.clone(),
            },
            egress: settings.egress.clone(),
            names: Arc::clone(&settings.names),
            from,
            within: settings.within.unwrap_or(WITHIN),
        })
    }

    async fn send(&self, message: &Message, attempt: Attempt<'_>) -> Result<Receipt, DeliveryError> {
        let mail = self.mail(message, attempt.to).await?;
        // The transport's own timeout ends with the connection: a server that says nothing after it would hold us for ever.
        let sent = timeout(self.within, async {
            let addresses = self.addresses().await?;
            let sent = self.server.send_to(&addresses, &mail).await;
            sent.map_err(|error| judge(&error))
        });
        let sent = sent.await;
        let response = sent.map_err(|_| DeliveryError::transient("the server took too long"))??;
        Ok(Receipt {
            said: said(&response),
        })
    }

    /// Returns the addresses of the server that may be connected to; none if the policy allows all.
    async fn addresses(&self) -> Result<Vec<SocketAddr>, DeliveryError> {
        if !self.egress.is_restricted() {
            return Ok(Vec::new());
        }
        let Server { host, port, tls, .. } = &self.server;
        let is_encrypted = !matches!(tls, SmtpTls::None);
        let found = self
            .egress
            .look_up(&*self.names, (host, *port), is_encrypted)
            .await;
        found.map_err(|error| match error {
            Unreached::Refused(refused) => not_allowed(refused),
            Unreached::Unknown(_) => DeliveryError::transient("the server's name has no address"),
        })
    }

    async fn mail(&self, message: &Message, to: &str) -> Result<lettre::Message, DeliveryError> {
        let to: Mailbox = to
            .parse()
            .map_err(|_| DeliveryError::permanent(format!("\"{}\" is no e-mail address", shown(to))))?;
        // The same for each attempt, so that mail programs show a repetition once.
        let id = format!("<{}@{}>", message.key, self.from.email.domain());
        let html = SinglePart::html(message.html());
        let picture = message
            .series
            .as_ref()
            .map(|series| picture::draw(&series.heights));
        let alternative = MultiPart::alternative().singlepart(SinglePart::plain(message.plain()));
        let text = match picture {
            Some(Ok(png)) => {
                let inline = MailAttachment::new_inline(PICTURE.to_owned());
                let image = ContentType::parse("image/png").map(|png_type| inline.body(png, png_type));
                let image = image.map_err(|error| DeliveryError::permanent(error.to_string()))?;
                alternative.multipart(MultiPart::related().singlepart(html).singlepart(image))
            }
            Some(Err(error)) => {
                return Err(DeliveryError::permanent(format!(
                    "no picture can be made: {error}"
                )));
            }
            None => alternative.singlepart(html),
        };
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

/// Reads a file as an attachment. Fails if its content no longer matches the message's digest.
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

/// Classifies an SMTP error (N8): what the server refuses for good is permanent.
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
