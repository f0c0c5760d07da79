//! The example of the documentation does what it says.

#[path = "../examples/testing.rs"]
mod testing;

#[test]
fn the_example_finds_the_fault_and_nothing_without_it() {
    testing::main().unwrap();
}
