//! Builds the graph of values from bytecode.

use crate::flow::{Flow, compared};
use crate::graph::{
    At, Charge, Frame, Graph, Key, Kind, LoopId, LoopInfo, Node, NodeId, Place, Root, Site, Spec,
    Store, Tokens, Turns, What, Why,
};
use a99_core::program::{Const, ConstIdx, Function, KeyIdx, Op, OperandKind, Program};
use a99_core::sig::Signatures;
use std::rc::Rc;

/// Most nodes of a graph; larger programs are not analysed.
const MAX_NODES: usize = 200_000;

/// Most helpers that call each other.
const MAX_DEPTH: usize = 24;

pub(crate) struct Builder<'p> {
    pub(crate) g: Graph<'p>,
    pub(crate) sigs: &'p dyn Signatures,
    pub(crate) now: Now,
    calls: Vec<u32>,
    pub(crate) kept: Option<NodeId>,
}

/// The instruction that is built.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    pub(crate) at: At,
    pub(crate) inside: Option<LoopId>,
    pub(crate) in_header: bool,
    pub(crate) charge: Charge,
}

/// Registers, then slots.
pub(crate) type State = Vec<NodeId>;

/// The state around a block.
#[derive(Clone, Default)]
struct Around {
    /// The phi nodes at its entry.
    made: Vec<(usize, NodeId)>,
    exit: State,
    /// Where the first handler begins to apply.
    protected: State,
    /// What was written since, for handlers.
    written: Vec<(usize, NodeId)>,
}

/// The place of what concerns the whole program.
pub(crate) const NOWHERE: At = At { function: 0, pc: 0 };

fn no_charge(at: At) -> Charge {
    Charge {
        at,
        fuel: Vec::new(),
        calls: 0.0,
        tokens: None,
    }
}

/// Builds the graph of a program; the reason if it cannot.
pub(crate) fn build<'p>(
    program: &'p Program,
    sigs: &'p dyn Signatures,
) -> Result<Graph<'p>, (At, Why)> {
    let mut builder = Builder {
        g: Graph {
            program,
            nodes: Vec::new(),
            sites: Vec::new(),
            stores: Vec::new(),
            places: Vec::new(),
            parsed: Vec::new(),
            frames: Vec::new(),
            loops: Vec::new(),
            results: Vec::new(),
        },
        sigs,
        now: Now {
            at: NOWHERE,
            inside: None,
            in_header: false,
            charge: no_charge(NOWHERE),
        },
        calls: Vec::new(),
        kept: None,
    };
    let failed = |why| (NOWHERE, why);
    if !program.outer.is_empty() {
        return Err(failed("it reads variables of the program that runs it"));
    }
    match builder.frame(0, Vec::new()) {
        Ok(_) => {
            if let Some(schema) = &program.input_schema {
                builder.now.charge = no_charge(NOWHERE);
                let place = Place {
                    root: Root::Args,
                    names: Vec::new(),
                    below: false,
                };
                let place = builder.g.place(place);
                let args = builder.node(Kind::Path(place));
                builder.checked(schema, args, &[], false);
                let charge = builder.now.charge.clone();
                builder.g.frames[0].charges[0].push(charge);
            }
            builder.skip_copies();
            Ok(builder.g)
        }
        Err(why) => Err((builder.now.at, why)),
    }
}

