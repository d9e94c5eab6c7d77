//! Decoded blocks, keyed by physical page.
//!
//! A block is a run of instructions inside one page with one entry and several exits: it
//! continues after branches that are not taken, and at the targets of unconditional jumps.
//! The blocks of a page are in a table with one chain for each sixteen bytes of the page.
//! Links between blocks stay inside a page, so that dropping a page leaves no dangling
//! link, and remapping a page costs nothing.
//!
//! Dropped blocks stay in the arena until it is full; then all blocks are dropped at once.

use super::decode::{self, Decoded};
use super::fuse::fuse;
use super::inst::{Inst, Op, SINK};
use crate::ram::{PAGE_SHIFT, PAGE_SIZE, Ram};

/// Marks a missing block or table.
pub(crate) const NONE: u32 = u32::MAX;

/// A link that leaves the page: looked up at each jump.
pub(crate) const CROSS: u32 = u32::MAX - 1;

/// Maximum slots of a block, so that a block's cost stays small compared to a slice of the
/// budget.
pub(crate) const MAX_BLOCK: usize = 64;

/// Maximum slots that one more instruction needs: itself, its exit, and an end.
const STEP: usize = 3;

/// Maximum branches and jumps that a block continues after: with each, control is less
/// likely to get there.
const MAX_JOINTS: usize = 4;

/// Slots of an arena line. A byte indexes a line without a check, and a block fits in one
/// line.
const LINE: usize = 256;

/// Maximum lines of the arena: a million slots, 11 MB with their locations.
const MAX_LINES: usize = (1 << 20) / LINE;

/// Bytes of a page that share a chain: about the size of a block, so that few chains hold
/// two.
const CHAIN_BYTES: usize = 16;

/// Number of chains in the table of a page, a quarter of a page in size: tables dominate
/// the host's memory cost of running a page of code.
const CHAINS: usize = PAGE_SIZE / CHAIN_BYTES;

/// Added to the offset of a block that runs instead of the translated code at the same
/// place.
const COPY: usize = PAGE_SIZE;

/// Slots of a block's header, right before its instructions.
const HEADER: u8 = 1;

/// A line of the arena.
pub(crate) type Line = [Inst; LINE];

/// First slot of the instructions of a block, in its line.
#[inline(always)]
pub(crate) fn first(block: u32) -> u8 {
    block as u8 + HEADER
}

/// Packed location of a slot's instruction: its distance in bytes from the start of the
/// block, with the lowest bit set if it is four bytes long; and the number of instructions
/// that the block runs before it.
type PackedLocation = [u8; 3];

/// Location of an instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstLocation {
    /// Bytes from the block's start, either way.
    pub distance: i16,
    /// Length in bytes.
    pub length: u8,
    /// Instructions that the block runs before it.
    pub before: u8,
}

impl InstLocation {
    fn pack(self) -> PackedLocation {
        let [low, high] = (self.distance | i16::from(self.length == 4)).to_le_bytes();
        [low, high, self.before]
    }

    fn unpack([low, high, before]: PackedLocation) -> Self {
        let packed = i16::from_le_bytes([low, high]);
        Self {
            distance: packed & !1,
            length: if packed & 1 == 0 { 2 } else { 4 },
            before,
        }
    }
}

/// Slot number of an index in the line of a block.
pub(crate) fn slot(block: u32, index: u8) -> u32 {
    block / LINE as u32 * LINE as u32 + u32::from(index)
}

/// All decoded code.
///
/// A block is identified by the slot of its header; the low byte of that number is the
/// index in the line. The header's `imm` is the next block of the chain, and `rs1` and
/// `rs2` hold its offset in the page.
///
/// Each branch and jump is followed by the slot of its exit. Where a block ends without
/// one, [`Op::End`] itself is an exit:
///
/// | field | holds |
/// |---|---|
/// | `imm` | the block that control goes to; [`NONE`] or [`CROSS`] |
/// | `rd` | instructions that have been run |
/// | `rs1`, `rs2` | bytes from the block's start to the next instruction in memory |
#[derive(Debug)]
pub(crate) struct DecodedCode {
    lines: Vec<Line>,
    locations: Vec<[PackedLocation; LINE]>,
    /// Used slots of the last line.
    used: usize,
    tables: Vec<[u32; CHAINS]>,
    free: Vec<u32>,
    /// Table of each page of RAM.
    pages: Vec<u32>,
    /// Page of RAM of each table.
    owners: Vec<u32>,
    /// Maximum branches and jumps that blocks continue after.
    joints: usize,
}

