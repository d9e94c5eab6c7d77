//! Fast path of the interpreter: runs blocks while they need only registers and memory in
//! the TLBs.
//!
//! It is one `match` over typed instructions. An instruction that may trap, miss or access
//! a device leaves through [`Exit::Slow`]; `slow.rs` runs that one instruction, and the
//! block continues after it. The budget is charged where a block is left.

mod chain;

use super::blocks::{DecodedCode, NONE};
use crate::hart::csr::Bank;
use crate::hart::{Cursor, Hart, Registers};
use crate::mmu::tlb::{DataTlbs, ExecTlb, MMU_INDEXES, Tlbs};
use crate::ram::PAGE_SIZE;

/// Why the fast loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The budget is used up; `pc` is the next instruction.
    Budget,
    /// The block at `pc` must be looked up, then linked to the exit slot, if one is given.
    Lookup(Option<u32>),
    /// The instruction at the cursor needs the slow path.
    Slow,
    /// Translated code left before the instruction at `pc`, which must be interpreted.
    Interpret,
}

/// Runs from the cursor on, which must name a block.
pub(crate) fn run(hart: &mut Hart, code: &DecodedCode, ram: &mut [u8]) -> Exit {
    chain::chain(LoopState::of(hart, None), code, ram)
}

/// Runs a block of `alone`, which belongs to no page: `nowhere` is an empty TLB, so that a
/// jump out of the block leaves the loop and is looked up elsewhere.
pub(crate) fn run_alone(
    hart: &mut Hart,
    (alone, block): (&DecodedCode, u32),
    nowhere: &mut ExecTlb,
    ram: &mut [u8],
) -> Exit {
    hart.at.block = block;
    hart.at.inside = false;
    chain::chain(LoopState::of(hart, Some(nowhere)), alone, ram)
}

/// State of the loop.
struct LoopState<'a> {
    x: &'a mut Registers,
    bank: Bank<'a>,
    data: &'a [DataTlbs; MMU_INDEXES],
    exec: &'a mut ExecTlb,
    at: &'a mut Cursor,
}

impl<'a> LoopState<'a> {
    /// Borrows the state of a hart; its instruction TLB may be replaced.
    fn of(hart: &'a mut Hart, exec: Option<&'a mut ExecTlb>) -> Self {
        let mode = hart.mode;
        let Tlbs {
            data, exec: own, ..
        } = &mut hart.tlbs;
        Self {
            x: &mut hart.x,
            bank: Bank {
                mode,
                csr: &mut hart.csr,
                fp: &mut hart.fp,
            },
            data,
            exec: exec.unwrap_or(&mut own[mode as usize]),
            at: &mut hart.at,
        }
    }
}

/// The block at `pc`, if its page is in the TLB.
#[inline(always)]
fn jump_target(exec: &mut ExecTlb, code: &DecodedCode, pc: u64) -> Option<u32> {
    if let Some(found) = exec.cached_block(pc) {
        return Some(found);
    }
    let found = code.find(exec.find(pc)?, pc as usize & (PAGE_SIZE - 1))?;
    exec.cache_block(pc, found);
    Some(found)
}

/// The decoded instructions at `pc`, not their translation.
#[inline(always)]
fn plain(exec: &ExecTlb, code: &DecodedCode, pc: u64) -> Option<u32> {
    code.find_plain(exec.find(pc)?, pc as usize & (PAGE_SIZE - 1))
}

/// Leaves between blocks.
fn exit_loop(at: &mut Cursor, pc: u64, budget: i64, exit: Exit) -> Exit {
    *at = Cursor {
        pc,
        block: NONE,
        inside: false,
        budget,
        ..*at
    };
    exit
}
