//! The entry point of the program `watershed`.

fn main() -> std::process::ExitCode {
    watershed_cli::main()
}
