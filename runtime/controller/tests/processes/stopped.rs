//! Tests of a holder that stops for longer than its lease, and of the handover of an instance.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use watershed_controller::{EditError, Refusal, RequestError};

use crate::server::Server;
use crate::task::{Ending, SOON, Task, builder, key, task};

/// Lease term: short, because tests wait for its end, but long enough for a loaded machine to renew the lease.
const TERM: Duration = Duration::from_millis(2_000);
/// Number of writes of a process that loses its lease and takes it back; a holder that can't keep its lease fails the
/// test.
const TAKEN_BACK: usize = 500;
/// Environment variable that holds the catalog's URL for the stopped process.
const CATALOG: &str = "WATERSHED_STOPPED_CATALOG";

/// Runs a process that the test starts and stops; not a test of its own. It holds the catalog and writes. When it has
/// lost the catalog, it reports that, campaigns, and reports what its handle sees.
#[test]
#[ignore = "a process that a test starts and stops"]
fn process() {
    let Ok(catalog) = std::env::var(CATALOG) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async move {
        let controller = builder(crate::store(&catalog, TERM).await).join().await.unwrap();
        let hangs = Task::Hang(Ending::Write("cancelled".into()));
        controller.create(task("hangs", &hangs)).await.unwrap();
        let mut held = false;
        let (mut was_lost, mut written_since) = (false, 0);
        for number in 0_u64.. {
            let written = controller.create(task(&format!("{number}"), &Task::Rest)).await;
            let holds = controller.holds_instance();
            let said = match written {
                Ok(_) if holds => "wrote",
                Ok(_) => "asked",
                Err(EditError::Refused(Refusal::LeaseLost | Refusal::OutcomeUnknown)) => "lost",
                Err(error) => panic!("{error}"),
            };
            held |= holds;
            was_lost |= said == "lost";
            written_since += usize::from(was_lost && said == "wrote");
            assert!(
                written_since < TAKEN_BACK,
                "the next holder did not keep its lease"
            );
            println!("\n{said} {number} {held}");
            if said == "asked" && held {
                // It follows the other one now. The invocation that it ran is none of its business any more.
                let cancelled = controller.cancel(key("missing")).await;
                assert!(matches!(
                    cancelled,
                    Err(RequestError::Refused(Refusal::Unknown(_)))
                ));
                println!("\nfollows");
                return;
            }
        }
    });
}

struct Running {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["stopped::process", "--exact", "--ignored", "--nocapture"]);
        command
            .env(CATALOG, url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = process.stdout.take().unwrap();
        Self {
            process,
            lines: BufReader::new(output).lines(),
        }
    }

    fn wait_for(&mut self, what: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines
            .find(|line| line.starts_with(what))
            .expect("the process says it")
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.process.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_stands_still_for_longer_than_its_lease_writes_nothing_and_follows_the_next() {
    let Some(server) = Server::start() else { return };
    let mut first = Running::start(&server.url());
    first.wait_for("wrote 5 ");
    let second = builder(crate::store(&server.url(), TERM).await)
        .join()
        .await
        .unwrap();
    second
        .wait_until(key("hangs"), |found| found.is_some(), SOON)
        .await
        .unwrap();
    first.signal("-STOP");
    let stopped = Instant::now();
    second.create(task("second", &Task::Rest)).await.unwrap();
    let took_over = stopped.elapsed();
    assert!(second.holds_instance());
    println!("taken over {took_over:?} after the stop, with a lease of {TERM:?}");
    assert!(
        took_over < TERM * 2,
        "{took_over:?}: one lease time, and what a loaded machine takes"
    );
    let epoch_before = second.get(key("second")).unwrap().row.revision;
    first.signal("-CONT");
    // Whatever it was about to write is refused, by itself or by the store; then it asks the new holder.
    first.wait_for("follows");
    assert!(first.process.wait().unwrap().success());
    assert!(second.holds_instance());
    assert!(second.list(watershed_controller::Select::all()).revision > epoch_before);
    second.shutdown(SOON).await.unwrap();
}

/// Measures the time without an answer when a holder is shut down while another process stands by.
#[tokio::test(flavor = "multi_thread")]
async fn a_planned_shutdown_hands_over_without_waiting_for_the_lease() {
    let Some(server) = Server::start() else { return };
    let term = Duration::from_secs(60);
    let store = async || crate::store(&server.url(), term).await;
    let mut gaps = Vec::new();
    let mut holder = builder(store().await).start().await.unwrap();
    for round in 0..7 {
        let next = builder(store().await).join().await.unwrap();
        // It follows when it has seen a commit, and asks when it has been answered.
        next.create(task(&format!("before {round}"), &Task::Rest))
            .await
            .unwrap();
        let begun = Instant::now();
        let after = task(&format!("after {round}"), &Task::Rest);
        let (ended, created) = tokio::join!(holder.shutdown(SOON), async {
            // What the old holder still takes is no hand-over.
            while !next.holds_instance() {
                next.create(task(&format!("{round} {:?}", begun.elapsed()), &Task::Rest))
                    .await?;
            }
            next.create(after).await
        });
        gaps.push(begun.elapsed());
        ended.unwrap();
        created.unwrap();
        holder = next;
    }
    gaps.sort();
    println!("handed over in {:?}, of {gaps:?}", gaps[gaps.len() / 2]);
    assert!(
        gaps[0] < Duration::from_secs(1),
        "{gaps:?}, with a lease of {term:?}"
    );
    holder.shutdown(SOON).await.unwrap();
}
