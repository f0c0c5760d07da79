//! Tokens of a running service, over HTTP.

use std::time::Duration;

use serde::de::DeserializeOwned;
use watershed_api::http::access::{TokenEntry, TokenMade, TokenRequest, TokensDocument};
use watershed_api::http::{ProblemDocument, encoded};
use watershed_api::{Code, Exit};
use watershed_outside::http::{Client, Failure as Cause, Method, Settings, Url};

use crate::args::At;
use crate::failure::Failure;

/// Variable with the token of the one who asks. An argument would be seen by other users of the machine.
const TOKEN: &str = "WATERSHED_TOKEN";
/// Time limit of a call.
const WITHIN: Duration = Duration::from_secs(60);
/// The largest document that is read, in bytes.
const LARGEST: usize = 32 << 20;

pub(super) async fn create(at: &At, request: &TokenRequest) -> Result<TokenMade, Failure> {
    call(at, Method::POST, "/v1/tokens", Some(serde_json::to_vec(request)?)).await
}

pub(super) async fn list(at: &At) -> Result<TokensDocument, Failure> {
    call(at, Method::GET, "/v1/tokens", None).await
}

pub(super) async fn revoke(at: &At, id: &str) -> Result<TokenEntry, Failure> {
    call(at, Method::DELETE, &format!("/v1/tokens/{}", encoded(id)), None).await
}

async fn call<T: DeserializeOwned>(
    at: &At,
    method: Method,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<T, Failure> {
    let url = address(&at.url, path)?;
    let client = Client::new(Settings {
        within: Some(WITHIN),
        authorities: at.ca.clone(),
        body_max: LARGEST,
        ..Settings::default()
    });
    let client = client.map_err(|error| Failure::usage(error.to_string()))?;
    let mut request = client.request(method, url.clone());
    if let Some(token) = token()? {
        request = request.bearer(&token);
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let answer = request.send().await.map_err(|error| {
        let hint = match error.failure() {
            Cause::Connect => "start it with `watershed serve -c FILE`, or name its address by `--url`",
            _ => "run the command again",
        };
        Failure::new(
            Exit::NotNow,
            format!("the service at {} does not answer: {error}", at.url),
        )
        .hint(hint)
    })?;
    let status = answer.status();
    let unread = |why: String| {
        Failure::new(
            Exit::NotNow,
            format!("the answer of {} can't be read: {why}", at.url),
        )
    };
    let body = answer.body().await.map_err(|error| {
        let cause = error.cause.map(|cause| cause.to_string());
        unread(cause.unwrap_or_else(|| "it is too long".to_owned()))
    })?;
    if status.is_success() {
        return serde_json::from_slice(&body).map_err(|error| unread(error.to_string()));
    }
    match serde_json::from_slice::<ProblemDocument>(&body) {
        Ok(problem) => Err(refused(problem)),
        Err(_) => Err(unread(format!("status {status}, from what is no Watershed"))),
    }
}

/// Returns the failure of a command that the service refused.
fn refused(problem: ProblemDocument) -> Failure {
    let code = Code::all().find(|code| code.name() == problem.code);
    let hint = match code {
        Some(Code::Unauthenticated) => Some(format!(
            "put the token of an admin into the variable {TOKEN}; the operator makes the first one with `token create --file FILE`"
        )),
        _ => problem.hint.map(|hint| hint.to_string()),
    };
    Failure {
        hint,
        ..Failure::new(code.map_or(Exit::NotNow, Code::exit), problem.detail)
    }
}

/// Returns the address of a path of the service. Beyond this machine a token is sent over TLS alone.
fn address(service: &str, path: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| {
        Failure::usage(format!("`{service}` is no address of a service: {why}"))
            .hint("write one as `https://data.example.org/data`")
    };
    let url = Url::parse(&format!("{}{path}", service.trim_end_matches('/')));
    let url = url.map_err(|error| wrong(&error.to_string()))?;
    if url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some()
    {
        return Err(wrong("it has more than a host and a path"));
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        "http" => Err(wrong("a token would be read by others on the way")),
        _ => Err(wrong("it is not of HTTP")),
    }
}

fn token() -> Result<Option<String>, Failure> {
    match std::env::var(TOKEN) {
        Ok(token) if token.is_empty() => Ok(None),
        Ok(token) if token.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Some(token)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        _ => Err(Failure::usage(format!("the variable {TOKEN} holds no token"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_tls_or_on_this_machine_alone() {
        for (service, url) in [
            ("http://127.0.0.1:7437", "http://127.0.0.1:7437/v1/tokens"),
            ("http://[::1]:80/data/", "http://[::1]/data/v1/tokens"),
            (
                "https://data.example.org/a",
                "https://data.example.org/a/v1/tokens",
            ),
        ] {
            assert_eq!(address(service, "/v1/tokens").unwrap().as_str(), url);
        }
        for service in [
            "http://data.example.org",
            "http://10.0.0.1",
            "http://localhost.example.org",
            "http://ann:secret@127.0.0.1",
            "https://data.example.org?x=",
            "ftp://127.0.0.1",
            "data.example.org",
            "",
        ] {
            assert!(address(service, "/v1/tokens").is_err(), "{service}");
        }
    }
}
