//! Traces by OpenTelemetry, with the feature `otel`: from a request by way of the runs that it asked for to the engine's
//! statements.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt as _;
//! use tracing_subscriber::util::SubscriberInitExt as _;
//! use watershed::Runtime;
//! use watershed::telemetry::Traces;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut runtime = Runtime::new();
//! let traces = Traces::from_environment()?;
//! if let Some(traces) = &traces {
//!     runtime = runtime.with_traces(traces.clone());
//! }
//! let layer = traces.as_ref().map(Traces::layer);
//! tracing_subscriber::registry().with(layer).init();
//! // ... and at the end:
//! if let Some(traces) = traces {
//!     traces.shut_down(std::time::Duration::from_secs(5));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here is global, and without a collector in the environment nothing is made. Spans are those of `tracing`, which an
//! embedder's own layer of OpenTelemetry takes as well: targets `watershed::request`, `watershed::statement` and the controller's.

mod invocations;
mod sender;

pub(crate) use invocations::Origins;

use std::env;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use opentelemetry::KeyValue;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use watershed_drivers::olap::STATEMENTS;

use self::sender::{Counts, Sender};
use crate::targets::REQUESTS;

/// Beginning of the targets of the controller's spans, and the name of the one of an invocation.
const INVOCATIONS: (&str, &str) = ("watershed_controller", "invocation");

/// The error of traces that can't be sent as the environment wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("traces can't be sent: {0}")]
pub struct TracesError(String);

/// Traces on their way to a collector. Clones share them.
#[derive(Debug, Clone)]
pub struct Traces {
    provider: SdkTracerProvider,
    sender: Arc<Sender>,
}

impl Traces {
    /// Prepares traces as the variables `OTEL_*` of the environment say; none unless these name a collector. Nothing waits for
    /// the collector: spans that can't be sent are dropped and counted.
    ///
    /// # Errors
    /// When the collector's address or protocol can't be used.
    pub fn from_environment() -> Result<Option<Self>, TracesError> {
        if !is_wanted(&|name| env::var(name).ok()) {
            return Ok(None);
        }
        for name in [OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, OTEL_EXPORTER_OTLP_PROTOCOL] {
            let protocol = env::var(name).unwrap_or_default();
            if !["", "http/protobuf"].contains(&protocol.as_str()) {
                let message = format!("`{name}` says `{protocol}`, and only `http/protobuf` is spoken");
                return Err(TracesError(message));
            }
        }
        let (queue, sender) = sender::begin().map_err(TracesError)?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(queue)
            .with_resource(resource(&|name| env::var(name).ok()))
            .build();
        Ok(Some(Self {
            provider,
            sender: Arc::new(sender),
        }))
    }

    /// Returns the layer that takes the spans, as a part of the subscriber of the process. Log lines are no part of traces.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let is_traced = |metadata: &Metadata<'_>| {
            let (target, name) = (metadata.target(), metadata.name());
            let is_invocation = target.starts_with(INVOCATIONS.0) && name == INVOCATIONS.1;
            metadata.is_span() && (is_invocation || [REQUESTS, STATEMENTS].contains(&target))
        };
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("watershed"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_traced))
    }

    /// Sends what waits, for as long as there is patience, and nothing afterwards. Blocks the thread.
    pub fn shut_down(&self, patience: Duration) {
        self.sender.shut_down(patience);
    }

    /// Returns the numbers of spans by what became of them.
    pub(crate) fn counts(&self) -> &Counts {
        self.sender.counts()
    }
}

/// Puts the span of a request below the one that the caller's header `traceparent` names, if that can be read.
pub(crate) fn take_up(span: &Span, headers: &HeaderMap) {
    let caller = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if caller.span().span_context().is_valid() {
        // It has begun nothing yet.
        let _ = span.set_parent(caller);
    }
}

/// Returns true if the environment names a collector, and does not turn traces off.
fn is_wanted(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let says = |name: &str, word: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    let is_off = says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none");
    let is_on = says("OTEL_TRACES_EXPORTER", "otlp")
        || is_set(OTEL_EXPORTER_OTLP_ENDPOINT)
        || is_set(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT);
    is_on && !is_off
}

/// Returns the description of this process: as the environment says, by default the service `watershed`.
fn resource(variable: &dyn Fn(&str) -> Option<String>) -> Resource {
    let said = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_named = variable("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || said
            .split(',')
            .any(|pair| pair.trim_start().starts_with("service.name="));
    let resource =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match is_named {
        true => resource.build(),
        false => resource.with_service_name("watershed").build(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_api30_traces_are_made_where_a_collector_is_named_alone() {
        for (said, wanted) in [
            (&[][..], false),
            (&[("OTEL_SERVICE_NAME", "shop")], false),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a")], true),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], false),
            (&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a")], true),
            (&[("OTEL_TRACES_EXPORTER", "otlp")], true),
            (
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
                    ("OTEL_TRACES_EXPORTER", "none"),
                ],
                false,
            ),
            (
                &[
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
                    ("OTEL_SDK_DISABLED", "TRUE"),
                ],
                false,
            ),
        ] {
            let variable = |name: &str| {
                let found = said.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(is_wanted(&variable), wanted, "{said:?}");
        }
        let name = |said: &str| {
            let variable = |name: &str| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| said.to_owned());
            let found = resource(&variable).get(&"service.name".into());
            found.map(|name| name.to_string()).unwrap_or_default()
        };
        assert_eq!(name("team=data"), "watershed");
        assert_ne!(name("team=data, service.name=shop"), "watershed");
    }
}
