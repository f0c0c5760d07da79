//! Lets the program find the engine's library wherever it is started from: beside itself, in cargo's `deps` folder, or in
//! `lib` of the prefix that it is installed to.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let beside = match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => "@loader_path",
        _ => "$ORIGIN",
    };
    for folder in ["", "/deps", "/../lib"] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{beside}{folder}");
    }
}
