//! Who leads a lake: the epoch of the lease, and what is left of former leaders.

use watershed_drivers::duckdb::ByHand;
use watershed_tests::server::extensions;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

const LAKE: &str = "driver: ducklake\ncatalog: sqlite\npath: /LAKE/catalog.sqlite\ndata_path: /LAKE/files\n";

/// A project whose lake stands in a folder of its own.
fn project(lake: &tempfile::TempDir) -> Option<Sandbox> {
    if !has_extension("ducklake") || !has_extension("sqlite_scanner") {
        return None;
    }
    let connector = LAKE.replace("/LAKE", &lake.path().display().to_string());
    let project = Sandbox::with(&[
        ("watershed.yaml", "olap_connector: lake\n"),
        ("connectors/lake.yaml", &connector),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT range AS day FROM range(20)",
        ),
    ]);
    Some(project.extended())
}

fn newest_epoch(lake: &tempfile::TempDir) -> u64 {
    let reader = ByHand::in_memory();
    reader.run(&format!(
        "SET extension_directories = ['{}']",
        extensions().display()
    ));
    let catalog = lake.path().join("catalog.sqlite");
    reader.run(&format!(
        "ATTACH 'ducklake:sqlite:{}' AS lake (READ_ONLY)",
        catalog.display()
    ));
    let newest = reader.lines("SELECT arg_max(epoch, number) FROM lake._watershed.epochs");
    newest[0].parse().expect("a number")
}

fn rows(project: &Sandbox) -> serde_json::Value {
    project.query("SELECT count(*) FROM days")
}

#[test]
fn p8_who_deletes_the_state_folder_still_leads_the_lake() {
    let lake = tempfile::tempdir().expect("a folder");
    let Some(project) = project(&lake) else { return };
    for rows in 1..4 {
        project.write(
            "models/days.sql",
            &format!("-- @materialize: true\nSELECT range AS day FROM range({rows})"),
        );
        assert_eq!(project.run(0).len(), 1);
    }
    let before = newest_epoch(&lake);
    assert!(before >= 3, "each run leads under an epoch of its own: {before}");
    project.forget();
    project.run(0);
    project.edit("models/days.sql", "range(3)", "range(40)");
    assert_eq!(project.run(0).len(), 1);
    assert!(newest_epoch(&lake) > before);
    let said = rows(&project).to_string();
    assert!(said.contains("40"), "{said}");
}

#[test]
fn p8_a_copy_of_the_project_leads_after_the_first_one_and_that_after_it() {
    let lake = tempfile::tempdir().expect("a folder");
    let Some(project) = project(&lake) else { return };
    for rows in 1..4 {
        project.write(
            "models/days.sql",
            &format!("-- @materialize: true\nSELECT range AS day FROM range({rows})"),
        );
        project.run(0);
    }
    let copy = project.copied();
    let mut before = newest_epoch(&lake);
    for rows in 5..7 {
        for one in [&copy, &project] {
            one.write(
                "models/days.sql",
                &format!("-- @materialize: true\nSELECT {before} AS day FROM range({rows})"),
            );
            one.run(0);
            assert!(newest_epoch(&lake) > before, "it took the lake");
            before = newest_epoch(&lake);
            let said = self::rows(one).to_string();
            assert!(said.contains(&rows.to_string()), "{said}");
        }
    }
}
