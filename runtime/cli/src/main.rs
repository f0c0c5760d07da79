//! The `watershed` program.

fn main() -> std::process::ExitCode {
    watershed_cli::main()
}
