//! A kind whose work fails now and then: transient errors are retried with growing waits, permanent errors wait for an
//! edit or a request.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use watershed_controller::kind::OnOwned;
use watershed_controller::{
    Context, Controller, Error, Key, KindOptions, Outcome, Reconciler, Resource, RetryPolicy, Work,
    json_message,
};

/// Address that should be reachable, as a spec.
#[derive(serde::Serialize, serde::Deserialize)]
struct Address(String);

/// Number of the attempt that reached the address, as a state.
#[derive(serde::Serialize, serde::Deserialize)]
struct Reached(u32);

json_message!(Address, format = 1);
json_message!(Reached, format = 1);

/// Reconciler whose network fails twice and then works.
#[derive(Default)]
struct Dialler {
    tried: AtomicU32,
}

impl Reconciler for Dialler {
    type Spec = Address;
    type State = Reached;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !context.spec().0.contains(':') {
            let mut error = Error::permanent("no-port", "the address has no port, expected HOST:PORT");
            error.hint = Some("say which port is meant, as in `localhost:80`".into());
            return Err(error);
        }
        let attempt = self.tried.fetch_add(1, Ordering::Relaxed) + 1;
        if attempt < 3 {
            return Err(Error::transient(
                "unreachable",
                format!("attempt {attempt} failed"),
            ));
        }
        context.set_state(&Reached(attempt)).await?;
        Ok(Outcome::from_work(Work::Built))
    }
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "an example shows what happens")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = KindOptions::new("address");
    options = options.retry(RetryPolicy::Backoff {
        base: Duration::from_millis(10),
        cap: Duration::from_secs(60),
        attempts: 5,
        reset_after: Duration::from_secs(600),
    });
    options = options.on_owned(OnOwned::default());
    let controller = Controller::builder()
        .kind(options, Dialler::default())
        .start()
        .await?;

    let key = Key::new("address", "server");
    controller
        .create(Resource::declare(
            "address",
            "server",
            &Address("localhost".into()),
        )?)
        .await?;
    controller.wait_until_idle(Duration::from_secs(10)).await?;
    let refused = controller.get(key.clone())?;
    println!(
        "{}",
        refused.row.error.as_ref().map_or("", |error| &*error.message)
    );

    // An edit forgets the failures and asks at once; what fails then is tried again by itself.
    controller
        .update_spec(key.clone(), &Address("localhost:80".into()))
        .await?;
    let reached =
        |found: Option<&watershed_controller::Resource>| found.is_some_and(|it| it.row.state.is_some());
    let found = controller
        .wait_until(key.clone(), reached, Duration::from_secs(10))
        .await?;
    let state = found.ok_or("it is there")?.state::<Reached>()?;
    println!("reached at attempt {}", state.map_or(0, |reached| reached.0));
    for run in controller.history(key, 10).await?.iter().rev() {
        println!("- {}: {:?}", run.reason.trigger, run.result);
    }
    Ok(())
}
