//! SQL clients of a service: psql, and what programs in Python ask by.

mod answers;
mod views;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use watershed_tests::postgres::Server;
use watershed_tests::server::{fetched, skip};

use crate::sandbox::Sandbox;
use crate::serving::Serving;

const PROJECT: &[(&str, &str)] = &[
    ("one/watershed.yaml", ""),
    (
        "one/models/types.sql",
        "-- @materialize: true\nSELECT true AS yes, 7::TINYINT AS small, 9007199254740993 AS number, \
         170141183460469231731687303715884105727::HUGEINT AS huge, 1.10::DECIMAL(9, 2) AS price, 0.5::DOUBLE AS part, \
         DATE '2024-02-29' AS day, TIMESTAMP '2024-02-29 12:30:00.123456' AS moment, \
         TIMESTAMPTZ '2024-02-29 12:30:00+00' AS instant, 'é''\"' AS word, '\\x00\\xff'::BLOB AS bytes, \
         '5f5ee3a5-0b51-4d4b-a0a1-000000000001'::UUID AS id, [1, NULL, 3] AS list, NULL::VARCHAR AS nothing\n",
    ),
    (
        "one/models/many.sql",
        "-- @materialize: true\nSELECT range AS x FROM range(100000)\n",
    ),
    ("one/models/few.sql", "SELECT * FROM many WHERE x < 3\n"),
    ("two/watershed.yaml", ""),
    ("two/models/other.sql", "SELECT 'of two' AS word\n"),
    (
        "server.yaml",
        "listen: 127.0.0.1:0\nsql: {listen: 127.0.0.1:0}\nauth: {tokens: tokens.yaml}\ninstances:\n  one: {project: one}\n  two: {project: two}\n",
    ),
];

/// A service with SQL clients, of two projects that are built.
struct Host {
    project: Sandbox,
    service: Serving,
    port: u16,
    root: String,
}

/// The holder of a token.
struct Holder {
    id: String,
    secret: String,
    whole: String,
}

impl Holder {
    fn of(whole: &str) -> Self {
        let parts: Vec<&str> = whole.splitn(3, '_').collect();
        Self {
            id: parts[1].to_owned(),
            secret: parts[2].to_owned(),
            whole: whole.to_owned(),
        }
    }
}

impl Host {
    fn begin() -> Self {
        Self::with(PROJECT, &["one", "two"])
    }

