//! Lakes that others change, restore or forbid, and projects that two machines build in one.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::server::extensions;

use crate::care::SmallDisk;
use crate::lake_engine::{IN_A_FILE, has_extensions, maker, small};
use crate::sandbox::Sandbox;

/// Options by which others attach the lake of the project in Postgres.
const SCHEMA: &str = ", METADATA_SCHEMA 'watershed_project_dev'";

fn in_postgres(server: &Server, user: &str) -> String {
    let host = server.socket_folder().display();
    format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: {user}\ndbname: postgres\ndata_path: files\n"
    )
}

fn address(server: &Server) -> String {
    format!(
        "postgres:host={} user=postgres dbname=postgres",
        server.socket_folder().display()
    )
}

/// Runs statements of Postgres itself.
fn in_server(server: &Server, sql: &str) {
    let hand = ByHand::in_memory();
    hand.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    hand.run(&format!(
        "ATTACH 'host={} user=postgres dbname=postgres' AS pg (TYPE postgres)",
        server.socket_folder().display()
    ));
    let sql = sql.replace('\'', "''");
    hand.run(&format!("CALL postgres_execute('pg', '{sql}')"));
}

/// A run is refused in these words, with the connector's file.
fn is_refused(project: &Sandbox, words: &str) {
    let said = project.call(&["run"]);
    assert_ne!(said.code, Some(0), "{words}: {}", said.stdout);
    assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    assert!(
        said.stderr.contains("connectors/lake.yaml"),
        "{words}: {}",
        said.stderr
    );
    assert!(said.stderr.contains("hint: "), "{words}: {}", said.stderr);
}

#[test]
fn a_catalog_that_may_only_be_read_is_refused_and_left_as_it_is() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let project = small(&in_postgres(&server, "postgres"));
    project.run(0);
    let hand = maker(&address(&server), SCHEMA);
    let newest = || hand.lines("SELECT max(snapshot_id) FROM ducklake_snapshots('theirs')");
    let before = newest();
    in_server(
        &server,
        "CREATE ROLE looker LOGIN; GRANT USAGE ON SCHEMA watershed_project_dev TO looker; \
         GRANT SELECT ON ALL TABLES IN SCHEMA watershed_project_dev TO looker",
    );
    project.edit("connectors/lake.yaml", "user: postgres", "user: looker");
    project.edit("models/days.sql", "range(20)", "range(30)");
    is_refused(&project, "may only be read");
    assert_eq!(newest(), before);
    project.edit("connectors/lake.yaml", "user: looker", "user: postgres");
    project.run(0);
    assert_eq!(hand.lines("SELECT count(*) FROM theirs.late"), ["19"]);
}

#[test]
fn other_versions_of_the_formats_are_refused_and_left_as_they_are() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    project.run(0);
    let catalog = project.path().join("lake/catalog.sqlite");
    let address = format!("sqlite:{}", catalog.display());
    let set = |format: &str| {
        let hand = maker(&address, ", META_JOURNAL_MODE 'WAL'");
        hand.run(&format!(
            "UPDATE theirs._watershed.project SET format = '{format}'"
        ));
    };
    set("2");
    is_refused(&project, "another version of Watershed");
    set("1");
    project.run(0);
    let set = |version: &str| {
        let hand = ByHand::in_memory();
        hand.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        hand.run(&format!(
            "ATTACH '{}' AS catalog (TYPE sqlite)",
            catalog.display()
        ));
        hand.run(&format!(
            "UPDATE catalog.ducklake_metadata SET value = '{version}' WHERE key = 'version'"
        ));
    };
    set("9.9");
    is_refused(&project, "9.9");
    set("1.0");
    project.run(0);
    assert_eq!(
        project.rows("SELECT count(*) FROM late"),
        serde_json::json!([[9]])
    );
}

