//! Declared proxies: the client's address, scheme and host as a proxy reports them.
//!
//! `Forwarded` (RFC 7239) and `X-Forwarded-For`, `-Proto` and `-Host` are read from declared proxies alone; from anybody else they are
//! ignored. A proxy that sets one form and passes the other on unseen would let its clients choose what is believed, so both
//! forms must say the same.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;
use watershed_api::{Code, Problem};

/// The networks of declared proxies. A connection over a Unix socket always comes from a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxies(Vec<IpNet>);

/// The client of a request, as far as it is known: an extension of each request from a [`Door`](super::Door).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// Address of the client; none if the proxy does not report it.
    pub address: Option<IpAddr>,
    /// True if the client's own connection is encrypted.
    pub is_encrypted: bool,
    /// True if the request comes through a declared proxy.
    pub is_behind_proxy: bool,
    /// Host that the proxy reports; none without a proxy.
    pub(super) host: Option<String>,
}

impl Proxies {
    /// Creates the list of declared proxies.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// Returns true if the remote end of a connection is a declared proxy. A Unix socket has no address.
    pub(crate) fn has(&self, peer: Option<SocketAddr>) -> bool {
        peer.is_none_or(|address| self.contain(address.ip()))
    }

    fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the client of a request. Behind proxies its address is the last one that is not a proxy's own.
    ///
    /// # Errors
    /// `bad-argument`, if the proxy's headers contradict each other.
    pub(super) fn client(
        &self,
        headers: &HeaderMap,
        peer: Option<SocketAddr>,
        is_encrypted: bool,
    ) -> Result<Client, Problem> {
        let own = peer.map(|address| address.ip().to_canonical());
        if !self.has(peer) {
            return Ok(Client {
                address: own,
                is_encrypted,
                ..Client::default()
            });
        }
        let told = match (standard(headers), customary(headers)) {
            (None, None) => Vec::new(),
            (Some(hops), None) | (None, Some(hops)) => hops,
            (Some(hops), Some(same)) if hops == same => hops,
            _ => {
                let message = "`Forwarded` and `X-Forwarded-...` of the request contradict each other";
                let hint = "let the proxy remove the one that it does not set";
                return Err(Problem::new(Code::BadArgument, message).hint(hint));
            }
        };
        let mut client = Client {
            address: own,
            is_encrypted,
            is_behind_proxy: true,
            host: None,
        };
        for hop in told.into_iter().rev() {
            // What the nearest proxy does not say, the one before may.
            if let Some(scheme) = hop.scheme {
                client.is_encrypted = scheme.eq_ignore_ascii_case("https");
            }
            client.host = hop.host.or(client.host);
            match hop.address {
                Some(address) => client.address = Some(address),
                None => break,
            }
            if !client.address.is_some_and(|address| self.contain(address)) {
                break;
            }
        }
        Ok(client)
    }
}

/// A proxy's report of the connection that it has accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Hop {
    /// Address of the remote end; none if it is hidden or unreadable.
    address: Option<IpAddr>,
    scheme: Option<String>,
    host: Option<String>,
}

/// Returns the lines of a header, with nothing for those that are no text.
fn lines<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter();
    lines.map(|line| line.to_str().unwrap_or_default())
}

/// Splits a text at a sign outside of quotes.
fn unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |sign: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match sign {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        sign == at && !is_quoted
    })
}

/// Returns what `Forwarded` reports, the nearest proxy last; none without the header.
fn standard(headers: &HeaderMap) -> Option<Vec<Hop>> {
    let elements = lines(headers, "forwarded").flat_map(|line| unquoted(line, ','));
    let hops: Vec<Hop> = elements.map(hop).collect();
    (!hops.is_empty()).then_some(hops)
}

fn hop(element: &str) -> Hop {
    let mut hop = Hop::default();
    for pair in unquoted(element, ';') {
        let Some((name, value)) = pair.trim().split_once('=') else {
            continue;
        };
        let value = value.trim_matches('"');
        match name.to_ascii_lowercase().as_str() {
            "for" => hop.address = address(value),
            "proto" => hop.scheme = Some(value.to_owned()),
            "host" => hop.host = Some(value.to_owned()),
            _ => {}
        }
    }
    hop
}

/// Returns what the `X-Forwarded-...` headers report, the nearest proxy last; none without any of them.
fn customary(headers: &HeaderMap) -> Option<Vec<Hop>> {
    // No quotes here: one of a client's would hide what the proxy adds behind it.
    let elements = |name| {
        lines(headers, name)
            .flat_map(|line| line.split(','))
            .map(str::trim)
    };
    let last = |name| elements(name).last().map(str::to_owned);
    let mut hops: Vec<Hop> = elements("x-forwarded-for")
        .map(|text| Hop {
            address: address(text),
            ..Hop::default()
        })
        .collect();
    // Proxies add to the list of addresses, and write the others anew.
    let (scheme, host) = (last("x-forwarded-proto"), last("x-forwarded-host"));
    if hops.is_empty() && (scheme.is_some() || host.is_some()) {
        hops.push(Hop::default());
    }
    let nearest = hops.last_mut()?;
    (nearest.scheme, nearest.host) = (scheme, host);
    Some(hops)
}

