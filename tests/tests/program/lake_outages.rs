//! Lakes whose catalog or store is away for a while, under a program that stays.

use watershed_tests::line::{End, Line};
use watershed_tests::postgres::Server;
use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::going::Going;
use crate::lake_engine::{has_extensions, small};
use crate::sandbox::Sandbox;

fn project() -> Option<(Server, Sandbox)> {
    with_files("data_path: files")
}

/// A project in a lake whose connector has these settings about its files.
fn with_files(place: &str) -> Option<(Server, Sandbox)> {
    let server = Server::start().filter(|_| has_extensions())?;
    let host = server.socket_folder().display();
    let project = small(&format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\n{place}\n"
    ));
    Some((server, project))
}

/// Waits for a failure of a model that the catalog's absence explains.
fn until_it_failed(start: &mut Going, name: &str) {
    while !start.round().done().contains(&format!("{name}:failed")) {}
}

#[test]
fn e6_what_failed_while_the_catalog_was_away_is_built_when_it_is_back() {
    let Some((server, project)) = project() else {
        return;
    };
    let mut start = Going::settled(&project);
    server.stop();
    project.edit("models/days.sql", "range(20)", "range(30)");
    until_it_failed(&mut start, "days");
    let said = project.call(&["explain", "days"]).stdout;
    assert!(said.contains("its last run failed; it is tried again"), "{said}");
    server.begin();
    start.until_done(&["days:built"]);
    assert_eq!(
        project.query("SELECT count(*) FROM late")["rows"],
        serde_json::json!([[19]])
    );
    start.stop();
}

#[test]
fn e6_a_start_before_its_catalog_builds_when_that_is_there() {
    let Some((server, project)) = project() else {
        return;
    };
    project.run(0);
    project.edit("models/days.sql", "range(20)", "range(30)");
    server.stop();
    let mut start = Going::start(&project);
    until_it_failed(&mut start, "days");
    server.begin();
    start.until_done(&["days:built"]);
    start.stop();
}

/// A project in a lake with its catalog in Postgres and its files in a store, which is reached by a line that can be cut.
pub(crate) fn in_a_store() -> Option<(Server, Store, Line, Sandbox)> {
    let store = Store::start().filter(|_| has_extension("httpfs"))?;
    let (server, project) = with_files("data_path: s3://lake/files\nstore: bucket")?;
    store.create_bucket("lake");
    let line = Line::to(End::Tcp(store.address().to_owned()));
    project.write_bucket("secret", &format!("http://127.0.0.1:{}", line.port()));
    Some((server, store, line, project))
}

#[test]
fn e6_what_failed_while_the_store_was_away_is_built_when_it_is_back() {
    let Some((_server, _store, line, project)) = in_a_store() else {
        return;
    };
    let mut start = Going::settled(&project);
    line.cut_after(1, || {});
    project.edit("models/days.sql", "range(20)", "range(30)");
    until_it_failed(&mut start, "days");
    let said = project.call(&["explain", "days"]).stdout;
    assert!(said.contains("its last run failed; it is tried again"), "{said}");
    line.mend();
    start.until_done(&["days:built"]);
    start.stop();
}
