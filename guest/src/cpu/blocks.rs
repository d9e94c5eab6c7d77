//! Pre-decoded basic blocks, keyed by physical page.
//!
//! A block is a straight run of instructions inside one page. Blocks of a page
//! hang in a table with one chain for each four bytes of the page; links from
//! block to block stay inside a page, so that dropping a page leaves no link
//! behind, and remapping a page costs nothing.
//!
//! What is dropped stays in the arena until the arena is full; then everything
//! is dropped at once.

use super::decode::{self, Decoded};
use super::inst::{Inst, Op, SINK};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, Ram};

/// No block, no table.
pub const NONE: u32 = u32::MAX;

/// A link that leaves the page: looked up at each jump.
pub const CROSS: u32 = u32::MAX - 1;

/// Instructions in a block at most, so that a block's price stays small
/// against a slice of the budget.
pub const MAX_BLOCK: usize = 64;

/// Instructions in the arena at most; about 12 MB with their blocks.
const MAX_INSTS: usize = 1 << 20;

/// Chains in the table of a page.
const CHAINS: usize = PAGE_SIZE / 4;

/// A block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// First instruction in the arena.
    pub first: u32,
    /// Instructions.
    pub count: u16,
    /// Length of its code in bytes.
    pub bytes: u16,
    /// Block at the target of the last instruction, [`NONE`] or [`CROSS`].
    pub taken: u32,
    /// Block behind this one, [`NONE`] or [`CROSS`].
    pub fall: u32,
    /// Next block of the chain.
    sibling: u32,
    /// Offset of the first byte in the page.
    offset: u16,
}

/// All decoded code.
#[derive(Debug)]
pub struct Code {
    insts: Vec<Inst>,
    /// Length in bytes of each instruction of the arena.
    lengths: Vec<u8>,
    blocks: Vec<Block>,
    tables: Vec<[u32; CHAINS]>,
    free: Vec<u32>,
    /// Table of each page of RAM.
    pages: Vec<u32>,
}

