//! A sample that makes a page from its refs, with an in-memory cache by their versions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use watershed_core::{Error, Outcome, Uid, Work};

use super::standin::{done, note};
use super::{Fault, Kit, StandIn, World, finds, passes};
use watershed_controller::{Context, Reconciler, Resource, json_message};

#[derive(Serialize, Deserialize)]
struct Layout(u64);

#[derive(Serialize, Deserialize)]
struct Article(u64);

#[derive(PartialEq, Serialize, Deserialize)]
struct Page(String);

json_message!(Layout, format = 1);
json_message!(Article, format = 1);
json_message!(Page, format = 1);

#[derive(Default)]
struct Web(BTreeMap<Uid, String>);

impl World for Web {
    type Seen = BTreeMap<Uid, String>;

    fn look(&self) -> Self::Seen {
        self.0.clone()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    CachesByVersionAlone,
    CachesByName,
}

struct Renderer {
    web: StandIn<Web>,
    flaw: Option<Flaw>,
    cache: Mutex<HashMap<String, u64>>,
}

impl Renderer {
    fn render(&self, context: &Context<Self>) -> Result<String, Error> {
        let mut page = format!("layout {}", context.spec().0);
        for view in context.refs() {
            let target = view.target.as_deref().filter(|_| !view.failed);
            let Some(row) = target else {
                return Err(Error::permanent(
                    "missing",
                    format!("\"{}\" is not there", view.reference),
                ));
            };
            let key = match self.flaw {
                None => format!("{} {}", row.uid, row.state_version),
                Some(Flaw::CachesByVersionAlone) => format!("{} {}", row.name, row.state_version),
                Some(Flaw::CachesByName) => row.name.to_string(),
            };
            let article = Resource::state_of::<Article>(row)
                .ok()
                .flatten()
                .map_or(0, |article| article.0);
            let mut cache = self.cache.lock().expect("nobody panics with it");
            page += &format!(", {}", *cache.entry(key).or_insert(article));
        }
        Ok(page)
    }
}

impl Reconciler for Renderer {
    type Spec = Layout;
    type State = Page;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (uid, page) = (context.uid(), self.render(&context)?);
        self.web.call(|web| web.0.insert(uid, page.clone())).await?;
        note(&context, Page(page)).await?;
        done(Work::Built)
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let uid = context.uid();
        self.web.call(|web| web.0.remove(&uid)).await?;
        done(Work::Dropped)
    }
}

fn kit(flaw: Option<Flaw>) -> Kit<StandIn<Web>, Renderer> {
    let renderer = move |web: &StandIn<Web>| Renderer {
        web: web.clone(),
        flaw,
        cache: Mutex::default(),
    };
    Kit::new(StandIn::default, renderer, |roll| Layout(roll.below(3)))
        .reads("article", |roll| Article(roll.below(1_000)))
}

#[test]
fn a_cache_by_uid_and_version_is_right() {
    passes(kit(None));
}

#[test]
fn faults_of_caches_are_found() {
    finds(kit(Some(Flaw::CachesByVersionAlone)), Fault::StaleRef);
    finds(kit(Some(Flaw::CachesByName)), Fault::StaleRef);
}
