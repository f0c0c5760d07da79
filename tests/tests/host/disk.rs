//! A disk that is full in the middle of a write.
//!
//! The process under test may let no file grow beyond a bound (`ulimit -f`), and ignores the signal that would tell it
//! so. The write that reaches the bound is done in part, which leaves a torn page in the journal, and those after it
//! fail: what a full disk does, without the rights that it takes to make one.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use watershed_controller::consistency::Compared;
use watershed_controller::shutdown::{ShutdownError, StopReason};
use watershed_controller::store::SqliteStore;
use watershed_controller::{EditError, Limits, Refusal, Select};

use crate::task::{SOON, Task, builder, key, start, task};

/// The variable with the catalog of the process under test; its presence marks that process.
const CATALOG: &str = "WATERSHED_FULL_DISK";
/// The limit of a file's size, in blocks of 512 bytes: room for some dozens of commits.
const BLOCKS: &str = "4000";
/// More than fit.
const ATTEMPTS: usize = 2_000;

/// Runs one test of this binary with little room on its disk.
fn with_little_room(test: &str, catalog: &Path) -> Output {
    let binary = std::env::current_exe().unwrap();
    let script = format!("trap '' XFSZ; ulimit -f {BLOCKS}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(binary)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(CATALOG, catalog)
        .output()
        .unwrap()
}

#[tokio::test]
async fn a_full_disk_stops_the_controller_and_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.db");
    let output = with_little_room("disk::a_controller_whose_disk_is_full", &path);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let acknowledged: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("acknowledged "))
        .collect();
    assert!((10..ATTEMPTS).contains(&acknowledged.len()), "{said}");

    // With room again, the next process finds all of it, and goes on.
    let controller = start(SqliteStore::open(&path).await.unwrap()).await;
    for name in &acknowledged {
        assert!(
            controller.get(key(name)).is_ok(),
            "{name} was acknowledged and is lost"
        );
    }
    // What was on its way may have arrived or not.
    let found = controller.list(Select::new().with_deleted()).resources.len();
    assert!(found <= acknowledged.len() + 1, "{found}");
    controller
        .create(task("after", &Task::Build("x".into())))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let checked = controller.check_consistency().await.unwrap();
    assert_eq!((checked.findings, checked.compared), (vec![], Compared::Whole));
    controller.shutdown(SOON).await.unwrap();
}

#[tokio::test]
#[ignore = "is run by the test above, with little room"]
async fn a_controller_whose_disk_is_full() {
    let Some(path) = std::env::var_os(CATALOG) else {
        return;
    };
    let limits = Limits::default().commit_patience(Duration::from_millis(300));
    let store = SqliteStore::open(Path::new(&path)).await.unwrap();
    let controller = builder(store).limits(limits).start().await.unwrap();
    let mut acknowledged = 0;
    let refused = loop {
        let name = format!("t{acknowledged}");
        match controller
            .create(task(&name, &Task::Build("x".repeat(2_000))))
            .await
        {
            Ok(_) => println!("acknowledged {name}"),
            Err(refused) => break refused,
        }
        acknowledged += 1;
        assert!(acknowledged < ATTEMPTS, "the disk was never full");
    };
    // The write that met the bound is this one, or that of an earlier task's result, after which no call is taken.
    let is_expected = matches!(
        refused,
        EditError::Refused(Refusal::OutcomeUnknown | Refusal::ShuttingDown)
    );
    assert!(is_expected, "{refused:?}");
    // Reads go on, of what was acknowledged.
    assert_eq!(
        controller.list(Select::new().with_deleted()).resources.len(),
        acknowledged
    );
    let stopped = controller.shutdown(SOON).await;
    assert!(
        matches!(stopped, Err(ShutdownError::StoreFull { .. })),
        "{stopped:?}"
    );
    assert!(matches!(controller.stopped(), Some(StopReason::StoreFull(_))));
}
