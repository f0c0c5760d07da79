//! Cases about tags and records beside outputs.

use std::sync::atomic::{AtomicBool, Ordering};

use watershed_drivers::olap::{Object, OutputKind, Tag};

use super::cases;
use crate::bench::{Bench, Verdict, Wrong, holds, numbered, record, same, table, tag, uid};

/// Number of rebuilds during which outputs are listed.
const ROUNDS: u64 = 12;
/// A bound above the number of awaits of any call.
const AWAITS: u64 = 32;

cases! {
    whoever_lists_outputs_beside_builds_sees_no_record_of_another: Record, Appears;
    a_build_that_is_dropped_at_any_await_is_whole_or_absent: Record, Appears, Cancel;
    a_retag_keeps_rows_and_replaces_tag_and_record: Tag, Record;
    a_retag_of_another_build_does_nothing: Tag;
}

/// Fails the case unless each output's record belongs to the build in its tag.
async fn records_agree(bench: &Bench<'_>) -> Verdict {
    for output in bench.outputs().await? {
        same(
            "the record beside an output",
            output.record,
            &Some(record(output.tag)),
        )?;
    }
    Ok(())
}

async fn whoever_lists_outputs_beside_builds_sees_no_record_of_another(bench: Bench<'_>) -> Verdict {
    let end = AtomicBool::new(false);
    let rebuild = async {
        for number in 1..=ROUNDS {
            let kind = if number % 3 == 0 {
                OutputKind::View
            } else {
                OutputKind::Table
            };
            let done = bench
                .build(&numbered(1, number, "a", kind, &format!("select {number} as x")))
                .await;
            if let Err(error) = done {
                end.store(true, Ordering::Relaxed);
                return Err(Wrong::from(error));
            }
        }
        end.store(true, Ordering::Relaxed);
        Ok(())
    };
    let look = async {
        while !end.load(Ordering::Relaxed) {
            records_agree(&bench).await?;
            tokio::task::yield_now().await;
        }
        records_agree(&bench).await
    };
    let (rebuilt, looked) = futures::join!(rebuild, look);
    rebuilt.and(looked)
}

async fn a_build_that_is_dropped_at_any_await_is_whole_or_absent(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    for awaits in 1..AWAITS {
        let next = numbered(
            1,
            awaits + 1,
            "a",
            OutputKind::Table,
            &format!("select {} as x", awaits + 1),
        );
        let is_done = {
            let mut building = std::pin::pin!(bench.build(&next));
            polled(building.as_mut(), awaits).await.transpose()?.is_some()
        };
        records_agree(&bench).await?;
        // What was dropped may still end, one way or the other: what is compared is of one build.
        let stands = loop {
            let tag = only_tag(&bench).await?;
            let number = tag.build.as_u128() as u64;
            let said = bench.says("select x from a", &number.to_string()).await;
            if only_tag(&bench).await? == tag {
                said?;
                break tag;
            }
        };
        holds("what was reported stands", !is_done || stands == next.tag)?;
        if is_done {
            bench.reopened().await?;
            return records_agree(&bench).await;
        }
    }
    Ok(())
}

/// Returns the tag of the only output; fails if there are more or none.
async fn only_tag(bench: &Bench<'_>) -> Result<Tag, Wrong> {
    match bench.outputs().await?.as_slice() {
        [output] => Ok(output.tag),
        outputs => Err(Wrong::Found(format!(
            "{} outputs stand, where one was built",
            outputs.len()
        ))),
    }
}

/// Polls a future until it has been pending `awaits` times, and returns its output; none if unfinished.
async fn polled<F: Future + Unpin>(mut future: F, awaits: u64) -> Option<F::Output> {
    let mut waited = 0;
    std::future::poll_fn(|context| match std::pin::Pin::new(&mut future).poll(context) {
        std::task::Poll::Ready(done) => std::task::Poll::Ready(Some(done)),
        std::task::Poll::Pending => {
            waited += 1;
            match waited < awaits {
                true => std::task::Poll::Pending,
                false => std::task::Poll::Ready(None),
            }
        }
    })
    .await
}

async fn a_retag_keeps_rows_and_replaces_tag_and_record(mut bench: Bench<'_>) -> Verdict {
    let build = table(1, "a", "select 7 as x");
    bench.build(&build).await?;
    let to = tag(9, 99);
    let was_there = bench
        .engine
        .retag(build.tag, to, b"adopted", &bench.cancel)
        .await?;
    holds("the output was there", was_there)?;
    for _ in 0..2 {
        let outputs = bench.outputs().await?;
        let found: Vec<_> = outputs
            .iter()
            .map(|it| (it.location.name.as_str(), it.tag, it.record.as_deref()))
            .collect();
        same("the outputs", found, &[("a", to, Some(&b"adopted"[..]))][..])?;
        let kind = OutputKind::Table;
        same(
            "the object",
            bench.object("a").await?,
            &Some(Object::Ours { tag: to, kind }),
        )?;
        bench.says("select x from a", "7").await?;
        bench.reopened().await?;
    }
    Ok(())
}

async fn a_retag_of_another_build_does_nothing(bench: Bench<'_>) -> Verdict {
    let build = table(1, "a", "select 1 as x");
    bench.build(&build).await?;
    for from in [tag(1, 2), tag(2, 1)] {
        let was_there = bench
            .engine
            .retag(from, tag(9, 9), b"adopted", &bench.cancel)
            .await?;
        holds("there is no such output", !was_there)?;
    }
    let outputs = bench.outputs().await?;
    let found: Vec<_> = outputs.iter().map(|it| (it.tag, it.record.as_deref())).collect();
    same("the output", found, &[(build.tag, Some(&build.record[..]))][..])?;
    same("the owner", build.tag.uid, &uid(1))
}
