//! Files of web servers that speak TLS with a certificate of a test's own, and that redirect, are busy, break off or hang.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rustls::{ServerConnection, StreamOwned};
use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;
use crate::stand_in::StandIn;
use crate::tls::certified;

/// The answer of the server to requests for its file.
#[derive(Debug, Clone)]
enum Manner {
    /// It answers with this content.
    Whole(String),
    /// It says where the file is: the one of this content.
    Moved(String),
    /// It asks so many requests to come again in a second, and answers then.
    Busy(u32, String),
    /// It announces this content, and breaks off in the middle of it.
    Broken(String),
    /// It answers no request.
    Silent,
}

struct Web {
    url: String,
    manner: Arc<Mutex<Manner>>,
    certificate: String,
}

impl Web {
    fn start(manner: Manner) -> Self {
        let (certificate, config) = certified(&["localhost"]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let manner = Arc::new(Mutex::new(manner));
        let shown = Arc::clone(&manner);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, shown) = (Arc::clone(&config), Arc::clone(&shown));
                std::thread::spawn(move || {
                    if let Ok(connection) = ServerConnection::new(config) {
                        answer(StreamOwned::new(connection, stream), &shown);
                    }
                });
            }
        });
        Self {
            url: format!("https://localhost:{port}/rows.csv"),
            manner,
            certificate,
        }
    }

    fn set(&self, manner: Manner) {
        *self.manner.lock().expect("nobody panicked") = manner;
    }
}

/// Answers one request.
fn answer(mut stream: StreamOwned<ServerConnection, TcpStream>, shown: &Mutex<Manner>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let moved = head.contains("/moved.csv");
    let mut manner = shown.lock().expect("nobody panicked");
    let (content, cut) = match &mut *manner {
        Manner::Moved(_) if !moved => {
            let location = "HTTP/1.1 302 Found\r\nLocation: /moved.csv\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(location.as_bytes());
            return;
        }
        Manner::Busy(left, _) if *left > 0 => {
            *left -= 1;
            let busy = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(busy.as_bytes());
            return;
        }
        Manner::Silent => {
            drop(manner);
            // Until the other side gives up.
            let _ = stream.read(&mut byte);
            return;
        }
        Manner::Whole(content) | Manner::Moved(content) | Manner::Busy(_, content) => {
            (content.clone(), false)
        }
        Manner::Broken(content) => (content.clone(), true),
    };
    drop(manner);
    let range = head.split_once("range: bytes=").and_then(|(_, rest)| {
        let (from, to) = rest.split("\r\n").next()?.split_once('-')?;
        Some((
            from.parse::<usize>().ok()?,
            to.parse::<usize>().unwrap_or(usize::MAX),
        ))
    });
    let (status, body) = match range {
        Some((from, to)) => (
            "206 Partial Content",
            &content[from.min(content.len())..content.len().min(to.saturating_add(1))],
        ),
        None => ("200 OK", content.as_str()),
    };
    let tag = content.len().to_string() + &content.replace('\n', "-")[..content.len().min(20)];
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nETag: \"{tag}\"\r\nContent-Length: {length}\r\nAccept-Ranges: bytes\r\nConnection: close\r\n\r\n"
    );
    if !head.starts_with("head") {
        answer.push_str(if cut { &body[..body.len() / 2] } else { body });
    }
    let _ = stream.write_all(answer.as_bytes());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

fn project(web: &Web) -> Sandbox {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "connectors/portal.yaml",
            &format!(
                "driver: https\nca_cert_file: certs/own.pem\npath_prefixes: {}\n",
                web.url.trim_end_matches("rows.csv")
            ),
        ),
        (
            "sources/rows.yaml",
            &format!("connector: portal\npath: {}\n", web.url),
        ),
        (
            "models/total.sql",
            "-- @materialize: true\nSELECT sum(n)::INTEGER AS total FROM rows",
        ),
    ])
    .extended();
    sandbox.write("certs/own.pem", &web.certificate);
    sandbox
}

