//! Rendering of abstract statements as the engine's SQL.

mod access;
mod expression;
mod lake;

use uuid::Uuid;
use watershed_dialect::{DataFormat, Dialect as _, DuckDb, Literal, Quoting as _};

use crate::olap::{
    Common, Guess, PARTITION_COLUMN, RUN_COLUMN, ReaderOption, Statement, Statements, System, Value,
    stage_table,
};

impl Statements for DuckDb {
    fn write(&self, statement: &Statement<'_>) -> String {
        match *statement {
            Statement::Files {
                format: DataFormat::Xlsx,
                paths,
                options,
            } => workbooks(paths, options),
            Statement::Files {
                format,
                paths,
                options,
            } => {
                let reader = self.reader(format).unwrap_or("read_text");
                format!(
                    "SELECT * FROM {reader}({})",
                    arguments(self.literal(paths), options)
                )
            }
            Statement::Guesses { path, options, asked } => {
                let asked: Vec<&str> = asked.iter().map(|guess| column(*guess)).collect();
                let arguments = arguments(self.text(path), options);
                format!("SELECT {} FROM sniff_csv({arguments})", asked.join(", "))
            }
            Statement::Table { database, table } => {
                let parts: Vec<&str> = std::iter::once(database).chain(table.split('.')).collect();
                format!("SELECT * FROM {}", self.path(&parts))
            }
            Statement::Query {
                database,
                system,
                sql,
            } => handed_on(database, system, sql),
            Statement::Latest { sql, column, seconds } => {
                let column = self.name(column);
                format!(
                    "SELECT * FROM ({sql}\n) AS sampled WHERE {column} > \
                     (SELECT max({column}) FROM ({sql}\n) AS sampled) - to_seconds({seconds})"
                )
            }
            Statement::Changes {
                lake,
                schema,
                table,
                snapshot,
                then,
            } => lake::changes((lake, schema), table, snapshot, then),
            Statement::Expressions(texts) => expression::describe(texts),
            Statement::Access {
                connector,
                access,
                prefixes,
            } => access::secret(connector, access, prefixes),
            Statement::Columns(query) => format!("DESCRIBE\n{query}"),
            Statement::Steady => STEADY.to_owned(),
            Statement::Macros => MACROS.to_owned(),
            Statement::Version => "SELECT version()".to_owned(),
            Statement::Catalog => CATALOG.to_owned(),
            Statement::Described(names) => {
                let names: Vec<String> = names.iter().map(|name| self.text(name)).collect();
                DESCRIBED.replace("{names}", &names.join(", "))
            }
            Statement::Empty(table) => format!("SELECT * FROM {} LIMIT 0", self.name(table)),
            Statement::NoRows(columns) => {
                let column = |(name, data_type): &(String, String)| {
                    format!("CAST(NULL AS {data_type}) AS {}", self.name(name))
                };
                let columns: Vec<String> = columns.iter().map(column).collect();
                format!("SELECT {} LIMIT 0", columns.join(", "))
            }
            // The optimizer moves no condition and no expression below a limit.
            Statement::Sealed(sql) => format!("SELECT * FROM ({sql}\n) AS sealed LIMIT {}", i64::MAX),
            Statement::Staged { uid, common } => staged(uid, common),
            Statement::Swappable { table, columns } => swappable(table, columns),
            Statement::Unlike {
                table,
                column,
                data_type,
            } => {
                let (table, column) = (self.name(table), self.name(column));
                let value = format!("TRY_CAST({column} AS {data_type})");
                format!(
                    "SELECT first({column}) FILTER (WHERE {value} IS NULL) FROM {table} \
                     WHERE {column} IS NOT NULL HAVING count({value}) > 0"
                )
            }
            Statement::Matching { names, pattern } => {
                let rows: Vec<String> = names
                    .iter()
                    .map(|name| format!("({})", self.text(name)))
                    .collect();
                format!(
                    "SELECT name FROM (VALUES {}) AS fields(name) WHERE regexp_matches(name, {})",
                    rows.join(", "),
                    self.text(pattern)
                )
            }
        }
    }

    fn not_one_expression<'t>(&self, texts: &[&'t str], rows: &[Vec<Value>]) -> Vec<&'t str> {
        expression::others(texts, rows)
    }
}

/// Query for the columns of the project's tables and views, without our own.
const CATALOG: &str = "SELECT table_name, column_name, data_type FROM duckdb_columns() \
                       WHERE NOT internal AND schema_name = 'main' AND database_name = current_database() \
                       AND NOT starts_with(table_name, '_watershed_') ORDER BY table_name, column_index";

/// Query for the columns of some tables and views; an empty list matches none.
const DESCRIBED: &str = "SELECT table_name AS name, list(column_name ORDER BY column_index) AS column_names, \
                         list(data_type ORDER BY column_index) AS column_types FROM duckdb_columns() \
                         WHERE NOT internal AND schema_name = 'main' AND database_name = current_database() \
                         AND list_contains([{names}]::VARCHAR[], lower(table_name)) GROUP BY table_name ORDER BY table_name";

