//! The requests that runs go back to, which traces need: without the feature `otel` there is nothing to know.

use super::Runtime;
#[cfg(feature = "otel")]
pub(crate) use crate::telemetry::Origins;

/// Returns the requests of an instance that is about to open.
#[cfg(feature = "otel")]
pub(super) fn of(runtime: &Runtime) -> Origins {
    Origins::new(runtime.traces.clone())
}

/// Returns the requests of an instance that is about to open.
#[cfg(not(feature = "otel"))]
pub(super) fn of(_: &Runtime) -> Origins {
    Origins
}

#[cfg(not(feature = "otel"))]
#[derive(Debug, Clone)]
pub(crate) struct Origins;

#[cfg(not(feature = "otel"))]
impl Origins {
    pub(crate) fn observe(&self, builder: watershed_controller::Builder) -> watershed_controller::Builder {
        builder
    }

    pub(crate) fn note(&self, _: &std::sync::Arc<str>) {}
}
