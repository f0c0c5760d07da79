//! Restarts after another process, a person or a crash has changed things.

use std::fs;

use super::world::{Model, World, by_hand, table, view};

fn reads_file() -> Model {
    table("select * from read_csv('data/x.csv')", &[]).reading("data/x.csv")
}

async fn two() -> World {
    let mut world = World::new().await;
    world.write("data/x.csv", "x\n1\n");
    world.declare("a", &reads_file()).await;
    world
        .declare("b", &table("select x + 1 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["built a", "built b"]);
    world
}

#[tokio::test]
async fn when_nothing_changed_the_engine_is_not_even_opened() {
    let mut world = two().await;
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(!world.engine_is_open());
}

#[tokio::test]
async fn after_an_end_that_recorded_nothing_the_engine_is_looked_over_and_nothing_is_built() {
    let mut world = two().await;
    world.crash().await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(world.engine_is_open());
}

#[tokio::test]
async fn models_over_models_rest_where_nobody_can_have_touched_their_outputs() {
    let mut world = World::new().await;
    world.write("data/x.csv", "x\n1\n");
    world.declare("a", &table("select 1 as x", &[])).await;
    world
        .declare("b", &view("select x + 1 as x from a", &["a"]))
        .await;
    world.declare("reads", &reads_file()).await;
    world.settle().await;
    let last_runs = |world: &World| {
        ["a", "b", "reads"].map(|name| {
            let run = world.model(name).row.last_run.clone();
            run.map(|run| (run.epoch, run.id))
        })
    };
    let before = last_runs(&world);
    world.restart(|_| ()).await;
    let after = last_runs(&world);
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after[2], before[2], "its file may be another");
    world
        .restart(|root| by_hand(root, "create table another as select 1"))
        .await;
    let touched = last_runs(&world);
    assert!((0..3).all(|at| touched[at] != after[at]), "{touched:?}");
}

#[tokio::test]
async fn a_table_dropped_by_hand_is_built_again() {
    let mut world = two().await;
    world.restart(|root| by_hand(root, "drop table b")).await;
    assert_eq!(world.works().await, ["built b"]);
    assert_eq!(world.rows("select x from b").await, ["2"]);
}

#[tokio::test]
async fn a_table_dropped_by_hand_builds_what_reads_it_too() {
    let mut world = two().await;
    world.restart(|root| by_hand(root, "drop table a")).await;
    assert_eq!(world.works().await, ["built a", "built b"]);
}

#[tokio::test]
async fn a_table_dropped_while_its_model_fails_is_built_again_once_that_is_mended() {
    let mut world = two().await;
    world.declare("a", &table("select nope from x", &[])).await;
    world.works().await;
    world
        .restart(|root| by_hand(root, "drop table a; drop table b"))
        .await;
    world.restart(|_| ()).await;
    world.declare("a", &reads_file()).await;
    assert_eq!(world.works().await, ["built a", "built b"]);
}

#[tokio::test]
async fn a_touched_file_builds_nothing_and_a_changed_one_builds() {
    let mut world = two().await;
    world
        .restart(|root| fs::write(root.join("data/x.csv"), "x\n1\n").unwrap())
        .await;
    assert_eq!(world.works().await, [""; 0]);
    world
        .restart(|root| fs::write(root.join("data/x.csv"), "x\n5\n").unwrap())
        .await;
    assert_eq!(world.works().await, ["built a", "built b"]);
    assert_eq!(world.rows("select x from b").await, ["6"]);
}

#[tokio::test]
async fn a_changed_file_behind_a_view_builds_the_table_on_it() {
    let mut world = World::new().await;
    world.write("data/x.csv", "x\n1\n");
    world
        .declare(
            "v",
            &view("select * from read_csv('data/x.csv')", &[]).reading("data/x.csv"),
        )
        .await;
    world.declare("t", &table("select x from v", &["v"])).await;
    world.works().await;
    world
        .restart(|root| fs::write(root.join("data/x.csv"), "x\n7\n").unwrap())
        .await;
    assert_eq!(world.works().await, ["built t", "built v"]);
    assert_eq!(world.rows("select x from t").await, ["7"]);
}

#[tokio::test]
async fn a_file_that_came_to_match_builds() {
    let mut world = World::new().await;
    world.write("data/1.csv", "x\n1\n");
    world
        .declare(
            "a",
            &table("select * from read_csv('data/*.csv')", &[]).reading("data/*.csv"),
        )
        .await;
    world.works().await;
    world
        .restart(|root| fs::write(root.join("data/2.csv"), "x\n2\n").unwrap())
        .await;
    assert_eq!(world.works().await, ["built a"]);
    assert_eq!(world.rows("select sum(x) from a").await, ["3"]);
}

#[tokio::test]
async fn outputs_of_a_lost_catalog_are_adopted_without_a_build() {
    let mut world = two().await;
    let a = table("select * from read_csv('data/x.csv')", &[]).reading("data/x.csv");
    let build = world.state("a").build_id;
    world.lose_catalog().await;
    world.declare("a", &a).await;
    world
        .declare("b", &table("select x + 2 as x from a", &["a"]))
        .await;
    assert_eq!(world.works().await, ["checked a", "built b"]);
    assert_eq!(world.state("a").build_id, build);
    assert_eq!(world.objects().await, ["a", "b"]);
    assert_eq!(world.rows("select x from b").await, ["3"]);
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(!world.engine_is_open());
}

#[tokio::test]
async fn an_upgrade_builds_nothing_whose_text_is_unchanged() {
    let mut world = two().await;
    world.restart(|_| ()).await;
    world
        .declare("b", &table("select x + 1 as x from a", &["a"]).by_rules("2", 9))
        .await;
    assert_eq!(world.works().await, [""; 0]);
    world
        .declare("b", &table("select x + 3 as x from a", &["a"]).by_rules("3", 9))
        .await;
    assert_eq!(world.works().await, ["built b"]);
}

#[tokio::test]
async fn a_model_deleted_in_another_process_takes_its_table_with_it() {
    let mut world = two().await;
    world.restart(|_| ()).await;
    world.delete("b").await;
    world.settle().await;
    assert_eq!(world.objects().await, ["a"]);
}

#[tokio::test]
async fn a_model_renamed_in_another_process_keeps_its_rows() {
    let mut world = two().await;
    world.restart(|_| ()).await;
    world.rename("b", "c").await;
    world.settle().await;
    assert_eq!(world.objects().await, ["a", "c"]);
    assert_eq!(world.rows("select x from c").await, ["2"]);
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
}
