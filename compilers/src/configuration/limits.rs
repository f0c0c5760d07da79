//! The block `limits`: what callers of a service may use.

use super::finish;
use crate::{
    diagnostics::Code,
    text::size::parse_size,
    yaml::{
        Fields,
        bounds::{Counts, count, milliseconds},
        keys::blocks,
    },
};

/// The bounds of numbers.
const NUMBERS: Counts = Counts {
    least: 1,
    most: 1_000_000,
};
/// The smallest and the largest head, in bytes: the parser of heads needs 8 KiB.
const HEADS: [u64; 2] = [8 << 10, 1 << 20];
/// The smallest and the largest body, in bytes.
const BODIES: [u64; 2] = [1 << 10, 64 << 20];
/// The shortest time limit, in milliseconds.
const SHORTEST_MS: u64 = 100;

blocks! {
    /// Keys of the block `limits`.
    pub(crate) static LIMITS = "limits" Refused {
        "head": Text, "The largest head of a request; 32 KiB unless set.";
        "head_time": Duration, "The time for a request's head to arrive; 10 seconds unless set.";
        "body": Text, "The largest body of a request; 1 MiB unless set.";
        "body_time": Duration, "The time for a request's body to arrive; 30 seconds unless set.";
        "answer_time": Duration, "The time for an answer that is not a stream; 60 seconds unless set.";
        "statement": Duration, "The time for a question for rows; unless set 60 seconds for SQL whose caller asks for no other, and 3 minutes for metrics and APIs.";
        "connections": Count, "The most open connections; 4096 unless set.";
        "connections_per_address": Count, "The most open connections from one address, loopback excepted; 256 unless set.";
        "watchers": Count, "The most streams on one instance; 1000 unless set.";
        "watchers_per_principal": Count, "The most streams of one caller; 32 unless set.";
        "requests_per_second": Count, "The requests of one caller per second; 50 unless set.";
        "requests_at_once": Count, "The requests that one caller may send at once after a rest; 200 unless set.";
        "requests_waiting": Count, "The most unfinished requests of one instance; 512 unless set.";
        "failed_sign_ins_per_minute": Count, "The failed sign-ins from one address per minute, loopback excepted; 20 unless set.";
    }
}

/// Limits on what callers of a service may use; none where a limit is not set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// The largest head of a request, in bytes.
    pub head_bytes: Option<u64>,
    /// Time limit for the head of a request, in milliseconds.
    pub head_ms: Option<u64>,
    /// The largest body of a request, in bytes.
    pub body_bytes: Option<u64>,
    /// Time limit for the body of a request, in milliseconds.
    pub body_ms: Option<u64>,
    /// Time limit for an answer that is not a stream, in milliseconds.
    pub answer_ms: Option<u64>,
    /// Time limit of a question for rows, in milliseconds.
    pub statement_ms: Option<u64>,
    /// The most open connections.
    pub connections: Option<u32>,
    /// The most open connections from one address.
    pub connections_per_address: Option<u32>,
    /// The most streams on one instance.
    pub watchers: Option<u32>,
    /// The most streams of one caller.
    pub watchers_per_principal: Option<u32>,
    /// The requests of one caller per second.
    pub requests_per_second: Option<u32>,
    /// The requests that one caller may send at once after a rest.
    pub requests_at_once: Option<u32>,
    /// The most unfinished requests of one instance.
    pub requests_waiting: Option<u32>,
    /// The failed sign-ins from one address per minute.
    pub failed_sign_ins_per_minute: Option<u32>,
}

/// Takes the block `limits`.
pub(super) fn limits(fields: &mut Fields<'_>) -> Limits {
    let Some((map, at)) = fields.map("limits") else {
        return Limits::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let hint = "a client on a slow line needs some time";
    let limits = Limits {
        head_bytes: bytes(&mut block, "head", HEADS),
        head_ms: milliseconds(&mut block, "head_time", SHORTEST_MS, hint),
        body_bytes: bytes(&mut block, "body", BODIES),
        body_ms: milliseconds(&mut block, "body_time", SHORTEST_MS, hint),
        answer_ms: milliseconds(&mut block, "answer_time", SHORTEST_MS, hint),
        statement_ms: milliseconds(&mut block, "statement", SHORTEST_MS, hint),
        connections: count(&mut block, "connections", NUMBERS),
        connections_per_address: count(&mut block, "connections_per_address", NUMBERS),
        watchers: count(&mut block, "watchers", NUMBERS),
        watchers_per_principal: count(&mut block, "watchers_per_principal", NUMBERS),
        requests_per_second: count(&mut block, "requests_per_second", NUMBERS),
        requests_at_once: count(&mut block, "requests_at_once", NUMBERS),
        requests_waiting: count(&mut block, "requests_waiting", NUMBERS),
        failed_sign_ins_per_minute: count(&mut block, "failed_sign_ins_per_minute", NUMBERS),
    };
    finish(block, &LIMITS, &[]);
    limits
}

/// Takes a size within bounds, in bytes.
fn bytes(block: &mut Fields<'_>, key: &str, [least, most]: [u64; 2]) -> Option<u64> {
    let node = block.text_node(key)?;
    let text = node.scalar_text().unwrap_or_default();
    let (message, hint) = match parse_size(&text) {
        Some(bytes) if (least..=most).contains(&bytes) => return Some(bytes),
        Some(_) => (
            format!("\"{key}\" can't be \"{text}\""),
            format!("it is from {} KiB to {} KiB", least >> 10, most >> 10),
        ),
        None => (
            format!("\"{text}\" is no size"),
            "write a number with its unit, such as `64KiB`".to_owned(),
        ),
    };
    block
        .findings()
        .add_with_hint(node.at, Code::InvalidValue, message, hint);
    None
}
