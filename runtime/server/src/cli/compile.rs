//! `validate` and `compile`: what needs the project's files alone.

use super::args::{Compile, Format, Shared, Validate};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::{Presenter, failure};
use super::project::Location;
use crate::exit::Exit;
use crate::instance::{self, Specs, compiled_sql, validated};
use crate::socket::{Answer, Reply, RunRequest};

/// `validate`
pub(super) fn validate(console: &mut Console, shared: &Shared, args: &Validate) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, args.folder.as_deref())?;
    let options = super::options(shared, &location);
    super::runtime()?.block_on(async {
        let occasion = instance::begin_validation();
        let compilation = instance::compile(&options, &location.state)
            .await
            .map_err(failure)?;
        let run = RunRequest {
            all: shared.all,
            warn_error: shared.warn_error,
            ..RunRequest::default()
        };
        let specs = if args.spec { Specs::Shown } else { Specs::Left };
        let document = validated(&options, compilation.project(), &occasion, &run, specs);
        Presenter::new(console, format, location.root.clone()).run(&document)
    })
}

/// `compile`
pub(super) fn compile(console: &mut Console, shared: &Shared, args: &Compile) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let options = super::options(shared, &location);
    super::runtime()?.block_on(async {
        let compilation = instance::compile(&options, &location.state)
            .await
            .map_err(failure)?;
        let document = compiled_sql(&options, compilation.project(), &args.name).map_err(failure)?;
        let (sender, replies) = crate::socket::replies();
        let _ = sender
            .send(Reply::Done(Box::new(Answer::Compile(document))))
            .await;
        Presenter::new(console, format, location.root.clone())
            .show(replies)
            .await
    })
}
