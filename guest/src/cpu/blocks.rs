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
use super::fuse::fuse;
use super::inst::{Inst, Op, SINK};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, Ram};

/// No block, no table.
pub const NONE: u32 = u32::MAX;

/// A link that leaves the page: looked up at each jump.
pub const CROSS: u32 = u32::MAX - 1;

/// Instructions in a block at most, so that a block's price stays small
/// against a slice of the budget.
pub const MAX_BLOCK: usize = 64;

/// Instructions of a line of the arena. A byte indexes a line without a check,
/// and a block lies in one line.
const LINE: usize = 256;

/// Lines in the arena at most: a million instructions, which with their blocks
/// are about 14 MB.
const MAX_LINES: usize = (1 << 20) / LINE;

/// Chains in the table of a page.
const CHAINS: usize = PAGE_SIZE / 4;

/// A line of the arena.
pub type Line = [Inst; LINE];

/// A block.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Block {
    /// Line of the arena.
    pub line: u32,
    /// First instruction in the line.
    pub first: u8,
    /// Instructions; the last one ends the block.
    pub count: u8,
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
    lines: Vec<Line>,
    /// Length in bytes of each instruction of the arena.
    lengths: Vec<[u8; LINE]>,
    /// Instructions in use of the last line.
    used: usize,
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
            lines: Vec::new(),
            lengths: Vec::new(),
            used: LINE,
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

    /// The line in which a block lies.
    #[inline(always)]
    pub fn line(&self, block: &Block) -> &Line {
        &self.lines[block.line as usize]
    }

    /// Length of an instruction of a block, and its distance from the block's
    /// start, in bytes.
    pub fn place(&self, block: &Block, index: u8) -> (u8, u64) {
        let lengths = &self.lengths[block.line as usize];
        let before = &lengths[usize::from(block.first)..usize::from(index)];
        let before = before.iter().map(|length| u64::from(*length)).sum();
        (lengths[usize::from(index)], before)
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
        self.lines.len() >= MAX_LINES
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.lengths.clear();
        self.used = LINE;
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
        let first = self.reserve();
        let mut end = offset;
        let mut last = None;
        while self.used - first < MAX_BLOCK - 1 {
            let Some((inst, length)) = fetch(bytes, end) else {
                break;
            };
            let Some(inst) = relative(inst, end - offset) else {
                break;
            };
            end += usize::from(length);
            self.push(inst, length);
            last = Some(inst);
            if inst.op.ends_block() {
                break;
            }
        }
        let last = match last {
            Some(inst) if inst.op.ends_block() => inst,
            _ => {
                // An instruction that begins on this page may not end here.
                let straddles = last.is_none() && end + 4 > PAGE_SIZE;
                let inst = Inst::of(if straddles { Op::Straddle } else { Op::End });
                self.push(inst, 0);
                inst
            }
        };
        if let Some(line) = self.lines.last_mut() {
            fuse(&mut line[first..self.used]);
        }
        let target = offset as i64 + i64::from(last.imm);
        let inside = (0..PAGE_SIZE as i64).contains(&target);
        let jumps = last.op == Op::Jal || last.op.is_branch();
        let number = self.blocks.len() as u32;
        let chain = &mut self.tables[table as usize][offset / 4];
        let sibling = std::mem::replace(chain, number);
        self.blocks.push(Block {
            line: (self.lines.len() - 1) as u32,
            first: first as u8,
            count: (self.used - first) as u8,
            bytes: (end - offset) as u16,
            taken: if jumps && inside { NONE } else { CROSS },
            fall: if end < PAGE_SIZE { NONE } else { CROSS },
            sibling,
            offset: offset as u16,
        });
        number
    }

    /// Makes block 0 of one instruction that is on no page; control leaves it
    /// by lookup.
    pub fn hold(&mut self, inst: Inst, length: u8) {
        self.clear();
        let first = self.reserve();
        self.push(inst, length);
        self.push(Inst::of(Op::End), 0);
        self.blocks.push(Block {
            line: 0,
            first: first as u8,
            count: 1,
            bytes: length.into(),
            taken: NONE,
            fall: NONE,
            sibling: NONE,
            offset: 0,
        });
    }

    /// Where the next block begins in the last line, which has room for it.
    fn reserve(&mut self) -> usize {
        if self.used > LINE - MAX_BLOCK {
            self.lines.push([Inst::of(Op::End); LINE]);
            self.lengths.push([0; LINE]);
            self.used = 0;
        }
        self.used
    }

    fn push(&mut self, inst: Inst, length: u8) {
        if let (Some(line), Some(lengths)) = (self.lines.last_mut(), self.lengths.last_mut()) {
            line[self.used] = inst;
            lengths[self.used] = length;
            self.used += 1;
        }
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