impl DecodedCode {
    /// Creates an empty arena for a RAM of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        // Reserves everything: unwritten memory costs nothing, while growing would leave
        // copies behind, in snapshots too.
        let lines = if bytes > 0 { MAX_LINES } else { 0 };
        Self {
            lines: Vec::with_capacity(lines),
            locations: Vec::with_capacity(lines),
            used: LINE,
            tables: Vec::new(),
            free: Vec::new(),
            pages: vec![NONE; bytes >> PAGE_SHIFT],
            owners: Vec::new(),
            joints: MAX_JOINTS,
        }
    }

    /// Grows to a RAM of `bytes` bytes.
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.pages.resize(bytes >> PAGE_SHIFT, NONE);
    }

    /// The line of a block.
    #[inline(always)]
    pub(crate) fn line(&self, block: u32) -> &Line {
        &self.lines[block as usize / LINE]
    }

    /// Location of an instruction of a block.
    pub(crate) fn location(&self, block: u32, index: u8) -> InstLocation {
        InstLocation::unpack(self.locations[block as usize / LINE][usize::from(index)])
    }

    /// The block at `offset` of a table's page.
    #[inline(always)]
    pub(crate) fn find(&self, table: u32, offset: usize) -> Option<u32> {
        let chains = self.tables.get(table as usize)?;
        let mut number = chains[(offset / CHAIN_BYTES) & (CHAINS - 1)];
        while number != NONE {
            let line = self.lines.get(number as usize / LINE)?;
            let slot = &line[number as usize % LINE];
            if short(slot) as usize == offset {
                return Some(number);
            }
            number = slot.imm as u32;
        }
        None
    }

    /// The table of a page of RAM, created on first use.
    pub(crate) fn table(&mut self, page: usize) -> u32 {
        let table = self.pages[page];
        if table != NONE {
            return table;
        }
        let table = self.free.pop().unwrap_or_else(|| {
            self.tables.push([NONE; CHAINS]);
            self.owners.push(NONE);
            (self.tables.len() - 1) as u32
        });
        self.owners[table as usize] = page as u32;
        self.pages[page] = table;
        table
    }

    /// The page of RAM that a table belongs to.
    pub(crate) fn owner(&self, table: u32) -> usize {
        self.owners[table as usize] as usize
    }

    /// Lists all blocks as page of RAM and offset.
    pub(crate) fn blocks(&self) -> Vec<(usize, usize)> {
        let mut blocks = Vec::new();
        for (page, table) in self.pages.iter().enumerate() {
            let chains = self.tables.get(*table as usize);
            for mut number in chains.into_iter().flatten().copied() {
                while number != NONE {
                    let slot = &self.line(number)[number as usize % LINE];
                    // Copies beside translated code are made on demand.
                    let offset = short(slot) as usize;
                    if offset < PAGE_SIZE {
                        blocks.push((page, offset));
                    }
                    number = slot.imm as u32;
                }
            }
        }
        blocks
    }

    /// Whether the arena should be emptied before the next block is decoded.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= MAX_LINES
    }

    /// Drops all blocks, and leaves zeros, which a snapshot does not store.
    pub(crate) fn clear(&mut self) {
        let zero = Inst {
            rd: 0,
            ..Inst::of(Op::Nop)
        };
        self.lines.fill([zero; LINE]);
        self.locations.fill([[0; 3]; LINE]);
        self.tables.fill([0; CHAINS]);
        self.reset();
    }

    fn reset(&mut self) {
        self.lines.clear();
        self.locations.clear();
        self.used = LINE;
        self.tables.clear();
        self.owners.clear();
        self.free.clear();
        self.pages.fill(NONE);
    }

    /// Sets whether blocks that are decoded from now on continue after untaken branches and
    /// after jumps.
    pub(crate) fn join(&mut self, joins: bool) {
        self.joints = if joins { MAX_JOINTS } else { 0 };
    }

    /// Drops the blocks of a page of RAM.
    pub(crate) fn drop_page(&mut self, page: usize) {
        let table = std::mem::replace(&mut self.pages[page], NONE);
        if let Some(chains) = self.tables.get_mut(table as usize) {
            chains.fill(NONE);
            self.free.push(table);
        }
    }

    /// Sets the link of the exit in a slot to a block of the same page.
    pub(crate) fn link(&mut self, exit: u32, to: u32) {
        self.lines[exit as usize / LINE][exit as usize % LINE].imm = to as i32;
    }

    /// Decodes the block at `offset` of a page of RAM.
    pub(crate) fn build(&mut self, ram: &Ram, page: usize, offset: usize) -> u32 {
        let table = self.table(page);
        let bytes = &ram.bytes()[page * PAGE_SIZE..(page + 1) * PAGE_SIZE];
        let number = self.begin();
        let start = self.used;
        let mut path = Path {
            start: offset,
            at: offset,
            count: 0,
            joints: self.joints,
        };
        let ended = loop {
            if self.used - start > MAX_BLOCK - STEP {
                break false;
            }
            match self.decode_one(table, bytes, &mut path) {
                Then::GoOn => {}
                Then::Stop => break false,
                Then::Ended => break true,
            }
        };
        if !ended {
            // An instruction that begins on this page may end on the next.
            let inst = match path.count {
                0 => Inst::of(Op::PageCrossing),
                count => exit(self.link_to(table, path.at as i64), count, path.distance()),
            };
            self.push(inst, path.location(0));
        }
        fuse(&mut self.lines[number as usize / LINE][start..self.used]);
        let chain = &mut self.tables[table as usize][offset / CHAIN_BYTES];
        let sibling = std::mem::replace(chain, number);
        self.set_header(number, offset, sibling);
        number
    }

    /// Adds the next instruction to the block being decoded.
    fn decode_one(&mut self, table: u32, page: &[u8], path: &mut Path) -> Then {
        let Some((inst, length)) = fetch(page, path.at) else {
            return Then::Stop;
        };
        let Some(inst) = relative(inst, path.distance()) else {
            return Then::Stop;
        };
        let location = path.location(length);
        path.at += usize::from(length);
        path.count += 1;
        let after = path.distance();
        let target = path.start as i64 + i64::from(inst.imm);
        if inst.op == Op::Jal && self.joins(table, target, path) {
            path.at = target as usize;
            path.joints -= 1;
            // Only the jump's link register write remains.
            if inst.rd != SINK {
                let (op, imm) = (Op::Auipc, after.into());
                self.push(Inst { op, imm, ..inst }, location);
            }
            return Then::GoOn;
        }
        self.push(inst, location);
        if inst.op == Op::Jalr {
            self.push(exit(CROSS, path.count, after), location);
        } else if inst.op == Op::Jal || inst.op.is_branch() {
            let link = self.link_to(table, target);
            self.push(exit(link, path.count, after), location);
        }
        if !inst.op.is_branch() {
            return if inst.op.ends_block() {
                Then::Ended
            } else {
                Then::GoOn
            };
        }
        if path.joints == 0 || self.find(table, path.at).is_some() {
            return Then::Stop;
        }
        path.joints -= 1;
        Then::GoOn
    }

    /// Whether a block continues at the target of a jump: on the same page, forward
    /// (backward mostly is a loop), and without an existing block.
    fn joins(&self, table: u32, target: i64, path: &Path) -> bool {
        path.joints > 0
            && target > path.at as i64
            && inside(target).is_some_and(|target| self.find(table, target).is_none())
    }

    /// The link to the block at an offset from the start of a page.
    fn link_to(&self, table: u32, offset: i64) -> u32 {
        match inside(offset) {
            Some(offset) => self.find(table, offset).unwrap_or(NONE),
            None => CROSS,
        }
    }

    /// Makes a block enter translated code: a function of the table, at one of its nodes.
    /// All links to the block then lead there.
    pub(crate) fn enter(&mut self, block: u32, function: u32, node: u8) {
        let line = &mut self.lines[block as usize / LINE];
        line[usize::from(first(block))] = Inst {
            rs1: node,
            imm: function as i32,
            ..Inst::of(Op::Enter)
        };
    }

    /// Whether a block enters translated code.
    pub(crate) fn enters(&self, block: u32) -> bool {
        self.line(block)[usize::from(first(block))].op == Op::Enter
    }

    /// The block at `offset` of a table's page, or the copy beside it, that does not enter
    /// translated code.
    pub(crate) fn find_plain(&self, table: u32, offset: usize) -> Option<u32> {
        let copy = self.find(table, offset + COPY);
        copy.or_else(|| {
            self.find(table, offset)
                .filter(|block| !self.enters(*block))
        })
    }

    /// Makes a block at `offset` of a page of RAM that only enters translated code.
    pub(crate) fn stub(&mut self, page: usize, offset: usize, function: u32, node: u8) -> u32 {
        let table = self.table(page);
        let number = self.begin();
        let location = InstLocation {
            distance: 0,
            length: 2,
            before: 0,
        };
        self.push(Inst::of(Op::End), location);
        self.enter(number, function, node);
        let chain = &mut self.tables[table as usize][offset / CHAIN_BYTES];
        let sibling = std::mem::replace(chain, number);
        self.set_header(number, offset, sibling);
        number
    }

    /// Decodes the instructions at `offset` of a page where a block enters translated code,
    /// as a block without links to it.
    pub(crate) fn copy(&mut self, ram: &Ram, page: usize, offset: usize) -> u32 {
        let table = self.table(page);
        if let Some(known) = self.find(table, offset + COPY) {
            return known;
        }
        let number = self.build(ram, page, offset);
        let slot = &mut self.lines[number as usize / LINE][number as usize % LINE];
        [slot.rs1, slot.rs2] = ((offset + COPY) as u16).to_le_bytes();
        number
    }

    /// Makes a block of one instruction that belongs to no page; its exit is a look-up.
    pub(crate) fn hold(&mut self, inst: Inst, length: u8) -> u32 {
        let number = self.begin();
        let location = InstLocation {
            distance: 0,
            length,
            before: 0,
        };
        self.push(inst, location);
        for _ in 0..2 {
            self.push(exit(NONE, 1, length.into()), location);
        }
        self.set_header(number, 0, NONE);
        number
    }

    /// Begins a block with an empty header, in a line that has room for it.
    fn begin(&mut self) -> u32 {
        if self.used + usize::from(HEADER) + MAX_BLOCK > LINE {
            self.lines.push([Inst::of(Op::End); LINE]);
            self.locations.push([[0; 3]; LINE]);
            self.used = 0;
        }
        let number = (self.lines.len() - 1) * LINE + self.used;
        self.used += usize::from(HEADER);
        number as u32
    }

    fn set_header(&mut self, block: u32, offset: usize, sibling: u32) {
        let [rs1, rs2] = (offset as u16).to_le_bytes();
        let imm = sibling as i32;
        self.lines[block as usize / LINE][block as usize % LINE] = Inst {
            rs1,
            rs2,
            imm,
            ..Inst::of(Op::End)
        };
    }

    fn push(&mut self, inst: Inst, location: InstLocation) {
        if let (Some(line), Some(locations)) = (self.lines.last_mut(), self.locations.last_mut()) {
            line[self.used] = inst;
            locations[self.used] = location.pack();
            self.used += 1;
        }
    }
}

