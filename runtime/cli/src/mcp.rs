//! `mcp`: the project's tools for an assistant, on standard input and output.
//!
//! Calls go to the process that owns the folder. Where none does, this process does for as long as the assistant is connected what
//! `start` does, from the first call on: the list of tools needs no project. Standard output has the protocol alone.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use watershed::http::Caller;
use watershed::http::mcp::{Answered, Assistant, Called, Desk, LocalUser, OwnerDesk, caller_of};
use watershed::socket::Listener;
use watershed::{Files, Instance, Options, Runtime};
use watershed_api::operations::Role;
use watershed_api::request::Selection;
use watershed_api::{Code, Exit, Problem};
use watershed_callers::Grant;

use super::args::{Mcp, Shared};
use super::console::Console;
use super::failure::Failure;
use super::metrics;
use super::project::Location;
use super::session::{self, Purpose, Session};

/// A selection that stands for no resource: what the files say is taken over, and nothing is built.
const NOTHING: &str = "path:.watershed/nothing";

/// The longest time that the first call waits for the project's files to be read.
const READ_WITHIN: Duration = Duration::from_secs(30);

/// Runs the command `mcp`.
pub(super) fn run(console: &mut Console, shared: &Shared, args: &Mcp) -> Result<Exit, Failure> {
    if args.role.allows(Role::Admin) {
        let hint = "it is `read`, `operate` or `edit`, with or without `+query`";
        return Err(Failure::usage("an assistant gets no role beyond `edit`").hint(hint));
    }
    let location = Location::find(shared, None)?;
    let attributes = match &args.user {
        Some(typed) => Some(metrics::attributes(shared, &location, typed)?),
        None => None,
    };
    let user = LocalUser {
        role: args.role.to_string(),
        attributes,
    };
    let runtime = console.runtime.clone();
    let served = super::runtime()?;
    let ended = served.block_on(async {
        let desk = Arc::new(OfFolder::new(
            runtime,
            shared.clone(),
            location,
            (args.role, user.clone()),
        ));
        let assistant = Assistant::of(caller_of(&user)?, Arc::<OfFolder>::clone(&desk));
        let ended = assistant.serve_stdio().await;
        desk.close().await?;
        ended.map_err(|error| {
            Failure::new(Exit::NotNow, error)
                .hint("`watershed mcp` is for assistants, which speak the Model Context Protocol")
        })
    });
    // A read of standard input that is under way ends with the process.
    served.shutdown_timeout(super::LEFT_OVER);
    ended.map(|()| Exit::Converged)
}

/// The calls of one assistant about one folder.
struct OfFolder {
    runtime: Runtime,
    shared: Shared,
    location: Location,
    grant: Grant,
    user: LocalUser,
    /// The instance that this process has opened; none while another process owns the folder, or nothing was asked yet.
    own: Mutex<Option<Own>>,
}

struct Own {
    desk: Arc<OwnerDesk>,
    instance: Arc<Instance>,
    listener: Option<Listener>,
    /// Closes the engine's file for other programs while nothing is asked.
    sharing: JoinHandle<()>,
}

impl OfFolder {
    fn new(runtime: Runtime, shared: Shared, location: Location, (grant, user): (Grant, LocalUser)) -> Self {
        Self {
            runtime,
            shared,
            location,
            grant,
            user,
            own: Mutex::new(None),
        }
    }

    /// Returns the name of the project.
    fn name(&self) -> String {
        let name = self.location.root.file_name();
        name.map_or_else(
            || "project".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        )
    }

    /// Calls the owner of the folder, or becomes it.
    async fn ask(&self, called: Called) -> Result<Answered, Problem> {
        let desk = {
            let mut own = self.own.lock().await;
            match own.as_ref() {
                Some(own) => Arc::clone(&own.desk),
                None => match self.open().await? {
                    Owner::There(connection) => {
                        drop(own);
                        return connection.call(&self.user, called).await;
                    }
                    Owner::Here(opened) => Arc::clone(&own.insert(opened).desk),
                },
            }
        };
        desk.call(&self.user, called).await
    }

    async fn open(&self) -> Result<Owner, Problem> {
        let wait = self.shared.wait.map(|wait| wait.0);
        let session = Session::open(&self.location, Purpose::Work, wait).await;
        let lock = match session.map_err(|failure| unopened(&failure))? {
            Session::There(connection) => return Ok(Owner::There(connection)),
            Session::Here(lock) => lock,
        };
        let options = Options {
            files: Files::Watched,
            selection: selection(self.grant),
            ..super::options(&self.shared, &self.location)
        };
        let (instance, listener) =
            session::open_instance(&self.runtime, &self.location.state, options, lock).await?;
        instance.wait_until_read(READ_WITHIN).await;
        let desk = Arc::new(OwnerDesk::new(Arc::clone(&instance)));
        let sharing = tokio::spawn({
            let instance = Arc::clone(&instance);
            async move { instance.share_file().await }
        });
        Ok(Owner::Here(Own {
            desk,
            instance,
            listener,
            sharing,
        }))
    }

    async fn close(&self) -> Result<(), Failure> {
        match self.own.lock().await.take() {
            Some(Own {
                desk,
                instance,
                listener,
                sharing,
            }) => {
                sharing.abort();
                // It holds the instance, and with that the state folder.
                let _ = sharing.await;
                drop(desk);
                Ok(session::close_instance(&instance, listener, &self.location.state).await?)
            }
            None => Ok(()),
        }
    }
}

enum Owner {
    There(watershed::socket::Connection),
    Here(Own),
}

/// Returns what an assistant's process runs of a project that nobody owns: nothing, if the assistant may start no work.
fn selection(grant: Grant) -> Selection {
    match grant.allows(Role::Operate) {
        true => Selection::default(),
        false => Selection {
            select: vec![NOTHING.to_owned()],
            exclude: Vec::new(),
        },
    }
}

fn unopened(failure: &Failure) -> Problem {
    let problem = Problem::new(Code::HeldElsewhere, failure.message());
    match &failure.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem,
    }
}

impl Desk for OfFolder {
    fn instances(&self, _: &Caller) -> Vec<String> {
        vec![self.name()]
    }

    fn call(&self, _: &Caller, called: Called) -> BoxFuture<'_, Result<Answered, Problem>> {
        if self.name() != called.instance {
            let message = format!("there is no project `{}` here", called.instance);
            let refused = Problem::new(Code::UnknownName, message).hint("leave `instance` out");
            return Box::pin(async move { Err(refused) });
        }
        Box::pin(self.ask(called))
    }
}

#[cfg(test)]
mod tests {
    use watershed_callers::Level;

    use super::*;

    #[test]
    fn s_api41_who_may_start_no_work_has_nothing_built_by_looking() {
        assert!(!selection(Grant::new(Level::Read)).is_empty());
        assert!(selection(Grant::new(Level::Operate)).is_empty());
    }
}
