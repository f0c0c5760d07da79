//! Costs of connectors: against servers on loopback, over what the engine or a plain client takes for the same.
//!
//! ```
//! scripts/fetch-extensions && scripts/fetch-test-servers
//! cargo bench -p watershed-tests --bench connectors -- --json
//! ```
//!
//! | figure | measures |
//! |---|---|
//! | `s3_list_10k_alone_s` | the requests for the pages of 10,000 objects, alone |
//! | `s3_list_10k_s` | 10,000 objects listed, and compared with those of before; nothing changed |
//! | `s3_list_10k_over_listing` | the same over the requests for the pages alone |
//! | `s3_read_over_engine` | 1 GB of Parquet from a store into a table, over a process in which the engine alone does it |
//! | `postgres_read_over_engine` | a table of Postgres into a table, likewise |
//! | `unchanged_100_sources_ms` | 100 files of a web server asked, nothing changed, beyond one round trip each, 16 at a time |

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]

mod alone;
mod program;
mod servers;

use tokio_util::sync::CancellationToken;
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::objects::{self, Access, Driver};
use watershed_tests::measure::{Report, Unit, time};
use watershed_tests::postgres;
use watershed_tests::s3::Store;

use program::Project;

/// Objects that are listed.
const OBJECTS: usize = 10_000;
/// Connections over which they are written.
const WRITERS: usize = 4;
/// Rows of the Parquet file: about 1 GB.
const STORED_ROWS: u64 = 20_000_000;
/// Rows of the table of Postgres.
const TABLE_ROWS: u64 = 5_000_000;
/// Times that each reading is measured.
const SAMPLES: usize = 9;

fn main() {
    if alone::is_asked() {
        return alone::run();
    }
    let report = Report::from_args();
    if ["s3_list_10k_alone_s", "s3_list_10k_s", "s3_list_10k_over_listing"]
        .iter()
        .any(|name| report.wants(name))
    {
        listing(&report);
    }
    if report.wants("s3_read_over_engine") {
        store(&report);
    }
    if report.wants("postgres_read_over_engine") {
        table(&report);
    }
    if report.wants("unchanged_100_sources_ms") {
        web(&report);
    }
}

fn listing(report: &Report) {
    let Some(store) = Store::start() else { return };
    store.create_bucket("lake");
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = &store;
            scope.spawn(move || {
                for object in (writer..OBJECTS).step_by(WRITERS) {
                    store.write("lake", &format!("many/{object:05}.csv"), b"n\n1\n");
                }
            });
        }
    });
    let access = Access {
        driver: Driver::S3,
        key: Some("key-of-a-bench".into()),
        secret: Some("secret-of-a-bench".into()),
        endpoint: Some(store.url()),
        ..Access::default()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cancel = CancellationToken::new();
    let look = || {
        let looked = objects::look(&access, "s3://lake/many/*.csv", &cancel);
        runtime.block_on(looked).unwrap()
    };
    let before = look();
    let (mut listed, mut asked, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let (alone, keys) = time(|| store.keys("lake"));
        assert!(keys.len() == OBJECTS, "{} keys", keys.len());
        let (took, same) = time(|| look() == before);
        assert!(same, "nothing changed");
        listed.push(alone.as_secs_f64());
        asked.push(took.as_secs_f64());
        ratios.push(took.as_secs_f64() / alone.as_secs_f64());
    }
    report.print("s3_list_10k_alone_s", Unit::Seconds, listed);
    report.print("s3_list_10k_s", Unit::Seconds, asked);
    report.print("s3_list_10k_over_listing", Unit::Ratio, ratios);
}

/// An engine in memory that finds the extensions.
fn engine() -> ByHand {
    let engine = ByHand::in_memory();
    alone::find_extensions(&engine);
    engine
}

/// The median of what a full refresh of the source takes, over that of a process of the engine alone.
fn over_engine(report: &Report, name: &str, project: &Project, statements: &[String]) {
    project.call(&["run"]);
    let ratio = || {
        let alone = alone::takes(statements);
        let (took, ()) = time(|| project.call(&["refresh", "--full", "rows"]));
        took.as_secs_f64() / alone.as_secs_f64()
    };
    let ratios = (0..SAMPLES).map(|_| ratio()).collect();
    report.print(name, Unit::Ratio, ratios);
}

fn store(report: &Report) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.parquet");
    let made = format!(
        "COPY (SELECT range AS id, md5(range::VARCHAR) AS digest, random() AS price FROM range({STORED_ROWS})) \
         TO '{}' (FORMAT parquet, COMPRESSION uncompressed)",
        file.display()
    );
    engine().run(&made);
    // Of one object a store's answers are those of a web server, and this one costs little beside what is measured.
    let server = servers::Web::start(std::fs::read(&file).unwrap());
    drop(folder);
    let endpoint = server.url();
    let connector = format!(
        "type: connector\ndriver: s3\nkey_id: key-of-a-bench\nsecret: secret-of-a-bench\nendpoint: {endpoint}\n"
    );
    let project = Project::new(&[
        ("connectors/lake.yaml", &connector),
        (
            "sources/rows.yaml",
            "connector: lake\npath: s3://lake/rows.parquet\n",
        ),
    ]);
    let host = endpoint.trim_start_matches("http://");
    let statements = [
        format!(
            "CREATE SECRET (TYPE s3, KEY_ID 'a', SECRET 'b', ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
        ),
        "CREATE TABLE rows AS FROM read_parquet('s3://lake/rows.parquet')".to_owned(),
    ];
    over_engine(report, "s3_read_over_engine", &project, &statements);
}

fn table(report: &Report) {
    let Some(server) = postgres::Server::start() else {
        return;
    };
    let attach = format!("ATTACH '{}' AS shop (TYPE postgres)", server.url());
    let maker = engine();
    maker.run(&attach);
    maker.run(&format!(
        "CREATE TABLE shop.rows AS SELECT range AS id, md5(range::VARCHAR) AS digest, random() AS price FROM range({TABLE_ROWS})"
    ));
    // Without statistics the engine reads with one thread or two, as it happens, until the server has gathered them.
    maker.run("CALL postgres_execute('shop', 'ANALYZE rows')");
    let connector = format!(
        "driver: postgres\nhost: {}\nuser: postgres\ndbname: postgres\n",
        server.socket_folder().display()
    );
    let project = Project::new(&[
        ("connectors/shop.yaml", &connector),
        (
            "sources/rows.yaml",
            "type: source\nconnector: shop\ntable: rows\n",
        ),
    ]);
    let statements = [attach, "CREATE TABLE rows AS FROM shop.rows".to_owned()];
    over_engine(report, "postgres_read_over_engine", &project, &statements);
}

fn web(report: &Report) {
    let server = servers::Web::start(*b"n\n1\n");
    let source = |number: usize| {
        let text = format!("connector: https\npath: {}/{number}.csv\n", server.url());
        (format!("sources/s{number}.yaml"), text)
    };
    let sources: Vec<(String, String)> = (0..100).map(source).collect();
    let files: Vec<(&str, &str)> = sources
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let project = Project::new(&files);
    project.call(&["run"]);
    let idle = time(|| project.call(&["run"])).0;
    let trips = server.round_trips(100, 16);
    let asked = (0..SAMPLES).map(|_| {
        let (took, ()) = time(|| project.call(&["refresh", "--select", "kind:source", "--json"]));
        (took.saturating_sub(idle).saturating_sub(trips)).as_secs_f64() * 1_000.0
    });
    report.print("unchanged_100_sources_ms", Unit::Milliseconds, asked.collect());
}
