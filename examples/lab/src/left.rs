//! Leftovers outside: folders, processes and ports that nobody removed.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::effects;

/// The time in which a port on loopback answers, if somebody listens.
const CONNECT_WITHIN: Duration = Duration::from_millis(200);

/// Returns what of the lab is still there, in words.
pub(crate) fn all(lab: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for folder in ["sessions", "pods", "workers"] {
        let entries = fs::read_dir(lab.join(folder)).into_iter().flatten().flatten();
        left.extend(entries.map(|entry| format!("the folder {folder}/{}", entry.file_name().display())));
    }
    for line in effects::all(lab) {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["boot", name, pid, port] = words.as_slice() {
            if lives(pid, lab) {
                left.push(format!("the process {pid} of {name}"));
            }
            if port.parse().is_ok_and(listens) {
                left.push(format!("the port {port} of {name}"));
            }
        }
    }
    left
}

/// Returns true if a process runs a pod of this lab: another one may have its number by now.
pub(crate) fn lives(pid: &str, lab: &Path) -> bool {
    let command = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains(&*lab.to_string_lossy())
}

fn listens(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_ok()
}
