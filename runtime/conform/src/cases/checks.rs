//! Cases about checks on outputs.

use watershed_drivers::olap::{BuildError, Check, Gravity, OutputKind, Verdict as Judged};

use super::cases;
use crate::bench::{Bench, Verdict, Wrong, check, holds, numbered, same, table};

cases! {
    checks_look_at_the_new_rows_and_undo_the_build: Checks, Appears;
    checks_that_only_warn_leave_the_build: Checks;
    checks_of_what_stands_go_on_behind_one_that_is_broken: Checks;
}

async fn checks_look_at_the_new_rows_and_undo_the_build(mut bench: Bench<'_>) -> Verdict {
    let good = table(1, "a", "select 1 as x");
    bench.build(&good).await?;
    let numbers = bench.factory.numbers(5);
    let mut next = numbered(1, 2, "a", OutputKind::Table, &numbers);
    next.checks = vec![
        check("select x from a where x = 1 and 1 > 2"),
        check("select x from a where x > 1"),
    ];
    let Err(BuildError::Undone(verdicts)) = bench.build(&next).await else {
        return Err(Wrong::Found(
            "rows came back from a check, and the build stands".to_owned(),
        ));
    };
    same("the first", verdicts.first(), &Some(&Judged::Holds))?;
    let failing = match verdicts.get(1) {
        Some(Judged::Fails(failing)) => failing,
        other => return Err(Wrong::Found(format!("the second check says {other:?}"))),
    };
    same(
        "the rows that came back",
        (failing.rows, failing.more),
        &(3, false),
    )?;
    for _ in 0..2 {
        let tags: Vec<_> = bench.outputs().await?.iter().map(|it| it.tag).collect();
        same("the tag", tags, &[good.tag][..])?;
        bench.says("select x from a", "1").await?;
        bench.reopened().await?;
    }
    // The rows of before fail, and they are not what is asked for.
    next.checks = vec![check("select n from (select count(*) as n from a) t where n < 5")];
    let built = bench.build(&next).await?;
    same("the verdicts", built.verdicts, &[Judged::Holds][..])?;
    bench.says("select count(*) from a", "5").await
}

async fn checks_that_only_warn_leave_the_build(bench: Bench<'_>) -> Verdict {
    let mut build = table(1, "a", &bench.factory.numbers(40));
    let warns = Check {
        gravity: Gravity::Warns,
        keep: 20,
        ..check("select x from a where x >= 10")
    };
    build.checks = vec![warns, check("select x from a where x < 0")];
    let built = bench.build(&build).await?;
    match built.verdicts.as_slice() {
        [Judged::Fails(failing), Judged::Holds] => {
            same("the rows that came back", failing.rows, &30)?;
            same("the rows that are kept", failing.kept.len(), &20)?;
        }
        other => return Err(Wrong::Found(format!("the checks say {other:?}"))),
    }
    bench.says("select count(*) from a", "40").await
}

async fn checks_of_what_stands_go_on_behind_one_that_is_broken(bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    let checks = [
        check("select nope from a"),
        check("select x from a where x = 2"),
        check("select x from a"),
    ];
    let verdicts = bench.engine.check(&checks, &bench.cancel).await?;
    let [first, second, third] = verdicts.as_slice() else {
        return Err(Wrong::Found(format!(
            "three were asked, {} answered",
            verdicts.len()
        )));
    };
    holds("the first is broken", matches!(first, Judged::Broken(_)))?;
    same("the second", second, &&Judged::Holds)?;
    holds(
        "the third finds a row",
        matches!(third, Judged::Fails(failing) if failing.rows == 1),
    )
}
