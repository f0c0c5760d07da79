//! The service over HTTP: questions, lists, streams, and what they cost the work beside them.
//!
//! ```
//! cargo bench -p watershed-tests --bench service -- --json
//! ```
//!
//! Client and service share a process and its cores, but for `ready_100_ms`, which starts the program. Each figure is the median
//! of [`ROUNDS`]. `-- --small` takes a twentieth of everything: to see that it works, not how fast.
//!
//! | figure | what is measured |
//! |---|---|
//! | `get_per_s`, `get_p99_ms` | one of 10,000 resources, over 64 connections that are kept, with a token |
//! | `list_100_per_s`, `list_10k_ms` | a page of 100; all pages of 1,000, one after the other |
//! | `get_during_build_p99_ms`, `build_slowdown` | 500 gets a second while 1,000 models are built; that build over one alone |
//! | `stalled_build_slowdown` | that build beside 16 readers who ask for a billion rows and take none, over one alone |
//! | `watch_1k_p99_ms`, `watch_1k_cpu_ratio` | from a commit to the last of 1,000 readers; the CPU of a build that they watch over one that nobody watches |
//! | `jwt_get_over_token` | gets a second with a signed JWT over those with a token, of the program |
//! | `quiet_p99_ms` | one small edit until the project has settled, while a neighbour in the same process builds 1,000 models |
//! | `idle_instance_mb` | memory of the program for an instance of 10 resources at rest |
//! | `idle_kb_http`, `idle_kb_sse` | memory of the program for a connection that has asked once, and for a stream |
//! | `ready_100_ms` | from the start of the program until it is ready, with 100 instances of 10 resources |
//! | `put_to_diagnostics_ms`, `check_ms` | a file of 1,000 is written, or compiled unsaved, until its findings are there |
//! | `lsp_keystroke_ms` | from a key to the findings over a WebSocket, in a project of 1,000 files: the 95th percentile |
//! | `query_overhead_ms`, `query_again_ms` | a small question above the engine's own time, median: of a text that is new, and of one asked before |
//! | `arrow_over_engine`, `csv_mrows_per_s` | 10 million rows of four columns: in Arrow's form over the same rows within the engine; a million rows a second in CSV |
//! | `mcp_over_http` | a tool's call over the same operation by HTTP, median, of the program |
//! | `mcp_stdio_ready_ms` | from the start of `watershed mcp` on 1,000 models, whose folder nobody owns, to the list of tools |
//! | `scrape_10k_ms` | `/metrics` of 100 instances with 100 resources each, of the program |
//! | `otel_build_slowdown` | a build of 1,000 models from nothing whose spans a collector takes, over one without traces, of the program |
//! | `pgwire_over_postgres`, `pgwire_select1_us` | a million rows to one SQL client, a second over those of a real Postgres; the round trip of a prepared statement, median |
//! | `pgwire_metrics_overhead_ms` | a metrics view asked by an SQL client above the same question over HTTP, median |
//! | `idle_kb_pgwire` | memory of the program for an SQL client's session that has asked once |
//! | `browse_1k_over_postgres` | SQLAlchemy's inspector over 1,000 tables, over that of a real Postgres |
//! | `embed_crates_without` | crates of the runtime without the feature `http`, none of which is a web server |

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]
#![allow(clippy::disallowed_methods, reason = "load comes at a pace")]

mod assisting;
mod client;
mod clients;
mod credentials;
mod editing;
mod idle;
mod neighbours;
mod program;
mod projects;
mod rows;
mod serving;
mod traced;
mod watching;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use watershed::api::request::RunRequest;
use watershed::http::{
    Bearers, Grant, Grants, Level, Limits, Service, State, Tokens, Wanted, bind, router_with, serve,
};
use watershed::{Instance, Options, Runtime};
use watershed_tests::measure::{Report, Unit};

use self::client::Client;
use self::projects::{Project, models, themes};

/// Repetitions of each figure.
const ROUNDS: usize = 5;
/// Connections that ask at once.
const CONNECTIONS: usize = 64;
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The path of the instance.
const PLACE: &str = "/v1/instances/it";

/// A project that is served in this process.
struct Served {
    project: Project,
    instance: Arc<Instance>,
    client: Client,
    stop: CancellationToken,
}

