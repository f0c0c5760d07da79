//! Services: programs that are kept running.

use watershed_proto::{HealthCheck, HttpCheck, Port, RestartPolicy, Rollout, ServiceSpec, TcpCheck};

use super::{
    program::{self, DOCKER, LIMITS, LOGS, ON_SERVER_STOP, PORT, STOP},
    reader::{Declared, Reader},
};
use crate::{
    diagnostics::Code,
    resource::{Kind, Spec},
    text::names,
    yaml::{
        Fields, Node,
        bounds::{self, Counts},
        item,
        keys::blocks,
        word,
    },
};

blocks! {
    /// Keys that a service accepts at its top level.
    pub(crate) static SERVICE = "service" Refused {
        "description": Text, "What it does.";
        "command": Texts, "The program and its arguments; `${NAME}` stands for a variable or a port.";
        "run": Text, "A text for `sh -c`, instead of `command`.";
        "cwd": Text, "The working directory below the project's root; the root.";
        "environment": Map(&Text), "Variables of the program; it gets no others but PATH, HOME, LANG and its ports.";
        "docker": Block(&DOCKER), "The container that it runs in, instead of a local process.";
        "ports": List(&Block(&PORT)), "Ports that it listens on.";
        "stop": Block(&STOP), "How it is stopped.";
        "limits": Block(&LIMITS), "The most that it may use.";
        "logs": Block(&LOGS), "What is kept of its output.";
        "on_server_stop": Word(&ON_SERVER_STOP), "Whether it goes on when the server stops; `keep` under `start`, `stop` under `run`.";
        "replicas": Count, "Running copies, at most 1,000; 1.";
        "restart": Block(&RESTART), "What follows an exit.";
        "checks": List(&Block(&CHECK)), "How its health is found out.";
        "rollout": Block(&ROLLOUT), "How a new release takes the place of the old one.";
    }

    /// Keys of the block `restart`.
    pub(crate) static RESTART = "restart" Refused {
        "policy": Word(&POLICIES), "Exits after which it is started again; `always`.";
        "base": Duration, "The wait before the first restart, doubled with each failure; `10s`.";
        "cap": Duration, "The longest such wait; `5m`.";
        "attempts": Count, "Failures in a row after which a person must look; 5, and 0 for no bound.";
        "stable_window": Duration, "How long it must have been ready for its failures to be forgotten, or `never`; `10m`.";
        "success_codes": List(&Count), "Exit codes that mean success; `[0]`.";
        "no_retry_codes": List(&Count), "Exit codes after which no restart helps; `[126, 127]`.";
    }

    /// Keys that a health check accepts.
    pub(crate) static CHECK = "check" Refused {
        "http": Block(&HTTP), "A request that must be answered.";
        "tcp": Block(&TCP), "A connection that must come about.";
        "command": Texts, "A program that must end with 0.";
        "readiness": Bool, "Whether the service is ready only while the check passes; false.";
        "interval": Duration, "How often it is checked; `10s`.";
        "timeout": Duration, "How long a check may take; `2s`.";
        "threshold": Count, "Failures in a row that count as one of the service; 3.";
        "start_period": Duration, "How long after a start failures don't count; `0s`.";
        "min_healthy_time": Duration, "How long it must pass before the service is ready; `10s`.";
        "on_failure": Word(&ON_FAILURE), "What follows; `restart`.";
    }

    /// Keys of the block `http`.
    pub(crate) static HTTP = "http_check" Refused {
        "port": Text, "The name of the port.";
        "path": Text, "The path; `/`.";
        "status": Text, "The status, or the range of them, that is well; `200-299`.";
    }

    /// Keys of the block `tcp`.
    pub(crate) static TCP = "tcp_check" Refused {
        "port": Text, "The name of the port.";
    }

    /// Keys of the block `rollout`.
    pub(crate) static ROLLOUT = "rollout" Refused {
        "strategy": Word(&STRATEGIES), "Step by step, or all at once; `rolling`.";
        "surge": Count, "Replicas above the count while it lasts; 1.";
        "unavailable": Count, "Replicas below the count while it lasts; 0.";
        "deadline": Duration, "How long it may go without progress; `10m`.";
        "on_deadline": Word(&ON_DEADLINE), "What follows then; `fail`.";
    }
}

const POLICIES: [&str; 3] = ["always", "on_failure", "never"];
const ON_FAILURE: [&str; 3] = ["restart", "stop", "alert"];
const STRATEGIES: [&str; 2] = ["rolling", "replace"];
const ON_DEADLINE: [&str; 2] = ["fail", "force"];

