//! Effects of a parse on the catalog, above all those that it must not have.

use watershed_core::ErrorKind;

use super::site::{Ran, Site};

const NOTHING: [&str; 0] = [];

async fn pair() -> Site {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nselect 1 as x"),
        ("models/b.sql", "-- @materialize: true\nselect x + 1 as x from a"),
    ]);
    assert_eq!(site.run().await.works, ["built a", "built b"]);
    site
}

/// The code of the parser's own error.
fn refusal(ran: &Ran) -> String {
    ran.parser
        .row
        .error
        .as_ref()
        .map(|error| error.code.to_string())
        .unwrap_or_default()
}

#[tokio::test]
async fn a_half_typed_model_keeps_its_rows_and_is_mended_without_a_build() {
    let mut site = pair().await;
    site.write("models/a.sql", "-- @materialize: true\nselect 1 as x frm");
    let ran = site.run().await;
    assert_eq!(ran.works, ["failed a", "failed b"]);
    let place = ran.error("a").place.as_ref().unwrap();
    assert_eq!((&*place.path, place.line), ("models/a.sql", 2));
    assert!(matches!(ran.error("b").kind, ErrorKind::Dependency(_)));
    assert_eq!(site.rows("select a.x, b.x from a, b").await, ["1|2"]);
    site.write("models/a.sql", "-- @materialize: true\nselect 1 as x");
    let ran = site.run().await;
    assert_eq!(ran.works, NOTHING);
    assert!(ran.find("a").row.error.is_none() && ran.find("b").row.error.is_none());
}

#[tokio::test]
async fn a_half_typed_yaml_file_keeps_what_it_declared() {
    let mut site = Site::new(&[
        ("rill.yaml", ""),
        (
            "x.yaml",
            "type: model\nname: custom\nmaterialize: true\nsql: select 1 as x\n",
        ),
        (
            "models/b.sql",
            "-- @materialize: true\nselect x + 1 as x from custom",
        ),
    ]);
    assert_eq!(site.run().await.works, ["built b", "built custom"]);
    site.write("x.yaml", "type: model\nname: custom\nsql: [\n");
    let ran = site.run().await;
    assert_eq!(ran.names(), "b custom");
    assert!(ran.error("custom").place.is_some());
    assert_eq!(site.objects().await, "b custom");
    assert_eq!(site.rows("select x from b").await, ["2"]);
    site.write(
        "x.yaml",
        "type: model\nname: custom\nmaterialize: true\nsql: select 1 as x\n",
    );
    assert_eq!(site.run().await.works, NOTHING);
}

#[tokio::test]
async fn a_new_model_that_does_not_compile_is_listed_with_its_place() {
    let mut site = pair().await;
    site.write("models/c.sql", "select from from");
    let ran = site.run().await;
    assert_eq!(ran.names(), "a b c");
    assert_eq!(&*ran.error("c").place.as_ref().unwrap().path, "models/c.sql");
    assert_eq!(ran.diagnostics().len(), 1);
}

#[tokio::test]
async fn nothing_is_deleted_without_a_manifest() {
    let mut site = pair().await;
    site.remove("rill.yaml");
    site.remove("models/b.sql");
    let ran = site.run().await;
    assert_eq!(
        (ran.names().as_str(), refusal(&ran).as_str()),
        ("a b", "manifest-missing")
    );
    assert_eq!(site.objects().await, "a b");
    site.write("rill.yaml", "");
    let ran = site.run().await;
    assert_eq!((ran.names().as_str(), refusal(&ran).as_str()), ("a", ""));
}

#[tokio::test]
async fn nothing_is_deleted_while_the_manifest_is_broken() {
    let mut site = pair().await;
    site.write("rill.yaml", "env: [\n");
    site.remove("models/b.sql");
    let ran = site.run().await;
    assert_eq!(ran.names(), "a b");
    assert_ne!(refusal(&ran), "");
    assert_eq!(
        ran.parser
            .row
            .error
            .as_ref()
            .unwrap()
            .place
            .as_ref()
            .map(|place| &*place.path),
        Some("rill.yaml")
    );
}

#[tokio::test]
async fn nothing_is_deleted_when_no_file_is_there() {
    let mut site = pair().await;
    site.remove("rill.yaml");
    site.remove("models/a.sql");
    site.remove("models/b.sql");
    let ran = site.run().await;
    assert_eq!(ran.names(), "a b");
    assert_ne!(refusal(&ran), "");
}

#[tokio::test]
async fn a_duplicate_name_is_found_and_the_next_takes_over() {
    let mut site = pair().await;
    site.write("models/deep/a.sql", "-- @materialize: true\nselect 5 as x");
    let ran = site.run().await;
    assert_eq!(ran.works, NOTHING);
    assert_eq!(ran.diagnostics()[0].path, "models/deep/a.sql");
    site.remove("models/a.sql");
    assert_eq!(site.run().await.works, ["built a", "built b"]);
    assert_eq!(site.rows("select x from b").await, ["6"]);
}

#[tokio::test]
async fn the_members_of_a_cycle_are_not_run_and_the_rest_is() {
    let mut site = pair().await;
    site.write("models/c1.sql", "select * from c3");
    site.write("models/c2.sql", "select * from c1");
    site.write("models/c3.sql", "select * from c2");
    site.write("models/d.sql", "select x from b");
    let ran = site.run().await;
    assert_eq!(ran.works, ["built d"]);
    for name in ["c1", "c2", "c3"] {
        assert!(ran.error(name).message.contains("c1"), "{:?}", ran.error(name));
    }
    site.write("models/c3.sql", "select x from b");
    assert_eq!(site.run().await.works, ["built c1", "built c2", "built c3"]);
}

#[tokio::test]
async fn a_kind_that_is_not_supported_yet_is_listed_and_hinders_nobody() {
    let mut site = pair().await;
    site.write(
        "metrics/m.yaml",
        "type: metrics_view\nmodel: b\nmeasures:\n  - expression: sum(x)\n",
    );
    let ran = site.run().await;
    assert_eq!(ran.works, NOTHING);
    let kinds = ran
        .resources
        .iter()
        .map(|resource| resource.row.kind.as_str())
        .collect::<Vec<_>>();
    assert!(kinds.contains(&"metrics_view"), "{kinds:?}");
    assert!(ran.resources.iter().all(|resource| resource.row.error.is_none()));
    site.remove("metrics/m.yaml");
    assert_eq!(site.run().await.names(), "a b");
}
