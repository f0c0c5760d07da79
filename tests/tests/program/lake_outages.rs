//! Lakes whose catalog is away for a while, under a program that stays.

use watershed_tests::postgres::Server;

use crate::going::Going;
use crate::lake_engine::{has_extensions, small};
use crate::sandbox::Sandbox;

fn project() -> Option<(Server, Sandbox)> {
    let server = Server::start().filter(|_| has_extensions())?;
    let host = server.socket_folder().display();
    let project = small(&format!(
        "driver: ducklake\ncatalog: postgres\nhost: {host}\nuser: postgres\ndbname: postgres\ndata_path: files\n"
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
