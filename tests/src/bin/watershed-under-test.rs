//! The program under test: the same `main`, which exits at the crash points that `FAILPOINTS` names.

fn main() -> std::process::ExitCode {
    let _armed = fail::FailScenario::setup();
    watershed_cli::main()
}
