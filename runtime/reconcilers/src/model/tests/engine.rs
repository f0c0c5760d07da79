//! Builds for each kind of change.

use super::world::{World, table, view};

/// `a` is a table, `v` a view on it, `t` a table on that.
async fn three() -> World {
    let mut world = World::new().await;
    world.declare("a", &table("select 1 as x", &[])).await;
    world
        .declare("v", &view("select x + 1 as x from a", &["a"]))
        .await;
    world
        .declare("t", &table("select x * 10 as x from v", &["v"]))
        .await;
    assert_eq!(world.works().await, ["built a", "built t", "built v"]);
    world
}

#[tokio::test]
async fn outputs_are_built_in_order_and_hold_what_they_say() {
    let world = three().await;
    assert_eq!(world.rows("select x from t").await, ["20"]);
    assert_eq!(world.objects().await, ["a", "t", "v"]);
    let state = world.state("t");
    assert_eq!((state.result_table.as_str(), state.rows), ("t", Some(1)));
}

#[tokio::test]
async fn asking_again_builds_nothing() {
    let mut world = three().await;
    for name in ["a", "v", "t"] {
        world.reconcile(name).await;
    }
    assert_eq!(world.works().await, [""; 0]);
}

#[tokio::test]
async fn an_edit_builds_it_and_what_depends_on_it() {
    let mut world = three().await;
    world
        .declare("v", &view("select x + 2 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["built t", "built v"]);
    assert_eq!(world.rows("select x from t").await, ["30"]);
}

#[tokio::test]
async fn an_edit_that_means_the_same_builds_nothing() {
    let mut world = three().await;
    let mut same = table("select 1 as x", &[]);
    same.spec.sql.as_mut().unwrap().text.push_str(" -- why");
    world.declare("a", &same).await;
    assert_eq!(world.works().await, [""; 0]);
}

#[tokio::test]
async fn a_rename_upstream_moves_the_table_and_makes_the_view_again() {
    let mut world = three().await;
    let build = world.state("a").build_id;
    world.rename("a", "b").await;
    world
        .declare("v", &view("select x + 1 as x from b", &["b"]))
        .await;
    assert_eq!(
        world.works().await,
        ["built v"],
        "`b` was renamed, looked at again, and found right"
    );
    assert_eq!(world.state("b").build_id, build);
    assert_eq!(world.rows("select x from v").await, ["2"]);
    assert_eq!(world.objects().await, ["b", "t", "v"]);
}

#[tokio::test]
async fn a_rename_of_a_view_keeps_its_build_id_and_builds_no_table_on_it() {
    let mut world = three().await;
    let build = world.state("v").build_id;
    world.rename("v", "w").await;
    world
        .declare("t", &table("select x * 10 as x from w", &["w"]))
        .await;
    assert_eq!(world.works().await, [""; 0]);
    assert_eq!(world.state("w").build_id, build);
    assert_eq!(world.objects().await, ["a", "t", "w"]);
}

#[tokio::test]
async fn names_that_differ_in_case_only_are_renamed() {
    let world = three().await;
    world.rename("a", "A").await;
    world.settle().await;
    assert_eq!(world.objects().await, ["A", "t", "v"]);
}

#[tokio::test]
async fn two_models_swap_their_names_without_a_build() {
    let mut world = World::new().await;
    world.declare("a", &table("select 'first' as x", &[])).await;
    world.declare("b", &table("select 'second' as x", &[])).await;
    world.works().await;
    let builds = (world.state("a").build_id, world.state("b").build_id);
    let (a, b) = (world.model("a").row.uid, world.model("b").row.uid);
    let edits = vec![
        watershed_core::Edit::rename(a, "b"),
        watershed_core::Edit::rename(b, "a"),
    ];
    world
        .controller()
        .edit(watershed_core::Batch { edits })
        .await
        .unwrap();
    world.settle().await;
    assert_eq!((world.state("b").build_id, world.state("a").build_id), builds);
    assert_eq!(world.rows("select a.x, b.x from a, b").await, ["second|first"]);
    assert_eq!(world.objects().await, ["a", "b"]);
}

#[tokio::test]
async fn a_view_becomes_a_table_and_back() {
    let mut world = three().await;
    world
        .declare("v", &table("select x + 1 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["built t", "built v"]);
    world
        .declare("v", &view("select x + 1 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["restored t", "built v"]);
    assert_eq!(world.rows("select x from t").await, ["20"]);
}

#[tokio::test]
async fn a_deleted_model_drops_its_output() {
    let world = three().await;
    world.delete("t").await;
    world.settle().await;
    assert_eq!(world.objects().await, ["a", "v"]);
}

#[tokio::test]
async fn a_model_of_a_deleted_ones_name_takes_its_place() {
    let world = three().await;
    world.delete("t").await;
    world.declare("t", &table("select 'new' as x", &[])).await;
    world.settle().await;
    assert_eq!(world.rows("select x from t").await, ["new"]);
}

#[tokio::test]
async fn a_refresh_builds_once_and_what_reads_it_too() {
    let mut world = three().await;
    world.refresh("v").await;
    assert_eq!(world.works().await, ["built t", "built v"]);
    world.reconcile("v").await;
    assert_eq!(world.works().await, [""; 0]);
}

#[tokio::test]
async fn a_view_follows_the_columns_of_what_it_reads() {
    let mut world = three().await;
    world.declare("v", &view("select * from a", &["a"])).await;
    world.works().await;
    world
        .declare("a", &table("select 'text' as x, 2 as y", &[]))
        .await;
    world.declare("t", &table("select x, y from v", &["v"])).await;
    assert_eq!(world.works().await, ["built a", "built t", "built v"]);
    assert_eq!(world.rows("select x, y from t").await, ["text|2"]);
}

#[tokio::test]
async fn an_output_may_have_another_name_than_its_model() {
    let mut world = three().await;
    let renamed = table("select 1 as x", &[]).output("table", "other".into());
    world.declare("a", &renamed).await;
    assert!(world.works().await.contains(&"renamed a".to_owned()));
    assert!(world.objects().await.contains(&"other".to_owned()));
}

#[tokio::test]
async fn exotic_names_are_names() {
    let mut world = World::new().await;
    for name in ["two words", "select", "Größe", "x\"; drop table y; --", "it's"] {
        world.declare(name, &table("select 1 as x", &[])).await;
        assert_eq!(world.works().await, [format!("built {name}")]);
        let other = format!("{name} 2");
        world.rename(name, &other).await;
        world.settle().await;
        assert_eq!(world.objects().await.join(" "), other);
        world.delete(&other).await;
        world.settle().await;
        assert_eq!(world.objects().await, [""; 0]);
    }
}
