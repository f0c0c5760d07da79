//! A program and what it runs with: the part that jobs and services share.

use std::collections::BTreeSet;

use watershed_proto::{Container, Mount, OutputLimits, Port, Program, Stopping};

use crate::{
    diagnostics::{At, Code},
    kinds::Reader,
    text::size::parse_size,
    yaml::{Fields, Node, item, keys::blocks, word},
};

blocks! {
    /// Keys of the block `docker`.
    pub(crate) static DOCKER = "docker" Refused {
        "image": Text, "The image, with its tag.";
        "pull": Word(&PULLS), "When the image is pulled; `missing`.";
        "network": Text, "The network that the container joins: `bridge`, `host`, `none` or one of the engine's; `bridge`.";
        "mounts": List(&Block(&MOUNT)), "Folders and files of the project that the container sees.";
    }

    /// Keys of a mount.
    pub(crate) static MOUNT = "mount" Refused {
        "from": Text, "The path below the project's root.";
        "to": Text, "The absolute path in the container.";
        "read_only": Bool, "Whether the container can't write to it.";
    }

    /// Keys of a port.
    pub(crate) static PORT = "port" Refused {
        "name": Text, "The name, under which the program finds the number.";
        "fixed": Count, "The number; a free one unless set.";
        "container": Count, "The number inside the container; the same as outside unless set.";
    }

    /// Keys of the block `stop`.
    pub(crate) static STOP = "stop" Refused {
        "signal": Word(&SIGNALS), "The signal that asks the program to end; `TERM`.";
        "grace": Duration, "How long it may take to end before it is killed; `10s`.";
    }

    /// Keys of the block `limits`.
    pub(crate) static LIMITS = "limits" Refused {
        "memory": Text, "The memory that it may use, as in `512MB`; `none`.";
        "open_files": Count, "The descriptors that it may open; 1024.";
    }

    /// Keys of the block `logs`.
    pub(crate) static LOGS = "logs" Refused {
        "max_size": Text, "The size of a file of output at which the next one begins; `10MB`.";
        "keep": Count, "Files of output that are kept; 5.";
    }
}

/// Times at which an image is pulled.
const PULLS: [&str; 3] = ["missing", "always", "never"];
/// Signals that may ask a program to end.
const SIGNALS: [&str; 7] = ["TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2"];
/// Treatments of a program when the server stops.
pub(crate) const ON_SERVER_STOP: [&str; 2] = ["keep", "stop"];

/// As Docker has it.
const GRACE_MS: u64 = 10_000;
/// The usual soft limit of a login.
const OPEN_FILES: u32 = 1024;
/// As Docker's rotation is usually set up.
const MAX_SIZE_BYTES: u64 = 10_000_000;
const KEEP: u32 = 5;
/// The highest port.
const MAX_PORT: u32 = 65_535;

/// Keys whose values may be templates.
const TEMPLATED: [&str; 4] = ["command", "run", "environment", "docker"];

