//! Jobs: programs that run once to completion, or on a schedule.

use watershed_proto::{JobRetries, JobSchedule, JobSpec};

use super::{
    program::{self, DOCKER, LIMITS, LOGS, ON_SERVER_STOP, PORT, STOP},
    reader::{Declared, Reader},
};
use crate::{
    blocks::schedule,
    diagnostics::Code,
    resource::{Kind, Spec},
    yaml::{
        Fields,
        bounds::{self, Counts},
        keys::blocks,
        word,
    },
};

blocks! {
    /// Keys that a job accepts at its top level.
    pub(crate) static JOB = "job" Refused {
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
        "timeout": Duration, "How long a run may take; without it there is no bound.";
        "success_codes": List(&Count), "Exit codes that mean success; `[0]`.";
        "retries": Block(&RETRIES), "How often it is tried.";
        "schedule": Block(&SCHEDULE), "When it runs; without it, once for each change of what it reads.";
    }

    /// Keys of the block `retries`.
    pub(crate) static RETRIES = "retries" Refused {
        "attempts": Count, "Attempts in all; 1.";
        "base": Duration, "The wait before the second one, doubled for each further one; `1s`.";
        "cap": Duration, "The longest such wait; `60s`.";
    }

    /// Keys of the block `schedule`.
    pub(crate) static SCHEDULE = "schedule" Refused {
        "cron": Text, "When it runs: five fields (minute, hour, day, month, weekday), or a word such as `@daily`.";
        "every": Duration, "How often it runs.";
        "time_zone": Text, "The IANA time zone of `cron`.";
        "concurrency": Word(&CONCURRENCY), "What becomes of a time that comes during a run: `forbid` skips it, `replace` begins anew.";
    }
}

/// The ways to treat a tick that comes during a run.
const CONCURRENCY: [&str; 2] = ["forbid", "replace"];

/// The shortest interval between two runs, in milliseconds.
const LEAST_EVERY_MS: u64 = 1_000;
/// The bounds of the number of attempts, which includes the first.
const AT_LEAST_ONE: Counts = Counts {
    least: 1,
    most: u32::MAX,
};
/// The default number of attempts: jobs are not assumed to be idempotent.
const ATTEMPTS: u32 = 1;
const BASE_MS: u64 = 1_000;
const CAP_MS: u64 = 60_000;

/// Reads a job from its settings.
pub(super) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.refuse_sql(Kind::Job);
    for key in ["checks", "replicas", "restart", "rollout"] {
        if let Some(entry) = reader.fields.take(key) {
            let message = format!("a job has no `{key}`: it runs once");
            let hint = "a program that is kept running is a `service`";
            reader
                .findings()
                .add_with_hint(entry.key_at, Code::UnknownKey, message, hint);
        }
    }
    let program = program::take(reader, "a job");
    let description = reader.text("description");
    let fields = &mut reader.fields;
    let spec = JobSpec {
        description,
        program: Some(program),
        stop: Some(program::stop(fields)),
        logs: Some(program::logs(fields)),
        on_server_stop: word(fields, "on_server_stop", &ON_SERVER_STOP).unwrap_or_default(),
        timeout_ms: bounds::milliseconds(
            fields,
            "timeout",
            1,
            "leave `timeout` out where there is no bound",
        )
        .unwrap_or_default(),
        success_codes: program::exit_codes(fields, "success_codes", &[0]),
        retries: Some(retries(fields)),
        schedule: schedule(fields),
        ..JobSpec::default()
    };
    reader.finish(&JOB);
    Declared::new(Spec::Job(Box::new(spec)))
}

fn retries(fields: &mut Fields<'_>) -> JobRetries {
    let mut retries = JobRetries {
        attempts: ATTEMPTS,
        base_ms: BASE_MS,
        cap_ms: CAP_MS,
    };
    if let Some((map, at)) = fields.map("retries") {
        let mut block = Fields::new(map, at, fields.findings());
        retries.attempts = bounds::count(&mut block, "attempts", AT_LEAST_ONE).unwrap_or(ATTEMPTS);
        retries.base_ms = program::wait(&mut block, "base").unwrap_or(BASE_MS);
        retries.cap_ms = program::wait(&mut block, "cap").unwrap_or(CAP_MS);
        block.finish(&RETRIES);
    }
    retries
}

fn schedule(fields: &mut Fields<'_>) -> Option<JobSchedule> {
    let (map, at) = fields.map("schedule")?;
    let mut block = Fields::new(map, at, fields.findings());
    let (has_cron, has_every) = (block.has("cron"), block.has("every"));
    let times = schedule::cron_and_zone(&mut block);
    let every_ms = bounds::milliseconds(
        &mut block,
        "every",
        LEAST_EVERY_MS,
        "leave `schedule` out for a job that runs once",
    );
    let every_ms = every_ms.or(times.every_ms).unwrap_or_default();
    let schedule = JobSchedule {
        cron: times.cron.unwrap_or_default(),
        time_zone: times.time_zone.unwrap_or_default(),
        every_ms,
        concurrency: word(&mut block, "concurrency", &CONCURRENCY).unwrap_or_else(|| "forbid".to_owned()),
    };
    if has_cron && has_every {
        let message = "a schedule says `cron` or `every`, not both";
        block.findings().add(at, Code::ConflictingKeys, message);
    } else if !has_cron && !has_every {
        let message = "a schedule needs `cron` or `every`";
        block.findings().add(at, Code::MissingKey, message);
    }
    block.finish(&SCHEDULE);
    Some(schedule)
}