/// The largest number of replicas of a service.
pub const REPLICAS_MAX: u32 = 1_000;
/// The shortest interval between two probes, in milliseconds.
const LEAST_INTERVAL_MS: u64 = 50;
/// The shortest deadline in milliseconds; no process is ready before it has lived for 0.75 s.
const LEAST_DEADLINE_MS: u64 = 1_000;

/// The first wait before a restart, in milliseconds. Waits of 10 s to 5 min keep a crash loop cheap; the stable window
/// of 10 min is twice the longest wait, so that no crash loop counts as stable.
const BASE_MS: u64 = 10_000;
const CAP_MS: u64 = 300_000;
const STABLE_MS: u64 = 600_000;
const ATTEMPTS: u32 = 5;
const INTERVAL_MS: u64 = 10_000;
const TIMEOUT_MS: u64 = 2_000;
/// The default number of failed probes before a check fails; tolerates a lost answer.
const THRESHOLD: u32 = 3;
const MIN_HEALTHY_MS: u64 = 10_000;
const DEADLINE_MS: u64 = 600_000;

/// The bounds of the number of replicas.
const COPIES: Counts = Counts {
    least: 0,
    most: REPLICAS_MAX,
};
const AT_LEAST_ONE: Counts = Counts {
    least: 1,
    most: u32::MAX,
};
const EACH_COPY: &str = "each copy is asked so often";
const MIN_LIFE: &str = "nothing is ready before it has lived for 0.75 s";

/// Reads a service from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::Service);
    for key in ["timeout", "retries", "schedule", "success_codes"] {
        if let Some(entry) = reader.fields.take(key) {
            let message = format!("a service has no `{key}`: it is kept running");
            let hint = "a program that runs to its end is a `job`";
            reader
                .findings()
                .add_with_hint(entry.key_at, Code::UnknownKey, message, hint);
        }
    }
    reader.templates_of("checks");
    let program = program::take(reader, "a service");
    let description = reader.text("description");
    let fields = &mut reader.fields;
    let replicas_at = fields.value_at("replicas");
    let replicas = bounds::count(fields, "replicas", COPIES).unwrap_or(1);
    let has_fixed = program.ports.iter().any(|port| port.fixed > 0);
    if let Some(at) = replicas_at.filter(|_| replicas > 1 && has_fixed) {
        let message = "several replicas can't listen on one fixed port";
        let hint = "leave `fixed` out: each replica gets a free port";
        fields
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    let spec = ServiceSpec {
        description,
        stop: Some(program::stop(fields)),
        logs: Some(program::logs(fields)),
        on_server_stop: word(fields, "on_server_stop", &ON_SERVER_STOP).unwrap_or_default(),
        replicas,
        restart: Some(restart(fields)),
        checks: checks(fields, &program.ports),
        rollout: Some(rollout(fields)),
        program: Some(program),
        ..ServiceSpec::default()
    };
    reader.finish(&SERVICE);
    Declared::new(Spec::Service(Box::new(spec)))
}

fn restart(fields: &mut Fields<'_>) -> RestartPolicy {
    let (map, at) = fields
        .map("restart")
        .unwrap_or_else(|| (Default::default(), fields.at()));
    let mut block = Fields::new(map, at, fields.findings());
    let policy = RestartPolicy {
        policy: word(&mut block, "policy", &POLICIES).unwrap_or_else(|| "always".to_owned()),
        base_ms: program::wait(&mut block, "base").unwrap_or(BASE_MS),
        cap_ms: program::wait(&mut block, "cap").unwrap_or(CAP_MS),
        attempts: block.count("attempts").unwrap_or(ATTEMPTS),
        stable_window_ms: stable_window(&mut block).unwrap_or(STABLE_MS),
        success_codes: program::exit_codes(&mut block, "success_codes", &[0]),
        no_retry_codes: program::exit_codes(&mut block, "no_retry_codes", &[126, 127]),
    };
    block.finish(&RESTART);
    policy
}

/// Takes the time in milliseconds after which a process counts as stable; 0 for never.
fn stable_window(block: &mut Fields<'_>) -> Option<u64> {
    let entry = block.take("stable_window")?;
    if entry.value.scalar_text().as_deref() == Some("never") {
        return Some(0);
    }
    block.put_back("stable_window", entry);
    block.milliseconds("stable_window")
}

fn checks(fields: &mut Fields<'_>, ports: &[Port]) -> Vec<HealthCheck> {
    let nodes = fields.list("checks").unwrap_or_default();
    nodes
        .into_iter()
        .filter_map(|node| check(fields, node, ports))
        .collect()
}

