//! Programs: the settings that jobs and services share.

use std::collections::{BTreeMap, BTreeSet};

use watershed_proto::{Container, Mount, OutputLimits, Port, Program, Stopping};

use super::Reader;
use crate::{
    diagnostics::{At, Code},
    text::{names, size::parse_size},
    yaml::{
        Fields, Node,
        bounds::{self, Counts},
        item,
        keys::blocks,
        word,
    },
};

blocks! {
    /// Keys of the block `docker`.
    pub(crate) static DOCKER = "docker" Refused {
        "image": Text, "The image, with its tag.";
        "pull": Word(&PULLS), "When the image is pulled; `missing`.";
        "network": Text, "The network that the container joins: `bridge`, `host`, `none` or one of the engine's; `bridge`.";
        "mounts": List(&Block(&MOUNT)), "Folders and files of the project that the container sees.";
    }

    /// Keys that each mount of a program accepts.
    pub(crate) static MOUNT = "mount" Refused {
        "from": Text, "The path below the project's root.";
        "to": Text, "The absolute path in the container.";
        "read_only": Bool, "Whether the container can't write to it.";
    }

    /// Keys that each port of a program accepts.
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

/// The accepted words for when to pull an image.
const PULLS: [&str; 3] = ["missing", "always", "never"];
/// Signals that may be sent to ask a program to end.
const SIGNALS: [&str; 7] = ["TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2"];
/// The ways to treat a program when the server stops.
pub(crate) const ON_SERVER_STOP: [&str; 2] = ["keep", "stop"];

/// The shortest wait before a restart, in milliseconds, so that a crash loop does not take all of the machine.
const LEAST_WAIT_MS: u64 = 10;
/// The smallest limit of an output file, in bytes.
const LEAST_SIZE_BYTES: u64 = 1_000;
const KEPT: Counts = Counts {
    least: 0,
    most: 1_000,
};
/// The smallest memory limit, in bytes; no program starts with less.
const LEAST_MEMORY_BYTES: u64 = 1_000_000;
const LEAST_OPEN_FILES: u32 = 16;
/// Variables that every program outside a container has.
const GIVEN: [&str; 3] = ["PATH", "HOME", "LANG"];
/// The prefix of reserved variables, by which processes are found again.
const OWN_PREFIX: &str = "WATERSHED_";
/// Names of shells, which expand variables in their command by themselves.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];

/// The default time between the stop signal and the kill, in milliseconds, as in Docker.
const GRACE_MS: u64 = 10_000;
/// The default limit of open files, the usual one of a login.
const OPEN_FILES: u32 = 1024;
/// The default limit of an output file in bytes, as Docker's rotation is usually set up.
const MAX_SIZE_BYTES: u64 = 10_000_000;
const KEEP: u32 = 5;
/// The highest port number.
const MAX_PORT: u32 = 65_535;

/// Keys whose values may contain templates.
const TEMPLATED: [&str; 4] = ["command", "run", "environment", "docker"];

/// Takes the program of a job or service, `what` being its kind in messages.
pub(crate) fn take(reader: &mut Reader<'_, '_>, what: &str) -> Program {
    TEMPLATED.iter().for_each(|key| reader.templates_of(key));
    let refs = std::mem::take(&mut reader.about.refs);
    let fields = &mut reader.fields;
    let run_at = fields.key_at("run");
    let command_at = fields.texts_at("command");
    let names_at = fields.keys_at("environment");
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
    variables(fields, &program, &names_at);
    unknown_names(fields, &program, &refs, &command_at);
    program
}

/// Reports environment variables that have an invalid or a reserved name.
fn variables(fields: &mut Fields<'_>, program: &Program, names_at: &BTreeMap<String, At>) {
    for (name, text) in &program.environment {
        let at = names_at.get(name).copied().unwrap_or(fields.at());
        let port = program.ports.iter().find(|port| port.name == *name);
        let message = match port {
            _ if name.is_empty() || name.contains(['=', '\0']) => {
                format!("\"{name}\" is no name for a variable")
            }
            _ if name.starts_with(OWN_PREFIX) => {
                format!("\"{name}\" is a name of ours: variables of `{OWN_PREFIX}` find a process again")
            }
            Some(_) if !text.contains(&format!("${{{name}}}")) => {
                format!("\"{name}\" is a port, whose number the program finds under that name")
            }
            _ => continue,
        };
        fields.findings().add(at, Code::InvalidValue, message);
    }
}

/// Reports `${NAME}` in a command if no such variable is known. Commands of shells are not checked, as shells have
/// variables of their own.
fn unknown_names(fields: &mut Fields<'_>, program: &Program, refs: &[String], command_at: &[At]) {
    let first = program.command.first().map(String::as_str).unwrap_or_default();
    let is_shell = SHELLS.contains(&first.rsplit('/').next().unwrap_or_default());
    if is_shell {
        return;
    }
    let given = GIVEN.into_iter().filter(|_| program.docker.is_none());
    let ports = program.ports.iter().map(|port| port.name.as_str());
    let known: BTreeSet<&str> = given
        .chain(ports)
        .chain(program.environment.keys().map(String::as_str))
        .collect();
    // The addresses of a service begin with its name.
    let prefixes: Vec<String> = refs.iter().map(|name| address_prefix(name)).collect();
    for (text, at) in program.command.iter().zip(command_at) {
        for name in names_in(text) {
            if known.contains(name) || prefixes.iter().any(|prefix| name.starts_with(prefix.as_str())) {
                continue;
            }
            let message = format!("nothing is called \"{name}\", so `${{{name}}}` stays as it is");
            let hint = match names::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `${{{near}}}`?"),
                None => "list it under `environment`, or under `ports`".to_owned(),
            };
            fields
                .findings()
                .add_with_hint(*at, Code::UnknownVariable, message, hint);
        }
    }
}