impl Served {
    async fn new(project: Project) -> Self {
        let instance = Runtime::new()
            .open(Options {
                remote_edit: true,
                ..Options::new(project.path())
            })
            .await
            .unwrap();
        let instance = Arc::new(instance);
        instance.controller().wait_until_idle(PATIENCE).await.unwrap();
        let state = State::in_memory().await.unwrap();
        let tokens = Tokens::open(Arc::new(state), Vec::new()).await.unwrap();
        let wanted = Wanted {
            name: "bench".to_owned(),
            roles: Grants::one("it", Grant::new(Level::Edit)),
            operations: None,
            select: Vec::new(),
            expires_ms: i64::MAX,
        };
        let token = tokens.create(wanted, "bench", 0).await.unwrap().unwrap().text;
        let service = Service::new().with("it", Arc::clone(&instance));
        let many = NonZeroU32::new(1_000_000).unwrap();
        service.set_limits(Limits {
            requests_per_second: many,
            requests_at_once: many,
            watchers_of_one: usize::MAX,
            watchers: usize::MAX,
            ..Limits::default()
        });
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let client = Client {
            address: listener.local_addr().unwrap(),
            // One for each project, until the process ends.
            bearer: format!("authorization: Bearer {token}\r\n").leak(),
        };
        let stop = CancellationToken::new();
        let routes = router_with(service, Bearers::new(Arc::new(tokens)));
        tokio::spawn(serve(listener, routes, stop.clone()));
        Self {
            project,
            instance,
            client,
            stop,
        }
    }

    async fn close(self) {
        self.stop.cancel();
        self.instance.close(PATIENCE).await.unwrap();
    }
}

fn main() {
    let report = Report::from_args();
    let scale = if std::env::args().any(|argument| argument == "--small") {
        20
    } else {
        1
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let wants = |names: &[&str]| names.iter().any(|name| report.wants(name));
    if wants(&["get_per_s", "get_p99_ms", "list_100_per_s", "list_10k_ms"]) {
        runtime.block_on(questions(&report, 10_000 / scale, 40_000 / scale));
    }
    if wants(&["get_during_build_p99_ms", "build_slowdown"]) {
        runtime.block_on(beside_builds(&report, 1_000 / scale));
    }
    if wants(&["stalled_build_slowdown"]) {
        runtime.block_on(beside_stalled(&report, 1_000 / scale));
    }
    if wants(&["watch_1k_p99_ms", "watch_1k_cpu_ratio"]) {
        runtime.block_on(watching::readers(&report, 1_000 / scale));
    }
    if report.wants("jwt_get_over_token") {
        runtime.block_on(credentials::jwt_over_token(
            &report,
            10_000 / scale,
            40_000 / scale,
        ));
    }
    if report.wants("quiet_p99_ms") {
        runtime.block_on(neighbours::quiet(&report, 1_000 / scale));
    }
    if report.wants("idle_instance_mb") {
        idle::instances(&report, 100 / scale, 400 / scale);
    }
    if wants(&["idle_kb_http", "idle_kb_sse"]) {
        runtime.block_on(idle::connections(&report, 2_000 / scale, 1_000 / scale));
    }
    if wants(&["put_to_diagnostics_ms", "check_ms", "lsp_keystroke_ms"]) {
        runtime.block_on(editing::edits(&report, 1_000 / scale));
    }
    if wants(&["query_overhead_ms", "query_again_ms"]) {
        runtime.block_on(rows::questions(&report));
    }
    if wants(&["arrow_over_engine", "csv_mrows_per_s"]) {
        runtime.block_on(rows::forms(&report, 10_000_000 / scale));
    }
    if report.wants("mcp_over_http") {
        runtime.block_on(assisting::calls(&report));
    }
    if report.wants("mcp_stdio_ready_ms") {
        assisting::ready(&report, 1_000 / scale);
    }
    if report.wants("scrape_10k_ms") {
        runtime.block_on(assisting::scrape(&report, 100 / scale));
    }
    if report.wants("otel_build_slowdown") {
        runtime.block_on(traced::slowdown(&report, 1_000 / scale));
    }
    if wants(&["pgwire_over_postgres", "pgwire_select1_us"]) {
        runtime.block_on(clients::rows(&report, 1_000_000 / scale));
    }
    if report.wants("pgwire_metrics_overhead_ms") {
        runtime.block_on(clients::metrics(&report));
    }
    if report.wants("idle_kb_pgwire") {
        runtime.block_on(clients::idle(&report, 8));
    }
    if report.wants("browse_1k_over_postgres") {
        runtime.block_on(clients::browse(&report, 1_000 / scale));
    }
    if report.wants("ready_100_ms") {
        program::ready(&report, 100 / scale);
    }
    if report.wants("embed_crates_without") {
        program::crates(&report);
    }
}

/// Questions to a project at rest.
async fn questions(report: &Report, resources: usize, gets: usize) {
    let served = Served::new(themes(resources)).await;
    let (mut rates, mut slowest) = (Vec::new(), Vec::new());
    let (mut pages, mut all) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let each = gets / CONNECTIONS;
        let path = move |n: usize| format!("{PLACE}/resources/theme/t{}", n % resources);
        let (took, times) = crowd(served.client, each, path).await;
        rates.push((each * CONNECTIONS) as f64 / took.as_secs_f64());
        slowest.push(percentile(times, 99));
        let (took, times) = crowd(served.client, 40, |_| format!("{PLACE}/resources?limit=100")).await;
        pages.push(times.len() as f64 / took.as_secs_f64());
        all.push(served.client.all_pages().await.as_secs_f64() * 1_000.0);
    }
    report.print("get_per_s", Unit::PerSecond, rates);
    report.print("get_p99_ms", Unit::Milliseconds, slowest);
    report.print("list_100_per_s", Unit::PerSecond, pages);
    report.print("list_10k_ms", Unit::Milliseconds, all);
    served.close().await;
}

