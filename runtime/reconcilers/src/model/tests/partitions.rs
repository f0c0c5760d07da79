//! Partitioned models: which partitions are built, what becomes of those that fail, and what survives a crash.

use watershed_proto::{IncrementalOutput, IncrementalStrategy};

use super::world::{Model, World, table};

fn by(strategy: IncrementalStrategy) -> IncrementalOutput {
    IncrementalOutput {
        strategy: strategy.into(),
        ..IncrementalOutput::default()
    }
}

/// The days of `x.csv` are partitions, as fresh as the file says.
fn source() -> Model {
    table("select day, fresh, v from read_csv('x.csv', header = true)", &[]).reading("x.csv")
}

/// One row for each day, from `a`; a day with the value `x` fails.
fn days() -> Model {
    let sql = "select day, if(v = 'x', error('bad ' || day), v) as v from a where day = {{ .partition.day }}";
    let mut model = table(sql, &["a"]).partitions("select day, fresh from a order by day");
    model.spec.partitions_watermark_field = "fresh".into();
    model
}

fn incremental(strategy: IncrementalStrategy) -> Model {
    days().incremental(by(strategy))
}

const HEAD: &str = "day,fresh,v\n";

async fn world(model: &Model, days: &str) -> World {
    let mut world = World::new().await;
    world.write("x.csv", &format!("{HEAD}{days}"));
    world.declare("a", &source()).await;
    world.declare("m", model).await;
    world.works().await;
    world
}

async fn change(world: &mut World, days: &str) -> Vec<String> {
    world.write("x.csv", &format!("{HEAD}{days}"));
    world.reconcile("a").await;
    world.works().await
}

async fn rows(world: &World) -> String {
    world.rows("select day || v from m order by all").await.join(" ")
}

