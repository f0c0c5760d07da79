//! Readers of the stream who are cut off, slow, late or confused: in the end each believes what a list says.
//!
//! An ordinary run plays a few rounds, one with `WATERSHED_PROOF=ci` twenty seconds of them; `WATERSHED_WATCH_ROUNDS` says how many,
//! and `WATERSHED_SEED` repeats those of a seed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use crate::client::Events;
use crate::http::{SHOP, Served};
use crate::project::Place;
use crate::stream::believe;

/// The belief of a reader: resources by kind and name.
type Belief = BTreeMap<String, Value>;

/// Filters of readers. A token of one is foreign to each of the others.
const FILTERS: [&str; 7] = [
    "",
    "&kind=model",
    "&select=late%2B",
    "&health=paused",
    "&health=ok&kind=model",
    "&all=true&fields=health",
    "&exclude=kind:model",
];

/// Models whose state is changed.
const MODELS: [&str; 3] = ["late", "tested", "parts"];

/// The extent of a test.
enum Share {
    Rounds(u64),
    Until(Instant),
}

impl Share {
    fn read() -> Self {
        let rounds = std::env::var("WATERSHED_WATCH_ROUNDS").ok();
        match (rounds, std::env::var("WATERSHED_PROOF").as_deref()) {
            (Some(rounds), _) => Self::Rounds(rounds.parse().expect("a number of rounds")),
            (None, Ok("ci")) => Self::Until(Instant::now() + Duration::from_secs(20)),
            (None, _) => Self::Rounds(12),
        }
    }

    fn goes_on(&self, round: u64) -> bool {
        match self {
            Self::Rounds(rounds) => round < *rounds,
            Self::Until(end) => Instant::now() < *end,
        }
    }
}

/// One round of one reader.
struct Reader<'a> {
    served: &'a Served,
    place: &'a Place,
    random: SmallRng,
    filter: &'static str,
    believed: Belief,
    last: String,
    /// Earlier beliefs, each with the token from which one may go on.
    earlier: Vec<(String, Belief)>,
    events: Option<Events>,
}