impl Builder<'_> {
    pub(crate) fn node(&mut self, kind: Kind) -> NodeId {
        self.g.nodes.push(Node {
            kind,
            inside: self.now.inside,
        });
        self.g.nodes.len() as NodeId - 1
    }

    pub(crate) fn pay(&mut self, times: f64, what: What) {
        self.now.charge.fuel.push((times, what));
    }

    pub(crate) fn site(&mut self, site: Site) -> NodeId {
        let at = self.g.sites.len() as u32;
        let node = self.node(Kind::New(at));
        self.g.sites.push(Site {
            inside: self.now.inside,
            node,
            ..site
        });
        node
    }

    pub(crate) fn store(&mut self, target: NodeId, name: Option<NodeId>, value: NodeId) {
        self.g.stores.push(Store {
            target,
            name,
            value,
            inside: self.now.inside,
            in_header: self.now.in_header,
        });
    }

    pub(crate) fn load(&mut self, of: NodeId, key: Key) -> NodeId {
        self.node(Kind::Load(of, key))
    }

    pub(crate) fn constant(&mut self, k: ConstIdx) -> NodeId {
        let kind = match &self.g.program.consts[k.at()] {
            Const::Undefined => Kind::Undefined,
            Const::Null | Const::Bool(_) => Kind::Scalar,
            Const::Number(n) => Kind::Number(*n),
            Const::Text(r) => Kind::Literal(k, units(self.g.program.text(*r))),
        };
        self.node(kind)
    }

    pub(crate) fn key(&self, k: KeyIdx) -> Key {
        Key::Name(self.g.program.text(self.g.program.keys[k.at()]).to_vec())
    }

    /// The builtin functions and namespaces that a value may be.
    pub(crate) fn builtins(&self, node: NodeId) -> Vec<u16> {
        let (mut found, mut todo, mut seen) = (Vec::new(), vec![node], Vec::new());
        while let Some(node) = todo.pop() {
            if seen.contains(&node) {
                continue;
            }
            seen.push(node);
            match &self.g.nodes[node as usize].kind {
                Kind::Builtin(n) => found.push(*n),
                Kind::Phi(a, b) => todo.extend(a.iter().chain(b)),
                Kind::Or(a, b, _) => todo.extend([a, b]),
                _ => {}
            }
        }
        found
    }

    /// Builds a function as called here; its frame and what it returns.
    pub(crate) fn frame(&mut self, function: u32, args: Vec<NodeId>) -> Result<(u32, NodeId), Why> {
        let program = self.g.program;
        if self.calls.contains(&function) {
            return Err("a helper calls itself");
        }
        if self.calls.len() >= MAX_DEPTH {
            return Err("helpers call each other too deeply");
        }
        self.calls.push(function);
        let before = self.now.clone();
        let f = &program.functions[function as usize];
        self.now.at = At { function, pc: 0 };
        let flow = Rc::new(Flow::of(f).ok_or("its loops have several entries, or are too many")?);
        let first = self.g.loops.len() as LoopId;
        for found in &flow.loops {
            let parent = found.parent.map(|at| first + at as u32).or(before.inside);
            self.g.loops.push(LoopInfo {
                at: At {
                    function,
                    pc: f.blocks[found.header].start,
                },
                parent,
                tests: Vec::new(),
            });
        }
        let number = self.g.frames.len() as u32;
        self.g.frames.push(Frame {
            function,
            flow: flow.clone(),
            loops: first,
            charges: vec![Vec::new(); f.blocks.len()],
        });
        let count = usize::from(f.registers) + f.slots as usize;
        let unbound = self.node(Kind::Unbound);
        let fixed: Vec<(usize, NodeId)> = (constants(f).into_iter())
            .map(|(reg, k)| (reg, self.constant(k)))
            .collect();
        let mut around = vec![Around::default(); f.blocks.len()];
        let mut returned = Vec::new();
        for &block in &flow.order {
            self.now.inside = flow.inner[block]
                .map(|at| first + at as u32)
                .or(before.inside);
            self.now.in_header = flow.inner[block].is_some_and(|at| flow.loops[at].header == block);
            let start = f.blocks[block].start;
            self.now.at = At {
                function,
                pc: start,
            };
            let only = match flow.preds[block][..] {
                [pred] if !flow.handles[block] => Some(pred),
                _ => None,
            };
            let mut state: State = match only {
                Some(pred) => around[pred].exit.clone(),
                None if block == 0 && flow.preds[0].is_empty() => {
                    let mut state = vec![unbound; count];
                    state[..args.len()].copy_from_slice(&args);
                    state
                }
                None if block == 0 => return Err("its first block is a loop"),
                None => {
                    let seen = !flow.handles[block]
                        && flow.preds[block]
                            .iter()
                            .all(|pred| !around[*pred].exit.is_empty());
                    let mut state = Vec::with_capacity(count);
                    for at in 0..count {
                        // Where all ways bring the same value, it is that.
                        let mut values = flow.preds[block].iter().map(|p| around[*p].exit.get(at));
                        let first = values.next().flatten().copied();
                        state.push(match first {
                            Some(node) if seen && values.all(|value| value == first.as_ref()) => {
                                node
                            }
                            _ => {
                                let node = self.node(Kind::Phi(Vec::new(), Vec::new()));
                                around[block].made.push((at, node));
                                node
                            }
                        });
                    }
                    state
                }
            };
            fixed.iter().for_each(|(reg, node)| state[*reg] = *node);
            if self.g.nodes.len() > MAX_NODES {
                return Err("the program is too large to analyse");
            }
            let end = f.blocks[block].end;
            let protected = f.handlers.iter().filter(|h| h.start < end && start < h.end);
            let protected = protected.map(|h| h.start.max(start)).min();
            for pc in start..end {
                if protected == Some(pc) {
                    around[block].protected.clone_from(&state);
                }
                let op = f.code[pc as usize];
                self.now.at.pc = pc;
                self.now.charge = no_charge(self.now.at);
                let was = state.clone();
                if let Op::Ret { src } = op {
                    returned.push((self.now.at, state[src.at()]));
                }
                let exits = |at: Option<usize>| {
                    at.map(|l| &flow.loops[l]).filter(|l| {
                        flow.succs[block].iter().any(|to| !l.body[*to])
                            && l.latches.iter().all(|latch| flow.dominates(block, *latch))
                    })
                };
                let mut tested = flow.inner[block];
                while let Some(l) = tested {
                    if exits(Some(l)).is_some() {
                        self.test(op, &state, &flow, (block, l), first);
                    }
                    tested = flow.loops[l].parent;
                }
                self.op(op, &mut state, usize::from(f.registers))?;
                for (at, (new, old)) in state.iter().zip(&was).enumerate() {
                    if new != old && protected.is_some_and(|from| from <= pc) {
                        around[block].written.push((at, *new));
                    }
                }
                let charge = self.now.charge.clone();
                if !charge.fuel.is_empty() || charge.calls > 0.0 || charge.tokens.is_some() {
                    self.g.frames[number as usize].charges[block].push(charge);
                }
            }
            around[block].exit = state;
        }
        self.join(&flow, &around);
        self.calls.pop();
        if function == 0 {
            self.g.results.clone_from(&returned);
        }
        self.now = before;
        let returned = returned.into_iter().map(|(_, node)| node).collect();
        Ok((number, self.node(Kind::Phi(returned, Vec::new()))))
    }

    /// Gives the phi nodes of blocks their operands.
    fn join(&mut self, flow: &Flow, around: &[Around]) {
        for &block in &flow.order {
            let handles = flow.handles[block];
            if block == 0 || (flow.preds[block].len() == 1 && !handles) {
                continue;
            }
            let header = flow.loops.iter().find(|l| l.header == block);
            for (at, node) in around[block].made.iter().copied() {
                let (mut entry, mut back) = (Vec::new(), Vec::new());
                for pred in &flow.preds[block] {
                    let from = &around[*pred];
                    let list = match header.is_some_and(|l| l.body[*pred]) {
                        true => &mut back,
                        false => &mut entry,
                    };
                    if !handles {
                        list.push(from.exit[at]);
                    } else {
                        list.extend(from.protected.get(at));
                        let inside = from.written.iter().filter(|(reg, _)| *reg == at);
                        list.extend(inside.map(|(_, node)| *node));
                    }
                }
                for list in [&mut entry, &mut back] {
                    list.sort_unstable();
                    list.dedup();
                }
                self.g.nodes[node as usize].kind = Kind::Phi(entry, back);
            }
        }
    }

    /// Replaces phi nodes of one value by it.
    pub(crate) fn skip_copies(&mut self) {
        let mut same: Vec<NodeId> = (0..self.g.nodes.len() as NodeId).collect();
        fn find(same: &[NodeId], mut node: NodeId) -> NodeId {
            while same[node as usize] != node {
                node = same[node as usize];
            }
            node
        }
        let mut changed = true;
        while changed {
            changed = false;
            for at in 0..self.g.nodes.len() {
                let Kind::Phi(entry, back) = &self.g.nodes[at].kind else {
                    continue;
                };
                if same[at] != at as NodeId {
                    continue;
                }
                let mut others = entry.iter().chain(back).map(|n| find(&same, *n));
                let mut others: Vec<NodeId> =
                    others.by_ref().filter(|n| *n != at as NodeId).collect();
                others.dedup();
                if let [one] = others[..] {
                    same[at] = one;
                    changed = true;
                }
            }
        }
        for at in 0..self.g.nodes.len() {
            let root = find(&same, at as NodeId);
            if root != at as NodeId {
                self.g.nodes[at].kind = Kind::Phi(vec![root], Vec::new());
            }
        }
    }

    /// Notes what an instruction that may leave a loop says about its turns.
    pub(crate) fn test(
        &mut self,
        op: Op,
        state: &State,
        flow: &Flow,
        (block, at): (usize, usize),
        first: u32,
    ) {
        let l = &flow.loops[at];
        let exact = l.header == block;
        let function = &self.g.program.functions[self.now.at.function as usize];
        let inside = |pc: u32| {
            let to = function
                .blocks
                .partition_point(|b| b.start <= pc)
                .saturating_sub(1);
            l.body[to]
        };
        let jumps_out = op.target().is_some_and(|to| !inside(to));
        let falls_out = !inside(self.now.at.pc + 1);
        let turns = match op {
            Op::IterNext { it, .. } if jumps_out => Turns::Each(state[it.at()]),
            Op::JFalse { src, .. } | Op::JTrue { src, .. } => {
                let unless = matches!(op, Op::JFalse { .. });
                match self.g.nodes[state[src.at()] as usize].kind {
                    // Stays in the loop if it holds.
                    Kind::Less(low, high, or_equal)
                        if (unless && jumps_out) || (!unless && falls_out && !jumps_out) =>
                    {
                        Turns::Count {
                            low,
                            high,
                            or_equal,
                        }
                    }
                    _ => return,
                }
            }
            _ => match compared(op) {
                Some((l, r, or_equal, unless))
                    if (unless && jumps_out) || (!unless && falls_out && !jumps_out) =>
                {
                    let (low, high) = (state[usize::from(l)], state[usize::from(r)]);
                    Turns::Count {
                        low,
                        high,
                        or_equal,
                    }
                }
                _ => return,
            },
        };
        self.g.loops[first as usize + at].tests.push((turns, exact));
    }

    /// A value of which nothing is known, and a price without a bound.
    pub(crate) fn unknown(&mut self, why: Why) -> NodeId {
        self.pay(1.0, What::Fails(why));
        self.node(Kind::Opaque(why))
    }

    pub(crate) fn text(&mut self, spec: Spec) -> NodeId {
        self.node(Kind::Text(spec))
    }

    pub(crate) fn asks(&mut self, tokens: Option<Tokens>) {
        self.now.charge.calls = 1.0;
        self.now.charge.tokens = tokens;
    }
}

