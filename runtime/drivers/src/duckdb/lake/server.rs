//! A look at a lake whose catalog a server of Postgres has, without the engine: opening that with its extensions costs more than
//! all else that a run without changes does.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Row as _};
use watershed_dialect::{DuckDb, Quoting as _};

use super::Lake;
use crate::olap::{Attached, System};

/// Time after which the engine is opened instead, which tells better why a server does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Digits that stand for a lake's place.
const DIGITS: usize = 32;

/// The newest snapshot of a lake, and the epoch under which it was last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::duckdb) struct Newest {
    pub(in crate::duckdb) snapshot: i64,
    epoch: Option<u64>,
}

impl Lake {
    /// Returns what stands for the place of the lake's catalog: a digest, as the address may be the value of a variable.
    pub(in crate::duckdb) fn place(&self) -> String {
        let database = &self.home.database;
        let address = match database.file() {
            Some(file) => file.display().to_string(),
            // Of an address that this client can't read, the connector's name is told apart.
            None => options(database).map_or_else(
                || database.connector.clone(),
                |it| {
                    let database = it.get_database().unwrap_or_default();
                    format!("{}:{}/{database}", it.get_host(), it.get_port())
                },
            ),
        };
        let schema = database.lake.as_ref().and_then(|lake| lake.schema.as_deref());
        let text = format!("{:?} {} {address}", database.keeper(), schema.unwrap_or_default());
        blake3::hash(text.as_bytes())
            .to_hex()
            .chars()
            .take(DIGITS)
            .collect()
    }
}

/// Asks the catalog's server for the newest snapshot, in one statement; none if that can't be told without the engine.
pub(in crate::duckdb) async fn look_at_server(lake: &Lake) -> Option<Newest> {
    let options = options(&lake.home.database)?;
    let sql = newest(
        lake.home
            .database
            .lake
            .as_ref()?
            .schema
            .as_deref()
            .unwrap_or("public"),
    );
    let asked = async {
        let mut connection = options.connect().await?;
        let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut connection).await;
        // The answer is there.
        let _ = connection.close().await;
        row
    };
    let row = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(row)) => row,
        Ok(Err(error)) => {
            tracing::debug!(error = %lake.hide(&error.to_string()), "the engine asks the lake's catalog instead");
            return None;
        }
        Err(_) => return None,
    };
    let found = Newest {
        snapshot: row.try_get::<Option<i64>, _>(0).ok()??,
        epoch: row
            .try_get::<Option<String>, _>(1)
            .ok()?
            .and_then(|comment| epoch(&comment)),
    };
    let mut known = lake.known();
    known.looked = Some(found.snapshot);
    known.newest = found.epoch.or(known.newest);
    Some(found)
}

/// Returns the query for the newest snapshot, with the comment of the last take.
fn newest(schema: &str) -> String {
    let table = |table: &str| DuckDb.path(&[schema, &format!("ducklake_{table}")]);
    let [snapshots, tags, tables, schemas] = ["snapshot", "tag", "table", "schema"].map(table);
    format!(
        "SELECT (SELECT max(snapshot_id) FROM {snapshots}), (SELECT g.value FROM {tags} g \
         JOIN {tables} t ON t.table_id = g.object_id AND t.table_name = 'records' AND t.end_snapshot IS NULL \
         JOIN {schemas} s ON s.schema_id = t.schema_id AND s.schema_name = '_watershed' AND s.end_snapshot IS NULL \
         WHERE g.key = 'comment' AND g.end_snapshot IS NULL)"
    )
}

/// Reads the comment of a take.
fn epoch(comment: &str) -> Option<u64> {
    comment.strip_prefix("epoch ")?.split(' ').next()?.parse().ok()
}

