//! Cases about building outputs.

use futures::future::join_all;
use watershed_drivers::olap::{BuildError, Failure, Location, Output, OutputKind};

use super::cases;
use crate::bench::{Bench, Verdict, holds, numbered, same, table, tag, uid, view};

cases! {
    a_table_carries_its_tag_and_record_from_the_first_moment: Appears, Tag, Record;
    a_rebuild_replaces_rows_tag_and_record_together: Appears, Tag, Record;
    a_view_becomes_a_table_and_a_table_a_view: Names;
    a_failed_build_leaves_the_last_good_output_and_nothing_else: Appears;
    a_build_under_a_new_name_takes_the_old_one_away: Names;
    another_resources_output_is_moved_aside_and_found_again: Names, Tag;
    builds_that_are_asked_for_at_once_are_all_made: Appears;
}

async fn a_table_carries_its_tag_and_record_from_the_first_moment(mut bench: Bench<'_>) -> Verdict {
    let build = table(1, "a", &bench.factory.numbers(3));
    let built = bench.build(&build).await?;
    same("rows", built.rows, &Some(3))?;
    same("the tag", (built.tag, &built.record), &(build.tag, &build.record))?;
    let expected = [Output {
        location: Location::named("a"),
        kind: OutputKind::Table,
        tag: build.tag,
        record: Some(build.record.clone()),
        rows: Some(3),
    }];
    same("the outputs", bench.outputs().await?, &expected[..])?;
    bench.reopened().await?;
    same(
        "the outputs of the next process",
        bench.outputs().await?,
        &expected[..],
    )
}

async fn a_rebuild_replaces_rows_tag_and_record_together(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    let second = numbered(1, 2, "A", OutputKind::Table, "select 2 as y;");
    bench.build(&second).await?;
    for _ in 0..2 {
        let outputs = bench.outputs().await?;
        let found: Vec<_> = outputs
            .iter()
            .map(|it| (it.location.name.as_str(), it.tag, it.record.as_deref()))
            .collect();
        same(
            "the outputs",
            found,
            &[("A", second.tag, Some(&second.record[..]))][..],
        )?;
        bench.says("select y from a", "2").await?;
        bench.reopened().await?;
    }
    Ok(())
}

async fn a_view_becomes_a_table_and_a_table_a_view(mut bench: Bench<'_>) -> Verdict {
    let kinds = [OutputKind::View, OutputKind::Table, OutputKind::View];
    for (number, kind) in (1..).zip(kinds) {
        bench
            .build(&numbered(1, number, "a", kind, &format!("select {number} as x")))
            .await?;
        bench.lists(&[&format!("a {kind} 1")]).await?;
        bench.says("select x from a", &number.to_string()).await?;
    }
    bench.reopened().await?;
    bench.lists(&["a view 1"]).await
}

async fn a_failed_build_leaves_the_last_good_output_and_nothing_else(mut bench: Bench<'_>) -> Verdict {
    let good = table(1, "a", "select 1 as x");
    bench.build(&good).await?;
    let before = bench.reopened_after(|person| person.objects()).await?;
    for (number, kind) in (2..).zip([OutputKind::Table, OutputKind::View]) {
        let bad = numbered(1, number, "a", kind, "select x from nothing_of_this_name");
        let error = bench.build(&bad).await.err();
        let is_said = matches!(error, Some(BuildError::Failed(Failure::Sql(_))));
        holds("a statement that can't be run is told as such", is_said)?;
        let new = bench
            .build(&numbered(
                2,
                number,
                "b",
                kind,
                "select x from nothing_of_this_name",
            ))
            .await;
        holds("the first build of an output fails as well", new.is_err())?;
    }
    same(
        "the tag",
        bench.outputs().await?.iter().map(|it| it.tag).collect::<Vec<_>>(),
        &[good.tag][..],
    )?;
    bench.says("select x from a", "1").await?;
    let after = bench.reopened_after(|person| person.objects()).await?;
    same("what stands there", after, &before)
}

async fn a_build_under_a_new_name_takes_the_old_one_away(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "old", "select 1 as x")).await?;
    bench
        .build(&numbered(1, 2, "new", OutputKind::View, "select 2 as x"))
        .await?;
    bench.lists(&["new view 1"]).await?;
    bench.reopened().await?;
    bench.build(&table(2, "old", "select 3 as x")).await?;
    bench.lists(&["new view 1", "old table 2"]).await
}

async fn another_resources_output_is_moved_aside_and_found_again(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    bench.build(&view(2, "b", "select 2 as x")).await?;
    bench.build(&table(3, "a", "select 3 as x")).await?;
    bench.build(&table(4, "b", "select 4 as x")).await?;
    let owners: std::collections::BTreeSet<_> = bench.outputs().await?.iter().map(|it| it.tag.uid).collect();
    same("the owners", owners, &(1..=4).map(uid).collect())?;
    bench.reopened().await?;
    bench.rename(1, "c").await?;
    bench
        .build(&numbered(2, 2, "d", OutputKind::View, "select 22 as x"))
        .await?;
    bench
        .lists(&["a table 3", "b table 4", "c table 1", "d view 2"])
        .await?;
    bench
        .says("select a.x, b.x, c.x, d.x from a, b, c, d", "3|4|1|22")
        .await
}

async fn builds_that_are_asked_for_at_once_are_all_made(mut bench: Bench<'_>) -> Verdict {
    let mut builds: Vec<_> = (1..=8)
        .map(|n| table(n, &format!("t{n}"), &format!("select {n} as x")))
        .collect();
    builds[3].sql = "select x from nothing_of_this_name".to_owned();
    let made = join_all(builds.iter().map(|build| bench.build(build))).await;
    let failed: Vec<_> = (1..=8)
        .zip(&made)
        .filter(|(_, made)| made.is_err())
        .map(|(n, _)| n)
        .collect();
    same("those that failed", failed, &[4][..])?;
    bench.reopened().await?;
    let tags: std::collections::BTreeSet<_> = bench.outputs().await?.iter().map(|it| it.tag).collect();
    same(
        "the outputs",
        tags,
        &(1..=8).filter(|n| *n != 4).map(|n| tag(n, 1)).collect(),
    )
}
