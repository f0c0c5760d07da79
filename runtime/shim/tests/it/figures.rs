//! Measurements, run by hand: `cargo test --release -p watershed-shim --test it figures -- --ignored --nocapture`.

use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use watershed_shim::protocol::{Phase, Spawn, Then};

use crate::support::{Rig, id, stop, until};

/// Number of processes at a time.
const COUNT: u64 = 1_000;

/// Number of concurrent calls: as many as replicas are reconciled at once.
const AT_ONCE: usize = 64;

/// Returns the proportional memory of a process (PSS), in KiB.
fn pss_kib(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the processor time of a process in milliseconds, as counted by the scheduler.
fn cpu_ms(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}

fn sleeper(rig: &Rig, index: u64) -> Spawn {
    let mut order = rig.order(&id(&format!("u{index}"), 1), &[]);
    order.command = ["/bin/sleep", "1000"].map(str::to_owned).into();
    order.output = Some(watershed_shim::protocol::Output {
        path: rig.path(&format!("logs/{index}")),
        max_size: 10 << 20,
        keep: 5,
    });
    order.limits.open_files = Some(1_024);
    order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures for a minute"]
async fn figures() {
    let began = Instant::now();
    let mut bare = Vec::new();
    for _ in 0..COUNT {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null());
        bare.push(command.spawn().unwrap());
    }
    let floor = began.elapsed();
    for child in &mut bare {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    let rig = Rig::new();
    let client = rig.client(1);
    let shim = client.shim().await.unwrap();
    let (memory, cpu) = (pss_kib(shim), cpu_ms(shim));
    let began = Instant::now();
    let next = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let rig = std::sync::Arc::new(rig);
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (client, next, rig) = (client.clone(), next.clone(), rig.clone());
            tokio::spawn(async move {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if index >= COUNT {
                        return;
                    }
                    let process = client.spawn(sleeper(&rig, index)).await.unwrap();
                    assert!(matches!(process.phase, Phase::Running { .. }));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let took = began.elapsed();
    println!("bare loop: {:.0} starts/s", COUNT as f64 / floor.as_secs_f64());
    println!(
        "shim: {:.0} starts/s, {:.2} of the floor's time, {:.0} ms on a processor",
        COUNT as f64 / took.as_secs_f64(),
        took.as_secs_f64() / floor.as_secs_f64(),
        cpu_ms(shim) - cpu,
    );
    let kib = (pss_kib(shim) - memory) as f64 / COUNT as f64;
    println!("memory: {memory} KiB without processes, {kib:.2} KiB for each");
    let before = cpu_ms(shim);
    sleep(Duration::from_secs(30)).await;
    println!(
        "idle: {:.2} ms on a processor a minute",
        (cpu_ms(shim) - before) * 2.0
    );

    let began = Instant::now();
    assert_eq!(client.list().await.unwrap().len() as u64, COUNT);
    println!("list of all: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);

    let mut news = client.news();
    let mut times = Vec::new();
    for index in 0..100 {
        let all = client.list().await.unwrap();
        let Phase::Running { pid, .. } = all[index].phase else {
            continue;
        };
        let began = Instant::now();
        crate::support::kill(pid);
        news.recv().await.unwrap();
        let next = id(all[index].id.uid(), 2);
        let mut order = sleeper(&rig, 0);
        order.id = next;
        client.spawn(order).await.unwrap();
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "kill to successor: p50 {:.1} ms, p99 {:.1} ms",
        times[49], times[98]
    );

    crate::support::kill(shim);
    let began = Instant::now();
    let all = client.list().await.unwrap();
    println!(
        "another shim has adopted all: {:.0} ms",
        began.elapsed().as_secs_f64() * 1e3
    );
    let shim = client.shim().await.unwrap();
    let before = cpu_ms(shim);
    sleep(Duration::from_secs(10)).await;
    println!(
        "idle with adopted ones: {:.2} ms a minute",
        (cpu_ms(shim) - before) * 6.0
    );
    let began = Instant::now();
    for process in &all {
        client
            .stop(stop(&process.id, "TERM", 1_000, Then::ForgetWithOutput))
            .await
            .unwrap();
    }
    until("all are gone", || async {
        client.list().await.unwrap().is_empty().then_some(())
    })
    .await;
    println!(
        "all stopped and forgotten: {:.0} ms",
        began.elapsed().as_secs_f64() * 1e3
    );
    until("nothing is left", || {
        std::future::ready(rig.processes().is_empty().then_some(()))
    })
    .await;
    assert!(!rig.path("logs").exists());
}
