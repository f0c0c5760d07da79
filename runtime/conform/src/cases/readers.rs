//! Cases about reads during rebuilds, which see no error and no partial rows.

use std::sync::atomic::{AtomicBool, Ordering};

use watershed_drivers::olap::{Build, NewColumns, OutputKind, Over, Step};

use super::cases;
use crate::bench::{Bench, Verdict, Wrong, holds, numbered, view};

/// Number of rebuilds of each table.
const ROUNDS: u64 = 12;
/// Rows of each rebuild: more than an engine returns in one batch.
const ROWS: u64 = 5_000;

cases! {
    readers_see_all_rows_of_one_build_and_no_error: Readers, Appears, Step;
}

/// Returns a build whose rows all carry the number of its round.
fn round(bench: &Bench<'_>, n: u128, name: &str, number: u64) -> Build {
    let sql = format!(
        "select x, {number} as round from ({}) t",
        bench.factory.numbers(ROWS)
    );
    numbered(n, number, name, OutputKind::Table, &sql)
}

async fn rebuild(bench: &Bench<'_>) -> Verdict {
    for number in 2..=ROUNDS {
        bench.build(&round(bench, 1, "replaced", number)).await?;
        let mut appended = round(bench, 2, "appended", number);
        appended.step = Step::Into {
            over: Over::Nothing,
            columns: NewColumns::Refuse,
        };
        bench.build(&appended).await?;
        bench
            .build(&numbered(
                3,
                number,
                "seen",
                OutputKind::View,
                "select * from replaced",
            ))
            .await?;
    }
    Ok(())
}

/// Queries a table until `end` is set, checks each answer with `is_whole`, and returns the number of reads.
async fn read(
    bench: &Bench<'_>,
    table: &str,
    is_whole: fn(u64, u64) -> bool,
    end: &AtomicBool,
) -> Result<u64, Wrong> {
    let sql = format!("select count(*), count(distinct round) from {table}");
    let mut reads = 0;
    while !end.load(Ordering::Relaxed) {
        let answer = bench.rows(&sql).await?.join(" ");
        let numbers: Vec<u64> = answer
            .split('|')
            .filter_map(|number| number.parse().ok())
            .collect();
        let whole = matches!(numbers[..], [rows, rounds] if is_whole(rows, rounds));
        holds(&format!("`{table}` is seen whole, not {answer}"), whole)?;
        reads += 1;
        tokio::task::yield_now().await;
    }
    Ok(reads)
}

async fn readers_see_all_rows_of_one_build_and_no_error(bench: Bench<'_>) -> Verdict {
    bench.build(&round(&bench, 1, "replaced", 1)).await?;
    bench.build(&round(&bench, 2, "appended", 1)).await?;
    bench.build(&view(3, "seen", "select * from replaced")).await?;
    let end = AtomicBool::new(false);
    let rebuilding = async {
        let done = rebuild(&bench).await;
        end.store(true, Ordering::Relaxed);
        done
    };
    let one: fn(u64, u64) -> bool = |rows, rounds| rows == ROWS && rounds == 1;
    let all: fn(u64, u64) -> bool = |rows, rounds| rows == ROWS * rounds;
    let (rebuilt, first, second, third) = futures::join!(
        rebuilding,
        read(&bench, "replaced", one, &end),
        read(&bench, "appended", all, &end),
        read(&bench, "seen", one, &end),
    );
    rebuilt?;
    holds(
        "somebody reads beside the rebuilds",
        first? + second? + third? >= ROUNDS,
    )
}