const REFRESH: [&str; 3] = ["refresh", "rows", "--json"];

#[test]
fn a_certificate_of_ones_own_is_trusted_where_the_connector_names_it() {
    if !has_extension("httpfs") {
        return;
    }
    let web = Web::start(Manner::Whole("n\n4\n".to_owned()));
    let sandbox = project(&web);
    assert_eq!(sandbox.outcome(&["run", "--json"], "total"), "built");
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[4]]));
    assert_eq!(sandbox.outcome(&REFRESH, "rows"), "checked");
    web.set(Manner::Moved("n\n5\n".to_owned()));
    assert_eq!(
        sandbox.outcome(&REFRESH, "total"),
        "built",
        "redirects are followed"
    );
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[5]]));

    sandbox.edit("connectors/portal.yaml", "ca_cert_file: certs/own.pem\n", "");
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "portal"),
        "certificate-untrusted"
    );
    assert_eq!(
        sandbox.outcome(&REFRESH, "rows"),
        "none",
        "it waits for its connector"
    );
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[5]]));
    fs::remove_file(sandbox.path().join("certs/own.pem")).expect("the certificate goes");
}

#[test]
fn a_busy_server_is_asked_again_when_it_wants_to_be() {
    if !has_extension("httpfs") {
        return;
    }
    let web = Web::start(Manner::Whole("n\n4\n".to_owned()));
    let sandbox = project(&web);
    sandbox.outcome(&["run", "--json"], "total");
    web.set(Manner::Busy(2, "n\n6\n".to_owned()));
    let begun = std::time::Instant::now();
    assert_eq!(sandbox.outcome(&REFRESH, "total"), "built");
    assert!(
        begun.elapsed().as_secs() >= 2,
        "it waits as long as it was asked to"
    );
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[6]]));
    web.set(Manner::Busy(u32::MAX, String::new()));
    assert_eq!(sandbox.outcome(&REFRESH, "rows"), "store-busy");
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[6]]));
}

#[test]
fn a_download_that_breaks_off_leaves_the_last_good_table_and_one_that_hangs_can_be_stopped() {
    if !has_extension("httpfs") {
        return;
    }
    let web = Web::start(Manner::Whole("n\n4\n".to_owned()));
    let sandbox = project(&web);
    sandbox.outcome(&["run", "--json"], "total");
    let rows = (0..20_000).fold("n\n".to_owned(), |all, row| format!("{all}{row}\n"));
    web.set(Manner::Broken(rows));
    let outcome = sandbox.outcome(&REFRESH, "rows");
    assert!(
        !["built", "checked", "none"].contains(&outcome.as_str()),
        "{outcome}"
    );
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[4]]));
    assert_eq!(
        sandbox.rows("SELECT count(*) FROM rows"),
        serde_json::json!([[1]])
    );

    web.set(Manner::Silent);
    let mut waiting = sandbox.start(&["refresh", "rows"]);
    let begun = std::time::Instant::now();
    let asks = || {
        sandbox
            .call(&["status", "--json"])
            .stdout
            .contains("asking the store")
    };
    while !asks() && begun.elapsed().as_secs() < 20 {
        assert!(
            waiting.try_wait().expect("it can be looked at").is_none(),
            "it waits"
        );
    }
    let id = rustix::process::Pid::from_child(&waiting);
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it is told to stop");
    waiting.wait().expect("it ends");
    assert!(begun.elapsed().as_secs() < 25, "it does not wait for the server");
    assert_eq!(sandbox.rows("SELECT total FROM total"), serde_json::json!([[4]]));
}

