//! Tests of valid and hostile tokens.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;

const ISSUER: &str = "https://login.example.org";
/// A moment within the life of the tokens here, in seconds.
const NOW: i64 = 2_000_000_000;

/// A provider whose documents are values.
struct Provider {
    documents: Mutex<Vec<(String, Result<String, FetchError>)>>,
    fetches: AtomicUsize,
}

impl Fetch for &'static Provider {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, FetchError>> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        let documents = self.documents.lock().unwrap();
        let found = documents
            .iter()
            .find(|(at, _)| at == url)
            .map(|(_, text)| text.clone());
        async move {
            // Others may ask while a document is on its way.
            tokio::task::yield_now().await;
            found.unwrap_or_else(|| Err(FetchError("404".into())))
        }
        .boxed()
    }
}

impl Provider {
    fn of(keys: Vec<Value>) -> &'static Self {
        let provider = Self {
            documents: Mutex::default(),
            fetches: AtomicUsize::new(0),
        };
        provider.has(&keys);
        Box::leak(Box::new(provider))
    }

    fn has(&self, keys: &[Value]) {
        let discovery = json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/keys")}).to_string();
        *self.documents.lock().unwrap() = vec![
            (
                format!("{ISSUER}/.well-known/openid-configuration"),
                Ok(discovery),
            ),
            (format!("{ISSUER}/keys"), Ok(json!({ "keys": keys }).to_string())),
        ];
    }

    fn is_away(&self) {
        self.documents.lock().unwrap().clear();
    }
}

fn believer(provider: &'static Provider) -> Believer {
    let issuer = Issuer {
        issuer: ISSUER.into(),
        audience: "watershed".into(),
    };
    Believer::new(issuer, provider)
}

/// A key of the provider, and what signs with it.
struct Key {
    pair: Ed25519KeyPair,
    name: String,
}

impl Key {
    fn new(name: &str) -> Self {
        let random = SystemRandom::new();
        let pair = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            pair: Ed25519KeyPair::from_pkcs8(pair.as_ref()).unwrap(),
            name: name.into(),
        }
    }

    fn public(&self) -> Value {
        let x = BASE64.encode(self.pair.public_key());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": self.name, "use": "sig", "x": x})
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let message = unsigned(header, claims);
        let signature = BASE64.encode(self.pair.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    /// A token as the provider makes one, but for these claims.
    fn token(&self, others: &Value) -> String {
        self.signed(&json!({"alg": "EdDSA", "kid": self.name}), &claims(others))
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        BASE64.encode(header.to_string()),
        BASE64.encode(claims.to_string())
    )
}

fn claims(others: &Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "watershed", "sub": "ann", "exp": NOW + 60});
    for (name, value) in others.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value.clone(),
        }
    }
    claims
}

async fn judged(believer: &Believer, token: &str) -> Result<Claims, Refused> {
    believer.believe(token, NOW * 1_000).await
}

#[tokio::test]
async fn s_api18_a_token_of_the_provider_for_this_service_is_believed_within_its_time() {
    let key = Key::new("one");
    let believer = believer(Provider::of(vec![key.public()]));
    assert_eq!(
        judged(&believer, &key.token(&json!({}))).await.unwrap()["sub"],
        "ann"
    );
    let several = json!({"aud": ["another", "watershed"], "nbf": NOW + LEEWAY_SECONDS, "exp": NOW - LEEWAY_SECONDS + 1});
    assert!(judged(&believer, &key.token(&several)).await.is_ok());
    for (others, refused) in [
        (json!({"exp": NOW - LEEWAY_SECONDS}), Refused::Over),
        (json!({"exp": null}), Refused::Over),
        (json!({"exp": "9999999999"}), Refused::Over),
        (json!({"exp": -1}), Refused::Over),
        (json!({"nbf": NOW + LEEWAY_SECONDS + 1}), Refused::NotYet),
        (json!({"nbf": "soon"}), Refused::NotYet),
        (json!({"iss": "https://login.example.org/"}), Refused::NotForUs),
        (json!({"iss": null}), Refused::NotForUs),
        (json!({"aud": "Watershed"}), Refused::NotForUs),
        (json!({"aud": []}), Refused::NotForUs),
        (json!({"aud": null}), Refused::NotForUs),
    ] {
        assert_eq!(
            judged(&believer, &key.token(&others)).await,
            Err(refused),
            "{others}"
        );
    }
}

