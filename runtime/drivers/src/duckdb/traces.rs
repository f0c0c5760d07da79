//! Objects and settings that migrations leave in the engine: computed as the difference of the catalog before and after
//! a run, and stored in our tables in that run's transaction.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use watershed_dialect::{Dialect as _, DuckDb, Quoting as _};

use super::sys::Param;
use super::transaction::Work;
use crate::olap::{Failure, Left, Migration, Tag, Thing, ThingKind, Value};

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS _watershed.things \
     (uid UUID NOT NULL, run UUID NOT NULL, kind VARCHAR NOT NULL, schema_name VARCHAR NOT NULL, \
     name VARCHAR NOT NULL, definition BLOB)",
    "CREATE TABLE IF NOT EXISTS _watershed.settings \
     (uid UUID NOT NULL, name VARCHAR NOT NULL, value VARCHAR NOT NULL, before VARCHAR)",
];

const ARE_THERE: &str = "\
    SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() \
    AND schema_name = '_watershed' AND table_name = 'settings'";

/// Query for all catalog objects that SQL can create, with a number that changes when an object is replaced.
const CATALOG: &str = "\
    SELECT CASE function_type WHEN 'macro' THEN 'function' ELSE 'table_function' END AS kind, \
    schema_name, function_name AS name, function_oid::BIGINT AS oid, NULL::VARCHAR AS comment FROM duckdb_functions() \
    WHERE NOT internal AND database_name = current_database() AND function_type IN ('macro', 'table_macro') \
    UNION SELECT 'table', schema_name, table_name, table_oid::BIGINT, comment FROM duckdb_tables() \
    WHERE NOT internal AND database_name = current_database() AND schema_name <> '_watershed' \
    UNION SELECT 'view', schema_name, view_name, view_oid::BIGINT, comment FROM duckdb_views() \
    WHERE NOT internal AND database_name = current_database() \
    UNION SELECT 'type', schema_name, type_name, type_oid::BIGINT, NULL FROM duckdb_types() \
    WHERE NOT internal AND database_name = current_database() \
    UNION SELECT 'sequence', schema_name, sequence_name, sequence_oid::BIGINT, NULL FROM duckdb_sequences() \
    WHERE database_name = current_database()";

/// Settings without influence on the meaning of SQL: of the process, of a connection, or our own.
const OWN_SETTINGS: [&str; 28] = [
    "access_mode",
    "allocator_background_threads",
    "allocator_bulk_deallocation_flush_threshold",
    "allocator_flush_threshold",
    "autoinstall_known_extensions",
    "checkpoint_threshold",
    "duckdb_api",
    "enable_http_metadata_cache",
    "enable_profiling",
    "enable_progress_bar",
    "enable_progress_bar_print",
    "errors_as_json",
    "external_threads",
    "file_search_path",
    "lock_configuration",
    "log_query_path",
    "max_memory",
    "max_temp_directory_size",
    "memory_limit",
    "profiling_mode",
    "profiling_output",
    "progress_bar_time",
    "schema",
    "search_path",
    "temp_directory",
    "threads",
    "wal_autocheckpoint",
    "worker_threads",
];

/// Parts of setting names whose values are secret and therefore not stored.
const SECRET: [&str; 4] = ["secret", "password", "token", "access_key"];

type ThingKey = (ThingKind, String, String);

/// Catalog objects at one moment, each with its number.
type Catalog = BTreeMap<ThingKey, i64>;

/// A setting that a migration changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: String,
    before: Option<String>,
}

impl Setting {
    /// Returns the statement that applies the setting.
    pub(super) fn set(&self) -> String {
        DuckDb.set(&self.name, Some(&self.value))
    }

    /// Returns name and value of the setting.
    pub(super) fn into_pair(self) -> (String, String) {
        (self.name, self.value)
    }
}

/// Creates the tables that record migrations, if they are missing.
pub(super) fn set_up(work: &Work<'_>) -> Result<(), Failure> {
    TABLES.iter().try_for_each(|sql| work.run(sql, &[]).map(drop))
}

/// Returns true if our tables for migrations exist; older versions created none.
pub(super) fn is_set_up(work: &Work<'_>) -> Result<bool, Failure> {
    if let Some(lake) = work.lake() {
        let tables = lake.own_tables(work.connection());
        let tables = tables.map_err(|raw| work.fail(&raw, None))?;
        return Ok(tables.iter().any(|table| table == "settings"));
    }
    Ok(!work.run(ARE_THERE, &[])?.is_empty())
}

