//! A small static file server: what a server item runs.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};

/// Serves a folder on a free port of this machine until it is ended. Its address is in a file when it is ready.
pub(crate) fn serve(folder: &str, settings: &str, address: &str, _tag: &str) -> Result<(), Box<dyn Error>> {
    let settings = std::fs::read_to_string(settings)?;
    let title = settings.lines().next().unwrap_or_default().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = Path::new(address);
    std::fs::write(part_of(address), listener.local_addr()?.to_string())?;
    std::fs::rename(part_of(address), address)?;
    // Whoever started this may have been killed meanwhile, which is no reason to end.
    let _ = writeln!(std::io::stdout(), "ready");
    for stream in listener.incoming() {
        // A visitor that went away is nobody's problem.
        let _ = answer(stream?, Path::new(folder), &title);
    }
    Ok(())
}

/// Returns the path at which an address is written before it takes its place whole.
pub(crate) fn part_of(address: &Path) -> PathBuf {
    address.with_extension("part")
}

fn answer(mut stream: TcpStream, folder: &Path, title: &str) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let wanted = request.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
    let is_inside = Path::new(wanted)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let found = if is_inside {
        std::fs::read(folder.join(wanted)).ok()
    } else {
        None
    };
    let status = if found.is_some() {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let body = found.unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nX-Title: {title}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}
