//! Statements that attach and detach databases of other systems.

use watershed_dialect::{DuckDb, Quoting as _};

use crate::olap::{Attached, Lake, Rights, Snapshot, System};

/// Returns the statements that attach a database.
pub(super) fn begin(database: &Attached) -> Vec<String> {
    begin_with(database, &[])
}

/// Returns the statements that attach a database with further options.
pub(super) fn begin_with(database: &Attached, further: &[&str]) -> Vec<String> {
    let (name, system) = (DuckDb.name(&database.name), word(database.system));
    let (target, login) = match &database.lake {
        None => (database.target.clone(), "SECRET"),
        Some(lake) => (address(lake, &database.target), "META_SECRET"),
    };
    let mut options = vec![format!("TYPE {system}")];
    if !database.login.is_empty() {
        options.push(format!("{login} {name}"));
    }
    options.push(
        match database.rights {
            Rights::Read => "READ_ONLY",
            Rights::Write => "READ_WRITE",
        }
        .to_owned(),
    );
    let lake = database.lake.iter();
    options.extend(lake.flat_map(|lake| of_lake(lake, database.rights == Rights::Read)));
    options.extend(further.iter().map(|option| (*option).to_owned()));
    let (target, options) = (DuckDb.text(&target), options.join(", "));
    let attach = format!("ATTACH {target} AS {name} ({options})");
    secret(database).into_iter().chain([attach]).collect()
}

/// Returns the statement that creates a secret with the login; none without a login.
fn secret(database: &Attached) -> Option<String> {
    let (name, system) = (DuckDb.name(&database.name), word(database.keeper()));
    let login = database.login.iter();
    let login: Vec<String> = login
        .map(|(option, value)| format!("{option} {}", DuckDb.text(value)))
        .collect();
    let login = login.join(", ");
    let secret = format!("CREATE OR REPLACE TEMPORARY SECRET {name} (TYPE {system}, {login})");
    (!login.is_empty()).then_some(secret)
}

/// Returns the statements that detach a database, if it is attached.
pub(super) fn end(database: &Attached) -> Vec<String> {
    let name = DuckDb.name(&database.name);
    let detach = format!("DETACH DATABASE IF EXISTS {name}");
    match database.login.is_empty() {
        true => vec![detach],
        false => vec![detach, format!("DROP TEMPORARY SECRET IF EXISTS {name}")],
    }
}

/// Returns the address of a lake's catalog for ATTACH, from the address of the catalog's database.
fn address(lake: &Lake, target: &str) -> String {
    format!("{}:{target}", word(lake.catalog))
}

/// Returns the options of ATTACH for a lake's data path and the snapshot to read.
fn of_lake(lake: &Lake, is_read: bool) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(data_path) = &lake.data_path {
        options.push(format!("DATA_PATH {}", DuckDb.text(data_path)));
        // Whoever reads may know the files elsewhere. Whoever writes would hide new files from all others.
        if is_read {
            options.push("OVERRIDE_DATA_PATH true".to_owned());
        }
    }
    if let Some(schema) = &lake.schema {
        options.push(format!("METADATA_SCHEMA {}", DuckDb.text(schema)));
    }
    match &lake.snapshot {
        None => {}
        Some(Snapshot::Version(version)) => options.push(format!("SNAPSHOT_VERSION {version}")),
        Some(Snapshot::Time(time)) => options.push(format!("SNAPSHOT_TIME {}", DuckDb.text(time))),
    }
    options
}

/// Returns the engine's name of a system.
fn word(system: System) -> &'static str {
    match system {
        System::Postgres => "postgres",
        System::Mysql => "mysql",
        System::Sqlite => "sqlite",
        System::DuckDb => "duckdb",
        System::DuckLake => "ducklake",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop(target: &str, login: Vec<(&'static str, String)>) -> Attached {
        Attached {
            name: "_watershed_orders".into(),
            system: System::Postgres,
            connector: "shop".into(),
            target: target.into(),
            login,
            rights: Rights::Read,
            lake: None,
        }
    }

    #[test]
    fn a_login_is_a_secret_of_the_engine_and_stands_in_no_other_statement() {
        let attached = shop("sslmode=require", vec![("PASSWORD", "it's".into())]);
        let [secret, attach] = begin(&attached).try_into().unwrap();
        assert_eq!(
            secret,
            "CREATE OR REPLACE TEMPORARY SECRET \"_watershed_orders\" (TYPE postgres, PASSWORD 'it''s')"
        );
        assert_eq!(
            attach,
            "ATTACH 'sslmode=require' AS \"_watershed_orders\" (TYPE postgres, SECRET \"_watershed_orders\", READ_ONLY)"
        );
        assert_eq!(end(&attached).len(), 2);
        assert!(!format!("{attached:?}").contains("it's"));
    }

    #[test]
    fn a_lake_is_attached_by_the_database_of_its_catalog() {
        let lake = Attached {
            system: System::DuckLake,
            lake: Some(Lake {
                catalog: System::Postgres,
                data_path: Some("s3://lake/".into()),
                schema: None,
                snapshot: None,
            }),
            ..shop("sslmode=require", vec![("PASSWORD", "hush".into())])
        };
        let [secret, attach] = begin(&lake).try_into().unwrap();
        assert!(secret.contains("(TYPE postgres, PASSWORD 'hush')"), "{secret}");
        assert_eq!(
            attach,
            "ATTACH 'postgres:sslmode=require' AS \"_watershed_orders\" (TYPE ducklake, \
             META_SECRET \"_watershed_orders\", READ_ONLY, DATA_PATH 's3://lake/', OVERRIDE_DATA_PATH true)"
        );
        assert_eq!((lake.file(), end(&lake).len()), (None, 2));
    }

    #[test]
    fn files_are_known_elsewhere_by_readers_alone() {
        let lake = Lake {
            catalog: System::Sqlite,
            data_path: Some("s3://lake/".into()),
            schema: Some("it's".into()),
            snapshot: Some(Snapshot::Version(3)),
        };
        let elsewhere = "OVERRIDE_DATA_PATH true";
        assert_eq!(
            of_lake(&lake, true),
            [
                "DATA_PATH 's3://lake/'",
                elsewhere,
                "METADATA_SCHEMA 'it''s'",
                "SNAPSHOT_VERSION 3"
            ]
        );
        assert_eq!(
            of_lake(&lake, false),
            [
                "DATA_PATH 's3://lake/'",
                "METADATA_SCHEMA 'it''s'",
                "SNAPSHOT_VERSION 3"
            ]
        );
        assert_eq!(address(&lake, "/data/lake.sqlite"), "sqlite:/data/lake.sqlite");
    }
}