/// The registers of a function that hold one constant each wherever they are read.
fn constants(f: &Function) -> Vec<(usize, ConstIdx)> {
    let mut writes = vec![0_u32; usize::from(f.registers) + 1];
    let mut found = Vec::new();
    for op in &f.code {
        let mut base = 0;
        for (_, kind, value) in op.operands().iter() {
            let at = value as usize;
            match kind {
                OperandKind::Write | OperandKind::ReadWrite => writes[at] += 1,
                OperandKind::IterWrite => writes[at..=at + 1].iter_mut().for_each(|n| *n += 1),
                OperandKind::BaseWrite => base = at,
                OperandKind::Count if matches!(op, Op::Unbind { .. }) => {
                    writes[base..base + at].iter_mut().for_each(|n| *n += 1);
                }
                _ => {}
            }
        }
        if let Op::LoadK { dst, k } = op {
            found.push((dst.at(), *k));
        }
    }
    found.retain(|(reg, _)| writes[*reg] == 1 && *reg >= usize::from(f.params));
    found
}

/// UTF-16 units of WTF-8 text.
pub(crate) fn units(text: &[u8]) -> u32 {
    text.iter()
        .map(|b| u32::from(b & 0xC0 != 0x80) + u32::from(*b >= 0xF0))
        .sum()
}