fn check(fields: &mut Fields<'_>, node: Node, ports: &[Port]) -> Option<HealthCheck> {
    let (map, at) = item(node, "a check", fields.findings())?;
    let mut block = Fields::new(map, at, fields.findings());
    let ways = ["http", "tcp", "command"];
    let said = ways.iter().filter(|way| block.has(way)).count();
    if said != 1 {
        let message = "a check is one of `http`, `tcp` and `command`";
        let code = if said == 0 {
            Code::MissingKey
        } else {
            Code::ConflictingKeys
        };
        block.findings().add(at, code, message);
    }
    let check = HealthCheck {
        http: http(&mut block, ports),
        tcp: tcp(&mut block, ports),
        command: block.texts("command").unwrap_or_default(),
        readiness: block.bool("readiness").unwrap_or_default(),
        interval_ms: bounds::milliseconds(&mut block, "interval", LEAST_INTERVAL_MS, EACH_COPY)
            .unwrap_or(INTERVAL_MS),
        timeout_ms: bounds::milliseconds(&mut block, "timeout", 1, "no answer comes in no time")
            .unwrap_or(TIMEOUT_MS),
        threshold: bounds::count(&mut block, "threshold", AT_LEAST_ONE).unwrap_or(THRESHOLD),
        start_period_ms: block.milliseconds("start_period").unwrap_or_default(),
        min_healthy_time_ms: block.milliseconds("min_healthy_time").unwrap_or(MIN_HEALTHY_MS),
        on_failure: word(&mut block, "on_failure", &ON_FAILURE).unwrap_or_else(|| "restart".to_owned()),
    };
    block.finish(&CHECK);
    Some(check)
}

fn http(fields: &mut Fields<'_>, ports: &[Port]) -> Option<HttpCheck> {
    let (map, at) = fields.map("http")?;
    let mut block = Fields::new(map, at, fields.findings());
    let port = port(&mut block, ports);
    let path = block.text("path").unwrap_or_else(|| "/".to_owned());
    let (status_from, status_to) = match block.text_node("status") {
        Some(node) => statuses(&mut block, &node),
        None => (200, 299),
    };
    block.finish(&HTTP);
    Some(HttpCheck {
        port,
        path,
        status_from,
        status_to,
    })
}

/// Reads an HTTP status, or a range of them.
fn statuses(block: &mut Fields<'_>, node: &Node) -> (u32, u32) {
    let text = node.scalar_text().unwrap_or_default();
    let (first, last) = text.split_once('-').unwrap_or((&text, &text));
    let number = |text: &str| {
        text.trim()
            .parse::<u32>()
            .ok()
            .filter(|code| (100..600).contains(code))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => (first, last),
        _ => {
            let message = format!("\"{text}\" is not an HTTP status");
            let hint = "write one from 100 to 599, or a range such as `200-299`";
            block
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            (200, 299)
        }
    }
}

fn tcp(fields: &mut Fields<'_>, ports: &[Port]) -> Option<TcpCheck> {
    let (map, at) = fields.map("tcp")?;
    let mut block = Fields::new(map, at, fields.findings());
    let port = port(&mut block, ports);
    block.finish(&TCP);
    Some(TcpCheck { port })
}

/// Takes the name of the port of a check, which must be a port of the service.
fn port(block: &mut Fields<'_>, ports: &[Port]) -> String {
    let at = block.value_at("port").unwrap_or(block.at());
    let name = block.text("port").unwrap_or_default();
    if !ports.iter().any(|port| port.name == name) {
        let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        let message = match name.is_empty() {
            true => "a check needs the name of a port".to_owned(),
            false => format!("the service has no port \"{name}\""),
        };
        let hint = match names::nearest(&name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "list it under `ports`".to_owned(),
        };
        block
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
    name
}

fn rollout(fields: &mut Fields<'_>) -> Rollout {
    let (map, at) = fields
        .map("rollout")
        .unwrap_or_else(|| (Default::default(), fields.at()));
    let mut block = Fields::new(map, at, fields.findings());
    let rollout = Rollout {
        strategy: word(&mut block, "strategy", &STRATEGIES).unwrap_or_else(|| "rolling".to_owned()),
        surge: bounds::count(&mut block, "surge", COPIES).unwrap_or(1),
        unavailable: bounds::count(&mut block, "unavailable", COPIES).unwrap_or_default(),
        deadline_ms: bounds::milliseconds(&mut block, "deadline", LEAST_DEADLINE_MS, MIN_LIFE)
            .unwrap_or(DEADLINE_MS),
        on_deadline: word(&mut block, "on_deadline", &ON_DEADLINE).unwrap_or_else(|| "fail".to_owned()),
    };
    if rollout.surge == 0 && rollout.unavailable == 0 {
        let message = "a rollout without `surge` and `unavailable` can't begin";
        let hint = "allow one replica more or less while it lasts";
        block
            .findings()
            .add_with_hint(at, Code::ConflictingKeys, message, hint);
    }
    block.finish(&ROLLOUT);
    rollout
}