#[tokio::test]
async fn s_api18_what_the_provider_did_not_sign_is_not_believed() {
    let (key, other) = (Key::new("one"), Key::new("one"));
    let believer = believer(Provider::of(vec![key.public()]));
    let good = key.token(&json!({}));
    let header = |alg: &str| json!({"alg": alg, "kid": "one"});
    let hmac_of = |secret: &[u8]| {
        let message = unsigned(&header("HS256"), &claims(&json!({})));
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes());
        format!("{message}.{}", BASE64.encode(signature))
    };
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let admin = BASE64.encode(claims(&json!({"sub": "admin"})).to_string());
    for (what, token, refused) in [
        (
            "none",
            format!("{}.", unsigned(&header("none"), &claims(&json!({})))),
            Refused::Algorithm,
        ),
        (
            "None",
            format!("{}.{signature}", unsigned(&header("None"), &claims(&json!({})))),
            Refused::Algorithm,
        ),
        (
            "a shared secret",
            hmac_of(key.pair.public_key().as_ref()),
            Refused::Algorithm,
        ),
        (
            "its public text",
            hmac_of(key.public().to_string().as_bytes()),
            Refused::Algorithm,
        ),
        (
            "another algorithm",
            key.signed(&header("ES256"), &claims(&json!({}))),
            Refused::Algorithm,
        ),
        (
            "RSA with this key",
            key.signed(&header("RS256"), &claims(&json!({}))),
            Refused::Algorithm,
        ),
        ("another's key", other.token(&json!({})), Refused::Signature),
        (
            "other claims",
            format!("{head}.{admin}.{signature}"),
            Refused::Signature,
        ),
        ("no signature", format!("{head}.{body}."), Refused::Signature),
        (
            "two signatures",
            format!("{good}.{signature}"),
            Refused::Malformed,
        ),
        ("a part", format!("{head}.{body}"), Refused::Malformed),
        ("nothing", String::new(), Refused::Malformed),
        ("no JWT", "wsd_0123_4567".into(), Refused::Malformed),
        (
            "an extension",
            key.signed(
                &json!({"alg": "EdDSA", "kid": "one", "crit": ["exp"]}),
                &claims(&json!({})),
            ),
            Refused::Critical,
        ),
        (
            "claims that are a list",
            key.signed(&header("EdDSA"), &json!([])),
            Refused::Malformed,
        ),
        (
            "8 KiB and more",
            key.token(&json!({"x": "x".repeat(JWT_MAX)})),
            Refused::TooLong,
        ),
    ] {
        assert_eq!(judged(&believer, &token).await, Err(refused), "{what}");
    }
    // A key that the token brings along, or an address of one, is nobody's.
    let mine =
        json!({"alg": "EdDSA", "kid": "mine", "jwk": other.public(), "jku": "https://evil.example.org/keys"});
    assert_eq!(
        judged(&believer, &other.signed(&mine, &claims(&json!({})))).await,
        Err(Refused::UnknownKey)
    );
    assert!(judged(&believer, &good).await.is_ok());
}

#[tokio::test]
async fn signatures_of_each_algorithm_are_checked_and_weak_keys_are_refused() {
    let file: Value = serde_json::from_str(include_str!("tests/rsa.json")).unwrap();
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(
        &ECDSA_P256_SHA256_FIXED_SIGNING,
        pair.as_ref(),
        &SystemRandom::new(),
    )
    .unwrap();
    let point = pair.public_key().as_ref();
    let curve = json!({"kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256",
        "x": BASE64.encode(&point[1..33]), "y": BASE64.encode(&point[33..])});
    let mut keys = file["keys"].as_array().unwrap().clone();
    keys.push(curve);
    // A secret among the keys would let whoever knows it sign in as anybody.
    keys.push(json!({"kty": "oct", "kid": "shared", "k": BASE64.encode("secret")}));
    let believer = believer(Provider::of(keys));
    for (algorithm, token) in file["tokens"].as_object().unwrap() {
        let token = token.as_str().unwrap();
        assert!(judged(&believer, token).await.is_ok(), "{algorithm}");
        let (message, signature) = token.rsplit_once('.').unwrap();
        let swapped = format!("{message}.{}A{}", &signature[..9], &signature[10..]);
        if swapped != token {
            assert_eq!(
                judged(&believer, &swapped).await,
                Err(Refused::Signature),
                "{algorithm}"
            );
        }
    }
    assert_eq!(
        judged(&believer, file["weak"].as_str().unwrap()).await,
        Err(Refused::Signature)
    );
    let message = unsigned(&json!({"alg": "ES256", "kid": "ec"}), &claims(&json!({})));
    let signature = pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
    let token = format!("{message}.{}", BASE64.encode(signature));
    assert!(judged(&believer, &token).await.is_ok());
    let shared = json!({"alg": "HS256", "kid": "shared"});
    let message = unsigned(&shared, &claims(&json!({})));
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"secret"), message.as_bytes());
    let token = format!("{message}.{}", BASE64.encode(signature));
    assert_eq!(judged(&believer, &token).await, Err(Refused::Algorithm));
}

