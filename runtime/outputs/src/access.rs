//! Access to object stores by connectors: the credentials for listing files and for the engine.

use std::{collections::BTreeMap, path::Path};

use watershed_compilers::{RenderError, Scope, render_text};
use watershed_dialect::ENGINE;
use watershed_drivers::{
    objects::{Access, Driver},
    olap::{Session, Statement, Statements as _},
};
use watershed_proto::{ConnectorSpec, MapValue, Value};

/// Context in which the settings of connectors are evaluated.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Name of the environment, such as `dev`.
    pub environment: &'a str,
    /// The project's folder.
    pub root: &'a Path,
    /// True if the project is confined: credentials of the process are not the project's.
    pub is_confined: bool,
}

/// A setting with its alternative names, and the environment variables that replace it when absent.
struct Setting {
    names: &'static [&'static str],
    environment: &'static [&'static str],
}

const S3_KEY: Setting = Setting {
    names: &["aws_access_key_id", "key_id"],
    environment: &["AWS_ACCESS_KEY_ID"],
};
const S3_SECRET: Setting = Setting {
    names: &["aws_secret_access_key", "secret"],
    environment: &["AWS_SECRET_ACCESS_KEY"],
};
const S3_TOKEN: Setting = Setting {
    names: &["aws_session_token", "aws_access_token", "session_token"],
    environment: &["AWS_SESSION_TOKEN"],
};
const S3_REGION: Setting = Setting {
    names: &["region", "aws_region"],
    environment: &["AWS_REGION", "AWS_DEFAULT_REGION"],
};
const S3_ENDPOINT: Setting = Setting {
    names: &["endpoint", "aws_endpoint"],
    environment: &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
};
const GCS_KEY: Setting = Setting {
    names: &["key_id"],
    environment: &[],
};
const GCS_SECRET: Setting = Setting {
    names: &["secret"],
    environment: &[],
};
const AZURE_ACCOUNT: Setting = Setting {
    names: &["azure_storage_account", "account"],
    environment: &["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_NAME"],
};
const AZURE_KEY: Setting = Setting {
    names: &["azure_storage_key", "key"],
    environment: &["AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"],
};
const ENDPOINT: Setting = Setting {
    names: &["endpoint"],
    environment: &[],
};

/// Returns true if a driver's name is that of an object store.
pub fn is_store(driver: &str) -> bool {
    Driver::from_name(driver).is_some()
}

/// Returns the credentials for an object store that a connector states; none if the connector is for something else.
/// `variables` must be unsealed.
///
/// # Errors
/// When a template in the settings can't be executed.
pub fn access(
    spec: &ConnectorSpec,
    variables: &BTreeMap<String, String>,
    around: Surroundings<'_>,
) -> Result<Option<Access>, RenderError> {
    let Some(driver) = Driver::from_name(&spec.driver) else {
        return Ok(None);
    };
    let scope = Scope {
        environment: around.environment.to_owned(),
        variables: variables.clone(),
        ..Scope::default()
    };
    let empty = MapValue::default();
    let settings = Settings {
        properties: spec.properties.as_ref().unwrap_or(&empty),
        scope: &scope,
        around,
    };
    settings.access(driver).map(Some)
}

struct Settings<'a> {
    properties: &'a MapValue,
    scope: &'a Scope,
    around: Surroundings<'a>,
}

impl Settings<'_> {
    fn access(&self, driver: Driver) -> Result<Access, RenderError> {
        let none = Access {
            driver,
            authorities: self
                .named("ca_cert_file")?
                .map(|file| self.around.root.join(file)),
            ..Access::default()
        };
        Ok(match driver {
            Driver::S3 => Access {
                key: self.text(&S3_KEY)?,
                secret: self.text(&S3_SECRET)?,
                session_token: self.text(&S3_TOKEN)?,
                region: self.text(&S3_REGION)?,
                endpoint: self.text(&S3_ENDPOINT)?,
                path_style: self.path_style()?,
                ..none
            },
            Driver::Gcs => Access {
                key: self.text(&GCS_KEY)?,
                secret: self.text(&GCS_SECRET)?,
                endpoint: self.text(&ENDPOINT)?,
                path_style: self.path_style()?,
                ..none
            },
            Driver::Azure => Access {
                key: self.text(&AZURE_ACCOUNT)?,
                secret: self.text(&AZURE_KEY)?,
                endpoint: self.text(&ENDPOINT)?,
                ..none
            },
            Driver::Https => Access {
                headers: self.headers()?,
                ..none
            },
        })
    }

    /// Returns the value of a setting: from the first of its names that is set, else from the environment of the process
    /// unless the project is confined.
    fn text(&self, setting: &Setting) -> Result<Option<String>, RenderError> {
        for name in setting.names {
            if let Some(text) = self.named(name)? {
                return Ok(Some(text));
            }
        }
        let environment = match self.around.is_confined {
            true => &[],
            false => setting.environment,
        };
        let said = environment.iter().find_map(|name| std::env::var(name).ok());
        Ok(said.filter(|text| !text.is_empty()))
    }

    fn named(&self, name: &str) -> Result<Option<String>, RenderError> {
        match self.properties.get(name).and_then(Value::as_str) {
            Some(text) => Ok(Some(render_text(text, self.scope)?).filter(|text| !text.is_empty())),
            None => Ok(None),
        }
    }

    /// Returns whether addresses have the bucket in their path, from `path_style: true` or the engine's form,
    /// `url_style: path`; none if neither is set.
    fn path_style(&self) -> Result<Option<bool>, RenderError> {
        if let Some(Value {
            kind: Some(watershed_proto::value::Kind::Bool(path_style)),
        }) = self.properties.get("path_style")
        {
            return Ok(Some(*path_style));
        }
        Ok(self.named("url_style")?.map(|style| style == "path"))
    }

    fn headers(&self) -> Result<BTreeMap<String, String>, RenderError> {
        let headers = self.properties.get("headers").and_then(Value::as_map);
        let mut all = BTreeMap::new();
        for (name, value) in headers.into_iter().flatten() {
            if let Some(value) = value.as_str() {
                all.insert(name.clone(), render_text(value, self.scope)?);
            }
        }
        Ok(all)
    }
}

