//! Embeds the data runtime: brings a project up to date and says how one of its resources ended.

use std::time::Duration;

use watershed::{Options, Runtime};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(project), Some(name)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: embed-runtime PROJECT RESOURCE");
    };
    let runtime = Runtime::new();
    let instance = runtime.open(Options::new(project)).await?;
    instance.controller().wait_until_idle(Duration::from_secs(60)).await?;

    let mut request = instance.reconcile(&name).await?;
    let outcome = request.outcome(Duration::from_secs(60)).await?;
    println!("{name}: {outcome:?}");

    instance.close(Duration::from_secs(10)).await?;
    Ok(())
}
