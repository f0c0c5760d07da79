//! A service behind nginx, which encrypts and has it below a path.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;
use watershed_outside::http::Method;
use watershed_tests::server::skip;

use super::{Browser, SECRET, project, provider};
use crate::sandbox::Sandbox;
use crate::serving::Serving;

const NGINX: &str = "/usr/sbin/nginx";
/// An address that no proxy has.
const STRANGER: [u8; 4] = [127, 0, 0, 2];

/// A running nginx. Dropping it ends it.
struct Proxy {
    child: Child,
    port: u16,
}

impl Proxy {
    /// Starts nginx in front of a service, with more lines for the location; none where it is not installed.
    fn begin(project: &Sandbox, service: SocketAddr, more: &str) -> Self {
        // It takes over a socket that is bound already: no port is guessed.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let folder = project.path().join("nginx");
        std::fs::create_dir(&folder).expect("a folder");
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {}/{name};\n", folder.display()))
            .concat();
        let at = project.path().display();
        project.write(
            "nginx/nginx.conf",
            &format!(
                "daemon off; user root; worker_processes 1; pid {at}/nginx/pid; error_log stderr;\nevents {{ worker_connections 512; }}\n\
                 http {{\naccess_log off; keepalive_timeout 0;\n{temporary}server {{\nlisten 127.0.0.1:{port} ssl;\nserver_name localhost;\n\
                 ssl_certificate {at}/certificate.pem; ssl_certificate_key {at}/key.pem;\nlocation /data/ {{\nproxy_pass http://{service};\n\
                 proxy_http_version 1.1;\nproxy_buffering off;\nproxy_read_timeout 1h;\nproxy_set_header Host $http_host;\n\
                 proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\nproxy_set_header X-Forwarded-Proto $scheme;\n\
                 proxy_set_header X-Forwarded-Host $http_host;\nproxy_set_header Forwarded \"\";\n{more}}}\n}}\n}}\n"
            ),
        );
        let child = Command::new(NGINX)
            .arg("-p")
            .arg(&folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"))
            .env("NGINX", "0;")
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx can be started");
        Self { child, port }
    }

    fn origin(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// Sends bytes over TLS, and returns all that comes back.
    fn raw(&self, project: &Sandbox, from: [u8; 4], bytes: &[u8]) -> String {
        let mut authorities = RootCertStore::empty();
        let pem = std::fs::read(project.path().join("certificate.pem")).expect("a certificate");
        let certificate = rustls::pki_types::CertificateDer::from_pem_slice(&pem).expect("a certificate");
        authorities.add(certificate).expect("a certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_root_certificates(authorities)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        exchange(
            StreamOwned::new(connection, connect(from, ([127, 0, 0, 1], self.port).into())),
            bytes,
        )
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Asked to end, it ends its workers as well.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Connects from an address of this machine.
fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let connected = runtime.expect("a runtime").block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((from, 0)))?;
        socket.connect(to).await?.into_std()
    });
    let stream = connected.expect("it listens");
    stream.set_nonblocking(false).expect("a mode");
    stream
}

