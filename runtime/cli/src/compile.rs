//! `validate`, `compile` and `schema`: commands that need at most the project's files.

use std::path::{Path, PathBuf};

use watershed_api::operations::ops;
use watershed_api::request::{CompileRequest, ValidateRequest};
use watershed_api::{Exit, Operation as _};

use super::args::{Compile, Format, Schema, Shared, Validate};
use super::ask::{ended, from_files};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use crate::render::ci;

/// Runs the command `validate`.
pub(super) fn validate(console: &mut Console, shared: &Shared, args: &Validate) -> Result<Exit, Failure> {
    let known = [Format::Text, Format::Json, Format::Sarif, Format::Github];
    let format = choose_format(shared, &known, Format::Text)?;
    let location = Location::find(shared, args.folder.as_deref())?;
    let request = ValidateRequest {
        selection: args.choice.selection(),
        all: shared.all,
        warn_error: shared.warn_error,
        spec: args.spec,
    };
    let request = ops::Validate::request(request);
    super::block_on(async {
        let mut replies = from_files(shared, &location, request);
        if !matches!(format, Format::Sarif | Format::Github) {
            let presenter = Presenter::new(console, format, location.root.clone());
            return presenter.show(replies).await;
        }
        let document = ended::<ops::Validate>(&mut replies).await?;
        let folder = from_here(&location.root);
        match format {
            Format::Sarif => console.document(&ci::sarif(&document.diagnostics, &folder))?,
            _ => console.result(&ci::github(&document.diagnostics, &folder))?,
        }
        Ok(Exit::from_code(document.exit_code))
    })
}

/// Returns the project's folder relative to the current one, to which a CI workflow's findings are relative.
fn from_here(root: &Path) -> PathBuf {
    let here = std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .unwrap_or_default();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    root.strip_prefix(&here).map(Path::to_owned).unwrap_or_default()
}

/// Runs the command `schema`.
pub(super) fn schema(console: &mut Console, shared: &Shared, args: &Schema) -> Result<Exit, Failure> {
    choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let Some(kind) = &args.kind else {
        let names = watershed_compilers::schema::names().join("\n");
        console.result(&format!("{names}\n"))?;
        return Ok(Exit::Converged);
    };
    let names = watershed_compilers::schema::names();
    let Some(schema) = watershed_compilers::schema::schema(&kind.to_lowercase()) else {
        let near = watershed_compilers::nearest_name(&kind.to_lowercase(), names.iter().copied());
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of `{}`", names.join("`, `")),
        };
        return Err(Failure::usage(format!("no schema of the name `{kind}`")).hint(hint));
    };
    console.document(&schema)?;
    Ok(Exit::Converged)
}

/// Runs the command `compile`.
pub(super) fn compile(console: &mut Console, shared: &Shared, args: &Compile) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let request = ops::Compile::request(CompileRequest {
        name: args.name.clone(),
    });
    super::block_on(async {
        let replies = from_files(shared, &location, request);
        Presenter::new(console, format, location.root.clone())
            .show(replies)
            .await
    })
}
