//! The way of spans to the collector: a bounded queue, and a thread that empties it.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use opentelemetry::Context;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, Protocol, SpanExporter,
    WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE_DEFAULT, OTEL_BSP_MAX_QUEUE_SIZE,
    OTEL_BSP_MAX_QUEUE_SIZE_DEFAULT, OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_SCHEDULE_DELAY_DEFAULT, Span,
    SpanData, SpanExporter as _, SpanProcessor,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use watershed_locks::Unpoisoned as _;
use watershed_outside::http;

/// Time limit of a message to the collector, unless the environment says another one.
const WITHIN: Duration = Duration::from_secs(10);
/// The largest queue and batch that the environment may ask for.
const MOST: usize = 65_536;

/// Numbers of spans by what became of them. They only grow.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Spans that the collector has taken.
    pub(crate) sent: AtomicU64,
    /// Spans that were lost with a message that the collector did not take.
    pub(crate) failed: AtomicU64,
    /// Spans for which there was no room in the queue.
    pub(crate) dropped: AtomicU64,
}

/// The queue of ended spans. Adding never waits.
#[derive(Debug)]
pub(super) struct Queue {
    spans: mpsc::Sender<SpanData>,
    /// Wakes the thread before the queue is full.
    full: Arc<Notify>,
    resource: Arc<Mutex<Option<Resource>>>,
    counts: Arc<Counts>,
}

/// The thread that sends, until it is shut down.
#[derive(Debug)]
pub(super) struct Sender {
    ending: CancellationToken,
    counts: Arc<Counts>,
    thread: Mutex<Option<(JoinHandle<()>, std::sync::mpsc::Receiver<()>)>>,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

/// Starts the thread that sends to the collector of the environment.
///
/// # Errors
/// When the address of the collector is none, or the machine has no thread left.
pub(super) fn begin() -> Result<(Queue, Sender), String> {
    let number = |name: &str, usual: usize| {
        let said = env::var(name)
            .ok()
            .and_then(|said| said.trim().parse::<usize>().ok());
        said.filter(|said| *said > 0).unwrap_or(usual)
    };
    let most = number(OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_QUEUE_SIZE_DEFAULT).min(MOST);
    let batch = number(
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE_DEFAULT,
    )
    .min(most);
    let usual = usize::try_from(OTEL_BSP_SCHEDULE_DELAY_DEFAULT.as_millis()).unwrap_or(usize::MAX);
    let every = Duration::from_millis(number(OTEL_BSP_SCHEDULE_DELAY, usual) as u64);
    let usual = usize::try_from(WITHIN.as_millis()).unwrap_or(usize::MAX);
    let within = number(
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
        number(OTEL_EXPORTER_OTLP_TIMEOUT, usual),
    );
    let client = http::Client::new(http::Settings {
        within: Some(Duration::from_millis(within as u64)),
        route: http::Route::Environment,
        authorities: env::var_os("OTEL_EXPORTER_OTLP_CERTIFICATE").map(Into::into),
        ..http::Settings::default()
    });
    let client = client.map_err(|error| error.to_string())?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Collector(client))
        .with_protocol(Protocol::HttpBinary)
        .build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let (spans, waiting) = mpsc::channel(most);
    let (full, resource) = (Arc::new(Notify::new()), Arc::default());
    let (counts, ending) = (Arc::new(Counts::default()), CancellationToken::new());
    let sending = Sending {
        exporter,
        waiting,
        every,
        batch,
        full: Arc::clone(&full),
        resource: Arc::clone(&resource),
        counts: Arc::clone(&counts),
        ending: ending.clone(),
    };
    let (over, is_over) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("traces".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(sending.run()),
                Err(error) => tracing::warn!(%error, "traces are not sent"),
            }
            // Whoever waited may have lost patience.
            let _ = over.send(());
        });
    let thread = thread.map_err(|error| error.to_string())?;
    let sender = Sender {
        ending,
        counts: Arc::clone(&counts),
        thread: Mutex::new(Some((thread, is_over))),
    };
    let queue = Queue {
        spans,
        full,
        resource,
        counts,
    };
    Ok((queue, sender))
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.spans.try_send(super::invocations::named(span)).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if self.spans.capacity() <= self.spans.max_capacity() / 2 {
            self.full.notify_one();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.full.notify_one();
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn set_resource(&mut self, resource: &Resource) {
        *self.resource.lock().unpoisoned() = Some(resource.clone());
    }
}

impl Sender {
    pub(super) fn shut_down(&self, patience: Duration) {
        self.ending.cancel();
        let Some((thread, over)) = self.thread.lock().unpoisoned().take() else {
            return;
        };
        if over.recv_timeout(patience).is_ok() {
            let _ = thread.join();
        }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }
}

/// The work of the thread.
struct Sending {
    exporter: SpanExporter,
    waiting: mpsc::Receiver<SpanData>,
    every: Duration,
    batch: usize,
    full: Arc<Notify>,
    resource: Arc<Mutex<Option<Resource>>>,
    counts: Arc<Counts>,
    ending: CancellationToken,
}

impl Sending {
    /// Sends what waits, from time to time and before the queue is full, until the end.
    async fn run(mut self) {
        loop {
            let is_over = tokio::select! {
                biased;
                () = self.ending.cancelled() => true,
                () = self.full.notified() => false,
                () = tokio::time::sleep(self.every) => false,
            };
            if is_over {
                self.waiting.close();
            }
            if let Some(resource) = self.resource.lock().unpoisoned().take() {
                self.exporter.set_resource(&resource);
            }
            self.empty().await;
            if is_over {
                return;
            }
        }
    }

    async fn empty(&mut self) {
        loop {
            let mut batch = Vec::new();
            while batch.len() < self.batch
                && let Ok(span) = self.waiting.try_recv()
            {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            let number = batch.len() as u64;
            let counted = match self.exporter.export(batch).await {
                Ok(()) => &self.counts.sent,
                Err(error) => {
                    tracing::debug!(%error, "a collector has not taken spans");
                    &self.counts.failed
                }
            };
            counted.fetch_add(number, Ordering::Relaxed);
        }
    }
}

/// The client by which the collector is told, with the bounds of all clients: time, length of an answer, no redirect.
#[derive(Debug)]
struct Collector(http::Client);

#[async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let to = head.uri.to_string().parse()?;
        let call = self.0.request(head.method, to).headers(head.headers);
        let answer = call.body(body.into()).send().await?;
        let status = answer.status();
        // What it says beyond the bound says nothing about the spans.
        let said = answer.body().await.unwrap_or_else(|error| error.read);
        Ok(Response::builder().status(status).body(said.into())?)
    }
}
