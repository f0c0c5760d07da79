//! Cases about unusual names and their comparison.

use watershed_drivers::olap::{Object, OutputKind};

use super::cases;
use crate::bench::{Bench, Verdict, numbered, same, table, tag};

cases! {
    names_that_nobody_would_choose_are_names: Names;
    objects_are_found_without_regard_to_case: Names;
}

/// Names that could break quoting, paths or the engine's own syntax.
const ATTACKS: [&str; 14] = [
    "select",
    "a b",
    "q\"q",
    "q'q",
    "q`q",
    "back\\slash",
    "ends in \\",
    "über",
    "表",
    "\"; drop table x; --",
    "a.b",
    "${x} {{ x }} %s",
    "/* x",
    "\u{202e}thgir",
];

async fn names_that_nobody_would_choose_are_names(mut bench: Bench<'_>) -> Verdict {
    let long = "n".repeat(200);
    let names = || ATTACKS.into_iter().chain([long.as_str()]);
    bench.build(&table(1000, "x", "select 1000 as x")).await?;
    for (n, name) in (1..).zip(names()) {
        bench.build(&table(n, name, "select 1 as x")).await?;
        let other = format!("{name}!");
        bench.rename(n, &other).await?;
        let view = numbered(n, 2, &other, OutputKind::View, &format!("select {n} as x"));
        bench.build(&view).await?;
        let ours = Some(Object::Ours {
            tag: view.tag,
            kind: view.kind,
        });
        same(name, bench.object(&other).await?, &ours)?;
        same(name, bench.object(name).await?, &None)?;
    }
    bench.reopened().await?;
    for (n, name) in (1..).zip(names()) {
        let quoted = bench.name(&format!("{name}!"));
        bench
            .says(&format!("select x from {quoted}"), &n.to_string())
            .await?;
        bench.drop_output(n).await?;
    }
    bench.lists(&["x table 1000"]).await
}

async fn objects_are_found_without_regard_to_case(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "Orders", "select 1 as x")).await?;
    for _ in 0..2 {
        for name in ["orders", "ORDERS", "Orders"] {
            let ours = Object::Ours {
                tag: tag(1, 1),
                kind: OutputKind::Table,
            };
            same(name, bench.object(name).await?, &Some(ours))?;
        }
        bench.reopened().await?;
    }
    bench
        .build(&numbered(1, 2, "oRDERS", OutputKind::Table, "select 2 as x"))
        .await?;
    bench.lists(&["oRDERS table 1"]).await?;
    bench.build(&table(2, "ORDERS", "select 3 as x")).await?;
    same("outputs of one name", bench.outputs().await?.len(), &2)?;
    bench.says("select x from orders", "3").await
}
