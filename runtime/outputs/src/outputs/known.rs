//! Known outputs of the engine, kept true through changes with unknown outcomes.
//!
//! Invariants:
//! 1. `by_location` has exactly the outputs whose place is known, under their place as the engine compares it.
//! 2. A uid is doubtful from the moment its change ended unlearned until the next listing.
//! 3. A change that ended while a listing was under way counts, whatever that listing says of it.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Location, Output};

use super::Claim;

#[derive(Debug, Default)]
pub(super) struct Known {
    listing: Listing,
    by_uid: HashMap<Uuid, Output>,
    by_location: HashMap<Location, Uuid>,
    doubtful: HashSet<Uuid>,
    /// True once a change has begun: the engine's data may differ from the last close.
    touched: bool,
    /// True if a migration or another process changed the data since the last listing: its effect on outputs is
    /// unknown.
    meddled: bool,
    /// Number of changes by other processes that this knowledge takes into account.
    changes_by_others: u64,
}

#[derive(Debug, Default)]
enum Listing {
    /// No listing is valid.
    #[default]
    Never,
    /// A listing is running; the resources whose outputs changed meanwhile.
    UnderWay(HashSet<Uuid>),
    /// The last listing is valid for all outputs.
    Done,
}

/// The outputs that a look-up needs.
#[derive(Debug, Clone, Copy)]
pub(super) enum About {
    /// The output of one resource.
    One(Uuid),
    /// All outputs, for example to find a name.
    All,
}

impl Known {
    /// Returns true if no listing and no change has begun.
    pub(super) fn is_untouched(&self) -> bool {
        matches!(self.listing, Listing::Never) && !self.touched
    }

    /// Records that a change begins.
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// Records that a person's statements ran: nothing is known until the next listing.
    pub(super) fn meddle(&mut self) {
        self.touched = true;
        self.meddled = true;
        self.listing = Listing::Never;
    }

    /// Takes the number of changes by other processes; if it has grown, nothing is known until the next listing.
    pub(super) fn trust_since(&mut self, changes_by_others: u64) {
        if changes_by_others > self.changes_by_others {
            self.changes_by_others = changes_by_others;
            self.meddle();
        }
    }

    /// Returns true if the look-up needs no new listing.
    pub(super) fn can_tell(&self, about: About) -> bool {
        let sure = match about {
            About::One(uid) => !self.doubtful.contains(&uid),
            About::All => self.doubtful.is_empty(),
        };
        sure && matches!(self.listing, Listing::Done)
    }

    pub(super) fn get(&self, uid: Uuid) -> Option<&Output> {
        self.by_uid.get(&uid)
    }

