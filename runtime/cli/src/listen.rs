//! `start --listen`: the project over HTTP, beside what it does anyway.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watershed::Instance;
use watershed::http::{Service, bind, local_user, router, serve};
use watershed::program::Stop;
use watershed_api::Exit;

use super::args::Start;
use super::console::Console;
use super::failure::Failure;

/// A service that answers until it is ended.
pub(super) struct Listening {
    service: Service,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Begins to answer over HTTP, where an address was given for that.
///
/// # Errors
/// When the address is taken, or can be reached from other machines.
pub(super) async fn begin(
    console: &mut Console,
    args: &Start,
    instance: &Arc<Instance>,
    ending: &Stop,
) -> Result<Option<Listening>, Failure> {
    let Some(address) = args.listen else {
        return Ok(None);
    };
    let listener = bind(address).await.map_err(|error| refused(address, &error))?;
    let bound = listener.local_addr().unwrap_or(address);
    let base = checked_base(args.base.as_deref().unwrap_or_default())?;
    let service = Service::new()
        .with(instance.name(), Arc::clone(instance))
        .below(base);
    let stop = CancellationToken::new();
    // Streams say good-bye before anything is stopped that they tell of.
    tokio::spawn({
        let (service, stop, ending) = (service.clone(), stop.clone(), ending.clone());
        async move {
            tokio::select! {
                () = ending.asked() => {}
                () = stop.cancelled() => {}
            }
            service.stop();
            stop.cancel();
        }
    });
    let routes = router(service.clone(), local_user);
    let routes = match base {
        "" => routes,
        base => axum::Router::new().nest(base, routes),
    };
    let serving = tokio::spawn(serve(listener, routes, stop.clone()));
    console.note(&format!("answers at http://{bound}{base}\n"));
    Ok(Some(Listening {
        service,
        stop,
        serving,
    }))
}

impl Listening {
    /// Tells streams to end, takes no more requests, and waits for those that are under way.
    pub(super) async fn end(self) {
        self.service.stop();
        self.stop.cancel();
        let _ = self.serving.await;
    }
}

/// Returns a path to stand below, without a slash at its end.
fn checked_base(base: &str) -> Result<&str, Failure> {
    let base = base.trim_end_matches('/');
    let is_plain = |segment: &str| {
        let is_of_a_path = |sign: char| sign.is_ascii_alphanumeric() || "-_.~".contains(sign);
        !segment.is_empty() && segment.chars().all(is_of_a_path) && !segment.trim_matches('.').is_empty()
    };
    let is_path = base
        .strip_prefix('/')
        .is_some_and(|path| path.split('/').all(is_plain));
    match base.is_empty() || is_path {
        true => Ok(base),
        false => Err(Failure {
            exit: Exit::Usage,
            error: anyhow::anyhow!("`{base}` is no path to stand below"),
            hint: Some("write a slash and plain names, as in `--base /data`".into()),
        }),
    }
}

fn refused(address: SocketAddr, error: &std::io::Error) -> Failure {
    let (exit, hint) = match error.kind() {
        std::io::ErrorKind::AddrInUse => (
            Exit::NotNow,
            "another process listens there: end it, or choose another address with `--listen=127.0.0.1:PORT`",
        ),
        std::io::ErrorKind::InvalidInput => (
            Exit::Usage,
            "listen on 127.0.0.1, and put a proxy that signs people in before it",
        ),
        _ => (
            Exit::NotNow,
            "choose another address with `--listen=127.0.0.1:PORT`",
        ),
    };
    Failure {
        exit,
        error: anyhow::anyhow!("can't listen on {address}: {error}"),
        hint: Some(hint.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_to_stand_below_has_plain_names() {
        for (base, taken) in [("", ""), ("/", ""), ("/data", "/data"), ("/a/b-1/", "/a/b-1")] {
            assert_eq!(checked_base(base).ok(), Some(taken), "{base}");
        }
        for base in ["data", "/{x}", "/:x", "/a b", "/da?ta", "//x", "/a/../b", "/."] {
            assert!(checked_base(base).is_err(), "{base}");
        }
    }
}
