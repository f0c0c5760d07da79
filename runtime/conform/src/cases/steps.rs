//! Cases about incremental builds of an existing table.

use watershed_drivers::olap::{Build, BuildError, NewColumns, OutputKind, Over, Step};

use super::cases;
use crate::bench::{Bench, Verdict, check, holds, numbered, record, same, table, tag};

cases! {
    appended_rows_join_those_that_are_there: Step, Record;
    merged_rows_take_the_place_of_those_with_their_key: Step;
    two_new_rows_with_one_key_are_refused: Step;
    rows_of_a_group_take_the_place_of_the_whole_group: Step;
    a_step_without_rows_leaves_the_build_as_it_was: Step, Record;
    a_step_with_other_columns_is_refused: Step;
    a_step_that_fails_leaves_the_rows_of_before: Step, Checks;
    a_step_into_nothing_is_refused: Step;
}

/// Returns the second build of resource 1, which puts rows into its existing table.
fn step(sql: &str, over: Over) -> Build {
    let mut step = numbered(1, 2, "a", OutputKind::Table, sql);
    if over == Over::SameKey {
        step.key = vec!["k".to_owned()];
    }
    step.step = Step::Into {
        over,
        columns: NewColumns::Refuse,
    };
    step
}

/// Builds a table of two rows: `1 = one` and `NULL = none`.
async fn two_rows(bench: &Bench<'_>) -> Verdict {
    let rows = "select 1 as k, 'one' as v union all select null as k, 'none' as v";
    bench.build(&table(1, "a", rows)).await?;
    Ok(())
}

async fn pairs(bench: &Bench<'_>, expected: &str) -> Verdict {
    bench
        .says("select coalesce(k, 99), v from a order by 1, 2", expected)
        .await
}

async fn appended_rows_join_those_that_are_there(mut bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    let built = bench
        .build(&step("select 'two' as v, 2 as k", Over::Nothing))
        .await?;
    same("rows and tag", (built.rows, built.tag), &(Some(3), tag(1, 2)))?;
    for _ in 0..2 {
        pairs(&bench, "1|one 2|two 99|none").await?;
        let outputs = bench.outputs().await?;
        let found: Vec<_> = outputs
            .iter()
            .map(|it| (it.tag, it.record.clone(), it.rows))
            .collect();
        same(
            "the outputs",
            found,
            &[(tag(1, 2), Some(record(tag(1, 2))), Some(3))][..],
        )?;
        bench.reopened().await?;
    }
    Ok(())
}

async fn merged_rows_take_the_place_of_those_with_their_key(bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    let rows = "select 1 as k, 'uno' as v union all select null as k, 'nada' as v \
                union all select 3 as k, 'tres' as v";
    bench.build(&step(rows, Over::SameKey)).await?;
    pairs(&bench, "1|uno 3|tres 99|nada").await
}

async fn two_new_rows_with_one_key_are_refused(bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    let twice = "select 5 as k, 'x' as v union all select 5 as k, 'y' as v";
    let error = bench.build(&step(twice, Over::SameKey)).await.err();
    holds(
        "the key is named",
        matches!(error, Some(BuildError::SameKey { .. })),
    )?;
    pairs(&bench, "1|one 99|none").await
}

async fn rows_of_a_group_take_the_place_of_the_whole_group(bench: Bench<'_>) -> Verdict {
    let numbers = bench.factory.numbers(6);
    let all = format!("select x as k, 'old' as v from ({numbers}) t");
    bench.build(&table(1, "a", &all)).await?;
    bench
        .build(&step(
            "select 10 as k, 'new' as v",
            Over::SameValue("k % 3".to_owned()),
        ))
        .await?;
    pairs(&bench, "0|old 2|old 3|old 5|old 10|new").await
}

async fn a_step_without_rows_leaves_the_build_as_it_was(bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    for over in [Over::Nothing, Over::SameKey] {
        let mut nothing = step("select 1 as k, '' as v where 1 > 2", over);
        nothing.unless_rows = Some((tag(1, 1).build, b"looked again".to_vec()));
        let built = bench.build(&nothing).await?;
        same(
            "what is told",
            (built.tag, &built.record[..]),
            &(tag(1, 1), &b"looked again"[..]),
        )?;
        let outputs = bench.outputs().await?;
        let found: Vec<_> = outputs.iter().map(|it| (it.tag, it.record.as_deref())).collect();
        same(
            "the outputs",
            found,
            &[(tag(1, 1), Some(&b"looked again"[..]))][..],
        )?;
    }
    pairs(&bench, "1|one 99|none").await
}

async fn a_step_with_other_columns_is_refused(bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    let error = bench
        .build(&step("select 2 as k, 'x' as w", Over::Nothing))
        .await
        .err();
    let is_told = matches!(&error, Some(BuildError::Columns(differ)) if differ.added == ["w"]);
    holds("the column is named", is_told)?;
    pairs(&bench, "1|one 99|none").await
}

async fn a_step_that_fails_leaves_the_rows_of_before(mut bench: Bench<'_>) -> Verdict {
    two_rows(&bench).await?;
    let mut undone = step("select 2 as k, 'two' as v", Over::Nothing);
    undone.checks = vec![check("select k from a where k = 2")];
    let error = bench.build(&undone).await.err();
    holds(
        "the check sees the new row",
        matches!(error, Some(BuildError::Undone(_))),
    )?;
    for _ in 0..2 {
        pairs(&bench, "1|one 99|none").await?;
        let tags: Vec<_> = bench.outputs().await?.iter().map(|it| it.tag).collect();
        same("the tag", tags, &[tag(1, 1)][..])?;
        bench.reopened().await?;
    }
    Ok(())
}

async fn a_step_into_nothing_is_refused(bench: Bench<'_>) -> Verdict {
    let error = bench.build(&step("select 1 as k", Over::Nothing)).await.err();
    same("the error", error, &Some(BuildError::Absent))?;
    bench.lists(&[]).await
}
