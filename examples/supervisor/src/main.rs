//! A supervisor: `supervisor FOLDER COMMAND...` keeps shell commands running, restarts them when they end, and stops
//! them when it is interrupted. Killed and started again, it finds what still runs.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Event, Limits, Select, Uid};
use watershed_proto::ServiceSpec;
use watershed_shim::protocol::Lifetime;
use watershed_workloads::backend::process::LocalProcesses;
use watershed_workloads::replica::{ReplicaRecord, ReplicaSpec};
use watershed_workloads::service::ServiceReconciler;
use watershed_workloads::{Service, Workloads};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        // The parent of the processes, which outlives this program, is the same one under another name.
        [first, state] if first == "shim" => tokio::task::block_in_place(|| {
            let (state_folder, idle) = (state.into(), watershed_shim::IDLE);
            watershed_shim::run(&watershed_shim::Settings { state_folder, idle })?;
            Ok(())
        }),
        [folder, commands @ ..] if !commands.is_empty() => supervise(Path::new(folder), commands).await,
        _ => Err("usage: supervisor FOLDER COMMAND...".into()),
    }
}

async fn supervise(folder: &Path, commands: &[String]) -> Result<(), Box<dyn Error>> {
    // Before anything is told: whoever reads that may interrupt at once.
    let mut interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let state = folder.join("state");
    std::fs::create_dir_all(&state)?;
    let processes = LocalProcesses {
        program: std::env::current_exe()?,
        arguments: vec!["shim".into(), state.clone().into()],
        state_folder: state,
        lifetime: Lifetime::Keep,
    };
    let workloads = Workloads::builder(folder, folder.join("output"))
        .backend(processes)
        .build();
    let builder = Controller::builder()
        .store(SqliteStore::open(folder.join("catalog.db")).await?)
        .limits(Limits::default().concurrency(4 + workloads.concurrency()));
    let controller = workloads.register(builder).start().await?;
    workloads.watch(controller.handle());

    // What is wanted is declared once. A command that ends is restarted after 10 s, 20 s and 40 s, whatever its code is;
    // after five failures in a row a person must look.
    for command in commands {
        let mut spec = ServiceSpec {
            replicas: 1,
            ..ServiceSpec::default()
        };
        spec.program.get_or_insert_default().run.clone_from(command);
        let services = controller.resources::<ServiceReconciler>();
        services.apply(command.as_str(), &Service(spec)).await?;
    }
    let mut changes = controller.watch(controller.list(Select::all()).revision);
    let mut told = BTreeMap::new();
    loop {
        tell(&controller, &mut told)?;
        tokio::select! {
            change = changes.next() => if matches!(change, None | Some(Event::Lagged)) { break },
            _ = interrupts.recv() => break,
        }
    }
    workloads.leave();
    let handle = controller.handle();
    controller.shutdown(Duration::from_secs(10)).await?;
    workloads.stop(&handle, |_| true).await;
    Ok(())
}

/// Prints each replica whose stage has changed.
#[allow(clippy::print_stdout, reason = "it says what runs")]
fn tell(controller: &Controller, told: &mut BTreeMap<Uid, String>) -> Result<(), Box<dyn Error>> {
    for resource in controller.list(Select::kind("replica").with_hidden()).resources {
        let spec: ReplicaSpec = resource.spec()?;
        let record: ReplicaRecord = resource.state()?.unwrap_or_default();
        let process = record.backend_id.unwrap_or_default();
        let line = format!("{}: {} {process}", spec.service, record.stage.as_str());
        if told.insert(resource.uid(), line.clone()) != Some(line.clone()) {
            println!("{line}");
        }
    }
    Ok(())
}