/// Questions while models are built: what they take, and what they cost the build.
async fn beside_builds(report: &Report, number: usize) {
    let (mut slowest, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let served = Served::new(models(number)).await;
        // The project is warm, so that both builds find the same.
        build(&served, 1).await;
        // A build costs more after every one before: what is asked beside stands in the middle of two that are alone.
        let mut alone = build(&served, 2).await;
        let done = CancellationToken::new();
        let asking = tokio::spawn({
            let (client, done) = (served.client, done.clone());
            async move { client.at_a_pace(500, done).await }
        });
        let beside = build(&served, 3).await;
        done.cancel();
        slowest.push(percentile(asking.await.unwrap(), 99));
        alone += build(&served, 4).await;
        ratios.push(2.0 * beside.as_secs_f64() / alone.as_secs_f64());
        served.close().await;
    }
    report.print("get_during_build_p99_ms", Unit::Milliseconds, slowest);
    report.print("build_slowdown", Unit::Ratio, ratios);
}

/// Builds while readers hold all places and take nothing.
async fn beside_stalled(report: &Report, number: usize) {
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let served = Served::new(models(number)).await;
        build(&served, 1).await;
        let mut alone = build(&served, 2).await;
        let mut stalled = Vec::new();
        for _ in 0..16 {
            stalled.push(served.client.stall().await);
        }
        let beside = build(&served, 3).await;
        drop(stalled);
        alone += build(&served, 4).await;
        ratios.push(2.0 * beside.as_secs_f64() / alone.as_secs_f64());
        served.close().await;
    }
    report.print("stalled_build_slowdown", Unit::Ratio, ratios);
}

/// Builds all models of a project anew, and returns the time that takes.
async fn build(served: &Served, edit: usize) -> Duration {
    served.project.edit(edit);
    let begun = Instant::now();
    served.instance.run(RunRequest::default()).await.unwrap();
    begun.elapsed()
}

/// Asks over many connections at once, each of them one question after the other; returns the whole time and that of each in
/// milliseconds.
async fn crowd(
    client: Client,
    each: usize,
    path: impl Fn(usize) -> String + Copy + Send + 'static,
) -> (Duration, Vec<f64>) {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(client.connect().await);
    }
    let begun = Instant::now();
    let asking = connections
        .into_iter()
        .enumerate()
        .map(|(number, mut connection)| {
            tokio::spawn(async move {
                let mut times = Vec::with_capacity(each);
                for n in 0..each {
                    let asked = Instant::now();
                    connection.get(&path(number * each + n)).await;
                    times.push(asked.elapsed().as_secs_f64() * 1_000.0);
                }
                times
            })
        });
    let mut times = Vec::new();
    for one in asking.collect::<Vec<_>>() {
        times.extend(one.await.unwrap());
    }
    (begun.elapsed(), times)
}

/// Returns a percentile.
fn percentile(mut times: Vec<f64>, which: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = times.len() * which / 100;
    times[at.min(times.len() - 1)]
}
