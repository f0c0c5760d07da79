//! Catalogs of no-op resources in different shapes.

use std::time::{Duration, Instant};

use watershed_controller::kind::Parents;
use watershed_controller::message::{DecodeError, EncodeError};
use watershed_controller::store::{MemoryStore, Store};
use watershed_controller::{
    Batch, Context, Controller, Edit, Error, KindOptions, Limits, Message, NewResource, Outcome, Reconciler,
    Ref, Resource,
};

/// Longer than any of this takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(600);
/// Edits of one batch when a catalog is made.
const BATCH: usize = 10_000;
/// Reconcilers that only look are cheap enough to run by the thousand.
pub(crate) const CONCURRENCY: usize = 1_024;

/// A spec of bytes that say nothing.
pub(crate) struct Blob(Vec<u8>);

impl Message for Blob {
    const FORMAT: u32 = 0;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.clone())
    }

    fn decode(_format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(bytes.to_vec()))
    }
}

/// Looks, and finds nothing to do.
pub(crate) struct Nothing;

impl Reconciler for Nothing {
    type Spec = Blob;
    type State = ();

    async fn reconcile(&self, _context: Context<Self>) -> Result<Outcome, Error> {
        Ok(Outcome::default())
    }
}

/// A shape of graph: the numbers of the resources that the one with this number reads, all lower.
pub(crate) type Shape = fn(usize) -> Vec<usize>;

pub(crate) const LOOSE: Shape = |_| Vec::new();
pub(crate) const CHAIN: Shape = |n| Vec::from_iter(n.checked_sub(1));
pub(crate) const FAN: Shape = |n| Vec::from_iter((n > 0).then_some(0));
/// Ten layers of ten thousand; each resource reads three of the layer above.
pub(crate) const LAYERS: Shape = |n| match n.checked_sub(LAYER) {
    None => Vec::new(),
    Some(above) => {
        let first = above / LAYER * LAYER;
        let at = |step: usize| first + (above % LAYER + step) % LAYER;
        vec![at(0), at(1), at(LAYER / 2)]
    }
};
const LAYER: usize = 10_000;

pub(crate) fn name(number: usize) -> String {
    format!("thing{number:07}")
}

pub(crate) fn resource(number: usize, shape: Shape) -> NewResource {
    let mut new = NewResource::new(Resource::fresh_uid(), "thing", name(number).as_str(), Vec::new());
    new.spec_format = 0;
    let parents = shape(number);
    let refs: Vec<Ref> = parents
        .into_iter()
        .map(|parent| Ref::completed("thing", name(parent).as_str()))
        .collect();
    new.with_refs(refs)
}

pub(crate) async fn start(store: impl Store) -> Controller {
    start_as(store, Parents::Completed).await
}

pub(crate) async fn start_as(store: impl Store, parents: Parents) -> Controller {
    let limits = Limits::default().concurrency(CONCURRENCY);
    let mut options = KindOptions::new("thing");
    options = options.parents(parents);
    let builder = Controller::builder()
        .store(store)
        .limits(limits)
        .kind(options, Nothing);
    builder.start().await.expect("the controller starts")
}

pub(crate) async fn idle(controller: &Controller) {
    controller
        .wait_until_idle(DEADLINE)
        .await
        .expect("everything becomes idle");
}

pub(crate) async fn finish(controller: Controller) {
    idle(&controller).await;
    controller
        .shutdown(DEADLINE)
        .await
        .expect("the controller stops in order");
}

pub(crate) fn batch(numbers: std::ops::Range<usize>, shape: Shape) -> Batch {
    let edits = numbers
        .map(|number| Edit::create(resource(number, shape)))
        .collect();
    Batch { edits }
}

/// Fills a store with `count` resources, each run once.
pub(crate) async fn fill(store: impl Store, count: usize, shape: Shape) {
    let controller = start(store).await;
    for first in (0..count).step_by(BATCH) {
        let batch = batch(first..count.min(first + BATCH), shape);
        controller.edit(batch).await.expect("the batch is taken");
    }
    finish(controller).await;
}

pub(crate) async fn filled(count: usize, shape: Shape) -> MemoryStore {
    let store = MemoryStore::new();
    fill(store.clone(), count, shape).await;
    store
}

/// A controller at rest over so many resources.
pub(crate) async fn at_rest(count: usize, shape: Shape) -> Controller {
    let controller = start(filled(count, shape).await).await;
    idle(&controller).await;
    controller
}

/// Seconds from a start to idle.
pub(crate) async fn start_to_idle(store: impl Store) -> f64 {
    let started = Instant::now();
    let controller = start(store).await;
    idle(&controller).await;
    let elapsed = started.elapsed().as_secs_f64();
    finish(controller).await;
    elapsed
}

/// The value below which this part of all samples lies.
pub(crate) fn quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let at = (samples.len() as f64 * part) as usize;
    samples
        .get(at.min(samples.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    quantile(&mut samples, 0.5)
}
