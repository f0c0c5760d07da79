//! The requests that runs go back to, which traces need: without the feature `otel` there is nothing to know.

#[cfg(feature = "otel")]
pub(crate) use crate::telemetry::Origins;

#[cfg(not(feature = "otel"))]
#[derive(Debug, Clone)]
pub(crate) struct Origins;

#[cfg(not(feature = "otel"))]
impl Origins {
    pub(crate) fn of(_: &super::Runtime) -> Self {
        Self
    }

    pub(crate) fn observe(&self, builder: watershed_controller::Builder) -> watershed_controller::Builder {
        builder
    }

    pub(crate) fn note(&self, _: &std::sync::Arc<str>) {}
}