#[test]
fn public_servers_are_trusted_beside_ones_own() {
    if !has_extension("httpfs") {
        return;
    }
    let own = Web::start(Manner::Whole("n\n4\n".to_owned()));
    let public = Web::start(Manner::Whole("n\n30\n".to_owned()));
    let sandbox = project(&own);
    sandbox.write("public.pem", &public.certificate);
    // Where the system has the authorities that it trusts.
    let file = sandbox.path().join("public.pem");
    let sandbox = sandbox.with_variable("SSL_CERT_FILE", file.to_str().expect("a path"));
    sandbox.write(
        "models/both.sql",
        &format!(
            "-- @materialize: true\nSELECT (total + n)::INTEGER AS both FROM total, read_csv('{}')",
            public.url
        ),
    );
    sandbox.run(0);
    assert_eq!(
        sandbox.rows("SELECT \"both\" FROM \"both\""),
        serde_json::json!([[34]])
    );

    let renewed = Web::start(Manner::Whole("n\n5\n".to_owned()));
    sandbox.edit("connectors/portal.yaml", own.url.trim_end_matches("rows.csv"), "");
    sandbox.edit("sources/rows.yaml", &own.url, &renewed.url);
    sandbox.write("certs/own.pem", &renewed.certificate);
    assert_eq!(sandbox.outcome(&["run", "--json"], "total"), "built");
    assert_eq!(
        sandbox.rows("SELECT \"both\" FROM \"both\""),
        serde_json::json!([[35]]),
        "another certificate in the same file counts"
    );
}

#[test]
fn tokens_and_passwords_of_proxies_stand_nowhere() {
    const TOKEN: &str = "hush-token-4751";
    const PASSWORD: &str = "hush-proxy-4752";
    let Some(store) = Store::start() else { return };
    store.create_bucket("data.example.org");
    store.write("data.example.org", "rows.csv", b"n\n4\n");
    let stand_in = StandIn::start(&store);
    let with_password = |proxy: &str| proxy.replace("http://", &format!("http://ada:{PASSWORD}@"));
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("portal_token={TOKEN}\n")),
        (
            "connectors/portal.yaml",
            "driver: https\nca_cert_file: proxy.pem\npath_prefixes: https://data.example.org/\n\
             headers:\n  Authorization: \"Bearer {{ .env.portal_token }}\"\n",
        ),
        (
            "sources/rows.yaml",
            "connector: portal\npath: https://data.example.org/rows.csv\n",
        ),
        (
            "models/direct.sql",
            "-- @materialize: true\nSELECT * FROM read_csv('https://data.example.org/rows.csv')",
        ),
        ("proxy.pem", stand_in.certificate()),
    ])
    .extended()
    .through(&with_password(stand_in.url()));
    sandbox.run(0);
    assert_eq!(sandbox.rows("SELECT n FROM rows"), serde_json::json!([[4]]));
    sandbox.assert_nowhere(&[TOKEN, PASSWORD], "portal");

    sandbox.edit("sources/rows.yaml", "rows.csv", "gone.csv");
    sandbox.edit("models/direct.sql", "rows.csv", "gone.csv");
    assert_eq!(sandbox.outcome(&["run", "--json"], "rows"), "object-missing");
    sandbox.assert_nowhere(&[TOKEN, PASSWORD], "portal");

    let nobody = {
        let gone = TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", gone.local_addr().expect("an address"))
    };
    let sandbox = sandbox.through(&with_password(&nobody));
    let refused = sandbox.outcome(&["refresh", "portal", "--json"], "portal");
    assert_eq!(refused, "connection-refused");
    let direct = sandbox.outcome(&["retry", "direct", "--json"], "direct");
    assert!(!["built", "none"].contains(&direct.as_str()), "{direct}");
    sandbox.assert_nowhere(&[TOKEN, PASSWORD], "portal");

    let sandbox = sandbox.through(&with_password(stand_in.url()));
    sandbox.edit("connectors/portal.yaml", "ca_cert_file: proxy.pem\n", "");
    assert_eq!(
        sandbox.outcome(&["run", "--json"], "portal"),
        "certificate-untrusted"
    );
    sandbox.assert_nowhere(&[TOKEN, PASSWORD], "portal");
}
