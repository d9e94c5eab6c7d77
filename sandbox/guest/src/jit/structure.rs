//! Control-flow structuring (relooper): turns a graph into nested loops, the control flow
//! of WebAssembly.
//!
//! Strongly connected components become loops, in topological order; the inner structure of
//! a component is found by removing the edges to its heads and repeating. This works for
//! any graph: a loop with several heads, or one that is entered in its middle from outside,
//! gets a dispatch at its start. Sets of nodes are bits of a `u128`.

/// A construct of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Construct {
    /// A node.
    Node(usize),
    /// A loop.
    Loop(Loop),
}

/// A loop; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loop {
    /// Nodes at which jumps of the graph enter or repeat it.
    pub heads: u128,
    /// Nodes at which it can be entered at its start: the heads and the outside entries in
    /// it, also those in inner loops.
    pub starts: u128,
    /// Contents of the loop, in order.
    pub body: Vec<Construct>,
}

impl Construct {
    /// All nodes in it.
    pub(crate) fn nodes(&self) -> u128 {
        match self {
            Construct::Node(node) => 1 << node,
            Construct::Loop(inner) => inner
                .body
                .iter()
                .fold(0, |nodes, construct| nodes | construct.nodes()),
        }
    }
}

/// Iterates over the numbers in a set.
pub(crate) fn members(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (first < 128).then_some(first)
    })
}

/// Orders the nodes of a graph, given by the successors of each, that can be entered from
/// outside at `entries`. Unreachable nodes are dropped.
///
/// The recursion is as deep as loops are nested, which 128 nodes bound.
pub(crate) fn structure(next: &[u128], entries: u128) -> Vec<Construct> {
    let all = next.iter().fold(entries, |all, next| all | next);
    let reach = closure(next, all);
    let reached = members(entries).fold(entries, |set, entry| set | reach[entry]);
    sequence(next, reached, entries)
}

/// For each node, the nodes reachable over at least one edge, by Warshall's algorithm.
fn closure(next: &[u128], nodes: u128) -> Vec<u128> {
    let mut reach: Vec<u128> = next.iter().map(|next| next & nodes).collect();
    for via in members(nodes) {
        let beyond = reach[via];
        for from in members(nodes) {
            if reach[from] >> via & 1 == 1 {
                reach[from] |= beyond;
            }
        }
    }
    reach
}

fn sequence(next: &[u128], nodes: u128, entries: u128) -> Vec<Construct> {
    let reach = closure(next, nodes);
    // Earlier nodes reach more.
    let mut order: Vec<usize> = members(nodes).collect();
    order.sort_by_key(|node| std::cmp::Reverse((reach[*node] | 1 << node).count_ones()));
    let mut left = nodes;
    let mut constructs = Vec::new();
    for node in order {
        if left >> node & 1 == 0 {
            continue;
        }
        let backward = |other: &usize| reach[*other] >> node & 1 == 1;
        let part = members(reach[node])
            .filter(backward)
            .fold(0, |part, other| part | 1 << other);
        if part == 0 {
            left &= !(1 << node);
            constructs.push(Construct::Node(node));
        } else {
            left &= !part;
            constructs.push(Construct::Loop(enclose(next, nodes, part, entries)));
        }
    }
    constructs
}

/// Makes a loop of a strongly connected component of `nodes`.
fn enclose(next: &[u128], nodes: u128, part: u128, entries: u128) -> Loop {
    let outside = members(nodes & !part).fold(0, |set, node| set | next[node]);
    let mut heads = outside & part;
    if heads == 0 {
        // Only entered from outside the graph: any entry will do.
        let from = if entries & part == 0 {
            part
        } else {
            entries & part
        };
        heads = from & from.wrapping_neg();
    }
    let inner: Vec<u128> = next.iter().map(|next| next & part & !heads).collect();
    Loop {
        heads,
        starts: heads | entries & part,
        body: sequence(&inner, part, entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize)], count: usize) -> Vec<u128> {
        let mut next = vec![0; count];
        for (from, to) in edges {
            next[*from] |= 1 << to;
        }
        next
    }

    #[test]
    fn straight_lines_and_diamonds_are_in_order() {
        let next = graph(&[(0, 2), (0, 1), (1, 3), (2, 3)], 5);
        let constructs = structure(&next, 1);
        assert_eq!(constructs.first(), Some(&Construct::Node(0)));
        assert_eq!(constructs.last(), Some(&Construct::Node(3)));
        assert_eq!(constructs.len(), 4);
    }

    #[test]
    fn nested_loops_keep_their_heads() {
        // 0 -> 1 (outer) -> 2 (inner, itself) -> 1, 3
        let next = graph(&[(0, 1), (1, 2), (2, 2), (2, 1), (1, 3)], 4);
        let constructs = structure(&next, 1);
        let inner = Loop {
            heads: 1 << 2,
            starts: 1 << 2,
            body: vec![Construct::Node(2)],
        };
        let outer = Loop {
            heads: 1 << 1,
            starts: 1 << 1,
            body: vec![Construct::Node(1), Construct::Loop(inner)],
        };
        assert_eq!(
            constructs,
            [
                Construct::Node(0),
                Construct::Loop(outer),
                Construct::Node(3)
            ]
        );
    }

    #[test]
    fn entries_in_the_middle_go_through_the_starts() {
        let next = graph(&[(0, 1), (1, 2), (2, 3), (3, 2), (3, 1)], 4);
        let constructs = structure(&next, 1 | 1 << 2);
        let [Construct::Node(0), Construct::Loop(outer)] = &constructs[..] else {
            panic!("{constructs:?}");
        };
        assert_eq!((outer.heads, outer.starts), (1 << 1, 1 << 1 | 1 << 2));
        let [Construct::Node(1), Construct::Loop(inner)] = &outer.body[..] else {
            panic!("{outer:?}");
        };
        assert_eq!((inner.heads, inner.starts), (1 << 2, 1 << 2));
    }

    #[test]
    fn two_heads_are_no_problem() {
        let next = graph(&[(0, 1), (0, 2), (1, 2), (2, 1)], 3);
        let constructs = structure(&next, 1);
        let Some(Construct::Loop(found)) = constructs.get(1) else {
            panic!("{constructs:?}");
        };
        assert_eq!(found.heads, 0b110);
        assert_eq!(found.body.len(), 2);
    }

    #[test]
    fn what_is_not_reached_is_not_there() {
        assert_eq!(structure(&graph(&[(1, 0)], 2), 1), [Construct::Node(0)]);
    }
}
