//! The command `open`: shows the project's pages in a browser.

use std::process::{Command, Stdio};

use watershed_api::Exit;
use watershed_api::http::encoded;
use watershed_api::operations::ops;
use watershed_api::request::{NoInput, StatusRequest};

use super::args::{Format, Open, Shared};
use super::ask::output;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::project::Location;

/// Runs the command `open`.
pub(super) fn open(console: &mut Console, shared: &Shared, args: &Open) -> Result<Exit, Failure> {
    choose_format(shared, &[Format::Text], Format::Text)?;
    let location = Location::find(shared, None)?;
    let address = super::block_on(address(shared, &location, args.name.as_deref()))?;
    writeln!(console.writer(), "{address}")?;
    if !hand_to_browser(&address) {
        console.note("there is no browser here to hand it to\n");
    }
    Ok(Exit::Converged)
}

/// Returns the URL of the project's page, or of a resource's page.
async fn address(shared: &Shared, location: &Location, name: Option<&str>) -> Result<String, Failure> {
    let known = output::<ops::Instances>(shared, location, NoInput {}).await?;
    let Some(mut address) = known.instances.into_iter().find_map(|one| one.address) else {
        let message = format!("nobody serves the project `{}`", known.project);
        return Err(Failure::new(Exit::NotNow, message).hint("`watershed start --listen` does"));
    };
    let Some(name) = name else {
        return Ok(address);
    };
    let asked = StatusRequest {
        names: vec![name.to_owned()],
        ..StatusRequest::default()
    };
    let found = output::<ops::Status>(shared, location, asked).await?;
    let one = found.resources.into_iter().next();
    for segment in one.into_iter().flat_map(|one| [page_of(one.kind), one.name]) {
        address.extend(["/", &encoded(&segment)]);
    }
    Ok(address)
}

/// Returns the segment before a resource's name in an address: of what is drawn, the drawing has a page of its own.
fn page_of(kind: String) -> String {
    match kind.as_str() {
        "canvas" => "canvases".to_owned(),
        "explore" => "explores".to_owned(),
        _ => kind,
    }
}

/// Opens an address in the system's browser without waiting; returns false if there is no browser.
fn hand_to_browser(address: &str) -> bool {
    let has_screen = || {
        ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some())
    };
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if has_screen() => "xdg-open",
        false => return false,
    };
    let mut command = Command::new(program);
    command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
