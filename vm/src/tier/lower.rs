//! Lowers a loop of bytecode to a region for the compiler.
//!
//! First, the kinds of all registers are inferred at the head of each block, starting with
//! the kinds at compile time. Then each block becomes one of the region, with its price.
//! Numbers and flags have a cell for each register that holds one. A register whose kind
//! depends on the path has a cell with its tag.

use super::kinds::{Condition, Effect, Kind, Kinds, Source, apply, effect};
use super::loops::{Loop, block_at, touched};
use crate::heap::Val;
use crate::link::BlockPrice;
use a99_core::program::{Function, Op, Reg};
use a99_jit::{Arith, Block, BlockId, Cell, End, ExitId, MAX_CELLS, Price, Region, Test};
use std::collections::BTreeMap;

/// Maximum visits of blocks during kind inference: most are visited once or twice.
const MAX_VISITS: usize = 512;

/// The guard on a register at the loop's entry.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) reg: Reg,
    /// The required kind.
    pub(crate) kind: Kind,
    /// The cell of its number or flag, if the loop has one.
    pub(crate) cell: Option<Cell>,
    /// The required number.
    pub(crate) number: Option<f64>,
}

/// The value of a register at an exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A value of this kind, with its number or flag.
    One(Kind),
    /// The kind given by the register's tag.
    Tagged,
}

/// The cells of a register.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cells {
    pub(crate) number: Option<Cell>,
    pub(crate) flag: Option<Cell>,
    pub(crate) tag: Option<Cell>,
}

/// An exit of the loop.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exit {
    /// The instruction at which the interpreter resumes.
    pub(crate) pc: u32,
    /// Registers that the loop may have written.
    pub(crate) regs: Vec<(Reg, Left)>,
}

/// A lowered loop with its entry guards and exits.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) region: Region,
    pub(crate) entry: Vec<Asked>,
    pub(crate) exits: Vec<Exit>,
    pub(crate) cells: Vec<Cells>,
}

/// Lowers a loop whose registers have these kinds at its head; `None` if no iteration could
/// be compiled completely.
pub(crate) fn lower(
    f: &Function,
    of_loop: &Loop,
    consts: &[Val],
    prices: &[BlockPrice],
    at_head: Kinds,
) -> Option<Lowered> {
    let heads = flow(f, of_loop, consts, at_head)?;
    let mut lowering = Lowering::new(f, of_loop, consts, prices, &heads);
    if lowering.written.len() > MAX_CELLS {
        return None;
    }
    for (block, kinds) in &heads {
        lowering.block(*block, kinds.clone());
    }
    lowering.finish()
}

/// The kinds at the head of each reachable block of the loop; `None` if the inference takes
/// too long.
fn flow(
    f: &Function,
    of_loop: &Loop,
    consts: &[Val],
    at_head: Kinds,
) -> Option<BTreeMap<u32, Kinds>> {
    let mut heads = BTreeMap::from([(of_loop.head, at_head)]);
    let mut open = vec![of_loop.head];
    let mut left = MAX_VISITS;
    while let Some(block) = open.pop() {
        left = left.checked_sub(1)?;
        let Some(kinds) = heads.get(&block) else {
            continue;
        };
        let mut kinds = kinds.clone();
        let mut go = |pc: u32, kinds: &Kinds| {
            let Some(to) = block_at(f, pc).filter(|to| of_loop.has(*to)) else {
                return;
            };
            match heads.get_mut(&to) {
                None => {
                    heads.insert(to, kinds.clone());
                    open.push(to);
                }
                Some(there) => {
                    let joined: Kinds = std::iter::zip(&**there, kinds)
                        .map(|(a, b)| a.join(*b))
                        .collect();
                    if joined != *there {
                        *there = joined;
                        open.push(to);
                    }
                }
            }
        };
        let range = f.blocks[block as usize];
        let mut falls = true;
        for pc in range.start + 1..range.end {
            let does = effect(f.code[pc as usize], &kinds, consts);
            match does {
                Effect::Leave => falls = false,
                Effect::Go(to) => {
                    go(to.0, &kinds);
                    falls = false;
                }
                Effect::Jump { to, .. } | Effect::JumpUnlessNaN { to, .. } => go(to.0, &kinds),
                _ => apply(does, &mut kinds),
            }
            if !falls {
                break;
            }
        }
        if falls {
            go(range.end, &kinds);
        }
    }
    Some(heads)
}

