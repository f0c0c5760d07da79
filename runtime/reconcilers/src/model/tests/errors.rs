//! Errors, their places, and the outputs that stay.

use watershed_core::{ErrorKind, Ref};
use watershed_proto::Fault;

use super::world::{World, by_hand, table, view};

#[tokio::test]
async fn an_unknown_column_is_placed_in_the_models_file_and_its_readers_are_skipped() {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.declare("b", &table("select\n  y\nfrom a", &["a"])).await;
    world.declare("c", &table("select x from b", &["b"])).await;
    assert_eq!(world.works().await, ["built a", "failed b", "failed c"]);
    let error = world.error("b");
    let place = error.place.unwrap();
    assert_eq!(
        (&*error.code, &*place.path, place.line, place.column),
        ("unknown-column", "models/m.sql", 2, 3)
    );
    let skipped = world.error("c");
    assert_eq!(skipped.kind, ErrorKind::Dependency(Ref::completed("model", "b")));
    world.declare("b", &table("select\n  x\nfrom a", &["a"])).await;
    assert_eq!(world.works().await, ["built b", "built c"]);
}

#[tokio::test]
async fn a_failed_build_keeps_the_last_good_rows_and_is_tried_again() {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    world.declare("a", &table("select error('no') as x", &[])).await;
    assert_eq!(world.works().await, ["failed a"]);
    assert_eq!(world.rows("select x from a").await, ["1"]);
    let error = world.error("a");
    assert!(
        error
            .hint
            .as_ref()
            .unwrap()
            .contains("the table of the last good build stays"),
        "{error:?}"
    );
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, ["failed a"]);
    world.declare("a", &table("select 1 as x", &[])).await;
    world.settle().await;
    assert!(
        world.model("a").row.error.is_none(),
        "what stands there is what is wanted again"
    );
}

#[tokio::test]
async fn an_object_of_somebody_else_survives_and_is_named() {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    world
        .restart(|root| by_hand(root, "create table mine as select 'mine' as x"))
        .await;
    world.works().await;
    world.declare("mine", &table("select 2 as x", &[])).await;
    assert_eq!(world.works().await, ["failed mine"]);
    let error = world.error("mine");
    assert_eq!(&*error.code, "name-taken");
    assert!(error.message.contains("`mine`"), "{}", error.message);
    world.rename("a", "b").await;
    world.declare("mine", &view("select 3 as x", &[])).await;
    world.delete("mine").await;
    world.settle().await;
    assert_eq!(world.rows("select x from mine").await, ["mine"]);
}

#[tokio::test]
async fn a_table_replaced_by_hand_is_not_ours_any_more() {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    world
        .restart(|root| by_hand(root, "create or replace table a as select 'mine' as x"))
        .await;
    assert_eq!(world.works().await, ["failed a"]);
    assert_eq!(&*world.error("a").code, "name-taken");
    assert_eq!(world.rows("select x from a").await, ["mine"]);
    world.restart(|root| by_hand(root, "drop table a")).await;
    assert_eq!(world.works().await, ["built a"]);
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let mut world = World::new().await;
    world
        .declare(
            "a",
            &table("select * from read_csv('data/x.csv')", &[]).reading("data/x.csv"),
        )
        .await;
    assert_eq!(world.works().await, ["failed a"]);
    let error = world.error("a");
    assert_eq!(
        (&*error.code, &*error.message),
        ("missing-file", "file \"data/x.csv\" does not exist")
    );
    world.write("data/x.csv", "x\n1\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a"]);
}

#[tokio::test]
async fn a_missing_ref_is_named() {
    let mut world = World::new().await;
    world.declare("a", &table("select x from gone", &["gone"])).await;
    assert_eq!(world.works().await, ["failed a"]);
    assert_eq!(&*world.error("a").message, "model \"gone\" does not exist");
    world.declare("gone", &table("select 1 as x", &[])).await;
    assert_eq!(world.works().await, ["built a", "built gone"]);
}

#[tokio::test]
async fn a_model_whose_files_do_not_compile_says_so_keeps_its_rows_and_blocks_its_readers() {
    let mut world = World::new().await;
    let good = table("select 1 as x", &[]);
    world.declare("a", &good).await;
    world.declare("b", &table("select x from a", &["a"])).await;
    world.works().await;
    let mut broken = good.clone();
    let path = "models/a.sql".to_owned();
    broken.spec.fault = Some(Fault {
        code: "sql-syntax".into(),
        message: "no".into(),
        path,
        line: 4,
        column: 2,
        ..Fault::default()
    });
    world.declare("a", &broken).await;
    assert_eq!(world.works().await, ["failed a", "failed b"]);
    let error = world.error("a");
    assert_eq!(
        (&*error.code, error.place.map(|place| place.line)),
        ("sql-syntax", Some(4))
    );
    assert_eq!(world.rows("select x from b").await, ["1"]);
    world.declare("a", &good).await;
    world.settle().await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(world.model("b").row.error.is_none());
}

