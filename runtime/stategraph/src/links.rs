//! A plain directed graph of numbers, and Tarjan's search for its cycles.

/// Marker of unvisited numbers.
const NEVER: u32 = u32::MAX;

/// Edges by source, all in one list.
#[derive(Debug, Clone)]
pub(crate) struct Links {
    starts: Vec<usize>,
    targets: Vec<u32>,
}

impl Default for Links {
    fn default() -> Self {
        Self {
            starts: vec![0],
            targets: Vec::new(),
        }
    }
}

impl Links {
    /// Adds the next source with its targets; sources are numbered from zero.
    pub(crate) fn add(&mut self, targets: impl IntoIterator<Item = u32>) {
        self.targets.extend(targets);
        self.starts.push(self.targets.len());
    }

    fn of(&self, source: u32) -> &[u32] {
        let source = source as usize;
        &self.targets[self.starts[source]..self.starts[source + 1]]
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns all numbers, targets before sources except on cycles, and the strongly connected components with cycles.
    /// Linear in numbers and edges.
    pub(crate) fn components(&self) -> (Vec<u32>, Vec<Vec<u32>>) {
        let size = self.len();
        let mut search = Search {
            links: self,
            seen: vec![NEVER; size],
            low: vec![NEVER; size],
            open: Vec::new(),
            is_open: vec![false; size],
            clock: 0,
            sorted: Vec::with_capacity(size),
            knots: Vec::new(),
        };
        for root in 0..size as u32 {
            if search.seen[root as usize] == NEVER {
                search.visit(root);
            }
        }
        (search.sorted, search.knots)
    }
}

/// State of Tarjan's search, with a stack of its own: chains may be longer than the thread's.
struct Search<'a> {
    links: &'a Links,
    seen: Vec<u32>,
    low: Vec<u32>,
    open: Vec<u32>,
    is_open: Vec<bool>,
    clock: u32,
    sorted: Vec<u32>,
    knots: Vec<Vec<u32>>,
}

impl Search<'_> {
    fn visit(&mut self, root: u32) {
        let links = self.links;
        self.enter(root);
        let mut path = vec![(root, links.of(root).iter())];
        while let Some((at, targets)) = path.last_mut() {
            let at = *at;
            let Some(&target) = targets.next() else {
                path.pop();
                self.leave(at);
                if let Some(&(before, _)) = path.last() {
                    self.lower(before, self.low[at as usize]);
                }
                continue;
            };
            match self.seen[target as usize] {
                NEVER => {
                    self.enter(target);
                    path.push((target, links.of(target).iter()));
                }
                seen if self.is_open[target as usize] => self.lower(at, seen),
                _ => {}
            }
        }
    }

    fn enter(&mut self, at: u32) {
        self.seen[at as usize] = self.clock;
        self.low[at as usize] = self.clock;
        self.clock += 1;
        self.open.push(at);
        self.is_open[at as usize] = true;
    }

    fn lower(&mut self, at: u32, to: u32) {
        let low = &mut self.low[at as usize];
        *low = (*low).min(to);
    }

    fn leave(&mut self, at: u32) {
        if self.low[at as usize] != self.seen[at as usize] {
            return;
        }
        let start = self.open.iter().rposition(|&open| open == at).unwrap_or(0);
        let members = self.open.split_off(start);
        for &member in &members {
            self.is_open[member as usize] = false;
        }
        self.sorted.extend(&members);
        if members.len() > 1 || self.links.of(at).contains(&at) {
            self.knots.push(members);
        }
    }
}
