//! Cases about renaming outputs.

use std::collections::BTreeMap;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use watershed_drivers::olap::{OutputKind, Rename, RenameError};

use super::cases;
use crate::bench::{Bench, Verdict, Wrong, numbered, same, table, uid, view};

cases! {
    a_rename_keeps_rows_and_tag_and_may_replace_the_record: Names, Tag, Record;
    names_are_swapped_and_nothing_else_stays: Names;
    names_are_passed_on_in_a_ring: Names;
    only_the_case_of_a_name_can_change: Names;
    what_is_not_there_is_not_renamed: Names;
    random_histories_of_names_end_as_a_plain_map_says: Names;
}

async fn a_rename_keeps_rows_and_tag_and_may_replace_the_record(mut bench: Bench<'_>) -> Verdict {
    let build = table(1, "a", "select 5 as x");
    bench.build(&build).await?;
    let mut record = build.record.clone();
    for (to, new) in [("b", None), ("c", Some(b"renamed".to_vec()))] {
        let rename = Rename {
            uid: uid(1),
            to: to.to_owned(),
            record: new.clone(),
        };
        bench.engine.rename(&rename, &bench.cancel).await?;
        record = new.unwrap_or(record);
        for _ in 0..2 {
            let outputs = bench.outputs().await?;
            let found: Vec<_> = outputs
                .iter()
                .map(|it| (it.location.name.as_str(), it.tag, it.record.as_ref()))
                .collect();
            same("the outputs", found, &[(to, build.tag, Some(&record))][..])?;
            bench.says(&format!("select x from {to}"), "5").await?;
            bench.reopened().await?;
        }
    }
    Ok(())
}

async fn names_are_swapped_and_nothing_else_stays(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    bench.build(&view(2, "b", "select 2 as x")).await?;
    bench.rename(1, "b").await?;
    bench.rename(2, "a").await?;
    for _ in 0..2 {
        bench.lists(&["a view 2", "b table 1"]).await?;
        bench.says("select a.x, b.x from a, b", "2|1").await?;
        let objects = bench.reopened_after(|person| person.objects()).await?;
        same("what stands there", objects, &["a", "b"][..])?;
    }
    Ok(())
}

async fn names_are_passed_on_in_a_ring(mut bench: Bench<'_>) -> Verdict {
    let names = ["a", "b", "c", "d"];
    for (n, name) in (1..).zip(names) {
        bench.build(&table(n, name, &format!("select {n} as x"))).await?;
    }
    for (n, name) in (1..).zip(["b", "c", "d", "a"]) {
        bench.rename(n, name).await?;
    }
    for _ in 0..2 {
        bench
            .lists(&["a table 4", "b table 1", "c table 2", "d table 3"])
            .await?;
        bench
            .says("select a.x, b.x, c.x, d.x from a, b, c, d", "4|1|2|3")
            .await?;
        let objects = bench.reopened_after(|person| person.objects()).await?;
        same("what stands there", objects, &names[..])?;
    }
    Ok(())
}

async fn only_the_case_of_a_name_can_change(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "orders", "select 1 as x")).await?;
    bench.build(&view(2, "items", "select 2 as x")).await?;
    bench.rename(1, "Orders").await?;
    bench.rename(2, "ITEMS").await?;
    bench.rename(2, "ITEMS").await?;
    for _ in 0..2 {
        bench.lists(&["ITEMS view 2", "Orders table 1"]).await?;
        bench.reopened().await?;
    }
    Ok(())
}

async fn what_is_not_there_is_not_renamed(bench: Bench<'_>) -> Verdict {
    same("the error", bench.rename(1, "b").await, &Err(RenameError::Absent))?;
    bench.build(&table(1, "a", "select 1 as x")).await?;
    bench.drop_output(1).await?;
    same("the error", bench.rename(1, "b").await, &Err(RenameError::Absent))?;
    bench.lists(&[]).await
}

/// Number of random histories of renames.
const HISTORIES: u64 = 6;
const STEPS: usize = 16;
const NAMES: [&str; 5] = ["a", "B", "c", "D d", "é"];

async fn random_histories_of_names_end_as_a_plain_map_says(mut bench: Bench<'_>) -> Verdict {
    for seed in 0..HISTORIES {
        let mut rng = SmallRng::seed_from_u64(seed);
        // The name of each owner, unless another's has pushed it aside.
        let mut expected = BTreeMap::<u128, Option<usize>>::new();
        for number in 0..STEPS {
            let (n, to) = (rng.random_range(1..5_u128), rng.random_range(0..NAMES.len()));
            let name = NAMES.get(to).copied().unwrap_or_default();
            let took = match rng.random_range(0..4) {
                0 => {
                    bench.drop_output(n).await?;
                    expected.remove(&n);
                    false
                }
                1 => {
                    let kind = if rng.random_bool(0.5) {
                        OutputKind::View
                    } else {
                        OutputKind::Table
                    };
                    let number = u64::try_from(number).unwrap_or_default() + 1;
                    bench
                        .build(&numbered(n, number, name, kind, &format!("select {n} as x")))
                        .await?;
                    true
                }
                _ => match bench.rename(n, name).await {
                    Ok(_) => true,
                    Err(RenameError::Absent) if !expected.contains_key(&n) => false,
                    Err(error) => return Err(Wrong::Found(format!("seed {seed}: {error}"))),
                },
            };
            if took {
                expected
                    .values_mut()
                    .filter(|at| **at == Some(to))
                    .for_each(|at| *at = None);
                expected.insert(n, Some(to));
            }
        }
        bench.reopened().await?;
        let outputs = bench.outputs().await?;
        let place = |name: &str| NAMES.iter().position(|one| *one == name);
        let found: BTreeMap<_, _> = outputs
            .iter()
            .map(|it| (it.tag.uid.as_u128(), place(&it.location.name)))
            .collect();
        same(&format!("seed {seed}"), found, &expected)?;
        for output in outputs {
            let n = output.tag.uid.as_u128();
            bench
                .says(
                    &format!("select x from {}", bench.name(&output.location.name)),
                    &n.to_string(),
                )
                .await?;
            bench.drop_output(n).await?;
        }
    }
    Ok(())
}
