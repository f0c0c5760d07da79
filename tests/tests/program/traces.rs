//! Traces by OpenTelemetry, taken by a collector on loopback.

use std::io::{self, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::receiver::read;
use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// The most time that a span takes to arrive: far more than any needs.
const LONG: Duration = Duration::from_secs(60);

/// The treatment of messages by a collector.
#[derive(Debug, Clone)]
enum Habit {
    /// It takes the spans.
    Takes,
    /// It says nothing, and holds the connection.
    Hangs,
    /// It sends whoever comes to another address.
    Redirects(String),
    /// It answers with more than anybody reads.
    Floods,
}

/// The spans of a collector, and the number of messages.
type Taken = (Vec<Span>, usize);

/// A collector, with what it took.
#[derive(Clone)]
struct Collector {
    address: String,
    taken: Arc<(Mutex<Taken>, Condvar)>,
}

impl Collector {
    fn start(habit: Habit) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let collector = Self {
            address: format!("http://{}", listener.local_addr().expect("it is bound")),
            taken: Arc::default(),
        };
        let own = collector.clone();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for mut stream in listener.incoming().flatten() {
                // Whoever goes away in the middle has sent nothing.
                let _ = own.exchange(&mut stream, &habit);
                held.push(stream);
            }
        });
        collector
    }

    fn exchange(&self, stream: &mut TcpStream, habit: &Habit) -> io::Result<()> {
        let (headers, body) = read(stream)?;
        assert_eq!(
            headers.get("content-type").map(String::as_str),
            Some("application/x-protobuf")
        );
        let message = ExportTraceServiceRequest::decode(&body[..]).map_err(io::Error::other)?;
        let spans = message.resource_spans.into_iter().flat_map(|it| it.scope_spans);
        {
            let mut taken = self.taken.0.lock().unwrap_or_else(PoisonError::into_inner);
            taken.0.extend(spans.flat_map(|it| it.spans));
            taken.1 += 1;
        }
        self.taken.1.notify_all();
        match habit {
            Habit::Takes => write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            Habit::Hangs => Ok(()),
            Habit::Redirects(to) => write!(
                stream,
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            ),
            Habit::Floods => {
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")?;
                let block = vec![0; 1 << 16];
                (0..1_000_000_000 / block.len()).try_for_each(|_| stream.write_all(&block))
            }
        }
    }

    /// Waits for a span, and returns it.
    fn span(&self, what: &str, is_it: impl Fn(&Span) -> bool) -> Span {
        let mut found = None;
        let taken = self.taken.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.taken.1.wait_timeout_while(taken, LONG, |(spans, _)| {
            found = spans.iter().find(|span| is_it(span)).cloned();
            found.is_none()
        });
        let (taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        found.unwrap_or_else(|| panic!("no span {what} among {:#?}", taken.0))
    }

    fn messages(&self) -> usize {
        self.taken.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// A project whose program tells this collector.
    fn traced(&self, project: Sandbox) -> Sandbox {
        project
            .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &self.address)
            .with_variable("OTEL_BSP_SCHEDULE_DELAY", "20")
    }
}

fn project() -> Sandbox {
    let model = "SELECT 4242 AS n, 'hunter22' AS word";
    Sandbox::with(&[("watershed.yaml", ""), ("models/a.sql", model)])
}

fn text(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|own| own.key == key);
    let value = found.and_then(|own| own.value.as_ref()?.value.clone());
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of the only instance.
fn name(service: &Serving) -> String {
    let listed = service.json("/v1/instances");
    listed["instances"][0]["name"]
        .as_str()
        .expect("a name")
        .to_owned()
}

fn refresh(service: &Serving, more: &str) -> u16 {
    let model = format!("/v1/instances/{}/resources/model/a", name(service));
    // The files are read while the first calls are answered.
    while service.ask("GET", &model, "").0 == 404 {}
    let headers = format!("prefer: wait=60\r\ncontent-type: application/json\r\n{more}");
    service
        .send("POST", &format!("{model}/refresh"), &headers, "{}")
        .0
}

