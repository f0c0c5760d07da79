//! The process of a pod: it listens on loopback and says who it is, until its folder goes.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::interval;

use crate::{Fallible, effects};

/// The time between two looks at the folder. Who lost it has nothing to live for.
const LOOK: Duration = Duration::from_millis(500);

/// Runs until the folder is gone.
///
/// Of several for one folder one alone lives: the lock is the system's, and goes with its process.
pub(crate) async fn run(folder: &Path, name: &str) -> Fallible<()> {
    let lock = File::create(folder.join("lock"))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let pid = std::process::id();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    if let Some(lab) = folder.parent().and_then(Path::parent) {
        effects::note(lab, &format!("boot {name} {pid} {port}"))?;
    }
    let new = folder.join("address.new");
    fs::write(&new, format!("{{\"pid\": {pid}, \"port\": {port}}}"))?;
    fs::rename(new, folder.join("address"))?;
    let mark = folder.file_name().unwrap_or_default().as_encoded_bytes();
    let mut look = interval(LOOK);
    while folder.join("address").exists() {
        tokio::select! {
            _ = look.tick() => {}
            called = listener.accept() => if let Ok((mut caller, _)) = called {
                // Who does not listen has hung up.
                let _ = caller.write_all(mark).await;
            },
        }
    }
    Ok(())
}