#[test]
fn what_strangers_add_and_drop_is_mended_by_the_next_build() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    project.run(0);
    let address = format!("sqlite:{}/lake/catalog.sqlite", project.path().display());
    let hand = || maker(&address, ", META_JOURNAL_MODE 'WAL'");
    hand().run("ALTER TABLE theirs.days ADD COLUMN theirs INTEGER");
    project.edit("models/days.sql", "range(20)", "range(25)");
    project.run(0);
    assert_eq!(
        hand().lines("SELECT * FROM theirs.days ORDER BY ALL LIMIT 1"),
        ["0"]
    );
    hand().run("DROP TABLE theirs.days");
    hand().run("DROP VIEW theirs.late");
    assert_eq!(project.run(0).len(), 2);
    assert_eq!(hand().lines("SELECT count(*) FROM theirs.late"), ["14"]);
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

#[test]
fn a_model_that_reads_itself_through_a_strangers_view_or_macro_reads_its_last_rows() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    project.run(0);
    let address = format!("sqlite:{}/lake/catalog.sqlite", project.path().display());
    let by_hand = |statements: [&str; 2]| {
        let hand = maker(&address, ", META_JOURNAL_MODE 'WAL'");
        hand.run("USE theirs");
        for sql in statements {
            hand.run(sql);
        }
    };
    by_hand([
        "CREATE VIEW mine AS SELECT 0::BIGINT AS n",
        "CREATE MACRO newest() AS 0::BIGINT",
    ]);
    project.write(
        "models/by_view.sql",
        "-- @materialize: true\nSELECT (n + 1)::BIGINT AS n FROM mine",
    );
    project.write(
        "models/by_macro.sql",
        "-- @materialize: true\nSELECT (newest() + 1)::BIGINT AS n",
    );
    project.run(0);
    by_hand([
        "CREATE OR REPLACE VIEW mine AS SELECT n FROM by_view",
        "CREATE OR REPLACE MACRO newest() AS (SELECT max(n) FROM by_macro)",
    ]);
    for n in 2..4 {
        for model in ["by_view", "by_macro"] {
            let said = project.call(&["refresh", model, "--full"]);
            assert_eq!(said.code, Some(0), "{model}: {}{}", said.stdout, said.stderr);
            let rows = project.rows(&format!("SELECT n FROM {model}"));
            assert_eq!(rows, serde_json::json!([[n]]), "{model}");
        }
    }
}

#[test]
fn a_view_that_reads_a_file_through_a_macro_is_refused() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    project.write("data/extra.csv", "plus\n3\n");
    project.write(
        "init.sql",
        "CREATE OR REPLACE MACRO extra() AS TABLE FROM read_csv('data/extra.csv');\n\
         CREATE OR REPLACE MACRO plus() AS (SELECT sum(plus) FROM extra());\n\
         CREATE OR REPLACE MACRO one() AS 1;\n",
    );
    project.write("models/good.sql", "SELECT day + one() AS day FROM days");
    project.write("models/kept.sql", "-- @materialize: true\nSELECT plus() AS plus");
    project.write("models/bad.sql", "SELECT day + plus() AS day FROM days");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("this one reads `plus`"), "{}", said.stderr);
    assert!(said.stderr.contains("models/bad.sql"), "{}", said.stderr);
    assert_eq!(project.rows("SELECT plus FROM kept"), serde_json::json!([[3]]));
    assert_eq!(
        project.rows("SELECT max(day) FROM good"),
        serde_json::json!([[20]])
    );
}

#[test]
fn types_that_lakes_lack_are_mapped_or_named_with_their_column() {
    if !has_extensions() {
        return;
    }
    let project = small(IN_A_FILE);
    for (name, column) in [
        (
            "mapped",
            "'a'::ENUM('a', 'b') AS sort, [1, 2, 3]::INTEGER[3] AS three, {'a': [1]} AS nested",
        ),
        ("union_", "1::UNION(number INTEGER) AS odd"),
        ("bits", "'101'::BIT AS odd"),
        ("inner_", "[{'a': 'x'::ENUM('x')}] AS odd"),
    ] {
        project.write(
            &format!("models/{name}.sql"),
            &format!("-- @materialize: true\nSELECT {column}"),
        );
    }
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    for kind in ["UNION(", "BIT", "ENUM('x')"] {
        assert!(
            said.stderr.contains("column \"odd\" has type") && said.stderr.contains(kind),
            "{kind}: {}",
            said.stderr
        );
    }
    let mapped = "SELECT sort, typeof(sort), three, typeof(three) FROM mapped";
    assert_eq!(
        project.rows(mapped),
        serde_json::json!([["a", "VARCHAR", [1, 2, 3], "INTEGER[]"]])
    );
}

