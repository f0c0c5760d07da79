//! Servers that crash and lines that are cut, at points and after bytes that a seed chooses. What was acknowledged stays, what
//! failed was not done, and of what is unknown all stands or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{
    Build, BuildError, Failure, Guard, Olap, OutputKind, Rename, RenameError, Tag,
};

use super::lake::{Address, Catalog, LakeFolder};
use super::line::{End, Line};
use super::postgres::Server;
use super::s3::Store;

/// Number of resources.
const RESOURCES: u128 = 3;
/// Port in the name of the server's socket.
const SOCKET: &str = ".s.PGSQL.5432";
/// The most bytes that pass before a line is cut: more than a build sends to the catalog.
const MOST_BYTES: u64 = 40_000;
/// Points at which a fault begins; a fault without one begins with the call.
const POINTS: [&str; 6] = [
    "drivers::build::before_commit",
    "drivers::build::after_commit",
    "drivers::rename::before_commit",
    "drivers::rename::after_commit",
    "drivers::drop::before_commit",
    "drivers::drop::after_commit",
];

/// Name of each output, with the number of its build.
type Standing = BTreeMap<u128, (String, u64)>;

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The server of the catalog crashes and starts again.
    Crash,
    /// The line to the catalog is cut after some bytes.
    Catalog(u64),
    /// The line to the catalog is cut after some bytes, as its server crashes and starts again.
    CrashAfter(u64),
    /// The line to the store is cut after some bytes.
    Files(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Build(u128, u64),
    Rename(u128, String),
    Drop(u128),
}

/// End of a change for whoever asked for it.
#[derive(Debug, PartialEq)]
enum Ended {
    Done,
    Refused,
    Unknown,
}

struct Lines {
    server: Arc<Server>,
    catalog: Line,
    files: Line,
}

impl Lines {
    fn begin(&self, fault: Fault) {
        match fault {
            Fault::Crash => self.server.crash(),
            Fault::Catalog(bytes) => self.catalog.cut_after(bytes, || {}),
            Fault::CrashAfter(bytes) => {
                let (server, line) = (Arc::clone(&self.server), self.catalog.clone());
                self.catalog.cut_after(bytes, move || {
                    server.crash();
                    line.let_through();
                });
            }
            Fault::Files(bytes) => self.files.cut_after(bytes, || {}),
        }
    }

    fn mend(&self) {
        self.catalog.mend();
        self.files.mend();
    }
}

/// Returns the number of rounds.
fn rounds() -> u64 {
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Err(_) => 5,
        Ok("ci") => 6,
        Ok(number) => number.parse().unwrap_or(300),
    }
}

/// Breaks something in each round, with a seed that is new where many rounds are asked for.
pub(crate) async fn break_often(server: &Arc<Server>, store: &Arc<Store>) {
    let given = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| match rounds() > 12 {
        true => Uuid::new_v4().as_u64_pair().0,
        false => 1,
    });
    println!("seed {seed}");
    let lake = LakeFolder::new(&Catalog::WithStore(Arc::clone(server), Arc::clone(store)));
    let lines = Arc::new(Lines {
        server: Arc::clone(server),
        catalog: Line::to(End::Unix(server.socket_folder().join(SOCKET))),
        files: Line::to(End::Tcp(store.address().to_owned())),
    });
    let through = lake.address.through(&lines.catalog, &lines.files);
    let mut world = World {
        rng: SmallRng::seed_from_u64(seed),
        engine: through.engine(),
        through,
        straight: lake.address.clone(),
        standing: Standing::new(),
        builds: 0,
        epoch: 0,
        lines,
    };
    let mut ends = BTreeMap::<String, u32>::new();
    for round in 0..rounds() {
        let story = world.round(&format!("seed {seed}, round {round}")).await;
        *ends.entry(story).or_default() += 1;
    }
    println!("{ends:?}");
    world.engine.close().await.unwrap();
}

struct World {
    rng: SmallRng,
    engine: Engine,
    /// The lake by the lines that break.
    through: Address,
    /// The lake without them.
    straight: Address,
    standing: Standing,
    /// Number of the last build.
    builds: u64,
    epoch: u64,
    lines: Arc<Lines>,
}

impl World {
    /// Breaks something amid a change, and looks at what it left. Returns how it ended.
    async fn round(&mut self, round: &str) -> String {
        if self.rng.random_ratio(1, 3) {
            self.start_anew().await;
        }
        let (change, fault) = (self.draw_change(), self.draw_fault());
        let point = POINTS.choose(&mut self.rng).filter(|_| self.rng_says());
        let story = format!("{round}: {change:?}, {fault:?} at {point:?}");
        match point {
            Some(point) => {
                let lines = Arc::clone(&self.lines);
                fail::cfg_callback(*point, move || lines.begin(fault)).unwrap();
            }
            None => self.lines.begin(fault),
        }
        let end = self.make(&change, &story).await;
        if let Some(point) = point {
            fail::remove(*point);
        }
        self.lines.mend();
        let mut after = self.standing.clone();
        match change.clone() {
            Change::Build(uid, number) => {
                let name = after
                    .get(&uid)
                    .map_or_else(|| format!("t{uid}"), |(name, _)| name.clone());
                after.insert(uid, (name, number));
            }
            Change::Rename(uid, to) => {
                if let Some((name, _)) = after.get_mut(&uid) {
                    *name = to;
                }
            }
            Change::Drop(uid) => drop(after.remove(&uid)),
        }
        let found = self.found();
        match end {
            Ended::Done => assert_eq!(found, after, "{story}: it was acknowledged"),
            Ended::Refused => assert_eq!(found, self.standing, "{story}: it was refused"),
            Ended::Unknown => assert!(
                found == after || found == self.standing,
                "{story}: {found:?} is neither {after:?} nor {:?}",
                self.standing
            ),
        }
        self.standing = found;
        // Nothing stays broken.
        let again = self.build_of(1);
        assert_eq!(
            self.make(&again, &story).await,
            Ended::Done,
            "{story}, then {again:?}"
        );
        let name = self
            .standing
            .get(&1)
            .map_or_else(|| "t1".to_owned(), |(name, _)| name.clone());
        self.standing.insert(1, (name, self.builds));
        assert_eq!(self.found(), self.standing, "{story}, then {again:?}");
        format!("{end:?}")
    }