/// Returns the current catalog objects except outputs, which are inputs by their builds.
pub(super) fn catalog(work: &Work<'_>) -> Result<Catalog, Failure> {
    let rows = work.run(CATALOG, &[])?;
    let entry = |row: Vec<Value>| match <[Value; 5]>::try_from(row).ok()? {
        [
            Value::Text(kind),
            Value::Text(schema),
            Value::Text(name),
            oid,
            comment,
        ] => {
            let is_ours = matches!(&comment, Value::Text(text) if Tag::parse(text).is_some());
            let oid = match oid {
                Value::Integer(oid) => i64::try_from(oid).unwrap_or_default(),
                _ => 0,
            };
            let kind = ThingKind::parse(&kind).filter(|_| !is_ours)?;
            Some(((kind, schema, name), oid))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(entry).collect())
}

/// Returns the objects that a resource has left so far.
pub(super) fn things_of(work: &Work<'_>, uid: Uuid) -> Result<Vec<Thing>, Failure> {
    let rows = work.run(
        "SELECT run, kind, schema_name, name, definition FROM _watershed.things WHERE uid = ? ORDER BY ALL",
        &[Param::Text(&uid.to_string())],
    )?;
    let thing = |row: Vec<Value>| match <[Value; 5]>::try_from(row).ok()? {
        [
            run,
            Value::Text(kind),
            Value::Text(schema),
            Value::Text(name),
            definition,
        ] => Some(Thing {
            kind: ThingKind::parse(&kind)?,
            schema,
            name,
            run: Uuid::try_parse(&run.to_string()).ok()?,
            definition: match definition {
                Value::Blob(bytes) => Some(bytes),
                _ => None,
            },
        }),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(thing).collect())
}

/// Returns the objects that remain after a run, from the catalog before and after it.
pub(super) fn difference(
    former: Vec<Thing>,
    before: &Catalog,
    after: &Catalog,
    migration: &Migration,
) -> Vec<Thing> {
    let touched = |key: &ThingKey, oid: &i64| {
        let is_new = before.get(key) != Some(oid);
        is_new || key.0 == ThingKind::Table && migration.mentions.contains(&key.2.to_lowercase())
    };
    let mut left: BTreeMap<ThingKey, Thing> = former
        .into_iter()
        .map(|thing| ((thing.kind, thing.schema.clone(), thing.name.clone()), thing))
        .filter(|(key, _)| after.contains_key(key))
        .collect();
    for (key, _) in after.iter().filter(|(key, oid)| touched(key, oid)) {
        let (kind, schema, name) = key.clone();
        let definition = migration.definitions.get(&name.to_lowercase()).cloned();
        let thing = Thing {
            kind,
            schema,
            name,
            run: migration.run,
            definition,
        };
        left.insert(key.clone(), thing);
    }
    left.into_values().collect()
}

/// Stores the objects that a resource has left, replacing its stored ones.
pub(super) fn write(work: &Work<'_>, uid: Uuid, left: &[Thing], settings: &[Setting]) -> Result<(), Failure> {
    let uid = uid.to_string();
    for table in ["things", "settings"] {
        let delete = format!("DELETE FROM _watershed.{table} WHERE uid = ?");
        work.run(&delete, &[Param::Text(&uid)])?;
    }
    for thing in left {
        let run = thing.run.to_string();
        let mut params = vec![
            Param::Text(&uid),
            Param::Text(&run),
            Param::Text(thing.kind.as_str()),
            Param::Text(&thing.schema),
            Param::Text(&thing.name),
        ];
        let definition = match &thing.definition {
            Some(bytes) => {
                params.push(Param::Blob(bytes));
                "?"
            }
            None => "NULL",
        };
        let insert = format!("INSERT INTO _watershed.things VALUES (?, ?, ?, ?, ?, {definition})");
        work.run(&insert, &params)?;
    }
    for setting in settings {
        let before = setting
            .before
            .as_deref()
            .map_or("NULL".to_owned(), |text| DuckDb.text(text));
        let insert = format!("INSERT INTO _watershed.settings VALUES (?, ?, ?, {before})");
        let params = [
            Param::Text(&uid),
            Param::Text(&setting.name),
            Param::Text(&setting.value),
        ];
        work.run(&insert, &params)?;
    }
    Ok(())
}

/// Drops functions that a resource made, unless another one made them too.
pub(super) fn drop_functions(work: &Work<'_>, uid: Uuid) -> Result<(), Failure> {
    let mine = things_of(work, uid)?;
    let rows = work.run(
        "SELECT schema_name || '.' || name FROM _watershed.things WHERE uid <> ?",
        &[Param::Text(&uid.to_string())],
    )?;
    let others: BTreeSet<String> = rows.into_iter().flatten().map(|name| name.to_string()).collect();
    for thing in mine {
        let kind = match thing.kind {
            ThingKind::Function => "MACRO",
            ThingKind::TableFunction => "MACRO TABLE",
            _ => continue,
        };
        if !others.contains(&format!("{}.{}", thing.schema, thing.name)) {
            let name = format!("{}.{}", DuckDb.name(&thing.schema), DuckDb.name(&thing.name));
            work.run(&format!("DROP {kind} IF EXISTS {name}"), &[])?;
        }
    }
    Ok(())
}

/// Returns the current settings of a connection.
pub(super) fn settings_now(work: &Work<'_>) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let rows = work.run("SELECT name, value FROM duckdb_settings()", &[])?;
    let pair = |row: Vec<Value>| match <[Value; 2]>::try_from(row).ok()? {
        [Value::Text(name), value] => {
            let told =
                !OWN_SETTINGS.contains(&name.as_str()) && !SECRET.iter().any(|part| name.contains(part));
            let value = match value {
                Value::Text(value) => Some(value),
                _ => None,
            };
            told.then_some((name, value))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Returns the settings whose values have changed.
pub(super) fn changed(
    before: &BTreeMap<String, Option<String>>,
    now: &BTreeMap<String, Option<String>>,
) -> Vec<Setting> {
    let is_changed = |(name, value): &(&String, &Option<String>)| before.get(*name) != Some(*value);
    let changed = now.iter().filter(is_changed);
    changed
        .filter_map(|(name, value)| {
            Some(Setting {
                name: name.clone(),
                value: value.clone()?,
                before: before.get(name).cloned().flatten(),
            })
        })
        .collect()
}

/// Restores the previous values of settings.
pub(super) fn undo(work: &Work<'_>, settings: &[Setting]) {
    for setting in settings {
        // One that can't be set back is not worth the failure of what comes next.
        if let Err(error) = work.run(&DuckDb.set(&setting.name, setting.before.as_deref()), &[]) {
            tracing::debug!(%error, setting = setting.name, "a setting could not be set back");
        }
    }
}

/// Returns the settings that migrations changed: of one resource, or of all.
pub(super) fn settings_of(work: &Work<'_>, uid: Option<Uuid>) -> Result<Vec<Setting>, Failure> {
    let only = uid.map_or_else(String::new, |uid| format!("WHERE uid = '{uid}'"));
    let rows = work.run(
        &format!("SELECT name, value, before FROM _watershed.settings {only} ORDER BY uid, name"),
        &[],
    )?;
    let setting = |row: Vec<Value>| match <[Value; 3]>::try_from(row).ok()? {
        [Value::Text(name), Value::Text(value), before] => Some(Setting {
            name,
            value,
            before: match before {
                Value::Text(before) => Some(before),
                _ => None,
            },
        }),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(setting).collect())
}

/// Returns all stored objects and settings that a resource has left.
pub(super) fn read(work: &Work<'_>, uid: Uuid) -> Result<Left, Failure> {
    if !is_set_up(work)? {
        return Ok(Left::default());
    }
    let settings = settings_of(work, Some(uid))?;
    Ok(Left {
        things: things_of(work, uid)?,
        settings: settings.into_iter().map(Setting::into_pair).collect(),
    })
}

/// Removes the traces of a resource: drops its functions and restores its settings. Its other objects stay.
pub(super) fn forget(work: &Work<'_>, uid: Uuid) -> Result<(), Failure> {
    if is_set_up(work)? {
        drop_functions(work, uid)?;
        undo(work, &settings_of(work, Some(uid))?);
        write(work, uid, &[], &[])?;
    }
    Ok(())
}

/// Transfers the stored objects and settings of a resource to its replacement.
pub(super) fn adopt(work: &Work<'_>, from: &str, to: Uuid) -> Result<(), Failure> {
    for table in ["things", "settings", "migrations"] {
        let update = format!("UPDATE _watershed.{table} SET uid = ? WHERE uid = ?");
        work.run(&update, &[Param::Text(&to.to_string()), Param::Text(from)])?;
    }
    Ok(())
}
