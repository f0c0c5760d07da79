//! A sample with three objects, each made in the one before: a network, a subnet in it, a machine in that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, json_message};

/// Kinds of the three objects, outermost first.
const LAYERS: [&str; 3] = ["network", "subnet", "machine"];

#[derive(Serialize, Deserialize)]
struct Size(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Stands(u64);

json_message!(Size, format = 1);
json_message!(Stands, format = 1);

/// Objects by their ids, which the outside never repeats.
#[derive(Default)]
struct Cloud {
    objects: BTreeMap<u64, Object>,
    next_id: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    tag: (Uid, String),
    size: u64,
    inside: Option<u64>,
}

impl World for Cloud {
    /// Objects without their ids: owner, layer, size, and enclosing object.
    type Seen = Vec<(Uid, String, u64, Option<String>)>;

    fn look(&self) -> Self::Seen {
        let inside = |id: u64| self.objects.get(&id).map(|object| object.tag.1.clone());
        let seen = |object: &Object| {
            let (uid, layer) = object.tag.clone();
            (uid, layer, object.size, object.inside.and_then(inside))
        };
        let mut all: Vec<_> = self.objects.values().map(seen).collect();
        all.sort();
        all
    }
}

impl Cloud {
    fn find(&self, tag: &(Uid, String)) -> Option<u64> {
        let found = self.objects.iter().find(|(_, object)| object.tag == *tag);
        found.map(|(id, _)| *id)
    }

    fn make(&mut self, object: Object) -> u64 {
        self.next_id += 1;
        self.objects.insert(self.next_id, object);
        self.next_id
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    NotesBeforeItIsDone,
    TagsWithTheSpec,
}

struct Builder {
    cloud: StandIn<Cloud>,
    flaw: Option<Flaw>,
}

impl Builder {
    async fn layer(&self, context: &Context<Self>, layer: &str, inside: Option<u64>) -> Result<u64, Error> {
        let size = context.spec().0;
        let tag = match self.flaw {
            Some(Flaw::TagsWithTheSpec) => (context.uid(), format!("{layer} of size {size}")),
            _ => (context.uid(), layer.to_owned()),
        };
        let there = self.cloud.call(|cloud| cloud.find(&tag)).await?;
        let object = Object { tag, size, inside };
        let put = |cloud: &mut Cloud| match there {
            Some(id) => {
                cloud.objects.insert(id, object);
                id
            }
            None => cloud.make(object),
        };
        self.cloud.call(put).await
    }
}

impl Reconciler for Builder {
    type Spec = Size;
    type State = Stands;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let size = context.spec().0;
        if self.flaw == Some(Flaw::NotesBeforeItIsDone) {
            if context.state() == Some(&Stands(size)) {
                return done(Work::None);
            }
            note(&context, Stands(size)).await?;
        }
        let mut inside = None;
        for layer in LAYERS {
            inside = Some(self.layer(&context, layer, inside).await?);
        }
        note(&context, Stands(size)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        for layer in LAYERS.iter().rev() {
            let of_it = |object: &Object| object.tag.0 == uid && object.tag.1.starts_with(layer);
            let remove = |cloud: &mut Cloud| cloud.objects.retain(|_, object| !of_it(object));
            self.cloud.call(remove).await?;
        }
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Cloud>, Builder> {
    let builder = move |cloud: &StandIn<Cloud>| Builder {
        cloud: cloud.clone(),
        flaw,
    };
    Kit::new(StandIn::default, builder, |roll| Size(1 + roll.below(3)))
}

#[test]
fn objects_that_are_found_by_their_tags_are_right() {
    passes(kit(None));
}

#[test]
fn faults_of_stacks_are_found() {
    finds(kit(Some(Flaw::NotesBeforeItIsDone)), Fault::NotCancelSafe);
    finds(kit(Some(Flaw::TagsWithTheSpec)), Fault::StaleSpec);
}