    pub(super) fn at(&self, location: &Location) -> Option<&Output> {
        self.by_location
            .get(&location.folded(&ENGINE))
            .and_then(|uid| self.by_uid.get(uid))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Output> {
        self.by_uid.values()
    }

    /// Returns true if the known outputs match `claims`, the catalog's whole list. `as_left`: they matched before the
    /// changes of this process.
    pub(super) fn agrees(&self, as_left: bool, claims: impl IntoIterator<Item = Claim>) -> bool {
        let all_known = match self.listing {
            Listing::Done => true,
            Listing::Never if as_left => false,
            Listing::Never | Listing::UnderWay(_) => return false,
        };
        if self.meddled || !self.doubtful.is_empty() {
            return false;
        }
        let mut found = 0;
        for claim in claims {
            match self.by_uid.get(&claim.tag.uid) {
                Some(output) if claim.is_of(output) => found += 1,
                None if !all_known => {}
                _ => return false,
            }
        }
        found == self.by_uid.len()
    }

    pub(super) fn begin_listing(&mut self) {
        self.listing = Listing::UnderWay(HashSet::new());
    }

    /// Discards an unfinished listing, so that a new one is needed.
    pub(super) fn drop_listing(&mut self) {
        self.listing = Listing::Never;
    }

    pub(super) fn end_listing(&mut self, outputs: Vec<Output>) {
        let changed = match std::mem::replace(&mut self.listing, Listing::Done) {
            Listing::UnderWay(changed) => changed,
            // Something happened meanwhile that it may not have seen.
            Listing::Never | Listing::Done => {
                self.listing = Listing::Never;
                return;
            }
        };
        self.meddled = false;
        let before = std::mem::take(&mut self.by_uid);
        self.by_location.clear();
        self.doubtful.retain(|uid| changed.contains(uid));
        let listed = outputs
            .into_iter()
            .filter(|output| !changed.contains(&output.tag.uid));
        let kept = before
            .into_iter()
            .filter(|(uid, _)| changed.contains(uid))
            .map(|(_, output)| output);
        for output in listed.chain(kept) {
            self.insert(output);
        }
    }

    /// Marks a resource's output as doubtful after a change with an unknown outcome.
    pub(super) fn doubt(&mut self, uid: Uuid) {
        self.note(uid);
        self.doubtful.insert(uid);
    }

    pub(super) fn put(&mut self, output: Output) {
        self.remove(output.tag.uid);
        self.insert(output);
    }

    pub(super) fn remove(&mut self, uid: Uuid) {
        self.note(uid);
        self.doubtful.remove(&uid);
        if let Some(output) = self.by_uid.remove(&uid) {
            let location = output.location.folded(&ENGINE);
            if self.by_location.get(&location) == Some(&uid) {
                self.by_location.remove(&location);
            }
        }
    }

    fn insert(&mut self, output: Output) {
        let (location, uid) = (output.location.folded(&ENGINE), output.tag.uid);
        self.by_uid.insert(uid, output);
        let other = self
            .by_location
            .insert(location, uid)
            .filter(|other| *other != uid);
        if let Some(other) = other.and_then(|other| self.by_uid.get_mut(&other)) {
            // It was moved out of the way, to a name that nobody asks for.
            other.location.name.clear();
        }
    }

    fn note(&mut self, uid: Uuid) {
        if let Listing::UnderWay(changed) = &mut self.listing {
            changed.insert(uid);
        }
    }
}

impl Claim {
    fn is_of(&self, output: &Output) -> bool {
        self.tag == output.tag
            && self.kind == output.kind
            && self.location.folded(&ENGINE) == output.location.folded(&ENGINE)
    }
}

#[cfg(test)]
mod tests {
    use watershed_drivers::olap::{OutputKind, Tag};

    use super::*;