#[tokio::test]
async fn s_api18_keys_are_kept_looked_for_once_a_minute_and_outlive_an_outage() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let provider = Provider::of(vec![old.public()]);
    let believer = believer(provider);
    let fetched = || provider.fetches.load(Ordering::Relaxed) / 2;
    let at = |seconds: i64| (NOW + seconds) * 1_000;
    let long = json!({"exp": NOW + 100_000});
    let (by_old, by_new) = (old.token(&long), new.token(&long));
    assert!(believer.believe(&by_old, at(0)).await.is_ok());
    for name in 0..1_000 {
        let made_up = Key::new(&format!("made-up-{name}"));
        assert_eq!(
            believer.believe(&made_up.token(&long), at(1)).await,
            Err(Refused::UnknownKey)
        );
    }
    assert_eq!(fetched(), 1, "made-up names cause no calls");
    // The provider signs with a new key: known after the minute, at the first token that has it.
    provider.has(&[old.public(), new.public()]);
    assert_eq!(believer.believe(&by_new, at(59)).await, Err(Refused::UnknownKey));
    assert!(believer.believe(&by_new, at(60)).await.is_ok());
    assert_eq!(fetched(), 2);
    // Ten minutes later the provider is away, and nobody is locked out for that.
    provider.is_away();
    assert!(believer.believe(&by_old, at(60 + 600)).await.is_ok());
    assert!(believer.believe(&by_old, at(60 + 601)).await.is_ok());
    // It is back, without the old key: a token signed with that one is worth nothing any more.
    provider.has(&[new.public()]);
    assert_eq!(
        believer.believe(&by_old, at(60 + 661)).await,
        Err(Refused::UnknownKey)
    );
    assert!(believer.believe(&by_new, at(60 + 661)).await.is_ok());
}

#[tokio::test]
async fn tokens_that_arrive_while_the_first_keys_are_fetched_are_believed() {
    let key = Key::new("one");
    let provider = Provider::of(vec![key.public()]);
    let believer = believer(provider);
    let (token, made_up) = (key.token(&json!({})), Key::new("made-up").token(&json!({})));
    let all = tokio::join!(
        judged(&believer, &token),
        judged(&believer, &made_up),
        judged(&believer, &token)
    );
    assert!(matches!(all, (Ok(_), Err(Refused::UnknownKey), Ok(_))), "{all:?}");
    assert_eq!(
        provider.fetches.load(Ordering::Relaxed),
        2,
        "discovery and keys, once each"
    );
}

#[tokio::test]
async fn a_provider_that_could_not_be_asked_a_moment_ago_is_named_as_the_reason() {
    let key = Key::new("one");
    let provider = Provider::of(vec![key.public()]);
    provider.is_away();
    let believer = believer(provider);
    for _ in 0..3 {
        let refused = judged(&believer, &key.token(&json!({}))).await;
        assert!(matches!(refused, Err(Refused::Keys(_))), "{refused:?}");
    }
    assert_eq!(provider.fetches.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_provider_that_says_nonsense_lets_nobody_in() {
    let key = Key::new("one");
    for (document, text) in [
        (0, "no JSON".to_owned()),
        (
            0,
            json!({"issuer": "https://another.example.org", "jwks_uri": format!("{ISSUER}/keys")})
                .to_string(),
        ),
        (1, "[]".to_owned()),
        (1, json!({"keys": "none"}).to_string()),
    ] {
        let provider = Provider::of(vec![key.public()]);
        provider.documents.lock().unwrap()[document].1 = Ok(text.clone());
        let refused = judged(&believer(provider), &key.token(&json!({}))).await;
        assert!(matches!(refused, Err(Refused::Keys(_))), "{text}: {refused:?}");
    }
    let empty = Provider::of(Vec::new());
    assert_eq!(
        judged(&believer(empty), &key.token(&json!({}))).await,
        Err(Refused::UnknownKey)
    );
}