/// Returns the prefix of the variables that hold a service's addresses, such as `MY_API_`.
fn address_prefix(service: &str) -> String {
    let upper = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    service.chars().map(upper).chain(['_']).collect()
}

/// Returns the names of variables in `${NAME}` expressions of a text.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("${").skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .filter(|name| is_variable(name))
}

/// Takes the wait before a restart, in milliseconds.
pub(crate) fn wait(fields: &mut Fields<'_>, key: &str) -> Option<u64> {
    bounds::milliseconds(
        fields,
        key,
        LEAST_WAIT_MS,
        "a program that ends at once would be started without a pause",
    )
}

/// Reports a path that leads out of the project.
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

/// Reports a path that is not absolute, which a container needs.
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
    let mut taken = BTreeSet::new();
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
        } else if GIVEN.contains(&port.name.as_str()) || port.name.starts_with(OWN_PREFIX) {
            let message = format!(
                "a port can't be named \"{}\": the program needs the environment variable of that name",
                port.name
            );
            let hint = "call it `PORT`, or `WEB_PORT`";
            block
                .findings()
                .add_with_hint(at, Code::InvalidValue, message, hint);
        } else if !taken.insert(port.name.clone()) {
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
        Some(node) => {
            bytes_from(&mut block, &node, LEAST_MEMORY_BYTES, "`none` is for no bound").unwrap_or_default()
        }
        None => 0,
    };
    program.open_files = open_files(&mut block).unwrap_or(OPEN_FILES);
    block.finish(&LIMITS);
}

/// Takes the limit of open file descriptors; 0 means no limit.
fn open_files(block: &mut Fields<'_>) -> Option<u32> {
    let at = block.value_at("open_files");
    let number = block.count("open_files")?;
    if (1..LEAST_OPEN_FILES).contains(&number) {
        let message = format!("\"open_files\" is at least {LEAST_OPEN_FILES}, not {number}");
        let at = at.unwrap_or(block.at());
        let hint = "0 is for no bound";
        block
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
        return None;
    }
    Some(number)
}

/// Reads a size in bytes that is at least `least`; reports a smaller one.
fn bytes_from(block: &mut Fields<'_>, node: &Node, least: u64, hint: &str) -> Option<u64> {
    let read = bytes(block, node)?;
    if read >= least {
        return Some(read);
    }
    let text = node.scalar_text().unwrap_or_default();
    let message = format!("\"{text}\" is too small: at least {least} bytes are needed");
    block
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
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

/// Takes the name of a signal, with or without `SIG`.
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
            let read = bytes_from(
                &mut block,
                &node,
                LEAST_SIZE_BYTES,
                "a smaller file tells nothing",
            );
            logs.max_size_bytes = read.unwrap_or(logs.max_size_bytes);
        }
        logs.keep = bounds::count(&mut block, "keep", KEPT).unwrap_or(logs.keep);
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
