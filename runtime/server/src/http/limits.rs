//! Limits on what callers and clients may use, and counts of what passed them.
//!
//! The user who started the service is no other user's trouble: no rate and no number of streams binds the owner.
//! Likewise, addresses of loopback are exempt, since one user shares the address.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use futures::StreamExt as _;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use watershed_api::{Code, Problem};
use watershed_locks::Unpoisoned;

use super::answers::Refused;
use super::caller::Caller;

/// The most keys that a rate remembers before it forgets those that have rested.
const MOST_KEYS: usize = 10_000;

/// The highest rate, whose interval is still a whole number of nanoseconds.
const HIGHEST_RATE: u32 = 1_000_000_000;

/// Limits on the resources that clients hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest head of a request, in bytes. Browsers send less than 16 KiB.
    pub head_bytes: usize,
    /// Time limit for the head of a request, so that slow clients do not keep a connection.
    pub head_within: Duration,
    /// The largest body of a request, in bytes: longer than a person's statement. Events have a limit of their own.
    pub body_bytes: usize,
    /// Time limit for receiving a body.
    pub body_within: Duration,
    /// Time limit of an answer that is not a stream. Proxies give up after a minute.
    pub answer_within: Duration,
    /// Time limit of a caller's question for rows: a person waits a minute, a report a few.
    pub statement_within: Duration,
    /// Time limit of a statement, unless the caller asks for another. A person waits a minute.
    pub statement: Duration,
    /// The most open connections, below the usual limit of open files.
    pub connections: usize,
    /// The most connections from one address. Loopback is exempt, since one user shares the address.
    pub connections_from_one: usize,
    /// The most streams on one instance.
    pub watchers: usize,
    /// The most streams of one caller: people have tabs.
    pub watchers_of_one: usize,
    /// The rate of one caller's requests, per second. Scripts stay below.
    pub requests_per_second: NonZeroU32,
    /// The most requests of one caller at once, after a rest.
    pub requests_at_once: NonZeroU32,
    /// The rate of failed sign-ins from one address, per minute. Loopback is exempt.
    pub failed_sign_ins_per_minute: NonZeroU32,
    /// The most unfinished requests of one instance: a queue beyond patience helps nobody.
    pub requests_waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let number = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Self {
            head_bytes: 32 << 10,
            head_within: Duration::from_secs(10),
            body_bytes: 1 << 20,
            body_within: Duration::from_secs(30),
            answer_within: Duration::from_secs(60),
            statement_within: Duration::from_secs(180),
            statement: Duration::from_secs(60),
            connections: 4_096,
            connections_from_one: 256,
            watchers: 1_000,
            watchers_of_one: 32,
            requests_per_second: number(50),
            requests_at_once: number(200),
            failed_sign_ins_per_minute: number(20),
            requests_waiting: 512,
        }
    }
}

/// A limit that was passed, for counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    Answer,
    Body,
    Connections,
    Requests,
    SignIns,
    Statement,
    Waiting,
    Watchers,
}

impl Passed {
    const ALL: [Self; 8] = [
        Self::Answer,
        Self::Body,
        Self::Connections,
        Self::Requests,
        Self::SignIns,
        Self::Statement,
        Self::Waiting,
        Self::Watchers,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Body => "body",
            Self::Connections => "connections",
            Self::Requests => "requests",
            Self::SignIns => "sign_ins",
            Self::Statement => "statement",
            Self::Waiting => "waiting",
            Self::Watchers => "watchers",
        }
    }
}

/// The limits of a service, with what is in use.
#[derive(Default)]
pub(super) struct Gate {
    limits: RwLock<Limits>,
    rates: RwLock<Arc<Rates>>,
    streams: Mutex<Streams>,
    passed: Counts,
}

/// Counts of what passed the limits of a service. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<[AtomicU64; Passed::ALL.len()]>);

