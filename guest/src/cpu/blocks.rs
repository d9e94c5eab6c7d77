//! Pre-decoded basic blocks, keyed by physical page.
//!
//! A block is a straight run of instructions inside one page. Blocks of a page
//! hang in a table with one chain for each sixteen bytes of the page; links from
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

/// Slots of a line of the arena. A byte indexes a line without a check, and a
/// block lies in one line.
const LINE: usize = 256;

/// Lines of the arena at most: a million slots, 9 MB with lengths.
const MAX_LINES: usize = (1 << 20) / LINE;

/// Bytes of a page that share a chain: about as many as a block has, so that
/// few chains hold two.
const CHAIN_BYTES: usize = 16;

/// Chains in the table of a page, a quarter of a page themselves: tables are
/// most of what a guest costs its host for running a page of code.
const CHAINS: usize = PAGE_SIZE / CHAIN_BYTES;

/// Added to the offset of a block that is run beside the translated code of
/// the same place.
const COPY: usize = PAGE_SIZE;

/// Slots of a block's header. They lie right before its instructions, so that
/// going to a block mostly costs one line of the processor's cache.
pub const HEADER: u8 = 3;

/// A line of the arena.
pub type Line = [Inst; LINE];

/// First slot of the instructions of a block, in its line.
#[inline(always)]
pub fn first(block: u32) -> u8 {
    block as u8 + HEADER
}

/// All decoded code.
/// A block is known by the slot of its header; the low byte of that number is
/// the place in the line.
///
/// | slot | `imm` | registers |
/// |---|---|---|
/// | 0 | block at the target of the last instruction | `rd`: instructions |
/// | 1 | block behind this one | `rs1`, `rs2`: length of its code in bytes |
/// | 2 | next block of the chain | `rs1`, `rs2`: offset in the page |
///
/// Links may be [`NONE`] or [`CROSS`].
#[derive(Debug)]
pub struct Code {
    lines: Vec<Line>,
    /// Length in bytes of each instruction of the arena.
    lengths: Vec<[u8; LINE]>,
    /// Slots in use of the last line.
    used: usize,
    tables: Vec<[u32; CHAINS]>,
    free: Vec<u32>,
    /// Table of each page of RAM.
    pages: Vec<u32>,
}

/// What a header holds.
struct Header {
    count: u8,
    bytes: u16,
    offset: u16,
    taken: u32,
    fall: u32,
    sibling: u32,
}

impl Header {
    fn slots(&self) -> [Inst; HEADER as usize] {
        let slot = |rd, short: u16, link: u32| {
            let [rs1, rs2] = short.to_le_bytes();
            Inst {
                op: Op::End,
                rd,
                rs1,
                rs2,
                imm: link as i32,
            }
        };
        [
            slot(self.count, 0, self.taken),
            slot(0, self.bytes, self.fall),
            slot(0, self.offset, self.sibling),
        ]
    }
}

