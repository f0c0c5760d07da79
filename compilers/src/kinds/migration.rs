//! Migrations: SQL that runs once.

use watershed_proto::MigrationSpec;

use crate::{
    blocks::connector,
    diagnostics::Code,
    draft::{
        Purpose,
        block::{block, first_line},
    },
    engine::Need,
    kinds::reader::{Declared, Reader},
    resource::Spec,
    sql::is_blank,
    template::is_template,
    yaml::{keys::blocks, misspelled},
};

blocks! {
    /// Keys that a migration accepts at its top level.
    pub(crate) static MIGRATION = "migration" Kept {
        "sql": Sql, "What is run.";
        "connector": Text, "The connector that it is run on.";
        "max_version": Count, "It is run once for each version up to this one.";
        "description": Text, "What it does.";
    }
}

/// Reads a migration from its settings.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    let version = reader.fields.count("max_version").unwrap_or_default();
    let connector = match reader.fields.text_node("connector") {
        Some(node) => connector::name(&node, reader.context, reader.fields.findings()),
        None => reader.context.olap.to_owned(),
    };
    let driver = reader
        .context
        .driver(&connector)
        .filter(|driver| *driver != "duckdb");
    let driver = driver.unwrap_or_default().to_owned();
    if driver.is_empty() {
        let at = reader.fields.at();
        reader
            .context
            .needs(Need::Migrations, at, reader.fields.findings());
    }
    reader.fields.take("description");
    for (key, entry) in reader.fields.take_rest() {
        misspelled(reader.fields.findings(), &key, entry.key_at, &MIGRATION);
    }
    let mut spec = MigrationSpec {
        connector,
        driver,
        version,
        ..MigrationSpec::default()
    };
    match reader.about.sql.take() {
        None => {
            let at = reader.fields.at();
            let hint = "write it under `sql:` or in a `.sql` file of the same name";
            reader
                .findings()
                .add_with_hint(at, Code::MissingKey, "a migration needs SQL", hint);
        }
        Some(sql) => {
            if is_blank(&sql.text) {
                let at = first_line(&sql.text, &sql.place);
                reader.findings().add(at, Code::MissingKey, "the SQL is empty");
            }
            let templated = sql.templating && is_template(&sql.text);
            spec.sql = Some(sql.place.source(&sql.text, templated, false));
            let (context, uses) = (reader.context, &mut reader.uses);
            let how = (false, sql.templating);
            // Read for what its templates use: what it runs is the engine's to judge.
            let _ = block(
                Purpose::Around,
                &sql.text,
                sql.place,
                how,
                context,
                uses,
                reader.fields.findings(),
            );
            reader.uses.refs.clear();
        }
    }
    // No ref to its connector: migrations are run before anything else.
    Declared::new(Spec::Migration(Box::new(spec)))
}