/// Parses an address with or without a port; none for names that hide one.
fn address(text: &str) -> Option<IpAddr> {
    let bare = match text.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None if text.matches(':').count() == 1 => text.split(':').next().unwrap_or_default(),
        None => text,
    };
    bare.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    fn proxies() -> Proxies {
        Proxies::new(["10.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap()))
    }

    fn peer(address: &str) -> Option<SocketAddr> {
        (!address.is_empty()).then(|| format!("{address}:80").parse().unwrap())
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            (
                HeaderName::try_from(*name).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        lines.iter().map(line).collect()
    }

    /// The client's address, whether it is encrypted, and the host, in words.
    fn seen(from: &str, lines: &[(&str, &str)]) -> String {
        match proxies().client(&headers(lines), peer(from), false) {
            Ok(client) => format!(
                "{} {} {}",
                client.address.map_or("-".into(), |address| address.to_string()),
                if client.is_encrypted { "https" } else { "http" },
                client.host.as_deref().unwrap_or("-")
            ),
            Err(problem) => problem.code.to_string(),
        }
    }

    #[test]
    fn s_api21_from_anybody_but_a_proxy_forwarded_headers_are_ignored() {
        for lines in [
            &[("x-forwarded-for", "1.1.1.1")][..],
            &[("forwarded", "for=1.1.1.1;proto=https;host=evil.example")],
            &[
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "evil.example"),
            ],
            &[("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2")],
        ] {
            assert_eq!(seen("192.0.2.7", lines), "192.0.2.7 http -", "{lines:?}");
        }
    }

    #[test]
    fn s_api21_behind_proxies_the_client_is_the_last_address_that_is_no_proxys() {
        for (lines, expected) in [
            (&[][..], "10.0.0.5 http -"),
            (&[("x-forwarded-for", "1.1.1.1")], "1.1.1.1 http -"),
            // What a client says itself stands before what the proxy adds.
            (&[("x-forwarded-for", "9.9.9.9, 1.1.1.1")], "1.1.1.1 http -"),
            (
                &[
                    ("x-forwarded-for", "9.9.9.9"),
                    ("x-forwarded-for", "1.1.1.1, 10.1.1.1"),
                ],
                "1.1.1.1 http -",
            ),
            (
                &[("x-forwarded-for", "1.1.1.1:4711, [2001:db8::1]:80")],
                "1.1.1.1 http -",
            ),
            (&[("x-forwarded-for", "::ffff:1.1.1.1")], "1.1.1.1 http -"),
            (&[("x-forwarded-for", "10.2.2.2, 10.1.1.1")], "10.2.2.2 http -"),
            (&[("x-forwarded-for", "1.1.1.1, unknown")], "10.0.0.5 http -"),
            (&[("x-forwarded-for", "1.1.1.1, , 10.1.1.1")], "10.1.1.1 http -"),
            (
                &[
                    ("x-forwarded-for", "1.1.1.1"),
                    ("x-forwarded-proto", "https"),
                    ("x-forwarded-host", "data.example.org"),
                ],
                "1.1.1.1 https data.example.org",
            ),
            (&[("x-forwarded-proto", "http, https")], "10.0.0.5 https -"),
            (
                &[("forwarded", "for=1.1.1.1;proto=https;host=data.example.org")],
                "1.1.1.1 https data.example.org",
            ),
            (
                &[("forwarded", "For=\"[2606:4700::1]:4711\";Proto=HTTPS")],
                "2606:4700::1 https -",
            ),
            (
                &[(
                    "forwarded",
                    "for=9.9.9.9;host=evil.example, for=1.1.1.1;host=a.example, for=10.1.1.1;host=b",
                )],
                "1.1.1.1 http a.example",
            ),
            (&[("forwarded", "for=_hidden, for=10.1.1.1")], "10.1.1.1 http -"),
            (&[("forwarded", "for=\"1.1.1.1, for=9.9.9.9")], "10.0.0.5 http -"),
            (
                &[("forwarded", "for=1.1.1.1;by=\"a,b;for=9.9.9.9\"")],
                "1.1.1.1 http -",
            ),
        ] {
            assert_eq!(seen("10.0.0.5", lines), expected, "{lines:?}");
        }
        // A Unix socket has no address.
        assert_eq!(seen("", &[]), "- http -");
        assert_eq!(seen("", &[("x-forwarded-for", "1.1.1.1")]), "1.1.1.1 http -");
    }

    #[test]
    fn s_api21_a_header_that_the_proxy_passes_on_unseen_is_not_believed() {
        let set = ("x-forwarded-for", "1.1.1.1");
        for forged in [
            "for=9.9.9.9",
            "for=1.1.1.1;host=evil.example",
            "for=1.1.1.1, for=9.9.9.9",
            "",
        ] {
            assert_eq!(
                seen("10.0.0.5", &[set, ("forwarded", forged)]),
                "bad-argument",
                "{forged}"
            );
        }
        assert_eq!(
            seen("10.0.0.5", &[set, ("forwarded", "for=1.1.1.1")]),
            "1.1.1.1 http -"
        );
    }

    #[test]
    fn s_api21_whatever_stands_before_the_proxys_own_words_changes_nothing() {
        let mut random = SmallRng::seed_from_u64(7);
        let signs = [
            '1', '.', ',', ';', '=', '"', '\\', ' ', 'f', 'o', 'r', '[', ']', ':', 'u',
        ];
        for round in 0..20_000 {
            let length = random.random_range(0..40);
            let forged: String = (0..length)
                .map(|_| signs[random.random_range(0..signs.len())])
                .collect();
            let added = format!("{forged}, 192.0.2.9");
            let lines = [("x-forwarded-for", added.as_str())];
            assert_eq!(
                seen("10.0.0.5", &lines),
                "192.0.2.9 http -",
                "{round}: {forged:?}"
            );
            let lines = [
                ("x-forwarded-for", forged.as_str()),
                ("x-forwarded-for", "192.0.2.9"),
            ];
            assert_eq!(
                seen("10.0.0.5", &lines),
                "192.0.2.9 http -",
                "{round}: {forged:?}"
            );
        }
    }
}
