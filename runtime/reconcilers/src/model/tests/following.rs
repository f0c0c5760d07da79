//! Views that are left as they are when what they read is built again.

use super::world::{Model, World, by_hand, table, view};

/// `a` is a table, `v` a view on it, `w` a view on that, `t` a table on both.
async fn four() -> World {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world.declare("v", &plus_one()).await;
    world
        .declare("w", &view("select x * 10 as x from v", &["v"]))
        .await;
    world
        .declare("t", &table("select v.x + w.x as x from v, w", &["v", "w"]))
        .await;
    assert_eq!(world.works().await, ["built a", "built t", "built v", "built w"]);
    world
}

fn plus_one() -> Model {
    view("select x + 1 as x from a", &["a"])
}

/// `a` with other rows in the same columns.
fn other_rows() -> Model {
    table("select 4 as x", &[])
}

const FOLLOWED: [&str; 4] = ["built a", "built t", "checked v", "checked w"];

#[tokio::test]
async fn views_over_other_rows_are_left_and_tables_on_them_are_built() {
    let mut world = four().await;
    let before = world.state("w");
    world.declare("a", &other_rows()).await;
    assert_eq!(world.works().await, FOLLOWED);
    assert_eq!(world.rows("select x from t").await, ["55"]);
    let after = world.state("w");
    assert_ne!(after.build_id, before.build_id, "it stands for other rows");
    assert_eq!(after.tagged_build_id, before.build_id);
    for name in ["a", "v", "w", "t"] {
        world.reconcile(name).await;
    }
    assert_eq!(world.works().await, [""; 0]);
}

#[tokio::test]
async fn what_a_view_stands_for_is_known_after_a_restart_and_a_crash() {
    let mut world = four().await;
    world.declare("a", &other_rows()).await;
    assert_eq!(world.works().await, FOLLOWED);
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(!world.engine_is_open());
    world.crash().await;
    assert_eq!(world.works().await, [""; 0]);
    world.declare("a", &table("select 9 as x", &[])).await;
    assert_eq!(world.works().await, FOLLOWED);
    assert_eq!(world.rows("select x from t").await, ["110"]);
}

#[tokio::test]
async fn a_view_over_other_columns_is_made_again_and_those_on_it_if_they_may_be_others() {
    let mut world = four().await;
    world.declare("a", &table("select 4::bigint as x", &[])).await;
    assert_eq!(world.works().await, ["built a", "built t", "built v", "built w"]);
    // Its own columns are known now: what reads it fits whatever is the same.
    world.declare("a", &table("select 5::integer as x", &[])).await;
    world.works().await;
    world
        .declare("v", &view("select x + 2 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["built t", "built v", "checked w"]);
    assert_eq!(world.rows("select x from t").await, ["77"]);
}

#[tokio::test]
async fn a_view_that_fits_no_more_fails_and_is_left_once_that_is_mended() {
    let mut world = four().await;
    world.declare("a", &table("select 4 as y", &[])).await;
    world.works().await;
    let error = world.error("v");
    assert!(error.message.contains("\"x\""), "{}", error.message);
    world.declare("a", &other_rows()).await;
    world.works().await;
    assert_eq!(world.rows("select x from t").await, ["55"]);
}

#[tokio::test]
async fn a_view_that_was_left_is_renamed_edited_refreshed_and_dropped_like_any_other() {
    let mut world = four().await;
    world.declare("a", &other_rows()).await;
    world.works().await;
    let build = world.state("v").build_id;
    world.rename("v", "u").await;
    world
        .declare("w", &view("select x * 10 as x from u", &["u"]))
        .await;
    world
        .declare("t", &table("select u.x + w.x as x from u, w", &["u", "w"]))
        .await;
    assert_eq!(world.state("u").build_id, build);
    assert_eq!(world.rows("select x from t").await, ["55"]);
    world.crash().await;
    world.works().await;
    assert_eq!(world.state("u").build_id, build, "its record was renamed with it");
    world.refresh("u").await;
    assert!(world.works().await.contains(&"built u".to_owned()));
    world
        .declare("u", &view("select x + 3 as x from a", &["a"]))
        .await;
    world.settle().await;
    assert_eq!(world.rows("select x from t").await, ["77"]);
    for name in ["t", "w", "u"] {
        world.delete(name).await;
    }
    world.settle().await;
    assert_eq!(world.objects().await, ["a"]);
}

#[tokio::test]
async fn a_view_that_was_left_and_then_dropped_by_hand_is_made_again() {
    let mut world = four().await;
    world.declare("a", &other_rows()).await;
    world.works().await;
    world.restart(|root| by_hand(root, "drop view w")).await;
    assert!(world.works().await.contains(&"built w".to_owned()));
    assert_eq!(world.rows("select x from w").await, ["50"]);
}

#[tokio::test]
async fn an_edit_that_is_taken_back_finds_the_tables_on_views_in_the_trash() {
    let mut world = four().await;
    world.declare("a", &other_rows()).await;
    world.works().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    assert_eq!(
        world.works().await,
        ["restored a", "restored t", "checked v", "checked w"]
    );
    assert_eq!(world.rows("select x from t").await, ["22"]);
}

#[tokio::test]
async fn what_outlives_its_catalog_is_taken_over_or_made_again() {
    let mut world = four().await;
    world.declare("a", &other_rows()).await;
    world.works().await;
    world.lose_catalog().await;
    world.declare("a", &other_rows()).await;
    world.declare("v", &plus_one()).await;
    assert_eq!(world.works().await, ["checked a", "built v"]);
    assert_eq!(world.rows("select x from v").await, ["5"]);
}
