//! Counts of a graph's items by sort, which save passes over the graph.

use crate::item::Item;

/// Counts of items, updated by every change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    items: usize,
    externals: usize,
    aliases: usize,
    /// Number of items that are not plain.
    special: usize,
    /// Counts of items by type, without external ones. A list, because there are few types.
    types: Vec<(Box<str>, usize)>,
}

impl Tally {
    pub(super) fn add<V>(&mut self, item: &Item<V>, is_plain: bool) {
        self.items += 1;
        self.special += usize::from(!is_plain);
        self.aliases += usize::from(item.reference().is_alias());
        if item.is_external() {
            self.externals += 1;
            return;
        }
        let name = item.reference().type_name();
        match self.types.iter_mut().find(|(known, _)| &**known == name) {
            Some((_, count)) => *count += 1,
            None => self.types.push((name.into(), 1)),
        }
    }

    pub(super) fn subtract<V>(&mut self, item: &Item<V>, is_plain: bool) {
        self.items -= 1;
        self.special -= usize::from(!is_plain);
        self.aliases -= usize::from(item.reference().is_alias());
        if item.is_external() {
            self.externals -= 1;
            return;
        }
        let name = item.reference().type_name();
        if let Some((_, count)) = self.types.iter_mut().find(|(known, _)| &**known == name) {
            *count -= 1;
        }
    }

    pub(super) fn items(&self) -> usize {
        self.items
    }

    pub(crate) fn externals(&self) -> usize {
        self.externals
    }

    pub(crate) fn aliases(&self) -> usize {
        self.aliases
    }

    pub(crate) fn special(&self) -> usize {
        self.special
    }

    /// Lists the types of the items that are not external.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        let present = self.types.iter().filter(|(_, count)| *count > 0);
        present.map(|(name, _)| &**name)
    }
}
