//! Keeps a lab: sessions are booked for a while, own parts that follow in order, and each part owns a process.
//!
//! ```text
//! lab demo [--seconds N] [--kill-at MS,MS,...]   a session from its booking to its end, with everything that goes wrong
//! lab keep FOLDER                                keep what FOLDER/plan.json says; what the demo starts, and kills
//! lab pod FOLDER NAME                            what a pod runs: listens on loopback until its folder goes
//! ```
//!
//! The modules: `spec` is what is wanted, `session`, `part`, `pod` and `worker` are the four managers, `effects` the
//! story of what really happened, `listener` the process of a pod, `keep` puts the managers under a controller whose
//! catalog is in SQLite, and `demo` drives that from outside.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program for people to read

mod demo;
mod effects;
mod keep;
mod left;
mod listener;
mod part;
mod pod;
mod session;
mod spec;
mod worker;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// A mistake on the way to the end of the program.
type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["demo", options @ ..] => match wanted(options) {
            Ok((length, kill_at)) => demo::run(length, kill_at).await,
            Err(error) => Err(error),
        },
        ["keep", folder] => keep::run(Path::new(folder)).await,
        ["pod", folder, name] => listener::run(Path::new(folder), name).await,
        _ => Err("usage: lab demo [--seconds N] [--kill-at MS,MS,...]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the options of a demo: the length of the session, and when to kill the program besides.
fn wanted(options: &[&str]) -> Fallible<(Duration, Vec<Duration>)> {
    let (mut length, mut kill_at) = (Duration::from_secs(20), Vec::new());
    for pair in options.chunks(2) {
        match pair {
            ["--seconds", seconds] => length = Duration::from_secs(seconds.parse::<u64>()?.clamp(4, 600)),
            ["--kill-at", moments] => {
                let read = moments
                    .split(',')
                    .map(|moment| moment.parse().map(Duration::from_millis));
                kill_at = read.collect::<Result<_, _>>()?;
            }
            other => return Err(format!("unknown option: {}", other.join(" ")).into()),
        }
    }
    Ok((length, kill_at))
}
