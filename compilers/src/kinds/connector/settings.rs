//! The settings of each driver, with their types and accepted words.

/// The values that a connector's setting accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Bool,
    Count,
    Number,
    Texts,
    Map,
    Any,
}

/// The settings of a DuckDB connector that are known, with the values they accept.
pub(super) const DUCKDB: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("dsn", Type::Text),
    ("db", Type::Text),
    ("mode", Type::Text),
    ("attach", Type::Text),
    ("init_sql", Type::Text),
    ("conn_init_sql", Type::Text),
    ("boot_queries", Type::Text),
    ("init_queries", Type::Text),
    ("database_name", Type::Text),
    ("schema_name", Type::Text),
    ("secrets", Type::Any),
    ("create_secrets_from_connectors", Type::Texts),
    ("extensions", Type::Texts),
    ("settings", Type::Map),
    ("pool_size", Type::Count),
    ("cpu", Type::Count),
    ("memory_limit_gb", Type::Count),
    ("storage_limit_bytes", Type::Count),
    ("read_write_ratio", Type::Number),
    ("allow_host_access", Type::Bool),
    ("log_queries", Type::Bool),
    ("token", Type::Text),
];

/// The settings of a connector for local files that are known, with the values they accept.
pub(super) const LOCAL_FILE: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("root", Type::Text),
    ("dsn", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of a mail server, with their types.
pub(super) const SMTP: &[(&str, Type)] = &[
    ("host", Type::Text),
    ("port", Type::Count),
    ("tls", Type::Text),
    ("user", Type::Text),
    ("password", Type::Text),
    ("from", Type::Text),
    ("ca_file", Type::Text),
];

/// The settings of a Slack connector that are known, with the values they accept.
pub(super) const SLACK: &[(&str, Type)] = &[("token", Type::Text), ("api", Type::Text)];

/// The settings of a webhook connector that are known, with the values they accept.
pub(super) const WEBHOOK: &[(&str, Type)] = &[
    ("url", Type::Text),
    ("secret", Type::Text),
    ("previous_secret", Type::Text),
];

/// Settings of a command that messages are handed to, with their types.
pub(super) const COMMAND: &[(&str, Type)] = &[("command", Type::Texts), ("environment", Type::Map)];

/// Settings of S3 and compatible stores, with their types.
pub(super) const S3: &[(&str, Type)] = &[
    ("aws_access_key_id", Type::Text),
    ("aws_secret_access_key", Type::Text),
    ("aws_session_token", Type::Text),
    ("aws_access_token", Type::Text),
    ("key_id", Type::Text),
    ("secret", Type::Text),
    ("session_token", Type::Text),
    ("region", Type::Text),
    ("aws_region", Type::Text),
    ("endpoint", Type::Text),
    ("aws_endpoint", Type::Text),
    ("path_style", Type::Bool),
    ("url_style", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("aws_role_arn", Type::Text),
    ("aws_role_session_name", Type::Text),
    ("aws_external_id", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of Google Cloud Storage, with their types.
pub(super) const GCS: &[(&str, Type)] = &[
    ("key_id", Type::Text),
    ("secret", Type::Text),
    ("endpoint", Type::Text),
    ("path_style", Type::Bool),
    ("url_style", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("google_application_credentials", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of Azure Blob Storage, with their types.
pub(super) const AZURE: &[(&str, Type)] = &[
    ("azure_storage_account", Type::Text),
    ("azure_storage_key", Type::Text),
    ("account", Type::Text),
    ("key", Type::Text),
    ("endpoint", Type::Text),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
    ("azure_storage_sas_token", Type::Text),
    ("azure_storage_connection_string", Type::Text),
    ("allow_host_access", Type::Bool),
];

/// Settings of web servers, with their types.
pub(super) const HTTPS: &[(&str, Type)] = &[
    ("path", Type::Text),
    ("headers", Type::Map),
    ("path_prefixes", Type::Texts),
    ("ca_cert_file", Type::Text),
];

/// The settings of a Postgres connector that are known, with the values they accept.
pub(super) const POSTGRES: &[(&str, Type)] = &[
    ("dsn", Type::Text),
    ("database_url", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("dbname", Type::Text),
    ("database", Type::Text),
    ("sslmode", Type::Text),
    ("sslrootcert", Type::Text),
    ("connect_timeout", Type::Count),
];

/// Settings of MySQL and MariaDB, with their types.
pub(super) const MYSQL: &[(&str, Type)] = &[
    ("dsn", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("database", Type::Text),
    ("dbname", Type::Text),
    ("socket", Type::Text),
    ("ssl_mode", Type::Text),
    ("ssl-mode", Type::Text),
    ("sslmode", Type::Text),
];

/// The settings of a SQLite connector that are known, with the values they accept.
pub(super) const SQLITE: &[(&str, Type)] = &[("dsn", Type::Text), ("path", Type::Text), ("db", Type::Text)];

/// Settings of a DuckLake: its catalog database and the place of its files, with their types.
pub(super) const DUCKLAKE: &[(&str, Type)] = &[
    ("catalog", Type::Text),
    ("data_path", Type::Text),
    ("metadata_schema", Type::Text),
    ("store", Type::Text),
    ("mode", Type::Text),
    ("path", Type::Text),
    ("db", Type::Text),
    ("dsn", Type::Text),
    ("database_url", Type::Text),
    ("host", Type::Text),
    ("port", Type::Count),
    ("user", Type::Text),
    ("username", Type::Text),
    ("password", Type::Text),
    ("dbname", Type::Text),
    ("database", Type::Text),
    ("sslmode", Type::Text),
    ("sslrootcert", Type::Text),
    ("connect_timeout", Type::Count),
    ("attach", Type::Text),
];

/// Lakehouse catalogs, which are not supported: their drivers, their name in messages, and the way to read tables
/// without them.
pub(super) const CATALOGS: &[(&[&str], &str, &str)] = &[
    (
        &["iceberg", "iceberg_rest", "glue", "nessie", "polaris"],
        "catalogs of Iceberg",
        "read a table by its folder: `format: iceberg` and `path: s3://lake/tables/orders`, through a connector to its store",
    ),
    (
        &["delta", "databricks", "unity", "unity_catalog"],
        "catalogs of Delta",
        "read a table by its folder: `format: delta` and `path: s3://lake/tables/orders`, through a connector to its store",
    ),
];

/// Drivers of object stores that can hold the files of a lake.
pub(super) const STORES: [&str; 3] = ["s3", "gcs", "azure"];

/// Settings that are recognised but not supported, each with its driver and the setting to use instead.
pub(super) const NOT_FOLLOWED: &[(&str, &str, &str)] = &[
    (
        "s3",
        "aws_role_arn",
        "use the keys of a session in that role, with its `aws_session_token`",
    ),
    (
        "gcs",
        "google_application_credentials",
        "use the `key_id` and `secret` of an HMAC key",
    ),
    (
        "azure",
        "azure_storage_sas_token",
        "use `azure_storage_account` and `azure_storage_key`",
    ),
    (
        "azure",
        "azure_storage_connection_string",
        "use `azure_storage_account` and `azure_storage_key`",
    ),
    (
        "ducklake",
        "attach",
        "say `catalog: sqlite` (or `duckdb`, `postgres`), where that is (`path`, or `host` and so on), and `data_path`",
    ),
];

/// Drivers that are recognised but not supported, each with a replacement.
pub(super) const INSTEAD: &[(&str, &str)] = &[
    (
        "motherduck",
        "have it write its tables as Parquet into a bucket, which `s3`, `gcs` and `azure` read; a database file of DuckDB is read by `duckdb`",
    ),
    ("claude", NO_ASSISTANT),
    ("gemini", NO_ASSISTANT),
    ("openai", NO_ASSISTANT),
];

/// The advice for connectors to AI assistants, which are not supported.
const NO_ASSISTANT: &str = "no assistant is asked anything: what is about one is kept, and does nothing";

/// Prefixes of paths that name a MotherDuck database instead of a file.
pub(super) const MOTHERDUCK: [&str; 2] = ["md:", "motherduck:"];

/// Settings that a driver requires, by driver.
pub(super) const REQUIRED: &[(&str, &[&str])] = &[
    ("smtp", &["host", "from"]),
    ("webhook", &["url"]),
    ("command", &["command"]),
    ("ducklake", &["catalog"]),
];

/// Words that a setting accepts, by driver and setting.
pub(super) const WORDS: &[(&str, &str, &[&str])] = &[
    ("duckdb", "mode", &["read", "readwrite"]),
    ("ducklake", "catalog", &["duckdb", "sqlite", "postgres"]),
    ("ducklake", "mode", &["read", "readwrite"]),
    ("smtp", "tls", &["starttls", "implicit", "none"]),
    ("s3", "url_style", &["path", "vhost"]),
    ("gcs", "url_style", &["path", "vhost"]),
];
