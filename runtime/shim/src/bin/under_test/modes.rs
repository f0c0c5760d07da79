//! Child programs for tests, each with one behaviour.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::{SIGTERM, SIGUSR1};

/// Runs the child program of a mode:
///
/// | mode | habit |
/// |---|---|
/// | `exit N` | ends with a code |
/// | `count FILE N` | adds a line to a file, and ends with a code |
/// | `run FILE` | adds a line to a file, and waits |
/// | `wait` | waits for a signal |
/// | `stubborn FILE` | ignores SIGTERM; makes the file once it does |
/// | `usr1` | ends with 7 on SIGUSR1 |
/// | `escape FILE` | starts a child in a session of its own, writes its pid, and waits |
/// | `group FILE` | starts a child in its group, writes its pid, and waits |
/// | `hide FILE` | the same with a child that has no environment, and a session of its own |
/// | `bare FILE` | the same with one that has lost its mark, too |
/// | `nest FILE` | adds a line to a file, hides a child, and waits |
/// | `memory BYTES` | takes memory, and ends with 9 when it gets no more |
/// | `files` | opens files until it can't, and ends with their number, at most 255 |
/// | `write BYTES` | writes lines, and ends |
/// | `pour BYTES` | writes as fast as it can, and ends |
/// | `spill FILE` | writes a line each millisecond |
/// | `listen MS FILE` | listens late, and writes its port |
/// | `show FILE` | writes its environment, folder, group and more |
pub(crate) fn run(mode: &str, rest: &[String]) -> ExitCode {
    let first = rest.first().map(String::as_str).unwrap_or_default();
    let number = |index: usize| {
        rest.get(index)
            .and_then(|text| text.parse::<u64>().ok())
            .unwrap_or_default()
    };
    match mode {
        "exit" => return code(number(0)),
        "count" => {
            add_line(first);
            return code(number(1));
        }
        "run" => add_line(first),
        "wait" => {}
        "stubborn" | "hidden" | "bared" => {
            if mode != "stubborn" {
                rustix::process::setsid().expect("a session");
            }
            if mode == "bared" {
                let none = Rlimit {
                    current: None,
                    maximum: None,
                };
                setrlimit(Resource::Locks, none).expect("a limit");
            }
            signal_hook::flag::register(SIGTERM, std::sync::Arc::default()).expect("a handler");
            std::fs::write(first, "ready").expect("a file");
        }
        "usr1" => {
            let mut signals = signal_hook::iterator::Signals::new([SIGUSR1]).expect("a handler");
            println!("ready");
            let _ = signals.forever().next();
            return code(7);
        }
        "escape" | "group" | "hide" | "bare" => child(first, mode),
        "nest" => {
            add_line(first);
            child(&format!("{first}.child"), "hide");
        }
        "memory" => return take_memory(number(0)),
        "files" => {
            let mut open = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                open.push(file);
                if open.len() > 250 {
                    break;
                }
            }
            return code(open.len() as u64);
        }
        "write" => {
            let mut out = std::io::stdout().lock();
            let mut left = number(0);
            while left > 0 {
                let line = "0123456789abcdef".repeat(63) + "0123456789abcde\n";
                let part = line.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                out.write_all(&line.as_bytes()[..part])
                    .expect("the output is written");
                left -= part as u64;
            }
            return code(0);
        }
        "pour" => {
            let block = "a line of sixteen\n".repeat(4_096);
            let mut left = number(0);
            let mut out = std::io::stdout().lock();
            while left > 0 {
                let part = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                out.write_all(&block.as_bytes()[..part])
                    .expect("the output is written");
                left -= part as u64;
            }
            return code(0);
        }
        "spill" => loop {
            println!("a line of output");
            std::thread::park_timeout(Duration::from_millis(1));
        },
        "listen" => {
            std::thread::park_timeout(Duration::from_millis(number(0)));
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            std::fs::write(&rest[1], port.to_string()).expect("a file");
            for _ in listener.incoming() {}
        }
        "show" => show(first),
        _ => return code(99),
    }
    loop {
        std::thread::park();
    }
}

fn code(number: u64) -> ExitCode {
    ExitCode::from(u8::try_from(number).unwrap_or(255))
}

fn add_line(file: &str) {
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).open(file).expect("a file");
    writeln!(file, "{}", std::process::id()).expect("a line");
}

/// Starts a child that ignores SIGTERM: `group`, in this process group; `escape`, in its own; `hide`, in its own
/// session and without an environment; `bare`, also without its mark.
#[expect(
    clippy::zombie_processes,
    reason = "this process waits for nothing and ends first"
)]
fn child(file: &str, way: &str) {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    let mode = match way {
        "hide" => "hidden",
        "bare" => "bared",
        _ => "stubborn",
    };
    command
        .args([mode, &format!("{file}.ready")])
        .stdin(Stdio::null());
    if way == "escape" {
        command.process_group(0);
    }
    if mode != "stubborn" {
        command.env_clear();
    }
    let child = command.spawn().expect("a child");
    std::fs::write(file, child.id().to_string()).expect("a file");
}

fn take_memory(bytes: u64) -> ExitCode {
    const STEP: usize = 1 << 20;
    let mut taken: Vec<Vec<u8>> = Vec::new();
    while (taken.len() as u64) * (STEP as u64) < bytes {
        let mut block = Vec::new();
        if block.try_reserve_exact(STEP).is_err() {
            return code(9);
        }
        block.resize(STEP, 1);
        taken.push(std::hint::black_box(block));
    }
    code(0)
}

fn show(file: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let privileges = status.lines().find(|line| line.starts_with("NoNewPrivs"));
    let mut text = format!("{}\n", privileges.unwrap_or_default());
    text += &format!("cwd {}\n", std::env::current_dir().unwrap_or_default().display());
    let group = rustix::process::getpgrp();
    text += &format!("leads {}\n", group == rustix::process::getpid());
    text += &format!(
        "stdin {:?}\n",
        std::io::read_to_string(std::io::stdin()).unwrap_or_default()
    );
    let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
    names.sort();
    text += &format!("environment {}\n", names.join(" "));
    std::fs::write(file, text).expect("a file");
}
