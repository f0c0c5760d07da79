//! SQL clients of the program, beside a real Postgres with the same rows.
//!
//! The Postgres listens on a Unix socket, which costs less than the loopback address of the program.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use futures::TryStreamExt as _;
use serde_json::json;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection};
use tempfile::TempDir;
use watershed_tests::measure::{Report, Unit};
use watershed_tests::postgres::Server;
use watershed_tests::server::fetched;

use super::client::Client;
use super::idle::configure;
use super::projects::select_rows;
use super::serving::{Serving, program};
use super::{ROUNDS, percentile};

/// Questions of a round.
const QUESTIONS: usize = 500;
/// Sessions of one token: below the limit of one.
const SESSIONS: usize = 60;

const VIEW: &str = "type: metrics_view\nmodel: many\ndimensions:\n  - column: word\n  - column: kind\n\
                    measures:\n  - {name: total, expression: sum(amount)}\n";

/// The program with the project `p0`, and with SQL clients.
struct Host {
    folder: TempDir,
    serving: Serving,
    port: u16,
    token: String,
}

impl Host {
    /// Starts the program with these files in the project's folder, once they are built.
    fn start(files: &[(String, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join("p0").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let building = Command::new(program())
            .args(["run", "-C", "p0"])
            .current_dir(folder.path())
            .output();
        assert!(building.unwrap().status.success());
        let token = made(folder.path(), "bench");
        configure(
            folder.path(),
            1,
            "auth: {tokens: tokens.yaml}\nsql: {listen: 127.0.0.1:0}\n",
        );
        let mut serving = Serving::start(folder.path());
        let port = serving.sql_port();
        serving.wait_until_ready();
        Self {
            folder,
            serving,
            port,
            token,
        }
    }

    async fn connect(&self, token: &str) -> PgConnection {
        let mut parts = token.splitn(3, '_').skip(1);
        let options = PgConnectOptions::new()
            .host("127.0.0.1")
            .port(self.port)
            .username(parts.next().unwrap())
            .password(parts.next().unwrap())
            .database("p0")
            .ssl_mode(PgSslMode::Disable);
        options.connect().await.unwrap()
    }
}

/// Makes a token; returns its text.
fn made(folder: &Path, name: &str) -> String {
    let made = Command::new(program())
        .args([
            "token",
            "create",
            "--file",
            "tokens.yaml",
            "--name",
            name,
            "--role",
            "p0=read+query",
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

fn many(rows: usize) -> Vec<(String, String)> {
    let file = |path: &str, text: String| (path.to_owned(), text);
    vec![
        file("watershed.yaml", String::new()),
        file(
            "models/many.sql",
            format!("-- @materialize: true\n{}\n", select_rows(rows)),
        ),
        file("metrics/sold.yaml", VIEW.to_owned()),
    ]
}

async fn count(connection: &mut PgConnection, sql: &'static str) -> usize {
    let mut rows = sqlx::query(sql).fetch(connection);
    let mut number = 0;
    while rows.try_next().await.unwrap().is_some() {
        number += 1;
    }
    number
}

/// Measures rows a second to one client over those of a Postgres, and the round trip of a prepared statement.
pub(crate) async fn rows(report: &Report, number: usize) {
    let Some(postgres) = Server::start() else {
        return;
    };
    let host = Host::start(&many(number));
    let mut own = host.connect(&host.token).await;
    let mut other = PgConnection::connect(&postgres.url()).await.unwrap();
    let made = "CREATE TABLE many AS SELECT i AS id, i % 1000 AS kind, i * 0.5::float8 AS amount, 'word ' || i % 100 AS word \
                FROM generate_series(0::bigint,";
    other
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
            "{made} {}) i",
            number - 1
        ))))
        .await
        .unwrap();
    other.execute("ANALYZE many").await.unwrap();
    let (mut ratios, mut trips) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut times = [0.0; 2];
        for (connection, time) in [&mut own, &mut other].into_iter().zip(&mut times) {
            let begun = Instant::now();
            assert_eq!(
                count(connection, "SELECT id, kind, amount, word FROM many").await,
                number
            );
            *time = begun.elapsed().as_secs_f64();
        }
        ratios.push(times[1] / times[0]);
        let mut asked = Vec::new();
        for _ in 0..QUESTIONS {
            let begun = Instant::now();
            assert_eq!(count(&mut own, "SELECT 1").await, 1);
            asked.push(begun.elapsed().as_secs_f64() * 1_000_000.0);
        }
        trips.push(percentile(asked, 50));
    }
    report.print("pgwire_over_postgres", Unit::Ratio, ratios);
    report.print("pgwire_select1_us", Unit::Microseconds, trips);
    drop((own, other));
    host.serving.stop();
}

