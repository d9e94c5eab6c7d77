//! Prices of frames: the dearest path through a function, with its loops.

use crate::formula::{Factor, Poly};
use crate::graph::{At, Charge, Frame, Tokens, What, Why};
use crate::solve::{Bound, Solver};
use std::collections::HashMap;
use std::rc::Rc;

/// Fuel, calls, tokens.
pub(crate) type Prices = [Poly; 3];

fn none() -> Prices {
    std::array::from_fn(|_| Poly::zero())
}

fn add(a: &Prices, b: &Prices) -> Prices {
    std::array::from_fn(|at| a[at].clone().add(&b[at]))
}

fn max(a: &Prices, b: &Prices) -> Prices {
    std::array::from_fn(|at| a[at].clone().max(&b[at]))
}

/// What has no bound: an instruction, why, and whether it is the tokens alone.
pub(crate) struct Failure {
    pub(crate) at: At,
    pub(crate) why: Why,
    pub(crate) tokens: bool,
}

pub(crate) struct Pricer<'s, 'g, 'p> {
    pub(crate) s: &'s mut Solver<'g, 'p>,
    pub(crate) failures: Vec<Failure>,
}

impl Pricer<'_, '_, '_> {
    fn bounded(&mut self, at: At, bound: Bound, tokens: bool) -> Poly {
        bound.unwrap_or_else(|why| {
            if !self
                .failures
                .iter()
                .any(|known| known.at == at && known.why == why)
            {
                self.failures.push(Failure { at, why, tokens });
            }
            Poly::zero()
        })
    }

    /// The price of a frame.
    pub(crate) fn frame(&mut self, number: u32) -> Prices {
        let Frame {
            function,
            flow,
            loops,
            charges,
        } = &self.s.g.frames[number as usize];
        let (function, flow, first, charges) =
            (*function, Rc::clone(flow), *loops, charges.clone());
        let program = self.s.g.program;
        let f = &program.functions[function as usize];
        let mut cost: Vec<Prices> = Vec::with_capacity(f.blocks.len());
        for (block, charges) in f.blocks.iter().zip(&charges) {
            let mut sum = none();
            sum[0] = Poly::number(block.price as f64);
            for charge in charges {
                sum = add(&sum, &self.charge(charge));
            }
            cost.push(sum);
        }
        // The loop, among those done, that stands for a block.
        let mut done = vec![None::<usize>; f.blocks.len()];
        let at = At { function, pc: 0 };
        for (number, l) in flow.loops.iter().enumerate() {
            let inside = |block: usize| l.body[block];
            let far = self.longest(&flow, l.header, inside, &done, &cost);
            let mut turn = none();
            l.latches
                .iter()
                .for_each(|latch| turn = max(&turn, &far[rep(&flow, &done, *latch)]));
            let mut exit = far[l.header].clone();
            for (block, succs) in flow
                .succs
                .iter()
                .enumerate()
                .filter(|(block, _)| l.body[*block])
            {
                let leaves = succs.is_empty() || succs.iter().any(|to| !l.body[*to]);
                if leaves {
                    exit = max(&exit, &far[rep(&flow, &done, block)]);
                }
            }
            let turns = self.s.turns(first + number as u32);
            let mut whole = exit;
            for part in 0..3 {
                let all = turns.clone().and_then(|n| Ok(n.times(&turn[part])?));
                let all = self.bounded(at, all, false);
                whole[part] = whole[part].clone().add(&all);
            }
            cost[l.header] = whole;
            (0..done.len())
                .filter(|b| l.body[*b])
                .for_each(|b| done[b] = Some(number));
        }
        let far = self.longest(&flow, 0, |_| true, &done, &cost);
        let mut whole = none();
        flow.order
            .iter()
            .for_each(|block| whole = max(&whole, &far[rep(&flow, &done, *block)]));
        whole
    }

    /// The dearest way from a block to each other, through loops that are done.
    fn longest(
        &self,
        flow: &crate::flow::Flow,
        from: usize,
        inside: impl Fn(usize) -> bool,
        done: &[Option<usize>],
        cost: &[Prices],
    ) -> Vec<Prices> {
        let mut far = vec![none(); cost.len()];
        let mut before = vec![None::<Prices>; cost.len()];
        before[from] = Some(none());
        let order = flow.order.iter().copied().filter(|block| inside(*block));
        let order: Vec<(usize, usize)> = order.map(|b| (b, rep(flow, done, b))).collect();
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for (block, of) in &order {
            members.entry(*of).or_default().push(*block);
        }
        for block in order.iter().filter(|(b, of)| b == of).map(|(b, _)| *b) {
            let Some(start) = before[block].take() else {
                continue;
            };
            far[block] = add(&start, &cost[block]);
            for member in members.get(&block).into_iter().flatten().copied() {
                for &to in flow.succs[member]
                    .iter()
                    .filter(|to| inside(**to) && **to != from)
                {
                    let to = rep(flow, done, to);
                    if to != block {
                        let known = before[to].take().unwrap_or_else(none);
                        before[to] = Some(max(&known, &far[block]));
                    }
                }
            }
        }
        far
    }

    fn charge(&mut self, charge: &Charge) -> Prices {
        let mut sum = none();
        for (times, what) in &charge.fuel {
            if let What::Call(frame) = what {
                sum = add(&sum, &self.frame(*frame));
                continue;
            }
            let part = self.s.what(what).map(|poly| poly.scale(*times));
            let part = self.bounded(charge.at, part, false);
            sum[0] = std::mem::take(&mut sum[0]).add(&part);
        }
        sum[1] = std::mem::take(&mut sum[1]).add(&Poly::number(charge.calls));
        let tokens = match charge.tokens {
            None => Poly::zero(),
            Some(Tokens::Host) => Poly::of(Factor::Tokens),
            Some(Tokens::Most(node)) => {
                let most = self.s.what(&What::High(node));
                self.bounded(charge.at, most, true)
            }
        };
        sum[2] = std::mem::take(&mut sum[2]).add(&tokens);
        sum
    }

    /// The price of copying the result to the host.
    pub(crate) fn result(&mut self) -> Poly {
        let mut dearest = Poly::zero();
        for (at, node) in self.s.g.results.clone() {
            let price = self.s.what(&What::Crossing(node));
            dearest = dearest.max(&self.bounded(at, price, false));
        }
        dearest
    }
}

/// The block that stands for the outermost finished loop around a block.
fn rep(flow: &crate::flow::Flow, done: &[Option<usize>], block: usize) -> usize {
    done[block].map_or(block, |l| flow.loops[l].header)
}