/// Takes the program of a job or service.
pub(crate) fn take(reader: &mut Reader<'_, '_>, what: &str) -> Program {
    TEMPLATED.iter().for_each(|key| reader.templates_of(key));
    let fields = &mut reader.fields;
    let run_at = fields.key_at("run");
    let docker = docker(fields);
    let mut program = Program {
        command: fields.texts("command").unwrap_or_default(),
        run: fields.text("run").unwrap_or_default(),
        environment: fields.text_map("environment"),
        ..Program::default()
    };
    if let (Some(at), false) = (run_at, program.command.is_empty()) {
        let message = "a program is given by `command` or by `run`, not by both";
        fields.findings().add(at, Code::ConflictingKeys, message);
    }
    if program.command.is_empty() && program.run.is_empty() && docker.is_none() {
        let message = format!("{what} needs a program");
        let hint = "write `command: [program, argument]`, or `run:` with a text for the shell";
        let at = fields.at();
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    if let Some(node) = fields.text_node("cwd") {
        program.cwd = node.scalar_text().unwrap_or_default();
        match docker {
            Some(_) => refuse_relative(fields, "the folder of a container", &program.cwd, node.at),
            None => refuse_outside(fields, &program.cwd, node.at),
        }
    }
    ports(fields, docker.as_ref(), &mut program);
    limits(fields, &mut program);
    program.docker = docker;
    program
}

/// Refuses a path that leads out of the project.
fn refuse_outside(fields: &mut Fields<'_>, path: &str, at: At) {
    let mut depth = 0_i32;
    let mut leaves = path.starts_with('/');
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        leaves |= depth < 0;
    }
    if leaves {
        let message = format!("\"{path}\" leads out of the project");
        let hint = "write a path below the project's root";
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
}

/// Refuses a path in a container that the engine can't find.
fn refuse_relative(fields: &mut Fields<'_>, what: &str, path: &str, at: At) {
    if !path.starts_with('/') && !is_template(path) {
        let message = format!("{what} is \"{path}\", which is no absolute path");
        let hint = format!(
            "write where it is inside the container, such as `/{}`",
            path.trim_start_matches("./")
        );
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}

fn docker(fields: &mut Fields<'_>) -> Option<Container> {
    let (map, at) = fields.map("docker")?;
    let mut block = Fields::new(map, at, fields.findings());
    let image = block.text("image").unwrap_or_default();
    if image.trim().is_empty() {
        let message = "a container needs an image";
        block.findings().add(at, Code::MissingKey, message);
    }
    let mut container = Container {
        image,
        pull: word(&mut block, "pull", &PULLS).unwrap_or_else(|| "missing".to_owned()),
        network: block.text("network").unwrap_or_else(|| "bridge".to_owned()),
        mounts: Vec::new(),
    };
    for node in block.list("mounts").unwrap_or_default() {
        container.mounts.extend(mount(&mut block, node));
    }
    block.finish(&DOCKER);
    Some(container)
}

fn mount(block: &mut Fields<'_>, node: Node) -> Option<Mount> {
    let (map, at) = item(node, "a mount", block.findings())?;
    let mut fields = Fields::new(map, at, block.findings());
    let (from, to) = (fields.text_node("from"), fields.text_node("to"));
    let mount = Mount {
        from: from.as_ref().and_then(Node::scalar_text).unwrap_or_default(),
        to: to.as_ref().and_then(Node::scalar_text).unwrap_or_default(),
        read_only: fields.bool("read_only").unwrap_or_default(),
    };
    if let Some(from) = from {
        refuse_outside(&mut fields, &mount.from, from.at);
    }
    if let Some(to) = to.filter(|_| !mount.to.is_empty()) {
        refuse_relative(&mut fields, "the place of a mount", &mount.to, to.at);
    }
    if mount.from.is_empty() || mount.to.is_empty() {
        let message = "a mount needs `from` and `to`";
        fields.findings().add(at, Code::MissingKey, message);
    }
    fields.finish(&MOUNT);
    Some(mount)
}

fn ports(fields: &mut Fields<'_>, docker: Option<&Container>, program: &mut Program) {
    let mut names = BTreeSet::new();
    let network = docker.map(|docker| docker.network.as_str());
    if let Some(at) = fields.key_at("ports").filter(|_| network == Some("none")) {
        let message = "a container without a network has no ports";
        let hint = "leave `ports` out, or join another network than `none`";
        fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    for node in fields.list("ports").unwrap_or_default() {
        let Some((map, at)) = item(node, "a port", fields.findings()) else {
            continue;
        };
        let mut block = Fields::new(map, at, fields.findings());
        let container_at = block.key_at("container");
        let port = Port {
            name: block.text("name").unwrap_or_default(),
            fixed: port_number(&mut block, "fixed"),
            container: port_number(&mut block, "container"),
        };
        if !is_variable(&port.name) {
            let message = format!("\"{}\" is no name for a port", port.name);
            let hint = "the program finds the number in a variable of that name: letters, digits and `_`";
            block
                .findings()
                .add_with_hint(at, Code::InvalidValue, message, hint);
        } else if !names.insert(port.name.clone()) {
            let message = format!("there is another port \"{}\"", port.name);
            block.findings().add(at, Code::InvalidValue, message);
        }
        let message = match network {
            None => Some("`container` is the port inside a container, and there is no `docker`"),
            Some("host") => Some("in the network of the host a container has no ports of its own"),
            Some(_) => None,
        };
        if let (Some(at), Some(message)) = (container_at, message) {
            block.findings().add(at, Code::ConflictingKeys, message);
        }
        block.finish(&PORT);
        program.ports.push(port);
    }
}

fn port_number(block: &mut Fields<'_>, key: &str) -> u32 {
    let at = block.value_at(key);
    let number = block.count(key).unwrap_or_default();
    if let Some(at) = at.filter(|_| number > MAX_PORT) {
        let message = format!("there is no port {number}: the highest is {MAX_PORT}");
        block.findings().add(at, Code::InvalidValue, message);
    }
    number
}

fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn limits(fields: &mut Fields<'_>, program: &mut Program) {
    program.open_files = OPEN_FILES;
    let Some((map, at)) = fields.map("limits") else {
        return;
    };
    let mut block = Fields::new(map, at, fields.findings());
    program.memory_bytes = match block.text_node("memory") {
        Some(node) if node.scalar_text().as_deref() == Some("none") => 0,
        Some(node) => bytes(&mut block, &node).unwrap_or_default(),
        None => 0,
    };
    program.open_files = block.count("open_files").unwrap_or(OPEN_FILES);
    block.finish(&LIMITS);
}

fn bytes(block: &mut Fields<'_>, node: &Node) -> Option<u64> {
    let text = node.scalar_text().unwrap_or_default();
    let read = parse_size(&text);
    if read.is_none() {
        let message = format!("\"{text}\" is no size");
        let hint = "write a number with its unit, such as `512MB` or `1.5GiB`";
        block
            .findings()
            .add_with_hint(node.at, Code::InvalidValue, message, hint);
    }
    read
}

/// Takes the block `stop`.
pub(crate) fn stop(fields: &mut Fields<'_>) -> Stopping {
    let mut stop = Stopping {
        signal: "TERM".to_owned(),
        grace_ms: GRACE_MS,
    };
    if let Some((map, at)) = fields.map("stop") {
        let mut block = Fields::new(map, at, fields.findings());
        stop.signal = signal(&mut block).unwrap_or(stop.signal);
        stop.grace_ms = block.milliseconds("grace").unwrap_or(stop.grace_ms);
        block.finish(&STOP);
    }
    stop
}

/// A signal, with `SIG` before it or without.
fn signal(block: &mut Fields<'_>) -> Option<String> {
    let node = block.text_node("signal")?;
    let text = node.scalar_text().unwrap_or_default();
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    if SIGNALS.contains(&name) {
        return Some(name.to_owned());
    }
    let message = format!("\"signal\" can't be \"{text}\"");
    let hint = format!("one of `{}`", SIGNALS.join("`, `"));
    block
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
}

/// Takes the block `logs`.
pub(crate) fn logs(fields: &mut Fields<'_>) -> OutputLimits {
    let mut logs = OutputLimits {
        max_size_bytes: MAX_SIZE_BYTES,
        keep: KEEP,
    };
    if let Some((map, at)) = fields.map("logs") {
        let mut block = Fields::new(map, at, fields.findings());
        if let Some(node) = block.text_node("max_size") {
            logs.max_size_bytes = bytes(&mut block, &node).unwrap_or(logs.max_size_bytes);
        }
        logs.keep = block.count("keep").unwrap_or(logs.keep);
        block.finish(&LOGS);
    }
    logs
}

/// Takes a list of exit codes.
pub(crate) fn exit_codes(fields: &mut Fields<'_>, key: &str, default: &[u32]) -> Vec<u32> {
    let Some(nodes) = fields.list(key) else {
        return default.to_vec();
    };
    let mut codes = Vec::new();
    for node in nodes {
        let text = node.scalar_text().unwrap_or_default();
        match text.parse::<u32>().ok().filter(|code| *code <= 255) {
            Some(code) => codes.push(code),
            None => {
                let message = format!("\"{text}\" is no exit code: they go from 0 to 255");
                fields.findings().add(node.at, Code::InvalidValue, message);
            }
        }
    }
    codes
}
