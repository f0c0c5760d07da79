//! Generates the Rust types of the messages; needs no protoc.

use std::error::Error;

const FILES: [&str; 3] = [
    "watershed/v1/value.proto",
    "watershed/v1/model.proto",
    "watershed/v1/project_parser.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    let descriptors = protox::compile(FILES, ["proto"])?;
    println!("cargo::rerun-if-changed=proto");
    prost_build::Config::new()
        .btree_map(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
