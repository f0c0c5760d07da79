//! Cases about objects in the engine that Watershed did not make.

use watershed_drivers::olap::{BuildError, Dropped, Object, OutputKind, RenameError};

use super::cases;
use crate::bench::{Bench, Verdict, numbered, same, table};

cases! {
    what_is_not_ours_survives_and_is_named: Tag, Names;
    a_persons_comment_is_no_tag: Tag;
}

async fn what_is_not_ours_survives_and_is_named(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    let made = [("Theirs", OutputKind::Table), ("seen", OutputKind::View)];
    bench
        .reopened_after(|person| {
            made.iter()
                .try_for_each(|(name, kind)| person.make(name, *kind, "select 42 as x", None))
        })
        .await?;
    for (standing, kind) in made {
        let foreign = Some(Object::Foreign { kind });
        for asked in [OutputKind::Table, OutputKind::View] {
            let error = bench
                .build(&numbered(2, 1, &standing.to_uppercase(), asked, "select 1 as x"))
                .await
                .err();
            let name = standing.to_owned();
            same(
                "the error of a build",
                error,
                &Some(BuildError::NameTaken { name, kind }),
            )?;
        }
        let error = bench.rename(1, standing).await.err();
        let name = standing.to_owned();
        same(
            "the error of a rename",
            error,
            &Some(RenameError::NameTaken { name, kind }),
        )?;
        same("the object", bench.object(standing).await?, &foreign)?;
    }
    same(
        "a drop of what was not made",
        bench.drop_output(2).await?,
        &Dropped::Nothing,
    )?;
    bench.drop_output(1).await?;
    bench
        .says("select theirs.x, seen.x from theirs, seen", "42|42")
        .await?;
    bench.reopened().await?;
    bench.lists(&[]).await?;
    bench
        .says("select theirs.x, seen.x from theirs, seen", "42|42")
        .await
}

async fn a_persons_comment_is_no_tag(mut bench: Bench<'_>) -> Verdict {
    let comments = ["mine", "watershed", "watershed:", "watershed:1:2", ""];
    bench
        .reopened_after(|person| {
            comments.iter().enumerate().try_for_each(|(number, comment)| {
                person.make(
                    &format!("t{number}"),
                    OutputKind::Table,
                    "select 1 as x",
                    Some(comment),
                )
            })
        })
        .await?;
    bench.lists(&[]).await?;
    for number in 0..comments.len() {
        let foreign = Some(Object::Foreign {
            kind: OutputKind::Table,
        });
        same("the object", bench.object(&format!("t{number}")).await?, &foreign)?;
    }
    Ok(())
}
