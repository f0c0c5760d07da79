//! Keys of the connections that projects may make to other machines.

use std::net::IpAddr;

use ipnet::IpNet;

use super::address::is_host;
use super::finish;
use crate::{
    diagnostics::{At, Code, Findings},
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of `egress`.
    pub(crate) static EGRESS = "egress" Refused {
        "allow": Texts, "Networks such as `10.2.0.0/16`, and hosts with their port such as `hooks.example.org:8443`.";
    }
}

/// A destination that projects may connect to, encrypted or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// All addresses of a network, at any port.
    Network(IpNet),
    /// A host by its name, at one port.
    Host(String, u16),
}

/// The shortest prefixes of a network that is not everybody, of IPv4 and of IPv6.
const PREFIX_MIN: (u8, u8) = (8, 16);

pub(super) fn egress(fields: &mut Fields<'_>) -> Vec<Destination> {
    let Some((map, at)) = fields.map("egress") else {
        return Vec::new();
    };
    let mut fields = Fields::new(map, at, fields.findings());
    let listed = fields.placed_texts("allow").into_iter();
    let listed = listed
        .filter_map(|(text, at)| destination(&text, at, fields.findings()))
        .collect();
    finish(fields, &EGRESS, &[]);
    listed
}

fn destination(text: &str, at: At, findings: &mut Findings) -> Option<Destination> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    if let Some(network) = text.parse::<IpNet>().ok().or_else(address) {
        return network_of(text, network, at, findings).map(Destination::Network);
    }
    let host = text.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare.unwrap_or(host).parse::<IpAddr>() {
            Ok(address) => (address.is_ipv4() || bare.is_some()).then(|| (address.to_string(), port)),
            Err(_) => (bare.is_none() && is_name(host)).then(|| (host.to_ascii_lowercase(), port)),
        }
    });
    if host.is_none() {
        let message = format!("\"{text}\" is no network and no host with a port");
        let hint =
            "write a network such as `10.2.0.0/16`, an address, or a host such as `hooks.example.org:8443`";
        findings.add_with_hint(at, Code::InvalidValue, message, hint);
    }
    host.map(|(host, port)| Destination::Host(host, port))
}

/// Returns true if a text is a name, which no client reads as an address in one of its other notations.
fn is_name(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    is_host(host) && !last.starts_with(|sign: char| sign.is_ascii_digit())
}

fn network_of(text: &str, network: IpNet, at: At, findings: &mut Findings) -> Option<IpNet> {
    let shortest = match network {
        IpNet::V4(_) => PREFIX_MIN.0,
        IpNet::V6(_) => PREFIX_MIN.1,
    };
    let message = if network.prefix_len() < shortest || network.addr().is_unspecified() {
        format!("`{text}` is every machine")
    } else if matches!(network, IpNet::V6(network) if network.addr().to_ipv4_mapped().is_some()) {
        format!("`{text}` is an address of IPv4 in the form of IPv6")
    } else {
        return Some(network.trunc());
    };
    let hint = "name the networks of the machines that the projects need, in their plain form";
    findings.add_with_hint(at, Code::InvalidValue, message, hint);
    None
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::Destination;

    const SHOP: &str = "instances: {shop: {project: /srv/shop, trust: full}}\n";

    fn told(allow: &str) -> Vec<String> {
        let (_, found) = read(
            "server.yaml",
            format!("egress: {{allow: [{allow}]}}\n{SHOP}").as_bytes(),
        );
        let found = found.iter();
        found
            .map(|it| format!("{}:{} {}", it.span.line, it.span.column, it.message))
            .collect()
    }

    #[test]
    fn s_api35_destinations_are_read_and_everybody_is_refused_with_its_place() {
        let text = format!(
            "egress: {{allow: [10.2.0.7/16, \"fd00::1\", \"Hooks.example.org:8443\", \"10.0.0.1:80\", \"[fd00::2]:25\"]}}\n{SHOP}"
        );
        let (read, found) = read("server.yaml", text.as_bytes());
        assert_eq!(found, []);
        let host = |name: &str, port| Destination::Host(name.to_owned(), port);
        let expected = [
            Destination::Network("10.2.0.0/16".parse().unwrap()),
            Destination::Network("fd00::1/128".parse().unwrap()),
            host("hooks.example.org", 8443),
            host("10.0.0.1", 80),
            host("fd00::2", 25),
        ];
        assert_eq!(read.egress, expected);
        for everybody in ["0.0.0.0/0", "::/0", "0.0.0.0", "128.0.0.0/1", "2000::/3", "::"] {
            let told = told(&format!("10.0.0.0/8, \"{everybody}\""));
            assert_eq!(told, [format!("1:30 `{everybody}` is every machine")]);
        }
        assert!(told("\"::ffff:10.0.0.1\"")[0].contains("in the form of IPv6"));
        for none in [
            "hooks.example.org",
            "https://hooks.example.org:443",
            "hooks.example.org:0",
            "hooks.example.org:99999",
            "*.example.org:443",
            "0x7f000001:80",
            "127.1:80",
            "2130706433:80",
            "a:b:80",
            "",
        ] {
            assert_eq!(told(&format!("\"{none}\"")).len(), 1, "{none}");
        }
        let (_, found) = super::super::read("a", format!("egress: {{deny: [x]}}\n{SHOP}").as_bytes());
        assert_eq!(found.len(), 1);
    }
}
