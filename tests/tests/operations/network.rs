//! The network of a service: certificates, Unix sockets, and proxies that speak for others.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::sync::CancellationToken;
use watershed::http::{
    Caller, Client, Door, Limits, Listener, Peer, Peers, Proxies, Service, Tls, bind, local_user, router,
};

use crate::client::{self, Response};

/// A service without instances, whose callers are called as they are seen.
struct Open {
    at: std::net::SocketAddr,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

fn service() -> Service {
    Service::new().known_as(["data.example.org".to_owned()])
}

/// Routes that tell of a caller what is known of the connection.
fn routes() -> axum::Router {
    router(service(), |head| {
        let is_ours = head.extensions.get::<Peer>().is_some_and(Peer::is_ours);
        let client = head.extensions.get::<Client>().cloned().unwrap_or_default();
        let address = client.address.map(|address| address.to_string());
        Ok(Caller::owner(format!(
            "{} from {} by {}",
            if is_ours { "local" } else { "a stranger" },
            address.as_deref().unwrap_or("nowhere"),
            if client.is_encrypted { "https" } else { "http" },
        )))
    })
}

impl Open {
    async fn new(door: Door) -> Self {
        Self::with(door, routes()).await
    }

    async fn with(door: Door, routes: axum::Router) -> Self {
        let listener = bind("127.0.0.1:0".parse().expect("an address")).await;
        let listener = listener.expect("a socket");
        let at = listener.local_addr().expect("an address");
        let stop = CancellationToken::new();
        let serving = tokio::spawn(door.serve(listener, routes, stop.clone()));
        Self { at, stop, serving }
    }

    async fn end(self) {
        self.stop.cancel();
        self.serving.await.expect("it ends in order");
    }
}

/// A certificate of a test, and the client that trusts it.
struct Certificate {
    tls: Tls,
    client: ClientConfig,
}

impl Certificate {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["data.example.org".to_owned()]);
        let made = made.expect("a certificate");
        let tls = Tls::new(
            made.cert.pem().as_bytes(),
            made.signing_key.serialize_pem().as_bytes(),
        );
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("it can be trusted");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            tls: tls.expect("they belong together"),
            client,
        }
    }

    /// Connects with this certificate trusted alone.
    async fn connect(
        &self,
        at: std::net::SocketAddr,
    ) -> std::io::Result<impl AsyncRead + AsyncWrite + Unpin> {
        let stream = TcpStream::connect(at).await?;
        let name = ServerName::try_from("data.example.org").expect("a name");
        tokio_rustls::TlsConnector::from(Arc::new(self.client.clone()))
            .connect(name, stream)
            .await
    }
}

/// Asks who one is, and reads the answer of a connection that stays open.
async fn me(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), more: &str) -> Response {
    let head = format!("GET /v1/me HTTP/1.1\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.expect("it answers");
        answer.extend(piece.get(..read).unwrap_or_default());
        if let Some(response) = client::whole(&answer) {
            return response;
        }
        assert!(read > 0, "it ended: {}", String::from_utf8_lossy(&answer));
    }
}

const HOST: &str = "host: data.example.org\r\n";