/// Query for the names of deterministic built-in functions, and of types.
const STEADY: &str = "SELECT function_name FROM duckdb_functions() GROUP BY function_name \
     HAVING bool_and(internal AND function_type IN ('scalar', 'aggregate') AND stability = 'CONSISTENT') \
     UNION SELECT type_name FROM duckdb_types() WHERE internal";

const MACROS: &str = "SELECT current_database(), NULL UNION ALL \
     SELECT DISTINCT current_database(), function_name FROM duckdb_functions() WHERE NOT internal";

fn staged(uid: Uuid, common: Common<'_>) -> String {
    let stage = stage_table(uid);
    let all = format!("SELECT * EXCLUDE ({PARTITION_COLUMN}, {RUN_COLUMN}) FROM {stage}");
    match common {
        Common::None => all,
        Common::Key(names) => {
            let names: Vec<String> = names.iter().map(|name| DuckDb.name(name)).collect();
            let names = names.join(", ");
            format!("{all} QUALIFY row_number() OVER (PARTITION BY {names} ORDER BY {RUN_COLUMN} DESC) = 1")
        }
        Common::Expressions(by) => {
            format!("{all} QUALIFY {RUN_COLUMN} = max({RUN_COLUMN}) OVER (PARTITION BY ({by}))")
        }
        Common::ByPartition => format!("SELECT * EXCLUDE ({RUN_COLUMN}) FROM {stage}"),
    }
}

fn swappable(table: &str, columns: &[&str]) -> String {
    let of_column = |column: &&str| {
        let column = DuckDb.name(column);
        format!(
            "coalesce(bool_and(day({column}) <= 12) AND bool_or(day({column}) <> month({column})), false)"
        )
    };
    let all: Vec<String> = columns.iter().map(of_column).collect();
    format!(
        "SELECT 'yes' FROM {} HAVING {}",
        DuckDb.name(table),
        all.join(" AND ")
    )
}

/// Returns the query for the rows of workbooks, which the engine reads one at a time.
///
/// An empty row would end a sheet: it is passed over instead, unless the options say how far a sheet goes.
fn workbooks(paths: &Literal, options: &[ReaderOption]) -> String {
    let says = |option: &ReaderOption| {
        let (ReaderOption::Known(name, _) | ReaderOption::Own(name, _)) = option;
        ["range", "stop_at_empty"]
            .iter()
            .any(|says| name.eq_ignore_ascii_case(says))
    };
    let (further, filled) = match options.iter().any(says) {
        true => ("", ""),
        false => (", stop_at_empty = false", " WHERE concat(*COLUMNS(*)) <> ''"),
    };
    let one = |path: &Literal| {
        let arguments = arguments(DuckDb.literal(path), options);
        format!("SELECT * FROM read_xlsx({arguments}{further}){filled}")
    };
    match paths {
        Literal::List(paths) => paths
            .iter()
            .map(one)
            .collect::<Vec<_>>()
            .join(" UNION ALL BY NAME "),
        path => one(path),
    }
}

/// Returns a query whose text another database executes in its own language; for the engine's own databases, the query
/// itself.
fn handed_on(database: &str, system: System, sql: &str) -> String {
    let function = match system {
        System::Postgres => "postgres_query",
        System::Mysql => "mysql_query",
        System::Sqlite => "sqlite_query",
        System::DuckDb | System::DuckLake => return sql.to_owned(),
    };
    let sql = sql.trim_end().trim_end_matches(';');
    format!(
        "SELECT * FROM {function}({}, {})",
        DuckDb.text(database),
        DuckDb.text(sql)
    )
}

/// Returns the column of a guess in the engine's answer.
fn column(guess: Guess) -> &'static str {
    match guess {
        Guess::Delimiter => "Delimiter",
        Guess::Quote => "Quote",
        Guess::Header => "HasHeader",
        Guess::Dates => "DateFormat",
        Guess::Times => "TimestampFormat",
        Guess::DatesOrTimes => "coalesce(DateFormat, TimestampFormat)",
        Guess::Skipped => "SkipRows",
    }
}

/// Returns the argument list of a reader function: its input, and `name = value` for each option.
fn arguments(read: String, options: &[ReaderOption]) -> String {
    let options = options.iter().map(|option| match option {
        ReaderOption::Known(name, value) => known(name, value),
        ReaderOption::Own(name, sql) => format!("{} = {sql}", DuckDb.name(name)),
    });
    let all: Vec<String> = std::iter::once(read).chain(options).collect();
    all.join(", ")
}

/// Options whose name for users differs from the engine's.
const OTHER_NAMES: [(&str, &str); 1] = [("delimiter", "delim")];

fn known(name: &str, value: &Literal) -> String {
    let others = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    let name = others.map_or(name, |(_, of_engine)| of_engine);
    let value = match (name, value) {
        ("encoding", Literal::Text(encoding)) => DuckDb.text(&encoding_of_engine(encoding)),
        _ => DuckDb.literal(value),
    };
    format!("{name} = {value}")
}

/// Returns the engine's name of an encoding: `cp1252` for `windows-1252`.
fn encoding_of_engine(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    match lower.strip_prefix("windows-") {
        Some(page) if page.bytes().all(|byte| byte.is_ascii_digit()) => format!("cp{page}"),
        _ => name.to_owned(),
    }
}