/// Measures a question to a metrics view above the same question over HTTP. Each asks for something new, which no answer is kept
/// of.
pub(crate) async fn metrics(report: &Report) {
    let host = Host::start(&many(10_000));
    let mut connection = host.connect(&host.token).await;
    let client = Client {
        address: host.serving.address,
        bearer: format!(
            "authorization: Bearer {}\r\ncontent-type: application/json\r\n",
            host.token
        )
        .leak(),
    };
    let mut web = client.connect().await;
    let mut above = Vec::new();
    for round in 0..ROUNDS {
        let (mut by_sql, mut by_web) = (Vec::new(), Vec::new());
        for number in 0..QUESTIONS / 5 {
            let kind = round * QUESTIONS + number;
            let statement =
                format!("SELECT word, sum(total) FROM metrics.sold WHERE kind <> {kind} GROUP BY word");
            let begun = Instant::now();
            let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(statement))
                .fetch_all(&mut connection)
                .await
                .unwrap();
            by_sql.push(begun.elapsed().as_secs_f64() * 1_000.0);
            assert_eq!(rows.len(), 100);
            let query = json!({"query": {
                "metrics_view": "sold", "dimensions": ["word"], "measures": ["total"],
                "where": {"cond": {"op": "neq", "exprs": [{"name": "kind"}, {"val": kind + QUESTIONS / 5}]}},
            }});
            let begun = Instant::now();
            let answer = web
                .send(
                    "POST",
                    "/v1/instances/p0/metrics/sold/query",
                    "",
                    &query.to_string(),
                )
                .await;
            by_web.push(begun.elapsed().as_secs_f64() * 1_000.0);
            assert!(!answer.is_empty());
        }
        above.push(percentile(by_sql, 50) - percentile(by_web, 50));
    }
    report.print("pgwire_metrics_overhead_ms", Unit::Milliseconds, above);
    drop((connection, web));
    host.serving.stop();
}

/// Measures the memory of a session that has asked once.
pub(crate) async fn idle(report: &Report, tokens: usize) {
    let host = Host::start(&many(10));
    host.serving.stop();
    let tokens: Vec<String> = (0..tokens)
        .map(|number| made(host.folder.path(), &format!("idle{number}")))
        .collect();
    let mut each = Vec::new();
    for _ in 0..ROUNDS {
        let mut serving = Serving::start(host.folder.path());
        let port = serving.sql_port();
        serving.wait_until_ready();
        let host = Host {
            folder: tempfile::tempdir().unwrap(),
            port,
            serving,
            token: host.token.clone(),
        };
        // What the first sessions bring into memory belongs to none of them.
        for _ in 0..SESSIONS {
            count(&mut host.connect(&tokens[0]).await, "SELECT 1").await;
        }
        let before = host.serving.resident_kib();
        let mut open = Vec::new();
        for token in &tokens[1..] {
            for _ in 0..SESSIONS {
                let mut connection = host.connect(token).await;
                count(&mut connection, "SELECT 1").await;
                open.push(connection);
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "there are hundreds")]
        each.push((host.serving.resident_kib() - before) / open.len() as f64);
        drop(open);
        host.serving.stop();
    }
    report.print("idle_kb_pgwire", Unit::Kibibytes, each);
}

/// Measures SQLAlchemy's inspector over many tables, over that of a Postgres with the same tables.
pub(crate) async fn browse(report: &Report, tables: usize) {
    let python = fetched().join("sql-clients");
    let (Some(postgres), true) = (Server::start(), python.exists()) else {
        return;
    };
    let columns = "1 AS a, 'b' AS b, 0.5 AS c, DATE '2024-02-29' AS d";
    let model = |number| {
        (
            format!("models/m{number}.sql"),
            format!("-- @materialize: true\nSELECT {columns}\n"),
        )
    };
    let mut files: Vec<_> = (0..tables).map(model).collect();
    files.push(("watershed.yaml".to_owned(), String::new()));
    let host = Host::start(&files);
    let mut other = PgConnection::connect(&postgres.url()).await.unwrap();
    for number in 0..tables {
        let made = format!("CREATE TABLE m{number} AS SELECT {columns}");
        other
            .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(made)))
            .await
            .unwrap();
    }
    let mut parts = host.token.splitn(3, '_').skip(1);
    let (id, secret) = (parts.next().unwrap(), parts.next().unwrap());
    let urls = [
        format!("postgresql+psycopg://{id}:{secret}@127.0.0.1:{}/p0", host.port),
        format!(
            "postgresql+psycopg://postgres@/postgres?host={}",
            postgres.socket_folder().display()
        ),
    ];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let [own, other] = [&urls[0], &urls[1]].map(|url| {
            let looked = Command::new("python3")
                .env("PYTHONPATH", &python)
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/clients/browse.py"))
                .args([url.as_str(), &tables.to_string()])
                .output()
                .unwrap();
            let (out, said) = (
                String::from_utf8_lossy(&looked.stdout),
                String::from_utf8_lossy(&looked.stderr),
            );
            out.trim()
                .parse::<f64>()
                .unwrap_or_else(|_| panic!("{out}{said}"))
        });
        ratios.push(own / other);
    }
    report.print("browse_1k_over_postgres", Unit::Ratio, ratios);
    host.serving.stop();
}
