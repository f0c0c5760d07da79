use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::journal::record::StopOrder;
use crate::journal::table::Life;
use crate::protocol::{End, Exit, Failure, FailureClass, Lifetime, MemoryGuard, Output, StopReason, Then};
use crate::start_id::StartId;

fn start(id: &StartId) -> Record {
    Record::Start {
        id: id.clone(),
        epoch: 1,
        at_ms: 5,
        output: Some(Output {
            path: "/tmp/out".into(),
            max_size: 10,
            keep: 2,
        }),
    }
}

fn any_record(random: &mut SmallRng) -> Record {
    let id = StartId::new(
        &format!("u{}", random.random_range(0..3)),
        random.random_range(0..3),
    )
    .unwrap();
    match random.random_range(0..9) {
        0 | 1 => start(&id),
        2 | 3 => Record::Started {
            id,
            pid: 7,
            start_time: random.random_range(0..9),
            memory: MemoryGuard::DataLimit,
        },
        4 => Record::Failed {
            id,
            failure: Failure {
                class: FailureClass::BadFolder,
                message: "x".to_owned(),
            },
        },
        5 => Record::Stop {
            id,
            order: StopOrder {
                reason: StopReason::Ordered,
                signal: "TERM".to_owned(),
                deadline_ms: random.random_range(0..9),
                then: Then::Forget,
            },
        },
        6 => Record::Exit {
            id,
            exit: Exit {
                end: End::Code(random.random_range(0..9)),
                at_ms: 6,
                stop: None,
            },
        },
        7 if random.random_bool(0.5) => Record::Epoch {
            epoch: random.random_range(0..9),
            lifetime: Lifetime::Keep,
        },
        7 => Record::EpochOver {
            epoch: random.random_range(0..9),
        },
        _ => Record::Forget { id },
    }
}

/// W13: starts, stops and exits survive the shim, each once, whatever their order.
#[test]
fn a_journal_that_is_read_or_compacted_makes_the_table_that_wrote_it() {
    for seed in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SmallRng::seed_from_u64(seed);
        let Opened {
            mut journal,
            mut table,
            ..
        } = Journal::open(folder.path()).unwrap();
        for _ in 0..random.random_range(0..40) {
            let record = any_record(&mut random);
            journal.append(&record);
            table.apply(&record);
        }
        journal.sync().unwrap();
        let living = table.iter().filter(|(_, entry)| entry.lives()).count();
        assert_eq!(table.living(), living, "seed {seed}");
        for _ in 0..2 {
            let again = Journal::open(folder.path()).unwrap();
            assert_eq!(again.damage, None);
            assert_eq!(again.table.living(), living, "seed {seed}");
            assert_eq!(again.table, table, "seed {seed}");
        }
    }
}

#[test]
fn a_torn_line_at_the_end_is_dropped_and_one_within_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let ids = [1, 2].map(|counter| StartId::new("u", counter).unwrap());
    let mut journal = Journal::open(folder.path()).unwrap().journal;
    journal.append(&start(&ids[0]));
    journal.append(&start(&ids[1]));
    journal.sync().unwrap();
    let whole = fs::read(&path).unwrap();

    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    let torn = Journal::open(folder.path()).unwrap();
    assert_eq!((torn.table.len(), torn.damage), (1, None));

    let text = String::from_utf8(whole).unwrap().replacen("u:1", "nothing", 1);
    fs::write(&path, text).unwrap();
    let damaged = Journal::open(folder.path()).unwrap();
    assert!(damaged.table.get(&ids[1]).is_some());
    assert!(damaged.damage.is_some_and(|damage| damage.contains("line 3")));
    assert!(folder.path().join("journal.damaged").exists());
    assert_eq!(Journal::open(folder.path()).unwrap().damage, None);
}

/// W13: after a reboot nothing lives.
#[test]
fn another_boot_ends_what_lived_and_the_same_boot_does_not() {
    let id = StartId::new("u", 1).unwrap();
    let mut table = Table::default();
    let boot = |boot: &str| Record::Boot {
        boot: boot.to_owned(),
        at_ms: 1,
    };
    for record in [boot("a"), start(&id), boot("a")] {
        table.apply(&record);
    }
    assert_eq!(table.living(), 1);
    table.apply(&boot("b"));
    assert_eq!(table.living(), 0);
    let life = &table.get(&id).unwrap().life;
    assert!(matches!(life, Life::Exited(Exit { end: End::Reboot, .. })));
}

/// W3: a copied state folder must not stop or count the processes of the original.
#[test]
fn a_copy_of_a_journal_owns_nothing_and_a_moved_one_goes_on() {
    let parent = tempfile::tempdir().unwrap();
    let [first, copy, moved] = ["first", "copy", "moved"].map(|name| parent.path().join(name));
    for folder in [&first, &copy] {
        fs::create_dir(folder).unwrap();
    }
    let mut journal = Journal::open(&first).unwrap().journal;
    journal.append(&start(&StartId::new("u", 1).unwrap()));
    journal.sync().unwrap();
    fs::copy(first.join("journal"), copy.join("journal")).unwrap();
    let of_copy = Journal::open(&copy).unwrap();
    assert_eq!((of_copy.table.len(), of_copy.damage.is_some()), (0, true));
    fs::rename(&first, &moved).unwrap();
    assert_eq!(Journal::open(&moved).unwrap().table.len(), 1);
}

#[test]
fn a_journal_stays_small_however_many_starts_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let Opened {
        mut journal,
        mut table,
        ..
    } = Journal::open(folder.path()).unwrap();
    let mut largest = 0;
    for counter in 0..20_000 {
        let id = StartId::new("u", counter).unwrap();
        for record in [start(&id), Record::Forget { id }] {
            journal.append(&record);
            table.apply(&record);
        }
        if counter % 100 == 0 {
            journal.sync().unwrap();
            journal.compact(&table).unwrap();
            largest = largest.max(fs::metadata(folder.path().join("journal")).unwrap().len());
        }
    }
    assert!(largest < COMPACT_FROM + (64 << 10), "{largest} bytes");
    assert!(journal.is_in_place());
}