/// Progress of decoding a block.
struct Path {
    /// Offset of the block in its page.
    start: usize,
    /// Offset of the next instruction.
    at: usize,
    /// Number of instructions before it.
    count: u8,
    /// Branches and jumps that the block may still continue after.
    joints: usize,
}

impl Path {
    fn distance(&self) -> i16 {
        (self.at as i64 - self.start as i64) as i16
    }

    /// The location of the next instruction.
    fn location(&self, length: u8) -> InstLocation {
        InstLocation {
            distance: self.distance(),
            length,
            before: self.count,
        }
    }
}

/// How decoding continues after an instruction.
enum Then {
    /// With the next instruction.
    GoOn,
    /// With the end of the block.
    Stop,
    /// The instruction has ended the block itself.
    Ended,
}

/// Builds the exit of a block from its link, the instructions run, and the distance from
/// the block's start to the next instruction in memory.
fn exit(link: u32, count: u8, after: i16) -> Inst {
    let [rs1, rs2] = after.to_le_bytes();
    Inst {
        op: Op::End,
        rd: count,
        rs1,
        rs2,
        imm: link as i32,
    }
}

/// An exit to an address that must be looked up, without a count.
pub(crate) const ELSEWHERE: Inst = Inst {
    op: Op::End,
    rd: 0,
    rs1: 0,
    rs2: 0,
    imm: CROSS as i32,
};

