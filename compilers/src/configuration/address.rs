//! Keys of the names under which a service is reached.

use crate::{diagnostics::Code, yaml::Fields};

pub(super) fn hosts(fields: &mut Fields<'_>) -> Vec<String> {
    let named = fields.placed_texts("hosts");
    for (host, at) in &named {
        if !is_host(host) {
            let message = format!("\"{host}\" is no name of a host");
            let hint = "write a name such as `data.example.org`, without `https://`, a path or a pattern";
            fields
                .findings()
                .add_with_hint(*at, Code::InvalidValue, message, hint);
        }
    }
    named.into_iter().map(|(host, _)| host).collect()
}

/// Returns true if the text is a valid host name, with or without a port.
pub fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
    };
    name.len() <= 253 && name.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

pub(super) fn base(fields: &mut Fields<'_>) -> String {
    let Some(node) = fields.text_node("base") else {
        return String::new();
    };
    let text = node.scalar_text().unwrap_or_default();
    match plain_base(&text) {
        Some(base) => base.to_owned(),
        None => {
            let message = format!("\"{text}\" is no path to stand below");
            let hint = "write a slash and plain names, such as `/data`";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            String::new()
        }
    }
}

/// Returns a path prefix without a slash at its end; none if the text is not a plain path.
pub fn plain_base(text: &str) -> Option<&str> {
    let base = text.trim_end_matches('/');
    let is_plain = |segment: &str| {
        let is_of_a_path = |sign: char| sign.is_ascii_alphanumeric() || "-_.~".contains(sign);
        !segment.is_empty() && segment.chars().all(is_of_a_path) && !segment.trim_matches('.').is_empty()
    };
    let is_path = base
        .strip_prefix('/')
        .is_some_and(|path| path.split('/').all(is_plain));
    (base.is_empty() || is_path).then_some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_to_stand_below_has_plain_names() {
        for (base, taken) in [("", ""), ("/", ""), ("/data", "/data"), ("/a/b-1/", "/a/b-1")] {
            assert_eq!(plain_base(base), Some(taken), "{base}");
        }
        for base in ["data", "/{x}", "/:x", "/a b", "/da?ta", "//x", "/a/../b", "/."] {
            assert!(plain_base(base).is_none(), "{base}");
        }
    }

    #[test]
    fn names_of_hosts_have_no_scheme_path_or_pattern() {
        for host in ["data.example.org", "data", "data.example.org:8443", "10.0.0.1"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "*", "https://x", "x/y", "*.example.org", "a..b", "x:y", "a b"] {
            assert!(!is_host(host), "{host}");
        }
    }
}
