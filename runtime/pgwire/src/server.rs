//! A connection from its first byte to its last.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf as _, Bytes};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, BackendKeyData, ParameterStatus, SecretKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_callers::Verifier;
use watershed_locks::Unpoisoned as _;

use crate::backend::{Backend, Bounds, Session};
use crate::opening::{self, First};
use crate::scram;
use crate::session::Talk;
use crate::settings;
use crate::state::{NO_ENTRY, PROTOCOL, SqlError, WRONG_SECRET};
use crate::wire::Wire;

/// The facts of a connection that are known before its first byte.
#[derive(Clone)]
pub struct Link {
    /// Address of the client; none if nobody knows it.
    pub address: Option<IpAddr>,
    /// Acceptor of encrypted connections; none if there is no certificate.
    pub tls: Option<TlsAcceptor>,
    /// True if a session has to be encrypted by this server.
    pub must_encrypt: bool,
}

/// A server of sessions, which knows the statements under way for those who call them off.
pub struct Server {
    backend: Arc<dyn Backend>,
    bounds: Bounds,
    sessions: Mutex<HashMap<i32, Cancel>>,
    next: AtomicI32,
}

struct Cancel {
    key: i32,
    statement: Arc<Mutex<CancellationToken>>,
}

/// The entry of a session among those that can be called off, which goes when the value is dropped.
struct Registered<'a> {
    server: &'a Server,
    number: i32,
    key: i32,
    statement: Arc<Mutex<CancellationToken>>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.server.sessions.lock().unpoisoned().remove(&self.number);
    }
}

impl Server {
    /// Creates a server without sessions.
    pub fn new(backend: Arc<dyn Backend>, bounds: Bounds) -> Self {
        Self {
            backend,
            bounds,
            sessions: Mutex::default(),
            next: AtomicI32::new(1),
        }
    }

