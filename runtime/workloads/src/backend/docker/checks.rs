//! Commands of checks, which run inside the container (rule W10).

use bollard::exec::{CreateExecOptions, StartExecResults};
use futures::StreamExt;

use super::NAME;
use super::place::Place;
use crate::backend::{Error, StartId};

/// Runs a command inside the container of a start, with the container's environment and working directory. Returns its
/// exit code.
///
/// An engine can't end such a command. One that outlives the future goes on, and until it has ended the same command of
/// the same start is not begun again: no more than one of each check is ever there.
pub(super) async fn run(place: &Place, id: &StartId, command: &[String]) -> Result<i32, Error> {
    let key = (id.clone(), command.to_vec());
    let overdue = place.table().overdue.get(&key).cloned();
    if let Some(exec) = overdue {
        if is_running(place, &exec).await? {
            return Err(refused("the command of the last check still runs"));
        }
        place.table().overdue.remove(&key);
    }
    let container = container_of(place, id).await?;
    let client = place.engine.client().await?;
    let options = CreateExecOptions {
        cmd: Some(command.to_vec()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        ..CreateExecOptions::default()
    };
    let made = place.engine.call(client.create_exec(&container, options)).await?;
    place.table().overdue.insert(key.clone(), made.id.clone());
    let started = place.engine.call(client.start_exec(&made.id, None)).await?;
    if let StartExecResults::Attached { mut output, .. } = started {
        // Its code is all that counts; what it says ends when it does.
        while let Some(said) = output.next().await {
            said.map_err(|error| Error::from(place.engine.failed(error)))?;
        }
    }
    let ended = place.engine.call(client.inspect_exec(&made.id)).await?;
    if ended.running == Some(true) {
        return Err(refused("the command has closed its output and still runs"));
    }
    place.table().overdue.remove(&key);
    let code = ended.exit_code.and_then(|code| i32::try_from(code).ok());
    code.ok_or_else(|| refused("the engine does not know how the command ended"))
}

async fn is_running(place: &Place, exec: &str) -> Result<bool, Error> {
    let client = place.engine.client().await?;
    match place.engine.call(client.inspect_exec(exec)).await {
        Ok(found) => Ok(found.running == Some(true)),
        Err(failed) if failed.is_missing() => Ok(false),
        Err(failed) => Err(failed.into()),
    }
}

/// Finds the container of a start in the last listing.
async fn container_of(place: &Place, id: &StartId) -> Result<String, Error> {
    let known = place.table().containers.get(id).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let found = place.containers(Some(id.uid())).await?;
    let found = found.into_iter().find(|one| one.labels.start == *id);
    found
        .map(|one| one.container)
        .ok_or_else(|| refused("the container is gone"))
}

fn refused(message: &str) -> Error {
    Error::Refused {
        backend: NAME,
        message: message.to_owned(),
    }
}
