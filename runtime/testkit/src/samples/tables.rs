//! A sample with a table under the resource's name, tagged with its uid; a rename moves it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

#[derive(Serialize, Deserialize)]
struct Columns(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Made(u64);

json_message!(Columns, format = 1);
json_message!(Made, format = 1);

#[derive(Default)]
struct Database(BTreeMap<String, (Uid, u64)>);

impl World for Database {
    type Seen = BTreeMap<String, (Uid, u64)>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }
}

impl Database {
    fn own(&self, uid: Uid) -> Option<String> {
        let own = self.0.iter().find(|(_, table)| table.0 == uid);
        own.map(|(name, _)| name.clone())
    }

    fn move_to(&mut self, uid: Uid, to: &str, spares_others: bool) {
        let Some(from) = self.own(uid).filter(|from| from != to) else {
            return;
        };
        if let Some(other) = self.0.remove(to)
            && spares_others
        {
            self.0.insert(format!("aside {}", other.0), other);
        }
        if let Some(table) = self.0.remove(&from) {
            self.0.insert(to.to_owned(), table);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    DropsWhatIsInTheWay,
    CreatesIfNotThere,
    NotesAlsoWhenItFails,
}

struct Tables {
    database: StandIn<Database>,
    flaw: Option<Flaw>,
}

impl Reconciler for Tables {
    type Spec = Columns;
    type State = Made;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, name, columns) = (context.uid(), context.name().to_string(), context.spec().0);
        match self.flaw {
            Some(Flaw::DropsWhatIsInTheWay | Flaw::NotesAlsoWhenItFails)
                if context.state() == Some(&Made(columns)) =>
            {
                return done(Work::None);
            }
            Some(Flaw::CreatesIfNotThere) => {
                let create = |database: &mut Database| *database.0.entry(name).or_insert((uid, columns));
                self.database.call(create).await?;
            }
            _ => {
                let replace = |database: &mut Database| database.0.insert(name, (uid, columns));
                let replaced = self.database.call(replace).await;
                if replaced.is_err() && self.flaw == Some(Flaw::NotesAlsoWhenItFails) {
                    note(&context, Made(columns)).await?;
                }
                replaced?;
            }
        }
        note(&context, Made(columns)).await?;
        done(Work::Built)
    }

    async fn rename(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, to) = (context.uid(), context.name().to_string());
        let spares_others = self.flaw != Some(Flaw::DropsWhatIsInTheWay);
        self.database
            .call(|database| database.move_to(uid, &to, spares_others))
            .await?;
        done(Work::Renamed)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.database
            .call(|database| database.0.retain(|_, table| table.0 != uid))
            .await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Database>, Tables> {
    let tables = move |database: &StandIn<Database>| Tables {
        database: database.clone(),
        flaw,
    };
    Kit::new(StandIn::default, tables, |roll| Columns(roll.below(4)))
}

#[test]
fn a_table_that_moves_others_aside_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_tables_are_found() {
    finds(kit(Some(Flaw::DropsWhatIsInTheWay)), Fault::LosesRename);
    finds(kit(Some(Flaw::NotesAlsoWhenItFails)), Fault::NotRetrySafe);
    finds(kit(Some(Flaw::CreatesIfNotThere)), Fault::StaleSpec);
}
