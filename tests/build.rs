//! Lets the binaries of this package find the DuckDB library wherever they are started from.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Cargo leaves the library in `deps`, beside the program; who hands the program on puts it right beside.
    let beside = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        Ok("windows") => return,
        _ => "$ORIGIN",
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}/deps");
}
