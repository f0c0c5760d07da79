//! Real clients against the protocol, over a real engine: psql, and messages written by hand.

#![allow(clippy::unwrap_used, reason = "a test that can't go on ends")]

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_callers::Verifier;
use watershed_drivers::duckdb::{Engine, Options};
use watershed_drivers::olap::{Olap, Query, QueryError};
use watershed_pgwire::{Answer, Backend, Bounds, Link, Place, Server, Session};

/// A server with one user, `reader`, and one database, `shop`.
struct Host {
    port: u16,
    ended: CancellationToken,
    failures: Arc<Mutex<usize>>,
    started: Arc<Notify>,
    _stop: tokio_util::sync::DropGuard,
    _folder: tempfile::TempDir,
}

struct Shop {
    engine: Arc<Engine>,
    verifier: Verifier,
    ended: CancellationToken,
    failures: Arc<Mutex<usize>>,
    /// Told when a statement begins.
    started: Arc<Notify>,
}

struct Reader {
    engine: Arc<Engine>,
    ended: CancellationToken,
    started: Arc<Notify>,
}

impl Backend for Shop {
    fn verifier(&self, user: &str) -> Option<Verifier> {
        (user == "reader").then(|| self.verifier.clone())
    }

    fn failed(&self, _address: Option<IpAddr>) -> Result<(), Problem> {
        *self.failures.lock().unwrap() += 1;
        Ok(())
    }

    fn open(&self, _user: &str, _proved: &Verifier, database: &str) -> Result<Box<dyn Session>, Problem> {
        match database {
            "shop" => Ok(Box::new(Reader {
                engine: Arc::clone(&self.engine),
                ended: self.ended.clone(),
                started: Arc::clone(&self.started),
            })),
            _ => Err(Problem::new(
                Code::UnknownName,
                "there is no instance of this name",
            )),
        }
    }
}

fn problem(error: &QueryError) -> Problem {
    Problem::new(Code::ProjectError, error.to_string())
}

impl Session for Reader {
    fn run<'a>(
        &'a self,
        sql: String,
        limit: Option<u64>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Problem>> {
        let query = Query {
            sql,
            limit,
            timeout: Some(Duration::from_secs(60)),
            ..Query::default()
        };
        async move {
            self.started.notify_one();
            let rows = self
                .engine
                .query(query, cancel)
                .await
                .map_err(|error| problem(&error))?;
            Ok(Answer {
                rows,
                words: Box::new(problem),
                place: Box::new(Everywhere),
            })
        }
        .boxed()
    }

    fn parameters<'a>(
        &'a self,
        forms: Vec<String>,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<BTreeMap<usize, String>, Problem>> {
        let found = watershed_drivers::parameter_types(&[], &forms).unwrap_or_default();
        let number = |(name, engine): (String, String)| Some((name.parse().ok()?, engine));
        std::future::ready(Ok(found.into_iter().filter_map(number).collect())).boxed()
    }

    fn look_in(&self, _schemas: Vec<String>) {}

    fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    fn expires_in(&self) -> Duration {
        Duration::from_secs(3_600)
    }
}

/// A place of which there are as many as readers.
struct Everywhere;

impl Place for Everywhere {
    fn leave(&mut self) -> bool {
        true
    }

