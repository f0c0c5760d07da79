//! One of each common mistake: what is said, and that the rest is built.

use crate::sandbox::{Sandbox, assert_kept, sample};

#[test]
fn each_common_mistake_is_told_in_its_place_and_the_rest_is_built() {
    let project = Sandbox::from_project("broken");
    assert_kept(&sample("broken.expected.txt"), &report(&project));

    let best = project.query("SELECT name FROM best_customer");
    assert_eq!(best["rows"], serde_json::json!([["Edsger"]]));
    let large = project.query("SELECT count(*)::INTEGER FROM large_orders");
    assert_eq!(large["rows"], serde_json::json!([[4]]));
    let windows = project.query("SELECT orders::INTEGER FROM from_windows");
    assert_eq!(windows["rows"], serde_json::json!([[5]]));
    let first = project.query("SELECT which FROM same_name");
    assert_eq!(first["rows"], serde_json::json!([["first"]]));
}

#[test]
fn a_mistake_is_told_again_and_nothing_good_is_built_again() {
    let project = Sandbox::from_project("broken");
    project.run(1);
    let again = project.run(1);
    let good = [
        "order_amounts",
        "best_customer",
        "large_orders",
        "from_windows",
        "orders",
        "customers",
    ];
    assert!(good.iter().all(|name| !again.contains_key(*name)), "{again:?}");
}

#[test]
fn with_a_broken_manifest_all_mistakes_are_told_and_nothing_is_built() {
    let project = Sandbox::from_project("broken_manifest");
    assert_kept(&sample("broken_manifest.expected.txt"), &report(&project));
    assert!(project.run(1).is_empty());
}

/// All that a run says, as it is kept.
fn report(project: &Sandbox) -> String {
    // One at a time: which names the engine suggests depends on what was built before.
    let run = project.call(&["run", "--no-progress", "--jobs", "1"]);
    format!(
        "$ watershed run\n[exit code {}]\n\n[standard output]\n{}\n[standard error]\n{}",
        run.code
            .map_or_else(|| "none".to_owned(), |code| code.to_string()),
        in_order_of_names(&without_times(&run.stdout, project)),
        without_times(&run.stderr, project),
    )
}

/// The lines about runs that ended, sorted and without their numbers and columns: kinds run side by side, so the order in
/// which runs end differs from call to call.
fn in_order_of_names(text: &str) -> String {
    let (mut ended, mut rest) = (Vec::new(), String::new());
    for line in text.lines() {
        match line.split_once(" of ").filter(|(number, _)| is_number(number)) {
            Some((_, line)) => {
                let words = line.split_whitespace().skip(1);
                ended.push(format!("  {}\n", words.collect::<Vec<_>>().join(" ")));
            }
            None => rest.push_str(&format!("{line}\n")),
        }
    }
    ended.sort();
    ended.concat() + &rest
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<u32>().is_ok()
}

/// Replaces the parts that differ from call to call: durations, and the path of the project.
fn without_times(text: &str, project: &Sandbox) -> String {
    let root = project.path().display().to_string();
    let canonical = project
        .path()
        .canonicalize()
        .map_or_else(|_| root.clone(), |path| path.display().to_string());
    let lines = text.lines().map(|line| {
        let words = line
            .split(' ')
            .map(|word| if is_duration(word) { "<time>" } else { word });
        let line = words.collect::<Vec<_>>().join(" ");
        match line.split_once("  <time>") {
            // Times stand at the right edge of their column: the longest decides how far away.
            Some((before, _)) => format!("{}  <time>\n", before.trim_end()),
            None => format!("{}\n", line.trim_end()),
        }
    });
    lines
        .collect::<String>()
        .replace(&canonical, "<project>")
        .replace(&root, "<project>")
}

/// Returns true if a word is an amount of time such as `12ms`, `0.31s` or `1m02s`, with or without punctuation around
/// it.
fn is_duration(word: &str) -> bool {
    let word = word.trim_matches(|c: char| matches!(c, '(' | ')' | ',' | '.' | ';'));
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let unit = &word[number.len()..];
    let numeric = number.starts_with(|c: char| c.is_ascii_digit())
        && number
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | 'm' | 'h'));
    numeric && matches!(unit, "s" | "ms" | "µs" | "us" | "m" | "h")
}
