//! Memory of what does nothing: instances, connections, streams.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use watershed_tests::measure::{Report, Unit};

use super::client::Client;
use super::projects::write_small;
use super::serving::Serving;

/// Rounds of each figure: memory differs little between them.
const ROUNDS: usize = 3;

/// Measures the memory of an instance with ten resources, from servers with many and with few.
pub(crate) fn instances(report: &Report, few: usize, many: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_small(folder.path(), many);
    let mut each = Vec::new();
    // The first start builds everything.
    configure(folder.path(), many, "");
    resident(folder.path());
    for _ in 0..ROUNDS {
        let [with_few, with_many] = [few, many].map(|number| {
            configure(folder.path(), number, "");
            resident(folder.path())
        });
        #[expect(clippy::cast_precision_loss, reason = "there are hundreds")]
        each.push((with_many - with_few) / 1_024.0 / (many - few) as f64);
    }
    report.print("idle_instance_mb", Unit::Megabytes, each);
}

/// Measures the memory of a connection that has asked once, and of one that watches.
pub(crate) async fn connections(report: &Report, connections: usize, streams: usize) {
    let folder = tempfile::tempdir().unwrap();
    write_small(folder.path(), 1);
    configure(folder.path(), 1, "");
    // The first start builds everything.
    resident(folder.path());
    let (mut kept, mut watching) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let serving = Serving::start(folder.path());
        serving.wait_until_ready();
        let client = Client {
            address: serving.address,
            bearer: "",
        };
        // What the first requests bring into memory belongs to no connection.
        for _ in 0..100 {
            client
                .connect()
                .await
                .get("/v1/instances/p0/resources/model/m0")
                .await;
            listed(client.connect().await.watch_of("p0").await).await;
        }
        let before = serving.resident_kib();
        let mut open = Vec::new();
        for _ in 0..connections {
            let mut connection = client.connect().await;
            connection.get("/v1/instances/p0/resources/model/m0").await;
            open.push(connection);
        }
        #[expect(clippy::cast_precision_loss, reason = "there are thousands")]
        kept.push((serving.resident_kib() - before) / connections as f64);
        drop(open);
        let before = serving.resident_kib();
        let mut open = Vec::new();
        for _ in 0..streams {
            open.push(listed(client.connect().await.watch_of("p0").await).await);
        }
        #[expect(clippy::cast_precision_loss, reason = "there are thousands")]
        watching.push((serving.resident_kib() - before).max(0.0) / streams as f64);
        drop(open);
        serving.stop();
    }
    report.print("idle_kb_http", Unit::Kibibytes, kept);
    report.print("idle_kb_sse", Unit::Kibibytes, watching);
}

/// Starts a server, waits until it is ready and at rest, and returns its memory in KiB.
pub(crate) fn resident(folder: &Path) -> f64 {
    let serving = Serving::start(folder);
    serving.wait_until_ready();
    // Engines that were opened are given up after a while of rest: the least of some seconds is that of rest.
    let mut least = f64::MAX;
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(250));
        least = least.min(serving.resident_kib());
    }
    serving.stop();
    least
}

/// Reads a stream until everything was listed.
async fn listed(mut stream: TcpStream) -> TcpStream {
    let mut read = Vec::new();
    while !read.windows(13).any(|some| some == b"event: listed") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
    }
    stream
}

/// Writes the configuration of a server with instances `p0`, `p1`, ... and these lines.
pub(crate) fn configure(folder: &Path, instances: usize, more: &str) {
    let many = 1_000_000;
    let mut text = format!(
        "listen: 127.0.0.1:0\n{more}limits: {{connections: 100000, watchers: 100000, watchers_per_principal: 100000, requests_per_second: {many}, requests_at_once: {many}}}\ninstances:\n"
    );
    for n in 0..instances {
        text.push_str(&format!("  p{n}: {{project: p{n}, trust: full}}\n"));
    }
    fs::write(folder.join("server.yaml"), text).unwrap();
}
