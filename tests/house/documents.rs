//! The documents: every dependency is explained, and no link leads nowhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{files, read, root, shown};

/// The page that says what every dependency is for.
const ARCHITECTURE: &str = "docs/architecture.md";
/// The most lines that the page may have: it is read before anything else.
const MAX_LINES: usize = 300;

#[test]
fn every_dependency_has_its_line_in_the_architecture_page() {
    let page = read(&root().join(ARCHITECTURE));
    let explained: BTreeSet<_> = rows_below(&page, "## Dependencies").collect();
    let used = workspace_dependencies();
    let silent: Vec<_> = used.difference(&explained).collect();
    let stale: Vec<_> = explained.difference(&used).collect();
    assert!(
        silent.is_empty(),
        "{ARCHITECTURE} does not say what these are for: {silent:?}"
    );
    assert!(
        stale.is_empty(),
        "{ARCHITECTURE} explains what is no dependency of the workspace: {stale:?}"
    );
}

#[test]
fn every_dependency_of_the_workspace_is_one_of_a_crate() {
    let manifests: Vec<String> = files("toml")
        .iter()
        .filter(|path| path.ends_with("Cargo.toml") && path.parent() != Some(&root()))
        .map(|path| read(path))
        .collect();
    let is_used = |name: &str| {
        let forms = [
            format!("\n{name}.workspace = true"),
            format!("\n{name} = {{ workspace = true"),
        ];
        manifests
            .iter()
            .any(|manifest| forms.iter().any(|form| manifest.contains(form)))
    };
    let idle: Vec<_> = workspace_dependencies()
        .into_iter()
        .filter(|name| !is_used(name))
        .collect();
    assert!(idle.is_empty(), "no crate depends on these: {idle:?}");
}

#[test]
fn the_architecture_page_can_be_read_in_one_sitting() {
    let lines = read(&root().join(ARCHITECTURE)).lines().count();
    assert!(lines < MAX_LINES, "{ARCHITECTURE} has {lines} lines");
}

#[test]
fn the_walks_name_files_that_exist_and_a_call_takes_at_most_25_of_them() {
    let page = read(&root().join("docs/walks.md"));
    let paths = |text: &str| -> Vec<String> {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted
            .filter(|text| text.ends_with(".rs"))
            .map(str::to_owned)
            .collect()
    };
    let missing: Vec<String> = paths(&page)
        .into_iter()
        .filter(|path| {
            !["", "runtime"]
                .iter()
                .any(|folder| root().join(folder).join(path).is_file())
        })
        .collect();
    assert!(missing.is_empty(), "not there: {missing:?}");
    let (_, call) = page.split_once("## A call").expect("the walk of a call");
    let (call, _) = call.split_once("## ").expect("the walk after it");
    assert!((10..=25).contains(&paths(call).len()), "{}", paths(call).len());
}

#[test]
fn the_smallest_program_has_at_most_25_lines_of_code_and_stands_whole_in_the_page_on_embedding() {
    let program = read(&root().join("examples/embed/src/bin/smallest.rs"));
    assert!(lines_of_code(&program) <= 25, "{} lines", lines_of_code(&program));
    let (_, code) = program.split_once("\n\n").expect("a summary, then the code");
    assert!(
        read(&root().join("docs/embedding.md")).contains(code),
        "the page shows another one"
    );
    let second = read(&root().join("examples/embed/src/main.rs"));
    assert!(lines_of_code(&second) < 60, "{} lines", lines_of_code(&second));
}

#[test]
fn the_page_on_embedding_asks_as_the_example_of_the_library_does() {
    let code = read(&root().join("runtime/server/src/service/methods.rs"));
    let (_, example) = code.split_once("```no_run\n").expect("an example");
    let (example, _) = example.split_once("/// ```").expect("its end");
    let shown: Vec<&str> = example
        .lines()
        .map(|line| line.trim().trim_start_matches("///"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .filter(|line| !line.starts_with("# "))
        .collect();
    let shown = shown.join("\n");
    assert!(shown.lines().count() > 5, "{shown}");
    assert!(
        read(&root().join("docs/embedding.md")).contains(shown.trim()),
        "the page shows another one than\n{shown}"
    );
}

fn lines_of_code(program: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    program.lines().filter(is_code).count()
}

#[test]
fn no_link_between_documents_is_dead() {
    let mut dead = Vec::new();
    for path in files("md") {
        for link in links(&read(&path)) {
            if let Err(why) = follow(&path, &link) {
                dead.push(format!("{}: `{link}`: {why}", shown(&path)));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

/// The names under `[workspace.dependencies]` that are not crates of this workspace.
fn workspace_dependencies() -> BTreeSet<String> {
    let manifest = read(&root().join("Cargo.toml"));
    manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .filter(|(_, value)| !value.contains("path = "))
        .map(|(name, _)| name.trim_end_matches(".workspace").to_owned())
        .collect()
}

/// The names in backquotes in the first column of the tables below a heading, up to the next heading of that level.
fn rows_below(page: &str, heading: &str) -> impl Iterator<Item = String> {
    page.lines()
        .skip_while(move |line| *line != heading)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix('|')?.split('|').next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned))
}

/// The targets of the inline links of a document that lead to files or headings, code left out.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
        let targets = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        found.extend(
            targets
                .filter(|target| !target.contains("://"))
                .map(str::to_owned),
        );
    }
    found
}

/// Checks that a link of a document leads somewhere.
fn follow(from: &Path, link: &str) -> Result<(), &'static str> {
    let (file, heading) = link
        .split_once('#')
        .map_or((link, None), |(file, heading)| (file, Some(heading)));
    let folder = from.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let target = if file.is_empty() {
        from.to_path_buf()
    } else {
        folder.join(file)
    };
    if !target.exists() {
        return Err("there is no such file");
    }
    match heading {
        Some(heading) if !anchors(&read(&target)).contains(heading) => Err("there is no such heading"),
        _ => Ok(()),
    }
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}