impl Reader<'_> {
    /// Plays the round.
    async fn play(&mut self) {
        match self.random.random_bool(0.7) {
            true => self.list(true).await,
            false => self.begin("").await,
        }
        for _ in 0..self.random.random_range(3..12) {
            match self.random.random_range(0..10) {
                0..4 => self.edit().await,
                4 | 5 => self.cut().await,
                6 => self.go_back().await,
                7 => self.confuse().await,
                8 => self.read_some().await,
                _ => self.edit_files().await,
            }
        }
        self.agree().await;
    }

    /// Reads the list page by page, with edits between them if those are wanted, and begins to follow.
    async fn list(&mut self, edits: bool) {
        let (limit, mut page) = (self.random.random_range(1..9), String::new());
        self.believed.clear();
        self.earlier.clear();
        loop {
            let path = format!("{SHOP}/resources?limit={limit}{}{page}", self.filter);
            let read = self.served.client.get(&path).await;
            if read.status != 200 {
                // Nothing of a selection may be there for a while.
                assert_eq!(read.status, 404, "{path}: {}", read.head);
                self.edit_files().await;
                continue;
            }
            let read = read.json();
            for resource in read["resources"].as_array().into_iter().flatten() {
                self.believed.insert(key(resource), resource.clone());
            }
            match read["next"].as_str() {
                Some(next) => page = format!("&page={next}"),
                None => {
                    let watch = read["watch"].as_str().expect("a token").to_owned();
                    return self.begin(&watch).await;
                }
            }
            if edits && self.random.random_bool(0.3) {
                self.edit().await;
            }
        }
    }

    /// Follows from a token, or from nothing.
    async fn begin(&mut self, from: &str) {
        if from.is_empty() {
            self.believed.clear();
            self.earlier.clear();
        }
        self.last = from.to_owned();
        let query = self.filter.trim_start_matches('&').to_owned();
        let (path, last) = match (from, self.random.random_bool(0.5)) {
            ("", _) => (format!("{SHOP}/watch?{query}"), None),
            (from, true) => (format!("{SHOP}/watch?from={from}{}", self.filter), None),
            (from, false) => (format!("{SHOP}/watch?{query}"), Some(from)),
        };
        self.events = Some(self.served.client.events(&path, last).await);
    }

    async fn edit(&mut self) {
        let name = MODELS.choose(&mut self.random).expect("a model");
        let verb = if self.random.random_bool(0.5) {
            "pause"
        } else {
            "resume"
        };
        let path = format!("{SHOP}/resources/model/{name}/{verb}");
        assert_eq!(self.served.client.post(&path, &json!({})).await.status, 200);
    }

    /// A resource comes or goes.
    async fn edit_files(&mut self) {
        let file = "models/guest.sql";
        match self.place.root().join(file).exists() {
            true => std::fs::remove_file(self.place.root().join(file)).expect("it is there"),
            false => self.place.write(file, "SELECT 1 AS x\n"),
        }
        let wait = [("prefer", "wait=60")];
        let path = format!("{SHOP}/run");
        let run = self
            .served
            .client
            .send("POST", &path, &wait, Some(&json!({})))
            .await;
        assert_eq!(run.status, 200);
    }

    /// The line breaks, and the reader comes back with what it heard last.
    async fn cut(&mut self) {
        self.events = None;
        let last = self.last.clone();
        self.begin(&last).await;
    }

    /// The reader comes back as it was a while ago.
    async fn go_back(&mut self) {
        if let Some((token, belief)) = self.earlier.choose(&mut self.random).cloned() {
            self.believed = belief;
            self.begin(&token).await;
        }
    }

    /// The reader says tokens that are not its own, which are refused and change nothing.
    async fn confuse(&mut self) {
        let other = FILTERS.iter().filter(|other| **other != self.filter);
        let other = *other
            .collect::<Vec<_>>()
            .choose(&mut self.random)
            .expect("another filter");
        let mut altered = self.last.clone().into_bytes();
        if !altered.is_empty() {
            let index = self.random.random_range(0..altered.len());
            altered[index] = if altered[index] == b'A' { b'B' } else { b'A' };
        }
        let altered = String::from_utf8(altered).expect("letters");
        for path in [
            format!("{SHOP}/watch?from={}{other}", self.last),
            format!("{SHOP}/watch?from={altered}{}", self.filter),
            format!("{SHOP}/resources?page={}{}", self.last, self.filter),
        ] {
            if !self.last.is_empty() {
                let refused = self.served.client.get(&path).await.status;
                assert!(matches!(refused, 400 | 404), "{path}: {refused}");
            }
        }
    }

    /// Reads to the next event: there is one, for something is edited first.
    async fn read_some(&mut self) {
        if self.last.is_empty() {
            self.hear().await;
        }
    }

    /// Hears one event. Who lags behind lists again.
    async fn hear(&mut self) {
        let events = self.events.as_mut().expect("the reader follows");
        let before = self.last.clone();
        let heard = believe(events, &mut self.believed, &mut self.last).await;
        match heard.as_deref() {
            Some("lagged") => self.list(false).await,
            Some(_) if self.last != before => {
                self.earlier.push((self.last.clone(), self.believed.clone()));
            }
            Some(_) => {}
            None => panic!("the stream ended"),
        }
    }

    /// Hears until the belief is that of a list.
    async fn agree(&mut self) {
        for _ in 0..10_000 {
            if self.believed == self.truth().await {
                return;
            }
            self.hear().await;
        }
        panic!("the belief differs from the list: {:?}", self.believed.keys());
    }

    /// Returns the list, read at once.
    async fn truth(&self) -> Belief {
        let path = format!("{SHOP}/resources?limit=1000{}", self.filter);
        let read = self.served.client.get(&path).await.json();
        let resources = read["resources"].as_array().into_iter().flatten();
        resources
            .map(|resource| (key(resource), resource.clone()))
            .collect()
    }
}

fn key(resource: &Value) -> String {
    let name = |key: &str| resource[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", name("kind"), name("name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn s_api11_whatever_happens_to_a_reader_it_believes_what_a_list_says_in_the_end() {
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    #[allow(clippy::print_stderr, reason = "the seed repeats the test")]
    {
        eprintln!("WATERSHED_SEED={seed}");
    }
    let place = Place::new(&[]);
    let served = Served::new(&place).await;
    let share = Share::read();
    let mut round = 0;
    while share.goes_on(round) {
        let mut random = SmallRng::seed_from_u64(seed.wrapping_add(round));
        let mut reader = Reader {
            served: &served,
            place: &place,
            filter: FILTERS.choose(&mut random).expect("a filter"),
            random,
            believed: Belief::new(),
            last: String::new(),
            earlier: Vec::new(),
            events: None,
        };
        reader.play().await;
        round += 1;
    }
    served.close().await;
}
