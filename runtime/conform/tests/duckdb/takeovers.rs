//! Takeovers of a lake at random moments, by leaders whose predecessors are told nothing. What each wrote is read from the lake's
//! own history afterwards.

use std::sync::{Arc, Mutex};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::duckdb::ByHand;
use watershed_drivers::olap::{
    Build, BuildError, Failure, Guard, NewColumns, Olap, OutputKind, Over, Rename, RenameError, Step, Tag,
};

use super::lake::{Address, Catalog, LakeFolder};

/// Resources that all leaders build.
const RESOURCES: u128 = 6;

/// Returns the query for the number of rows that do not bear the epoch of the last take before them.
fn under_an_old_epoch(newest: &str) -> String {
    let history =
        |table: &str| format!("ducklake_table_insertions('theirs', '_watershed', '{table}', 0, {newest})");
    let (records, epochs) = (history("records"), history("epochs"));
    format!(
        "SELECT count(*) FROM {records} r WHERE coalesce(decode(record)::BIGINT, row_count) IS DISTINCT FROM \
         (SELECT arg_max(e.epoch, e.snapshot_id) FROM {epochs} e WHERE e.snapshot_id <= r.snapshot_id)"
    )
}

/// A leader of the lake, which writes until it learns of another one.
struct Leader {
    epoch: u64,
    engine: Arc<dyn Olap>,
    rng: SmallRng,
    /// Builds that were acknowledged, of all leaders.
    acknowledged: Arc<Mutex<Vec<Tag>>>,
    /// Number of acknowledged changes.
    done: watch::Sender<u32>,
    stop: CancellationToken,
}

/// The end of a change, as far as a leader cares.
enum End {
    Done(Vec<Tag>),
    Refused,
    Fenced,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fenced => Self::Fenced,
            Failure::Sql(_) => Self::Refused,
            other => panic!("{other:?}"),
        }
    }
}

impl Leader {
    /// Writes until it is fenced or stopped. Returns true if it was fenced.
    async fn lead(mut self) -> bool {
        while !self.stop.is_cancelled() {
            match self.change().await {
                End::Done(tags) => {
                    self.acknowledged.lock().unwrap().extend(tags);
                    self.done.send_modify(|done| *done += 1);
                }
                End::Refused => {}
                End::Fenced => return true,
            }
        }
        false
    }

    async fn change(&mut self) -> End {
        let cancel = CancellationToken::new();
        let uid = Uuid::from_u128(self.rng.random_range(1..=RESOURCES));
        match self.rng.random_range(0..10) {
            0 => {
                let to = format!("t{}", self.rng.random_range(1..=RESOURCES));
                let record = Some(self.record());
                let renamed = self.engine.rename(&Rename { uid, to, record }, &cancel).await;
                match renamed {
                    Ok(_) => End::Done(Vec::new()),
                    Err(RenameError::Failed(failure)) => failure.into(),
                    Err(_) => End::Refused,
                }
            }
            1 => match self.engine.drop_output(uid, Guard::Free, &cancel).await {
                Ok(_) => End::Done(Vec::new()),
                Err(failure) => failure.into(),
            },
            2..4 => {
                let builds: Vec<Build> = (1..=3).map(|n| self.build(Uuid::from_u128(n))).collect();
                let ends = self.engine.build_set(&builds, &cancel).await;
                let mut tags = Vec::new();
                for end in ends {
                    match end {
                        Ok(built) => tags.push(built.tag),
                        Err(error) => {
                            if let End::Fenced = refused(error) {
                                self.acknowledged.lock().unwrap().extend(tags);
                                return End::Fenced;
                            }
                        }
                    }
                }
                End::Done(tags)
            }
            _ => {
                let mut build = self.build(uid);
                if self.rng.random_bool(0.3) {
                    build.kind = OutputKind::Table;
                    build.step = Step::Into {
                        over: Over::Nothing,
                        columns: NewColumns::Leave,
                    };
                }
                match self.engine.build(&build, &cancel).await {
                    Ok(built) => End::Done(vec![built.tag]),
                    Err(error) => refused(error),
                }
            }
        }
    }

    fn record(&self) -> Vec<u8> {
        self.epoch.to_string().into_bytes()
    }

    fn build(&mut self, uid: Uuid) -> Build {
        let build = Uuid::from_u128(self.rng.random());
        let kind = match self.rng.random_bool(0.8) {
            true => OutputKind::Table,
            false => OutputKind::View,
        };
        let name = format!("t{}", uid.as_u128());
        let sql = format!("select {} as epoch", self.epoch);
        Build::of_statement(Tag { uid, build }, self.record(), kind, name, sql)
    }
}

fn refused(error: BuildError) -> End {
    match error {
        BuildError::Failed(failure) => failure.into(),
        _ => End::Refused,
    }
}

