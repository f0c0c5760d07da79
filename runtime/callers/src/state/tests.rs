//! Tests of the state across restarts.

use serde_json::json;

use super::*;
use crate::grants::{Grant, Grants, Level};
use crate::people::Attributes;
use crate::token::{Token, Wanted};

const HOUR: i64 = 3_600_000;

/// Returns a copy of the open file and its journal: what a process that is killed now leaves.
fn killed(path: &Path) -> PathBuf {
    let copy = path.with_extension("left");
    for ending in ["", "-wal"] {
        let beside = |path: &Path| format!("{}{ending}", path.display());
        std::fs::copy(beside(path), beside(&copy)).unwrap();
    }
    copy
}

fn minted() -> Token {
    let wanted = Wanted {
        name: "job".into(),
        roles: Grants::one("shop", Grant::new(Level::Operate)),
        operations: None,
        select: vec!["+best_hours".into()],
        expires_ms: 1,
    };
    Token::mint(wanted).token
}

#[tokio::test]
async fn s_api39_what_was_stored_is_there_after_a_restart_and_for_one_process_alone() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state.db");
    let state = State::open(&path).await.unwrap();
    let (kept, revoked) = (minted(), minted());
    for token in [&kept, &revoked] {
        assert!(state.add_token(token, "ann@example.org", 5).await.unwrap());
    }
    assert!(state.revoke_token(&revoked.id, 7).await.unwrap());
    assert!(!state.revoke_token(&revoked.id, 8).await.unwrap(), "once");
    assert!(!state.revoke_token("nobody's", 8).await.unwrap());
    let ann = Attributes::from([("groups".to_owned(), json!(["analysts"]))]);
    state
        .see_person("ann@example.org", &Attributes::new(), 1)
        .await
        .unwrap();
    state.see_person("ann@example.org", &ann, 2).await.unwrap();
    assert!(matches!(State::open(&path).await, Err(StateError::InUse { .. })));
    let path = killed(&path);
    let state = State::open(&path).await.unwrap();
    let found = state.token(&kept.id).await.unwrap().unwrap();
    assert_eq!(
        (found.token, found.revoked_ms, found.used_ms),
        (kept.clone(), None, None)
    );
    assert_eq!(
        state.token(&revoked.id).await.unwrap().unwrap().revoked_ms,
        Some(7)
    );
    assert_eq!(state.tokens().await.unwrap().len(), 2);
    assert_eq!(state.person("ann@example.org").await.unwrap(), Some(ann));
    assert_eq!(state.person("bob@example.org").await.unwrap(), None);
    state.close().await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test]
async fn a_newer_or_broken_file_is_refused_and_stays_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state.db");
    let state = State::open(&path).await.unwrap();
    sqlx::query("PRAGMA user_version = 99")
        .execute(&mut *state.connection().await)
        .await
        .unwrap();
    state.close().await.unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(
        State::open(&path).await,
        Err(StateError::Newer {
            version: 99,
            known: 3,
            ..
        })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::write(&path, "no database, but long enough to be looked at as one").unwrap();
    assert!(matches!(State::open(&path).await, Err(StateError::Database(_))));
    assert!(matches!(
        State::open(temp.path()).await,
        Err(StateError::Io { .. })
    ));
}

#[tokio::test]
async fn the_stored_file_of_each_version_opens() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state.db");
    // Files with a row in each table, as each version wrote them.
    for version in ["v1", "v2", "v3"] {
        let file = format!("{}/src/state/{version}.db", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(file, &path).unwrap();
        let state = State::open(&path).await.unwrap();
        assert_kept(&state).await;
        state.close().await.unwrap();
    }
}

async fn assert_kept(state: &State) {
    let [listed] = &state.tokens().await.unwrap()[..] else {
        panic!("one token");
    };
    assert_eq!(
        (
            listed.token.name.as_str(),
            listed.made_by.as_str(),
            listed.used_ms
        ),
        ("job", "ann@example.org", Some(6))
    );
    assert_eq!(
        state.person("ann@example.org").await.unwrap().unwrap()["groups"],
        json!(["analysts"])
    );
    assert_eq!(state.audited(None, 10).await.unwrap().entries.len(), 1);
    let call = CallKey {
        principal: "token",
        key: "k",
        call: b"call",
    };
    assert!(
        matches!(state.begin(call, || false, 5).await.unwrap(), Begun::Before(answer) if answer.status == 202)
    );
}