struct Lowering<'l> {
    f: &'l Function,
    consts: &'l [Val],
    prices: &'l [BlockPrice],
    at_head: &'l Kinds,
    /// The region's block for each block of the loop.
    ids: BTreeMap<u32, BlockId>,
    kinds: Vec<a99_jit::Kind>,
    cells: Vec<Cells>,
    blocks: Vec<Option<Block>>,
    exits: Vec<Exit>,
    /// Registers that the loop writes, in order.
    written: Vec<Reg>,
    /// Registers that the loop uses.
    named: Vec<bool>,
    /// Registers that are constant in the loop.
    constants: Vec<(Reg, f64)>,
    /// Constant registers whose value is compiled into the code.
    relied: Vec<Reg>,
}

impl<'l> Lowering<'l> {
    fn new(
        f: &'l Function,
        of_loop: &Loop,
        consts: &'l [Val],
        prices: &'l [BlockPrice],
        heads: &'l BTreeMap<u32, Kinds>,
    ) -> Lowering<'l> {
        // The first block of the region is the loop's head.
        let others = heads.keys().filter(|block| **block != of_loop.head);
        let order = std::iter::once(&of_loop.head).chain(others);
        let ids: BTreeMap<u32, BlockId> = order.copied().zip(0..).collect();
        let registers = usize::from(f.registers);
        let mut lowering = Lowering {
            f,
            consts,
            prices,
            at_head: &heads[&of_loop.head],
            blocks: vec![None; ids.len()],
            ids,
            kinds: Vec::new(),
            cells: vec![Cells::default(); registers],
            exits: Vec::new(),
            written: Vec::new(),
            named: vec![false; registers],
            constants: Vec::new(),
            relied: Vec::new(),
        };
        let mut is_written = vec![false; registers];
        for block in heads.keys() {
            let range = f.blocks[*block as usize];
            for op in &f.code[range.start as usize..range.end as usize] {
                let touched = touched(*op);
                for reg in &touched.written {
                    is_written[reg.at()] = true;
                }
                for reg in touched.written.iter().chain(&touched.read) {
                    lowering.named[reg.at()] = true;
                }
            }
        }
        lowering.written = (0..f.registers)
            .map(Reg)
            .filter(|reg| is_written[reg.at()])
            .collect();
        lowering.find_constants(&is_written);
        let is_mixed = |reg: usize| heads.values().any(|kinds| kinds[reg] == Kind::Mixed);
        for reg in 0..registers {
            if is_mixed(reg) {
                lowering.cells[reg].tag = Some(lowering.new_cell(a99_jit::Kind::Number));
            }
        }
        lowering
    }

    /// Finds registers with a single constant assignment. Guards at the loop's entry verify
    /// the value.
    fn find_constants(&mut self, is_written: &[bool]) {
        let mut found: Vec<Option<Option<f64>>> = vec![None; is_written.len()];
        for op in &self.f.code {
            if let Op::Unbind { .. } = op {
                continue;
            }
            for reg in touched(*op).written {
                let number = match op {
                    Op::LoadK { k, .. } => match self.consts.get(k.at()) {
                        Some(Val::Num(n)) => Some(*n),
                        _ => None,
                    },
                    _ => None,
                };
                let one = &mut found[reg.at()];
                *one = Some(number.filter(|_| one.is_none()));
            }
        }
        let constants = (0u8..).map(Reg).zip(found).filter_map(|(reg, number)| {
            let number = number.flatten()?;
            let is_here = !is_written[reg.at()] && self.at_head[reg.at()] == Kind::Number;
            is_here.then_some((reg, number))
        });
        self.constants = constants.collect();
    }

    fn new_cell(&mut self, kind: a99_jit::Kind) -> Cell {
        self.kinds.push(kind);
        (self.kinds.len() - 1) as Cell
    }

    fn number(&mut self, reg: Reg) -> Cell {
        match self.cells[reg.at()].number {
            Some(cell) => cell,
            None => {
                let cell = self.new_cell(a99_jit::Kind::Number);
                self.cells[reg.at()].number = Some(cell);
                cell
            }
        }
    }

    fn flag(&mut self, reg: Reg) -> Cell {
        match self.cells[reg.at()].flag {
            Some(cell) => cell,
            None => {
                let cell = self.new_cell(a99_jit::Kind::Flag);
                self.cells[reg.at()].flag = Some(cell);
                cell
            }
        }
    }

    /// Reserves a block to be filled later.
    fn reserve(&mut self) -> BlockId {
        self.blocks.push(None);
        (self.blocks.len() - 1) as BlockId
    }

    /// Adds an exit at an instruction, with registers of these kinds.
    fn exit(&mut self, pc: u32, kinds: &Kinds) -> ExitId {
        let mut regs = Vec::with_capacity(self.written.len());
        for reg in self.written.clone() {
            // The cell must exist: it holds at least the register's value at the entry.
            match kinds[reg.at()] {
                Kind::Number => drop(self.number(reg)),
                Kind::Flag => drop(self.flag(reg)),
                _ => {}
            }
            let left = match kinds[reg.at()] {
                Kind::Kept => continue,
                Kind::Mixed => Left::Tagged,
                one => Left::One(one),
            };
            regs.push((reg, left));
        }
        self.exits.push(Exit { pc, regs });
        (self.exits.len() - 1) as ExitId
    }

    fn exit_block(&mut self, pc: u32, kinds: &Kinds) -> BlockId {
        let exit = self.exit(pc, kinds);
        let block = self.reserve();
        self.blocks[usize::from(block)] = Some(Block {
            price: None,
            ops: Vec::new(),
            end: End::Exit(exit),
        });
        block
    }

    /// The block that begins with the instruction, or one that exits the loop.
    fn target(&mut self, pc: u32, kinds: &Kinds) -> BlockId {
        let to = block_at(self.f, pc).and_then(|block| self.ids.get(&block));
        match to {
            Some(id) => *id,
            None => self.exit_block(pc, kinds),
        }
    }

    /// Lowers a block; code after a branch in it becomes a separate block.
    fn block(&mut self, block: u32, mut kinds: Kinds) {
        let range = self.f.blocks[block as usize];
        let price = self.prices[block as usize];
        let exit = self.exit(range.start, &kinds);
        let mut part = Part {
            id: self.ids[&block],
            price: Some(Price {
                fuel: price.fuel,
                work: price.work,
                exit,
            }),
            ops: Vec::new(),
            constants: self.constants.clone(),
        };
        for pc in range.start + 1..range.end {
            let does = effect(self.f.code[pc as usize], &kinds, self.consts);
            match does {
                Effect::None => {}
                Effect::Go(to) => {
                    let to = self.target(to.0, &kinds);
                    return self.end(part, End::Jump(to));
                }
                Effect::Set { dst, source } => self.set(&mut part, dst, source, &kinds),
                Effect::Unbind { base, n } => {
                    for reg in (base.0..base.0 + n.0).map(Reg) {
                        self.set(&mut part, reg, Source::Nothing(Kind::Unbound), &kinds);
                    }
                }
                Effect::Jump {
                    condition,
                    negated,
                    to,
                } => {
                    let condition = self.condition(condition);
                    let to = self.target(to.0, &kinds);
                    let rest = self.rest(pc, range.end, &kinds);
                    let (then, otherwise) = if negated { (rest, to) } else { (to, rest) };
                    let next = part.next(rest);
                    self.end(part, branch(condition, then, otherwise));
                    if pc + 1 == range.end {
                        return;
                    }
                    part = next;
                }
                Effect::JumpUnlessNaN { test, l, r, to } => {
                    let (l, r) = (self.number(l), self.number(r));
                    let numbers = |test, l, r| a99_jit::Condition::Numbers { test, l, r };
                    let is_nan = self.exit_block(pc, &kinds);
                    let is_number = self.reserve();
                    let next = part.next(is_number);
                    self.end(part, branch(numbers(Test::Ne, l, l), is_nan, is_number));
                    part = next;
                    let to = self.target(to.0, &kinds);
                    let rest = self.rest(pc, range.end, &kinds);
                    let next = part.next(rest);
                    self.end(part, branch(numbers(test, l, r), to, rest));
                    if pc + 1 == range.end {
                        return;
                    }
                    part = next;
                }
                Effect::Leave => {
                    let exit = self.exit(pc, &kinds);
                    return self.end(part, End::Exit(exit));
                }
            }
            apply(does, &mut kinds);
        }
        let to = self.target(range.end, &kinds);
        self.end(part, End::Jump(to));
    }

    /// The continuation of a block after a branch.
    fn rest(&mut self, pc: u32, end: u32, kinds: &Kinds) -> BlockId {
        if pc + 1 == end {
            self.target(end, kinds)
        } else {
            self.reserve()
        }
    }

    fn end(&mut self, part: Part, end: End) {
        self.blocks[usize::from(part.id)] = Some(Block {
            price: part.price,
            ops: part.ops,
            end,
        });
    }

    fn set(&mut self, part: &mut Part, dst: Reg, source: Source, kinds: &Kinds) {
        let op = match source {
            Source::Copy(src) => Some(match kinds[src.at()] {
                Kind::Flag => a99_jit::Op::Copy {
                    src: self.flag(src),
                    dst: self.flag(dst),
                },
                _ => a99_jit::Op::Copy {
                    src: self.number(src),
                    dst: self.number(dst),
                },
            }),
            Source::Number(value) => Some(a99_jit::Op::Number {
                dst: self.number(dst),
                value,
            }),
            Source::Flag(value) => Some(a99_jit::Op::Flag {
                dst: self.flag(dst),
                value,
            }),
            Source::Arith { op, l, r } => Some(self.arith(part, op, dst, l, r)),
            Source::Neg(src) => Some(a99_jit::Op::Neg {
                src: self.number(src),
                dst: self.number(dst),
            }),
            Source::Condition { condition, negated } => {
                let condition = self.condition(condition);
                let dst = self.flag(dst);
                Some(match negated {
                    true => a99_jit::Op::Not { dst, condition },
                    false => a99_jit::Op::Test { dst, condition },
                })
            }
            Source::Nothing(_) => None,
        };
        part.ops.extend(op);
        part.constants.retain(|(reg, _)| *reg != dst);
        if let Source::Number(value) = source {
            part.constants.push((dst, value));
        }
        if let Some(tag) = self.cells[dst.at()].tag {
            part.ops.push(a99_jit::Op::Number {
                dst: tag,
                value: source.kind(kinds).tag(),
            });
        }
    }

    fn arith(&mut self, part: &Part, op: Arith, dst: Reg, l: Reg, r: Reg) -> a99_jit::Op {
        let known = part.constants.iter().find(|(reg, _)| *reg == r);
        if let (Arith::Rem, Some((_, divisor))) = (op, known.copied()) {
            if self.constants.iter().any(|(reg, _)| *reg == r) {
                self.relied.push(r);
            }
            return a99_jit::Op::RemBy {
                l: self.number(l),
                dst: self.number(dst),
                divisor,
            };
        }
        a99_jit::Op::Arith {
            op,
            l: self.number(l),
            r: self.number(r),
            dst: self.number(dst),
        }
    }

    /// A condition over cells.
    fn condition(&mut self, condition: Condition) -> a99_jit::Condition {
        match condition {
            Condition::Numbers { test, l, r } => a99_jit::Condition::Numbers {
                test,
                l: self.number(l),
                r: self.number(r),
            },
            Condition::Truthy(src) => a99_jit::Condition::Truthy(self.number(src)),
            Condition::Flag(src) => a99_jit::Condition::Flag(self.flag(src)),
        }
    }

    fn finish(self) -> Option<Lowered> {
        let asked = |reg: Reg| {
            let kind = self.at_head[reg.at()];
            if !self.named[reg.at()] || !kind.is_exact() {
                return None;
            }
            let constant = self.constants.iter().find(|(one, _)| *one == reg);
            let relied = constant.filter(|_| self.relied.contains(&reg));
            Some(Asked {
                reg,
                kind,
                cell: match kind {
                    Kind::Number => self.cells[reg.at()].number,
                    Kind::Flag => self.cells[reg.at()].flag,
                    _ => None,
                },
                number: relied.map(|(_, number)| *number),
            })
        };
        let entry = (0..self.f.registers).map(Reg).filter_map(asked).collect();
        let blocks: Option<Vec<Block>> = self.blocks.into_iter().collect();
        let region = Region {
            cells: self.kinds,
            blocks: blocks?,
            exits: self.exits.len() as u32,
        };
        goes_around(&region).then_some(Lowered {
            region,
            entry,
            exits: self.exits,
            cells: self.cells,
        })
    }
}

