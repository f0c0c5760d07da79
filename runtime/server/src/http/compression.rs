//! Compression of bodies by `Accept-Encoding`: gzip, Brotli, Zstandard.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

/// Bytes below which a body of known size stays as it is.
const LEAST_BYTES: u16 = 1_024;

/// Media types that are compressed by themselves, and streams whose parts must arrive at once.
const LEFT: [&str; 7] = [
    "text/event-stream",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.apache.parquet",
    "application/octet-stream",
    "image/png",
    "image/jpeg",
    "font/woff2",
];

/// Returns the layer that compresses bodies. An ETag stays that of the content before its compression.
pub(super) fn layer() -> CompressionLayer<impl Predicate> {
    // The fastest level keeps up with the engine, and has most of the gain on rows.
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(LEAST_BYTES).and(is_compressible))
}

/// Returns true if compression makes a body of this type smaller, and may delay its parts.
fn is_compressible(
    _: axum::http::StatusCode,
    _: axum::http::Version,
    headers: &HeaderMap,
    _: &axum::http::Extensions,
) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let media = media.unwrap_or_default().split(';').next().unwrap_or_default();
    !LEFT.contains(&media.trim())
}
