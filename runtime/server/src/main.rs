//! The `watershed` program.

/// The loop makes and drops many small things, and this is several times faster at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    watershed::cli::main()
}