#[tokio::test]
async fn only_new_partitions_and_those_with_another_watermark_are_built() {
    let mut world = world(
        &incremental(IncrementalStrategy::PartitionOverwrite),
        "1,1,a\n2,1,b\n",
    )
    .await;
    assert_eq!(rows(&world).await, "1a 2b");
    // The first has other rows and no other watermark; the second is fresher; the third is new.
    let works = change(&mut world, "1,1,z\n2,2,c\n3,1,d\n").await;
    assert_eq!(works, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1a 2c 3d");
    assert_eq!(
        world.partitions("m").await,
        ["{\"day\":1} done 1", "{\"day\":2} done 1", "{\"day\":3} done 1"]
    );
    let counts = world.state("m").partitions.unwrap();
    assert_eq!((counts.done, counts.failed), (3, 0));
    // Gone from the list: its rows stay.
    change(&mut world, "3,1,d\n").await;
    assert_eq!(rows(&world).await, "1a 2c 3d");
}

#[tokio::test]
async fn a_model_that_is_not_incremental_has_all_partitions_built() {
    let mut world = world(&days(), "1,1,a\n2,1,b\n").await;
    let works = change(&mut world, "1,1,z\n3,1,d\n").await;
    assert_eq!(works, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1z 3d");
    assert_eq!(world.partitions("m").await.len(), 2);
    let columns = world.rows("select column_name from information_schema.columns where table_name = 'm'");
    assert_eq!(columns.await, ["day", "v"], "no column of ours");
}

#[tokio::test]
async fn a_partition_that_fails_is_noted_and_built_again_and_the_others_count() {
    let mut world = world(&incremental(IncrementalStrategy::PartitionOverwrite), "1,1,a\n").await;
    let works = change(&mut world, "1,1,a\n2,1,x\n3,1,c\n").await;
    assert_eq!(works, ["built a", "failed m"]);
    assert_eq!(rows(&world).await, "1a 3c");
    let error = world.error("m");
    assert_eq!(&*error.code, "partitions-failed");
    assert!(error.message.contains("{\"day\":2}"), "{error:?}");
    assert!(error.place.is_some());
    let counts = world.state("m").partitions.unwrap();
    assert_eq!((counts.done, counts.failed), (2, 1));
    // Another run tries it again, without another reason.
    world.reconcile("m").await;
    assert_eq!(world.works().await, ["failed m"]);
    assert_eq!(change(&mut world, "2,1,b\n").await, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1a 2b 3c");
    assert_eq!(world.state("m").partitions.unwrap().failed, 0);
}

#[tokio::test]
async fn a_partition_that_was_staged_and_fails_leaves_no_old_rows() {
    let sql = "select v from read_csv('{{ .partition.uri }}', columns = {'v': 'bigint'})";
    for incremental in [false, true] {
        let mut model = table(sql, &[]).partition_files("d/*.csv");
        let mut world = World::new().await;
        let run = async |world: &mut World, files: [&str; 2]| {
            for (name, v) in ["d/1.csv", "d/2.csv"].into_iter().zip(files) {
                world.write(name, &format!("v\n{v}\n"));
            }
            world.reconcile("m").await;
            world.works().await
        };
        world.write("d/1.csv", "v\n0\n");
        world.write("d/2.csv", "v\n0\n");
        world.declare("m", &model).await;
        assert_eq!(world.works().await, ["built m"]);
        if incremental {
            // Another definition has all rows made anew.
            model = table(&format!("{sql} where true"), &[])
                .partition_files("d/*.csv")
                .incremental(by(IncrementalStrategy::PartitionOverwrite));
            world.write("d/1.csv", "v\nx\n");
            world.declare("m", &model).await;
            world.works().await;
        }
        // The second is staged, and waits for the first; then it fails itself.
        for files in [["x", "20"], ["x", "y"]] {
            assert_eq!(run(&mut world, files).await, ["failed m"], "{files:?}");
        }
        assert_eq!(run(&mut world, ["10", "21"]).await, ["built m"]);
        let rows = world.rows("select v from m order by all").await;
        assert_eq!(rows.join(" "), "10 21", "incremental: {incremental}");
    }
}

#[tokio::test]
async fn a_failed_partition_that_is_listed_no_more_holds_nothing_up() {
    let mut world = world(&incremental(IncrementalStrategy::PartitionOverwrite), "1,1,a\n").await;
    assert_eq!(
        change(&mut world, "1,1,a\n2,1,x\n").await,
        ["built a", "failed m"]
    );
    assert_eq!(change(&mut world, "1,1,a\n").await, ["restored a", "checked m"]);
    assert_eq!(
        world.partitions("m").await,
        ["{\"day\":1} done 1", "{\"day\":2} gone -"]
    );
    let counts = world.state("m").partitions.unwrap();
    assert_eq!((counts.done, counts.failed), (1, 0));
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0]);
    assert_eq!(change(&mut world, "1,1,a\n2,1,b\n").await, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1a 2b");
}

#[tokio::test]
async fn a_whole_build_goes_on_when_a_failed_partition_is_listed_no_more() {
    let mut world = world(&days(), "1,1,a\n2,1,b\n").await;
    assert_eq!(
        change(&mut world, "1,1,z\n2,1,x\n").await,
        ["built a", "failed m"]
    );
    assert_eq!(change(&mut world, "1,1,z\n").await, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1z");
    assert_eq!(world.partitions("m").await, ["{\"day\":1} done 1"]);
}

#[tokio::test]
async fn good_rows_are_not_replaced_by_fewer() {
    let mut world = world(&days(), "1,1,a\n2,1,b\n").await;
    let works = change(&mut world, "1,1,z\n2,1,x\n").await;
    assert_eq!(works, ["built a", "failed m"]);
    assert_eq!(rows(&world).await, "1a 2b");
    assert_eq!(change(&mut world, "1,1,z\n2,1,y\n").await, ["built a", "built m"]);
    assert_eq!(rows(&world).await, "1z 2y");
}

#[tokio::test]
async fn a_full_refresh_makes_all_partitions_anew_and_forgets_those_that_are_gone() {
    let mut world = world(
        &incremental(IncrementalStrategy::PartitionOverwrite),
        "1,1,a\n2,1,b\n",
    )
    .await;
    change(&mut world, "2,1,z\n").await;
    assert_eq!(rows(&world).await, "1a 2b");
    world.refresh_whole("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "2z");
    assert_eq!(world.partitions("m").await, ["{\"day\":2} done 1"]);
}

#[tokio::test]
async fn single_partitions_are_built_again_on_request() {
    let mut world = world(
        &incremental(IncrementalStrategy::PartitionOverwrite),
        "1,1,a\n2,1,b\n",
    )
    .await;
    // No other watermark: nothing is built of it.
    change(&mut world, "1,1,z\n2,1,y\n").await;
    assert_eq!(rows(&world).await, "1a 2b");
    world.ask_for("m", "1").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "1z 2b");
}

#[tokio::test]
async fn rows_of_partitions_are_merged_appended_and_replaced_by_group() {
    let merge = IncrementalOutput {
        unique_key: vec!["v".into()],
        ..by(IncrementalStrategy::Merge)
    };
    let groups = IncrementalOutput {
        partition_by: "v".into(),
        ..by(IncrementalStrategy::PartitionOverwrite)
    };
    let cases = [
        (by(IncrementalStrategy::Append), "1a 2a", "1a 1c 2a"),
        (merge, "2a", "1c 2a"),
        (groups, "2a", "1c 2a"),
    ];
    for (output, first, then) in cases {
        let model = days().incremental(output);
        let mut world = world(&model, "1,1,a\n2,1,a\n").await;
        assert_eq!(rows(&world).await, first);
        change(&mut world, "1,2,c\n2,1,a\n").await;
        assert_eq!(rows(&world).await, then);
        let columns = "select count(*) from information_schema.columns where table_name = 'm'";
        assert_eq!(world.rows(columns).await, ["2"]);
    }
}

#[tokio::test]
async fn a_partition_that_has_no_rows_any_more_loses_those_of_before() {
    let sql = "select day, v from a where day = {{ .partition.day }} and v <> 'none'";
    let mut model = table(sql, &["a"]).partitions("select day, fresh from a");
    model.spec.partitions_watermark_field = "fresh".into();
    let model = model.incremental(by(IncrementalStrategy::PartitionOverwrite));
    let mut world = world(&model, "1,1,a\n2,1,b\n").await;
    assert_eq!(
        change(&mut world, "1,2,none\n2,1,b\n").await,
        ["built a", "built m"]
    );
    assert_eq!(rows(&world).await, "2b");
}

#[tokio::test]
async fn files_are_partitions_that_are_read_when_they_change() {
    let sql = "select v from read_csv('{{ .partition.uri }}', header = true)";
    let model = table(sql, &[]).partition_files("d/*.csv");
    let model = model.incremental(by(IncrementalStrategy::PartitionOverwrite));
    let mut world = World::new().await;
    world.write("d/1.csv", "v\na\n");
    world.write("d/2.csv", "v\nb\n");
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["built m"]);
    let rows = async |world: &World| world.rows("select v from m order by all").await.join(" ");
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0], "nothing changed");
    world.write("d/2.csv", "v\nc\nd\n");
    world.write("d/3.csv", "v\ne\n");
    world.reconcile("m").await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(rows(&world).await, "a c d e");
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0]);
    // Touched, with the same content: looked at, and not read again.
    let build = world.state("m").build_id;
    let file = std::fs::File::open(world.path("d/1.csv")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    world.reconcile("m").await;
    assert_eq!(world.works().await, ["checked m"]);
    assert_eq!(world.state("m").build_id, build);
    assert_eq!(world.partitions("m").await.len(), 3);
}

