//! Statements around builds: when they are run, and what becomes of those that fail.

use watershed_proto::{IncrementalOutput, IncrementalStrategy, SqlSource};

use super::world::{Model, World, table};

fn texts(texts: &[&str]) -> Vec<SqlSource> {
    let source = |text: &&str| SqlSource {
        path: "models/m.sql".into(),
        text: (*text).to_owned(),
        line: 7,
        column: 11,
        templated: text.contains("{{"),
        ..SqlSource::default()
    };
    texts.iter().map(source).collect()
}

fn hooked(mut model: Model, before: &[&str], after: &[&str]) -> Model {
    model.spec.pre_exec = texts(before);
    model.spec.post_exec = texts(after);
    model
}

#[tokio::test]
async fn what_fails_after_a_build_is_told_until_a_build_ends_well() {
    let mut world = World::new().await;
    let model = |after: &str| hooked(table("select 1 as x", &[]), &[], &[after]);
    world.declare("m", &model("select nothing")).await;
    assert_eq!(world.works().await, ["failed m"]);
    let error = world.error("m");
    let place = error.place.clone().unwrap();
    assert_eq!(
        (&*error.code, place.line, place.column),
        ("post-exec-failed", 7, 18)
    );
    assert!(!error.hint.as_ref().unwrap().contains("last good"), "{error:?}");
    assert_eq!(world.rows("select x from m").await, ["1"]);
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, ["failed m"], "and not forgotten");
    world.crash().await;
    world.declare("m", &model("update m set x = 2")).await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(world.rows("select x from m").await, ["2"]);
    world.restart(|_| ()).await;
    assert_eq!(world.works().await, [""; 0]);
    assert!(!world.engine_is_open(), "the file is as it was left");
}

#[tokio::test]
async fn an_error_after_a_failed_build_is_joined_to_its_own() {
    let mut world = World::new().await;
    let model = hooked(table("select nothing", &[]), &[], &["select none"]);
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["failed m"]);
    let error = world.error("m");
    assert_eq!(&*error.code, "unknown-column");
    assert!(
        error.message.contains("nothing") && error.message.contains("`post_exec` failed: "),
        "{error:?}"
    );
}

#[tokio::test]
async fn rows_are_added_between_their_statements() {
    let mut world = World::new().await;
    let append = IncrementalOutput {
        strategy: IncrementalStrategy::Append.into(),
        ..IncrementalOutput::default()
    };
    let model = table("select getvariable('n') as x", &[]).incremental(append);
    let model = hooked(
        model,
        &["set variable n = {{ if incremental }}10 + {{ .state.top }}{{ else }}1{{ end }}"],
        &["select 1"],
    );
    world
        .declare("m", &model.state("select max(x) as top from m"))
        .await;
    world.works().await;
    world.refresh("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(world.rows("select x from m order by x").await, ["1", "11"]);
    let state = world.state("m");
    assert_eq!((state.steps, state.unfinished), (1, false));
    assert_eq!(state.incremental_state.unwrap().fields["top"], 11_i64.into());
}

#[tokio::test]
async fn each_partition_is_built_between_its_statements() {
    let mut world = World::new().await;
    let model = table("select p from mine", &[]).partitions("select range as p from range(3)");
    let model = hooked(
        model,
        &[
            "create temp table mine as select {{ .partition.p }} as p",
            "attach ':memory:' as side",
        ],
        &["select if({{ .partition.p }} = 1, error('after one'), 1)"],
    );
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["failed m"]);
    let error = world.error("m");
    assert!(
        error.message.contains("`post_exec` failed: ") && error.message.contains("after one"),
        "{error:?}"
    );
    let mut model = model;
    model.spec.post_exec.clear();
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(world.rows("select p from m order by p").await, ["0", "1", "2"]);
}
