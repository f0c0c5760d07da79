//! People of a service: a real identity provider, a browser's steps, hostile tokens, and a proxy that names people.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};
use watershed_outside::http::header::HeaderMap;
use watershed_outside::http::{Client, Method, Settings, Url};
use watershed_tests::server::{Says, Server, fetched, skip};

use crate::sandbox::Sandbox;
use crate::serving::Serving;

mod behind;

/// The secret of a proxy.
const SECRET: &str = "a-secret-that-the-proxy-shows";

/// A project with the certificate and secrets that its service needs.
fn project() -> Sandbox {
    let project = Sandbox::with(&[
        ("shop/watershed.yaml", ""),
        ("ops/watershed.yaml", ""),
        ("proxy.secret", SECRET),
        ("oidc.secret", "the-secret-of-the-service\n"),
    ]);
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    project.write("certificate.pem", &made.cert.pem());
    project.write("key.pem", &made.signing_key.serialize_pem());
    for file in ["proxy.secret", "oidc.secret", "key.pem"] {
        let closed = fs::Permissions::from_mode(0o600);
        fs::set_permissions(project.path().join(file), closed).expect("a mode");
    }
    project
}

/// Starts the provider; none where it is not installed.
fn provider(project: &Sandbox) -> Option<(Server, String)> {
    let packages = fetched().join("oidc/node_modules");
    if !packages.join("oidc-provider").is_dir() {
        skip("the identity provider is missing: scripts/fetch-test-servers oidc");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/program/people/provider.mjs");
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg(packages)
        .args(["certificate.pem", "key.pem"])
        .current_dir(project.path());
    let server = Server::start(&mut command, Says::Out);
    let issuer = format!("https://{}", server.address());
    Some((server, issuer))
}

/// The configuration of a service whose people sign in at a provider.
fn configuration(issuer: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\ntls: {{certificate: certificate.pem, key: key.pem}}\nauth:\n  oidc:\n    issuer: {issuer}\n    client_id: watershed\n\
         \x20   client_secret_file: oidc.secret\n    ca_cert_file: certificate.pem\n  attributes: {{groups: teams}}\n  roles:\n\
         \x20 - {{claim: teams, value: analysts, instance: shop, role: operate}}\n  - {{claim: email, value: night@example.org, instance: '*', role: admin}}\n\
         instances:\n  shop: {{project: shop, trust: full}}\n  ops: {{project: ops, trust: full}}\n"
    )
}

/// An answer as a browser sees it.
#[derive(Debug)]
struct Page {
    status: u16,
    location: Option<String>,
    cookies: Vec<String>,
    body: String,
}

impl Page {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// A browser that keeps cookies by origin, and follows nothing by itself.
struct Browser {
    client: Client,
    cookies: BTreeMap<String, BTreeMap<String, String>>,
}

impl Browser {
    fn new(project: &Sandbox) -> Self {
        let client = Client::new(Settings {
            authorities: Some(project.path().join("certificate.pem")),
            body_max: 1 << 20,
            ..Settings::default()
        });
        Self {
            client: client.expect("a client"),
            cookies: BTreeMap::new(),
        }
    }

    async fn ask(&mut self, method: Method, url: &str, body: Option<(&str, String)>) -> Page {
        let url = Url::parse(url).expect("an address");
        let origin = url.origin().ascii_serialization();
        let known = self.cookies.entry(origin.clone()).or_default();
        let pairs: Vec<String> = known
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut headers = HeaderMap::new();
        headers.insert(
            "accept",
            "text/html,application/xhtml+xml".parse().expect("a value"),
        );
        headers.insert("origin", origin.parse().expect("a value"));
        if !pairs.is_empty() {
            headers.insert("cookie", pairs.join("; ").parse().expect("a value"));
        }
        let mut request = self.client.request(method, url);
        request = match body {
            Some(("form", form)) => request.form(form),
            Some((_, json)) => request.json(json.into_bytes()),
            None => request,
        };
        let answer = request.headers(headers).send().await.expect("an answer");
        let text =
            |value: &watershed_outside::http::header::HeaderValue| value.to_str().expect("text").to_owned();
        let cookies: Vec<String> = answer.headers().get_all("set-cookie").iter().map(text).collect();
        for cookie in &cookies {
            let (name, value) = cookie
                .split(';')
                .next()
                .and_then(|pair| pair.split_once('='))
                .expect("a cookie");
            let is_gone = cookie.contains("Max-Age=0") || cookie.contains("expires=Thu, 01 Jan 1970");
            match is_gone {
                true => drop(known.remove(name)),
                false => drop(known.insert(name.to_owned(), value.to_owned())),
            }
        }
        Page {
            status: answer.status().as_u16(),
            location: answer.headers().get("location").map(text),
            cookies,
            body: String::from_utf8(answer.body().await.expect("a body")).expect("text"),
        }
    }

