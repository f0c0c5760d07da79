//! Connections to a lake's catalog that break while something is committed.

use tokio_util::sync::CancellationToken;
use watershed_drivers::duckdb::{ByHand, Engine};
use watershed_drivers::olap::{Build, BuildError, Failure, Olap};

use super::builds::table;
use super::lake::{Catalog, LakeFolder};
use super::server::extensions;

/// Ends all connections to the server but one's own.
const BREAK: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = ''postgres''";

/// Returns the ids of the builds that stand in the lake.
async fn standing(engine: &Engine) -> Vec<u128> {
    let outputs = (engine as &dyn Olap).outputs(&CancellationToken::new()).await;
    let outputs = outputs.unwrap().into_iter();
    outputs.map(|output| output.tag.build.as_u128()).collect()
}

fn numbered(number: u128) -> Build {
    let mut build = table(1, "a", &format!("select {number} as x"));
    build.tag.build = uuid::Uuid::from_u128(number);
    build
}

/// Breaks all connections right before a build is committed, and looks for what became of it.
pub(crate) async fn break_at_the_commit(catalog: &Catalog) {
    let lake = LakeFolder::new(catalog);
    let (engine, cancel) = (lake.address.engine(), CancellationToken::new());
    let olap: &dyn Olap = &engine;
    olap.build(&numbered(1), &cancel).await.unwrap();
    let target = lake.address.target().to_owned();
    let break_all = move || {
        let hand = ByHand::in_memory();
        hand.run(&format!(
            "SET extension_directories = ['{}']",
            extensions().display()
        ));
        hand.run(&format!("ATTACH '{target}' AS pg (TYPE postgres)"));
        hand.run(&format!("SELECT * FROM postgres_query('pg', '{BREAK}')"));
    };
    fail::cfg_callback("drivers::build::before_commit", break_all).unwrap();
    let ended = olap.build(&numbered(2), &cancel).await;
    fail::remove("drivers::build::before_commit");
    let known = match ended {
        Ok(_) => panic!("the commit has no connection"),
        Err(BuildError::Failed(Failure::Unknown { .. })) => None,
        Err(BuildError::Failed(Failure::Database(_) | Failure::Sql(_))) => Some(vec![1]),
        Err(other) => panic!("{other:?}"),
    };
    let stands = standing(&engine).await;
    assert!([1, 2].contains(&stands[0]) && stands.len() == 1, "{stands:?}");
    assert!(known.is_none_or(|known| known == stands), "{stands:?}");
    olap.build(&numbered(3), &cancel).await.unwrap();
    assert_eq!(standing(&engine).await, [3], "nobody else has taken the lake");
    engine.close().await.unwrap();
}
