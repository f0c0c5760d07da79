//! Work that was taken over HTTP, while the process that took it dies.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// The number of kills unless `WATERSHED_KILLS` sets another.
const KILLS: u64 = 5;
/// The same in CI, where a process is killed every half a second.
const KILLS_IN_CI: u64 = 30;

/// Lets time pass until the process is killed, as `kill -9` does.
#[expect(
    clippy::disallowed_methods,
    reason = "what is tested is the moment itself: no event tells when it has come"
)]
fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// Asks for work that is answered with 202, and returns its id.
fn ask(service: &Serving, path: &str) -> String {
    let (status, head, body) = service.ask("POST", path, "content-type: application/json\r\n");
    assert_eq!(status, 202, "{body}");
    let taken: Value = serde_json::from_str(&body).expect("a document");
    let id = taken["id"].as_str().expect("an id").to_owned();
    assert!(head.contains(&format!("/requests/{id}")), "{head}");
    id
}

#[test]
fn what_was_taken_is_done_however_the_process_dies() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    let kills = number("WATERSHED_KILLS").unwrap_or(if is_ci { KILLS_IN_CI } else { KILLS });
    let seed = number("WATERSHED_SEED").unwrap_or(31);
    let mut rng = SmallRng::seed_from_u64(seed);
    let model = |round: u64| format!("-- @materialize: true\nSELECT {round} AS round\n");
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/a.sql", &model(0))]);
    // What runs is asked for by requests, so the files are as they are when a process begins.
    let instance = "/v1/instances/project";
    let mut service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    let begun = Instant::now();
    let first = ask(&service, &format!("{instance}/run"));
    await_end(&service, &first, "the first");
    let whole = begun.elapsed();
    let mut asked = vec![first];
    for kill in 1..=kills {
        let verb = ["run", "resources/model/a/refresh", "resources/model/a/reconcile"][kill as usize % 3];
        project.write("models/a.sql", &model(kill));
        let id = ask(&service, &format!("{instance}/{verb}"));
        let after = whole.mul_f64(rng.random_range(0.0..1.0));
        let story = format!("seed {seed}, kill {kill} {after:?} after {verb}");
        pass(after);
        drop(service);
        service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
        await_end(&service, &id, &story);
        // A run reads the files as they are, so what they ask for is there; and each earlier id answers.
        if verb == "run" {
            let shown = project.query("SELECT round FROM a");
            assert_eq!(shown["rows"][0][0], kill, "{story}");
        }
        asked.push(id);
        let earlier = &asked[rng.random_range(0..asked.len())];
        await_end(&service, earlier, &story);
    }
}

/// Waits until a request ends, and shows that it was done.
fn await_end(service: &Serving, id: &str, story: &str) {
    let path = format!("/v1/instances/project/requests/{id}");
    loop {
        let (status, _, body) = service.ask("GET", &path, "");
        assert_eq!(status, 200, "{story}: {body}");
        let request: Value = serde_json::from_str(&body).expect("a document");
        match request["state"].as_str() {
            Some("running") => {}
            Some("done") => return assert_eq!(request["document"]["exit_code"], 0, "{story}: {request}"),
            _ => panic!("{story}: {request}"),
        }
    }
}
