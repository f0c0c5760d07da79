//! Cases about a kill at any point of a call, and the data that it leaves.

use watershed_drivers::olap::{Guard, OutputKind, Rename};

use super::cases;
use crate::NotTried;
use crate::bench::{Bench, Verdict, Wrong, check, holds, numbered, tag, uid};

cases! {
    whatever_the_moment_of_death_each_call_is_whole_or_absent: Crash, Durable, Appears, Record, Names;
}

/// One call in the history of calls that a kill interrupts.
#[derive(Debug)]
enum Call {
    /// A build: resource, number, name and kind.
    Build(u128, u64, &'static str, OutputKind),
    /// A build that a failing check undoes: resource, number and name.
    Undone(u128, u64, &'static str),
    Rename(u128, &'static str),
    /// A transfer of an output to another resource: old owner, number and new owner.
    Retag(u128, u64, u128),
    Drop(u128),
}

const HISTORY: &[Call] = &[
    Call::Build(1, 1, "a", OutputKind::Table),
    Call::Build(2, 1, "b", OutputKind::View),
    Call::Build(1, 2, "a", OutputKind::Table),
    Call::Undone(1, 3, "a"),
    Call::Rename(1, "b"),
    Call::Rename(2, "a"),
    Call::Build(2, 2, "a", OutputKind::Table),
    Call::Build(3, 1, "b", OutputKind::View),
    Call::Retag(3, 1, 4),
    Call::Drop(1),
    Call::Drop(4),
];

async fn perform(bench: &Bench<'_>, call: &Call) -> Verdict {
    match call {
        Call::Build(n, number, name, kind) => {
            bench
                .build(&numbered(
                    *n,
                    *number,
                    name,
                    *kind,
                    &format!("select {number} as x"),
                ))
                .await?;
        }
        Call::Undone(n, number, name) => {
            let mut build = numbered(*n, *number, name, OutputKind::Table, "select 0 as x");
            build.checks = vec![check(&format!("select x from {name}"))];
            holds("the check undoes the build", bench.build(&build).await.is_err())?;
        }
        Call::Rename(n, to) => {
            let rename = Rename {
                uid: uid(*n),
                to: (*to).to_owned(),
                record: Some(b"renamed".to_vec()),
            };
            bench.engine.rename(&rename, &bench.cancel).await?;
        }
        Call::Retag(n, number, to) => {
            let was_there = bench
                .engine
                .retag(tag(*n, *number), tag(*to, 1), b"adopted", &bench.cancel)
                .await?;
            holds("the output was there", was_there)?;
        }
        Call::Drop(n) => {
            bench
                .engine
                .drop_output(uid(*n), Guard::Free, &bench.cancel)
                .await?;
        }
    }
    Ok(())
}

/// Returns all outputs with their tags, records and rows, one line each.
async fn content(bench: &Bench<'_>) -> Result<Vec<String>, Wrong> {
    let mut lines = Vec::new();
    for output in bench.outputs().await? {
        let rows = bench
            .rows(&format!("select x from {}", bench.name(&output.location.name)))
            .await?;
        lines.push(format!("{output:?} {rows:?}"));
    }
    Ok(lines)
}

async fn whatever_the_moment_of_death_each_call_is_whole_or_absent(bench: Bench<'_>) -> Verdict {
    let mut before = content(&bench).await?;
    let mut looked_at = 0;
    for call in HISTORY {
        let Some(images) = bench.scratch.images() else {
            return Err(Wrong::NotTried(NotTried(
                "only a program that was built for tests has points at which it dies",
            )));
        };
        let performed = perform(&bench, call).await;
        let images = images.take();
        performed?;
        let after = content(&bench).await?;
        for image in images {
            let found = content(&Bench::on(bench.factory, image.scratch)).await?;
            let expected = if image.is_after { &after } else { &before };
            holds(
                &format!(
                    "dead at {} of {call:?}: {found:?}, where {expected:?} is to be",
                    image.point
                ),
                found == *expected,
            )?;
            looked_at += 1;
        }
        before = after;
    }
    holds(
        "each call has a point at which a process could die",
        looked_at >= HISTORY.len(),
    )?;
    Ok(())
}
