//! Incremental models and schedules: which rows come, when, and what an edit does to those that are there.

use std::time::Duration;

use watershed_proto::{IncrementalOutput, IncrementalStrategy, ModelChangeMode, OnSchemaChange, Schedule};

use super::world::{Model, World, by_hand, table};

const HOUR: Duration = Duration::from_secs(3_600);

fn by(strategy: IncrementalStrategy) -> IncrementalOutput {
    IncrementalOutput {
        strategy: strategy.into(),
        ..IncrementalOutput::default()
    }
}

/// A source of one file, with a fingerprint of its own.
fn source() -> Model {
    table("select i, v from read_csv('x.csv', header = true)", &[]).reading("x.csv")
}

/// Takes the rows of `a` that are newer than those it has.
fn newest() -> Model {
    let sql = "select i, v from a{{ if incremental }} where i > {{ .state.top }}{{ end }}";
    let model = table(sql, &["a"]).incremental(by(IncrementalStrategy::Append));
    model.state("select max(i) as top from m")
}

async fn world(model: &Model) -> World {
    let mut world = World::new().await;
    world.write("x.csv", "i,v\n1,a\n2,b\n");
    world.declare("a", &source()).await;
    world.declare("m", model).await;
    assert_eq!(world.works().await, ["built a", "built m"]);
    world
}

async fn rows(world: &World) -> String {
    world.rows("select i || v from m order by all").await.join(" ")
}

#[tokio::test]
async fn new_rows_are_appended_and_old_ones_are_not_read_again() {
    let mut world = world(&newest()).await;
    // The source forgets a row, which the model keeps.
    world.write("x.csv", "i,v\n2,changed\n3,c\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1a 2b 3c");
    let state = world.state("m");
    assert_eq!((state.rows, state.steps, state.incremental), (Some(3), 1, true));
    let top = state.incremental_state.unwrap().fields["top"].clone();
    assert_eq!(top, 3_i64.into());
}

#[tokio::test]
async fn a_build_that_brings_no_rows_leaves_what_reads_it_alone() {
    let mut world = world(&newest()).await;
    world
        .declare("above", &table("select count(*) as n from m", &["m"]))
        .await;
    assert_eq!(world.works().await, ["built above"]);
    let build = world.state("m").build_id;
    world.refresh("m").await;
    assert_eq!(world.works().await, ["checked m"]);
    assert_eq!(world.state("m").build_id, build);
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0], "the refresh is answered");
}

