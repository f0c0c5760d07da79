//! The `watershed` program.

fn main() -> std::process::ExitCode {
    watershed::cli::main()
}