#[test]
fn s_api30_one_trace_leads_from_a_callers_header_to_request_run_and_statement() {
    let collector = Collector::start(Habit::Takes);
    let project = collector.traced(project());
    let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let header = format!("traceparent: 00-{trace}-00f067aa0ba902b7-01\r\n");
    assert_eq!(refresh(&service, &header), 200);
    let is_ours = |span: &Span| hex(&span.trace_id) == trace;
    let request = collector.span("of the request", |span| {
        is_ours(span) && span.name.starts_with("POST ")
    });
    assert_eq!(hex(&request.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(
        request.name,
        "POST /v1/instances/{instance}/resources/{kind}/{name}/refresh"
    );
    assert_eq!(text(&request, "http.response.status_code"), "200");
    assert_eq!(text(&request, "watershed.instance"), name(&service));
    let run = collector.span("of the run", |span| is_ours(span) && span.name == "run model");
    assert_eq!(text(&run, "resource.name"), "a");
    assert_eq!(run.parent_span_id, request.span_id);
    let linked: Vec<_> = run.links.iter().map(|link| link.span_id.clone()).collect();
    assert_eq!(linked, [request.span_id]);
    let statement = collector.span("of the statement", |span| {
        is_ours(span) && span.name == "statement" && text(span, "db.query.text").contains("AS word")
    });
    assert_eq!(text(&statement, "db.system.name"), "duckdb");
    assert_eq!(statement.parent_span_id, run.span_id);
    // A header that can't be read begins a trace of its own.
    assert_eq!(
        refresh(&service, "traceparent: 00-zz-00f067aa0ba902b7-01\r\n"),
        200
    );
    collector.span("of its own", |span| {
        !is_ours(span) && span.name.ends_with("/refresh") && span.parent_span_id.is_empty()
    });
    let taken = collector.taken.0.lock().unwrap_or_else(PoisonError::into_inner);
    let all = format!("{:?}", taken.0);
    assert!(!all.contains("hunter22") && !all.contains("4242"), "{all}");
}

#[test]
fn s_api30_a_failed_run_is_an_error_with_its_code() {
    let collector = Collector::start(Habit::Takes);
    let project = collector.traced(Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT error('no') AS n"),
    ]));
    project.run(1);
    let run = collector.span("of the run", |span| span.name == "run model");
    assert_ne!(text(&run, "error.type"), "");
    assert_eq!(run.status.map(|status| status.code), Some(2));
}

#[test]
fn s_api30_no_collector_holds_anything_up_and_lost_spans_are_counted() {
    let elsewhere = Collector::start(Habit::Takes);
    for habit in [
        Habit::Hangs,
        Habit::Floods,
        Habit::Redirects(elsewhere.address.clone()),
    ] {
        let collector = Collector::start(habit.clone());
        let project = collector
            .traced(project())
            .with_variable("OTEL_BSP_MAX_QUEUE_SIZE", "2")
            .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "1000");
        let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
        assert_eq!(refresh(&service, ""), 200);
        collector.span("at all", |_| true);
        let began = std::time::Instant::now();
        loop {
            let (_, _, page) = service.ask("GET", "/metrics", "");
            let counted = |result: &str| {
                let name = format!("watershed_spans_total{{result=\"{result}\"}} ");
                let line = page.lines().find_map(|line| line.strip_prefix(&name));
                line.and_then(|number| number.parse::<u64>().ok()).expect(&page)
            };
            // Of an answer without end the beginning is enough.
            let is_taken = matches!(habit, Habit::Floods);
            if counted(if is_taken { "sent" } else { "failed" }) > 0 {
                break;
            }
            assert!(began.elapsed() < LONG, "{habit:?}: {page}");
        }
    }
    assert_eq!(elsewhere.messages(), 0, "a redirect is not followed");
}

#[test]
fn s_api30_without_a_collector_in_the_environment_nothing_is_sent_and_nothing_counted() {
    let collector = Collector::start(Habit::Takes);
    let project = collector
        .traced(project())
        .with_variable("OTEL_SDK_DISABLED", "true");
    let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    assert_eq!(refresh(&service, ""), 200);
    let (_, _, page) = service.ask("GET", "/metrics", "");
    assert!(
        page.contains("watershed_up") && !page.contains("watershed_spans_total"),
        "{page}"
    );
    drop(service);
    assert_eq!(collector.messages(), 0);
    // One that is spoken to in another way is no reason not to begin.
    let project = project
        .with_variable("OTEL_SDK_DISABLED", "")
        .with_variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    let said = project.call(&["validate"]);
    assert!(
        said.stderr.contains("only `http/protobuf` is spoken"),
        "{}",
        said.stderr
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(collector.messages(), 0);
}