#[tokio::test]
async fn a_full_refresh_makes_all_rows_anew() {
    let mut world = world(&newest()).await;
    world.write("x.csv", "i,v\n7,x\n");
    world.reconcile("a").await;
    world.works().await;
    assert_eq!(rows(&world).await, "1a 2b 7x");
    world.refresh_whole("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "7x");
    assert_eq!(world.state("m").steps, 0);
}

#[tokio::test]
async fn rows_are_merged_by_their_key_and_groups_are_replaced_whole() {
    let merge = IncrementalOutput {
        unique_key: vec!["i".into()],
        ..by(IncrementalStrategy::Merge)
    };
    let groups = IncrementalOutput {
        partition_by: "i % 2".into(),
        ..by(IncrementalStrategy::PartitionOverwrite)
    };
    let whole = by(IncrementalStrategy::Overwrite);
    for (output, expected) in [(merge, "1a 2new 4d"), (groups, "1a 2new 4d"), (whole, "2new 4d")] {
        let model = table("select i, v from a", &["a"]).incremental(output);
        let mut world = world(&model).await;
        world.write("x.csv", "i,v\n2,new\n4,d\n");
        world.reconcile("a").await;
        assert_eq!(world.works().await, ["built a", "built m"]);
        assert_eq!(rows(&world).await, expected);
    }
}

#[tokio::test]
async fn an_edit_is_held_until_a_full_refresh_is_asked_for() {
    let mut world = world(&newest()).await;
    let mut edited = newest();
    edited.spec.output_meaning.as_mut().unwrap().digest[0] ^= 1;
    world.declare("m", &edited).await;
    assert_eq!(world.works().await, ["failed m"]);
    let error = world.error("m");
    assert_eq!(&*error.code, "held-change");
    assert!(error.hint.unwrap().contains("watershed approve m"));
    world.write("x.csv", "i,v\n3,c\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a", "failed m"]);
    assert_eq!(rows(&world).await, "1a 2b", "not a row comes meanwhile");
    world.refresh_whole("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "3c");
}

#[tokio::test]
async fn a_held_edit_that_could_not_be_built_tells_its_mistake() {
    let mut world = world(&newest()).await;
    let mut edited = newest();
    edited.spec.output_meaning.as_mut().unwrap().digest[0] ^= 1;
    edited.spec.sql.as_mut().unwrap().text = "select i, v from renamed".into();
    world.declare("m", &edited).await;
    assert_eq!(world.works().await, ["failed m"]);
    let error = world.error("m");
    assert_eq!(&*error.code, "unknown-table");
    assert!(!error.hint.unwrap_or_default().contains("approve"));
    assert_eq!(rows(&world).await, "1a 2b");
}

#[tokio::test]
async fn an_edit_that_nothing_protects_from_resets_and_one_that_patches_keeps() {
    for (mode, protect, works, expected) in [
        (ModelChangeMode::Reset, Some(false), "built m", "3c"),
        (ModelChangeMode::Patch, None, "checked m", "1a 2b 3c"),
        (ModelChangeMode::Manual, Some(false), "failed m", "1a 2b 3c"),
    ] {
        let with = |mut model: Model| {
            model.spec.change_mode = mode.into();
            model.spec.protect = protect;
            model
        };
        let mut world = world(&with(newest())).await;
        world.write("x.csv", "i,v\n3,c\n");
        world.reconcile("a").await;
        world.works().await;
        let mut edited = with(newest());
        edited.spec.output_meaning.as_mut().unwrap().digest[0] ^= 1;
        world.declare("m", &edited).await;
        assert_eq!(world.works().await, [works], "{mode:?}");
        assert_eq!(rows(&world).await, expected, "{mode:?}");
        world.restart(|_| ()).await;
        world.reconcile("m").await;
        let again: &[&str] = if mode == ModelChangeMode::Manual {
            &["failed m"]
        } else {
            &[]
        };
        assert_eq!(
            world.works().await,
            again,
            "{mode:?}: the edit is taken over once"
        );
    }
}

#[tokio::test]
async fn an_older_definition_is_taken_from_the_trash_after_an_edit_was_approved() {
    let mut edited = newest();
    edited.spec.output_meaning.as_mut().unwrap().digest[0] ^= 1;
    let without_protection = |mut model: Model| {
        model.spec.protect = Some(false);
        model
    };
    for (back, approves) in [(newest(), true), (without_protection(newest()), false)] {
        let mut world = world(&newest()).await;
        // A row that no build could make again.
        world.write("x.csv", "i,v\n3,c\n");
        world.reconcile("a").await;
        world.works().await;
        world.declare("m", &edited).await;
        assert_eq!(world.works().await, ["failed m"]);
        world.approve("m").await;
        assert_eq!(world.works().await, ["built m"]);
        assert_eq!(rows(&world).await, "3c");
        world.declare("m", &back).await;
        if approves {
            assert_eq!(world.works().await, ["failed m"]);
            world.approve("m").await;
        }
        assert_eq!(world.works().await, ["restored m"]);
        assert_eq!(rows(&world).await, "1a 2b 3c");
        world.reconcile("m").await;
        assert_eq!(world.works().await, [""; 0], "what was asked for is answered");

        // A full refresh asks for other rows of every definition.
        world.refresh_whole("m").await;
        world.works().await;
        world.declare("m", &without_protection(edited.clone())).await;
        assert_eq!(world.works().await, ["built m"]);
    }
}

#[tokio::test]
async fn a_value_that_a_column_does_not_hold_is_told_with_both_types() {
    let key = IncrementalOutput {
        unique_key: vec!["i".into()],
        ..by(IncrementalStrategy::Merge)
    };
    for output in [by(IncrementalStrategy::Append), key] {
        let model = table("select i, v from a", &["a"]).incremental(output);
        let mut world = World::new().await;
        world.write("x.csv", "i,v\n1,10\n");
        world.declare("a", &source()).await;
        world.declare("m", &model).await;
        assert_eq!(world.works().await, ["built a", "built m"]);
        world.write("x.csv", "i,v\n2,1.5\n");
        world.reconcile("a").await;
        assert_eq!(world.works().await, ["built a", "failed m"]);
        let error = world.error("m");
        assert_eq!(&*error.code, "columns-changed");
        let told = "`v` is BIGINT in the table and DOUBLE in the new rows";
        assert!(error.message.contains(told), "{}", error.message);
        assert_eq!(rows(&world).await, "110");
    }
}

#[tokio::test]
async fn a_model_that_becomes_incremental_loses_nothing_and_is_not_held() {
    let mut world = world(&table("select i, v from a", &["a"])).await;
    world.declare("m", &newest()).await;
    assert_eq!(world.works().await, ["built m"]);
    // Back again would lose what came meanwhile.
    world.declare("m", &table("select i, v from a", &["a"])).await;
    assert_eq!(world.works().await, ["failed m"]);
    assert_eq!(&*world.error("m").code, "held-change");
}

#[tokio::test]
async fn a_new_column_is_refused_with_a_hint_or_taken() {
    let wide = "select i, v, 1 as w from a";
    let narrow = "select i, v from a";
    for (policy, failed) in [
        (OnSchemaChange::Fail, true),
        (OnSchemaChange::Ignore, false),
        (OnSchemaChange::AppendNewColumns, false),
    ] {
        let with = |sql: &str| {
            let output = IncrementalOutput {
                on_schema_change: policy.into(),
                ..by(IncrementalStrategy::Append)
            };
            let mut model = table(sql, &["a"]).incremental(output);
            model.spec.change_mode = ModelChangeMode::Patch.into();
            model
        };
        let mut world = world(&with(narrow)).await;
        world.declare("m", &with(wide)).await;
        assert_eq!(world.works().await, ["checked m"]);
        world.refresh("m").await;
        if failed {
            assert_eq!(world.works().await, ["failed m"]);
            let error = world.error("m");
            assert_eq!(&*error.code, "columns-changed");
            assert!(error.message.contains("`w`"), "{}", error.message);
            assert_eq!(rows(&world).await, "1a 2b");
        } else {
            assert_eq!(world.works().await, ["built m"]);
            assert_eq!(rows(&world).await, "1a 1a 2b 2b");
        }
    }
}

#[tokio::test]
async fn a_renamed_model_takes_new_rows_under_its_new_name() {
    let mut world =
        world(&table("select i, v from a", &["a"]).incremental(by(IncrementalStrategy::Append))).await;
    world.stop().await;
    world
        .restart(|root| std::fs::write(root.join("x.csv"), "i,v\n3,c\n").unwrap())
        .await;
    world.rename("m", "n").await;
    world.reconcile("a").await;
    world.works().await;
    assert_eq!(
        world.rows("select i || v from n order by all").await.join(" "),
        "1a 2b 3c"
    );
    assert_eq!(world.objects().await, ["a", "n"]);
}

#[tokio::test]
async fn a_lost_catalog_costs_no_rows_and_misses_none() {
    let mut world = world(&newest()).await;
    world.write("x.csv", "i,v\n3,c\n");
    world.reconcile("a").await;
    world.works().await;
    world.lose_catalog().await;
    world.write("x.csv", "i,v\n4,d\n");
    world.declare("a", &source()).await;
    world.declare("m", &newest()).await;
    world.works().await;
    assert_eq!(rows(&world).await, "1a 2b 3c 4d");
}

#[tokio::test]
async fn a_table_that_was_dropped_by_hand_is_built_whole() {
    let mut world = world(&newest()).await;
    world.restart(|root| by_hand(root, "drop table m")).await;
    world.reconcile("m").await;
    world.works().await;
    assert_eq!(rows(&world).await, "1a 2b");
    assert_eq!(world.state("m").steps, 0);
}

#[tokio::test]
async fn a_schedule_builds_when_it_is_due_and_once_for_all_missed_times() {
    let mut model = table("select i, v from a", &["a"]).incremental(by(IncrementalStrategy::Append));
    model.spec.refresh_schedule = Some(Schedule {
        ref_update: true,
        ticker_seconds: 3_600,
        ..Schedule::default()
    });
    let mut world = world(&model).await;
    let next = world.model("m").row.next_reconcile.unwrap();
    let far = next.0 - world.now().0;
    assert!((3_500_000..=3_600_000).contains(&far), "{far} ms");
    world.pass(HOUR / 2);
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0], "not due");
    assert_eq!(
        world.model("m").row.next_reconcile,
        Some(next),
        "and due at the same time"
    );
    world.pass(5 * HOUR);
    world.reconcile("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "1a 1a 2b 2b");
    assert!(world.model("m").row.next_reconcile.unwrap() > world.now());
    // The next process knows.
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
}

#[tokio::test]
async fn a_model_that_follows_nothing_is_built_by_edits_and_requests_alone() {
    let with = |schedule: Schedule| {
        let mut model = table("select i, v from a", &["a"]);
        model.spec.refresh_schedule = Some(schedule);
        model
    };
    let quiet = Schedule {
        ref_update: false,
        ..Schedule::default()
    };
    let mut world = world(&with(quiet)).await;
    world.write("x.csv", "i,v\n9,z\n");
    world.reconcile("a").await;
    assert_eq!(world.works().await, ["built a"]);
    assert_eq!(rows(&world).await, "1a 2b");
    world.restart(|_| ()).await;
    assert_eq!(rows(&world).await, "1a 2b");
    let follows = Schedule {
        ref_update: true,
        ..Schedule::default()
    };
    world.declare("m", &with(follows)).await;
    assert_eq!(
        world.works().await,
        ["built m"],
        "what it missed was not forgotten"
    );
    assert_eq!(rows(&world).await, "9z");
}