/// Returns the prefixes of addresses to which a connector applies: its `path_prefixes`, else all addresses of its
/// driver.
pub fn prefixes(spec: &ConnectorSpec, driver: Driver) -> Vec<String> {
    let said = spec.properties.as_ref().and_then(|all| all.get("path_prefixes"));
    let list = said.and_then(Value::as_list).unwrap_or_default();
    let said: Vec<String> = match said.and_then(Value::as_str) {
        Some(one) => vec![one.to_owned()],
        None => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    if said.is_empty() {
        let schemes = driver.schemes().iter();
        return schemes.map(|scheme| format!("{scheme}://")).collect();
    }
    said
}

/// Returns the statement that gives the engine the credentials for addresses with these prefixes; none if the engine
/// needs none.
pub fn session(connector: &str, access: &Access, prefixes: &[String]) -> Option<Session> {
    let sql = ENGINE.write(&Statement::Access {
        connector,
        access,
        prefixes,
    });
    let authorities = access.authorities.clone();
    (!sql.is_empty() || authorities.is_some()).then(|| Session {
        connector: connector.to_owned(),
        sql,
        optional: true,
        authorities,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings<'static> {
        Surroundings {
            environment: "dev",
            root: Path::new(""),
            is_confined: false,
        }
    }

    fn spec<const N: usize>(driver: &str, properties: [(&str, Value); N]) -> ConnectorSpec {
        let fields = properties
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        ConnectorSpec {
            driver: driver.into(),
            properties: Some(MapValue {
                fields: fields.collect(),
            }),
            ..ConnectorSpec::default()
        }
    }

    fn statement(spec: &ConnectorSpec) -> Option<String> {
        let variables = BTreeMap::from([("secret".to_owned(), "it's".to_owned())]);
        let access = access(spec, &variables, around()).unwrap().unwrap();
        let prefixes = prefixes(spec, access.driver);
        session("store", &access, &prefixes).map(|session| session.sql)
    }

    #[test]
    fn a_store_of_its_own_is_told_to_the_engine_with_its_style_and_scope() {
        let spec = spec(
            "s3",
            [
                ("aws_access_key_id", "key".into()),
                ("aws_secret_access_key", "{{ .env.secret }}".into()),
                ("region", "eu-west-1".into()),
                ("endpoint", "http://localhost:9000/".into()),
                ("path_prefixes", Value::from(vec!["s3://lake/".into()])),
            ],
        );
        assert_eq!(
            statement(&spec).unwrap(),
            "CREATE OR REPLACE SECRET \"watershed_store\" (TYPE s3, SCOPE ['s3://lake/'], KEY_ID 'key', \
             SECRET 'it''s', REGION 'eu-west-1', ENDPOINT 'localhost:9000', URL_STYLE 'path', USE_SSL false)"
        );
    }

    #[test]
    fn web_servers_need_a_statement_for_headers_alone() {
        assert_eq!(statement(&spec("https", [])), None);
        let headers = MapValue {
            fields: BTreeMap::from([
                ("Authorization".to_owned(), "Bearer {{ .env.secret }}".into()),
                ("X-Team".to_owned(), "ours".into()),
            ]),
        };
        let headers = Value {
            kind: Some(watershed_proto::value::Kind::Map(headers)),
        };
        let sql = statement(&spec("https", [("headers", headers)])).unwrap();
        assert!(sql.contains("BEARER_TOKEN 'it''s'"), "{sql}");
        assert!(sql.contains("MAP {'X-Team': 'ours'}"), "{sql}");
        assert!(sql.contains("SCOPE ['https://', 'http://']"), "{sql}");
    }

    #[test]
    fn accounts_of_azure_become_a_connection_string() {
        let spec = spec(
            "azure",
            [
                ("azure_storage_account", "acc".into()),
                ("azure_storage_key", "a2V5".into()),
                ("endpoint", "http://localhost:10000/acc".into()),
            ],
        );
        let sql = statement(&spec).unwrap();
        assert!(
            sql.contains("AccountName=acc;AccountKey=a2V5;DefaultEndpointsProtocol=http;"),
            "{sql}"
        );
        assert!(sql.contains("BlobEndpoint=http://localhost:10000/acc"), "{sql}");
    }

    #[test]
    fn other_drivers_are_no_stores() {
        assert!(
            access(&spec("duckdb", []), &BTreeMap::new(), around())
                .unwrap()
                .is_none()
        );
        assert!(!is_store("smtp"));
    }
}
