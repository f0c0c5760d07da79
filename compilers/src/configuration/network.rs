//! Keys of the network: where the service listens, its certificate, and the proxies before it.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::{Placed, finish, placed};
use crate::{
    diagnostics::{At, Code, Findings},
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of the certificate.
    pub(crate) static TLS = "tls" Refused {
        "certificate": Text, "The file of the certificate, followed by those of its authorities, in PEM form.";
        "key": Text, "The file of the certificate's private key, in PEM form. Only its owner may read it.";
    }
}

/// The shortest prefixes of networks of proxies, in bits, for IPv4 and IPv6. Shorter ones are half the world.
const PREFIX_MIN: (u8, u8) = (8, 16);

/// The place at which a service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address with a port.
    Address(SocketAddr),
    /// A Unix socket, by the path of its file.
    File(Placed),
}

/// The network of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// Place at which the service listens; none if not set.
    pub listen: Option<Listen>,
    /// Files of the certificate; none for plain HTTP.
    pub tls: Option<Tls>,
    /// Networks of the proxies before the service.
    pub proxies: Vec<IpNet>,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Path of the file of certificates.
    pub certificate: Placed,
    /// Path of the file of the private key.
    pub key: Placed,
}

/// Reads the keys of the network. Beyond this machine a service needs authentication, and encryption by itself or by a
/// declared proxy.
pub(super) fn network(fields: &mut Fields<'_>) -> Network {
    let has_proxies = fields.has("proxies");
    let network = Network {
        proxies: proxies(fields),
        tls: tls(fields),
        listen: None,
    };
    let is_encrypted = network.tls.is_some() || has_proxies;
    Network {
        listen: listen(fields, is_encrypted, network.tls.is_some()),
        ..network
    }
}

fn listen(fields: &mut Fields<'_>, is_encrypted: bool, has_tls: bool) -> Option<Listen> {
    let has_auth = fields.has("auth");
    let node = fields.text_node("listen")?;
    let text = node.scalar_text().unwrap_or_default();
    let mistake = |findings: &mut Findings, message: String, hint: &str| {
        findings.add_with_hint(node.at, Code::InvalidValue, message, hint);
    };
    let findings = fields.findings();
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() || path.contains('\0') {
            let message = format!("\"{}\" names no file", text.escape_default());
            mistake(
                findings,
                message,
                "write the path of the socket, such as `unix:/run/watershed/http.sock`",
            );
            return None;
        }
        if has_tls {
            let message = "a proxy on this machine speaks to a Unix socket without `tls`".to_owned();
            mistake(
                findings,
                message,
                "give the certificate to the proxy, or listen on an address",
            );
        }
        return Some(Listen::File(Placed {
            text: path.to_owned(),
            span: node.at.span,
        }));
    }
    let Ok(address) = text.parse::<SocketAddr>() else {
        let message = format!("\"{text}\" is no address with a port");
        mistake(
            findings,
            message,
            "write one such as `127.0.0.1:7437`, or `unix:` and the path of a file",
        );
        return None;
    };
    if !address.ip().is_loopback() {
        if !has_auth {
            let message = format!(
                "`{text}` can be reached from other machines, and nobody would be asked who they are"
            );
            mistake(
                findings,
                message,
                "say under `auth` who gets in, or listen on 127.0.0.1",
            );
        }
        if !is_encrypted {
            let message =
                format!("`{text}` can be reached from other machines, and nothing would be encrypted");
            let hint = "name a certificate under `tls`, or the proxy that encrypts under `proxies`";
            mistake(findings, message, hint);
        }
    }
    Some(Listen::Address(address))
}

fn tls(fields: &mut Fields<'_>) -> Option<Tls> {
    let (map, at) = fields.map("tls")?;
    let mut fields = Fields::new(map, at, fields.findings());
    let [certificate, key] = ["certificate", "key"].map(|key| needed(&mut fields, "tls", key));
    finish(fields, &TLS, &[]);
    Some(Tls {
        certificate: certificate?,
        key: key?,
    })
}

