//! Rules of the HTTP API: each has a test whose name begins with the rule's number.

use crate::{files, read};

/// The rules that are kept, by their numbers.
const KEPT: [u32; 34] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 31, 32, 35, 37,
    39, 40, 43, 44, 45, 46,
];

#[test]
fn each_rule_of_the_http_api_has_a_test_that_names_it() {
    let sources: Vec<String> = files("rs").into_iter().map(|path| read(&path)).collect();
    let is_named = |rule: u32| {
        let name = format!("fn s_api{rule}_");
        sources.iter().any(|text| text.contains(&name))
    };
    let without: Vec<u32> = KEPT.into_iter().filter(|rule| !is_named(*rule)).collect();
    assert!(without.is_empty(), "no test names {without:?}");
}
