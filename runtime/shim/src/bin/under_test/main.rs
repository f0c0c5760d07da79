//! The shim and its child programs, as tests start them.

#![allow(clippy::print_stdout, reason = "output is what it is for")]

mod modes;

use std::process::ExitCode;
use std::time::Duration;

use watershed_shim::{IDLE, Settings, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    if mode != "shim" {
        return modes::run(&mode, &rest);
    }
    let _armed = fail::FailScenario::setup();
    let idle = rest.get(1).and_then(|idle| idle.parse().ok());
    let settings = Settings {
        state_folder: rest.first().map(Into::into).unwrap_or_default(),
        idle: idle.map_or(IDLE, Duration::from_millis),
    };
    match run(&settings) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            #[expect(clippy::print_stderr, reason = "it is the shim's log")]
            {
                eprintln!("{error}: {}", source.unwrap_or_default());
            }
            ExitCode::FAILURE
        }
    }
}