    fn rng_says(&mut self) -> bool {
        self.rng.random_bool(0.6)
    }

    /// Goes on with an engine that knows what the lake says alone, as a new process would.
    async fn start_anew(&mut self) {
        self.engine.close().await.unwrap();
        self.engine = self.through.engine();
        self.epoch += 1;
        let olap: &dyn Olap = &self.engine;
        olap.take(self.epoch, &CancellationToken::new()).await.unwrap();
    }

    fn draw_change(&mut self) -> Change {
        let uid = self.rng.random_range(1..=RESOURCES);
        match self.rng.random_range(0..6) {
            0 => Change::Rename(uid, format!("r{uid}")),
            1 => Change::Rename(uid, format!("t{uid}")),
            2 => Change::Drop(uid),
            _ => self.build_of(uid),
        }
    }

    fn build_of(&mut self, uid: u128) -> Change {
        self.builds += 1;
        Change::Build(uid, self.builds)
    }

    fn draw_fault(&mut self) -> Fault {
        let bytes = self.rng.random_range(1..MOST_BYTES);
        match self.rng.random_range(0..8) {
            0 => Fault::Crash,
            1..4 => Fault::Catalog(bytes),
            4..6 => Fault::CrashAfter(bytes),
            _ => Fault::Files(bytes / 4),
        }
    }

    async fn make(&self, change: &Change, story: &str) -> Ended {
        let (olap, cancel): (&dyn Olap, _) = (&self.engine, CancellationToken::new());
        let failure = match change {
            Change::Build(uid, number) => {
                let tag = Tag {
                    uid: Uuid::from_u128(*uid),
                    build: Uuid::from_u128(u128::from(*number)),
                };
                // Some have other columns than the build before.
                let columns = format!("x, {number} as x{}", number % 3);
                let sql = format!("select {columns} from (select {number} as x from range(20))");
                let name = self
                    .standing
                    .get(uid)
                    .map_or_else(|| format!("t{uid}"), |(name, _)| name.clone());
                let record = number.to_string().into_bytes();
                let build = Build::of_statement(tag, record, OutputKind::Table, name, sql);
                match olap.build(&build, &cancel).await {
                    Ok(_) => return Ended::Done,
                    Err(BuildError::Failed(failure)) => failure,
                    Err(other) => panic!("{story}: {other:?}"),
                }
            }
            Change::Rename(uid, to) => {
                let rename = Rename {
                    uid: Uuid::from_u128(*uid),
                    to: to.clone(),
                    record: None,
                };
                match olap.rename(&rename, &cancel).await {
                    Ok(_) => return Ended::Done,
                    Err(RenameError::Failed(failure)) => failure,
                    // It is not there.
                    Err(_) => return Ended::Refused,
                }
            }
            Change::Drop(uid) => {
                match olap
                    .drop_output(Uuid::from_u128(*uid), Guard::Free, &cancel)
                    .await
                {
                    Ok(_) => return Ended::Done,
                    Err(failure) => failure,
                }
            }
        };
        println!("{story}: {failure:?}");
        match failure {
            Failure::Unknown { .. } => Ended::Unknown,
            Failure::Fenced => panic!("{story}: nobody else takes the lake"),
            _ => Ended::Refused,
        }
    }

    /// Returns what anybody sees in the lake, whose records say the same.
    fn found(&self) -> Standing {
        let hand = self.straight.by_hand();
        let named = "SELECT table_name FROM information_schema.tables \
                     WHERE table_catalog = current_database() AND table_schema = 'main' \
                     AND NOT starts_with(table_name, '_watershed')";
        let rows = |name: String| {
            let seen = hand.lines(&format!("SELECT DISTINCT x FROM {name}"));
            assert_eq!(seen.len(), 1, "`{name}` is of one build: {seen:?}");
            (name[1..].parse().unwrap(), (name, seen[0].parse().unwrap()))
        };
        let found: Standing = hand.lines(named).into_iter().map(rows).collect();
        let newest = "SELECT decode(record) FROM (SELECT * FROM _watershed.records \
                      QUALIFY row_number() OVER (PARTITION BY uid ORDER BY number DESC) = 1) \
                      WHERE record IS NOT NULL ORDER BY uid";
        let numbers: Vec<String> = found.values().map(|(_, number)| number.to_string()).collect();
        assert_eq!(hand.lines(newest), numbers, "{found:?}");
        found
    }
}