    /// Returns the number of open sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.lock().unpoisoned().len()
    }

    /// Speaks with a client until it leaves, its access ends, or `stop` is cancelled.
    pub async fn session<S>(&self, stream: S, link: Link, stop: CancellationToken)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let wire = Wire::new(Box::new(stream), self.bounds.takes_nothing);
        let opened = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            opened = timeout(self.bounds.opening, self.open(wire, &link)) => opened,
        };
        let ended = match opened {
            Ok(Ok(Some((wire, session)))) => self.talk(wire, session, stop).await,
            Ok(Ok(None)) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error),
        };
        if let Err(error) = ended {
            // A client that went away, or sent what is no message.
            tracing::debug!(%error, "an SQL connection ended early");
        }
    }

    async fn talk(
        &self,
        mut wire: Wire,
        session: Box<dyn Session>,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let registered = self.register()?;
        let key = SecretKey::I32(registered.key);
        let key = BackendKeyData::new(registered.number, key);
        wire.put(PgWireBackendMessage::BackendKeyData(key)).await?;
        let statement = Arc::clone(&registered.statement);
        Talk::new(wire, session, self.bounds, statement, stop).run().await
    }

    fn register(&self) -> io::Result<Registered<'_>> {
        let mut key = [0; 4];
        SystemRandom::new()
            .fill(&mut key)
            .map_err(|_| io::Error::other("no random bytes"))?;
        let key = i32::from_be_bytes(key);
        let statement = Arc::new(Mutex::new(CancellationToken::new()));
        let mut sessions = self.sessions.lock().unpoisoned();
        // After two thousand millions of sessions numbers begin anew.
        let number = loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number > 0 && !sessions.contains_key(&number) {
                break number;
            }
        };
        let cancel = Cancel {
            key,
            statement: Arc::clone(&statement),
        };
        sessions.insert(number, cancel);
        Ok(Registered {
            server: self,
            number,
            key,
            statement,
        })
    }

    /// Lets a client in; none if it wanted no session, or was refused.
    async fn open(&self, wire: Wire, link: &Link) -> io::Result<Option<(Wire, Box<dyn Session>)>> {
        let (mut wire, is_encrypted, first) = opening::first(wire, link.tls.as_ref(), &self.bounds).await?;
        let parameters = match first {
            First::Session(parameters) => parameters,
            First::Cancel { session, key } => {
                self.cancel(session, key, link);
                return Ok(None);
            }
        };
        let entered = match link.must_encrypt && !is_encrypted {
            true => Err(SqlError::new(NO_ENTRY, "the connection has to be encrypted")
                .hint("connect with `sslmode=require`")),
            false => self.enter(&mut wire, &parameters, link).await?,
        };
        match entered {
            Ok(session) => {
                let authentication = Authentication::Ok;
                wire.put(PgWireBackendMessage::Authentication(authentication))
                    .await?;
                for (name, value) in settings::TOLD {
                    let told = ParameterStatus::new(name.to_owned(), value.to_owned());
                    wire.put(PgWireBackendMessage::ParameterStatus(told)).await?;
                }
                Ok(Some((wire, session)))
            }
            Err(refused) => {
                wire.put(refused.message(true)).await?;
                wire.flush().await?;
                Ok(None)
            }
        }
    }

    /// Calls off a statement of a session. Whoever has the wrong key learns nothing, and can't try many.
    fn cancel(&self, session: i32, key: i32, link: &Link) {
        let found = {
            let sessions = self.sessions.lock().unpoisoned();
            let found = sessions.get(&session);
            let found = found.filter(|own| own.key.to_be_bytes().ct_eq(&key.to_be_bytes()).into());
            found.map(|own| Arc::clone(&own.statement))
        };
        match found {
            Some(statement) => statement.lock().unpoisoned().cancel(),
            None => drop(self.backend.failed(link.address)),
        }
    }

    /// Asks for the proof of a secret, and opens the database.
    async fn enter(
        &self,
        wire: &mut Wire,
        parameters: &BTreeMap<String, String>,
        link: &Link,
    ) -> io::Result<Result<Box<dyn Session>, SqlError>> {
        let Some(user) = parameters.get("user").filter(|user| !user.is_empty()) else {
            return Ok(Err(SqlError::new(NO_ENTRY, "there is no user")
                .hint("the user is the id of a token, and the password its secret")));
        };
        if parameters
            .get("replication")
            .is_some_and(|it| !["false", "off", "no", "0"].contains(&it.as_str()))
        {
            return Ok(Err(SqlError::new("0A000", "there is no replication")));
        }
        let encoding = parameters.get("client_encoding").map_or("utf8", String::as_str);
        if let Err(refused) = settings::check("client_encoding", encoding) {
            return Ok(Err(refused));
        }
        let methods = Authentication::SASL(vec![scram::MECHANISM.to_owned()]);
        send(wire, methods).await?;
        let Some((verifier, proved)) = self.proof(wire, user).await? else {
            let wrong = SqlError::new(WRONG_SECRET, "user or password is wrong")
                .hint("the user is the id of a token, and the password its secret: of `wsd_ID_SECRET` what stands behind the second `_`");
            return Ok(Err(match self.backend.failed(link.address) {
                Ok(()) => wrong,
                Err(problem) => SqlError::of(&problem, None),
            }));
        };
        wire.put(PgWireBackendMessage::Authentication(Authentication::SASLFinal(
            Bytes::from(proved),
        )))
        .await?;
        let database = parameters
            .get("database")
            .filter(|name| !name.is_empty())
            .unwrap_or(user);
        Ok(self
            .backend
            .open(user, &verifier, database)
            .map_err(|problem| no_database(&problem)))
    }

    /// Exchanges the messages of a proof; returns the verifier of the secret that the client has proved, and the server's last
    /// message.
    async fn proof(&self, wire: &mut Wire, user: &str) -> io::Result<Option<(Verifier, String)>> {
        let mut initial = password(wire).await?;
        let name = format!("{}\0", scram::MECHANISM);
        if !initial.starts_with(name.as_bytes()) || initial.len() < name.len() + 4 {
            return Ok(None);
        }
        initial.advance(name.len());
        let length = usize::try_from(initial.get_i32()).ok();
        if length != Some(initial.len()) {
            return Ok(None);
        }
        let known = self.backend.verifier(user);
        let Some(asked) = scram::begin(user, known.clone(), &initial) else {
            return Ok(None);
        };
        send(
            wire,
            Authentication::SASLContinue(Bytes::from(asked.first.clone())),
        )
        .await?;
        let message = password(wire).await?;
        Ok(known.zip(asked.finish(&message)))
    }
}

fn no_database(problem: &Problem) -> SqlError {
    let error = SqlError::of(problem, None);
    match problem.code {
        Code::UnknownName => SqlError {
            state: "3D000",
            ..error
        },
        _ => error,
    }
}

async fn send(wire: &mut Wire, message: Authentication) -> io::Result<()> {
    wire.put(PgWireBackendMessage::Authentication(message)).await?;
    wire.flush().await
}

/// Reads a message about a secret; an empty one, which proves nothing, for any other message.
async fn password(wire: &mut Wire) -> io::Result<bytes::BytesMut> {
    match wire.message(scram::LONGEST).await {
        Ok((b'p', body)) => Ok(body),
        Ok(_) => Ok(bytes::BytesMut::new()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let long = SqlError::new(PROTOCOL, "the message is none, or too long");
            wire.put(long.message(true)).await?;
            wire.flush().await?;
            Err(error)
        }
        Err(error) => Err(error),
    }
}