/// Returns the settings of a connection; none if they have one that this client does not know.
fn options(database: &Attached) -> Option<PgConnectOptions> {
    if database.keeper() != System::Postgres {
        return None;
    }
    let target = database.target.trim();
    let mut options = match target.contains("://") {
        true => target.parse().ok()?,
        false => PgConnectOptions::new(),
    };
    let words = match target.contains("://") {
        true => Vec::new(),
        false => words(target)?,
    };
    let login = database.login.iter();
    let login = login.map(|(option, value)| (option.to_lowercase(), value.clone()));
    for (word, value) in words.into_iter().chain(login) {
        options = match word.as_str() {
            // Several would be tried in turn.
            "host" if value.contains(',') => return None,
            "host" => options.host(&value),
            "port" => options.port(value.parse().ok()?),
            "user" => options.username(&value),
            "password" => options.password(&value),
            "dbname" | "database" => options.database(&value),
            "sslmode" => options.ssl_mode(value.parse::<PgSslMode>().ok()?),
            "sslrootcert" => options.ssl_root_cert(value),
            "connect_timeout" => options,
            _ => return None,
        };
    }
    Some(options.application_name("watershed").disable_statement_logging())
}

/// Reads the words of a connection string, `key=value` or `key='value'`; none if it is none.
fn words(target: &str) -> Option<Vec<(String, String)>> {
    let (mut words, mut rest) = (Vec::new(), target.trim_start());
    while !rest.is_empty() {
        let (word, after) = rest.split_once('=')?;
        let (value, left) = value(after.trim_start())?;
        words.push((word.trim().to_lowercase(), value));
        rest = left.trim_start();
    }
    Some(words)
}

/// Reads one value, and returns it with what follows.
fn value(text: &str) -> Option<(String, &str)> {
    let quoted = text.strip_prefix('\'');
    let (mut value, mut chars) = (String::new(), quoted.unwrap_or(text).char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            '\'' if quoted.is_some() => return Some((value, quoted?.get(at + 1..)?)),
            c if c.is_whitespace() && quoted.is_none() => return Some((value, text.get(at..)?)),
            c => value.push(c),
        }
    }
    quoted.is_none().then_some((value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::olap::{Lake as Settings, Rights};

    fn read(target: &str, login: &[(&'static str, &str)]) -> Option<PgConnectOptions> {
        options(&Attached {
            name: "watershed".into(),
            system: System::DuckLake,
            connector: "lake".into(),
            target: target.into(),
            login: login
                .iter()
                .map(|(option, value)| (*option, (*value).to_owned()))
                .collect(),
            rights: Rights::Write,
            lake: Some(Settings {
                catalog: System::Postgres,
                data_path: None,
                schema: None,
                snapshot: None,
            }),
        })
    }

    #[test]
    fn a_connection_is_stated_as_for_the_engine() {
        let login = [
            ("HOST", "db"),
            ("PORT", "5433"),
            ("USER", "ada"),
            ("PASSWORD", "p'w"),
            ("DATABASE", "shop"),
        ];
        let asked = read("sslmode='require' connect_timeout='15'", &login).unwrap();
        assert_eq!(
            (asked.get_host(), asked.get_port(), asked.get_username()),
            ("db", 5433, "ada")
        );
        assert_eq!(asked.get_database(), Some("shop"));
        assert!(matches!(asked.get_ssl_mode(), PgSslMode::Require));
        let asked = read(r"host=/tmp/a\ b user='o\'neil' dbname = d", &[]).unwrap();
        assert_eq!(
            (asked.get_username(), asked.get_database()),
            ("o'neil", Some("d"))
        );
        let asked = read("postgres://ada@db:77/shop", &[]).unwrap();
        assert_eq!(
            (asked.get_host(), asked.get_port(), asked.get_database()),
            ("db", 77, Some("shop"))
        );
    }

    #[test]
    fn what_this_client_does_not_know_is_left_to_the_engine() {
        for target in [
            "service=shop",
            "host=a,b",
            "sslmode=some",
            "host",
            "user='ada",
            "port=x",
        ] {
            assert!(read(target, &[]).is_none(), "{target}");
        }
    }

    #[test]
    fn the_epoch_is_that_of_the_last_take() {
        assert_eq!(epoch("epoch 12 of 6b1c"), Some(12));
        assert_eq!(
            (epoch("12"), epoch("epoch x of y"), epoch("")),
            (None, None, None)
        );
    }
}
