//! `init`: a new project from a template.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use watershed_api::Exit;
use watershed_compilers::MANIFESTS;

use super::args::{Format, Init, Shared, Template};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::project::{DBT, DBT_MANIFEST, is_project};
use crate::render::palette::{DIM, GOOD, STRONG};

/// A file of a template: its path and its content.
type File = (&'static str, &'static [u8]);

macro_rules! files {
    ($template:literal: $($path:literal),+ $(,)?) => {
        &[
            (".gitignore", include_bytes!(concat!("../templates/", $template, "/gitignore"))),
            $(($path, include_bytes!(concat!("../templates/", $template, "/", $path)))),+
        ]
    };
}

const EMPTY: &[File] = files!("empty": "watershed.yaml", "models/numbers.sql", "models/even_numbers.sql");

/// The complete template of flights, which the README walks through.
const FLIGHTS: &[File] = include!(concat!(env!("OUT_DIR"), "/flights.rs"));

/// Returns the files of a template, and the model to look at first.
fn template(which: Template) -> (&'static [File], &'static str) {
    match which {
        Template::Empty => (EMPTY, "even_numbers"),
        Template::Flights => (FLIGHTS, "best_hours"),
    }
}

/// The hint for a project of Rill.
const RILL: &str = "nothing has to be written: `watershed run` builds it as it is, `watershed validate` says what would be \
                    different (docs/from-rill.md)";

/// Writes a new project and says what to do next. No existing file is overwritten.
pub(super) fn run(console: &mut Console, shared: &Shared, args: &Init) -> Result<Exit, Failure> {
    choose_format(shared, &[Format::Text], Format::Text)?;
    let here = PathBuf::from(".");
    let folder = args.target.as_ref().or(shared.dir.as_ref()).unwrap_or(&here);
    let (files, first) = template(args.template);
    refuse_occupied(folder, files)?;
    for (path, content) in files {
        write(&folder.join(path), content).map_err(|error| Failure {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error)
                .context(format!("can't write `{}`", folder.join(path).display())),
            hint: None,
        })?;
    }
    console.result(&said(folder, files, first))?;
    Ok(Exit::Converged)
}

fn refuse_occupied(folder: &Path, files: &[File]) -> Result<(), Failure> {
    if is_project(folder) {
        let manifest = MANIFESTS
            .iter()
            .find(|name| folder.join(name).is_file())
            .copied()
            .unwrap_or_default();
        if manifest.starts_with("rill.") {
            let failure = Failure::usage(format!(
                "`{}` holds a project of Rill already: `{manifest}` is there",
                folder.display()
            ));
            return Err(failure.hint(RILL));
        }
        let failure = Failure::usage(format!(
            "`{}` holds a project already: `{manifest}` is there",
            folder.display()
        ));
        return Err(failure.hint("`watershed run` brings it up to date"));
    }
    if folder.join(DBT_MANIFEST).is_file() {
        let failure = Failure::usage(format!(
            "`{}` holds a project of dbt: `{DBT_MANIFEST}` is there",
            folder.display()
        ));
        return Err(failure.hint(DBT));
    }
    match files
        .iter()
        .map(|(path, _)| folder.join(path))
        .find(|path| path.exists())
    {
        // An ignore file that is there is a person's own, and none of ours is needed.
        Some(path) if !path.ends_with(".gitignore") => {
            let failure = Failure::usage(format!(
                "`{}` is there already and stays as it is",
                path.display()
            ));
            Err(failure.hint("name a new folder: `watershed init my-project`"))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if path.ends_with(".gitignore") && path.exists() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)
}

/// Quotes a word for the shell, where it needs quotes.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+~".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn said(folder: &Path, files: &[File], first: &str) -> String {
    let here = folder == Path::new(".");
    let place = if here {
        "this folder".to_owned()
    } else {
        format!("`{}`", folder.display())
    };
    let mut out = format!("{GOOD}✓{GOOD:#} wrote {} files to {place}\n\n", files.len());
    let mut steps = Vec::new();
    if !here {
        steps.push((format!("cd {}", for_shell(&folder.display().to_string())), ""));
    }
    steps.push(("watershed run".to_owned(), "build everything"));
    steps.push((format!("watershed show {first}"), "look at a result"));
    let width = steps
        .iter()
        .map(|(step, _)| step.chars().count())
        .max()
        .unwrap_or(0);
    out.push_str("Next:\n");
    for (step, what) in steps {
        let line = if what.is_empty() {
            step
        } else {
            format!("{step:width$}  {DIM}# {what}{DIM:#}")
        };
        out.push_str(&format!("  {STRONG}{line}{STRONG:#}\n"));
    }
    if let Some((outer, inner)) = inside_of(folder) {
        out.push_str(&format!(
            "\nThe project around it, `{}`, reads these files too: add `{}` to `ignore_paths` in its manifest.\n",
            outer.display(),
            inner.display()
        ));
    }
    out
}

/// Returns the project that a folder stands in, and the folder's path in there.
fn inside_of(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let folder = fs::canonicalize(folder).ok()?;
    let outer = folder.ancestors().skip(1).find(|outer| is_project(outer))?;
    let inner = Path::new("/").join(folder.strip_prefix(outer).ok()?);
    Some((outer.to_owned(), inner))
}

#[cfg(test)]
mod tests {
    use super::for_shell;

    #[test]
    fn folders_are_written_as_a_shell_takes_them() {
        assert_eq!(for_shell("shops/my-shop"), "shops/my-shop");
        assert_eq!(for_shell("my shop"), "'my shop'");
        assert_eq!(for_shell("o'clock"), r"'o'\''clock'");
    }
}
