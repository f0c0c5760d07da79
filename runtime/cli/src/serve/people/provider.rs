//! The identity provider, asked over HTTPS: its documents, and the exchange of a code for a token.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio::sync::{Mutex, Semaphore};
use watershed_api::{Code, Problem};
use watershed_callers::Digest;
use watershed_callers::jwt::{Fetch, FetchError};
use watershed_outside::http::{Answer, Client, ClientError, Method, Settings, StatusCode, Url, chain};

use super::now_ms;

/// Time limit for an answer of the provider.
const WITHIN: Duration = Duration::from_secs(10);
/// The largest document of a provider, in bytes.
const DOCUMENT_MAX: usize = 256 * 1024;
/// The time for which a provider's endpoints are known, in milliseconds.
const KNOWN_MS: i64 = 10 * 60_000;
/// The most codes that are exchanged at the same time.
const EXCHANGES: usize = 16;

/// A client of an identity provider: over HTTPS alone, without redirects. Clones share their connections.
#[derive(Clone)]
pub(in crate::serve) struct Https(Client);

impl Https {
    /// Creates the client. `authorities` is a file of certificates that are trusted beside the public ones.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(in crate::serve) fn new(authorities: Option<PathBuf>) -> Result<Self, ClientError> {
        Client::new(Settings {
            within: Some(WITHIN),
            body_max: DOCUMENT_MAX,
            authorities,
            ..Settings::default()
        })
        .map(Self)
    }

    async fn read(&self, url: &str) -> Result<String, FetchError> {
        let url = secure(url)?;
        let request = self.0.request(Method::GET, url.clone());
        let answer = request.header("accept", "application/json").send().await;
        let answer = answer.map_err(|error| failed(&url, &chain(&error)))?;
        text(&url, answer).await
    }
}

fn secure(url: &str) -> Result<Url, FetchError> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "https");
    url.ok_or_else(|| FetchError("one of its addresses is not over HTTPS".into()))
}

fn failed(url: &Url, why: &str) -> FetchError {
    FetchError(format!("`{}`: {why}", url.host_str().unwrap_or_default()))
}

async fn text(url: &Url, answer: Answer) -> Result<String, FetchError> {
    if answer.status() != StatusCode::OK {
        return Err(failed(url, &format!("it answers {}", answer.status().as_u16())));
    }
    let body = answer.body().await;
    let body = body.map_err(|_| failed(url, "its answer is too long, or has no end"))?;
    String::from_utf8(body).map_err(|_| failed(url, "its answer is no text"))
}

impl Fetch for Https {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>> {
        Box::pin(self.read(url))
    }
}

/// The service as a client of the provider.
pub(in crate::serve) struct Provider {
    pub(super) https: Https,
    pub(super) issuer: String,
    pub(super) client: String,
    /// Secret of the service at the provider; none for a public client, which PKCE alone protects.
    pub(super) secret: Option<String>,
    pub(super) known: Mutex<Option<(Arc<Endpoints>, i64)>>,
    pub(super) exchanges: Semaphore,
}

/// The part of the discovery document that signing in needs.
#[derive(Deserialize)]
pub(in crate::serve) struct Endpoints {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

/// A code of the provider, with what shows that the exchange is made by whoever began the sign-in.
pub(super) struct Exchange<'a> {
    pub(super) code: &'a str,
    pub(super) redirect: &'a str,
    pub(super) verifier: &'a str,
}

#[derive(Deserialize)]
struct Exchanged {
    id_token: String,
}

impl Provider {
    pub(in crate::serve) fn new(
        https: Https,
        issuer: String,
        client: String,
        secret: Option<String>,
    ) -> Self {
        Self {
            https,
            issuer,
            client,
            secret,
            known: Mutex::default(),
            exchanges: Semaphore::new(EXCHANGES),
        }
    }

    /// Returns the provider as a text without its secret, by which changes are noticed.
    pub(super) fn fixed(&self) -> String {
        let secret = self.secret.as_deref().map(|secret| Digest::of(secret).to_hex());
        format!("{} {} {secret:?}", self.issuer, self.client)
    }

    /// Returns the issuer.
    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns true if this is the provider's name.
    pub(super) fn is(&self, issuer: &str) -> bool {
        self.issuer == issuer
    }

    /// Returns the address to which a browser is sent to sign in.
    pub(super) async fn way(&self, parameters: &[(&str, &str)]) -> Result<String, Problem> {
        let endpoints = self.endpoints().await.map_err(away)?;
        let mut way = secure(&endpoints.authorization_endpoint).map_err(away)?;
        way.query_pairs_mut()
            .append_pair("client_id", &self.client)
            .extend_pairs(parameters);
        Ok(way.into())
    }

    /// Exchanges a code for an ID token, which is still to be verified.
    pub(super) async fn exchange(&self, exchange: &Exchange<'_>) -> Result<String, Problem> {
        let Ok(_permit) = self.exchanges.try_acquire() else {
            return Err(Problem::new(Code::Busy, "too many people sign in at this moment"));
        };
        let endpoints = self.endpoints().await.map_err(away)?;
        let url = secure(&endpoints.token_endpoint).map_err(away)?;
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", exchange.code),
            ("redirect_uri", exchange.redirect),
            ("client_id", &self.client),
            ("code_verifier", exchange.verifier),
        ];
        let methods = endpoints.token_endpoint_auth_methods_supported.as_deref();
        let takes_basic = methods.is_none_or(|all| all.iter().any(|method| method == "client_secret_basic"));
        let mut request = self.https.0.request(Method::POST, url.clone());
        request = request.header("accept", "application/json");
        match &self.secret {
            Some(secret) if takes_basic => {
                let part = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let both = format!("{}:{}", part(&self.client), part(secret));
                request = request.header("authorization", &format!("Basic {}", BASE64.encode(both)));
            }
            Some(secret) => pairs.push(("client_secret", secret)),
            None => {}
        }
        let answer = request.form(form(&pairs)).send().await;
        let answer = answer.map_err(|error| away(failed(&url, &chain(&error))))?;
        if answer.status().is_client_error() {
            // A code that was used, made up, or of another sign-in.
            return Err(super::refused("the identity provider does not take the code"));
        }
        let said = text(&url, answer).await.map_err(away)?;
        let exchanged: Exchanged =
            serde_json::from_str(&said).map_err(|_| away(failed(&url, "its answer has no ID token")))?;
        Ok(exchanged.id_token)
    }

    async fn endpoints(&self) -> Result<Arc<Endpoints>, FetchError> {
        let mut known = self.known.lock().await;
        let now_ms = now_ms();
        if let Some((endpoints, at_ms)) = &*known
            && (*at_ms..*at_ms + KNOWN_MS).contains(&now_ms)
        {
            return Ok(Arc::clone(endpoints));
        }
        let at = format!(
            "{}/.well-known/openid-configuration",
            self.issuer.trim_end_matches('/')
        );
        let said = self.https.read(&at).await?;
        let endpoints: Endpoints = serde_json::from_str(&said)
            .map_err(|_| FetchError("its discovery document is not what the standard says".into()))?;
        if endpoints.issuer != self.issuer {
            return Err(FetchError("its discovery document is of another issuer".into()));
        }
        let endpoints = Arc::new(endpoints);
        *known = Some((Arc::clone(&endpoints), now_ms));
        Ok(endpoints)
    }
}

fn form(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

fn away(error: FetchError) -> Problem {
    Problem::new(Code::Unavailable, error.to_string()).hint("try again when the provider answers")
}
