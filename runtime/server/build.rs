//! The build script, which lets tests and examples find the DuckDB library that Cargo leaves in `deps`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let beside = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        Ok("windows") => return,
        _ => "$ORIGIN",
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}/deps");
}