#[test]
fn two_machines_that_build_a_project_at_once_end_with_one_lake() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let files = tempfile::tempdir().expect("a folder");
    let connector = in_postgres(&server, "postgres").replace("files", &files.path().display().to_string());
    let project = small(&connector);
    for n in 0..20 {
        let sql = format!("-- @materialize: true\nSELECT {n} AS n FROM range(10)");
        project.write(&format!("models/m{n}.sql"), &sql);
    }
    project.run(0);
    let other = project.copied();
    for n in 0..20 {
        let sql = format!("-- @materialize: true\nSELECT {n} + 100 AS n FROM range(10)");
        project.write(&format!("models/m{n}.sql"), &sql);
        other.write(&format!("models/m{n}.sql"), &sql);
    }
    let mut beside = other.start(&["run"]);
    let said = project.call(&["run"]);
    let ended = beside.wait().expect("a run ends");
    // Whoever took the lake first may have been kept out of it since, and says so.
    assert!(
        said.code == Some(0) || said.stderr.contains("engine-fenced"),
        "{ended}: {}{}",
        said.stdout,
        said.stderr
    );
    for project in [&project, &other] {
        project.run(0);
        let hand = maker(&address(&server), SCHEMA);
        for n in 0..20 {
            let rows = hand.lines(&format!("SELECT DISTINCT n FROM theirs.m{n}"));
            assert_eq!(rows, [(n + 100).to_string()]);
        }
    }
}

#[test]
fn a_catalog_of_yesterday_is_built_up_to_today() {
    let Some(server) = Server::start().filter(|_| has_extensions()) else {
        return;
    };
    let project = small(&in_postgres(&server, "postgres"));
    project.run(0);
    in_server(
        &server,
        "DO $$ DECLARE one text; BEGIN CREATE SCHEMA yesterday; \
         FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'watershed_project_dev' LOOP \
         EXECUTE format('CREATE TABLE yesterday.%I (LIKE watershed_project_dev.%I INCLUDING ALL)', one, one); \
         EXECUTE format('INSERT INTO yesterday.%I SELECT * FROM watershed_project_dev.%I', one, one); END LOOP; END $$",
    );
    project.edit("models/days.sql", "range(20)", "range(30)");
    project.rename("models/late.sql", "models/later.sql");
    project.run(0);
    in_server(
        &server,
        "DROP SCHEMA watershed_project_dev CASCADE; ALTER SCHEMA yesterday RENAME TO watershed_project_dev",
    );
    project.run(0);
    let hand = maker(&address(&server), SCHEMA);
    assert_eq!(hand.lines("SELECT count(*) FROM theirs.later"), ["19"]);
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

#[test]
fn a_full_disk_below_a_lake_is_told_and_the_last_good_table_stays() {
    if !has_extensions() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_disk) = SmallDisk::mount(folder.path(), "2m") else {
        return;
    };
    let project = small(&IN_A_FILE.replace("lake/files", &folder.path().display().to_string()));
    project.run(0);
    project.write(
        "models/days.sql",
        "-- @materialize: true\nSELECT hash(range) AS day FROM range(1000000)",
    );
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("full"), "{}", said.stderr);
    assert_eq!(
        project.rows("SELECT count(*) FROM late"),
        serde_json::json!([[9]])
    );
    // What the build that failed has written is gone: it would take what room there is.
    project.write(
        "models/days.sql",
        "-- @materialize: true\nSELECT range AS day FROM range(30)",
    );
    project.run(0);
    assert_eq!(
        project.rows("SELECT count(*) FROM late"),
        serde_json::json!([[19]])
    );
}
