//! Models whose rows are written to a DuckLake: in one of its transactions, only when they changed, and never over what is
//! somebody's; states of before can be read.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::postgres::Server;
use watershed_tests::server::extensions;

use crate::connected::has_extension;
use crate::sandbox::{Sandbox, crash_points};

const SECRET: &str = "hush-hush-4747";

const MODEL: &str = "type: model\nsql: \"SELECT range AS day, 'x' AS name, 'a'::ENUM('a', 'b') AS sort FROM range(20)\"\n\
                     output: {connector: lake, table: days}\n";

/// A lake, asked by an engine of its own for each question.
struct Asked(String);

impl Asked {
    fn attached(&self) -> ByHand {
        let maker = ByHand::in_memory();
        maker.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        maker.run(&format!("ATTACH 'ducklake:{}' AS lake", self.0));
        maker
    }

    fn run(&self, sql: &str) {
        self.attached().run(sql);
    }

    fn lines(&self, sql: &str) -> Vec<String> {
        self.attached().lines(sql)
    }

    fn days(&self) -> usize {
        self.lines("SELECT day::VARCHAR || name || sort FROM lake.days")
            .len()
    }

    /// Stands for what the lake holds: another one after each write.
    fn snapshot(&self) -> Vec<String> {
        self.lines("SELECT max(snapshot_id)::VARCHAR FROM lake.snapshots()")
    }

    fn tables(&self) -> Vec<String> {
        self.lines("SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY ALL")
    }
}

/// A project whose model is written to a lake with this connector.
fn project(connector: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", connector),
        ("models/days.yaml", MODEL),
    ])
    .extended()
}

/// The same with a catalog in a file.
fn project_with_file() -> Option<(Sandbox, Asked)> {
    if !(has_extension("ducklake") && has_extension("sqlite_scanner")) {
        return None;
    }
    let sandbox =
        project("driver: ducklake\ncatalog: sqlite\npath: lake.sqlite\ndata_path: files\nmode: readwrite\n");
    let asked = Asked(format!("sqlite:{}/lake.sqlite", sandbox.path().display()));
    Some((sandbox, asked))
}

#[test]
fn rows_are_swapped_in_when_they_changed_and_those_of_before_can_be_read() {
    let Some((project, lake)) = project_with_file() else {
        return;
    };
    project.run(0);
    assert_eq!(lake.days(), 20);
    let first = lake.snapshot();
    assert!(project.run(0).is_empty(), "nothing is left to do");
    assert_eq!(lake.snapshot(), first, "nothing was written");
    project.edit("models/days.yaml", "range(20)", "range(30)");
    project.run(0);
    assert_eq!(lake.days(), 30);
    assert_ne!(lake.snapshot(), first);
    let [first] = first.try_into().expect("one number");
    let then = lake.lines(&format!("SELECT day FROM lake.days AT (VERSION => {first})"));
    assert_eq!(then.len(), 20, "the rows of before");

    project.edit("models/days.yaml", "table: days", "table: results.days");
    let said = project.call(&["run"]);
    assert!(said.stderr.contains("no schema \"results\""), "{}", said.stderr);
    lake.run("CREATE SCHEMA lake.results");
    project.run(0);
    assert_eq!(lake.tables(), ["days"], "the table has moved");
    let newest = lake.snapshot();
    project.forget();
    project.run(0);
    assert_eq!(lake.tables(), ["days"]);
    assert_ne!(lake.snapshot(), newest, "it is the model's again, by its comment");
    project.edit("models/days.yaml", "'x' AS name", "[1, 2]::BIT[] AS name");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    project.edit("models/days.yaml", "[1, 2]::BIT[] AS name", "'101'::BIT AS name");
    let said = project.call(&["run"]);
    assert!(
        said.stderr.contains("column \"name\" has type BIT"),
        "{}",
        said.stderr
    );
    assert_eq!(
        project.outcome(&["run", "--sandbox", "--json"], "days"),
        "outside-sandbox"
    );
    project.edit("connectors/lake.yaml", "mode: readwrite", "mode: read");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-failed");
    project.edit("connectors/lake.yaml", "mode: read", "mode: readwrite");
    assert_eq!(lake.tables(), ["days"], "it is as it was");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(lake.tables(), [""; 0]);
    project.assert_nowhere(&[SECRET], "else");
}

