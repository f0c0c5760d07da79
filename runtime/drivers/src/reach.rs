//! Checks of the servers that the engine connects to by itself, before it does.
//!
//! The engine looks names up again when it connects: what is checked here is the name, and the addresses that it has at the
//! time. Addresses of stores are checked with the address that is connected to, see [`objects`](crate::objects).

use watershed_outside::http::{SystemNames, Unreached, Url};

use crate::olap::{Attached, System};

pub use watershed_outside::http::{Egress, Refused};

/// The error of a database's server that must not be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// A server may not be connected to.
    #[error("the server of the database may not be asked: {0}")]
    Refused(#[from] Refused),
    /// The settings have no host that could be checked.
    #[error("the host of the database can't be told from its settings, so that it can't be checked")]
    NoHost,
    /// The host has no address.
    #[error("the server of the database is unknown")]
    Unknown,
}

/// Checks the servers of a database by a policy. A file has none.
///
/// # Errors
/// When an address of a server is not allowed, or a server can't be told from the settings.
pub async fn check_servers(egress: &Egress, database: &Attached) -> Result<(), ReachError> {
    if !egress.is_restricted() || database.keeper().is_file() {
        return Ok(());
    }
    for (host, port) in servers(database).ok_or(ReachError::NoHost)? {
        // The encryption of these protocols is the server's and its client's own.
        let checked = egress.check_before(&SystemNames, (&host, port), true).await;
        checked.map_err(|error| match error {
            Unreached::Refused(refused) => refused.into(),
            Unreached::Unknown(_) => ReachError::Unknown,
        })?;
    }
    Ok(())
}

/// Returns the hosts and ports of a database; none if the settings can't be understood, or name a socket.
fn servers(database: &Attached) -> Option<Vec<(String, u16)>> {
    let usual = match database.keeper() {
        System::Mysql => 3306,
        _ => 5432,
    };
    let mut words = match database.target.contains("://") {
        true => of_url(&database.target)?,
        false => of_words(&database.target)?,
    };
    let login = database.login.iter();
    words.extend(login.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    // A file of settings elsewhere could name any host.
    if words.iter().any(|(name, _)| {
        matches!(
            name.as_str(),
            "service" | "servicefile" | "socket" | "unix_socket"
        )
    }) {
        return None;
    }
    let all = |wanted: &[&str]| {
        let found = words.iter().filter(|(name, _)| wanted.contains(&name.as_str()));
        found
            .flat_map(|(_, value)| value.split(',').map(|one| one.trim().to_owned()))
            .collect::<Vec<_>>()
    };
    let hosts = all(&["host", "hostaddr"]);
    if hosts.is_empty()
        || hosts
            .iter()
            .any(|host| host.is_empty() || host.starts_with(['/', '@']))
    {
        return None;
    }
    let ports = all(&["port"]).into_iter().filter(|port| !port.is_empty());
    let mut ports = ports
        .map(|port| port.parse())
        .collect::<Result<Vec<u16>, _>>()
        .ok()?;
    if ports.is_empty() {
        ports.push(usual);
    }
    let pairs = hosts
        .iter()
        .flat_map(|host| ports.iter().map(move |port| (host.clone(), *port)));
    Some(pairs.collect())
}

/// Returns the settings in an address such as `postgres://user@host:port/database?sslmode=require`.
fn of_url(address: &str) -> Option<Vec<(String, String)>> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?;
    let host = authority.rsplit('@').next()?;
    // Several hosts are no URL; what parsers of URLs and clients of databases read differently is not understood.
    let is_odd =
        host.contains([',', '%']) || rest.contains(['\\', '#']) || authority.matches('@').count() > 1;
    if is_odd {
        return None;
    }
    let url = Url::parse(&format!("http://{rest}")).ok()?;
    let mut words: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned()))
        .collect();
    words.push((
        "host".to_owned(),
        url.host_str()?.trim_matches(['[', ']']).to_owned(),
    ));
    // Port 80 is the usual one of the scheme in whose form the address was read.
    match (url.port(), authority.ends_with(":80")) {
        (Some(port), _) => words.push(("port".to_owned(), port.to_string())),
        (None, true) => words.push(("port".to_owned(), "80".to_owned())),
        (None, false) => {}
    }
    Some(words)
}