/// Has the lake taken a number of times at random moments.
async fn take_over(catalog: &Catalog, seed: u64, number: u64) {
    let lake = LakeFolder::new(catalog);
    let mut rng = SmallRng::seed_from_u64(seed);
    let acknowledged = Arc::<Mutex<Vec<Tag>>>::default();
    let stop = CancellationToken::new();
    let mut leaders = Vec::new();
    let mut engines: Vec<Arc<dyn Olap>> = Vec::new();
    for epoch in 1..=number {
        let engine: Arc<dyn Olap> = Arc::new(lake.address.engine());
        engine.take(epoch, &stop).await.unwrap();
        let (done, mut seen) = watch::channel(0);
        let leader = Leader {
            epoch,
            engine: Arc::clone(&engine),
            rng: SmallRng::seed_from_u64(rng.random()),
            acknowledged: Arc::clone(&acknowledged),
            done,
            stop: stop.clone(),
        };
        engines.push(engine);
        leaders.push(tokio::spawn(leader.lead()));
        // The next one takes the lake amid the changes of this one.
        let until = rng.random_range(1..4);
        seen.wait_for(|done| *done >= until).await.unwrap();
    }
    let last = leaders.pop();
    for leader in leaders {
        assert!(
            leader.await.unwrap(),
            "seed {seed}: a former leader was never fenced"
        );
    }
    stop.cancel();
    assert!(
        !last.unwrap().await.unwrap(),
        "seed {seed}: the last leader was fenced"
    );
    for (epoch, engine) in (1..).zip(&engines).take(engines.len() - 1) {
        let resumed = engine.take(epoch, &CancellationToken::new()).await;
        assert_eq!(
            resumed,
            Err(Failure::Fenced),
            "seed {seed}: epoch {epoch} came back"
        );
    }
    for engine in &engines {
        engine.close().await.unwrap();
    }
    let acknowledged = std::mem::take(&mut *acknowledged.lock().unwrap());
    look_at_history(&lake.address, &acknowledged, seed).await;
}

/// Holds the lake's own history against what the leaders were told.
async fn look_at_history(address: &Address, acknowledged: &[Tag], seed: u64) {
    let hand = address.by_hand();
    let newest = hand.lines("SELECT id FROM ducklake_current_snapshot('theirs')");
    let written = hand.lines("SELECT count(*) FROM _watershed.records");
    let seen = "SELECT count(*) FROM ducklake_table_insertions('theirs', '_watershed', 'records', 0, ";
    assert_eq!(
        hand.lines(&format!("{seen}{})", newest[0])),
        written,
        "the history is whole"
    );
    assert_eq!(hand.lines(&under_an_old_epoch(&newest[0])), ["0"], "seed {seed}");
    let written = hand.lines("SELECT uid || ' ' || build FROM _watershed.records WHERE record IS NOT NULL");
    for Tag { uid, build } in acknowledged {
        let row = format!("{uid} {build}");
        assert!(written.contains(&row), "seed {seed}: {row} was acknowledged");
    }
    assert!(!acknowledged.is_empty());
    let newest = "SELECT uid || ' ' || build FROM (SELECT * FROM _watershed.records \
                  QUALIFY row_number() OVER (PARTITION BY uid ORDER BY number DESC) = 1) \
                  WHERE record IS NOT NULL ORDER BY 1";
    let newest = hand.lines(newest);
    drop(hand);
    let engine = address.engine();
    let outputs = (&engine as &dyn Olap)
        .outputs(&CancellationToken::new())
        .await
        .unwrap();
    let mut standing: Vec<String> = outputs
        .iter()
        .map(|output| format!("{} {}", output.tag.uid, output.tag.build))
        .collect();
    standing.sort();
    assert_eq!(standing, newest, "seed {seed}: outputs and records");
    engine.close().await.unwrap();
}

/// Returns the takeovers of one run.
fn takeovers() -> u64 {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Err(_) | Ok("ci") => 6,
        Ok(number) => number.parse().unwrap_or(500),
    }
}

/// Takes lakes over, with seeds of which one is new in each run.
pub(crate) async fn take_over_often(catalog: &Catalog) {
    take_over(catalog, 1, takeovers()).await;
    let seed = Uuid::new_v4().as_u64_pair().0;
    println!("seed {seed}");
    take_over(catalog, seed, takeovers()).await;
}

/// Writes under an old epoch by the same steps, with or without the comment of a take. Returns true if that was committed.
pub(crate) fn is_committed_after_a_take(catalog: &Catalog, comments: bool) -> bool {
    let lake = LakeFolder::new(catalog);
    let setup = lake.address.by_hand();
    setup.run("CREATE SCHEMA _watershed");
    setup.run("CREATE TABLE _watershed.records (number BIGINT)");
    setup.run("CREATE TABLE _watershed.epochs (epoch BIGINT)");
    setup.run("INSERT INTO _watershed.epochs VALUES (1)");
    let (former, later) = (lake.address.by_hand(), lake.address.by_hand());
    former.run("BEGIN");
    assert_eq!(former.lines("SELECT max(epoch) FROM _watershed.epochs"), ["1"]);
    former.run("CREATE TABLE main.late AS SELECT 1 AS x");
    former.run("INSERT INTO _watershed.records VALUES (1)");
    take_by_hand(&later, comments);
    former.try_run("COMMIT").is_ok()
}

fn take_by_hand(later: &ByHand, comments: bool) {
    later.run("BEGIN");
    later.run("INSERT INTO _watershed.epochs VALUES (2)");
    if comments {
        later.run("COMMENT ON TABLE _watershed.records IS 'epoch 2'");
    }
    later.run("COMMIT");
}
