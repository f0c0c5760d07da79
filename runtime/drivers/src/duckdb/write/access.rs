//! Secrets of the engine for object stores, kept in its memory only: neither in its file nor in the user's home.

use watershed_dialect::{DuckDb, Quoting as _};

use crate::objects::{Access, Driver};

/// Returns the statement that creates a connector's secret; empty if the engine needs none.
pub(super) fn secret(connector: &str, access: &Access, prefixes: &[String]) -> String {
    let (kind, options) = match access.driver {
        Driver::S3 => ("s3", keys(access)),
        Driver::Gcs => ("gcs", keys(access)),
        Driver::Azure => ("azure", connection_string(access)),
        Driver::Https => ("http", headers(access)),
    };
    if options.is_empty() {
        return String::new();
    }
    let scope: Vec<String> = prefixes.iter().map(|prefix| DuckDb.text(prefix)).collect();
    format!(
        "CREATE OR REPLACE SECRET {} (TYPE {kind}, SCOPE [{}], {})",
        DuckDb.name(&format!("watershed_{connector}")),
        scope.join(", "),
        options.join(", ")
    )
}

fn keys(access: &Access) -> Vec<String> {
    let mut options = Vec::new();
    let mut add = |name: &str, value: Option<&str>| {
        options.extend(value.map(|value| format!("{name} {}", DuckDb.text(value))));
    };
    add("KEY_ID", access.key.as_deref());
    add("SECRET", access.secret.as_deref());
    add("SESSION_TOKEN", access.session_token.as_deref());
    add("REGION", access.region.as_deref());
    if let Some(endpoint) = access.endpoint_url() {
        let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", &endpoint));
        add("ENDPOINT", Some(host));
        let style = if access.path_style.unwrap_or(true) {
            "path"
        } else {
            "vhost"
        };
        add("URL_STYLE", Some(style));
        options.push(format!("USE_SSL {}", scheme == "https"));
    } else if access.path_style == Some(true) {
        add("URL_STYLE", Some("path"));
    }
    options
}

fn connection_string(access: &Access) -> Vec<String> {
    let Some(account) = &access.key else {
        return Vec::new();
    };
    let mut text = format!("AccountName={account}");
    if let Some(key) = &access.secret {
        text.push_str(";AccountKey=");
        text.push_str(key);
    }
    match access.endpoint_url() {
        Some(endpoint) => {
            let (scheme, _) = endpoint.split_once("://").unwrap_or(("https", ""));
            text.push_str(&format!(
                ";DefaultEndpointsProtocol={scheme};BlobEndpoint={endpoint}"
            ));
        }
        None => text.push_str(";DefaultEndpointsProtocol=https;EndpointSuffix=core.windows.net"),
    }
    vec![format!("CONNECTION_STRING {}", DuckDb.text(&text))]
}

fn headers(access: &Access) -> Vec<String> {
    let mut options = Vec::new();
    let mut pairs = Vec::new();
    for (name, value) in &access.headers {
        let is_login = name.eq_ignore_ascii_case("authorization");
        match value.strip_prefix("Bearer ").filter(|_| is_login) {
            // The engine shows headers to whoever lists its secrets, and tokens to nobody.
            Some(token) => options.push(format!("BEARER_TOKEN {}", DuckDb.text(token))),
            None => pairs.push(format!("{}: {}", DuckDb.text(name), DuckDb.text(value))),
        }
    }
    if !pairs.is_empty() {
        options.push(format!("EXTRA_HTTP_HEADERS MAP {{{}}}", pairs.join(", ")));
    }
    options
}
