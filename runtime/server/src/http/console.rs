//! The console: its page, and the scripts, styles and fonts of the page.
//!
//! A release build embeds the files of `console/dist`; a debug build reads them from the disk.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, VARY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use rust_embed::Embed;

use super::answers;
use super::service::Service;

/// The built files of the console, from `make console`.
#[derive(Embed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Files;

/// The element of the page that holds the path prefix of the service.
const BASE: &str = "<base href=\"/\" />";

/// The `Content-Security-Policy` of pages: content of this server alone, and no framing by other sites.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; worker-src 'self'; \
                      connect-src 'self'; img-src 'self' data: blob:; base-uri 'self'; form-action 'none'; \
                      frame-ancestors 'none'";
/// The `Permissions-Policy` of pages: no camera, location, microphone, payment or USB device.
const PERMISSIONS: &str = "camera=(), geolocation=(), microphone=(), payment=(), usb=()";
/// The `Cache-Control` of files whose names contain a hash of their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Returns the console's page, which renders the view that the address names.
pub(super) fn page(service: &Service) -> Response {
    let Some(page) = Files::get("index.html") else {
        let missing = "The console was not built: `make console` builds it.\n".to_owned();
        let mut response = answers::of_type("text/plain; charset=utf-8", missing);
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    shown(&String::from_utf8_lossy(&page.data), service.base())
}

/// Returns the page for a path prefix. Prefixes consist of plain names, so nothing is escaped.
fn shown(page: &str, base: &str) -> Response {
    let page = page.replacen(BASE, &format!("<base href=\"{base}/\" />"), 1);
    let mut response = answers::of_type("text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    let own: [(HeaderName, &'static str); 5] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("permissions-policy"), PERMISSIONS),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in own {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns a file of the console, in the smallest encoding that the browser accepts.
pub(super) fn file(name: &str, headers: &HeaderMap) -> Response {
    let reads = headers
        .get(ACCEPT_ENCODING)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let reads = |form: &str| {
        reads
            .split(',')
            .any(|one| one.split(';').next().map(str::trim) == Some(form))
    };
    let forms = [("br", ".br"), ("gzip", ".gz")];
    let small = forms.into_iter().filter(|(form, _)| reads(form));
    let found = small
        .map(|(form, ending)| (Some(form), format!("assets/{name}{ending}")))
        .chain([(None, format!("assets/{name}"))])
        .find_map(|(form, path)| Some((form, Files::get(&path)?.data)));
    let (Some((form, data)), Some(media)) = (found, media(name)) else {
        let mut response =
            answers::of_type("text/plain; charset=utf-8", "there is no such file\n".to_owned());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    };
    let mut response = answers::of_type(media, body(data));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    // A worker asks under the policy of its own file.
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Some(form) = form {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(form));
    }
    response
}

fn body(data: Cow<'static, [u8]>) -> Body {
    match data {
        Cow::Borrowed(data) => Body::from(data),
        Cow::Owned(data) => Body::from(data),
    }
}

/// Returns the media type of a console file; none for files that the page never requests.
fn media(name: &str) -> Option<&'static str> {
    match name.rsplit_once('.')?.1 {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "woff2" => Some("font/woff2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_pages_ask_for_have_a_type() {
        assert_eq!(media("index-1a2b.js"), Some("text/javascript; charset=utf-8"));
        for name in ["index-1a2b.js.br", "index.html", "", "js", "../../../etc/passwd"] {
            assert!(media(name).is_none(), "{name}");
        }
    }

    #[test]
    fn the_page_of_the_repository_has_a_place_for_the_path_and_may_only_show() {
        let page = include_str!("../../../../console/index.html");
        assert_eq!(page.matches(BASE).count(), 1);
        let response = shown(page, "/data");
        let policy = response.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    }

    #[test]
    fn no_name_of_a_file_leads_out_of_the_folder() {
        for name in [
            "../index.html",
            "..%2findex.html",
            "../../package.json",
            "/etc/hostname.js",
            "../../../Cargo.js",
        ] {
            assert_eq!(
                file(name, &HeaderMap::new()).status(),
                StatusCode::NOT_FOUND,
                "{name}"
            );
        }
    }
}
