//! Tests that run the examples of the documentation.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::server::Server;

#[path = "../../examples/failover.rs"]
#[allow(dead_code, reason = "its main reads arguments")]
mod failover;
#[path = "../../examples/retries.rs"]
mod retries;
#[path = "../../examples/watching.rs"]
mod watching;

/// Environment variable that holds the server's URL for the example's process.
const URL: &str = "WATERSHED_FAILOVER_URL";

#[test]
fn the_example_of_retries_ends_well() {
    retries::main().unwrap();
}

#[test]
fn the_example_of_watching_ends_well() {
    watching::main().unwrap();
}

/// Runs one process of the example; not a test of its own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a process that a test starts"]
async fn process() {
    if let Ok(url) = std::env::var(URL) {
        failover::take_part(&url).await.unwrap();
    }
}

struct Part {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    fn start(url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["examples::process", "--exact", "--ignored", "--nocapture"]);
        command.env(URL, url).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self {
            process,
            input,
            lines: BufReader::new(output).lines(),
        }
    }

    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        lines
            .find(|line| line.ends_with("pages"))
            .expect("it says its part")
    }

    fn again(&mut self) -> String {
        self.input.write_all(b"\n").unwrap();
        self.says()
    }
}

#[test]
fn the_example_of_failover_goes_on_when_the_first_process_is_killed() {
    let Some(server) = Server::start() else { return };
    let mut first = Part::start(&server.url());
    assert_eq!(first.says(), "holds: 1 pages");
    let mut second = Part::start(&server.url());
    assert_eq!(second.says(), "asks: 2 pages");
    first.process.kill().unwrap();
    first.process.wait().unwrap();
    assert_eq!(second.again(), "holds: 3 pages");
    drop(second.input);
    assert!(second.process.wait().unwrap().success());
}