#[tokio::test(flavor = "multi_thread")]
async fn s_api15_a_certificate_encrypts_and_another_takes_its_place_for_new_connections() {
    let (first, second) = (Certificate::new(), Certificate::new());
    let door = Door {
        tls: Some(first.tls.clone()),
        ..Door::default()
    };
    let open = Open::new(door).await;
    let mut stream = first.connect(open.at).await.expect("a handshake");
    let answer = me(&mut stream, HOST).await;
    assert_eq!(answer.json()["principal"], "local from 127.0.0.1 by https");
    assert!(second.connect(open.at).await.is_err(), "another certificate");
    first.tls.replace(&second.tls);
    assert_eq!(me(&mut stream, HOST).await.status, 200, "what is open goes on");
    assert!(first.connect(open.at).await.is_err(), "the former certificate");
    let mut stream = second.connect(open.at).await.expect("a handshake");
    assert_eq!(me(&mut stream, HOST).await.status, 200);
    drop(stream);
    open.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api15_who_does_not_encrypt_is_told_so_and_the_newer_protocol_is_not_spoken() {
    let certificate = Certificate::new();
    let door = Door {
        tls: Some(certificate.tls.clone()),
        limits: Limits {
            head_within: Duration::from_secs(2),
            ..Limits::default()
        },
        ..Door::default()
    };
    let open = Open::new(door).await;
    let plain = client::Client(open.at)
        .raw(b"GET /v1/me HTTP/1.1\r\nhost: data.example.org\r\n\r\n")
        .await
        .expect("an answer");
    assert_eq!(
        (plain.status, plain.json()["code"].as_str()),
        (400, Some("bad-argument"))
    );
    assert!(
        plain.json()["hint"]
            .as_str()
            .expect("a hint")
            .contains("https://")
    );
    let mut newer = Certificate {
        tls: certificate.tls.clone(),
        client: certificate.client.clone(),
    };
    newer.client.alpn_protocols = vec![b"h2".to_vec()];
    assert!(newer.connect(open.at).await.is_err());
    newer.client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut stream = newer.connect(open.at).await.expect("a handshake");
    assert_eq!(me(&mut stream, HOST).await.status, 200);
    // Whoever begins a handshake and says no more is hung up on.
    for beginning in [
        &b""[..],
        b"\x16",
        b"\x16\x03\x01\x02\x00\x01",
        b"\x16\xff\xff\xff\xff",
    ] {
        let mut silent = TcpStream::connect(open.at).await.expect("it listens");
        silent.write_all(beginning).await.expect("it reads");
        let mut answer = Vec::new();
        let _ = silent.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{beginning:?}");
    }
    open.end().await;
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let made =
        |_: u8| rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).expect("a certificate");
    let (one, other) = (made(1), made(2));
    let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    let stranger = other.signing_key.serialize_pem();
    let refused = |certificate: &str, key: &str| {
        let tls = Tls::new(certificate.as_bytes(), key.as_bytes());
        let said = tls.err().map(|error| error.to_string());
        said.inspect(|said| assert!(!said.contains(key.lines().nth(1).unwrap_or("?")), "{said}"))
    };
    assert_eq!(refused(&certificate, &key), None);
    assert_eq!(refused(&format!("{certificate}{}", other.cert.pem()), &key), None);
    for (certificate, key) in [
        (&certificate, &stranger),
        (&key, &key),
        (&certificate, &certificate),
        (&String::new(), &key),
        (&certificate, &String::new()),
        (&certificate.replace("CERTIFICATE", "SOMETHING"), &key),
    ] {
        assert!(refused(certificate, key).is_some(), "{certificate} {key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api15_a_socket_in_a_file_is_for_its_user_and_takes_the_place_of_a_dead_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("http.sock");
    // What a process that was killed leaves.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let listener = Listener::at_file(&path).await.expect("nobody listens");
    let taken = Listener::at_file(&path).await.expect_err("somebody listens");
    assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
    let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Door::default().serve(listener, routes(), stop.clone()));
    let mut stream = UnixStream::connect(&path).await.expect("it listens");
    let answer = me(&mut stream, HOST).await;
    assert_eq!(answer.json()["principal"], "local from nowhere by http");
    // Whoever may open the file is a proxy.
    let told = format!("{HOST}x-forwarded-for: 9.9.9.9, 1.1.1.1\r\nx-forwarded-proto: https\r\n");
    let answer = me(&mut stream, &told).await;
    assert_eq!(answer.json()["principal"], "local from 1.1.1.1 by https");
    drop(stream);
    stop.cancel();
    serving.await.expect("it ends in order");
    assert!(!path.exists(), "the file goes with the service");
    std::fs::write(&path, "not a socket").expect("a file");
    assert!(Listener::at_file(&path).await.is_err());
    assert_eq!(std::fs::read(&path).expect("it stays"), b"not a socket");
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api21_only_a_declared_proxy_speaks_for_others() {
    let forged =
        "x-forwarded-for: 1.1.1.1\r\nx-forwarded-proto: https\r\nx-forwarded-host: data.example.org\r\n";
    let evil = format!("{HOST}x-forwarded-host: evil.example\r\n");
    let both = format!("{HOST}x-forwarded-for: 1.1.1.1\r\nforwarded: for=2.2.2.2\r\n");
    for (proxy, behind, elsewhere, evil_status, both_status) in [
        ("127.0.0.1/32", "local from 1.1.1.1 by https", 200, 421, 400),
        ("127.0.0.2/32", "local from 127.0.0.1 by http", 421, 200, 200),
    ] {
        let network = proxy.parse().expect("a network");
        let open = Open::new(Door {
            proxies: Arc::new(Proxies::new([network])),
            ..Door::default()
        })
        .await;
        let mut stream = TcpStream::connect(open.at).await.expect("it listens");
        let answer = me(&mut stream, &format!("{HOST}{forged}")).await;
        assert_eq!(answer.json()["principal"], behind, "{proxy}");
        // The name that the proxy was asked for counts, and no other.
        let answer = me(&mut stream, &format!("host: upstream.internal\r\n{forged}")).await;
        assert_eq!(answer.status, elsewhere, "{proxy}");
        assert_eq!(me(&mut stream, &evil).await.status, evil_status, "{proxy}");
        assert_eq!(me(&mut stream, &both).await.status, both_status, "{proxy}");
        drop(stream);
        open.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api15_whom_a_proxy_of_the_user_speaks_for_is_not_the_user() {
    for peers in [Peers::OfUser, Peers::All] {
        let door = Door {
            peers,
            proxies: Arc::new(Proxies::new(["127.0.0.0/8".parse().expect("a network")])),
            ..Door::default()
        };
        let open = Open::with(door, router(service(), local_user)).await;
        let mut stream = TcpStream::connect(open.at).await.expect("it listens");
        let own = if peers == Peers::OfUser { 200 } else { 403 };
        assert_eq!(me(&mut stream, HOST).await.status, own);
        for told in [
            "x-forwarded-for: 192.0.2.1\r\n",
            "forwarded: for=192.0.2.1\r\n",
            "x-forwarded-for: 127.0.0.9, 192.0.2.1\r\n",
        ] {
            assert_eq!(
                me(&mut stream, &format!("{HOST}{told}")).await.status,
                403,
                "{told}"
            );
        }
        drop(stream);
        open.end().await;
    }
}
