//! Signed JWTs of an identity provider beside the service's own tokens.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use watershed::{Options, Runtime};
use watershed_tests::measure::{Report, Unit};

use super::client::Client;
use super::projects::themes;
use super::serving::{Serving, write_closed};
use super::{CONNECTIONS, PATIENCE, PLACE, ROUNDS, crowd};

/// Measures gets a second with a JWT over those with a token.
pub(crate) async fn jwt_over_token(report: &Report, resources: usize, gets: usize) {
    let project = themes(resources);
    let instance = Runtime::new().open(Options::new(project.path())).await.unwrap();
    instance.controller().wait_until_idle(PATIENCE).await.unwrap();
    instance.close(PATIENCE).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let provider = Provider::start(folder.path()).await;
    let token = configure(folder.path(), &project.path(), &provider.issuer);
    let serving = Serving::start(folder.path());
    let client = |credential: &str| Client {
        address: serving.address,
        bearer: format!("authorization: Bearer {credential}\r\n").leak(),
    };
    serving.wait_until_ready();
    let (by_token, by_jwt) = (client(&token), client(&provider.jwt()));
    let path = move |n: usize| format!("{PLACE}/resources/theme/t{}", n % resources);
    let each = gets / CONNECTIONS;
    // Both are known to the service before anything is measured.
    crowd(by_token, 1, path).await;
    crowd(by_jwt, 1, path).await;
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (before, _) = crowd(by_token, each, path).await;
        let (jwt, _) = crowd(by_jwt, each, path).await;
        let (after, _) = crowd(by_token, each, path).await;
        ratios.push((before + after).as_secs_f64() / 2.0 / jwt.as_secs_f64());
    }
    report.print("jwt_get_over_token", Unit::Ratio, ratios);
    serving.stop();
}

/// Writes the configuration of a server with tokens and a provider; returns the text of a token.
fn configure(folder: &Path, project: &Path, issuer: &str) -> String {
    let program = std::env::var("WATERSHED_PROGRAM");
    let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_watershed-under-test").to_owned());
    let made = Command::new(program)
        .args([
            "token",
            "create",
            "--name",
            "bench",
            "--role",
            "it=read",
            "--file",
            "tokens.yaml",
            "--format",
            "json",
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    write_closed(&folder.join("oidc.secret"), "the-secret-of-the-client");
    let many = "1000000";
    let text = format!(
        "listen: 127.0.0.1:0\nhosts: [localhost]\nauth:\n  tokens: tokens.yaml\n  oidc: {{issuer: \"{issuer}\", client_id: watershed, client_secret_file: oidc.secret, ca_cert_file: certificate.pem}}\n\
         \x20 roles: [{{claim: email, value: someone@example.org, instance: it, role: read}}]\n\
         limits: {{requests_per_second: {many}, requests_at_once: {many}}}\n\
         instances:\n  it: {{project: {}, trust: full}}\n",
        project.display()
    );
    fs::write(folder.join("server.yaml"), text).unwrap();
    made["secret"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"))
        .to_owned()
}

/// An identity provider that publishes one key.
struct Provider {
    issuer: String,
    key: Ed25519KeyPair,
}

impl Provider {
    async fn start(folder: &Path) -> Self {
        let certificate = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        fs::write(folder.join("certificate.pem"), certificate.cert.pem()).unwrap();
        let random = SystemRandom::new();
        let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let discovery = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/auth"), "token_endpoint": format!("{issuer}/token")});
        let public = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let keys =
            json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": public, "kid": "one", "use": "sig"}]});
        let chain = vec![certificate.cert.der().clone()];
        let private =
            rustls::pki_types::PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, private)
            .unwrap();
        tokio::spawn(publish(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            [discovery, keys],
        ));
        Self { issuer, key }
    }

    /// Returns a JWT that lives for an hour.
    fn jwt(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({"iss": self.issuer, "aud": "watershed", "sub": "someone", "exp": now + 3_600,
            "email": "someone@example.org", "email_verified": true});
        let signed = format!("{}.{}", part(json!({"alg": "EdDSA", "kid": "one"})), part(claims));
        let signature = self.key.sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Answers each connection with one document: the keys, or the discovery document.
async fn publish(listener: TcpListener, tls: TlsAcceptor, [discovery, keys]: [serde_json::Value; 2]) {
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(mut stream) = tls.accept(stream).await else {
            continue;
        };
        let mut head = vec![0; 8 << 10];
        let read = stream.read(&mut head).await.unwrap_or(0);
        let asks_keys = head[..read].starts_with(b"GET /keys");
        let body = if asks_keys { &keys } else { &discovery }.to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}
