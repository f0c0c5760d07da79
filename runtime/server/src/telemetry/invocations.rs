//! Runs within traces: each below the request that it goes back to, as far as that is known.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use opentelemetry::trace::{SpanContext, Status, TraceContextExt as _};
use opentelemetry::{Context, Key};
use opentelemetry_sdk::trace::SpanData;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use watershed_controller::history::Reason;
use watershed_controller::stats::Page;
use watershed_controller::{Builder, InvocationObserver};
use watershed_locks::Unpoisoned as _;

use super::Traces;

/// The most requests that are known: what they asked for begins soon.
const MOST: usize = 1_024;
/// The most links of a reason that are looked at.
const LINKS: usize = 64;

/// The last requests by the origin that the reasons of runs name. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Origins {
    /// The traces of the runtime, if it has some.
    traces: Option<Traces>,
    known: Arc<Mutex<VecDeque<Asked>>>,
}

/// The origin of calls, and the request for which they are made.
type Asked = (Arc<str>, SpanContext);

impl Origins {
    /// Returns the requests of an instance that is about to open.
    pub(crate) fn new(traces: Option<Traces>) -> Self {
        Self {
            traces,
            known: Arc::default(),
        }
    }

    /// Has a controller put its runs into traces, if there are some.
    pub(crate) fn observe(&self, builder: Builder) -> Builder {
        match self.traces {
            Some(_) => builder.observer(self.clone()),
            None => builder,
        }
    }

    /// Adds the numbers of the process's spans to a page, if there are traces.
    pub(crate) fn add_numbers(&self, page: &mut Page) {
        let Some(traces) = &self.traces else { return };
        let counts = traces.counts();
        let numbers = [
            ("sent", &counts.sent),
            ("failed", &counts.failed),
            ("dropped", &counts.dropped),
        ];
        let samples = numbers.map(|(what, number)| (vec![("result", what)], number.load(Ordering::Relaxed)));
        page.family("spans_total", "Spans of traces by what became of them.", &samples);
    }

    /// Notes that calls of this origin are made for the request of the current span; nothing without one.
    pub(crate) fn note(&self, origin: &Arc<str>) {
        let context = Span::current().context();
        let context = context.span().span_context().clone();
        if self.traces.is_none() || !context.is_valid() {
            return;
        }
        let mut known = self.known.lock().unpoisoned();
        known.retain(|(own, _)| own != origin);
        if known.len() >= MOST {
            known.pop_front();
        }
        known.push_back((Arc::clone(origin), context));
    }

    fn find(&self, origin: &str) -> Option<SpanContext> {
        let known = self.known.lock().unpoisoned();
        let found = known.iter().rev().find(|(own, _)| **own == *origin);
        found.map(|(_, context)| context.clone())
    }
}

impl InvocationObserver for Origins {
    /// Puts the run below the request that it goes back to, and links both.
    fn begins(&self, span: &Span, reason: &Reason) {
        let chain = std::iter::successors(Some(reason), |reason| reason.before.as_deref());
        let origins = chain.take(LINKS).filter_map(|reason| reason.origin.as_deref());
        let Some(request) = origins.filter_map(|origin| self.find(origin)).last() else {
            return;
        };
        // A span that nobody takes has no parent.
        let _ = span.set_parent(Context::new().with_remote_span_context(request.clone()));
        span.add_link(request);
    }

    fn failed(&self, span: &Span, code: &str) {
        span.set_attribute("error.type", code.to_owned());
        span.set_status(Status::error(code.to_owned()));
    }
}

/// Names the span of a run by what runs, and that of a request by its route, which is known at its end alone.
pub(super) fn named(mut span: SpanData) -> SpanData {
    let said = |key: &'static str| {
        let key = Key::from_static_str(key);
        let found = span.attributes.iter().find(|own| own.key == key);
        found.map(|own| own.value.as_str().into_owned())
    };
    let name = match &*span.name {
        name if name == super::INVOCATIONS.1 => said("resource.kind").map(|kind| format!("run {kind}")),
        "request" => {
            let both = said("http.request.method").zip(said("http.route"));
            both.map(|(method, route)| format!("{method} {route}"))
        }
        _ => None,
    };
    if let Some(name) = name {
        span.name = Cow::Owned(name);
    }
    span
}