    fn enter(&mut self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

async fn host() -> Host {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(folder.path().join("data.duckdb"), folder.path());
    let (ended, failures, started) = (CancellationToken::new(), Arc::default(), Arc::default());
    let shop = Shop {
        engine: Arc::new(Engine::new(options)),
        verifier: Verifier::of("secret"),
        ended: ended.clone(),
        failures: Arc::clone(&failures),
        started: Arc::clone(&started),
    };
    let server = Arc::new(Server::new(Arc::new(shop), Bounds::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        while let Some(Ok((stream, address))) = stopped.run_until_cancelled(listener.accept()).await {
            let link = Link {
                address: Some(address.ip()),
                tls: None,
                must_encrypt: false,
            };
            let (server, stop) = (Arc::clone(&server), stopped.clone());
            tokio::spawn(async move { server.session(stream, link, stop).await });
        }
    });
    Host {
        port,
        ended,
        failures,
        started,
        _stop: stop.drop_guard(),
        _folder: folder,
    }
}

/// Runs psql with a password and a script; none, with a message, where there is no psql.
async fn psql(host: &Host, database: &str, password: &str, script: &str) -> Option<Output> {
    if !Path::new("/usr/bin/psql").exists() {
        #[allow(clippy::print_stderr, reason = "whoever runs the tests should see it")]
        {
            eprintln!("skipped: psql is missing (Debian: apt-get install postgresql-client)");
        }
        return None;
    }
    let mut command = Command::new("/usr/bin/psql");
    command
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &host.port.to_string(),
            "-U",
            "reader",
            "-d",
            database,
        ])
        .args(["-X", "-A", "-t", "-v", "VERBOSITY=verbose", "-c", script])
        .env("PGPASSWORD", password)
        .env("PGSSLMODE", "prefer");
    Some(
        tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap(),
    )
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api27_psql_signs_in_and_reads_values_of_each_type() {
    let host = host().await;
    let script = "SELECT true, 7::TINYINT, 300::SMALLINT, 70000, 5000000000, 170141183460469231731687303715884105727::HUGEINT, \
        0.1::FLOAT, 1e300::DOUBLE, 12.50::DECIMAL(9,2), DATE '2024-02-29', TIME '12:00:00.5', \
        TIMESTAMP '2024-02-29 12:00:00', 'x|y', '\\x00\\xFF'::BLOB, \
        '550e8400-e29b-41d4-a716-446655440000'::UUID, [1, NULL], NULL";
    let Some(read) = psql(&host, "shop", "secret", script).await else {
        return;
    };
    let expected = "t|7|300|70000|5000000000|170141183460469231731687303715884105727|0.1|1e+300|12.50|2024-02-29|12:00:00.5|\
        2024-02-29 12:00:00|x|y|\\x00ff|550e8400-e29b-41d4-a716-446655440000|[1,null]|";
    assert_eq!(out(&read), expected, "{}", err(&read));
    let many = psql(
        &host,
        "shop",
        "secret",
        "SELECT count(*), sum(i) FROM range(100000) t(i)",
    )
    .await
    .unwrap();
    assert_eq!(out(&many), "100000|4999950000");
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api27_a_wrong_secret_and_another_database_are_refused() {
    let host = host().await;
    let Some(wrong) = psql(&host, "shop", "secreT", "SELECT 1").await else {
        return;
    };
    assert!(
        err(&wrong).contains("user or password is wrong"),
        "{}",
        err(&wrong)
    );
    assert_eq!(*host.failures.lock().unwrap(), 1);
    let other = psql(&host, "other", "secret", "SELECT 1").await.unwrap();
    assert!(err(&other).contains("there is no instance"), "{}", err(&other));
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api28_what_writes_is_25006_and_the_session_lives() {
    let host = host().await;
    let script = "CREATE TABLE t (a int)";
    let Some(refused) = psql(&host, "shop", "secret", script).await else {
        return;
    };
    assert!(err(&refused).contains("25006"), "{}", err(&refused));
    let together = psql(
        &host,
        "shop",
        "secret",
        "BEGIN; SELECT 1; COMMIT; SHOW server_version",
    )
    .await
    .unwrap();
    assert!(
        out(&together).ends_with("16.0"),
        "{} {}",
        out(&together),
        err(&together)
    );
}

/// Messages that are none, before and behind the first: each connection ends, and the server answers others.
#[tokio::test(flavor = "multi_thread")]
async fn s_api21_odd_bytes_end_their_own_connection() {
    let host = host().await;
    let startup = b"\0\0\0\x23\0\x03\0\0user\0reader\0database\0shop\0\0";
    let long = [&b"\x7f\xff\xff\xff"[..], &[0; 64]].concat();
    let wrong_length = [&b"\0\0\0\x07\0\x03\0"[..], &[0; 64]].concat();
    let encrypted_twice = b"\0\0\0\x08\x04\xd2\x16\x2f".repeat(4);
    let before_sign_in = [&startup[..], b"Q\0\0\0\x0dSELECT 1\0"].concat();
    let lies = [&startup[..], b"p\x7f\xff\xff\xff"].concat();
    let cancel = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x01".to_vec();
    for bytes in [long, wrong_length, encrypted_twice, before_sign_in, lies, cancel] {
        let mut stream = TcpStream::connect(("127.0.0.1", host.port)).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        // The end, whether in order or not.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.len() < 1_000, "{bytes:?}");
    }
    // The cancel request with a guessed key, and the message in the place of a proof.
    assert!(*host.failures.lock().unwrap() >= 2);
    if let Some(read) = psql(&host, "shop", "secret", "SELECT 1").await {
        assert_eq!(out(&read), "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api17_access_that_is_revoked_ends_the_statement_under_way() {
    let host = host().await;
    let ended = host.ended.clone();
    let endless = "SELECT count(*) FROM range(100000000000) a, range(100000000000) b";
    let started = Arc::clone(&host.started);
    let revoking = tokio::spawn(async move {
        started.notified().await;
        ended.cancel();
    });
    if let Some(read) = psql(&host, "shop", "secret", endless).await {
        assert!(err(&read).contains("access was revoked"), "{}", err(&read));
    }
    revoking.abort();
}