/// Bytes from the block's start to the instruction after an exit.
#[inline(always)]
pub(crate) fn after(exit: &Inst) -> u64 {
    short(exit) as i64 as u64
}

/// Converts an offset, if it is inside the page.
fn inside(offset: i64) -> Option<usize> {
    (0..PAGE_SIZE as i64)
        .contains(&offset)
        .then_some(offset as usize)
}

/// Number in two register fields of a slot.
#[inline(always)]
fn short(slot: &Inst) -> i16 {
    i16::from_le_bytes([slot.rs1, slot.rs2])
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

/// Decodes the instruction at `at`, if it lies entirely on the page.
fn fetch(page: &[u8], at: usize) -> Option<Decoded> {
    let low = u16::from_le_bytes(page.get(at..at + 2)?.try_into().ok()?);
    let high = match page.get(at + 2..at + 4) {
        Some(high) => u16::from_le_bytes(high.try_into().ok()?),
        None if decode::length(low) == 2 => 0,
        None => return None,
    };
    Some(decode::decode(u32::from(low) | u32::from(high) << 16))
}

/// Makes an immediate that is relative to the instruction relative to the start of the
/// block. `None` if the sum does not fit: the instruction then begins a separate block.
fn relative(mut inst: Inst, distance: i16) -> Option<Inst> {
    if inst.op == Op::Auipc || inst.op == Op::Jal || inst.op.is_branch() {
        inst.imm = inst.imm.checked_add(distance.into())?;
    }
    Some(inst)
}

#[cfg(test)]
mod tests;