#[tokio::test]
async fn a_build_that_was_cut_off_goes_on_with_what_is_staged() {
    let sql = "select day, if(v = 'x', error('bad'), v) as v, nextval('s') as n from a where day = {{ .partition.day }}";
    let model = table(sql, &["a"]).partitions("select day from a order by day");
    let mut world = World::new().await;
    world.write("x.csv", &format!("{HEAD}1,1,a\n2,1,b\n3,1,c\n"));
    world.declare("a", &source()).await;
    world.works().await;
    world
        .restart(|root| super::world::by_hand(root, "create sequence s"))
        .await;
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["built m"]);
    let ns = async |world: &World| world.rows("select n from m order by day").await.join(" ");
    assert_eq!(ns(&world).await, "1 2 3");
    // The third fails: the first two are staged, and built once.
    assert_eq!(
        change(&mut world, "1,1,a\n2,1,b\n3,1,x\n").await,
        ["built a", "failed m"]
    );
    assert_eq!(ns(&world).await, "1 2 3");
    world.crash().await;
    world.works().await;
    world.reconcile("m").await;
    assert_eq!(world.works().await, ["failed m"]);
    let staged = world.partitions("m").await;
    assert_eq!(staged[..2], ["{\"day\":1} staged 1", "{\"day\":2} staged 1"]);
    let numbers = world.rows("select last_value from duckdb_sequences()").await;
    let last: u64 = numbers[0].parse().unwrap();
    assert!(
        last <= 7,
        "five rows, and two of those that failed at most: {last}"
    );
}

#[tokio::test]
async fn what_is_staged_goes_with_the_model_and_with_another_definition() {
    let mut world = world(&days(), "1,1,a\n2,1,x\n").await;
    let stages = "select count(*) from duckdb_tables() where table_name like 'stage_%'";
    assert_eq!(world.rows(stages).await, ["1"]);
    assert_eq!(world.partitions("m").await.len(), 2);
    let whole = table("select day, v from a", &["a"]);
    world.declare("m", &whole).await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(world.rows(stages).await, ["0"]);
    assert_eq!(world.partitions("m").await, [""; 0]);
    world.declare("m", &days()).await;
    assert_eq!(world.works().await, ["failed m"]);
    assert_eq!(world.rows(stages).await, ["1"]);
    world.delete("m").await;
    world.settle().await;
    assert_eq!(world.rows(stages).await, ["0"]);
    assert_eq!(
        world.rows("select count(*) from _watershed.partitions").await,
        ["0"]
    );
}