/// Takes the text of a key that a block can't do without.
pub(super) fn needed(fields: &mut Fields<'_>, block: &str, key: &str) -> Option<Placed> {
    if !fields.has(key) {
        let (at, message) = (fields.at(), format!("`{block}` needs the key `{key}`"));
        fields.findings().add(at, Code::MissingKey, message);
    }
    placed(fields, key)
}

fn proxies(fields: &mut Fields<'_>) -> Vec<IpNet> {
    let named = fields.placed_texts("proxies");
    let networks = named.into_iter();
    networks
        .filter_map(|(text, at)| network_of(&text, at, fields.findings()))
        .collect()
}

fn network_of(text: &str, at: At, findings: &mut Findings) -> Option<IpNet> {
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let Some(network) = text.parse::<IpNet>().ok().or_else(address) else {
        let message = format!("\"{text}\" is no address and no network");
        let hint =
            "write the address of the proxy, such as `10.0.0.5`, or its network, such as `10.0.0.0/24`";
        findings.add_with_hint(at, Code::InvalidValue, message, hint);
        return None;
    };
    let shortest = match network {
        IpNet::V4(_) => PREFIX_MIN.0,
        IpNet::V6(_) => PREFIX_MIN.1,
    };
    if network.prefix_len() < shortest || network.addr().is_unspecified() {
        let message = format!("`{text}` is everybody, and whoever is a proxy says who asks");
        findings.add_with_hint(
            at,
            Code::InvalidValue,
            message,
            "name the addresses of your proxies alone",
        );
        return None;
    }
    Some(network.trunc())
}

#[cfg(test)]
mod tests {
    use super::super::read;

    const SHOP: &str = "instances: {shop: {project: /srv/shop, trust: full}}\n";

    fn told(text: &str) -> Vec<String> {
        let (_, found) = read("server.yaml", format!("{text}{SHOP}").as_bytes());
        found.iter().map(|it| it.message.clone()).collect()
    }

    #[test]
    fn s_api45_proxies_that_are_everybody_are_refused() {
        for everybody in [
            "0.0.0.0/0",
            "::/0",
            "0.0.0.0",
            "0.0.0.0/1",
            "128.0.0.0/1",
            "2000::/3",
        ] {
            let told = told(&format!("proxies: [10.0.0.5, \"{everybody}\"]\n"));
            assert!(told[0].contains("is everybody"), "{everybody}: {told:?}");
        }
        for good in ["10.0.0.5", "10.0.0.0/8", "10.0.0.7/8", "2001:db8::/32", "::1"] {
            assert!(told(&format!("proxies: \"{good}\"\n")).is_empty(), "{good}");
        }
        for none in ["proxy.example.org", "10.0.0.5:80", "10.0.0.0/33", ""] {
            assert_eq!(told(&format!("proxies: [\"{none}\"]\n")).len(), 1, "{none}");
        }
    }

    #[test]
    fn s_api45_an_address_of_other_machines_needs_authentication_and_encryption() {
        for (more, mistakes) in [
            ("", 2),
            ("proxies: 10.0.0.5\n", 1),
            ("tls: {certificate: a.pem, key: b.pem}\n", 1),
        ] {
            for address in ["0.0.0.0:80", "\"[::]:80\"", "192.0.2.1:80"] {
                let told = told(&format!("listen: {address}\n{more}"));
                assert_eq!(told.len(), mistakes, "{address} {more}: {told:?}");
            }
        }
        for alone in [
            "127.0.0.1:80",
            "127.1.2.3:80",
            "\"[::1]:80\"",
            "unix:/run/a.sock",
            "unix:a.sock",
        ] {
            assert!(told(&format!("listen: {alone}\n")).is_empty(), "{alone}");
        }
        for none in ["unix:", "localhost:80", "127.0.0.1", "80"] {
            assert_eq!(told(&format!("listen: \"{none}\"\n")).len(), 1, "{none}");
        }
        assert_eq!(told("tls: {certificate: a.pem}\n").len(), 1);
        assert_eq!(
            told("tls: {certificate: a.pem, key: b.pem}\nlisten: unix:a\n").len(),
            1
        );
    }
}