/// Returns the settings in a text such as `host='db' port=5432`, with quotes and backslashes as its client reads them.
fn of_words(text: &str) -> Option<Vec<(String, String)>> {
    let (mut words, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (mut value, mut signs) = (String::new(), after.trim_start().char_indices());
        let after = after.trim_start();
        let is_quoted = after.starts_with('\'');
        if is_quoted {
            signs.next();
        }
        let mut end = None;
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => value.push(signs.next()?.1),
                '\'' if is_quoted => {
                    end = Some(at + 1);
                    break;
                }
                sign if !is_quoted && sign.is_whitespace() => {
                    end = Some(at);
                    break;
                }
                sign => value.push(sign),
            }
        }
        if is_quoted && end.is_none() {
            return None;
        }
        words.push((name.trim().to_ascii_lowercase(), value));
        rest = end
            .and_then(|end| after.get(end..))
            .unwrap_or_default()
            .trim_start();
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::olap::Rights;

    fn database(target: &str, login: &[(&'static str, &str)]) -> Attached {
        Attached {
            name: "shop".to_owned(),
            system: System::Postgres,
            connector: "shop".to_owned(),
            target: target.to_owned(),
            login: login
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            rights: Rights::Read,
            lake: None,
        }
    }

    #[test]
    fn servers_are_found_in_addresses_words_and_logins() {
        for (target, expected) in [
            ("postgres://ada:p%40w@db.example/shop", Some(("db.example", 5432))),
            (
                "postgres://db.example:80/shop?sslmode=require",
                Some(("db.example", 80)),
            ),
            ("postgresql://[::1]:5433/shop", Some(("::1", 5433))),
            (
                "host=db.example port='5433' dbname=shop",
                Some(("db.example", 5433)),
            ),
            (
                "password='it\\'s host=x' host = db.example",
                Some(("db.example", 5432)),
            ),
            ("host=/run/postgresql", None),
            ("dbname=shop", None),
            ("service=shop host=db.example", None),
            ("host='db", None),
            ("postgres://a,b/shop", None),
            ("postgres://ok.example@x@10.0.0.1/shop", None),
            ("postgres://ok.example#@10.0.0.1/shop", None),
            ("postgres://ok.example\\@10.0.0.1/shop", None),
            ("postgres://%2Frun/shop", None),
        ] {
            let expected = expected.map(|(host, port)| vec![(host.to_owned(), port)]);
            assert_eq!(servers(&database(target, &[])), expected, "{target}");
        }
        let login = [("HOST", "db"), ("PORT", "7")];
        assert_eq!(
            servers(&database("sslmode='require'", &login)),
            Some(vec![("db".to_owned(), 7)])
        );
        // A second host is one more that may be connected to.
        let both = servers(&database("postgres://db.example/shop?host=10.0.0.1", &[])).unwrap();
        assert_eq!(
            both,
            [("10.0.0.1".to_owned(), 5432), ("db.example".to_owned(), 5432)]
        );
    }

    #[tokio::test]
    async fn s_api35_databases_at_private_addresses_are_refused_before_they_are_attached() {
        let egress = Egress::public_and([]);
        for target in [
            "postgres://127.0.0.1/shop",
            "host=localhost",
            "host=169.254.169.254",
            "host=::1",
        ] {
            let checked = check_servers(&egress, &database(target, &[])).await;
            assert!(
                matches!(checked, Err(ReachError::Refused(_))),
                "{target}: {checked:?}"
            );
        }
        for target in ["host=/run/postgresql", "dbname=shop"] {
            let checked = check_servers(&egress, &database(target, &[])).await;
            assert!(
                matches!(checked, Err(ReachError::NoHost)),
                "{target}: {checked:?}"
            );
        }
        let local = database("postgres://127.0.0.1/shop", &[]);
        assert!(check_servers(&Egress::default(), &local).await.is_ok());
    }
}