#[tokio::test]
async fn two_models_can_not_share_an_output() {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    world
        .declare("b", &table("select 2 as x", &[]).output("table", "A".into()))
        .await;
    assert_eq!(world.works().await, ["failed b"]);
    assert_eq!(
        &*world.error("b").message,
        "\"A\" is the output of model \"a\" too"
    );
    assert_eq!(world.rows("select x from a").await, ["1"]);
}

#[tokio::test]
async fn a_build_that_takes_too_long_is_stopped() {
    let mut world = World::new().await;
    let mut slow = table(
        "select count(*) as x from range(100000000) a, range(100000000) b",
        &[],
    );
    slow.spec.timeout_seconds = 1;
    world.declare("a", &slow).await;
    assert_eq!(world.works().await, ["failed a"]);
    assert_eq!(&*world.error("a").message, "the build took longer than 1 s");
}

/// A model that fails after it has been built, and its reader.
async fn reader_of_a_failure() -> World {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.declare("b", &table("select x from a", &["a"])).await;
    world.declare("c", &table("select x from b", &["b"])).await;
    world.works().await;
    world.declare("a", &table("select error('no') as x", &[])).await;
    assert_eq!(world.works().await, ["failed a", "failed b", "failed c"]);
    assert!(!world.state("b").stale_input);
    world
}

#[tokio::test]
async fn an_edit_is_built_from_the_last_good_rows_of_what_has_failed_and_again_when_that_is_mended() {
    let mut world = reader_of_a_failure().await;
    world
        .declare("b", &table("select x + 10 as x from a", &["a"]))
        .await;
    world.works().await;
    assert_eq!(world.rows("select x from b").await, ["11"]);
    assert_eq!(
        world.rows("select x from c").await,
        ["1"],
        "its readers wait for good rows"
    );
    let error = world.error("b");
    assert_eq!(
        (&*error.code, &error.kind),
        (
            "stale-input",
            &ErrorKind::Dependency(Ref::completed("model", "a"))
        )
    );
    let build = world.state("b").build_id;
    world.crash().await;
    world.settle().await;
    assert_eq!(world.state("b").build_id, build, "it is built once");
    assert!(world.state("b").stale_input);
    assert_eq!(&*world.error("b").code, "ref-failed");
    world.declare("a", &table("select 2 as x", &[])).await;
    world.works().await;
    assert_eq!(world.rows("select x from b").await, ["12"]);
    assert_eq!(world.rows("select x from c").await, ["12"]);
    assert!(!world.state("b").stale_input);
}

#[tokio::test]
async fn rows_of_a_failure_that_is_taken_back_were_not_stale() {
    let mut world = reader_of_a_failure().await;
    world
        .declare("b", &table("select x + 10 as x from a", &["a"]))
        .await;
    world.works().await;
    let build = world.state("b").build_id;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    assert_eq!(world.rows("select x from c").await, ["11"]);
    assert_eq!(
        (world.state("b").build_id, world.state("b").stale_input),
        (build, false)
    );
}

#[tokio::test]
async fn neither_time_nor_a_request_builds_from_the_last_good_rows_of_what_has_failed() {
    let mut world = reader_of_a_failure().await;
    let mut often = table("select x from a", &["a"]);
    often.spec.refresh_schedule = Some(watershed_proto::Schedule {
        ref_update: true,
        ticker_seconds: 60,
        ..watershed_proto::Schedule::default()
    });
    world.declare("b", &often).await;
    world.works().await;
    let build = world.state("b").build_id;
    world.pass(std::time::Duration::from_secs(3_600));
    world.reconcile("b").await;
    world.refresh("b").await;
    world.works().await;
    assert_eq!(world.state("b").build_id, build);
    // The request is open still when its own edit is built.
    often.spec.sql = table("select x + 10 as x from a", &["a"]).spec.sql;
    often.spec.output_meaning = table("select x + 10 as x from a", &["a"]).spec.output_meaning;
    world.declare("b", &often).await;
    world.works().await;
    assert_eq!(world.rows("select x from b").await, ["11"]);
    assert_eq!(world.state("b").answered_refresh, 0);
    world.declare("a", &table("select 1 as x", &[])).await;
    world.works().await;
    assert_eq!(world.state("b").answered_refresh, 1);
}

#[tokio::test]
async fn an_edit_for_what_a_failure_is_to_become_is_blocked_by_it() {
    let mut world = reader_of_a_failure().await;
    world.declare("b", &table("select y from a", &["a"])).await;
    world.works().await;
    let error = world.error("b");
    assert_eq!(&*error.code, "ref-failed");
    assert!(error.hint.is_some_and(|hint| hint.contains("\"y\" not found")));
    assert_eq!(world.rows("select x from b").await, ["1"]);
}
