//! Cases about dropping outputs.

use watershed_drivers::olap::{Dropped, OutputKind};

use super::cases;
use crate::bench::{Bench, Verdict, same, table, tag, view};

cases! {
    a_dropped_output_is_gone_and_what_stands_beside_it_stays: Names;
    a_record_goes_with_its_output: Record, Tag;
}

async fn a_dropped_output_is_gone_and_what_stands_beside_it_stays(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    bench.build(&view(2, "b", "select 2 as x")).await?;
    bench.build(&table(3, "c", "select 3 as x")).await?;
    same("the first drop", bench.drop_output(1).await?, &Dropped::Done)?;
    same("the second", bench.drop_output(1).await?, &Dropped::Nothing)?;
    same("that of a view", bench.drop_output(2).await?, &Dropped::Done)?;
    for _ in 0..2 {
        bench.lists(&["c table 3"]).await?;
        same("the object", bench.object("a").await?, &None)?;
        bench.says("select x from c", "3").await?;
        bench.reopened().await?;
    }
    Ok(())
}

/// Checks that a dropped output's record does not come back on a copy: a table that a person makes with the same
/// comment.
async fn a_record_goes_with_its_output(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    bench.drop_output(1).await?;
    let comment = tag(1, 1).to_string();
    bench
        .reopened_after(|person| person.make("copy", OutputKind::Table, "select 1 as x", Some(&comment)))
        .await?;
    let outputs = bench.outputs().await?;
    let found: Vec<_> = outputs
        .iter()
        .map(|it| (it.location.name.as_str(), it.record.as_deref()))
        .collect();
    same("the outputs", found, &[("copy", None)][..])
}