/// Sends bytes, and returns all that comes back until the other side hangs up, in whatever way.
fn exchange(mut stream: impl Read + Write, bytes: &[u8]) -> String {
    let mut answer = Vec::new();
    if stream.write_all(bytes).and_then(|()| stream.flush()).is_ok() {
        let _ = stream.read_to_end(&mut answer);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn is_missing() -> bool {
    let is_missing = !Path::new(NGINX).exists();
    if is_missing {
        skip("nginx is missing: apt-get install nginx");
    }
    is_missing
}

/// The configuration of a service behind a proxy, with lines below `auth`.
fn configuration(auth: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\nbase: /data\nproxies: [127.0.0.1]\nlimits: {{head_time: 300ms}}\nauth:\n{auth}\
         instances:\n  shop: {{project: shop, trust: full}}\n"
    )
}

/// A service whose proxy names the same person in every request.
fn named(project: &Sandbox) -> (Serving, Proxy) {
    project.write("shop/models/a.sql", "SELECT 1 AS x\n");
    project.write(
        "server.yaml",
        &configuration(
            "  header: {name: X-Auth-Email, secret_name: X-Auth-Secret, secret_file: proxy.secret}\n\
             \x20 roles:\n  - {claim: email, value: ann@example.org, instance: '*', role: admin}\n",
        ),
    );
    let service = Serving::begin(project, &["serve", "-c", "server.yaml"]);
    while service.ask("GET", "/data/readyz", "").0 != 200 {}
    let lines =
        format!("proxy_set_header X-Auth-Email ann@example.org;\nproxy_set_header X-Auth-Secret {SECRET};\n");
    let proxy = Proxy::begin(project, service.address, &lines);
    (service, proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api18_a_person_signs_in_through_nginx_below_a_path_and_out_again() {
    let project = project();
    let Some((_provider, issuer)) = provider(&project).filter(|_| !is_missing()) else {
        return;
    };
    project.write(
        "server.yaml",
        &configuration(&format!(
            "  oidc: {{issuer: \"{issuer}\", client_id: watershed, client_secret_file: oidc.secret, ca_cert_file: certificate.pem}}\n\
             \x20 attributes: {{groups: teams}}\n  roles:\n  - {{claim: teams, value: analysts, instance: shop, role: operate}}\n"
        )),
    );
    let service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let proxy = Proxy::begin(&project, service.address, "");
    let at = proxy.origin();
    let mut browser = Browser::new(&project);
    let page = browser.get(&format!("{at}/data/ui/shop")).await;
    assert_eq!(
        (page.status, page.location.as_deref()),
        (303, Some("/data/auth/login?next=%2Fui%2Fshop")),
        "{page:?}"
    );
    let begun = browser
        .get(&format!("{at}{}", page.location.expect("a way")))
        .await;
    let way = begun.location.clone().unwrap_or_else(|| panic!("{begun:?}"));
    let back = browser.until(way, "/auth/callback", "ann.analysts").await;
    assert!(back.starts_with(&format!("{at}/data/auth/callback?")), "{back}");
    let page = browser.get(&back).await;
    assert_eq!(
        (page.status, page.location.as_deref()),
        (303, Some("/data/ui/shop")),
        "{page:?}"
    );
    let session = page.cookies.iter().find(|cookie| cookie.contains("session"));
    let session = session.expect("a session");
    assert!(
        session.starts_with("__Secure-watershed_session=")
            && session.contains("; Path=/data; ")
            && session.contains("; Secure"),
        "{session}"
    );
    let me = browser.get(&format!("{at}/data/v1/me")).await.json();
    assert_eq!(
        (&me["principal"], &me["instances"]),
        (&json!("ann@example.org"), &json!({"shop": "operate"})),
        "{me}"
    );
    let out = format!("{at}/data/auth/logout");
    let out = browser
        .ask(Method::POST, &out, Some(("json", "{}".to_owned())))
        .await;
    assert_eq!(out.status, 204, "{out:?}");
    assert_eq!(browser.get(&format!("{at}/data/v1/me")).await.status, 303);
}

#[test]
fn s_api21_reports_of_clients_are_believed_from_a_proxy_and_from_nobody_before_it() {
    if is_missing() {
        return;
    }
    let project = project();
    let (service, proxy) = named(&project);
    // Failed sign-ins are counted for each address, but for those of this machine.
    let attempt = |from: [u8; 4], number: u16| {
        let head = format!(
            "GET /data/v1/me HTTP/1.1\r\nhost: localhost:{}\r\nconnection: close\r\nauthorization: Bearer wsd_0_{number}\r\n\
             x-forwarded-for: 203.0.113.9\r\nforwarded: for=203.0.113.9\r\nx-real-ip: 203.0.113.9\r\n\r\n",
            proxy.port
        );
        let answer = proxy.raw(&project, from, head.as_bytes());
        answer.split(' ').nth(1).map(str::to_owned).unwrap_or_default()
    };
    let forged: Vec<String> = (0..25).map(|number| attempt(STRANGER, number)).collect();
    assert_eq!(forged, vec!["401"; 25]);
    // The same from the proxy's own address is what the proxy itself reports.
    let reported: Vec<String> = (0..25).map(|number| attempt([127, 0, 0, 1], number)).collect();
    assert_eq!(reported.last().map(String::as_str), Some("429"), "{reported:?}");
    drop(service);
}

#[test]
fn s_api18_who_writes_the_headers_of_the_proxy_is_whom_the_proxy_names() {
    if is_missing() {
        return;
    }
    let project = project();
    let (_service, proxy) = named(&project);
    for forged in [
        "x-auth-email: eve@example.org\r\n",
        "X-AUTH-EMAIL: eve@example.org\r\nx-auth-email: eve@example.org\r\n",
        "x_auth_email: eve@example.org\r\n",
        "x-auth-email: eve@example.org\r\nx-auth-secret: guessed-by-a-stranger\r\n",
        "connection: close, x-auth-email, x-auth-secret\r\n",
    ] {
        let head = format!(
            "GET /data/v1/me HTTP/1.1\r\nhost: localhost:{}\r\n{forged}\r\n",
            proxy.port
        );
        let answer = proxy.raw(&project, STRANGER, head.as_bytes());
        let is_refused = answer.starts_with("HTTP/1.1 4");
        assert!(
            is_refused || answer.contains("\"ann@example.org\""),
            "{forged}: {answer}"
        );
        assert!(!answer.contains("eve"), "{forged}: {answer}");
    }
}

#[test]
fn s_api16_a_request_within_another_is_answered_by_nobody() {
    if is_missing() {
        return;
    }
    let project = project();
    let (service, proxy) = named(&project);
    let smuggled = |host: &str| {
        format!(
            "POST /data/v1/instances/shop/resources/model/a/pause HTTP/1.1\r\nhost: {host}\r\nx-auth-email: ann@example.org\r\n\
             x-auth-secret: {SECRET}\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        )
    };
    let attacks: [(&str, &str); 14] = [
        (
            "content-length: LENGTH\r\ntransfer-encoding: chunked",
            "0\r\n\r\n",
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: LENGTH",
            "0\r\n\r\n",
        ),
        ("content-length: 5\r\ntransfer-encoding: chunked", "0\r\n\r\n"),
        (
            "content-length: LENGTH\r\ntransfer-encoding : chunked",
            "0\r\n\r\n",
        ),
        (
            "content-length: LENGTH\r\ntransfer-encoding: xchunked",
            "0\r\n\r\n",
        ),
        (
            "content-length: LENGTH\r\ntransfer-encoding:\x0bchunked",
            "0\r\n\r\n",
        ),
        (
            "content-length: LENGTH\r\nx: y\r\n transfer-encoding: chunked",
            "0\r\n\r\n",
        ),
        ("x: y\r\n content-length: LENGTH", ""),
        ("transfer-encoding: chunked\r\n , identity", "0\r\n\r\n"),
        (
            "transfer-encoding: chunked, identity\r\ncontent-length: LENGTH",
            "0\r\n\r\n",
        ),
        (
            "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\ncontent-length: LENGTH",
            "0\r\n\r\n",
        ),
        ("content-length: 0\r\ncontent-length: LENGTH", ""),
        ("content-length: LENGTH\r\ncontent-length: 0", ""),
        ("content-length: +LENGTH", ""),
    ];
    let shown = format!("x-auth-email: ann@example.org\r\nx-auth-secret: {SECRET}\r\n");
    for (framing, begin) in attacks {
        for is_direct in [false, true] {
            let host = format!(
                "localhost:{}",
                if is_direct {
                    service.address.port()
                } else {
                    proxy.port
                }
            );
            let body = format!("{begin}{}", smuggled(&host));
            let framing = framing.replace("LENGTH", &body.len().to_string());
            let person = if is_direct { shown.as_str() } else { "" };
            let bytes =
                format!("GET /data/v1/me HTTP/1.1\r\nhost: {host}\r\n{person}{framing}\r\n\r\n{body}");
            let answer = match is_direct {
                true => exchange(connect([127, 0, 0, 1], service.address), bytes.as_bytes()),
                false => proxy.raw(&project, STRANGER, bytes.as_bytes()),
            };
            assert!(
                answer.matches("HTTP/1.1 ").count() <= 1,
                "{framing} {is_direct}: {answer}"
            );
            let paused = service.ask("GET", "/data/v1/instances/shop/resources/model/a", &shown);
            assert!(
                !paused.2.contains("\"paused\""),
                "{framing} {is_direct}: {}",
                paused.2
            );
        }
    }
    for hosts in [
        "host: localhost\r\nhost: evil.example\r\n",
        "host: localhost\r\n host: evil.example\r\n",
        "host: localhost, evil.example\r\n",
        "",
    ] {
        let head = format!("GET /data/v1/me HTTP/1.1\r\n{hosts}\r\n");
        let answer = proxy.raw(&project, STRANGER, head.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 4"), "{hosts}: {answer}");
        let head = format!("GET /data/v1/me HTTP/1.1\r\n{hosts}{shown}\r\n");
        let answer = exchange(connect([127, 0, 0, 1], service.address), head.as_bytes());
        assert!(
            answer.starts_with("HTTP/1.1 4") && answer.matches("HTTP/1.1 ").count() == 1,
            "{hosts}: {answer}"
        );
    }
}