impl Code {
    /// No code yet, for a RAM of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        // Room for all: memory not written to costs nothing, growing would leave
        // copies behind, in snapshots too.
        let lines = if bytes > 0 { MAX_LINES } else { 0 };
        Self {
            lines: Vec::with_capacity(lines),
            lengths: Vec::with_capacity(lines),
            used: LINE,
            tables: Vec::new(),
            free: Vec::new(),
            pages: vec![NONE; bytes >> PAGE_SHIFT],
        }
    }

    /// All lines, which never move: slots of blocks from the first on.
    pub fn lines(&self) -> *const Line {
        self.lines.as_ptr()
    }

    /// The line in which a block lies.
    #[inline(always)]
    pub fn line(&self, block: u32) -> &Line {
        &self.lines[block as usize / LINE]
    }

    /// Length of an instruction of a block, and its distance from the block's
    /// start, in bytes.
    pub fn place(&self, block: u32, index: u8) -> (u8, u64) {
        let lengths = &self.lengths[block as usize / LINE];
        let before = &lengths[usize::from(first(block))..usize::from(index)];
        let before = before.iter().map(|length| u64::from(*length)).sum();
        (lengths[usize::from(index)], before)
    }

    /// The block at `offset` of a table's page.
    #[inline(always)]
    pub fn find(&self, table: u32, offset: usize) -> Option<u32> {
        let chains = self.tables.get(table as usize)?;
        let mut number = chains[(offset / CHAIN_BYTES) & (CHAINS - 1)];
        while number != NONE {
            let line = self.lines.get(number as usize / LINE)?;
            let slot = &line[number as usize % LINE + 2];
            if short(slot) == offset {
                return Some(number);
            }
            number = slot.imm as u32;
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

    /// Drops everything, and leaves zeros, which a snapshot does not store.
    pub fn clear(&mut self) {
        let zero = Inst {
            rd: 0,
            ..Inst::of(Op::Nop)
        };
        self.lines.fill([zero; LINE]);
        self.lengths.fill([0; LINE]);
        self.tables.fill([0; CHAINS]);
        self.reset();
    }

    fn reset(&mut self) {
        self.lines.clear();
        self.lengths.clear();
        self.used = LINE;
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
        let line = &mut self.lines[from as usize / LINE];
        line[from as usize % LINE + usize::from(!taken)].imm = to as i32;
    }

    /// Decodes the block at `offset` of a page of RAM.
    pub fn build(&mut self, ram: &Ram, page: usize, offset: usize) -> u32 {
        let table = self.table(page);
        let bytes = &ram.bytes()[page * PAGE_SIZE..(page + 1) * PAGE_SIZE];
        let number = self.begin();
        let start = self.used;
        let mut end = offset;
        let mut last = None;
        while self.used - start < MAX_BLOCK - 1 {
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
        // The marker of an end is no instruction of the guest.
        let count = (self.used - start) as u8;
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
        fuse(&mut self.lines[number as usize / LINE][start..self.used]);
        let target = offset as i64 + i64::from(last.imm);
        let inside = (0..PAGE_SIZE as i64).contains(&target);
        let jumps = last.op == Op::Jal || last.op.is_branch();
        let chain = &mut self.tables[table as usize][offset / CHAIN_BYTES];
        let sibling = std::mem::replace(chain, number);
        self.set_header(
            number,
            &Header {
                count,
                bytes: (end - offset) as u16,
                offset: offset as u16,
                taken: if jumps && inside { NONE } else { CROSS },
                fall: if end < PAGE_SIZE { NONE } else { CROSS },
                sibling,
            },
        );
        number
    }

    /// Makes a block lead to translated code: a function of the table, at one of
    /// its nodes. Everything that led to the block leads there now.
    pub fn enter(&mut self, block: u32, function: u32, node: u8) {
        let line = &mut self.lines[block as usize / LINE];
        line[usize::from(first(block))] = Inst {
            rs1: node,
            imm: function as i32,
            ..Inst::of(Op::Enter)
        };
    }

    /// Whether a block leads to translated code.
    pub fn enters(&self, block: u32) -> bool {
        self.line(block)[usize::from(first(block))].op == Op::Enter
    }

    /// Makes a block at `offset` of a page of RAM that only leads to translated
    /// code.
    pub fn stub(&mut self, page: usize, offset: usize, function: u32, node: u8) -> u32 {
        let table = self.table(page);
        let number = self.begin();
        self.push(Inst::of(Op::End), 0);
        let chain = &mut self.tables[table as usize][offset / CHAIN_BYTES];
        let sibling = std::mem::replace(chain, number);
        self.set_header(
            number,
            &Header {
                count: 0,
                bytes: 0,
                offset: offset as u16,
                taken: CROSS,
                fall: CROSS,
                sibling,
            },
        );
        self.enter(number, function, node);
        number
    }

    /// The instructions at `offset` of a page where a block leads to translated
    /// code, as a block that nothing else leads to.
    pub fn copy(&mut self, ram: &Ram, page: usize, offset: usize) -> u32 {
        let table = self.table(page);
        if let Some(known) = self.find(table, offset + COPY) {
            return known;
        }
        let number = self.build(ram, page, offset);
        let [low, high] = ((offset + COPY) as u16).to_le_bytes();
        let slot = &mut self.lines[number as usize / LINE][number as usize % LINE + 2];
        (slot.rs1, slot.rs2) = (low, high);
        number
    }

    /// Makes block 0 of one instruction that is on no page; control leaves it
    /// by lookup.
    pub fn hold(&mut self, inst: Inst, length: u8) {
        self.reset();
        let number = self.begin();
        self.push(inst, length);
        self.push(Inst::of(Op::End), 0);
        self.set_header(
            number,
            &Header {
                count: 1,
                bytes: length.into(),
                offset: 0,
                taken: NONE,
                fall: NONE,
                sibling: NONE,
            },
        );
    }

    /// Begins a block with an empty header, in a line that has room for it.
    fn begin(&mut self) -> u32 {
        if self.used + usize::from(HEADER) + MAX_BLOCK > LINE {
            self.lines.push([Inst::of(Op::End); LINE]);
            self.lengths.push([0; LINE]);
            self.used = 0;
        }
        let number = (self.lines.len() - 1) * LINE + self.used;
        self.used += usize::from(HEADER);
        number as u32
    }

    fn set_header(&mut self, block: u32, header: &Header) {
        let (line, at) = (block as usize / LINE, block as usize % LINE);
        self.lines[line][at..at + usize::from(HEADER)].copy_from_slice(&header.slots());
    }

    fn push(&mut self, inst: Inst, length: u8) {
        if let (Some(line), Some(lengths)) = (self.lines.last_mut(), self.lengths.last_mut()) {
            line[self.used] = inst;
            lengths[self.used] = length;
            self.used += 1;
        }
    }
}

/// Instructions of a block of a line.
#[inline(always)]
pub fn count(line: &Line, block: u32) -> i64 {
    line[usize::from(block as u8)].rd.into()
}

/// Length in bytes of a block's code.
#[inline(always)]
pub fn bytes(line: &Line, block: u32) -> u64 {
    short(&line[usize::from((block as u8).wrapping_add(1))]) as u64
}

/// The link of a block: to the target of its last instruction, or behind it.
#[inline(always)]
pub fn link(line: &Line, block: u32, taken: bool) -> u32 {
    line[usize::from((block as u8).wrapping_add(u8::from(!taken)))].imm as u32
}

/// The number in two register fields of a header.
#[inline(always)]
fn short(slot: &Inst) -> usize {
    usize::from(u16::from_le_bytes([slot.rs1, slot.rs2]))
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