impl Code {
    /// No code yet, for a RAM of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            insts: Vec::new(),
            lengths: Vec::new(),
            blocks: Vec::new(),
            tables: Vec::new(),
            free: Vec::new(),
            pages: vec![NONE; bytes >> PAGE_SHIFT],
        }
    }

    /// A block by number.
    #[inline(always)]
    pub fn block(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }

    /// The instructions of a block.
    #[inline(always)]
    pub fn insts(&self, block: &Block) -> &[Inst] {
        let first = block.first as usize;
        &self.insts[first..first + usize::from(block.count)]
    }

    /// Length of an instruction of a block, and its distance from the block's
    /// start, in bytes.
    pub fn place(&self, block: u32, index: u32) -> (u8, u64) {
        let first = self.block(block).first as usize;
        let at = first + index as usize;
        let before = self.lengths[first..at].iter().map(|l| u64::from(*l)).sum();
        (self.lengths[at], before)
    }

    /// The block at `offset` of a table's page.
    #[inline(always)]
    pub fn find(&self, table: u32, offset: usize) -> Option<u32> {
        let chains = self.tables.get(table as usize)?;
        let mut number = chains[(offset / 4) & (CHAINS - 1)];
        while let Some(block) = self.blocks.get(number as usize) {
            if usize::from(block.offset) == offset {
                return Some(number);
            }
            number = block.sibling;
        }
        None
    }

    /// The table of a page of RAM, made when it has none.
    pub fn table(&mut self, page: usize) -> u32 {
        let table = self.pages[page];
        if table != NONE {
            return table;
        }
        let table = self.free.pop().unwrap_or_else(|| {
            self.tables.push([NONE; CHAINS]);
            (self.tables.len() - 1) as u32
        });
        self.pages[page] = table;
        table
    }

    /// Whether the arena should be emptied before the next block is decoded.
    pub fn is_full(&self) -> bool {
        self.insts.len() > MAX_INSTS - MAX_BLOCK
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.insts.clear();
        self.lengths.clear();
        self.blocks.clear();
        self.tables.clear();
        self.free.clear();
        self.pages.fill(NONE);
    }

    /// Drops the blocks of a page of RAM.
    pub fn drop_page(&mut self, page: usize) {
        let table = std::mem::replace(&mut self.pages[page], NONE);
        if let Some(chains) = self.tables.get_mut(table as usize) {
            chains.fill(NONE);
            self.free.push(table);
        }
    }

    /// Sets the link of a block to another of the same page.
    pub fn link(&mut self, from: u32, taken: bool, to: u32) {
        let block = &mut self.blocks[from as usize];
        *(if taken {
            &mut block.taken
        } else {
            &mut block.fall
        }) = to;
    }

    /// Decodes the block at `offset` of a page of RAM.
    pub fn build(&mut self, ram: &Ram, page: usize, offset: usize) -> u32 {
        let table = self.table(page);
        let bytes = &ram.bytes()[page * PAGE_SIZE..(page + 1) * PAGE_SIZE];
        let first = self.insts.len();
        let mut end = offset;
        while self.insts.len() - first < MAX_BLOCK - 1 {
            let Some((inst, length)) = fetch(bytes, end) else {
                break;
            };
            let Some(inst) = relative(inst, end - offset) else {
                break;
            };
            end += usize::from(length);
            self.push(inst, length);
            if inst.op.ends_block() {
                break;
            }
        }
        let last = self.insts[first..].last().map(|inst| inst.op);
        if !last.is_some_and(Op::ends_block) {
            // An instruction that begins on this page but does not end here.
            let straddles = last.is_none() && end + 4 > PAGE_SIZE;
            let op = if straddles { Op::Straddle } else { Op::End };
            self.push(Inst::of(op), 0);
        }
        self.finish(table, first, offset, end)
    }

    /// Makes block 0 of one instruction that is on no page; control leaves it
    /// by lookup.
    pub fn hold(&mut self, inst: Inst, length: u8) {
        self.clear();
        self.push(inst, length);
        self.blocks.push(Block {
            first: 0,
            count: 1,
            bytes: length.into(),
            taken: NONE,
            fall: NONE,
            sibling: NONE,
            offset: 0,
        });
    }

    fn push(&mut self, inst: Inst, length: u8) {
        self.insts.push(inst);
        self.lengths.push(length);
    }

    fn finish(&mut self, table: u32, first: usize, offset: usize, end: usize) -> u32 {
        let number = self.blocks.len() as u32;
        let chain = &mut self.tables[table as usize][offset / 4];
        let last = self.insts[self.insts.len() - 1];
        let target = offset as i64 + i64::from(last.imm);
        let inside = (0..PAGE_SIZE as i64).contains(&target);
        let jumps = last.op == Op::Jal || last.op.is_branch();
        self.blocks.push(Block {
            first: first as u32,
            count: (self.insts.len() - first) as u16,
            bytes: (end - offset) as u16,
            taken: if jumps && inside { NONE } else { CROSS },
            fall: if end < PAGE_SIZE { NONE } else { CROSS },
            sibling: std::mem::replace(chain, number),
            offset: offset as u16,
        });
        number
    }
}

impl Inst {
    /// An instruction without operands.
    fn of(op: Op) -> Self {
        Self {
            op,
            rd: SINK,
            rs1: 0,
            rs2: 0,
            imm: 0,
        }
    }
}

/// Decodes the instruction at `at`, if all of it is on the page.
fn fetch(page: &[u8], at: usize) -> Option<Decoded> {
    let low = u16::from_le_bytes(page.get(at..at + 2)?.try_into().ok()?);
    let high = match page.get(at + 2..at + 4) {
        Some(high) => u16::from_le_bytes(high.try_into().ok()?),
        None if decode::length(low) == 2 => 0,
        None => return None,
    };
    Some(decode::decode(u32::from(low) | u32::from(high) << 16))
}

/// Makes what an instruction adds to its own address relative to the start of
/// the block. `None` if the sum leaves the immediate: the instruction then
/// begins a block of its own.
fn relative(mut inst: Inst, distance: usize) -> Option<Inst> {
    if inst.op == Op::Auipc || inst.op == Op::Jal || inst.op.is_branch() {
        inst.imm = inst.imm.checked_add(distance as i32)?;
    }
    Some(inst)
}