#[test]
fn a_table_of_a_lake_that_a_person_made_is_never_written_over_or_dropped() {
    let Some((project, lake)) = project_with_file() else {
        return;
    };
    lake_of(&project).run("CREATE TABLE lake.days AS SELECT 7 AS day, 'mine' AS name, 'b' AS sort");
    let said = project.call(&["run"]);
    assert!(said.stderr.contains("error[export-taken]"), "{}", said.stderr);
    assert_eq!(lake.days(), 1);
    lake.run("DROP TABLE lake.days");
    lake.run("CREATE VIEW lake.days AS SELECT 8 AS day, 'view' AS name, 'b' AS sort");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-taken");
    lake.run("DROP VIEW lake.days");
    project.run(0);
    lake.run("COMMENT ON TABLE lake.days IS 'ours by now'");
    project.edit("models/days.yaml", "range(20)", "range(30)");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "export-taken");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(lake.days(), 20, "it is not dropped either");
}

/// A lake that is made by somebody else.
fn lake_of(project: &Sandbox) -> ByHand {
    let maker = ByHand::in_memory();
    maker.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    let root = project.path().display();
    maker.run(&format!(
        "ATTACH 'ducklake:sqlite:{root}/lake.sqlite' AS lake (DATA_PATH '{root}/files')"
    ));
    maker
}

#[test]
fn dead_at_any_point_the_table_of_a_lake_is_that_of_before_or_the_new_one() {
    let Some((project, lake)) = project_with_file() else {
        return;
    };
    project.run(0);
    let points = crash_points(&["catalog", "build", "table"]);
    let (mut deaths, mut rows) = (0, 20);
    for point in points {
        for visit in 0..2 {
            let before = rows;
            rows = 50 - rows;
            project.edit(
                "models/days.yaml",
                &format!("range({before})"),
                &format!("range({rows})"),
            );
            let story = format!("{point}, visit {visit}");
            let died = project.dies_at(point, visit);
            deaths += u32::from(died);
            assert!([before, rows].contains(&lake.days()), "{story}");
            project.expect_run(0, &story);
            assert_eq!(lake.tables(), ["days"], "{story}");
            assert!(
                project.expect_run(0, &story).is_empty(),
                "{story}: something is left to do"
            );
            assert_eq!(lake.days(), rows, "{story}");
            if !died {
                break;
            }
        }
    }
    assert!(deaths >= 8, "{deaths} deaths");
}

#[test]
fn rows_are_written_to_a_lake_with_its_catalog_in_postgres() {
    if !(has_extension("ducklake") && has_extension("postgres_scanner")) {
        return;
    }
    let Some(server) = Server::start() else { return };
    let connector = format!(
        "driver: ducklake\ncatalog: postgres\nhost: {}\nuser: postgres\npassword: \"{{{{ .env.lake_secret }}}}\"\n\
         dbname: postgres\ndata_path: files\nmode: readwrite\n",
        server.socket_folder().display()
    );
    let project = project(&connector);
    let lake = Asked(format!("postgres:{}", server.url()));
    project.run(0);
    assert_eq!(lake.days(), 20);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    // A reader that holds the state of before, while the next one is written.
    let reader = lake.attached();
    reader.run("BEGIN");
    assert_eq!(reader.lines("SELECT count(*)::VARCHAR FROM lake.days"), ["20"]);
    project.edit("models/days.yaml", "range(20)", "range(30)");
    project.run(0);
    assert_eq!(reader.lines("SELECT count(*)::VARCHAR FROM lake.days"), ["20"]);
    reader.run("COMMIT");
    assert_eq!(reader.lines("SELECT count(*)::VARCHAR FROM lake.days"), ["30"]);
    project.edit("connectors/lake.yaml", "data_path: files", "data_path: elsewhere");
    project.edit("models/days.yaml", "range(30)", "range(40)");
    let said = project.call(&["run"]);
    assert!(
        said.stderr.contains("does not match existing data path"),
        "{}",
        said.stderr
    );
    assert_eq!(lake.days(), 30);
    project.assert_nowhere(&[SECRET], "lake");
    project.edit("connectors/lake.yaml", "data_path: elsewhere", "data_path: files");
    project.run(0);
    assert_eq!(lake.days(), 40);
    drop((reader, server));
    project.edit("models/days.yaml", "range(40)", "range(50)");
    let said = project.call(&["run"]);
    assert!(said.stderr.contains("connection-refused"), "{}", said.stderr);
    project.assert_nowhere(&[SECRET], "lake");
}
