//! The floor: a process of its own that opens a new file, runs statements and closes it. It loads the extension and takes
//! its memory from the system as the program does; an engine inside the benchmark would have had both from the time before.

use std::process::Command;
use std::time::Duration;

use watershed_drivers::duckdb::ByHand;
use watershed_tests::measure::time;
use watershed_tests::server;

/// The argument by which a process is told that it is the one.
const ARGUMENT: &str = "alone";

/// Returns true in a process that [`takes`] started.
pub(crate) fn is_asked() -> bool {
    std::env::args().nth(1).as_deref() == Some(ARGUMENT)
}

/// Runs the statements that the process was given.
pub(crate) fn run() {
    let folder = tempfile::tempdir().unwrap();
    let engine = ByHand::open(&folder.path().join("plain.duckdb"));
    find_extensions(&engine);
    std::env::args().skip(2).for_each(|sql| drop(engine.run(&sql)));
    engine.run("CHECKPOINT");
}

/// Has an engine find the extensions.
pub(crate) fn find_extensions(engine: &ByHand) {
    let folder = server::extensions();
    engine.run(&format!("SET extension_directories = ['{}']", folder.display()));
}

/// Returns the time of a process that runs these statements.
pub(crate) fn takes(statements: &[String]) -> Duration {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(ARGUMENT).args(statements);
    let (took, ended) = time(|| command.status().unwrap());
    assert!(ended.success(), "{statements:?}");
    took
}
