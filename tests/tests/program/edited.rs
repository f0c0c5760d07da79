//! Files that are edited over HTTP, by a process that dies in the middle or has a full disk.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;

use crate::care::SmallDisk;
use crate::sandbox::Sandbox;
use crate::serving::Serving;

const OLD: &str = "-- @materialize: true\nSELECT 1 AS a\n";
const NEW: &str = "-- @materialize: true\nSELECT 2 AS a, 'a longer text' AS b\n";

fn project() -> Sandbox {
    Sandbox::with(&[("watershed.yaml", "{}\n"), ("models/kept.sql", OLD)])
}

/// Sends a call about a file, and returns the status and the answer; none if the process died first.
fn call(address: SocketAddr, method: &str, file: &str, text: &str) -> Option<(u16, String)> {
    let name = "/v1/instances";
    let mut stream = TcpStream::connect(address).ok()?;
    let listed = {
        let mut listing = TcpStream::connect(address).ok()?;
        let head = format!("GET {name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        listing.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        listing.read_to_string(&mut answer).ok()?;
        let body = answer.split_once("\r\n\r\n")?.1.to_owned();
        let listed: serde_json::Value = serde_json::from_str(&body).ok()?;
        listed["instances"][0]["name"].as_str()?.to_owned()
    };
    let head = format!(
        "{method} {name}/{listed}/files/{file} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nif-match: *\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

#[test]
fn s_api23_dead_at_any_point_of_an_edit_the_old_file_or_the_new_one_is_whole() {
    for point in watershed_drivers::FILE_CRASH_POINTS {
        let project = project();
        let mut command = project.command(&["start", "--listen=127.0.0.1:0"]);
        command.env("FAILPOINTS", format!("{point}=return"));
        let service = Serving::of(command);
        let method = match point.ends_with("delete") {
            true => "DELETE",
            false => "PUT",
        };
        let answer = call(service.address, method, "models/kept.sql", NEW);
        assert_eq!(answer, None, "{point}");
        drop(service);
        let text = fs::read_to_string(project.path().join("models/kept.sql")).expect("a file");
        let expected = if point.ends_with("after_rename") { NEW } else { OLD };
        assert_eq!(text, expected, "{point}");

        // The next process takes away what was left, and can edit.
        let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
        let edited = call(service.address, "PUT", "models/kept.sql", OLD).expect("an answer");
        assert_eq!(edited.0, 200, "{point}: {}", edited.1);
        service.end(Signal::TERM);
        let names = fs::read_dir(project.path().join("models")).expect("a folder");
        let names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(names, ["kept.sql"], "{point}");
    }
}

#[test]
fn s_api23_on_a_full_disk_nothing_is_changed_and_the_answer_says_why() {
    let project = project();
    let models = project.path().join("models");
    let Some(_disk) = SmallDisk::mount(&models, "64k") else {
        println!("mounting is not allowed here");
        return;
    };
    fs::write(models.join("kept.sql"), OLD).expect("it fits");
    let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    let large = format!("-- {}\n", "x".repeat(100_000));
    let (status, answer) = call(service.address, "PUT", "models/kept.sql", &large).expect("an answer");
    assert_eq!(status, 507, "{answer}");
    assert!(answer.contains("\"no-space\""), "{answer}");
    let text = fs::read_to_string(models.join("kept.sql")).expect("a file");
    assert_eq!(text, OLD);
    let (status, answer) = call(service.address, "PUT", "models/kept.sql", NEW).expect("an answer");
    assert_eq!(status, 200, "{answer}");
    let names = fs::read_dir(&models).expect("a folder").count();
    assert_eq!(names, 1);
    service.end(Signal::TERM);
}