    fn with(files: &[(&str, &str)], instances: &[&str]) -> Self {
        let project = Sandbox::with(files);
        for instance in instances {
            let said = project.call(&["run", "-C", instance]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
        }
        let root = made(&project, "root", "*=admin");
        Self::of(project, root)
    }

    /// Starts the service of a project, and waits until all instances are open.
    fn of(project: Sandbox, root: String) -> Self {
        let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
        let port = port_of(&mut service);
        while service.ask("GET", "/readyz", "").0 != 200 {}
        Self {
            project,
            service,
            port,
            root,
        }
    }

    /// Makes a token over HTTP.
    fn holder(&self, name: &str, roles: &str, more: &str) -> Holder {
        let head = format!(
            "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
            self.root
        );
        let body = format!("{{\"name\": \"{name}\", \"roles\": {roles}{more}}}");
        let (status, _, body) = self.service.send("POST", "/v1/tokens", &head, &body);
        assert_eq!(status, 201, "{body}");
        let made: serde_json::Value = serde_json::from_str(&body).expect("a document");
        Holder::of(made["secret"].as_str().expect("a secret"))
    }

    fn psql(&self, holder: &Holder, database: &str, arguments: &[&str]) -> Command {
        let mut psql = Command::new("psql");
        psql.env("PGPASSWORD", &holder.secret)
            .env("PGCONNECT_TIMEOUT", "10")
            .args(["-X", "-w", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .args(["-U", &holder.id, "-d", database])
            .args(arguments);
        psql
    }

    /// Runs statements by psql; returns its output, and what it said of errors.
    fn ask(&self, holder: &Holder, database: &str, statements: &[&str]) -> (String, String) {
        let mut psql = self.psql(holder, database, &["-A", "-t", "-v", "VERBOSITY=verbose"]);
        for statement in statements {
            psql.args(["-c", statement]);
        }
        texts(&psql.output().expect("psql runs"))
    }
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn made(project: &Sandbox, name: &str, role: &str) -> String {
    let said = project.call(&[
        "token",
        "create",
        "--file",
        "tokens.yaml",
        "--name",
        name,
        "--role",
        role,
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.stdout.trim().to_owned()
}

fn port_of(service: &mut Serving) -> u16 {
    // It is said before the address of HTTP, or behind it.
    let line = service.line("answers SQL at ");
    let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
    port.expect("a port")
}

fn has_psql() -> bool {
    let has = Command::new("psql").arg("--version").output().is_ok();
    if !has {
        skip("psql is missing");
    }
    has
}

#[test]
fn s_api27_psql_reads_what_a_token_may_ask_and_nothing_else() {
    if !has_psql() {
        return;
    }
    let host = Host::begin();
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    let (out, said) = host.ask(
        &reader,
        "one",
        &["SELECT count(*) FROM many", "TABLE few", "SHOW TABLES"],
    );
    assert_eq!(out, "100000\n0\n1\n2\nfew\nmany\ntypes\n", "{said}");
    let copy = [
        "COPY few TO STDOUT (FORMAT csv, HEADER)",
        "COPY (SELECT NULL, 'a') TO STDOUT",
    ];
    assert_eq!(host.ask(&reader, "one", &copy).0, "x\n0\n1\n2\n\\N\ta\n");
    // A cursor, as psql has one for large answers.
    let (out, said) = host.ask(
        &reader,
        "one",
        &[
            "\\set FETCH_COUNT 7",
            "SELECT * FROM (VALUES (1)) AS t(x)",
            "BEGIN",
            "DECLARE c CURSOR FOR SELECT x FROM many ORDER BY x",
            "MOVE 3 IN c",
            "FETCH FORWARD 2 FROM c",
            "CLOSE c",
            "FETCH c",
            "COMMIT",
        ],
    );
    assert!(
        out == "1\nBEGIN\nDECLARE CURSOR\nMOVE 3\n3\n4\nCLOSE CURSOR\nROLLBACK\n" && said.contains("34000"),
        "{out}{said}"
    );
    // A write is refused, and the session lives.
    let (out, said) = host.ask(
        &reader,
        "one",
        &[
            "DROP TABLE many",
            "SELECT 1",
            "INSERT INTO many VALUES (1)",
            "SELECT 2",
        ],
    );
    assert!(
        out == "1\n2\n" && said.matches("25006").count() == 2,
        "{out}{said}"
    );
    for (statement, state) in [
        ("COPY many TO PROGRAM 'id'", "0A000"),
        ("SELECT * FROM read_csv('/etc/passwd')", "42501"),
        ("SELECT getenv('HOME')", "42501"),
        ("SELECT FROM WHERE", "42601"),
        ("SELECT 1 / 'a'", "42601"),
        ("SELECT * FROM nowhere", "42501"),
    ] {
        let (out, said) = host.ask(&reader, "one", &[statement]);
        assert!(out.is_empty() && said.contains(state), "{statement}: {out}{said}");
    }
    // Another's instance is as one that there is none of.
    let [other, none] = ["two", "nowhere"].map(|database| {
        host.ask(&reader, database, &["SELECT 1"])
            .1
            .replace(database, "NAME")
    });
    assert!(other.contains("there is no instance `NAME`"), "{other}");
    assert_eq!(other, none);
    // Without `+query` the outputs are not there.
    let plain = host.holder("plain", r#"{"one": "read"}"#, "");
    let (out, said) = host.ask(
        &plain,
        "one",
        &["SELECT * FROM few", "SELECT relname FROM pg_class"],
    );
    assert!(
        out.is_empty() && said.contains("42501") && said.contains("query"),
        "{out}{said}"
    );
    // A tool that tries its connection gets its answer all the same.
    assert_eq!(host.ask(&plain, "one", &["SELECT 1"]).0, "1\n");
    // A token for other operations, or for some resources, asks nothing.
    for more in [r#", "operations": ["stats"]"#, r#", "select": ["few"]"#] {
        let narrow = host.holder("narrow", r#"{"one": "read+query"}"#, more);
        let (out, said) = host.ask(
            &narrow,
            "one",
            &["SELECT * FROM few", "SELECT relname FROM pg_class"],
        );
        assert!(out.is_empty() && said.contains("42501"), "{more}: {out}{said}");
    }
    let wrong = Holder {
        secret: format!("{}0", reader.secret),
        ..Holder::of(&reader.whole)
    };
    let (out, said) = host.ask(&wrong, "one", &["SELECT 1"]);
    assert!(
        out.is_empty() && said.contains("user or password is wrong"),
        "{said}"
    );
    let head = format!("authorization: Bearer {}\r\n", host.root);
    let (_, _, numbers) = host.service.ask("GET", "/metrics", &head);
    assert!(
        numbers.contains("watershed_sql_sessions{instance=\"one\"} 0\n"),
        "{numbers}"
    );
    assert!(
        !numbers.contains("watershed_sql_statements_total{instance=\"one\"} 0\n"),
        "{numbers}"
    );
}

#[test]
fn s_api27_a_revoked_token_and_the_end_of_the_service_end_sessions_within_a_second() {
    if !has_psql() {
        return;
    }
    let host = Host::begin();
    let [one, other] = ["one", "other"].map(|name| host.holder(name, r#"{"one": "read+query"}"#, ""));
    let begin = |holder: &Holder| {
        let mut psql = host.psql(holder, "one", &["-A", "-t", "-v", "VERBOSITY=verbose"]);
        psql.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = psql.spawn().expect("psql runs");
        let mut input = child.stdin.take().expect("it is piped");
        input.write_all(b"SELECT 'begun';\n").expect("it reads");
        let mut begun = [0; 6];
        child
            .stdout
            .as_mut()
            .expect("it is piped")
            .read_exact(&mut begun)
            .expect("an answer");
        (child, input)
    };
    let ((mut gone, mut input), (mut stays, mut stays_input)) = (begin(&one), begin(&other));
    let head = format!(
        "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
        host.root
    );
    // A statement that would go on for long.
    input
        .write_all(b"SELECT count(*) FROM many a, many b, many c WHERE a.x + b.x + c.x = -1;\n")
        .expect("it reads");
    let revoked = Instant::now();
    let (status, _, body) = host
        .service
        .ask("DELETE", &format!("/v1/tokens/{}", one.id), &head);
    assert_eq!(status, 200, "{body}");
    let mut said = String::new();
    gone.stderr
        .as_mut()
        .expect("it is piped")
        .read_to_string(&mut said)
        .expect("it says something");
    drop(input);
    assert!(
        revoked.elapsed() < Duration::from_secs(3),
        "{:?}",
        revoked.elapsed()
    );
    assert!(
        said.contains("57P01") || said.contains("closed the connection"),
        "{said}"
    );
    assert_eq!(gone.wait().expect("it ends").code(), Some(2));
    assert!(
        host.ask(&one, "one", &["SELECT 1"])
            .1
            .contains("user or password is wrong")
    );
    // The other one is not concerned.
    stays_input
        .write_all(b"SELECT 'still here';\n")
        .expect("it reads");
    let mut line = [0; 11];
    stays
        .stdout
        .as_mut()
        .expect("it is piped")
        .read_exact(&mut line)
        .expect("an answer");
    let (code, rest) = host.service.end(rustix::process::Signal::TERM);
    assert_eq!(code, Some(143), "{rest}");
    let _ = stays_input.write_all(b"SELECT 3;\n");
    drop(stays_input);
    said.clear();
    stays
        .stderr
        .as_mut()
        .expect("it is piped")
        .read_to_string(&mut said)
        .expect("it says something");
    assert!(said.contains("57P01") || said.contains("connection"), "{said}");
    stays.wait().expect("it ends");
}

#[test]
fn s_api29_psql_looks_around() {
    if !has_psql() {
        return;
    }
    let host = Host::begin();
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    for (command, has) in [
        (
            "\\d",
            &["main|few|view|", "main|many|table|", "main|types|table|"][..],
        ),
        ("\\dt", &["main|many|table|", "main|types|table|"]),
        ("\\dv", &["main|few|view|"]),
        ("\\dn", &["main|"]),
        ("\\l", &["one|"]),
        ("\\du", &[reader.id.as_str()]),
        ("\\d many", &["x|bigint|"]),
        (
            "\\d main.types",
            &[
                "price|numeric(9,2)|",
                "instant|timestamp with time zone|",
                "list|json|",
            ],
        ),
        ("\\d+ few", &["x|bigint|"]),
        ("\\dt ma*", &["main|many|table|"]),
        ("\\dT+", &[]),
        ("\\di", &[]),
        ("\\df", &[]),
        ("\\conninfo", &["\"one\""]),
    ] {
        let (out, said) = host.ask(&reader, "one", &[command]);
        assert!(!said.contains("ERROR"), "{command}: {said}");
        for line in has {
            assert!(out.contains(line), "{command}: {line}: {out}{said}");
        }
        assert!(command != "\\dt" || !out.contains("few"), "{out}");
    }
    let (out, said) = host.ask(
        &reader,
        "one",
        &[
            "SELECT current_user, current_database(), current_schema()",
            "SELECT c.oid::regclass, 'many'::regclass::oid = c.oid FROM pg_catalog.pg_class c WHERE relname ~ '^ma'",
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW'",
            "SELECT 1 WHERE 'pg_class' OPERATOR(pg_catalog.~) '^pg' COLLATE pg_catalog.default",
        ],
    );
    assert_eq!(out, format!("{}|one|main\nmany|t\nfew\n1\n", reader.id), "{said}");
    // Times in a format, as tools write them, and names in the schema that a session looks in.
    let (out, said) = host.ask(
        &reader,
        "one",
        &[
            "SELECT count(*) FROM types WHERE day >= TO_DATE('2024-02-29', 'YYYY-MM-DD') AND moment > TO_TIMESTAMP('2024-02-29 12:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')",
            "SET search_path = \"metrics\", main",
            "SHOW search_path",
            "SELECT count(*) FROM few",
        ],
    );
    assert_eq!(out, "1\nSET\nmetrics, main\n3\n", "{said}");
    // Whatever drivers ask has an answer.
    let looks = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/looks.sql");
    let mut psql = host.psql(&reader, "one", &["-A", "-t", "-f", looks]);
    let (out, said) = texts(&psql.output().expect("psql runs"));
    assert!(said.is_empty() && out.contains("main|many|TABLE|"), "{out}{said}");
    // Nobody sees by the catalog what there is elsewhere.
    let (out, said) = host.ask(
        &reader,
        "one",
        &[
            "SELECT datname FROM pg_database",
            "SELECT relname FROM pg_class ORDER BY 1",
        ],
    );
    assert_eq!(out, "one\nfew\nmany\ntypes\n", "{said}");
    // Numbers stay over a restart.
    let numbers = "SELECT oid, relname FROM pg_class ORDER BY 2";
    let (before, _) = host.ask(&reader, "one", &[numbers]);
    let Host {
        project,
        service,
        root,
        ..
    } = host;
    service.end(rustix::process::Signal::TERM);
    let host = Host::of(project, root);
    let (after, said) = host.ask(&reader, "one", &[numbers]);
    assert_eq!(after, before, "{said}");
}

#[test]
fn s_api29_what_drivers_look_at_is_as_in_a_postgres() {
    let python = fetched().join("sql-clients");
    if !python.exists() {
        return skip("sql-clients are missing (scripts/fetch-test-servers)");
    }
    let Some(postgres) = Server::start() else {
        return;
    };
    let host = Host::begin();
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    let clients = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients"));
    let output = Command::new("python3")
        .env("PYTHONPATH", &python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(clients.join("beside.py"))
        .args([
            &host.port.to_string(),
            &reader.id,
            &reader.secret,
            &postgres.url(),
        ])
        .arg(clients.join("looks.sql"))
        .output()
        .expect("Python runs");
    let (out, said) = texts(&output);
    assert!(output.status.success() && out == "done\n", "{out}{said}");
}

#[test]
fn s_api27_programs_in_python_read_and_inspect() {
    let python = fetched().join("sql-clients");
    if !python.exists() {
        return skip("sql-clients are missing (scripts/fetch-test-servers)");
    }
    let host = Host::begin();
    let reader = host.holder("reader", r#"{"one": "read+query"}"#, "");
    for client in ["sql.py", "asyncpg_client.py"] {
        let output = Command::new("python3")
            .env("PYTHONPATH", &python)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/clients")).join(client))
            .args([&host.port.to_string(), &reader.id, &reader.secret])
            .output()
            .expect("Python runs");
        let (out, said) = texts(&output);
        assert!(
            output.status.success() && out == "done\n",
            "{client}: {out}{said}"
        );
    }
}

#[test]
fn s_api27_with_a_certificate_nobody_signs_in_without_encryption() {
    if !has_psql() {
        return;
    }
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let mut files = PROJECT.to_vec();
    let server = "listen: 127.0.0.1:0\nsql: {listen: 127.0.0.1:0}\ntls: {certificate: c.pem, key: k.pem}\nauth: {tokens: tokens.yaml}\ninstances:\n  one: {project: one}\n";
    files.retain(|(name, _)| *name != "server.yaml");
    files.extend([
        ("server.yaml", server),
        ("c.pem", &*certificate),
        ("k.pem", &*key),
    ]);
    let project = Sandbox::with(&files);
    private(&project.path().join("k.pem"));
    let reader = Holder::of(&made(&project, "reader", "one=read+query"));
    let mut service = Serving::begin(&project, &["serve", "-c", "server.yaml"]);
    let port = port_of(&mut service);
    let host = Host {
        root: String::new(),
        project,
        service,
        port,
    };
    let of = |mode: &str| {
        let mut psql = host.psql(&reader, "one", &["-A", "-t", "-c", "SELECT 1"]);
        psql.env("PGSSLMODE", mode)
            .env("PGSSLROOTCERT", host.project.path().join("c.pem"));
        texts(&psql.output().expect("psql runs"))
    };
    let begun = Instant::now();
    while of("require").0 != "1\n" {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", of("require").1);
    }
    let (out, said) = of("disable");
    assert!(
        out.is_empty() && said.contains("has to be encrypted"),
        "{out}{said}"
    );
    // Whoever begins with TLS names the protocol, so that nobody is led here on the way to another server.
    for (protocol, is_let_in) in [
        (Some("postgresql"), true),
        (Some("http/1.1"), false),
        (None, false),
    ] {
        assert_eq!(
            begins_with_tls(port, &certificate, protocol),
            is_let_in,
            "{protocol:?}"
        );
    }
}

fn private(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("the mode can be set");
}

/// Returns true if a client that begins with TLS is asked for a proof.
fn begins_with_tls(port: u16, certificate: &str, protocol: Option<&str>) -> bool {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
    let mut roots = rustls::RootCertStore::empty();
    let own = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    roots.add(own).expect("a certificate");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = rustls::ClientConnection::new(std::sync::Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let mut body = 0x0003_0000_u32.to_be_bytes().to_vec();
    body.extend(b"user\0somebody\0database\0one\0\0");
    let length = u32::try_from(body.len() + 4).expect("it is short").to_be_bytes();
    let sent = stream
        .write_all(&[&length[..], &body].concat())
        .and_then(|()| stream.flush());
    let mut first = [0];
    sent.is_ok() && stream.read_exact(&mut first).is_ok() && first == *b"R"
}