#[tokio::test]
async fn partitions_must_have_the_columns_of_the_first_unless_others_are_let_in() {
    let sql = "select day{{ if gt .partition.day 1 }}, v{{ end }} from a where day = {{ .partition.day }}";
    let model = table(sql, &["a"]).partitions("select day from a order by day");
    let world = world(&model, "1,1,a\n2,1,b\n").await;
    assert!(world.error("m").message.contains("`v`"), "{:?}", world.error("m"));
    let mut adding = by(IncrementalStrategy::PartitionOverwrite);
    adding.on_schema_change = watershed_proto::OnSchemaChange::AppendNewColumns.into();
    world.declare("n", &model.incremental(adding)).await;
    world.settle().await;
    let rows = world.rows("select day, v from n order by day").await;
    assert_eq!(rows, ["1|NULL", "2|b"]);
}

#[tokio::test]
async fn a_first_build_ends_at_once_when_its_first_partition_fails() {
    let world = world(&days(), "1,1,x\n2,1,b\n").await;
    let error = world.error("m");
    assert!(error.message.contains("the first partition"), "{error:?}");
    assert!(
        world
            .partitions("m")
            .await
            .iter()
            .all(|one| !one.contains("\"day\":2"))
    );
}

#[tokio::test]
async fn a_list_without_a_row_is_a_mistake_at_the_first_build_alone() {
    let model = incremental(IncrementalStrategy::PartitionOverwrite);
    let mut world = world(&model, "").await;
    assert_eq!(&*world.error("m").code, "no-partitions");
    change(&mut world, "1,1,a\n").await;
    assert_eq!(rows(&world).await, "1a");
    let build = world.state("m").build_id;
    assert_eq!(change(&mut world, "").await, ["restored a", "checked m"]);
    assert_eq!(
        (rows(&world).await, world.state("m").build_id),
        ("1a".to_owned(), build)
    );
    world.reconcile("m").await;
    assert_eq!(world.works().await, [""; 0]);
    // All rows anew would be none.
    world.refresh_whole("m").await;
    assert_eq!(world.works().await, ["failed m"]);
    assert_eq!(rows(&world).await, "1a");
}

/// Files whose names have the characters of patterns, and others that such patterns would match. Each holds its name.
const ODD: [&str; 7] = [
    "in/a[1].csv",
    "in/a1.csv",
    "in/b?.csv",
    "in/bx.csv",
    "in/c{1,2}.csv",
    "in/d[1]*/x.csv",
    "in/d1/x.csv",
];

async fn with_odd_files() -> World {
    let world = World::new().await;
    for path in ODD {
        world.write(path, &format!("v\n\"{path}\"\n"));
    }
    world
}

#[tokio::test]
async fn the_path_of_a_partition_is_that_of_a_file_whatever_it_looks_like() {
    let by_files =
        "select v, '{{ .partition.uri }}' as uri from read_csv('{{ .partition.uri }}', delim = ';')";
    let by_query =
        "select v, '{{ .partition.file }}' as uri from read_csv('{{ .partition.file }}', delim = ';')";
    let rows = "select 'in/' || unnest(['a[1].csv', 'b?.csv', 'c{1,2}.csv', 'a1.csv', 'bx.csv']) as file";
    for (model, count) in [
        (table(by_files, &[]).partition_files("in/**/*.csv"), 7),
        (table(by_query, &[]).partitions(rows), 5),
    ] {
        let mut world = with_odd_files().await;
        world.declare("m", &model).await;
        assert_eq!(world.works().await, ["built m"]);
        let read = world.rows("select v from m where v = uri order by all").await;
        let mut expected: Vec<&str> = ODD.to_vec();
        expected.sort_unstable();
        expected.retain(|path| count == 7 || !path.contains("/x"));
        assert_eq!(read, expected);
        assert_eq!(world.rows("select count(*) from m").await, [count.to_string()]);
    }
}

#[tokio::test]
async fn the_folder_of_a_partition_is_no_pattern_and_what_an_author_wrote_is() {
    let mut world = with_odd_files().await;
    let sql =
        "select v, '{{ .partition.uri }}' as uri from read_csv('{{ .partition.uri }}/*.csv', delim = ';')";
    let mut model = table(sql, &[]).partition_files("in/*/*.csv");
    let block = model
        .spec
        .partitions
        .as_mut()
        .and_then(|block| block.properties.as_mut());
    block
        .unwrap()
        .fields
        .insert("partition".into(), "directory".into());
    world.declare("m", &model).await;
    assert_eq!(world.works().await, ["built m"]);
    assert_eq!(
        world.rows("select v || ' ' || uri from m order by all").await,
        ["in/d1/x.csv in/d1", "in/d[1]*/x.csv in/d[1]*"]
    );
}
