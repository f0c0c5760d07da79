//! Cases about several processes, of which only the latest owner may write.

use super::cases;
use crate::Rival;
use crate::bench::{Bench, Verdict, same, table};

cases! {
    while_an_epoch_is_held_no_other_process_builds: Fence;
}

async fn while_an_epoch_is_held_no_other_process_builds(mut bench: Bench<'_>) -> Verdict {
    bench.engine.take(2, &bench.cancel).await?;
    same(
        "a process of an earlier epoch",
        bench.rival(1, "theirs").await?,
        &Rival::Refused,
    )?;
    bench.build(&table(1, "a", "select 1 as x")).await?;
    same("the same later", bench.rival(1, "theirs").await?, &Rival::Refused)?;
    bench.lists(&["a table 1"]).await?;
    bench.scratch.close().await;
    same(
        "a process of a later epoch",
        bench.rival(3, "theirs").await?,
        &Rival::Built,
    )?;
    bench.engine = bench.scratch.open();
    same("the outputs", bench.outputs().await?.len(), &2)
}
