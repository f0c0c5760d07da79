//! Tests of a journal that can't be written: no start begins and no exit is lost.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use watershed_shim::Error;
use watershed_shim::protocol::{End, Phase, Refusal, Then};

use crate::support::{Rig, exit_of, find, id, is_alive, kill, pid, stop, until, until_true};

/// The most starts that fit into a journal of two kilobytes.
const ENOUGH: u64 = 50;

/// Ends the simulated lack of disk space for a shim.
fn lift(shim: u32) {
    let none = Rlimit {
        current: None,
        maximum: None,
    };
    let shim = i32::try_from(shim).ok().and_then(Pid::from_raw);
    prlimit(shim, Resource::Fsize, none).unwrap();
}

/// W13: a start whose intent can't be stored is refused, and nothing runs; exits wait until they can be stored.
#[tokio::test]
async fn while_the_disk_is_full_nothing_starts_and_no_exit_is_lost() {
    let rig = Rig::new();
    let client = rig.client_in_shell("trap '' XFSZ; ulimit -S -f 4;");
    let process = client.spawn(rig.order(&id("a", 1), &["wait"])).await.unwrap();
    let mut begun = Vec::new();
    let refused = loop {
        let next = id(&format!("b{}", begun.len()), 1);
        match client.spawn(rig.order(&next, &["wait"])).await {
            Ok(process) => begun.push((next, pid(&process))),
            Err(Error::Refused(Refusal::Journal(_))) => break next,
            Err(other) => panic!("{other:?}"),
        }
        assert!((begun.len() as u64) < ENOUGH);
    };
    assert_eq!(find(&client, &refused).await, None);
    let kept = client.stop(stop(&id("a", 1), "TERM", 0, Then::Keep)).await;
    assert!(
        matches!(kept, Err(Error::Refused(Refusal::Journal(_)))),
        "{kept:?}"
    );
    assert!(is_alive(pid(&process)), "no signal without its record");
    assert_eq!(find(&client, &id("a", 1)).await.unwrap().stopping, None);

    for (_, pid) in &begun {
        kill(*pid);
    }
    until_true("they are gone", || begun.iter().all(|(_, pid)| !is_alive(*pid))).await;
    let listed = client.list().await.unwrap();
    let told = listed
        .iter()
        .filter(|process| matches!(process.phase, Phase::Exited(_)));
    assert!(
        told.count() < begun.len(),
        "an exit is told that can't have been stored"
    );

    for _ in 0..2 {
        lift(client.shim().await.unwrap());
        for (id, _) in &begun {
            assert_eq!(exit_of(&client, id).await.end, End::Signal(9), "{id}");
        }
        kill(client.shim().await.unwrap());
    }
    assert_eq!(
        client.list().await.unwrap().len(),
        begun.len() + 1,
        "a shim begins on a full disk, too"
    );
    lift(client.shim().await.unwrap());
    client.spawn(rig.order(&refused, &["exit", "3"])).await.unwrap();
    exit_of(&client, &refused).await;
    client
        .stop(stop(&id("a", 1), "TERM", 5_000, Then::Forget))
        .await
        .unwrap();
    until("it is gone", || async {
        find(&client, &id("a", 1)).await.is_none().then_some(())
    })
    .await;
}
