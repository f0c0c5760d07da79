//! Keys of SQL clients: where they connect.

use std::net::SocketAddr;

use super::{finish, network::needed};
use crate::{
    diagnostics::Code,
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of SQL clients.
    pub(crate) static SQL = "sql" Refused {
        "listen": Text, "The address and port at which SQL clients connect by the protocol of Postgres, such as `127.0.0.1:5432`.";
    }
}

/// Protections of what other machines reach.
pub(super) struct Protected {
    /// True if callers have to say who they are.
    pub(super) has_auth: bool,
    /// True if there is a certificate, or a proxy that has one.
    pub(super) is_encrypted: bool,
}

/// Reads the address of SQL clients. They sign in by tokens, and nothing else.
pub(super) fn sql(fields: &mut Fields<'_>, protected: &Protected) -> Option<SocketAddr> {
    let (map, at) = fields.map("sql")?;
    let mut fields = Fields::new(map, at, fields.findings());
    let listen = needed(&mut fields, "sql", "listen");
    let place = crate::diagnostics::At {
        span: listen.as_ref().map_or(at.span, |listen| listen.span),
        ..at
    };
    let mut mistake = |message: String, hint: &str| {
        let findings = fields.findings();
        findings.add_with_hint(place, Code::InvalidValue, message, hint);
    };
    if !protected.has_auth {
        let message = "SQL clients sign in by tokens, and this service has none".to_owned();
        mistake(message, "say under `auth` who gets in");
    }
    let address = listen
        .as_ref()
        .and_then(|listen| match listen.text.parse::<SocketAddr>() {
            Ok(address) => Some(address),
            Err(_) => {
                let message = format!("\"{}\" is no address with a port", listen.text);
                mistake(message, "write one such as `127.0.0.1:5432`");
                None
            }
        });
    if let Some(address) = address.filter(|address| !address.ip().is_loopback() && !protected.is_encrypted) {
        let message =
            format!("`{address}` can be reached from other machines, and nothing would be encrypted");
        let hint = "name a certificate under `tls`, or the proxy that encrypts under `proxies`";
        mistake(message, hint);
    }
    finish(fields, &SQL, &[]);
    address
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
    fn s_api45_sql_clients_of_other_machines_need_encryption_and_all_need_tokens() {
        const AUTH: &str = "auth: {tokens: t.yaml}\n";
        for (text, mistakes) in [
            ("sql: {listen: 127.0.0.1:5432}\n", 1),
            ("sql: {listen: 0.0.0.0:5432}\n", 2),
            ("sql: {}\nauth: {tokens: t.yaml}\n", 1),
            ("sql: {listen: localhost}\nauth: {tokens: t.yaml}\n", 1),
            ("sql: {listen: \"unix:/run/a\"}\nauth: {tokens: t.yaml}\n", 1),
            ("sql: {listen: 127.0.0.1:1, port: 1}\nauth: {tokens: t.yaml}\n", 1),
            ("sql: {listen: 0.0.0.0:5432}\nauth: {tokens: t.yaml}\n", 1),
            ("sql: {listen: \"[::]:5432\"}\nauth: {tokens: t.yaml}\n", 1),
        ] {
            assert_eq!(told(text).len(), mistakes, "{text}: {:?}", told(text));
        }
        for good in [
            "sql: {listen: 127.0.0.1:5432}\n",
            "sql: {listen: \"[::1]:0\"}\n",
            "sql: {listen: 0.0.0.0:5432}\nproxies: 10.0.0.5\n",
            "sql: {listen: 0.0.0.0:5432}\ntls: {certificate: a.pem, key: b.pem}\n",
        ] {
            assert!(
                told(&format!("{AUTH}{good}")).is_empty(),
                "{good}: {:?}",
                told(&format!("{AUTH}{good}"))
            );
        }
    }
}