/// A block of the region under construction.
struct Part {
    id: BlockId,
    price: Option<Price>,
    ops: Vec<a99_jit::Op>,
    /// Registers known to hold these numbers.
    constants: Vec<(Reg, f64)>,
}

impl Part {
    /// The part after a branch.
    fn next(&self, id: BlockId) -> Part {
        Part {
            id,
            price: None,
            ops: Vec::new(),
            constants: self.constants.clone(),
        }
    }
}

fn branch(condition: a99_jit::Condition, then: BlockId, otherwise: BlockId) -> End {
    End::If {
        condition,
        then,
        otherwise,
    }
}

/// Whether the first block can reach itself.
fn goes_around(region: &Region) -> bool {
    let mut seen = vec![false; region.blocks.len()];
    let mut open: Vec<BlockId> = vec![0];
    while let Some(block) = open.pop() {
        let targets = match region.blocks[usize::from(block)].end {
            End::Jump(to) => [Some(to), None],
            End::If {
                then, otherwise, ..
            } => [Some(then), Some(otherwise)],
            End::Exit(_) => [None, None],
        };
        for to in targets.into_iter().flatten() {
            if to == 0 {
                return true;
            }
            if !std::mem::replace(&mut seen[usize::from(to)], true) {
                open.push(to);
            }
        }
    }
    false
}
