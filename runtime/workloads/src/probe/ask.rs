//! Execution of probes, over the network and by commands.

use std::net::Ipv4Addr;
use std::pin::pin;
use std::time::SystemTime;

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use watershed_core::Timestamp;
use watershed_outside::Program;

use super::{Asks, ProbeTarget};
use crate::backend::BoxFuture;
use crate::policy::health::Probed;
use crate::settings::Question;

/// The prober for real use, with network connections and commands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Network;

impl Asks for Network {
    fn ask<'a>(&'a self, question: &'a Question, target: &'a ProbeTarget) -> BoxFuture<'a, Probed> {
        Box::pin(async move {
            let is_well = match question {
                Question::Http { port, path, status } => http(target, port, path, *status).await,
                Question::Tcp { port } => connect(target, port).await.is_some(),
                Question::Command(command) => run(target, command).await,
            };
            if is_well { Probed::Success } else { Probed::Failure }
        })
    }

    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }
}

async fn connect(target: &ProbeTarget, port: &str) -> Option<TcpStream> {
    let port = target.ports.get(port)?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await.ok()
}

/// Sends a GET request. Returns true if the status is expected; a redirect is not followed.
async fn http(target: &ProbeTarget, port: &str, path: &str, (first, last): (u16, u16)) -> bool {
    let Some(stream) = connect(target, port).await else {
        return false;
    };
    let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(stream)).await else {
        return false;
    };
    let request = Request::get(path)
        .header("host", "localhost")
        .header("user-agent", "watershed")
        .header("connection", "close")
        .body(Empty::<Bytes>::new());
    let Ok(request) = request else { return false };
    let mut answer = pin!(sender.send_request(request));
    // The status is all that counts: the body is never read, however long it is.
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The answer may be the last that was said.
        _ = connection => answer.await,
    };
    answer.is_ok_and(|answer| (first..=last).contains(&answer.status().as_u16()))
}

/// Runs a command where the process runs, and returns true if it exits with 0. At the time limit, dropping the future
/// kills the command and its descendants.
async fn run(target: &ProbeTarget, command: &[String]) -> bool {
    let Some(mut program) = Program::new(&target.cwd, command) else {
        return false;
    };
    program.variables(target.environment.iter().cloned());
    program.run().await.is_ok_and(|ended| ended.status.success())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;
    use crate::backend::StartId;

    fn target(port: u16) -> ProbeTarget {
        ProbeTarget {
            start: StartId::new("a", 1).unwrap(),
            started: Timestamp(0),
            ports: BTreeMap::from([("PORT".to_owned(), port)]),
            environment: vec![("PATH".into(), std::env::var("PATH").unwrap_or_default())],
            cwd: "/".into(),
        }
    }

    /// Starts a server that answers one connection with a text, and returns its port.
    fn server(answer: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer.as_bytes());
        });
        port
    }

    /// Covers W10: HTTP statuses and redirects.
    #[tokio::test]
    async fn a_status_within_the_range_is_well_and_a_redirect_is_not() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Probed::Success),
            ("HTTP/1.1 204 None\r\n\r\n", Probed::Success),
            (
                "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
                Probed::Failure,
            ),
            ("HTTP/1.1 500 Bad\r\ncontent-length: 0\r\n\r\n", Probed::Failure),
            ("hello\r\n", Probed::Failure),
            ("", Probed::Failure),
        ] {
            let question = Question::Http {
                port: "PORT".into(),
                path: "/health".into(),
                status: (200, 299),
            };
            let found = Network.ask(&question, &target(server(answer))).await;
            assert_eq!(found, expected, "{answer}");
        }
    }

    /// Covers W10: TCP ports and commands.
    #[tokio::test]
    async fn a_port_answers_by_a_connection_and_a_command_by_its_code() {
        let tcp = Question::Tcp { port: "PORT".into() };
        assert_eq!(Network.ask(&tcp, &target(server(""))).await, Probed::Success);
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = closed.local_addr().unwrap().port();
        drop(closed);
        assert_eq!(Network.ask(&tcp, &target(port)).await, Probed::Failure);
        for (command, expected) in [
            (&["true"][..], Probed::Success),
            (&["false"], Probed::Failure),
            (&["no-such-program"], Probed::Failure),
            (&[], Probed::Failure),
        ] {
            let question = Question::Command(command.iter().map(ToString::to_string).collect());
            assert_eq!(
                Network.ask(&question, &target(port)).await,
                expected,
                "{command:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = target(1);
        target.cwd = folder.path().to_owned();
        let text = "(sleep 60 & echo $! > child; wait)".to_owned();
        let question = Question::Command(vec!["sh".into(), "-c".into(), text]);
        let child = folder.path().join("child");
        let asked = Network.ask(&question, &target);
        let is_there = async {
            while std::fs::read_to_string(&child).map_or(true, |text| text.trim().is_empty()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            _ = asked => panic!("it lasts"),
            () = is_there => {}
        }
        let pid: u32 = std::fs::read_to_string(&child).unwrap().trim().parse().unwrap();
        let is_alive = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !status.is_empty() && !status.contains(") Z ")
        };
        for _ in 0..1_000 {
            if !is_alive() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the child of the command lives");
    }
}
