//! Making, changing and removing a site.

use serde_json::json;

use crate::bench::{Bench, first_site, second_site};

#[test]
fn a_site_is_made_in_order_served_and_then_left_alone() {
    let bench = Bench::new();
    let done = bench.apply(Some(&first_site()));
    bench.check(Some(&first_site()));
    assert_eq!(
        bench.get("css/main.css"),
        ("First".to_owned(), "h1 {}".to_owned())
    );
    let at = |operation: &str| done.iter().position(|one| one == operation).unwrap();
    assert_eq!(done.len(), 9, "{done:?}");
    assert!(at("create folder/.") < at("create folder/public"));
    assert!(at("create folder/public") < at("create folder/public/css"));
    assert!(at("create folder/public/css") < at("create file/public/css/main.css"));
    assert!(at("create file/public/index.html") < at("create link/public/home.html"));
    assert!(at("create file/settings") < at("create server/main"));
    let server = bench.servers();
    assert_eq!(bench.run(), [""; 0]);
    assert_eq!(bench.servers(), server);
}

#[test]
fn a_change_does_only_what_it_must() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    let server = bench.servers();
    let mut site = first_site();
    site["files"]["public/index.html"] = json!("changed");
    assert_eq!(bench.apply(Some(&site)), ["modify file/public/index.html"]);
    assert_eq!(bench.servers(), server, "the server reads files anew by itself");
    assert_eq!(bench.get("home.html").1, "changed");
    site["files"]["settings"] = json!("Other\n");
    let done = bench.apply(Some(&site));
    assert_eq!(
        done,
        ["delete server/main", "modify file/settings", "create server/main"]
    );
    bench.check(Some(&site));
    assert_ne!(bench.servers(), server);
}

#[test]
fn a_site_that_changes_in_many_places_ends_as_declared() {
    let bench = Bench::new();
    for site in [first_site(), second_site(), first_site()] {
        bench.apply(Some(&site));
        bench.check(Some(&site));
    }
}

#[test]
fn a_root_that_moves_takes_everything_along() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    bench.apply(None);
    assert!(!bench.root().exists());
    bench.apply(Some(&second_site()));
    bench.check(Some(&second_site()));
}

#[test]
fn a_site_that_is_removed_goes_in_order_and_leaves_nothing() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    let done = bench.apply(None);
    bench.check(None);
    let at = |operation: &str| done.iter().position(|one| one == operation).unwrap();
    assert_eq!(done.len(), 9, "{done:?}");
    assert!(at("delete server/main") < at("delete folder/public"));
    assert!(at("delete link/public/home.html") < at("delete file/public/index.html"));
    assert!(at("delete link/latest") < at("delete folder/public/css"));
    assert!(at("delete file/public/css/main.css") < at("delete folder/public/css"));
    assert_eq!(done.last().unwrap(), "delete folder/.");
}

#[test]
fn what_is_not_the_sites_is_neither_removed_nor_overwritten() {
    let bench = Bench::new();
    bench.apply(Some(&first_site()));
    let foreign = bench.root().join("public/notes.txt");
    std::fs::write(&foreign, "mine").unwrap();
    bench.declare(None);
    let output = bench.command().output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("folder/public"), "{said}");
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "mine");
    // All else is gone, and the rest goes when it can.
    assert_eq!(bench.tree().len(), 3, "{:?}", bench.tree());
    assert_eq!(bench.servers(), []);
    std::fs::remove_file(&foreign).unwrap();
    bench.run();
    bench.check(None);
}

#[test]
fn a_path_that_leads_out_of_the_site_is_refused_before_anything_is_done() {
    let bench = Bench::new();
    bench.declare(Some(&json!({"files": {"../escape": "no"}})));
    let output = bench.command().output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("\"../escape\" leads out of the site"), "{said}");
    assert!(!bench.root().exists());
}
