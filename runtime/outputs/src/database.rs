//! Connectors to databases, and the settings with which a database is attached to the engine.

use std::path::{Path, PathBuf};

use watershed_compilers::{RenderError, Scope, render_text};
use watershed_drivers::olap::{ATTACHED_PREFIX, Attached, Lake, Rights, Snapshot, System};
use watershed_proto::{MapValue, Value, value::Kind};

/// Names of settings that hold a server's whole address, or the path of a file.
const ADDRESS: [&str; 5] = ["dsn", "database_url", "url", "path", "db"];

/// Default time limit for connecting to a server, in seconds.
const PATIENCE: &str = "15";

/// Names of a setting in files, and the name of its option in the engine's secret.
type Login = (&'static [&'static str], &'static str);

/// Options of the engine's secret, each with its value.
type LoginOptions = Vec<(&'static str, String)>;

const SERVER: [Login; 6] = [
    (&["socket"], "SOCKET"),
    (&["host"], "HOST"),
    (&["port"], "PORT"),
    (&["user", "username"], "USER"),
    (&["password"], "PASSWORD"),
    (&["dbname", "database"], "DATABASE"),
];

/// Settings that are passed to the client of a system: system, names in files, and name for the client.
const PASSED_ON: [(System, &[&str], &str); 4] = [
    (System::Postgres, &["sslmode", "ssl_mode"], "sslmode"),
    (System::Postgres, &["sslrootcert"], "sslrootcert"),
    (System::Postgres, &["connect_timeout"], "connect_timeout"),
    (System::Mysql, &["ssl_mode", "ssl-mode", "sslmode"], "ssl_mode"),
];

/// The settings of a connection to a database: of a connector, overridden by the settings of the model that reads.
pub struct Connection<'a> {
    /// Type of the database, such as Postgres.
    pub system: System,
    /// Name of the connector that states the connection.
    pub connector: &'a str,
    /// Settings, those with precedence first.
    pub settings: Vec<(&'a MapValue, Scope)>,
    /// The project's folder.
    pub root: &'a Path,
}

impl Connection<'_> {
    /// Returns the description of the attached database for a reader of this name.
    ///
    /// # Errors
    /// When a template in the settings can't be executed.
    pub fn attached(&self, reader: &str) -> Result<Attached, RenderError> {
        let lake = match self.system {
            System::DuckLake => Some(self.lake()?),
            _ => None,
        };
        let keeper = lake.as_ref().map_or(self.system, |lake| lake.catalog);
        let (target, login) = match keeper.is_file() {
            true => (self.file()?.to_string_lossy().into_owned(), Vec::new()),
            false => self.server(keeper)?,
        };
        Ok(Attached {
            name: name(reader),
            system: self.system,
            connector: self.connector.to_owned(),
            target,
            login,
            rights: Rights::Read,
            lake,
        })
    }

    /// Returns the settings of a lake beside the database of its catalog.
    fn lake(&self) -> Result<Lake, RenderError> {
        let catalog = self.text(&["catalog"])?.unwrap_or_default();
        let data_path = self.text(&["data_path"])?.map(|path| match path.contains("://") {
            true => path,
            false => self.root.join(path).to_string_lossy().into_owned(),
        });
        Ok(Lake {
            // The compiler refuses what is none.
            catalog: System::from_driver(&catalog).unwrap_or(System::DuckDb),
            data_path,
            schema: self.text(&["metadata_schema"])?,
            snapshot: self.text(&["snapshot"])?.map(|text| Snapshot::read(&text)),
        })
    }

    /// Returns the path of the database's file.
    fn file(&self) -> Result<PathBuf, RenderError> {
        let said = self.text(&ADDRESS)?.unwrap_or_default();
        let path = said.split('?').next().unwrap_or_default();
        let path = path.strip_prefix("file:").unwrap_or(path);
        Ok(self.root.join(path))
    }

    /// Returns the server's address in the syntax of its client, and the options of the login.
    fn server(&self, system: System) -> Result<(String, LoginOptions), RenderError> {
        if let Some(address) = self.text(&ADDRESS)? {
            return Ok((address, Vec::new()));
        }
        let mut login = Vec::new();
        // Clients of Postgres take the folder of a socket for a host.
        let known = |option: &str| option != "SOCKET" || system == System::Mysql;
        for (names, option) in SERVER.into_iter().filter(|(_, option)| known(option)) {
            login.extend(self.text(names)?.map(|text| (option, text)));
        }
        let mut words = Vec::new();
        for (_, names, word) in PASSED_ON.iter().filter(|(of, ..)| *of == system) {
            words.extend(self.text(names)?.map(|text| (*word, text)));
        }
        if system == System::Postgres && !words.iter().any(|(word, _)| *word == "connect_timeout") {
            words.push(("connect_timeout", PATIENCE.to_owned()));
        }
        let words = words
            .iter()
            .map(|(word, text)| format!("{word}='{}'", text.replace('\\', "\\\\").replace('\'', "\\'")));
        Ok((words.collect::<Vec<_>>().join(" "), login))
    }

    /// Returns the value of the first of these settings that is set.
    fn text(&self, names: &[&str]) -> Result<Option<String>, RenderError> {
        for (properties, scope) in &self.settings {
            for name in names {
                let text = match properties.get(name).and_then(|value| value.kind.as_ref()) {
                    Some(Kind::String(text)) => render_text(text, scope)?,
                    Some(Kind::Int(number)) => number.to_string(),
                    _ => continue,
                };
                if !text.is_empty() {
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the name under which a database is attached for a reader.
pub fn name(reader: &str) -> String {
    format!("{ATTACHED_PREFIX}{reader}")
}

/// Returns the qualified table name in a connector's settings: `schema.table`, or the table alone.
pub fn table(properties: &MapValue) -> Option<&str> {
    properties.get("table").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn attached<const N: usize>(driver: &str, properties: [(&str, Value); N]) -> Attached {
        let fields = properties
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let properties = MapValue {
            fields: fields.collect(),
        };
        let scope = Scope {
            variables: BTreeMap::from([("password".to_owned(), "p'w".to_owned())]),
            ..Scope::default()
        };
        let connection = Connection {
            system: System::from_driver(driver).unwrap(),
            connector: "shop",
            settings: vec![(&properties, scope)],
            root: Path::new("/project"),
        };
        connection.attached("orders").unwrap()
    }

    #[test]
    fn settings_of_a_server_are_a_login_and_the_rest_goes_to_its_client() {
        let shop = attached(
            "postgres",
            [
                ("host", "db".into()),
                ("port", Value::from(5433_i64)),
                ("user", "ada".into()),
                ("password", "{{ .env.password }}".into()),
                ("dbname", "shop".into()),
                ("sslmode", "require".into()),
            ],
        );
        assert_eq!(shop.target, "sslmode='require' connect_timeout='15'");
        let login: Vec<_> = shop
            .login
            .iter()
            .map(|(option, value)| (*option, value.as_str()))
            .collect();
        let expected = [
            ("HOST", "db"),
            ("PORT", "5433"),
            ("USER", "ada"),
            ("PASSWORD", "p'w"),
            ("DATABASE", "shop"),
        ];
        assert_eq!(login, expected);
    }

    #[test]
    fn an_address_stands_for_itself_and_files_stand_in_the_project() {
        let shop = attached(
            "postgres",
            [("dsn", "postgres://h/d".into()), ("host", "x".into())],
        );
        assert_eq!((shop.target.as_str(), shop.login.len()), ("postgres://h/d", 0));
        let notes = attached("sqlite", [("db", "data/notes.sqlite?mode=ro".into())]);
        assert_eq!(notes.target, "/project/data/notes.sqlite");
        assert_eq!(notes.name, "_watershed_orders");
    }

    #[test]
    fn the_catalog_of_a_lake_has_the_settings_of_its_system() {
        let lake = attached(
            "ducklake",
            [
                ("catalog", "postgres".into()),
                ("host", "db".into()),
                ("password", "{{ .env.password }}".into()),
                ("data_path", "data/lake".into()),
                ("snapshot", Value::from(7_i64)),
            ],
        );
        assert_eq!(lake.target, "connect_timeout='15'");
        assert_eq!(lake.login.len(), 2);
        let parts = lake.lake.unwrap();
        assert_eq!(parts.catalog, System::Postgres);
        assert_eq!(parts.data_path.as_deref(), Some("/project/data/lake"));
        assert_eq!(parts.snapshot, Some(Snapshot::Version(7)));
        let lake = attached(
            "ducklake",
            [
                ("catalog", "sqlite".into()),
                ("path", "lake.sqlite".into()),
                ("data_path", "s3://lake/".into()),
            ],
        );
        assert_eq!(lake.file(), Some(Path::new("/project/lake.sqlite")));
        assert_eq!(lake.lake.unwrap().data_path.as_deref(), Some("s3://lake/"));
    }
}
