//! The build script, which lets tests and examples find the DuckDB library that Cargo leaves in `deps`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    find_console();
    let beside = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        Ok("windows") => return,
        _ => "$ORIGIN",
    };
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}/deps");
}

/// Looks for the console's files where they go into the program. A build for tests reads them from the disk while it runs, and may
/// lack them.
fn find_console() {
    let has = |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if !has("CONSOLE") {
        return;
    }
    let dist = std::path::Path::new("../../console/dist");
    if has("CRASH_POINTS") {
        // A folder that comes later would not be found.
        let _ = std::fs::create_dir_all(dist);
        return;
    }
    println!("cargo:rerun-if-changed={}", dist.display());
    if !dist.join("index.html").is_file() {
        println!(
            "cargo::error=`console/dist` is missing, which the feature `console` puts into the program: run `make console` first"
        );
    }
}