    async fn get(&mut self, url: &str) -> Page {
        self.ask(Method::GET, url, None).await
    }

    /// Follows redirects from an address, filling in the provider's forms, until one leads to `end`.
    async fn until(&mut self, mut url: String, end: &str, name: &str) -> String {
        for _ in 0..12 {
            if url.contains(end) {
                return url;
            }
            let page = self.get(&url).await;
            let next = match page.location {
                Some(next) => next,
                None => {
                    let form = match page.body.contains("value=\"login\"") {
                        true => format!("prompt=login&login={name}&password=x"),
                        false => "prompt=consent".to_owned(),
                    };
                    let action = page
                        .body
                        .split("action=\"")
                        .nth(1)
                        .and_then(|rest| rest.split('"').next());
                    let action = action.unwrap_or_else(|| panic!("no form: {page:?}")).to_owned();
                    let page = self.ask(Method::POST, &action, Some(("form", form))).await;
                    page.location.unwrap_or_else(|| panic!("no way on: {url}"))
                }
            };
            url = Url::parse(&url)
                .and_then(|from| from.join(&next))
                .expect("an address")
                .into();
        }
        panic!("no end: {url}")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api18_a_person_signs_in_at_the_provider_and_out_again() {
    let project = project();
    let Some((_provider, issuer)) = provider(&project) else {
        return;
    };
    project.write("server.yaml", &configuration(&issuer));
    let serve = || Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let mut service = serve();
    let mut at = format!("https://localhost:{}", service.address.port());
    let mut browser = Browser::new(&project);

    // A page sends the browser to the provider; a program is told that nobody knows it.
    let page = browser.get(&format!("{at}/ui/shop?view=graph")).await;
    assert_eq!(
        (page.status, page.location.as_deref()),
        (303, Some("/auth/login?next=%2Fui%2Fshop%3Fview%3Dgraph"))
    );
    let begun = browser
        .get(&format!("{at}/auth/login?next=%2Fui%2Fshop%3Fview%3Dgraph"))
        .await;
    let way = begun.location.expect("the way to the provider");
    assert!(
        way.starts_with(&format!("{issuer}/auth?client_id=watershed&response_type=code")),
        "{way}"
    );
    assert!(
        begun.cookies[0].starts_with("__Host-watershed_sign_in="),
        "{:?}",
        begun.cookies
    );
    let back = browser.until(way, "/auth/callback", "ann.analysts").await;

    // An answer that was altered, or comes to another browser, signs nobody in.
    let code = back
        .split("code=")
        .nth(1)
        .and_then(|rest| rest.split('&').next())
        .expect("a code");
    let state = back
        .split("state=")
        .nth(1)
        .and_then(|rest| rest.split('&').next())
        .expect("a state");
    let before = browser.cookies.clone();
    let mut stranger = Browser::new(&project);
    for forged in [
        back.replace(state, "another"),
        back.replace("state=", "stat="),
        format!("{back}&state={state}"),
        back.replace(code, "another"),
        back.replace("iss=", "iss=https%3A%2F%2Fevil.example"),
        format!("{at}/auth/callback?error=access_denied&state={state}"),
    ] {
        browser.cookies = before.clone();
        let page = browser.get(&forged).await;
        assert_eq!(page.status, 401, "{forged}: {page:?}");
        assert!(
            !page.cookies.iter().any(|cookie| cookie.contains("session")),
            "{page:?}"
        );
    }
    assert_eq!(stranger.get(&back).await.status, 401);

    browser.cookies = before;
    let page = browser.get(&back).await;
    assert_eq!(
        (page.status, page.location.as_deref()),
        (303, Some("/ui/shop?view=graph")),
        "{page:?}"
    );
    let session = page
        .cookies
        .iter()
        .find(|cookie| cookie.contains("session"))
        .expect("a session");
    assert!(session.starts_with("__Host-watershed_session="), "{session}");
    assert!(
        session.contains("; Path=/; HttpOnly; SameSite=Lax; Secure"),
        "{session}"
    );
    let me = browser.get(&format!("{at}/v1/me")).await.json();
    assert_eq!(
        (&me["principal"], &me["authentication"]),
        (&json!("ann@example.org"), &json!("session")),
        "{me}"
    );
    assert_eq!(
        me["attributes"],
        json!({
            "domain": "example.org", "email": "ann@example.org", "groups": ["analysts"], "name": "ann.analysts",
        })
    );
    assert_eq!(browser.get(&back).await.status, 401, "a code is for one use");
    assert_eq!(
        browser.get(&format!("{at}/v1/instances/shop/stats")).await.status,
        200
    );
    assert_eq!(
        browser.get(&format!("{at}/v1/instances/ops/stats")).await.status,
        404
    );

    // The session goes on in another process, and ends with the sign-out.
    let cookie = browser.cookies[&at].clone();
    drop(service);
    service = serve();
    let former = std::mem::replace(&mut at, format!("https://localhost:{}", service.address.port()));
    browser.cookies.remove(&former);
    browser.cookies.insert(at.clone(), cookie.clone());
    assert_eq!(
        browser.get(&format!("{at}/v1/me")).await.json()["principal"],
        "ann@example.org"
    );
    let logout = format!("{at}/auth/logout");
    assert_eq!(
        browser.get(&logout).await.status,
        405,
        "nothing is changed by a look"
    );
    assert_eq!(browser.get(&format!("{at}/v1/me")).await.status, 200);
    let out = browser
        .ask(Method::POST, &logout, Some(("json", "{}".to_owned())))
        .await;
    assert_eq!(out.status, 204);
    browser.cookies.insert(at.clone(), cookie);
    assert_eq!(
        browser.get(&format!("{at}/v1/me")).await.status,
        303,
        "the cookie is worth nothing"
    );
    drop(service);
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api18_tokens_of_the_provider_are_believed_and_hostile_ones_are_all_refused_alike() {
    let project = project();
    let Some((_provider, issuer)) = provider(&project) else {
        return;
    };
    project.write("server.yaml", &configuration(&issuer));
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let at = format!("https://localhost:{}", service.address.port());
    let mut browser = Browser::new(&project);
    let client = browser.client.clone();
    let me = |token: String| {
        let request = client.request(
            Method::GET,
            Url::parse(&format!("{at}/v1/me")).expect("an address"),
        );
        async move {
            let answer = request.bearer(&token).send().await.expect("an answer");
            let status = answer.status().as_u16();
            let body = answer.body().await.expect("a body");
            (status, String::from_utf8(body).expect("text"))
        }
    };
    let mut sign = async |header: Value, claims: Value| {
        let body = json!({"header": header, "claims": claims}).to_string();
        browser
            .ask(Method::POST, &format!("{issuer}/sign"), Some(("json", body)))
            .await
            .body
    };
    let ann =
        json!({"sub": "ann", "email": "ann@example.org", "email_verified": true, "teams": ["analysts"]});
    let good = sign(json!({}), ann.clone()).await;
    let (status, said) = me(good.clone()).await;
    let said: Value = serde_json::from_str(&said).expect("a document");
    assert_eq!(
        (status, &said["principal"], &said["authentication"]),
        (200, &json!("ann@example.org"), &json!("jwt")),
        "{said}"
    );
    // An address that nobody has verified is none, and a name is no address.
    let eve = json!({"sub": "night@example.org", "email": "night@example.org", "email_verified": false});
    let (status, said) = me(sign(json!({}), eve).await).await;
    let said: Value = serde_json::from_str(&said).expect("a document");
    assert_eq!(
        (status, &said["principal"], &said["attributes"]),
        (200, &json!("person:night@example.org"), &json!({})),
        "{said}"
    );
    let with = |more: Value| {
        let mut claims = ann.clone();
        for (name, value) in more.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        claims
    };
    let (_, expected) = me("wsd_0123456789abcdef_none".to_owned()).await;
    for (header, more) in [
        (json!({"alg": "none"}), json!({})),
        (json!({"alg": "HS256"}), json!({})),
        (json!({"kid": "two"}), json!({})),
        (
            json!({"kid": "two", "jku": "https://evil.example/keys"}),
            json!({}),
        ),
        (json!({"crit": ["b64"], "b64": true}), json!({})),
        (json!({}), json!({"aud": "another"})),
        (json!({}), json!({"aud": null})),
        (json!({}), json!({"iss": "https://evil.example"})),
        (json!({}), json!({"iss": null})),
        (json!({}), json!({"exp": 1})),
        (json!({}), json!({"exp": null})),
        (json!({}), json!({"exp": "9999999999"})),
        (json!({}), json!({"nbf": 9_999_999_999_u64})),
        (json!({}), json!({"name": "n".repeat(9_000)})),
    ] {
        let token = sign(header.clone(), with(more.clone())).await;
        assert_eq!(me(token).await, (401, expected.clone()), "{header} {more}");
    }
    for token in [
        good[..good.len() - 5].to_owned(),
        format!("{good}a"),
        good.replace('.', ".."),
        good.split('.').take(2).collect::<Vec<_>>().join("."),
        "e30.e30.e30".to_owned(),
    ] {
        assert_eq!(me(token.clone()).await, (401, expected.clone()), "{token}");
    }
    drop(service);
}

#[test]
fn s_api18_a_declared_proxy_names_people_and_nobody_else_does() {
    let project = project();
    let configured = |proxy: &str| {
        format!(
            "listen: 127.0.0.1:0\nproxies: {proxy}\nauth:\n  header: {{name: X-Auth-Email, secret_name: X-Auth-Secret, secret_file: proxy.secret}}\n\
             \x20 roles:\n  - {{claim: email, value: ann@example.org, instance: shop, role: read}}\ninstances:\n  shop: {{project: shop, trust: full}}\n"
        )
    };
    let shown = format!("x-auth-secret: {SECRET}\r\n");
    let named = format!("x-auth-email: ann@example.org\r\n{shown}");
    project.write("server.yaml", &configured("127.0.0.1"));
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let (status, _, body) = service.ask("GET", "/v1/me", &named);
    let me: Value = serde_json::from_str(&body).expect("a document");
    assert_eq!(
        (status, &me["principal"], &me["authentication"]),
        (200, &json!("ann@example.org"), &json!("proxy")),
        "{me}"
    );
    let (_, _, nobody) = service.ask("GET", "/v1/me", "");
    for attack in [
        "x-auth-email: ann@example.org\r\n".to_owned(),
        "x-auth-email: ann@example.org\r\nx-auth-secret: another\r\n".to_owned(),
        format!(
            "x-auth-email: ann@example.org\r\nx-auth-secret: {}\r\n",
            &SECRET[1..]
        ),
        format!("{named}x-auth-secret: {SECRET}\r\n"),
        format!("{named}x-auth-email: ann@example.org\r\n"),
        format!("{named}x-auth-email: eve@example.org\r\n"),
        format!("x-auth-email:\r\n{shown}"),
        format!("x-auth-email: eve@example.org, ann@example.org\r\n{shown}"),
        format!("x-auth-email: <ann@example.org>\r\n{shown}"),
        format!("x-auth-email: ann\r\n{shown}"),
        format!("x-auth-email: token:0123456789abcdef\r\n{shown}"),
        format!("{named}cookie: watershed_session=x\r\n"),
        format!("{named}authorization: Bearer wsd_0_0\r\n"),
        shown.clone(),
    ] {
        let (status, _, body) = service.ask("GET", "/v1/me", &attack);
        assert_eq!((status, &body), (401, &nobody), "{attack}");
    }
    drop(service);
    // From an address that is not declared it is the header of a stranger.
    project.write("server.yaml", &configured("127.0.0.2"));
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let (status, _, body) = service.ask("GET", "/v1/me", &named);
    assert_eq!((status, body), (401, nobody));
}

#[test]
fn s_api45_at_a_hangup_roles_are_read_again_and_a_file_with_a_mistake_changes_nothing() {
    let project = project();
    let configured = |role: &str, more: &str| {
        format!(
            "listen: 127.0.0.1:0\nproxies: 127.0.0.1\nauth:\n  header: {{name: X-Auth-Email, secret_name: X-Auth-Secret, secret_file: proxy.secret}}\n\
             \x20 roles:\n  - {{claim: email, value: ann@example.org, instance: '*', role: {role}}}\ninstances:\n  shop: {{project: shop, trust: full}}\n{more}"
        )
    };
    project.write("server.yaml", &configured("read", ""));
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let named = format!("x-auth-email: ann@example.org\r\nx-auth-secret: {SECRET}\r\n");
    let roles = |service: &Serving| {
        let (_, _, body) = service.ask("GET", "/v1/me", &named);
        let me: Value = serde_json::from_str(&body).expect("a document");
        me["roles"].clone()
    };
    assert_eq!(roles(&service), json!(["read"]));
    for mistake in [
        configured("reader", ""),
        configured("operate", "tls: {key: gone.pem}\n"),
        "[".to_owned(),
    ] {
        project.write("server.yaml", &mistake);
        service.hang_up();
        service.line("nothing was changed");
        assert_eq!(roles(&service), json!(["read"]), "{mistake}");
    }
    project.write(
        "server.yaml",
        &configured(
            "operate",
            "  ops: {project: ops, trust: full}\nhosts: data.example.org\n",
        ),
    );
    service.hang_up();
    service.line("the configuration was read again");
    let restart = service.line("when the service starts again");
    assert!(
        restart.contains("`hosts`") && !restart.contains("instances"),
        "{restart}"
    );
    service.line("ops: open");
    assert_eq!(roles(&service), json!(["read", "operate"]));
    fs::remove_file(project.path().join("server.yaml")).expect("it is there");
    service.hang_up();
    service.line("nothing was changed");
    assert_eq!(roles(&service), json!(["read", "operate"]));
}