    fn uid(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn output(n: u128, name: &str) -> Output {
        let tag = Tag {
            uid: uid(n),
            build: uid(100 + n),
        };
        Output {
            location: Location::named(name),
            kind: OutputKind::Table,
            tag,
            record: None,
            rows: None,
        }
    }

    fn listed(outputs: Vec<Output>) -> Known {
        let mut known = Known::default();
        known.begin_listing();
        known.end_listing(outputs);
        known
    }

    #[test]
    fn nothing_can_be_told_before_a_listing() {
        let known = Known::default();
        assert!(known.is_untouched() && !known.can_tell(About::All) && !known.can_tell(About::One(uid(1))));
        assert!(listed(vec![]).can_tell(About::All));
    }

    #[test]
    fn a_change_that_was_begun_ends_the_trust_in_what_was_left() {
        let mut known = Known::default();
        known.touch();
        known.remove(uid(1));
        assert!(!known.is_untouched());
    }

    #[test]
    fn a_change_by_another_process_ends_all_trust_until_the_next_listing() {
        let mut known = listed(vec![output(1, "a")]);
        known.trust_since(0);
        assert!(known.can_tell(About::All));
        known.trust_since(1);
        assert!(!known.can_tell(About::One(uid(1))) && !known.is_untouched());
        assert!(!known.agrees(true, [claim(1, "a")]));
        known.begin_listing();
        known.trust_since(2);
        known.end_listing(vec![output(1, "a")]);
        assert!(!known.can_tell(About::All), "it may not have seen the second");
        known.begin_listing();
        known.trust_since(2);
        known.end_listing(vec![output(1, "b")]);
        assert_eq!(
            known.at(&Location::named("b")).map(|output| output.tag.uid),
            Some(uid(1))
        );
        assert!(known.agrees(false, [claim(1, "b")]));
    }

    #[test]
    fn names_are_found_without_regard_to_case() {
        let mut known = listed(vec![output(1, "Orders")]);
        assert_eq!(
            known.at(&Location::named("oRDERS")).unwrap().location.name,
            "Orders"
        );
        known.put(output(1, "sales"));
        assert!(known.at(&Location::named("orders")).is_none());
        assert_eq!(known.at(&Location::named("sales")).unwrap().tag.uid, uid(1));
    }

    #[test]
    fn whoever_is_in_the_way_loses_its_name_and_not_itself() {
        let mut known = listed(vec![output(1, "a"), output(2, "b")]);
        known.put(output(1, "b"));
        assert_eq!(known.at(&Location::named("b")).unwrap().tag.uid, uid(1));
        assert_eq!(known.get(uid(2)).unwrap().location.name, "");
        known.put(output(2, "a"));
        assert_eq!(known.at(&Location::named("a")).unwrap().tag.uid, uid(2));
        known.remove(uid(1));
        assert!(known.at(&Location::named("b")).is_none());
    }

    #[test]
    fn an_unlearned_end_is_doubted_until_the_next_listing() {
        let mut known = listed(vec![output(1, "a"), output(2, "b")]);
        known.doubt(uid(1));
        assert!(!known.can_tell(About::One(uid(1))) && !known.can_tell(About::All));
        assert!(known.can_tell(About::One(uid(2))));
        known.begin_listing();
        known.end_listing(vec![output(2, "b")]);
        assert!(known.can_tell(About::One(uid(1))) && known.get(uid(1)).is_none());
    }

    fn claim(n: u128, name: &str) -> Claim {
        let Output {
            location, kind, tag, ..
        } = output(n, name);
        Claim {
            tag,
            location,
            kind,
            home: String::new(),
        }
    }

    #[test]
    fn what_was_listed_agrees_with_exactly_the_same_claims() {
        let known = listed(vec![output(1, "a"), output(2, "b")]);
        assert!(known.agrees(false, [claim(1, "A"), claim(2, "b")]));
        assert!(
            !known.agrees(true, [claim(1, "a")]),
            "an output that the catalog misses"
        );
        assert!(
            !known.agrees(true, [claim(1, "a"), claim(2, "b"), claim(3, "c")]),
            "one that is gone"
        );
        assert!(
            !known.agrees(true, [claim(1, "a"), claim(2, "c")]),
            "another name"
        );
        let mut rebuilt = claim(2, "b");
        rebuilt.tag.build = uid(7);
        assert!(!known.agrees(true, [claim(1, "a"), rebuilt]), "another build");
    }

    #[test]
    fn without_a_listing_only_changes_since_an_orderly_close_can_agree() {
        let mut known = Known::default();
        assert!(known.agrees(true, [claim(1, "a")]) && !known.agrees(false, []));
        known.put(output(2, "b"));
        assert!(known.agrees(true, [claim(1, "a"), claim(2, "b")]));
        assert!(
            !known.agrees(true, [claim(1, "a")]),
            "a build that the catalog misses"
        );
        known.doubt(uid(1));
        assert!(
            !known.agrees(true, [claim(1, "a"), claim(2, "b")]),
            "a doubtful end"
        );
    }

    #[test]
    fn what_ended_during_a_listing_counts_more_than_the_listing() {
        let mut known = listed(vec![output(1, "a"), output(2, "b")]);
        known.begin_listing();
        known.put(output(1, "c"));
        known.remove(uid(2));
        known.end_listing(vec![output(1, "a"), output(2, "b"), output(3, "d")]);
        assert_eq!(known.get(uid(1)).unwrap().location.name, "c");
        assert!(known.at(&Location::named("a")).is_none() && known.get(uid(2)).is_none());
        assert_eq!(known.at(&Location::named("d")).unwrap().tag.uid, uid(3));
    }
}
