//! Memory, and a controller that has nothing to do.

use std::process::Command;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use watershed_controller::{
    Batch, Context, Controller, Edit, Error, KindOptions, Outcome, Reconciler, Timestamp,
};
use watershed_tests::measure::{Report, Unit};

use crate::world::{LOOSE, finish, idle, name, resource, start};
use watershed_controller::store::MemoryStore;

/// Resources of the catalog whose memory is measured.
const MANY: usize = 1_000_000;
/// Set for the process that measures its own memory, which must have done nothing else before.
const ALONE: &str = "WATERSHED_BENCH_ALONE";
/// The time for which an idle controller is watched.
const WATCHED: Duration = Duration::from_secs(20);

pub(crate) async fn measure(report: &Report) {
    if report.wants("bytes_per_resource_1m") {
        if std::env::var_os(ALONE).is_some() {
            let bytes = bytes_per_resource().await;
            report.print("bytes_per_resource_1m", Unit::Bytes, vec![bytes]);
        } else {
            let program = std::env::current_exe().expect("this program's path");
            let mut itself = Command::new(program);
            itself.args(["--only", "bytes_per_resource_1m"]).env(ALONE, "1");
            itself.args(std::env::args().filter(|argument| argument == "--json"));
            assert!(
                itself.status().expect("it runs").success(),
                "the measurement failed"
            );
        }
    }
    if report.wants("idle_cpu_ms_per_min") {
        report.print("idle_cpu_ms_per_min", Unit::Milliseconds, vec![idle_cpu().await]);
    }
}

/// Memory of the process per resource of an idle catalog beyond the bytes of its name; spec and state are empty.
async fn bytes_per_resource() -> f64 {
    let before = resident_bytes();
    let controller = start(MemoryStore::new()).await;
    for first in (0..MANY).step_by(10_000) {
        let edits = (first..first + 10_000).map(|number| Edit::create(resource(number, LOOSE)));
        let batch = Batch {
            edits: edits.collect(),
        };
        controller.edit(batch).await.expect("the batch is taken");
        idle(&controller).await;
    }
    let bytes = (resident_bytes() - before) / MANY as f64 - name(0).len() as f64;
    finish(controller).await;
    bytes
}

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<f64>().ok());
    pages.unwrap_or(f64::NAN) * rustix::param::page_size() as f64
}

/// Every hundredth resource asks to be run again in a year.
struct Later;

impl Reconciler for Later {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let is_one = context.name().as_str().ends_with("00");
        let in_a_year = Timestamp(context.row().updated_at.0 + 365 * 24 * 60 * 60 * 1_000);
        Ok(Outcome {
            retrigger: is_one.then_some(in_a_year),
            ..Outcome::default()
        })
    }
}

/// Milliseconds of CPU in a minute of nothing to do.
async fn idle_cpu() -> f64 {
    let controller = Controller::builder().kind(KindOptions::new("thing"), Later);
    let controller = controller.start().await.expect("the controller starts");
    let edits = (0..100_000)
        .map(|number| Edit::create(resource(number, LOOSE)))
        .collect();
    controller
        .edit(Batch { edits })
        .await
        .expect("the batch is taken");
    idle(&controller).await;
    let before = process_cpu_ms();
    tokio::time::sleep(WATCHED).await;
    let spent = process_cpu_ms() - before;
    finish(controller).await;
    spent * 60.0 / WATCHED.as_secs_f64()
}

fn process_cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
