//! The program as the tests call it: the same `main`, built with whatever the tests ask for.

fn main() -> std::process::ExitCode {
    watershed::cli::main()
}