impl Counts {
    pub(super) fn add(&self, passed: Passed) {
        self.0[passed as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The rates that limits give.
struct Rates {
    requests: Rate<String>,
    sign_ins: Rate<IpAddr>,
}

impl Rates {
    fn new(limits: &Limits) -> Self {
        let bounded =
            |rate: NonZeroU32| NonZeroU32::new(HIGHEST_RATE).map_or(rate, |highest| rate.min(highest));
        let requests = Quota::per_second(bounded(limits.requests_per_second))
            .allow_burst(bounded(limits.requests_at_once));
        Self {
            requests: Rate::new(requests, DefaultClock::default()),
            sign_ins: Rate::new(
                Quota::per_minute(bounded(limits.failed_sign_ins_per_minute)),
                DefaultClock::default(),
            ),
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

/// Numbers of open streams, by instance and by caller.
#[derive(Default)]
struct Streams {
    on: HashMap<String, usize>,
    of: HashMap<String, usize>,
}

impl Gate {
    /// Replaces the limits. Rates begin anew; what is open stays.
    pub(super) fn set(&self, limits: Limits) {
        *self.rates.write().unpoisoned() = Arc::new(Rates::new(&limits));
        *self.limits.write().unpoisoned() = limits;
    }

    pub(super) fn limits(&self) -> Limits {
        *self.limits.read().unpoisoned()
    }

    /// Counts what passed a limit.
    pub(super) fn count(&self, passed: Passed) {
        self.passed.add(passed);
    }

    pub(super) fn passed(&self) -> &Counts {
        &self.passed
    }

    /// Returns how often each limit was passed since the service began, by name.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |passed: Passed| self.passed.0[passed as usize].load(Ordering::Relaxed);
        Passed::ALL
            .into_iter()
            .map(move |passed| (passed.as_str(), count(passed)))
    }

    /// Admits a request of an authenticated caller.
    ///
    /// # Errors
    /// The answer 429, when the caller has sent too many.
    pub(super) fn admit(&self, caller: &Caller, base: &str) -> Result<(), Refused> {
        let taken = self.take_request(caller);
        taken.map_err(|(problem, wait)| Refused::new(problem, base).too_many(wait))
    }

    /// Takes a request of an authenticated caller from the caller's rate, whatever protocol it came by.
    ///
    /// # Errors
    /// `busy` with the time to wait, when the caller has sent too many.
    pub(super) fn take_request(&self, caller: &Caller) -> Result<(), (Problem, Duration)> {
        if caller.is_owner() {
            return Ok(());
        }
        let rates = Arc::clone(&self.rates.read().unpoisoned());
        rates.requests.take(&caller.name().to_owned()).map_err(|wait| {
            self.count(Passed::Requests);
            let message = format!("`{}` sends more requests than one caller may", caller.name());
            let problem = Problem::new(Code::Busy, message).hint("ask again later, and less often");
            (problem, wait)
        })
    }

    /// Counts a failed sign-in. `address` is that of the client; none if nobody knows the address.
    ///
    /// Credentials are too long to be guessed, so one that is right is let in at any time: otherwise whoever shares an
    /// address with others could keep them out.
    ///
    /// # Errors
    /// The answer 429, when too many have failed from there.
    pub(super) fn failed_sign_in(&self, address: Option<IpAddr>, base: &str) -> Result<(), Refused> {
        let taken = self.take_failure(address);
        taken.map_err(|(problem, wait)| Refused::new(problem, base).too_many(wait))
    }

    /// Counts a failed sign-in as [`failed_sign_in`](Self::failed_sign_in) does, whatever protocol it came by.
    ///
    /// # Errors
    /// `busy` with the time to wait, when too many have failed from there.
    pub(super) fn take_failure(&self, address: Option<IpAddr>) -> Result<(), (Problem, Duration)> {
        let Some(address) = address.filter(|address| !address.is_loopback()) else {
            return Ok(());
        };
        let rates = Arc::clone(&self.rates.read().unpoisoned());
        rates.sign_ins.take(&network(address)).map_err(|wait| {
            self.count(Passed::SignIns);
            let problem = Problem::new(Code::Busy, "too many sign-ins from this address have failed")
                .hint("ask again later, with credentials that are right");
            (problem, wait)
        })
    }

    /// Counts a stream for as long as its body lives; other responses are returned as they are.
    ///
    /// # Errors
    /// The answer 429, when the caller or the instance has too many streams.
    pub(super) fn keep_stream(
        self: &Arc<Self>,
        response: Response,
        caller: &Caller,
        instance: &str,
        base: &str,
    ) -> Result<Response, Refused> {
        let media = response.headers().get("content-type");
        if media.is_none_or(|media| media != "text/event-stream") {
            return Ok(response);
        }
        let open = self
            .stream_place(caller, instance)
            .map_err(|problem| Refused::new(problem, base).too_many(Duration::from_secs(1)))?;
        Ok(response.map(|body| {
            let stream: BodyDataStream = body.into_data_stream();
            Body::from_stream(stream.map(move |piece| {
                let _open = &open;
                piece
            }))
        }))
    }

    /// Returns a place among the streams, which is free again once the value is dropped.
    ///
    /// # Errors
    /// `busy`, when the caller or the instance has too many streams.
    pub(super) fn stream_place(
        self: &Arc<Self>,
        caller: &Caller,
        instance: &str,
    ) -> Result<OpenStream, Problem> {
        self.take_stream(caller, instance).map_err(|message| {
            self.count(Passed::Watchers);
            Problem::new(Code::Busy, message).hint("close one of the streams")
        })
    }

    fn take_stream(self: &Arc<Self>, caller: &Caller, instance: &str) -> Result<OpenStream, String> {
        let limits = self.limits();
        let mut streams = self.streams.lock().unpoisoned();
        let on = streams.on.get(instance).copied().unwrap_or_default();
        let of = streams.of.get(caller.name()).copied().unwrap_or_default();
        if on >= limits.watchers {
            return Err(format!("{on} streams are open on `{instance}` already"));
        }
        if of >= limits.watchers_of_one && !caller.is_owner() {
            return Err(format!("`{}` has {of} streams open already", caller.name()));
        }
        streams.on.insert(instance.to_owned(), on + 1);
        streams.of.insert(caller.name().to_owned(), of + 1);
        Ok(OpenStream {
            gate: Arc::clone(self),
            caller: caller.name().to_owned(),
            instance: instance.to_owned(),
        })
    }
}

/// An open stream's place in the numbers, released when dropped.
pub(super) struct OpenStream {
    gate: Arc<Gate>,
    caller: String,
    instance: String,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut streams = self.gate.streams.lock().unpoisoned();
        let Streams { on, of } = &mut *streams;
        for (numbers, name) in [(on, &self.instance), (of, &self.caller)] {
            if let Some(number) = numbers.get_mut(name) {
                *number -= 1;
                if *number == 0 {
                    numbers.remove(name);
                }
            }
        }
    }
}

/// Returns what counts as one address: a household has a whole network of 64 bits of addresses of the sixth version.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(whole) => {
            let network = u128::from(whole) >> 64 << 64;
            IpAddr::V6(network.into())
        }
        fourth => fourth,
    }
}

/// A rate for each key. What has rested for long is forgotten, so its memory is bounded.
struct Rate<K: Hash + Eq + Clone, C: Clock = DefaultClock> {
    limiter: RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<C::Instant>>,
    clock: C,
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Rate<K, C> {
    fn new(quota: Quota, clock: C) -> Self {
        Self {
            limiter: RateLimiter::hashmap_with_clock(quota, clock.clone()),
            clock,
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// The time until there is one.
    fn take(&self, key: &K) -> Result<(), Duration> {
        if self.limiter.len() > MOST_KEYS {
            self.limiter.retain_recent();
        }
        let taken = self.limiter.check_key(key);
        taken.map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;
    use watershed_callers::{Grant, Grants, Level};

    use super::*;

    fn limits(number: u32) -> Limits {
        let number = NonZeroU32::new(number).unwrap();
        Limits {
            requests_per_second: NonZeroU32::MIN,
            requests_at_once: number,
            failed_sign_ins_per_minute: number,
            watchers: 3,
            watchers_of_one: 2,
            ..Limits::default()
        }
    }

    fn gate(number: u32) -> Arc<Gate> {
        let gate = Arc::new(Gate::default());
        gate.set(limits(number));
        gate
    }

    fn caller(name: &str) -> Caller {
        Caller::with(name, Grants::one("shop", Grant::new(Level::Read)))
    }

    fn count(gate: &Gate, name: &str) -> u64 {
        gate.counts().find(|(counted, _)| *counted == name).unwrap().1
    }

    #[test]
    fn s_api21_a_rate_holds_for_each_caller_and_forgets_those_who_rest() {
        let clock = FakeRelativeClock::default();
        let quota = Quota::per_second(NonZeroU32::MIN).allow_burst(NonZeroU32::new(3).unwrap());
        let rate = Rate::new(quota, clock.clone());
        for _ in 0..3 {
            rate.take(&"ann").unwrap();
        }
        let wait = rate.take(&"ann").unwrap_err();
        assert!(
            wait > Duration::ZERO && wait <= Duration::from_secs(1),
            "{wait:?}"
        );
        rate.take(&"bob").unwrap();
        clock.advance(Duration::from_secs(1));
        rate.take(&"ann").unwrap();
        rate.take(&"ann").unwrap_err();
        let clock = FakeRelativeClock::default();
        let rate = Rate::new(Quota::per_second(NonZeroU32::MIN), clock.clone());
        for key in 0..3 * MOST_KEYS {
            clock.advance(Duration::from_millis(1));
            rate.take(&key).unwrap();
        }
        assert!(rate.limiter.len() <= MOST_KEYS + 1, "{}", rate.limiter.len());
    }

    #[test]
    fn s_api21_the_owner_is_bound_by_no_rate_and_the_others_are_counted() {
        let gate = gate(2);
        let (ann, owner) = (caller("ann"), Caller::owner("local"));
        let refused = (0..100).filter(|_| gate.admit(&ann, "").is_err()).count();
        // More than a minute would have to pass for the rest.
        assert!(refused > 30, "{refused}");
        assert_eq!(count(&gate, "requests"), refused as u64);
        assert!((0..100).all(|_| gate.admit(&owner, "").is_ok()));
        // New limits begin anew.
        gate.set(limits(200));
        assert!((0..100).all(|_| gate.admit(&ann, "").is_ok()));
    }

    #[test]
    fn s_api21_failed_sign_ins_are_bounded_by_address() {
        let gate = gate(2);
        let from = |address: &str| gate.failed_sign_in(Some(address.parse().unwrap()), "").is_ok();
        assert!(from("192.0.2.1") && from("192.0.2.1") && !from("192.0.2.1"));
        // The same address in the form of the sixth version, and a network in which each has many.
        assert!(!from("::ffff:192.0.2.1"));
        assert!(from("2001:db8::1") && from("2001:db8::2") && !from("2001:db8::3:4:5:6"));
        assert!(from("192.0.2.2") && from("2001:db8:0:1::1"));
        assert!((0..10).all(|_| from("127.0.0.1") && from("::1")));
        assert!((0..10).all(|_| gate.failed_sign_in(None, "").is_ok()));
        assert_eq!(count(&gate, "sign_ins"), 3);
    }

    #[tokio::test]
    async fn s_api21_streams_are_bounded_by_caller_and_instance_and_end_with_their_bodies() {
        let gate = gate(1);
        let stream = |caller: &Caller, instance: &str, media: &'static str| {
            let mut response = Response::new(Body::from("data"));
            let media = axum::http::HeaderValue::from_static(media);
            response.headers_mut().insert("content-type", media);
            gate.keep_stream(response, caller, instance, "")
        };
        let (ann, bob, owner) = (caller("ann"), caller("bob"), Caller::owner("local"));
        let events = "text/event-stream";
        let first = stream(&ann, "shop", events).ok().unwrap();
        let _second = stream(&ann, "depot", events).ok().unwrap();
        assert!(stream(&ann, "other", events).is_err());
        assert!(stream(&ann, "other", "application/json").is_ok());
        let _third = stream(&owner, "shop", events).ok().unwrap();
        let fourth = stream(&bob, "shop", events).ok().unwrap();
        assert!(stream(&owner, "shop", events).is_err(), "the instance has three");
        assert_eq!(count(&gate, "watchers"), 2);
        drop(fourth);
        let read = axum::body::to_bytes(first.into_body(), 10).await.unwrap();
        assert_eq!(read, "data");
        let _fifth = stream(&ann, "shop", events).ok().unwrap();
        let _sixth = stream(&bob, "shop", events).ok().unwrap();
    }
}
