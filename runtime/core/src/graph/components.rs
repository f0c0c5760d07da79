//! Strongly connected components of a small graph given as adjacency lists (Tarjan, without recursion).

use crate::types::index::index_u32;

/// Returns the component number of each node. Children's components have lower numbers.
pub(crate) fn components(children: &[Vec<u32>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let mut order = vec![UNSEEN; children.len()];
    let mut low = vec![0_u32; children.len()];
    let mut component = vec![UNSEEN; children.len()];
    let (mut next_order, mut next_component) = (0, 0);
    let mut open: Vec<u32> = Vec::new();
    // The stack of a recursion, on the heap: refs may form a chain as long as the catalog.
    let mut frames: Vec<(u32, usize)> = Vec::new();
    for root in 0..children.len() {
        if order[root] != UNSEEN {
            continue;
        }
        frames.push((index_u32(root), 0));
        while let Some((node, cursor)) = frames.last_mut() {
            let node_index = *node as usize;
            if *cursor == 0 {
                order[node_index] = next_order;
                low[node_index] = next_order;
                next_order += 1;
                open.push(*node);
            }
            if let Some(&child) = children[node_index].get(*cursor) {
                *cursor += 1;
                let child_index = child as usize;
                if order[child_index] == UNSEEN {
                    frames.push((child, 0));
                } else if component[child_index] == UNSEEN {
                    low[node_index] = low[node_index].min(order[child_index]);
                }
                // A node without children is entered once; one with children has moved its cursor.
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                let parent_index = *parent as usize;
                low[parent_index] = low[parent_index].min(low[node_index]);
            }
            if low[node_index] == order[node_index] {
                while let Some(member) = open.pop() {
                    component[member as usize] = next_component;
                    if member as usize == node_index {
                        break;
                    }
                }
                next_component += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::components;

    fn reaches(children: &[Vec<u32>], from: usize, to: usize) -> bool {
        let mut seen = vec![false; children.len()];
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            for &child in &children[node] {
                if child as usize == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[child as usize], true) {
                    stack.push(child as usize);
                }
            }
        }
        false
    }

    proptest! {
        #[test]
        fn two_nodes_share_a_component_exactly_if_each_reaches_the_other(
            edges in proptest::collection::vec((0_u32..8, 0_u32..8), 0..24)
        ) {
            let mut children = vec![Vec::new(); 8];
            for (from, to) in edges {
                children[from as usize].push(to);
            }
            let component = components(&children);
            for a in 0..8 {
                for b in 0..8 {
                    let both = a == b || (reaches(&children, a, b) && reaches(&children, b, a));
                    prop_assert_eq!(component[a] == component[b], both);
                }
            }
        }
    }

    #[test]
    fn a_deep_chain_takes_no_stack() {
        let children: Vec<Vec<u32>> = (0..200_000_u32)
            .map(|n| if n < 199_999 { vec![n + 1] } else { vec![] })
            .collect();
        assert_eq!(components(&children)[0], 199_999);
    }
}
