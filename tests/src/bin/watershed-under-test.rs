//! The program as the tests call it: the same `main`, which dies at the crash points that `FAILPOINTS` names.

fn main() -> std::process::ExitCode {
    let _armed = fail::FailScenario::setup();
    watershed_cli::main()
}