#[tokio::test]
async fn uses_are_noted_once_a_minute() {
    let temp = tempfile::tempdir().unwrap();
    let state = State::open(&temp.path().join("state.db")).await.unwrap();
    let token = minted();
    state.add_token(&token, "ann", 0).await.unwrap();
    let mut noted = Vec::new();
    for at in [10, 59_999, 60_010, 60_011, 5] {
        state.note_use(&token.id, at).await.unwrap();
        noted.push(state.token(&token.id).await.unwrap().unwrap().used_ms.unwrap());
    }
    // The last one by a clock that was set back.
    assert_eq!(noted, [10, 10, 60_010, 60_010, 5]);
}

#[tokio::test]
async fn s_api8_the_first_answer_is_given_again_for_a_day() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state.db");
    let state = State::open(&path).await.unwrap();
    let key = |principal: &'static str, call: &'static [u8]| CallKey {
        principal,
        key: "nightly",
        call,
    };
    let call = key("ann", b"run");
    assert_eq!(
        state
            .begin(call, || panic!("nobody works on a new key"), 0)
            .await
            .unwrap(),
        Begun::Now
    );
    assert_eq!(state.begin(call, || true, 1).await.unwrap(), Begun::Working);
    assert_eq!(
        state.begin(key("ann", b"retry"), || true, 1).await.unwrap(),
        Begun::Another
    );
    assert_eq!(
        state.begin(key("bob", b"retry"), || true, 1).await.unwrap(),
        Begun::Now
    );
    // The process dies before the answer: the work is done once more.
    let state = State::open(&killed(&path)).await.unwrap();
    assert_eq!(state.begin(call, || false, 2).await.unwrap(), Begun::Now);
    let answer = Answer {
        status: 202,
        headers: "{}".into(),
        body: vec![0, 159, 7],
    };
    state.answered(call, &answer).await.unwrap();
    state.forget(call).await.unwrap();
    assert_eq!(
        state.begin(call, || false, 24 * HOUR - 1).await.unwrap(),
        Begun::Before(answer),
        "what was answered is not forgotten"
    );
    let mut bob = key("bob", b"retry");
    state.forget(bob).await.unwrap();
    bob.call = b"another";
    assert_eq!(
        state.begin(bob, || true, 3).await.unwrap(),
        Begun::Now,
        "after it was forgotten"
    );
    assert_eq!(
        state
            .begin(key("ann", b"retry"), || false, 24 * HOUR)
            .await
            .unwrap(),
        Begun::Now,
        "a day later"
    );
}

#[tokio::test]
async fn s_api20_the_audit_is_read_by_the_page_and_kept_for_ninety_days() {
    let temp = tempfile::tempdir().unwrap();
    let state = State::open(&temp.path().join("state.db")).await.unwrap();
    let entry = |at_ms: i64| AuditEntry {
        at_ms,
        principal: "ann@example.org".into(),
        protocol: "http".into(),
        instance: Some("shop".into()),
        operation: "pause".into(),
        subject: Some("model/orders".into()),
        request: None,
        outcome: None,
    };
    let done = |at_ms: i64| AuditEntry {
        outcome: Some("done".into()),
        ..entry(at_ms)
    };
    for at_ms in (0..100).map(|day| day * 24 * HOUR) {
        let number = state.audit(&entry(at_ms), Audited::CarriedOut).await.unwrap();
        let last = state.audited(None, 1).await.unwrap().entries.remove(0);
        assert_eq!(last, entry(at_ms), "stored before it is carried out");
        state.audit_outcome(number, &done(at_ms)).await.unwrap();
    }
    let mut read = Vec::new();
    let mut before = None;
    loop {
        let page = state.audited(before, 40).await.unwrap();
        read.extend(page.entries);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let expected: Vec<AuditEntry> = (10..100).rev().map(|day| done(day * 24 * HOUR)).collect();
    assert_eq!(read, expected);
}

#[tokio::test]
async fn s_api39_sessions_are_there_after_a_restart_until_they_end() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("state.db");
    let state = State::open(&path).await.unwrap();
    let session = |secret: &str, ends_ms: i64| Session {
        digest: crate::Digest::of(secret),
        claims: crate::jwt::Claims::from_iter([("sub".to_owned(), json!(secret))]),
        ends_ms,
    };
    for (secret, ends_ms) in [("ann", 100), ("bob", 200), ("eve", 300)] {
        assert!(state.add_session(&session(secret, ends_ms), 50).await.unwrap());
    }
    state.end_session(crate::Digest::of("eve")).await.unwrap();
    state.end_session(crate::Digest::of("nobody")).await.unwrap();
    let path = killed(&path);
    let state = State::open(&path).await.unwrap();
    assert_eq!(state.sessions(100).await.unwrap(), [session("bob", 200)]);
    assert_eq!(state.sessions(200).await.unwrap(), []);
}
